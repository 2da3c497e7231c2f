//===- lower_halves.cu - What hot rows keep beside bfloat16, on a device --===//

#include "genrec_rt/cuda/lower_halves.h"

#include "store_shape.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/store.h"
#include "genrec_rt/footprint.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <algorithm>
#include <bit>

namespace genrec::rt::cuda {

namespace {

/// Bytes of a chunk of blocks, and how many chunks the device's table of them has room for: 512
/// GiB. On the host a chunk is small, so that tests see several.
constexpr int64_t kLowerChunkBytes = deviceSize(8 << 20, 4 << 10);
constexpr int64_t kMostLowerChunks = 1 << 16;

/// What a row of a table with hot rows has where, in floats.
struct HotRows {
  int64_t lowerOffset, sightingOffset;
  Word hotAfter;

  __device__ bool isHot(const float *row) const {
    return reinterpret_cast<const Word *>(row + sightingOffset)[1] >= hotAfter;
  }
  /// The address of its lower halves; null where it has none.
  __device__ Word *lower(float *row) const { return reinterpret_cast<Word *>(row + lowerOffset); }
};

HotRows hotRowsOf(const StoreConfig &config) {
  return {storeLowerOffset(config.dim), config.sightingOffset(),
          static_cast<Word>(config.rules.hotAfter)};
}

/// What stands for position i in the place of an address, which is even. The least position is the
/// greatest claim.
__device__ Word claimOf(int64_t i) { return ((Word(1) << 32) - static_cast<Word>(i)) << 1 | 1; }
__device__ bool isClaim(Word lower) { return lower & 1; }

/// Claims a block for each row that is hot and has none, for the least position that names it.
__global__ void __launch_bounds__(kStoreThreads)
    claimBlocks(float *const *rows, const uint8_t *valid, int64_t count, HotRows hot) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    if ((valid && !valid[i]) || !rows[i] || !hot.isHot(rows[i]))
      continue;
    Word *lower = hot.lower(rows[i]);
    const Word now = loadRelaxed(lower);
    if (now == 0 || (isClaim(now) && now < claimOf(i)))
      atomicMax(lower, claimOf(i));
  }
}

/// flags[i]: position i has claimed a block.
__global__ void __launch_bounds__(kStoreThreads)
    flagClaims(float *const *rows, const uint8_t *valid, int64_t count, HotRows hot,
               uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = (!valid || valid[i]) && rows[i] && *hot.lower(rows[i]) == claimOf(i);
}

/// Gives flagged rows their blocks, all zeros: by the order of positions, those that came back
/// first. A warp looks at 32 positions and clears a block.
__global__ void __launch_bounds__(kStoreThreads)
    takeBlocks(float *const *rows, int64_t count, HotRows hot, const uint8_t *flags,
               const uint32_t *ranks, LowerBlocks blocks) {
  const uint32_t used = blocks.counters->used, freed = blocks.counters->freed;
  for (int64_t first = threadInGrid() / kWarp * kWarp; first < count; first += threadsInGrid()) {
    const int64_t own = first + laneOf();
    uint32_t taking = __ballot_sync(kAllLanes, own < count && flags[own]);
    for (; taking; taking &= taking - 1) {
      const int64_t i = first + __ffs(static_cast<int>(taking)) - 1;
      const uint32_t rank = ranks[i];
      uint16_t *block =
          rank < freed ? blocks.freed[freed - 1 - rank] : blocks.block(used + rank - freed);
      for (int64_t at = laneOf(); at < blocks.bytes / 16; at += kWarp)
        storeWhole(block + 8 * at, uint4{0, 0, 0, 0});
      if (laneOf() == 0)
        *hot.lower(rows[i]) = reinterpret_cast<Word>(block);
    }
  }
}

/// After they are taken.
__global__ void countTaken(LowerCounters *counters) {
  const uint32_t again = min(counters->moving, counters->freed);
  counters->freed -= again;
  counters->used += counters->moving - again;
}

