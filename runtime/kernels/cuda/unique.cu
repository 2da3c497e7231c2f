//===- unique.cu - Distinct ids of a batch --------------------------------===//

#include "genrec_rt/kernels/cuda/unique.h"

#include "unique_numbers.h"

#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace genrec::rt::cuda {

namespace unique {
namespace {

/// The results of no ids.
void clear(const UniqueResult &result, int64_t *offsets, int64_t parts, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(result.total, 0, sizeof(uint32_t), stream));
  if (offsets)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(offsets, 0, static_cast<size_t>(parts + 1) * sizeof(int64_t), stream));
}

int64_t tilesOf(int64_t count) { return blocksFor(count, Marked::kItems); }
int64_t noteWords(int64_t count) { return tilesOf(count) * (Marked::kItems / kWarp); }

/// What there is to clear: an item for each two positions of so many words of notes.
__host__ __device__ constexpr int64_t clearedItems(int64_t words) { return words * kWarp / 2; }
static_assert(clearedItems(Marked::kItems / kWarp) >= Unique::kMostOwners);

/// Slots, four at a time; notes, which tiles have to their ends; and what owners count.
__global__ void __launch_bounds__(kThreads)
    clearSlots(Batch batch, int64_t words, LookBackTiles tiles, Owners owners) {
  awaitLaunchBefore(); // the next one may read its ids
  const int64_t pairs = batch.count / 2;
  const uint4 free = {kFree, kFree, kFree, kFree};
  for (int64_t i = threadInGrid(); i < clearedItems(words); i += threadsInGrid()) {
    if (i < words)
      batch.firsts[i] = 0;
    if (i < owners.count)
      owners.totals[i] = 0;
    if (i < pairs)
      storeWhole(batch.slots + 4 * i, free);
    else if (i == pairs && batch.count % 2)
      storeWhole(batch.slots + 4 * i, uint2{kFree, kFree});
  }
  if (owners.count)
    for (int64_t i = threadInGrid(); i < tiles.words(tiles.count, tiles.sums); i += threadsInGrid())
      tiles.states[i] = 0;
}

/// Counts the ids of the rounds that have a bit. Lanes with one owner add once.
__device__ void countForOwners(uint32_t rounds, const TileIds &tile, const Owners &owners,
                               uint32_t *distinct) {
#pragma unroll
  for (int round = 0; round < kEach; ++round) {
    const bool counts = rounds >> round & 1;
    const auto owner = static_cast<int>(
        counts ? ownerOf(tile.ids[Marked::place(round)], owners.count) : owners.count);
    const uint32_t equal = lanesWith(owner, static_cast<int>(owners.count) + 1);
    if (counts && isFirstOf(equal))
      atomicAdd(distinct + owner, static_cast<uint32_t>(__popc(equal)));
  }
}

/// Places ids. A tile finds its own repetitions first, and only what is left goes to the table.
__global__ void __launch_bounds__(kThreads, kBlocks)
    placeIds(Batch batch, int64_t tiles, Owners owners) {
  __shared__ TileIds tileIds;
  __shared__ uint32_t distinct[Unique::kMostOwners];
  for (uint32_t owner = threadIdx.x; owner < owners.count; owner += kThreads)
    distinct[owner] = 0;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first = tile * Marked::kItems;
    int64_t ids[kEach];
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int64_t i = first + Marked::place(round);
      ids[round] = i < batch.count ? batch.ids[i] : 0;
    }
    // While ids are under way.
    Placing placing(batch, first);
    __syncthreads(); // nobody reads the last tile's
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      tileIds.ids[Marked::place(round)] = ids[round];
    for (uint32_t at = threadIdx.x; at < TileIds::kParts / 4; at += kThreads)
      storeWhole(tileIds.items + 4 * at, uint4{kFree, kFree, kFree, kFree});
    __syncthreads(); // ids are there, and no items
    placing.findRepetitions(batch, first, tileIds);
    const auto begin = static_cast<uint32_t>(first);
    awaitLaunchBefore(); // slots are clear
    placing.take(batch, begin);
    placing.lookOn(batch, begin, tileIds.ids);
    const uint32_t takers = placing.takers(), lowers = placing.lower(batch);
    if (owners.count) // while slots answer
      countForOwners(takers, tileIds, owners, distinct);
    placing.turnOver(batch, lowers);
    Notes notes;
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const uint32_t position = begin + static_cast<uint32_t>(Marked::place(round));
      const bool goes = placing.isGoing(round);
      notes.note(round, goes && placing.there[round] > placing.own[round],
                 !goes && placing.slot[round] != kFree);
      if (position < batch.count)
        batch.slotOf[position] = placing.slot[round];
    }
    notes.write(batch, first);
  }
  __syncthreads(); // distinct ids are counted
  for (uint32_t owner = threadIdx.x; owner < owners.count; owner += kThreads)
    atomicAdd(owners.totals + owner, distinct[owner]);
}

