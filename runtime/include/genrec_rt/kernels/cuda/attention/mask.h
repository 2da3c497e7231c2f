//===- mask.h - Which query sees which key, pair by pair and by tile -*- C++ -*-===//
//
// kernels/shared/attention_args.h defines the mask. Kernels work on tiles: `anySeen` says which to
// skip and `allSeen` which need no mask. Both err on the safe side only.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_MASK_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_MASK_H

#include "genrec_rt/kernels/cuda/attention/args.h"

namespace genrec::rt::cuda {

/// Positions [begin, end) of rows in a list.
struct RowRange {
  int begin, end;
  __host__ __device__ bool empty() const { return begin >= end; }
};

/// The mask of one list.
template <class C> struct ListMask {
  int length;       ///< rows of the list
  int context = 0;  ///< of which the first are context
  int targetsBegin; ///< and those from here on targets
  int window = 0;   ///< 0: none

  __host__ __device__ ListMask(int length, int context, int targets, int window)
      : length(length), targetsBegin(length) {
    if constexpr (C::Masked) {
      targetsBegin = targets < length ? length - targets : 0;
      this->context = context < targetsBegin ? context : targetsBegin;
    }
    if constexpr (C::HasWindow)
      this->window = window;
  }

  __host__ __device__ bool sees(int query, int key) const {
    if (query >= length || key >= length)
      return false;
    if constexpr (C::Masked) {
      if (key >= targetsBegin)
        return query == key;
      if (query < context || key < context)
        return true;
    }
    if (C::Causal && key > query)
      return false;
    if constexpr (C::HasWindow)
      if (window > 0 && (query - key >= window || key - query >= window))
        return false;
    return true;
  }

  /// False only where no query sees any key.
  __host__ __device__ bool anySeen(RowRange queries, RowRange keys) const {
    queries.end = queries.end < length ? queries.end : length;
    keys.end = keys.end < length ? keys.end : length;
    if (queries.empty() || keys.empty())
      return false;
    if (queries.begin < keys.end && keys.begin < queries.end)
      return true; // rows see themselves
    if constexpr (C::Masked) {
      keys.end = keys.end < targetsBegin ? keys.end : targetsBegin;
      if (keys.empty())
        return false;
      if (queries.begin < context || keys.begin < context)
        return true;
    }
    if (C::Causal && queries.end <= keys.begin)
      return false;
    if constexpr (C::HasWindow)
      if (window > 0 &&
          (queries.begin - (keys.end - 1) >= window || keys.begin - (queries.end - 1) >= window))
        return false;
    return true;
  }

  /// True only where every query sees every key.
  __host__ __device__ bool allSeen(RowRange queries, RowRange keys) const {
    if (queries.end > length || keys.end > length)
      return false;
    if constexpr (C::Masked) {
      if (keys.end > targetsBegin)
        return false;
      if (queries.end <= context || keys.end <= context)
        return true;
    }
    if (C::Causal && queries.begin < keys.end - 1)
      return false;
    if constexpr (C::HasWindow)
      if (window > 0 &&
          (queries.end - 1 - keys.begin >= window || keys.end - 1 - queries.begin >= window))
        return false;
    return true;
  }

  /// Keys outside of this range are seen by none of the queries.
  __host__ __device__ RowRange keysOf(RowRange queries) const {
    RowRange keys{0, length};
    if (C::Masked && queries.begin < context)
      return keys;
    if (C::Causal && queries.end < length)
      keys.end = queries.end;
    if constexpr (C::HasWindow)
      if (window > 0 && context == 0 && queries.begin >= window)
        keys.begin = queries.begin - window + 1;
    return keys;
  }

  /// Queries outside of this range see none of the keys.
  __host__ __device__ RowRange queriesOf(RowRange keys) const {
    RowRange queries{0, length};
    if (C::Masked && keys.begin < context)
      return queries;
    if (C::Causal && context == 0)
      queries.begin = keys.begin;
    if constexpr (C::HasWindow) {
      const int end = keys.end - 1 + window;
      if (window > 0 && end < length)
        queries.end = end < context ? context : end;
    }
    return queries;
  }
};

/// Whose tiles a block goes over: those of the keys that its queries see, or of the queries that
/// see its keys.
enum class Over { keys, queries };

/// Where the tiles of `Columns` rows begin that have a seen pair with the block's rows, one after
/// the other.
template <class C, Over What, int Columns> class SeenTiles {
public:
  __device__ SeenTiles(const ListMask<C> &mask, RowRange rows)
      : mask(mask), rows(rows), all(What == Over::keys ? mask.keysOf(rows) : mask.queriesOf(rows)) {
  }

  __device__ int first() const { return from(all.begin / Columns * Columns); }
  __device__ int after(int begin) const { return from(begin + Columns); }
  __device__ bool has(int begin) const { return begin < all.end; }
  /// A tile's rows, of the list.
  __device__ RowRange range(int begin) const {
    return {begin, begin + Columns < mask.length ? begin + Columns : mask.length};
  }

private:
  __device__ int from(int begin) const {
    while (begin < all.end && !any({begin, begin + Columns}))
      begin += Columns;
    return begin;
  }
  __device__ bool any(RowRange tile) const {
    return What == Over::keys ? mask.anySeen(rows, tile) : mask.anySeen(tile, rows);
  }

  const ListMask<C> &mask;
  RowRange rows, all;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_MASK_H
