//===- host_chunks.h - Chunks of the host's pinned memory ---------*- C++ -*-===//

#ifndef GENREC_RT_CUDA_HOST_CHUNKS_H
#define GENREC_RT_CUDA_HOST_CHUNKS_H

#include <cstdint>
#include <string>
#include <vector>

namespace genrec::rt::cuda {

/// Chunks of one size that never move, for values in the host's memory. Pinning memory waits for
/// the device, so several are pinned at once: an eighth of those that there are.
class HostChunks {
public:
  explicit HostChunks(std::string name) : name(std::move(name)) {}
  HostChunks(const HostChunks &) = delete;
  HostChunks &operator=(const HostChunks &) = delete;
  /// What kernels still use must not be freed.
  ~HostChunks();

  /// A new chunk of `bytes`, always the same. Throws Error where there is no memory for one.
  void *take(int64_t bytes);
  /// Bytes of all chunks, spare ones among them.
  int64_t getBytes() const { return pinned; }

private:
  std::string name;
  std::vector<void *> blocks;
  std::vector<char *> spare;
  int64_t taken = 0, pinned = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_HOST_CHUNKS_H