constexpr int kRankThreads = deviceSize(512, 64); // 64 take several rounds of what tests have

/// Words of bits are cut into parts, one a block: into few where a block adds up what is before its
/// own, so that blocks of the next launch have room beside them.
constexpr int64_t kMostParts = deviceSize(64, 4), kMostCountedParts = deviceSize(512, 4);
/// 4 Mi ids: a block adds up 512 KB, some 10 us. Tests have fewer and more.
constexpr int kMostWordsBefore = deviceSize(1 << 17, 640);
static_assert(kMostCountedParts <= kRankThreads);

/// The bits of `words` that begin at a multiple of four, which the block adds up.
__device__ uint32_t sumOfBits(const uint32_t *words, int count) {
  uint32_t own = 0, sum;
  constexpr int kDepth = 8; // loads of a thread under way together: those of 1 Mi ids in two rounds
  for (int base = static_cast<int>(threadIdx.x); base < count / 4; base += kDepth * kRankThreads) {
    uint4 four[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      four[d] = base + d * kRankThreads < count / 4
                    ? loadWhole<uint4>(words + 4 * (base + d * kRankThreads))
                    : uint4{0, 0, 0, 0};
#pragma unroll
    for (int d = 0; d < kDepth; ++d)
      own += static_cast<uint32_t>(__popc(four[d].x) + __popc(four[d].y) + __popc(four[d].z) +
                                   __popc(four[d].w));
  }
  exclusiveBlockSum<kRankThreads>(own, sum);
  return sum;
}

/// How many first ids each part has, where there are too many to add up all before a part.
__global__ void __launch_bounds__(kRankThreads, 2)
    countFirsts(Batch batch, int words, int part, uint32_t *ofParts) {
  awaitLaunchBefore(); // who is first is known
  const int begin = static_cast<int>(blockIdx.x) * part;
  const uint32_t sum = sumOfBits(batch.firsts + begin, min(part, words - begin));
  if (threadIdx.x == 0)
    ofParts[blockIdx.x] = sum;
}

/// How many first ids there are before each word of notes. A block adds up all before its part for
/// itself, where parts were not counted: an eighth of a byte per id and block, which takes less
/// than to wait for other blocks.
__global__ void __launch_bounds__(kRankThreads, 2)
    rankFirsts(Batch batch, int words, int part, const uint32_t *ofParts, UniqueResult result) {
  awaitLaunchBefore(); // who is first is known, or how many
  const int begin = static_cast<int>(blockIdx.x) * part, end = min(begin + part, words);
  const auto wordAt = [&](int at) { return at < end ? batch.firsts[at] : 0u; };
  uint32_t word = wordAt(begin + static_cast<int>(threadIdx.x)), before; // beside those before
  if (ofParts)
    exclusiveBlockSum<kRankThreads>(threadIdx.x < blockIdx.x ? ofParts[threadIdx.x] : 0u, before);
  else
    before = sumOfBits(batch.firsts, begin);
  const uint32_t firstNumber = before;
  for (int base = begin; base < end; base += kRankThreads) {
    const int at = base + static_cast<int>(threadIdx.x);
    uint32_t sum;
    const uint32_t here =
        before + exclusiveBlockSum<kRankThreads>(static_cast<uint32_t>(__popc(word)), sum);
    if (at < end)
      batch.ranks[at] = {word, here};
    before += sum;
    word = wordAt(at + kRankThreads);
  }
  if (end == words && threadIdx.x == 0)
    *result.total = before;
  if (result.counts)
    for (uint32_t number = firstNumber + threadIdx.x; number < before; number += kRankThreads)
      result.counts[number] = 0;
}

/// What the items of a tile tell its repetitions, and these it.
struct TileNumbers {
  int64_t ids[Marked::kItems]; ///< a thread's own
  uint32_t numbers[Marked::kItems];
  uint32_t repetitions[Marked::kItems];
};

/// Keeps the ids of a thread until those that are first have numbers.
__device__ void keepIds(const Batch &batch, int64_t first, int64_t *kept) {
  int64_t id[kEach];
#pragma unroll
  for (int round = 0; round < kEach; ++round) {
    const int64_t i = first + Marked::place(round);
    id[round] = i < batch.count ? batch.ids[i] : 0;
  }
  __syncwarp(); // or the compiler awaits each load before the next
#pragma unroll
  for (int round = 0; round < kEach; ++round)
    kept[Marked::place(round)] = id[round];
}

/// Where the distinct ids of segments begin.
__device__ void writeOffsets(const Batch &batch, const UniqueResult &result) {
  for (int64_t s = threadInGrid(); s <= batch.segments; s += threadsInGrid()) {
    const int64_t at = batch.offsets[s];
    result.offsets[s] = at < batch.count
                            ? rankIn(batch.ranks[at / kWarp], static_cast<uint32_t>(at))
                            : *result.total;
  }
}

/// Writes what is asked for of ids whose first ones are ranked. The number of an id is the rank of
/// its first position, which its slot names. What other launches than that which ranks have left
/// is read while it is at work.
__global__ void __launch_bounds__(kThreads, kBlocks)
    writeNumbers(Batch batch, int64_t tiles, UniqueResult result) {
  __shared__ TileNumbers ofTile;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first = tile * Marked::kItems;
    Placed placed(batch, first);
    if (result.ids)
      keepIds(batch, first, ofTile.ids);
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      ofTile.repetitions[Marked::place(round)] = 0;
    placed.readNotes();
    uint32_t from[kEach], number[kEach]; // the position whose rank is the number
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      from[round] = static_cast<uint32_t>(first + Marked::place(round));
      if (placed.isLater(round))
        from[round] = batch.slots[placed.slot[round]] & batch.positions;
    }
    awaitLaunchBefore(); // first ids are ranked
    uint2 rank[kEach];   // of all, so that no load waits for a branch
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      rank[round] = batch.ranks[from[round] / kWarp];
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      number[round] = rankIn(rank[round], from[round]);
#pragma unroll
    for (int round = 0; round < kEach; ++round)
      if (result.ids && placed.isFirst(round))
        result.ids[number[round]] = ofTile.ids[Marked::place(round)];
    if (!result.inverse && !result.counts)
      continue;
    __syncthreads(); // no repetitions are counted, and nobody reads the last tile's numbers
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (placed.isRepeated(round))
        atomicAdd(ofTile.repetitions + placed.slot[round], 1u);
      ofTile.numbers[Marked::place(round)] = number[round];
    }
    __syncthreads(); // numbers and repetitions are there
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      const int item = Marked::place(round);
      const bool isRepeated = placed.isRepeated(round), isNone = placed.slot[round] == kFree;
      if (result.counts && !isRepeated && !isNone)
        atomicAdd(result.counts + number[round], 1 + ofTile.repetitions[item]);
      const uint32_t numbered = ofTile.numbers[isRepeated ? placed.slot[round] : item];
      if (result.inverse && first + item < batch.count)
        result.inverse[first + item] = isNone ? static_cast<uint32_t>(batch.count) : numbered;
    }
  }
  if (result.offsets)
    writeOffsets(batch, result);
}

