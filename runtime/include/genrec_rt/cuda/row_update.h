//===- row_update.h - Reducing gradients and updating rows --------*- C++ -*-===//
//
// Reduce and update in one pass. A row's gradients are added in the order of its
// occurrences, in float: the bits of the CPU, whatever runs when. A giant, a row
// with more than kMostSummed occurrences, is summed by a tree instead: pieces of
// kMostSummed occurrences each by a warp of its own, then the sums of the pieces in
// the same way, until a warp has kMostSummed of them at most. The tree follows from
// the number of occurrences alone, so its bits are always the same as well.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_ROW_UPDATE_H
#define GENREC_RT_CUDA_ROW_UPDATE_H

#include "genrec_rt/cuda/bf16.h"
#include "genrec_rt/cuda/memory.h"

#include <cstdint>

namespace genrec::rt::cuda {

/// Most terms that one warp adds up.
constexpr int64_t kMostSummed = 256;

/// PyTorch's equations; moments of Adam are lazy (touched rows only). rowwiseAdagrad has one
/// accumulator a row, which a step adds the mean of the row's squared gradients to: the dialect's
/// rowwise_adagrad.
enum class OptimizerKind { sgd, adagrad, adam, adamw, rowwiseAdagrad };

struct RowOptimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  float rate = 0.01f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weightDecay = 0;
  /// The 1-based step of Adam's bias correction.
  int64_t step = 1;
};

/// Gradients of the occurrences of a row: occurrence i adds gradients[parent(i) * ld …], where
/// parent(i) is parents[i], or i itself for null; times 1 / max(size of the list, 1) where
/// `listOffsets` is given (a mean).
struct RowGradients {
  const float *gradients = nullptr;
  int64_t ld = 0;
  const int64_t *parents = nullptr;
  const int64_t *listOffsets = nullptr;
};

class RowUpdate {
public:
  explicit RowUpdate(const std::string &name)
      : bounds(name + ".piece_bounds"), sums(name + ".piece_sums"), firstOf(name + ".first_pieces"),
        counts(name + ".piece_counts") {}

  /// Row u gets the sum of the gradients of its occurrences order[segments[u] … segments[u + 1])
  /// (order.h), `occurrences` of all rows together at most, and one step of the optimizer. A row
  /// is `dim` elements of T (up to 512, else Error; float or Bf16), rounded up to 4 bytes, then the
  /// states, `dim` floats each (of rowwiseAdagrad one float). Null rows are left out. `count` rows,
  /// of which *used exist (null: all).
  template <class T>
  void run(T *const *rows, int64_t count, const uint32_t *used, int64_t dim, const uint32_t *order,
           const int64_t *segments, int64_t occurrences, const RowGradients &gradients,
           const RowOptimizer &optimizer, cudaStream_t stream);

private:
  /// 256^4 occurrences are more than a batch may have.
  static constexpr int kMostLevels = 4;

  DeviceArray<int64_t> bounds;
  DeviceArray<float> sums;
  DeviceArray<uint32_t> firstOf, counts;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_ROW_UPDATE_H
