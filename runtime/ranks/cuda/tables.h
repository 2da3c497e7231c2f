//===- tables.h - Small tables of the host for kernels of a step -*- C++ -*-===//

#ifndef GENREC_RT_RANKS_CUDA_TABLES_H
#define GENREC_RT_RANKS_CUDA_TABLES_H

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/footprint.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace genrec::rt::cuda {

/// Room for `count` elements and one more, in steps that steps of about one size seldom leave.
inline int64_t roomFor(int64_t count) {
  constexpr int64_t kLeast = 1024;
  return count < kLeast ? kLeast : capacityBucket(count + 1);
}

/// Copies of small arrays on the device, which stay until `reset`: pieces of pinned memory and of
/// the device's, side by side.
class StepTables {
public:
  explicit StepTables(std::string name) : name(std::move(name)) {}
  ~StepTables() {
    for (Block &block : blocks)
      freeNamedHost(block.pinned);
  }
  StepTables(const StepTables &) = delete;
  StepTables &operator=(const StepTables &) = delete;

  /// The device has read all of them.
  void reset() { at = used = 0; }

  /// `host` on the device, in the order of `stream`.
  template <class T> const T *add(std::span<const T> host, cudaStream_t stream) {
    const auto bytes = static_cast<int64_t>(host.size_bytes());
    const Piece piece = take(bytes, stream);
    if (bytes > 0) {
      std::memcpy(piece.pinned, host.data(), host.size_bytes());
      GENREC_CUDA_CHECK(cudaMemcpyAsync(piece.device, piece.pinned, host.size_bytes(),
                                        cudaMemcpyHostToDevice, stream));
    }
    return reinterpret_cast<const T *>(piece.device);
  }
  template <class T> const T *add(const std::vector<T> &host, cudaStream_t stream) {
    return add(std::span<const T>(host), stream);
  }

private:
  struct Block {
    char *pinned = nullptr;
    DeviceArray<char> device;
    int64_t bytes = 0;
  };
  struct Piece {
    char *pinned, *device;
  };

  Piece take(int64_t bytes, cudaStream_t stream) {
    bytes = (bytes + 255) / 256 * 256;
    while (at < blocks.size() && used + bytes > blocks[at].bytes) {
      ++at;
      used = 0;
    }
    if (at == blocks.size()) {
      constexpr int64_t kLeast = 1 << 16;
      const int64_t room = std::max(bytes, kLeast);
      Block &block = blocks.emplace_back(Block{nullptr, DeviceArray<char>(name), room});
      block.pinned = static_cast<char *>(allocateNamedHost(name, room));
      block.device.ensure(room, stream);
    }
    used += bytes;
    return {blocks[at].pinned + used - bytes, blocks[at].device.data() + used - bytes};
  }

  std::string name;
  std::vector<Block> blocks;
  size_t at = 0;
  int64_t used = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_TABLES_H