/// What a tile needs one after the other.
union OwnedTile {
  int64_t ids[Marked::kItems]; ///< a thread's own
  uint32_t numbers[Marked::kItems];
};

/// Writes the numbers of a tile's ids. `there` has those of its own first ones, which are in slots.
__device__ void writeInverse(const Batch &batch, int64_t first, const Placed &placed,
                             uint32_t (&there)[kEach], uint32_t *numbers, uint32_t *inverse) {
  __syncthreads(); // the tile's own numbers are in slots: who waits now, waits for other blocks
#pragma unroll
  for (int round = 0; round < kEach; ++round)
    if (placed.isLater(round))
      there[round] = loadRelaxed(batch.slots + placed.slot[round]);
#pragma unroll
  for (int round = 0; round < kEach; ++round) {
    if (placed.slot[round] == kFree || placed.isRepeated(round))
      continue;
    while (!(there[round] & kNumbered))
      there[round] = loadRelaxed(batch.slots + placed.slot[round]);
    numbers[Marked::place(round)] = there[round] & ~kNumbered;
  }
  __syncthreads(); // numbers are there
#pragma unroll
  for (int round = 0; round < kEach; ++round) {
    const int item = Marked::place(round);
    if (first + item < batch.count)
      inverse[first + item] = placed.slot[round] == kFree
                                  ? static_cast<uint32_t>(batch.count)
                                  : numbers[placed.isRepeated(round) ? placed.slot[round] : item];
  }
}

