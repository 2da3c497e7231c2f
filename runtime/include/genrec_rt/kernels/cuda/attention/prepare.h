//===- prepare.h - What is computed once before and after attention's backward -===//
//
// Row norms, and from them the quanta of fixed_point.h; softmax's dO . out; the
// sums turned back into gradients.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H

#include "genrec_rt/kernels/cuda/attention/fixed_point.h"
#include "genrec_rt/kernels/cuda/attention/unit.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

#include <type_traits>

namespace genrec::rt::cuda {

/// Memory of a backward call; all of it grows with the rows.
struct BackwardSpace {
  // Cleared before a call:
  uint32_t *greatest = nullptr; ///< [1] bits of the greatest bound of |dS|
  uint32_t *listMost = nullptr; ///< [parents, heads, 2] bits of max |v_j| and max |k_je|
  Word *positionSums = nullptr; ///< [positionBuckets] in bias quanta
  Word *timeSums = nullptr;     ///< [timeBuckets]
  int *querySums = nullptr;     ///< as querySumAt has it, in the row's quanta; tensor cores only
  // Written before it is read:
  float *rowProduct = nullptr; ///< [heads, rows] softmax: dO . out
  float *rowQuantum = nullptr; ///< [heads, rows] of querySums
};

constexpr int kPrepareThreads = 256, kPrepareBlocks = 4; ///< of a multiprocessor

/// querySums is [heads, panels of 64 columns, rows, 64]: neighbouring rows of a panel lie together,
/// so that one reduction adds them. Columns 8c to 8c + 7 of row r stand at 8 (c ^ (r % 8)), so that
/// a warp that writes fragments of them to shared memory hits every bank once.
constexpr int kPanelColumns = 64;
template <class C> constexpr int kQueryPanels = (C::Qk + kPanelColumns - 1) / kPanelColumns;
__host__ __device__ inline int columnInPanel(int64_t row, int column) {
  return (column / 8 ^ static_cast<int>(row & 7)) * 8 + column % 8;
}
template <class C>
__device__ int64_t querySumAt(const AttentionArgs<typename C::Element> &args, int64_t head,
                              int64_t row, int column) {
  const int64_t panel = head * kQueryPanels<C> + column / kPanelColumns;
  return (panel * args.rows + row) * kPanelColumns + columnInPanel(row, column % kPanelColumns);
}

/// The list that a row belongs to.
__device__ inline int64_t listOf(const int64_t *offsets, int64_t parents, int64_t row) {
  int64_t low = 0, high = parents; // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    int64_t middle = (low + high) / 2;
    (offsets[middle] <= row ? low : high) = middle;
  }
  return low;
}

/// Bits of |x|, which are ordered as the values are; NaN is above all.
__device__ inline uint32_t magnitudeBits(float x) { return __float_as_uint(x) & 0x7FFFFFFFu; }

__device__ inline uint32_t greaterOf(uint32_t a, uint32_t b) { return a > b ? a : b; }

/// Stores four words to global memory at once: a plain store of them may become four.
__device__ inline void storeFour(uint4 *at, const uint4 &words) {
#if defined(GENREC_SIMT)
  storeWhole(at, words);
#else
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(words.x), "r"(words.y),
               "r"(words.z), "r"(words.w)
               : "memory");
#endif
}

/// Eight neighbouring values of a row: what a lane has of it, or one of several such parts.
constexpr int kOctet = 8;
template <class T> struct Octet {
  static constexpr int kWords = kOctet * sizeof(T) / 4;
  uint32_t words[kWords] = {};

  __device__ float operator[](int i) const {
    if constexpr (sizeof(T) == 2)
      return __uint_as_float(i % 2 ? words[i / 2] & 0xFFFF0000u : words[i / 2] << 16);
    else
      return __uint_as_float(words[i]);
  }
  __device__ static Octet of(const float (&values)[kOctet]) {
    Octet octet;
    for (int i = 0; i < kOctet; ++i)
      if constexpr (sizeof(T) == 4)
        octet.words[i] = __float_as_uint(values[i]);
      else if (i % 2 == 0)
        octet.words[i / 2] = packBf16(values[i], values[i + 1]);
    return octet;
  }
};

