//===- unit.h - The list, head and tile of a block, and terms of a pair -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_UNIT_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_UNIT_H

#include "genrec_rt/kernels/cuda/attention/mask.h"
#include "genrec_rt/kernels/cuda/attention/time_buckets.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::cuda {

/// The number of lists, of which the host may know a bound only.
template <class E> __device__ int64_t listsOf(const AttentionArgs<E> &args) {
  return args.domain ? args.domain->parent_domain->count : args.parents;
}

/// A tile of rows of one list and head. `list` -1: none.
struct alignas(16) AttentionTile {
  int list, head, begin, unused;
};

/// Which part of a call a block works on: rows [begin, begin + Tile) of one
/// list and head. Blocks are numbered so that the longest work starts first.
template <class C, int Tile> struct AttentionUnit {
  int64_t list, first; ///< the list and its first row
  int head, begin;
  ListMask<C> mask;

  /// `lastFirst`: later tiles have more work (queries under a causal mask).
  __device__ AttentionUnit(const AttentionArgs<typename C::Element> &args, int64_t block, int tiles,
                           bool lastFirst)
      : AttentionUnit(args, block % (args.parents * args.heads) / args.heads,
                      static_cast<int>(block % args.heads),
                      static_cast<int>(block / (args.parents * args.heads)), tiles, lastFirst,
                      block % (args.parents * args.heads) / args.heads < listsOf(args)) {}

  __device__ AttentionUnit(const AttentionArgs<typename C::Element> &args,
                           const AttentionTile &tile)
      : AttentionUnit(args, tile.list, tile.head, tile.begin / Tile, 0, false, tile.list >= 0) {}

  /// False for tiles behind the end of the list, or of all lists.
  __device__ bool hasRows() const { return begin < mask.length; }
  __device__ int rows() const { return mask.length - begin < Tile ? mask.length - begin : Tile; }
  __device__ RowRange range() const { return {begin, begin + rows()}; }

private:
  /// A list that does not exist has no rows.
  __device__ AttentionUnit(const AttentionArgs<typename C::Element> &args, int64_t list, int head,
                           int tile, int tiles, bool lastFirst, bool exists)
      : list(list), first(args.offsets[exists ? list : 0]), head(head),
        begin((lastFirst ? tiles - 1 - tile : tile) * Tile),
        mask(static_cast<int>(args.offsets[exists ? list + 1 : 0] - first),
             clipped(args.contextual),
             C::Masked && args.targets && exists ? clipped(args.targets[list]) : 0,
             clipped(args.window)) {}

  /// More rows than a list can have count as so many.
  static __device__ int clipped(int64_t rows) {
    constexpr int64_t kMostRows = 1 << 20;
    return static_cast<int>(rows < 0 ? 0 : rows < kMostRows ? rows : kMostRows);
  }
};

/// The time that a query is at.
template <class E>
__device__ int64_t queryTime(const AttentionArgs<E> &args, int64_t first, int length, int query) {
  const int row = args.nextEventTime && query + 1 < length ? query + 1 : query;
  return args.timestamps[first + row];
}

/// Bucket of the position bias of a key that stands `distance` rows behind the query.
template <class E> __device__ int positionBucket(const AttentionArgs<E> &args, int distance) {
  const int last = static_cast<int>(args.positionBuckets) - 1, bucket = distance + last / 2;
  return bucket < 0 ? 0 : bucket > last ? last : bucket;
}

/// What silu weights are multiplied by (dropout's factor not included).
template <class C>
__device__ float weightFactor(const AttentionArgs<typename C::Element> &args, int length) {
  if constexpr (C::Softmax)
    return 1.0f;
  return 1.0f / (args.fixedLength > 0 ? args.fixedLength : static_cast<float>(length));
}

/// 1 / (1 - p), and 0 for p = 1, where nothing is kept.
template <class C>
__host__ __device__ float keptFactor(const AttentionArgs<typename C::Element> &args) {
  if constexpr (!C::Dropout)
    return 1.0f;
  return args.dropProbability < 1 ? static_cast<float>(1.0 / (1.0 - args.dropProbability)) : 0.0f;
}

/// Elements of dropout's random row that belong to one head.
constexpr uint64_t kDropoutElementsPerHead = uint64_t(1) << 20;

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_UNIT_H
