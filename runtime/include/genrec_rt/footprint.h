//===- footprint.h - How much memory a run takes -----------------*- C++ -*-===//
//
// Every size that the runtime chooses, as a function of what is known before a run:
// the runtime allocates by these functions, `genrec-compile --explain` predicts by
// them. They need no more than the standard library. Bytes everywhere, unless a name
// says otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_FOOTPRINT_H
#define GENREC_RT_FOOTPRINT_H

#include "genrec_rt/scratch_sizes.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <vector>

namespace genrec::rt {

//===-- memory in buckets of size ------------------------------------------===//

/// Rounds up to the next of {1, 1 + 1/n, 1 + 2/n, …} * 2^k, n the buckets of a doubling, at
/// least 16. 0 stays 0.
inline int64_t bucketOf(int64_t count, int64_t perDoubling) {
  constexpr int64_t kLeast = 16;
  if (count <= 0)
    return 0;
  if (count <= kLeast)
    return kLeast;
  if (count > kLargestSize)
    return count; // too many, whatever they are rounded to
  int64_t unit = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count))) / perDoubling;
  return (count + unit - 1) / unit * unit;
}

/// What is allocated for `count` elements or bytes: at most an eighth is spare, and a few
/// batches reach the largest bucket.
inline int64_t capacityBucket(int64_t count) { return bucketOf(count, 8); }

/// From this many rows on, the time of a product of rows grows with their number.
inline constexpr int64_t kManyRows = int64_t(1) << 16;

/// The capacity of a domain with `count` rows. A device computes products over all rows of a
/// capacity, spare ones included, so that of many rows at most a 32nd is spare. As capacities
/// never fall, each bucket is entered once in a run: a batch of a size that was not seen before
/// costs a new layout of the arena and a captured graph, which then serve all smaller ones.
inline int64_t rowCapacity(int64_t count) { return bucketOf(count, count < kManyRows ? 8 : 32); }

/// What a GrowBuffer takes that has held `count` elements at most.
inline int64_t growBufferBytes(int64_t count, int64_t elementBytes) {
  return (Size(capacityBucket(count)) * elementBytes).saturated();
}

/// What the value of a parameter of `size` floats takes in the block of all values, in floats.
inline int64_t parameterFloats(int64_t size) {
  constexpr int64_t kAligned = 16; // a cache line
  return (size + kAligned - 1) / kAligned * kAligned;
}

//===-- the arena of planned buffers ---------------------------------------===//

/// A buffer that lives from op `first` to op `last`.
struct ArenaBuffer {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets; ///< per buffer, a multiple of 64
  int64_t bytes = 0;            ///< of the whole arena
};

namespace detail {

/// A stretch of the arena that is taken while a certain buffer lives.
struct ArenaStretch {
  int64_t begin, end;
};

/// The lowest offset at which `bytes` fit between the stretches.
inline int64_t lowestFit(std::vector<ArenaStretch> &taken, int64_t bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const ArenaStretch &a, const ArenaStretch &b) { return a.begin < b.begin; });
  int64_t at = 0;
  for (const ArenaStretch &stretch : taken) {
    if (stretch.begin - at >= bytes)
      return at;
    at = std::max(at, stretch.end);
  }
  return at;
}

} // namespace detail

/// Packs buffers: the largest first, each at the lowest place that is free for
/// the whole of its life.
inline ArenaLayout packArena(const std::vector<ArenaBuffer> &buffers) {
  constexpr int64_t kAlignment = 64;
  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  auto sizeOf = [&](size_t i) {
    return (buffers[i].bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return sizeOf(a) != sizeOf(b) ? sizeOf(a) > sizeOf(b) : a < b;
  });
  std::vector<detail::ArenaStretch> taken;
  for (size_t placed = 0; placed < order.size(); ++placed) {
    const ArenaBuffer &buffer = buffers[order[placed]];
    int64_t size = sizeOf(order[placed]);
    if (size == 0)
      continue;
    taken.clear();
    for (size_t other = 0; other < placed; ++other) {
      const ArenaBuffer &earlier = buffers[order[other]];
      int64_t offset = layout.offsets[order[other]];
      if (earlier.bytes > 0 && earlier.first <= buffer.last && buffer.first <= earlier.last)
        taken.push_back({offset, offset + sizeOf(order[other])});
    }
    int64_t offset = detail::lowestFit(taken, size);
    layout.offsets[order[placed]] = offset;
    layout.bytes = std::max(layout.bytes, (Size(offset) + size).saturated());
  }
  return layout;
}

/// Batches in flight, each with columns, descriptors and the arena of its copy stage: one is read
/// beside the step that runs, and beside the next one where that is dispatched meanwhile.
constexpr int batchesInFlight(bool dispatchesAhead) { return dispatchesAhead ? 3 : 2; }