/// The rows of a tensor of `Size` values per head, eight values at a time. `Aligned`: rows and
/// heads of bfloat16 are aligned to 16 bytes, as tensor cores want them; of floats that is looked
/// at.
template <int Size, class T, bool Aligned> struct HeadRows {
  using Value = std::remove_const_t<T>;
  T *values;
  int64_t ld;
  bool wide; ///< words of 16 bytes

  __device__ HeadRows(T *values, int64_t ld)
      : values(values), ld(ld),
        wide(Aligned && Size % kOctet == 0 &&
             (sizeof(T) == 2 || (reinterpret_cast<uint64_t>(values) % 16 == 0 && ld % 4 == 0))) {}

  __device__ T *at(int64_t row, int64_t head, int octet) const {
    return values + row * ld + head * Size + octet * kOctet;
  }
  /// What is behind the end of the head reads as 0.
  __device__ Octet<Value> load(int64_t row, int64_t head, int octet) const {
    Octet<Value> result;
    T *from = at(row, head, octet);
    if (octet * kOctet >= Size)
      return result;
    if (wide) {
      for (int i = 0; i < Octet<Value>::kWords; i += 4) {
        const auto four = loadWhole<uint4>(reinterpret_cast<const uint4 *>(from) + i / 4);
        result.words[i] = four.x, result.words[i + 1] = four.y;
        result.words[i + 2] = four.z, result.words[i + 3] = four.w;
      }
      return result;
    }
    float x[kOctet];
    for (int i = 0; i < kOctet; ++i)
      x[i] = octet * kOctet + i < Size ? toFloat(from[i]) : 0.0f;
    return Octet<Value>::of(x);
  }
  __device__ void store(int64_t row, int64_t head, int octet, const float (&x)[kOctet]) const {
    T *to = at(row, head, octet);
    if (wide) {
      const Octet<Value> from = Octet<Value>::of(x);
      for (int i = 0; i < Octet<Value>::kWords; i += 4)
        storeFour(reinterpret_cast<uint4 *>(to) + i / 4,
                  {from.words[i], from.words[i + 1], from.words[i + 2], from.words[i + 3]});
    } else {
      for (int i = 0; i < kOctet; ++i)
        if (octet * kOctet + i < Size)
          to[i] = fromFloat<Value>(x[i]);
    }
  }
};

/// A warp goes through a span of neighbouring rows of one head: each group of lanes through rows of
/// its own, several of them at once, so that enough reads are under way.
template <class C> struct RowSpan {
  static constexpr int kWidest = C::Qk > C::V ? C::Qk : C::V;
  static constexpr int kLanes = kWidest <= 8     ? 1
                                : kWidest <= 16  ? 2
                                : kWidest <= 32  ? 4
                                : kWidest <= 64  ? 8
                                : kWidest <= 128 ? 16
                                                 : kWarp;
  /// Octets of a lane: i of a head is of lane i % kLanes of a group.
  template <int Size>
  static constexpr int kParts = (Size + kOctet * kLanes - 1) / (kOctet * kLanes);
  static constexpr int kGroupRows = 16, kRows = kWarp / kLanes * kGroupRows;
  int64_t first, last; ///< rows of the span
  int64_t head;

  static __device__ int lane() { return laneOf() % kLanes; }
  static __device__ float sum(float x) { return sumOfLanes<kLanes>(x); }
  static __device__ uint32_t most(uint32_t x) {
    return reduceLanes<kLanes>(x, [](uint32_t a, uint32_t b) { return greaterOf(a, b); });
  }
  /// Row i of this lane's group. Behind the end stands the last row once more.
  __device__ int64_t row(int i) const { return exists(i) ? at(i) : last; }
  __device__ bool exists(int i) const { return at(i) <= last; }

private:
  __device__ int64_t at(int i) const { return first + laneOf() / kLanes * kGroupRows + i; }
};

/// Calls body(span) for all rows of the lists and all heads, a warp for each span. `FromEnd`: the
/// last rows first, where what was written last is still in the L2 cache.
template <class C, bool FromEnd = false, class Body>
__device__ void forRowSpans(const AttentionArgs<typename C::Element> &args, Body body) {
  const int64_t begin = args.offsets[0], end = args.offsets[listsOf(args)];
  const int64_t spans = (end - begin + RowSpan<C>::kRows - 1) / RowSpan<C>::kRows;
  const int64_t warps = threadsInGrid() / kWarp, items = spans * args.heads;
  for (int64_t i = threadInGrid() / kWarp; i < items; i += warps) {
    const int64_t item = FromEnd ? items - 1 - i : i;
    const int64_t first = begin + item / args.heads * RowSpan<C>::kRows;
    const int64_t behind = first + RowSpan<C>::kRows;
    body(RowSpan<C>{first, (behind < end ? behind : end) - 1, item % args.heads});
  }
}

/// The list of a row, found from that of the row before.
struct ListCursor {
  const int64_t *offsets;
  int64_t list;

  __device__ ListCursor(const int64_t *offsets, int64_t lists, int64_t row)
      : offsets(offsets), list(listOf(offsets, lists, row)) {}
  /// Whether the row is of a later list than the last one.
  __device__ bool advance(int64_t row) {
    const int64_t before = list;
    while (row >= offsets[list + 1])
      ++list;
    return list != before;
  }
};