/// leaving[i] = the row of an id that is flagged as erased, else null.
__global__ void __launch_bounds__(kStoreThreads)
    listErased(KeyTable table, RowAddresses addresses, const int64_t *slotOf, const uint8_t *erased,
               int64_t count, float **leaving) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    leaving[i] = erased[i] ? addresses.row(table.row(slotOf[i])) : nullptr;
}

/// flags[i]: the row has a block and gives it back: in any case, or because it is not hot.
__global__ void __launch_bounds__(kStoreThreads)
    flagGiven(float *const *rows, int64_t count, HotRows hot, bool inAnyCase, uint8_t *flags) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    flags[i] = rows[i] && (inAnyCase || !hot.isHot(rows[i])) && *hot.lower(rows[i]) != 0;
}

__global__ void __launch_bounds__(kStoreThreads)
    giveBlocks(float *const *rows, int64_t count, HotRows hot, const uint8_t *flags,
               const uint32_t *ranks, LowerBlocks blocks) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    if (!flags[i])
      continue;
    Word *lower = hot.lower(rows[i]);
    blocks.freed[blocks.counters->freed + ranks[i]] = reinterpret_cast<uint16_t *>(*lower);
    *lower = 0;
  }
}

__global__ void countGiven(LowerCounters *counters) { counters->freed += counters->moving; }

/// Values of `dim` floats each, a thread per element.
__global__ void __launch_bounds__(kStoreThreads)
    gatherHalves(float *const *rows, int64_t count, int64_t dim, int64_t offset, float *to) {
  for (int64_t i = threadInGrid(); i < count * dim; i += threadsInGrid()) {
    float *row = rows[i / dim];
    const uint16_t *lower = kernels::lowerHalves(row, offset);
    const int64_t column = i % dim;
    to[i] = kernels::joined(kernels::bf16Values(row)[column], lower[column],
                            kernels::isHot(row, lower));
  }
}

__global__ void __launch_bounds__(kStoreThreads)
    scatterHalves(float *const *rows, int64_t count, int64_t dim, int64_t offset,
                  const float *from) {
  for (int64_t i = threadInGrid(); i < count * dim; i += threadsInGrid()) {
    float *row = rows[i / dim];
    uint16_t *lower = kernels::lowerHalves(row, offset);
    const bool isHot = kernels::isHot(row, lower);
    const int64_t column = i % dim;
    lower[column] = kernels::lowerHalf(from[i], isHot);
    kernels::bf16Values(row)[column] = kernels::upperHalf(from[i], isHot);
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LowerHalves::LowerHalves(const std::string &name, int64_t dim)
    : name(name + ".lower_halves"), blockBytes(storeLowerBytes(std::max<int64_t>(dim, 1))),
      chunkTable(name + ".lower_chunks"), freed(name + ".lower_freed") {
  const int64_t blocks = std::max<int64_t>(1, kLowerChunkBytes / blockBytes);
  chunkShift = std::bit_width(static_cast<uint64_t>(blocks)) - 1;
}

LowerHalves::~LowerHalves() {
  for (char *chunk : chunks)
    freeNamedAfterAll(chunk);
}

void LowerHalves::makeRoom(int64_t blocks, cudaStream_t stream) {
  if (blocks <= room())
    return;
  chunkTable.ensure(kMostLowerChunks, stream);
  while (room() < blocks) {
    if (static_cast<int64_t>(chunks.size()) == kMostLowerChunks)
      throw Error("'" + name + "' has no room for the lower halves of " + std::to_string(blocks) +
                      " hot rows: at most " + std::to_string(room()) + " fit",
                  "shard the table over more devices, or let fewer rows be hot");
    chunks.push_back(static_cast<char *>(allocateNamed(name, chunkBlocks() * blockBytes, stream)));
    GENREC_CUDA_CHECK(cudaMemcpyAsync(chunkTable.data() + chunks.size() - 1, &chunks.back(),
                                      sizeof(char *), cudaMemcpyHostToDevice, stream));
  }
  freed.ensureKept(room(), stream);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// After they were seen: rows that are hot now and have no block get one.
void EmbeddingStore::makeHot(const uint8_t *valid, int64_t count, float *const *rows,
                             cudaStream_t stream) {
  const HotRows hot = hotRowsOf(config);
  const int64_t roomOfBatch = capacityBucket(count);
  flags.ensure(roomOfBatch, stream);
  ranks.ensure(roomOfBatch, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), claimBlocks, rows, valid, count, hot);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), flagClaims, rows, valid, count, hot, flags.data());
  LowerCounters *numbers = &counters.data()->lower;
  flagRanks.run(flags.data(), count, ranks.data(), &numbers->moving, stream);
  makeRoomForHot(count, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), takeBlocks, rows, count, hot, flags.data(),
                     ranks.data(), lowerHalves.onDevice(numbers));
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), countTaken, numbers);
}

