//===- ranks.cu - Numbering what is marked --------------------------------===//

#include "genrec_rt/kernels/cuda/ranks.h"

#include "look_back.h"
#include "marked.h"

#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kFlagsEach = 16;
using FlagTile = MarkedTile<kThreads, kFlagsEach>;

__global__ void __launch_bounds__(kThreads)
    rankFlags(const uint8_t *flags, int64_t count, LookBackTiles tiles, uint32_t *ranks,
              uint32_t *total) {
  for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
    const int64_t first = tile * FlagTile::kItems;
    uint8_t own[kFlagsEach];
#pragma unroll
    for (int round = 0; round < kFlagsEach; ++round)
      own[round] =
          first + FlagTile::place(round) < count ? flags[first + FlagTile::place(round)] : 0;
    FlagTile marked;
#pragma unroll
    for (int round = 0; round < kFlagsEach; ++round)
      marked.mark(round, own[round] != 0);
    const uint32_t sum = marked.count(), before = tiles.sumBefore(tile, sum);
#pragma unroll
    for (int round = 0; round < kFlagsEach; ++round) {
      const uint32_t rank = before + marked.rank(round);
      if (first + FlagTile::place(round) < count)
        ranks[first + FlagTile::place(round)] = rank;
    }
    if (tile == tiles.count - 1 && threadIdx.x == 0)
      *total = before + sum;
  }
}

} // namespace

void FlagRanks::run(const uint8_t *flags, int64_t count, uint32_t *ranks, uint32_t *total,
                    cudaStream_t stream) {
  if (count == 0) {
    GENREC_CUDA_CHECK(cudaMemsetAsync(total, 0, sizeof(uint32_t), stream));
    return;
  }
  const LookBackTiles tiles = makeTiles(blocksFor(count, FlagTile::kItems), states, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(tiles.count * kThreads, kThreads), rankFlags, flags,
                     count, tiles, ranks, total);
}

} // namespace genrec::rt::cuda