/// Finds the greatest |v_j| and |k_je| of every list and head. Few atomics, as most meet at few
/// places: a warp has one for a span of one list.
template <class C, bool Aligned>
__global__ void __launch_bounds__(kPrepareThreads, kPrepareBlocks)
    attentionNorms(AttentionArgs<typename C::Element> args, BackwardSpace space) {
  using E = typename C::Element;
  using Span = RowSpan<C>;
  constexpr int kAtOnce = Aligned && sizeof(E) == 2 ? 4 : 2; // rows, for which registers suffice
  const HeadRows<C::V, const E, Aligned> values(args.v, args.ldV);
  const HeadRows<C::Qk, const E, Aligned> keys(args.k, args.ldK);
  forRowSpans<C>(args, [&](const Span &span) {
    ListCursor cursor(args.offsets, listsOf(args), span.first);
    const bool oneList = span.last < args.offsets[cursor.list + 1];
    // Of v's rows, the same in all lanes of a group; of this lane's values of k.
    uint32_t mostNorm = 0, mostKey = 0;
    auto note = [&](int number, uint32_t bits) {
      atomicMax(space.listMost + (cursor.list * args.heads + span.head) * 2 + number, bits);
    };
#pragma unroll 1
    for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
      Octet<E> v[kAtOnce][Span::template kParts<C::V>];
      Octet<E> k[kAtOnce][Span::template kParts<C::Qk>];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        for (int p = 0; p < Span::template kParts<C::V>; ++p)
          v[r][p] = values.load(span.row(i + r), span.head, p * Span::kLanes + Span::lane());
        for (int p = 0; p < Span::template kParts<C::Qk>; ++p)
          k[r][p] = keys.load(span.row(i + r), span.head, p * Span::kLanes + Span::lane());
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        float squares = 0;
        uint32_t key = 0;
        for (const Octet<E> &part : v[r])
          for (int e = 0; e < kOctet; ++e)
            squares += part[e] * part[e];
        for (const Octet<E> &part : k[r])
          for (int e = 0; e < kOctet; ++e)
            key = greaterOf(key, magnitudeBits(part[e]));
        const uint32_t norm = magnitudeBits(sqrtf(Span::sum(squares)));
        if (oneList) {
          mostNorm = greaterOf(mostNorm, norm);
          mostKey = greaterOf(mostKey, key);
        } else {
          key = Span::most(key);
          cursor.advance(span.row(i + r));
          if (Span::lane() == 0) {
            note(0, norm);
            note(1, key);
          }
        }
      }
    }
    if (!oneList)
      return;
    mostNorm = __reduce_max_sync(kAllLanes, mostNorm);
    mostKey = __reduce_max_sync(kAllLanes, mostKey);
    if (laneOf() < 2)
      note(laneOf(), laneOf() == 0 ? mostNorm : mostKey);
  });
}

/// What bounds take from a list, and the bounds of its rows.
template <class C> struct ListBounds {
  float norm, key, length, factor; ///< greatest |v_j| and |k_je|

  __device__ ListBounds(const AttentionArgs<typename C::Element> &args, const BackwardSpace &space,
                        int64_t list, int64_t head) {
    const uint32_t *most = space.listMost + (list * args.heads + head) * 2;
    const int rows = static_cast<int>(args.offsets[list + 1] - args.offsets[list]);
    norm = __uint_as_float(most[0]), key = __uint_as_float(most[1]);
    length = static_cast<float>(rows), factor = weightFactor<C>(args, rows);
  }
};