/// Numbers distinct ids owner by owner. An id is first in the tile that has its number or in an
/// earlier one, which is under way (look_back.h): its number will be in its slot.
__global__ void __launch_bounds__(kThreads, kBlocks)
    numberByOwner(Batch batch, LookBackTiles tiles, ByOwner numbering, UniqueResult result) {
  __shared__ ByOwner::Shared shared;
  __shared__ OwnedTile ofTile;
  int64_t tile = tiles.take(); // there are no more blocks than tiles
  keepIds(batch, tile * Marked::kItems, ofTile.ids);
  numbering.findOwners(ofTile.ids, shared);
  awaitLaunchBefore(); // ids are placed
  numbering.begin(shared);
  while (tile < tiles.count) {
    const int64_t first = tile * Marked::kItems;
    Placed placed(batch, first);
    uint32_t there[kEach];
    numbering.number(tiles, tile, placed, result, shared, there);
#pragma unroll
    for (int round = 0; round < kEach; ++round) {
      if (!placed.isFirst(round))
        continue;
      if (result.ids)
        result.ids[there[round]] = ofTile.ids[Marked::place(round)];
      there[round] |= kNumbered;
      storeRelaxed(batch.slots + placed.slot[round], there[round]);
    }
    if (result.inverse)
      writeInverse(batch, first, placed, there, ofTile.numbers, result.inverse);
    tile = tiles.takeNext();
    if (tile >= tiles.count)
      break;
    keepIds(batch, tile * Marked::kItems, ofTile.ids);
    numbering.findOwners(ofTile.ids, shared);
  }
}

} // namespace
} // namespace unique

void Unique::reserve(int64_t count, cudaStream_t stream) {
  const int64_t words = unique::noteWords(count);
  slots.ensure(2 * count, stream);
  slotOf.ensure(count, stream);
  firsts.ensure(words, stream);
  repeats.ensure(words, stream);
  ranks.ensure(words, stream);
  ofParts.ensure(unique::kMostCountedParts, stream);
}