//===-- one batch ----------------------------------------------------------===//

/// Rows of a column that are zero behind the last one, so that kernels may read whole
/// vectors.
inline int64_t columnRows(int64_t rows) { return capacityBucket(std::max<int64_t>(rows, 1)); }

inline int64_t columnBytes(int64_t rows, int64_t elementBytes, bool nullable) {
  int64_t room = columnRows(rows);
  return growBufferBytes(room * elementBytes, 1) + (nullable ? growBufferBytes(room, 1) : 0);
}

/// Positions and identities of the root rows.
inline int64_t rootRowBytes(int64_t rows) {
  return 2 * growBufferBytes(std::max<int64_t>(rows, 1), 8);
}

/// Offsets, parents and identities of a list's rows.
inline int64_t listRowBytes(int64_t parents, int64_t rows) {
  return growBufferBytes(parents + 1, 8) + 2 * growBufferBytes(std::max<int64_t>(rows, 1), 8);
}

//===-- tables -------------------------------------------------------------===//

/// Key slots in a bucket, compared at once; buckets of a table without rows.
inline constexpr int64_t kStoreBucketSlots = 4, kStoreFirstBuckets = 64;
/// Bytes of a chunk of rows, and the least rows in one.
inline constexpr int64_t kStoreChunkBytes = int64_t(4) << 20, kStoreLeastChunkRows = 64;
/// Ids by row number come in chunks of this many: 2 MB.
inline constexpr int64_t kStoreIdChunk = int64_t(1) << 18;
/// Of a slot: id, address of the row.
inline constexpr int64_t kStoreSlotBytes = 16;

/// Floats that the `dim` values of a row take: of bfloat16, filled up to whole ones.
inline int64_t storeValueFloats(int64_t dim, bool isBf16) { return isBf16 ? (dim + 1) / 2 : dim; }

/// Floats before the address of a row's lower halves, of a table with hot rows (row_values.h).
inline int64_t storeLowerOffset(int64_t dim) { return (storeValueFloats(dim, true) + 1) / 2 * 2; }

/// Floats before a row's states: those of its value, and of the address of its lower halves.
inline int64_t storeStateOffset(int64_t dim, bool isBf16, bool keepsLower) {
  return keepsLower ? storeLowerOffset(dim) + 2 : storeValueFloats(dim, isBf16);
}

/// Bytes that the lower halves of a hot row take beside the row.
inline int64_t storeLowerBytes(int64_t dim) { return (dim * 2 + 63) / 64 * 64; }

/// Floats before a row's sighting (see RowRules in store.h), behind those before its states and of
/// its optimizer states.
inline int64_t storeSightingOffset(int64_t stateOffset, int64_t stateFloats) {
  return (stateOffset + stateFloats + 1) / 2 * 2;
}

/// Floats from one row to the next; with rules about rows, a sighting of 16 bytes is one's end.
inline int64_t storeRowFloats(int64_t stateOffset, int64_t stateFloats, bool hasRules = false) {
  int64_t floats =
      hasRules ? storeSightingOffset(stateOffset, stateFloats) + 4 : stateOffset + stateFloats;
  return (floats + 15) / 16 * 16;
}

/// Rows in use; what is allocated ahead is not touched.
inline int64_t storeValueBytes(int64_t rows, int64_t stateOffset, int64_t stateFloats,
                               bool hasRules = false) {
  return rows * storeRowFloats(stateOffset, stateFloats, hasRules) * 4;
}

/// Slots double where more than three in four are taken.
inline int64_t storeKeyBytes(int64_t rows) {
  int64_t slots = kStoreFirstBuckets * kStoreBucketSlots;
  while (rows * 4 > slots * 3)
    slots *= 2;
  return slots * kStoreSlotBytes + rows * 8;
}

/// What choosing the rows that leave by rule takes, of a table that had this many at most: the
/// numbers of those that leave, and a rank for each where the table is bounded.
inline int64_t storeEvictionBytes(int64_t rows, bool isBounded, bool isTimed) {
  return rows * (isBounded || isTimed ? 8 : 0) + rows * (isBounded ? 32 : 0);
}

//===-- reading ------------------------------------------------------------===//

/// A row of the decoded data while an epoch runs: the order of the rows (chunk, row).
inline constexpr int64_t kOrderBytesPerRow = 16;

//===-- the process ----------------------------------------------------------===//

/// What a run touches after its start of code (6 MB, most of it Arrow's) and of stacks.
/// Measured by benchmarks/hstu_resources, within 1 MB the same for models of 30 and of
/// 180 MB.
inline constexpr int64_t kCodeBytes = 7'000'000;

} // namespace genrec::rt

#endif // GENREC_RT_FOOTPRINT_H
