//===- portion_sums.h - Sums over portions on a device ----------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_CUDA_PORTION_SUMS_H
#define GENREC_RT_RANKS_CUDA_PORTION_SUMS_H

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/device_exchange.h"
#include "genrec_rt/portions.h"

#include <deque>

namespace genrec::rt::cuda {

/// What PortionSums (portions.h) is on the host, for several vectors, with the same tree.
class PortionSums final : public DevicePortionSums {
public:
  /// `queue` is where the stream of the queue in use is.
  PortionSums(Communicator &comm, int32_t portions, const cudaStream_t &queue);

  void begin() override;
  void contribute(int32_t number, std::span<const float *const> partial,
                  std::span<const int64_t> floats) override;
  bool isWhole(int32_t number) const override { return isGiven(number) && isWhole(sums[number]); }
  bool has(int32_t number) const override { return isGiven(number) && sums[number].total; }
  void describePlaces(GraphKey &key) const override;
  void reduce(Communicator &on, int32_t number) override { reduce(on, sums[number]); }
  void reduce(Communicator &on) override;
  void collect(int32_t number, std::span<float *const> totals) override;
  void sumExactly(std::span<const ExactValues> of) override;
  int64_t getReceivedBytes() const override { return receivedBytes; }

private:
  /// Longer ones are added slice by slice where there are more than two ranks.
  static constexpr int64_t kMostWhole = 16384;

  struct Node : PortionNode {
    float *values = nullptr;
  };
  struct Sum {
    std::vector<int64_t> floats; ///< by list
    int64_t length = 0;
    int32_t given = 0;       ///< portions of this rank
    std::vector<Node> nodes; ///< of those, from left to right
    std::vector<DeviceArray<float>> memory;
    std::vector<float *> free;
    DeviceArray<float> messages, gathered; ///< of other ranks; of all slices
    float *total = nullptr;                ///< once it is reduced

    explicit Sum() : messages("sums.messages"), gathered("sums.gathered") {}
  };
  /// Floats [begin, begin + count) of a vector.
  struct Slice {
    int64_t begin, count;
  };

  /// Whether any portion has ever given to it.
  bool isGiven(int32_t number) const { return static_cast<size_t>(number) < sums.size(); }
  bool isWhole(const Sum &sum) const { return sum.given == own.count && !sum.total; }
  bool isSliced(const Sum &sum) const { return ranks > 2 && sum.length > kMostWhole; }
  Slice sliceOf(const Sum &sum, int32_t of) const;
  void reduce(Communicator &on, Sum &sum);
  float *addTree(Sum &sum, std::span<float *const> messages, int32_t first, int32_t level);
  void gather(Communicator &on, Sum &sum, const float *own);
  CommMemory onDevice() const { return {CommMemory::Kind::device, queue}; }

  Communicator &comm;
  const int32_t portions, ranks, rank;
  const PortionRange own;
  const cudaStream_t &queue;
  std::vector<std::vector<PortionNode>> covers; ///< by rank: the nodes that it sends
  std::deque<Sum> sums;                         ///< by number
  DeviceArray<char> limbs{"sums.limbs"}, allLimbs{"sums.all_limbs"};
  int64_t receivedBytes = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_PORTION_SUMS_H