unique::Batch Unique::place(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                            int64_t segments, bool skipsZero, const unique::Owners &owners,
                            const LookBackTiles &ofOwners, cudaStream_t stream) {
  using namespace unique;
  const int64_t words = noteWords(count);
  reserve(count, stream);
  const Batch batch{.ids = ids,
                    .count = count,
                    .offsets = segmentOffsets,
                    .segments = segments,
                    .positions = positionBits(count),
                    .slots = slots.data(),
                    .slotOf = slotOf.data(),
                    .firsts = firsts.data(),
                    .repeats = repeats.data(),
                    .ranks = ranks.data(),
                    .skipsZero = skipsZero};
  // A thread clears four items: then blocks that place ids come to a device beside all that clear.
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(blocksFor(clearedItems(words), 4), kThreads),
                     clearSlots, batch, words, ofOwners, owners);
  GENREC_CUDA_LAUNCH(stream, early(shapeOfThreads(tilesOf(count) * kThreads, kThreads)), placeIds,
                     batch, tilesOf(count), owners);
  return batch;
}

void Unique::number(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                    int64_t segments, bool skipsZero, const UniqueResult &result,
                    cudaStream_t stream) {
  using namespace unique;
  if (count == 0)
    return clear(result, result.offsets, segments, stream);
  const Batch batch = place(ids, count, segmentOffsets, segments, skipsZero, {}, {}, stream);
  const auto words = static_cast<int>(noteWords(count)); // below 2^26
  const bool isCounted = words > kMostWordsBefore;
  const int64_t most = isCounted ? kMostCountedParts : kMostParts;
  const auto part = static_cast<int>(blocksFor(blocksFor(words, most), kWarp) * kWarp);
  const LaunchShape parts{dim3(static_cast<unsigned>(blocksFor(words, part))), dim3(kRankThreads)};
  uint32_t *counts = isCounted ? ofParts.data() : nullptr;
  if (isCounted)
    GENREC_CUDA_LAUNCH(stream, early(parts), countFirsts, batch, words, part, counts);
  GENREC_CUDA_LAUNCH(stream, early(parts), rankFirsts, batch, words, part, counts, result);
  GENREC_CUDA_LAUNCH(stream, early(shapeOfThreads(tilesOf(count) * kThreads, kThreads)),
                     writeNumbers, batch, tilesOf(count), result);
}

void Unique::run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
                 const UniqueResult &result, cudaStream_t stream) {
  number(ids, count, segmentOffsets, segments, false, result, stream);
}

void Unique::runWithoutZero(const int64_t *ids, int64_t count, const UniqueResult &result,
                            cudaStream_t stream) {
  UniqueResult inner = result;
  inner.offsets = nullptr;
  number(ids, count, nullptr, 1, true, inner, stream);
}

void Unique::runByOwner(const int64_t *ids, int64_t count, uint32_t ownerCount,
                        const UniqueResult &result, int64_t *ownerOffsets, cudaStream_t stream) {
  using namespace unique;
  if (ownerCount < 1 || ownerCount > kMostOwners)
    throw std::invalid_argument("ids of " + std::to_string(ownerCount) +
                                " owners: there are from 1 to " + std::to_string(kMostOwners));
  if (count == 0)
    return clear(result, ownerOffsets, ownerCount, stream);
  const int64_t tileCount = tilesOf(count);
  const Owners owners{ownerCount, ofOwners.ensure(ownerCount, stream)};
  const LookBackTiles tiles{states.ensure(LookBackTiles::words(tileCount, ownerCount), stream),
                            tileCount, ownerCount};
  const Batch batch = place(ids, count, nullptr, 1, false, owners, tiles, stream);
  GENREC_CUDA_LAUNCH(stream, early(shapeOfThreads(tileCount * kThreads, kThreads)), numberByOwner,
                     batch, tiles, ByOwner(owners, ownerOffsets), result);
}

} // namespace genrec::rt::cuda