/// Finds the bounds and quanta of every row and head; after attentionNorms.
template <class C, bool Aligned>
__global__ void __launch_bounds__(kPrepareThreads, kPrepareBlocks)
    attentionBounds(AttentionArgs<typename C::Element> args,
                    AttentionGradients<typename C::Element> gradients, BackwardSpace space) {
  using E = typename C::Element;
  using Span = RowSpan<C>;
  constexpr int kParts = Span::template kParts<C::V>, kAtOnce = Aligned && !C::Softmax ? 4 : 2;
  const HeadRows<C::V, const E, Aligned> outGradients(gradients.dOut, gradients.ldDOut);
  const auto *outValues = resultOf<C>(args.out, args.floatOut);
  using Out = std::remove_pointer_t<decltype(outValues)>;
  const HeadRows<C::V, Out, Aligned> outs(outValues, args.ldOut);
  uint32_t greatest = 0;
  forRowSpans<C>(args, [&](const Span &span) {
    ListCursor cursor(args.offsets, listsOf(args), span.row(0));
    ListBounds<C> list(args, space, cursor.list, span.head);
#pragma unroll 1
    for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
      Octet<E> dOut[kAtOnce][kParts];
      Octet<std::remove_const_t<Out>> out[kAtOnce][kParts];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
        for (int p = 0; p < kParts; ++p) {
          const int octet = p * Span::kLanes + Span::lane();
          dOut[r][p] = outGradients.load(span.row(i + r), span.head, octet);
          if constexpr (C::Softmax)
            out[r][p] = outs.load(span.row(i + r), span.head, octet);
        }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        const int64_t row = span.row(i + r), at = span.head * args.rows + row;
        float squares = 0, product = 0;
        for (int p = 0; p < kParts; ++p)
          for (int e = 0; e < kOctet; ++e) {
            squares += dOut[r][p][e] * dOut[r][p][e];
            if constexpr (C::Softmax)
              product += dOut[r][p][e] * out[r][p][e];
          }
        const float norm = sqrtf(Span::sum(squares));
        if (cursor.advance(row))
          list = ListBounds<C>(args, space, cursor.list, span.head);
        float bound = keptFactor<C>(args) * norm * list.norm * kBoundSlack, sum = bound,
              tile = bound;
        if constexpr (C::Softmax) {
          product = Span::sum(product);
          bound += fabsf(product) * kBoundSlack;
          sum = bound;
        } else {
          bound *= 1.1f * list.factor;
          sum = bound * list.length;
          tile = bound * fminf(list.length, kTileKeys);
        }
        greatest = greaterOf(greatest, magnitudeBits(bound));
        if (Span::lane() == 0 && span.exists(i + r)) {
          const float key = fabsf(args.scale) * list.key;
          space.rowQuantum[at] = queryQuantum<C>(key * tile, key * sum);
          if constexpr (C::Softmax)
            space.rowProduct[at] = product;
        }
      }
    }
  });
  greatest = __reduce_max_sync(kAllLanes, greatest);
  if (laneOf() == 0 && greatest > 0)
    atomicMax(space.greatest, greatest);
}

/// Turns the sums of bias gradients into floats.
template <class E>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionBiasGradients(AttentionArgs<E> args, AttentionGradients<E> gradients,
                           BackwardSpace space, int pairBits, bool position, bool time) {
  const BiasQuantum quantum(space.greatest, pairBits);
  if (position)
    for (int64_t b = threadInGrid(); b < args.positionBuckets; b += threadsInGrid())
      gradients.dPositionBias[b] = quantum.value(space.positionSums[b]);
  if (time)
    for (int64_t b = threadInGrid(); b < args.timeBuckets; b += threadsInGrid())
      gradients.dTimeBias[b] = quantum.value(space.timeSums[b]);
}

/// Turns querySums into dQ. Where there are such sums, rows are aligned.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads, kPrepareBlocks)
    attentionQueryGradients(AttentionArgs<typename C::Element> args,
                            AttentionGradients<typename C::Element> gradients,
                            BackwardSpace space) {
  using Span = RowSpan<C>;
  constexpr int kParts = Span::template kParts<C::Qk>, kAtOnce = 2;
  auto *dQ = resultOf<C>(gradients.dQ, gradients.floatDQ);
  const HeadRows<C::Qk, std::remove_pointer_t<decltype(dQ)>, true> results(dQ, gradients.ldDQ);
  forRowSpans<C, /*FromEnd=*/true>(args, [&](const Span &span) {
#pragma unroll 1
    for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
      int4 sums[kAtOnce][kParts][2];
      float quantum[kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        const int64_t row = span.row(i + r);
        quantum[r] = space.rowQuantum[span.head * args.rows + row];
        for (int p = 0; p < kParts; ++p) {
          const int column = (p * Span::kLanes + Span::lane()) * kOctet;
          if (column >= C::Qk)
            continue;
          const int4 *at = reinterpret_cast<const int4 *>(
              space.querySums + querySumAt<C>(args, span.head, row, column));
          sums[r][p][0] = at[0], sums[r][p][1] = at[1];
        }
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
        for (int p = 0; p < kParts; ++p) {
          const int octet = p * Span::kLanes + Span::lane();
          if (octet * kOctet >= C::Qk || !span.exists(i + r))
            continue;
          float x[kOctet];
          for (int e = 0; e < kOctet; ++e) {
            const int4 &four = sums[r][p][e / 4];
            const int sum = e % 4 == 0   ? four.x
                            : e % 4 == 1 ? four.y
                            : e % 4 == 2 ? four.z
                                         : four.w;
            x[e] = static_cast<float>(sum) * quantum[r];
          }
          results.store(span.row(i + r), span.head, octet, x);
        }
    }
  });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
