//===- prefix_sums.cu - Prefix sums of an array ---------------------------===//

#include "genrec_rt/kernels/cuda/prefix_sums.h"

#include "look_back.h"

#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kNumbersEach = 8;
constexpr int64_t kNumbersTile = kThreads * kNumbersEach;

__global__ void __launch_bounds__(kThreads)
    addTilesBefore(uint32_t *numbers, int64_t count, LookBackTiles tiles) {
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * kNumbersTile + threadIdx.x * kNumbersEach;
    uint32_t own[kNumbersEach], sum = 0, total;
#pragma unroll
    for (int i = 0; i < kNumbersEach; ++i) {
      own[i] = first + i < count ? numbers[first + i] : 0;
      sum += own[i];
    }
    uint32_t running = exclusiveBlockSum<kThreads>(sum, total);
    running += tiles.sumBefore(tile, total);
#pragma unroll
    for (int i = 0; i < kNumbersEach; ++i) {
      if (first + i < count)
        numbers[first + i] = running;
      running += own[i];
    }
  }
}

} // namespace

int64_t prefixSumWords(int64_t count) {
  return LookBackTiles::words(blocksFor(count, kNumbersTile));
}

void addBefore(uint32_t *numbers, int64_t count, Word *states, cudaStream_t stream) {
  const LookBackTiles tiles{states, blocksFor(count, kNumbersTile)};
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(tiles.count * kThreads, kThreads), addTilesBefore,
                       numbers, count, tiles);
}

} // namespace genrec::rt::cuda
