//===- pools.h - Pooling long lists in pieces --------------------*- C++ -*-===//
//
// A row kernel that pools the rows of lists, its leaves, has units: a list that is one piece
// (pool_pieces.h), or a piece of a longer one. What is pooled of a piece goes to a part of memory;
// behind the kernel the parts of a list are pooled in their order. So no thread goes through a long
// list, and results have the bits of one that does.
//
// Units come after one another: the lists, then slots, two for each kPoolPiece leaves. Of the
// pieces that begin among these leaves, one at most is the first of a list that has several, as the
// list ends behind them, and one at most is another. So each has a slot that follows from where it
// begins, and nothing is counted or ordered.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_POOLS_H
#define GENREC_RT_KERNELS_CUDA_POOLS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/pool_pieces.h"

#include <stdint.h>

#include <type_traits>

namespace genrec::rt::kernels {

//===----------------------------------------------------------------------===//
// What emission and launch agree on
//===----------------------------------------------------------------------===//

enum class PoolOf : int32_t { sum, mean, max };

/// A result whose parts are pooled.
struct PoolResult {
  int32_t pointer; ///< number of its pointer among those that the kernel takes behind the step
  int32_t width;   ///< elements of a row
  int32_t word;    ///< where it is within a part
  PoolOf of;
  bool isInteger; ///< int64_t, else float
};

/// How a kernel splits lists: emitted beside the kernel `name` as `name_pools`.
struct PoolShape {
  static constexpr int kMost = 16;
  int32_t domain = -1; ///< index of the leaves' domain; -1: each column has its own
  int32_t depth;       ///< domains from the lists' down to it
  int32_t words;       ///< of a part, a multiple of 4
  int32_t count;
  PoolResult results[kMost];
};

/// Slots for the pieces of `leaves` rows.
GENREC_HOST_DEVICE int64_t poolSlots(int64_t leaves) {
  return leaves > kPoolPiece ? 2 * (leaves / kPoolPiece + 1) : 0;
}
/// The slot of the piece that begins at leaf `begin`.
GENREC_HOST_DEVICE int64_t poolSlot(int64_t begin, bool isFirst) {
  return 2 * (begin / kPoolPiece) + (isFirst ? 1 : 0);
}

//===----------------------------------------------------------------------===//
// Units, on the device
//===----------------------------------------------------------------------===//

/// Leaves [begin, end) of the list of row `row`, whose leaves are [first, last); of a slot that no
/// piece has, row is -1.
struct PoolUnit {
  int64_t row, begin, end, first, last;
  int64_t slot; ///< of a piece; -1: the unit is a whole list
};

/// The first leaf below row `row`, `depth` domains above.
__device__ inline int64_t firstLeaf(const genrec_domain *leaves, int depth, int64_t row) {
  for (; depth > 0; --depth) {
    const genrec_domain *below = leaves;
    for (int above = 1; above < depth; ++above)
      below = below->parent_domain;
    row = below->offsets[row];
  }
  return row;
}
/// The row that a leaf is below.
__device__ inline int64_t rowOfLeaf(const genrec_domain *leaves, int depth, int64_t leaf) {
  for (; depth > 0; --depth, leaves = leaves->parent_domain)
    leaf = leaves->parent[leaf];
  return leaf;
}

/// Units of `rows` lists. `parts` is null where no list has several pieces.
__device__ inline int64_t poolUnits(int64_t rows, const genrec_domain *leaves, const float *parts) {
  return rows + (parts ? poolSlots(leaves->count) : 0);
}

namespace detail {

__device__ inline PoolUnit pieceOfSlot(int64_t slot, const genrec_domain *leaves, int depth) {
  PoolUnit unit{-1, 0, 0, 0, 0, slot};
  // A list that begins among the slot's leaves and has several pieces has the leaf behind them,
  // too.
  const bool isFirst = slot % 2 == 1;
  const int64_t begin = slot / 2 * kPoolPiece, known = isFirst ? begin + kPoolPiece : begin;
  if (known >= leaves->count)
    return unit;
  const int64_t row = rowOfLeaf(leaves, depth, known);
  unit.first = firstLeaf(leaves, depth, row);
  unit.last = firstLeaf(leaves, depth, row + 1);
  const int64_t pieces = (begin - unit.first + kPoolPiece - 1) / kPoolPiece;
  unit.begin = isFirst ? unit.first : unit.first + pieces * kPoolPiece;
  unit.end = unit.last - unit.begin < kPoolPiece ? unit.last : unit.begin + kPoolPiece;
  const bool isThere =
      isFirst ? unit.first >= begin && unit.first < known : unit.begin > unit.first;
  if (isThere && unit.begin < unit.last && unit.last - unit.first > kPoolPiece)
    unit.row = row;
  return unit;
}

} // namespace detail

template <int Depth>
__device__ inline PoolUnit poolUnit(int64_t unit, int64_t rows, const genrec_domain *leaves,
                                    const float *parts) {
  if (unit >= rows)
    return detail::pieceOfSlot(unit - rows, leaves, Depth);
  const int64_t begin = firstLeaf(leaves, Depth, unit), end = firstLeaf(leaves, Depth, unit + 1);
  const bool isSplit = parts && end - begin > kPoolPiece;
  return {isSplit ? -1 : unit, begin, end, begin, end, -1};
}

/// What the greatest of a piece begins with: 0 where the list does, whose first row is taken then.
template <class T> __device__ inline T poolStart(const PoolUnit &unit) {
  if (unit.begin == unit.first)
    return 0;
  if constexpr (std::is_same_v<T, float>)
    return -__builtin_inff();
  else
    return INT64_MIN;
}

__device__ inline bool hasFirstRow(const PoolUnit &unit) { return unit.begin == unit.first; }
__device__ inline bool hasLastRow(const PoolUnit &unit) { return unit.end == unit.last; }

/// By what a unit divides its sum for a mean: a piece leaves the sum.
__device__ inline int64_t pooledLength(const PoolUnit &unit) {
  return unit.slot < 0 ? unit.end - unit.begin : 1;
}

/// Where the `Width` elements of a unit go: a row of `result`, or word `Word` of a part of `Words`.
template <int64_t Width, int64_t Words, int64_t Word, class T>
__device__ inline T *pooledPlace(T *result, float *parts, const PoolUnit &unit) {
  return unit.slot < 0 ? result + unit.row * Width
                       : reinterpret_cast<T *>(parts + unit.slot * Words + Word);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The lists of a domain, the parts of those that have several, and results by number in a shape.
struct PooledLists {
  const genrec_domain *domain, *leaves;
  const float *parts;
  void *results[PoolShape::kMost];

  /// `pointers` are those that the kernel took behind the step.
  PooledLists(const genrec_domain *domain, const genrec_domain *leaves, const PoolShape &shape,
              void *const *pointers, const float *parts)
      : domain(domain), leaves(leaves), parts(parts) {
    for (int i = 0; i < shape.count; ++i)
      results[i] = pointers[shape.results[i].pointer];
  }
  PooledLists() = default;
};
/// Columns that poolParts pools in one launch.
inline constexpr int kPooledColumns = 64;

/// Pools the parts of the `count` domains' lists that have several, and writes their rows of the
/// results, all as `shape` says.
void poolParts(cudaStream_t stream, const PoolShape &shape, const PooledLists *lists, int count);

inline namespace GENREC_RT_ISA {

/// Leaves that the longest list of `domain` can have.
inline int64_t longestList(const genrec_domain *domain, const genrec_domain *leaves) {
  int64_t longest = 1;
  for (const genrec_domain *at = leaves; at != domain; at = at->parent_domain) {
    longest = at->max_length > 0 && longest > leaves->capacity / at->max_length
                  ? leaves->capacity
                  : longest * at->max_length;
  }
  return longest < leaves->capacity ? longest : leaves->capacity;
}

/// Slots that lists of `domain` can have pieces in; 0: none has several.
inline int64_t slotsOf(const genrec_domain *domain, const genrec_domain *leaves) {
  return longestList(domain, leaves) > kPoolPiece ? poolSlots(leaves->capacity) : 0;
}
/// Floats of as many parts. Choices leave none, but split lists as well.
inline int64_t partFloats(const PoolShape &pools, int64_t slots) {
  return slots * (pools.words > 0 ? pools.words : 1);
}

/// Runs `kernel`, which splits lists of `domain` as `pools` says, with memory for the parts of
/// `slots`; it gets one more pointer behind `pointers`, to these.
template <class... Parameters, class... Pointers>
void queuePools(cudaStream_t stream, const genrec_step *step, const genrec_domain *domain,
                const genrec_domain *leaves, const RowMapping &mapping, const PoolShape &pools,
                void (*kernel)(const genrec_step *, Parameters...), int64_t slots, float *parts,
                Pointers *...pointers) {
  if (domain->capacity == 0)
    return;
  GENREC_CUDA_LAUNCH(stream, detail::shapeOf(mapping, domain->capacity + slots, cuda::kMostBlocks),
                     kernel, step, pointers..., parts);
  void *const all[] = {const_cast<void *>(static_cast<const volatile void *>(pointers))...};
  const PooledLists lists(domain, leaves, pools, all, parts);
  if (slots > 0)
    poolParts(stream, pools, &lists, 1);
}

/// As launch, for such a kernel.
template <class... Parameters, class... Pointers>
void launchPools(genrec_step *step, const genrec_domain *domain, const RowMapping &mapping,
                 const PoolShape &pools, void (*kernel)(const genrec_step *, Parameters...),
                 Pointers *...pointers) {
  const genrec_domain *leaves = &step->domains[pools.domain];
  const int64_t slots = slotsOf(domain, leaves);
  auto *parts =
      slots ? static_cast<float *>(scratchOf(step, partFloats(pools, slots) * 4)) : nullptr;
  queuePools(streamOf(step), step->device, domain, leaves, mapping, pools, kernel, slots, parts,
             pointers...);
}

/// What a launch of columns whose bodies split lists takes, by column.
template <int Count> struct PoolColumns {
  int64_t rows[Count];     ///< lists and slots that there can be; none without lists
  int64_t floats[Count];   ///< of parts
  int64_t totalFloats = 0; ///< of all columns

  PoolColumns(const genrec_step *step, const ColumnShape (&columns)[Count],
              const PoolShape &pools) {
    for (int i = 0; i < Count; ++i) {
      const genrec_domain *domain = &step->domains[columns[i].domain];
      const int64_t slots = slotsOf(domain, &step->domains[columns[i].leaves]);
      rows[i] = domain->capacity > 0 ? domain->capacity + slots : 0;
      floats[i] = domain->capacity > 0 ? (partFloats(pools, slots) + 3) / 4 * 4 : 0;
      totalFloats += floats[i];
    }
  }
};

/// Runs `kernel` for `columns`, each of which splits the lists of its domain as `pools` says, with
/// `memory` for the parts of all.
template <int Count, int Room, int Pointers>
void queuePoolColumns(genrec_step *step, const ColumnShape (&columns)[Count],
                      void (*kernel)(const genrec_step *, Columns<Room, Pointers>),
                      void *const *pointers, const PoolShape &pools, int64_t sharedBytes,
                      const PoolColumns<Count> &taken, float *memory) {
  void *parts[Count];
  for (int i = 0; i < Count; memory += taken.floats[i++])
    parts[i] = taken.floats[i] ? memory : nullptr;
  detail::launchColumns(step, columns, kernel, pointers, sharedBytes, taken.rows, parts);
  PooledLists pooled[kPooledColumns];
  int added = 0;
  for (int i = 0; i < Count; pointers += columns[i++].pointers) {
    if (parts[i])
      pooled[added++] = {&step->domains[columns[i].domain], &step->domains[columns[i].leaves],
                         pools, pointers, static_cast<const float *>(parts[i])};
    if (added == kPooledColumns || (added > 0 && i + 1 == Count)) {
      poolParts(streamOf(step), pools, pooled, added);
      added = 0;
    }
  }
}

/// As launchColumns, for such columns.
template <int Count, int Room, int Pointers>
void launchPoolColumns(genrec_step *step, const ColumnShape (&columns)[Count],
                       void (*kernel)(const genrec_step *, Columns<Room, Pointers>),
                       void *const *pointers, const PoolShape &pools, int64_t sharedBytes = 0) {
  const PoolColumns<Count> taken(step, columns, pools);
  auto *memory =
      taken.totalFloats ? static_cast<float *>(scratchOf(step, taken.totalFloats * 4)) : nullptr;
  queuePoolColumns(step, columns, kernel, pointers, pools, sharedBytes, taken, memory);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

namespace kernels = genrec::rt::kernels; // as generated code calls it

#endif // GENREC_RT_KERNELS_CUDA_POOLS_H
