//===- ranks.cu - Numbering what is marked --------------------------------===//

#include "genrec_rt/kernels/cuda/ranks.h"

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kPerThread = 8;
constexpr int kPerBlock = kThreads * kPerThread;

/// Flags of this thread, which are eight in a row.
__device__ uint32_t flagsOf(const uint8_t *flags, int64_t first, int64_t count) {
  uint32_t set = 0;
  for (int i = 0; i < kPerThread; ++i)
    set |= first + i < count && flags[first + i] ? 1u << i : 0;
  return set;
}

__global__ void __launch_bounds__(kThreads)
    countFlags(const uint8_t *flags, int64_t count, uint32_t *blockSums) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock + threadIdx.x * kPerThread;
  uint32_t total;
  exclusiveBlockSum<kThreads>(static_cast<uint32_t>(__popc(flagsOf(flags, first, count))), total);
  if (threadIdx.x == 0)
    blockSums[blockIdx.x] = total;
}

/// One block: sums become those of the blocks before.
template <int Threads>
__global__ void __launch_bounds__(Threads)
    scanBlocks(uint32_t *blockSums, int64_t blocks, uint32_t *total) {
  uint32_t before = 0;
  for (int64_t base = 0; base < blocks; base += Threads) {
    const int64_t at = base + threadIdx.x;
    const uint32_t value = at < blocks ? blockSums[at] : 0;
    uint32_t sum;
    const uint32_t exclusive = exclusiveBlockSum<Threads>(value, sum);
    if (at < blocks)
      blockSums[at] = before + exclusive;
    before += sum;
  }
  if (threadIdx.x == 0)
    *total = before;
}

__global__ void __launch_bounds__(kThreads)
    writeRanks(const uint8_t *flags, int64_t count, const uint32_t *blockSums, uint32_t *ranks) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock + threadIdx.x * kPerThread;
  const uint32_t set = flagsOf(flags, first, count);
  uint32_t total;
  const uint32_t before = blockSums[blockIdx.x] +
                          exclusiveBlockSum<kThreads>(static_cast<uint32_t>(__popc(set)), total);
  for (int i = 0; i < kPerThread && first + i < count; ++i)
    ranks[first + i] = before + static_cast<uint32_t>(__popc(set & ((1u << i) - 1)));
}

} // namespace

void FlagRanks::run(const uint8_t *flags, int64_t count, uint32_t *ranks, uint32_t *total,
                    cudaStream_t stream) {
  const int64_t blocks = blocksFor(count, kPerBlock);
  uint32_t *sums = blockSums.ensure(blocks > 0 ? blocks : 1, stream);
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)};
  if (blocks > 0)
    GENREC_CUDA_LAUNCH(stream, shape, countFlags, flags, count, sums);
  // As many threads as there are sums: up to 65,536 flags a warp will do.
  if (blocks <= kWarp)
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, kWarp}), scanBlocks<kWarp>, sums, blocks, total);
  else
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1024}), scanBlocks<1024>, sums, blocks, total);
  if (blocks > 0)
    GENREC_CUDA_LAUNCH(stream, shape, writeRanks, flags, count, sums, ranks);
}

} // namespace genrec::rt::cuda