/// Waits where the host does not know that there are blocks enough, if it may, as for rows.
void EmbeddingStore::makeRoomForHot(int64_t count, cudaStream_t stream) {
  int64_t taken = count;
  const bool isFull = lowerBound + count > lowerHalves.room();
  if (isFull && mayWait())
    taken = readCounters(stream).lower.moving;
  lowerBound += taken;
  hotSinceRequest += taken;
  // A chunk ahead, so that the next batch need not wait.
  if (isFull)
    lowerHalves.makeRoom(
        lowerBound + std::max(options.step ? 2 * count : 0, lowerHalves.chunkBlocks()), stream);
}

/// Takes the blocks of `rows`, each once, null for none: of all of them, or of those that are not
/// hot.
void EmbeddingStore::giveBack(float *const *rows, int64_t count, bool ofAll, cudaStream_t stream) {
  const HotRows hot = hotRowsOf(config);
  const int64_t roomOfBatch = capacityBucket(count);
  flags.ensure(roomOfBatch, stream);
  ranks.ensure(roomOfBatch, stream);
  LowerCounters *numbers = &counters.data()->lower;
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), flagGiven, rows, count, hot, ofAll, flags.data());
  flagRanks.run(flags.data(), count, ranks.data(), &numbers->moving, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), giveBlocks, rows, count, hot, flags.data(),
                     ranks.data(), lowerHalves.onDevice(numbers));
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), countGiven, numbers);
}

/// Of the batch whose erased ids `flags` has: what their rows keep.
void EmbeddingStore::giveBackErased(int64_t count, cudaStream_t stream) {
  float **leaving = leavingRows.ensure(capacityBucket(count), stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), listErased, table, addresses, placeOf.data(),
                     flags.data(), count, leaving);
  giveBack(leaving, count, /*ofAll=*/true, stream);
}

void EmbeddingStore::settleHot(const StoreStream &on, float *const *rows, int64_t count) {
  if (count == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  if (lowerHalves.room() > 0)
    giveBack(rows, count, /*ofAll=*/false, stream);
  makeHot(nullptr, count, rows, stream);
}

int64_t EmbeddingStore::hotRows(const StoreStream &on) const {
  const LowerCounters now = readCounters(streamOf(on)).lower;
  return int64_t(now.used) - now.freed;
}

void EmbeddingStore::readHalves(const StoreStream &on, float *const *rows, int64_t count,
                                float *to) const {
  const int64_t dim = config.dim;
  if (count == 0 || dim == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  float *gathered = transfer.ensure(count * dim, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count * dim, 1), gatherHalves, rows, count, dim,
                     storeLowerOffset(dim), gathered);
  deviceMemory().copyOut(to, gathered, count * dim * static_cast<int64_t>(sizeof(float)), on);
}

void EmbeddingStore::writeHalves(const StoreStream &on, float *const *rows, int64_t count,
                                 const float *from) {
  const int64_t dim = config.dim;
  if (count == 0 || dim == 0)
    return;
  const cudaStream_t stream = streamOf(on);
  float *scattered = transfer.ensure(count * dim, stream);
  deviceMemory().copyIn(scattered, from, count * dim * static_cast<int64_t>(sizeof(float)), on);
  GENREC_CUDA_LAUNCH(stream, shapeOf(count * dim, 1), scatterHalves, rows, count, dim,
                     storeLowerOffset(dim), scattered);
  waitForStream(stream);
}

} // namespace genrec::rt::cuda
