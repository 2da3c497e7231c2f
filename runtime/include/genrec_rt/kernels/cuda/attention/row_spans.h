//===- row_spans.h - Kernels that go through the rows of all lists and heads -*- C++ -*-===//
//
// Of kernels that memory limits: words of 16 bytes, several rows under way, and no search before
// the first of them are asked for.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_SPANS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_SPANS_H

#include "genrec_rt/kernels/cuda/attention/unit.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

#include <type_traits>

namespace genrec::rt::cuda {

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
  int64_t first;
  int count, head; ///< rows of the span

  static __device__ int lane() { return laneOf() % kLanes; }
  static __device__ float sum(float x) { return sumOfLanes<kLanes>(x); }
  static __device__ uint32_t most(uint32_t x) {
    return reduceLanes<kLanes>(x, [](uint32_t a, uint32_t b) { return greaterOf(a, b); });
  }
  /// Row i of this lane's group. Behind the end stands the last row once more.
  __device__ int64_t row(int i) const { return first + (exists(i) ? at(i) : count - 1); }
  __device__ bool exists(int i) const { return at(i) < count; }

private:
  __device__ int at(int i) const { return laneOf() / kLanes * kGroupRows + i; }
};

/// Calls body(span) for all rows of the lists and all heads, a warp for each span, by the blocks
/// from `firstBlock` on: the last rows first, where what was written last is still in the L2 cache,
/// and so that the first ones are in it afterwards.
template <class C, class Body>
__device__ void forRowSpans(const AttentionArgs<typename C::Element> &args, Body body,
                            int firstBlock = 0) {
  const int64_t begin = args.offsets[0], end = args.offsets[listsOf(args)];
  // Of rows that memory holds there are fewer than 2^31 spans.
  const auto heads = static_cast<uint32_t>(args.heads);
  const uint32_t items =
      static_cast<uint32_t>((end - begin + RowSpan<C>::kRows - 1) / RowSpan<C>::kRows) * heads;
  const uint32_t before = static_cast<uint32_t>(firstBlock) * blockDim.x;
  const auto warps = static_cast<uint32_t>(threadsInGrid() - before) / kWarp;
  for (uint32_t i = static_cast<uint32_t>(threadInGrid() - before) / kWarp; i < items; i += warps) {
    const uint32_t item = items - 1 - i;
    const int64_t first = begin + static_cast<int64_t>(item / heads) * RowSpan<C>::kRows;
    const int64_t left = end - first;
    body(RowSpan<C>{first, static_cast<int>(left < RowSpan<C>::kRows ? left : RowSpan<C>::kRows),
                    static_cast<int>(item % heads)});
  }
}

/// The list that a row belongs to. Called by all lanes of a warp with the same row.
__device__ inline int64_t listOf(const int64_t *offsets, int64_t lists, int64_t row) {
  int64_t low = 0, high = lists; // offsets[low] <= row < offsets[high]
  while (high - low > 1) {
    const int64_t each = (high - low + kWarp - 1) / kWarp, at = low + laneOf() * each;
    const uint32_t before = __ballot_sync(kAllLanes, at < high && offsets[at] <= row);
    low += (__popc(before) - 1) * each;
    high = low + each < high ? low + each : high;
  }
  return low;
}

/// The list of a row, found from that of the row before.
struct ListCursor {
  const int64_t *offsets = nullptr;
  int64_t end = 0; ///< the first row behind the list
  int list = 0;

  /// Of a span's first row; called by all lanes of a warp.
  template <class C>
  __device__ void find(const AttentionArgs<typename C::Element> &args, const RowSpan<C> &span) {
    offsets = args.offsets;
    list = static_cast<int>(listOf(offsets, listsOf(args), span.first));
    end = offsets[list + 1];
  }
  __device__ int rows() const { return static_cast<int>(end - offsets[list]); }
  /// Whether the row is of a later list than the last one.
  __device__ bool advance(int64_t row) {
    if (row < end)
      return false;
    do
      end = offsets[++list + 1];
    while (row >= end);
    return true;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_ROW_SPANS_H
