//===- gathered_rows.h - Products with gathered rows ------------*- C++ -*-===//
//
// The functions of cpu/gathered_rows.h, by the lanes of a row (lanes.h), in another order of
// addition, and a softmax over gathered rows (GatheredSoftmax.h of the compiler). Indices,
// coefficients and vectors that all lanes read lie in memory. Rows are of floats, or of bfloat16,
// which are widened: factors that were rounded before.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
#define GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H

#include "genrec_rt/kernels/cuda/lane_reduction.h"
#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/kernels/shared/rowmath.h"

#include <limits>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

constexpr float kLowest = std::numeric_limits<float>::lowest();

/// Rows whose loads are under way together, of which a lane has `Slots` elements each.
template <int64_t Slots> constexpr int64_t kRowsAtOnce = Slots <= 4 ? 4 : Slots <= 16 ? 2 : 1;

/// Calls `each(slot, element, values)` for this lane's elements of D, where values[k] is that of
/// rows[k]: read in packs where lanes have these, which are as wide as all rows are aligned to.
template <int64_t D, int64_t L, int64_t V, class Element, size_t Count, class Each>
__device__ inline void forGathered(const Element *const (&rows)[Count], const Each &each) {
  constexpr int64_t kPack = V < D ? V : D;
  constexpr int64_t kAligned = L > 1 && D % V == 0 ? kPack : 1;
#pragma unroll
  for (int64_t pack = 0; pack < kPacks<D, L, V>; ++pack) {
    const int64_t first = firstOfPack<L, V>(pack);
    if (first >= D)
      continue;
    Element packs[Count][kPack];
#pragma unroll
    for (size_t k = 0; k < Count; ++k)
      loadPack<kAligned>(rows[k] + first, packs[k]);
#pragma unroll
    for (int64_t j = 0; j < kPack; ++j) {
      Element values[Count];
#pragma unroll
      for (size_t k = 0; k < Count; ++k)
        values[k] = packs[k][j];
      each(pack * kPack + j, first + j, values);
    }
  }
}

/// gatherDot of rows j, j + step, …, `Count` of them.
template <int64_t D, int64_t L, int64_t V, size_t Count, class Element, class Index>
__device__ inline void gatherDots(const Element *base, int64_t ld, const Index *index, int64_t j,
                                  int64_t step, const float *q, float *out) {
  const Element *rows[Count];
  float totals[Count] = {};
#pragma unroll
  for (size_t k = 0; k < Count; ++k)
    rows[k] = base + static_cast<int64_t>(index[j + static_cast<int64_t>(k) * step]) * ld;
  forGathered<D, L, V>(rows, [&](int64_t, int64_t i, const Element(&values)[Count]) {
#pragma unroll
    for (size_t k = 0; k < Count; ++k)
      totals[k] = mulAdd(widened(values[k]), q[i], totals[k]);
  });
#pragma unroll
  for (size_t k = 0; k < Count; ++k) {
    totals[k] = cuda::sumOfLanes<L>(totals[k], laneMask<L>());
    if (isFirstLane<L>())
      out[j + static_cast<int64_t>(k) * step] = totals[k];
  }
}

/// sums += coefficients[j] * row index[j], for `Count` rows from j on, one after another.
template <int64_t D, int64_t L, int64_t V, size_t Count, class Element, class Index, size_t Slots>
__device__ inline void gatherMore(const Element *base, int64_t ld, const Index *index,
                                  const float *coefficients, int64_t j, float (&sums)[Slots]) {
  const Element *rows[Count];
#pragma unroll
  for (size_t k = 0; k < Count; ++k)
    rows[k] = base + static_cast<int64_t>(index[j + static_cast<int64_t>(k)]) * ld;
  forGathered<D, L, V>(rows, [&](int64_t slot, int64_t, const Element(&values)[Count]) {
#pragma unroll
    for (size_t k = 0; k < Count; ++k)
      sums[slot] =
          mulAdd(coefficients[j + static_cast<int64_t>(k)], widened(values[k]), sums[slot]);
  });
}

/// The logits of a softmax, by a row's number and its dot product.
template <class Index> struct Logits {
  const Index *index;
  Index hit;
  float scale, masked;

  __device__ float of(int64_t j, float dot) const { return index[j] == hit ? masked : dot * scale; }
};

/// What a lane holds of a row, `Slots` elements: two bfloat16 to a register.
template <class Element, int64_t Slots> struct HeldRow {
  float values[Slots] = {};

  __device__ void keep(int64_t slot, float value) { values[slot] = value; }
  __device__ float at(int64_t slot) const { return values[slot]; }
};
template <int64_t Slots> struct HeldRow<Bf16, Slots> {
  uint32_t pairs[(Slots + 1) / 2] = {};

  __device__ void keep(int64_t slot, Bf16 value) {
    pairs[slot / 2] |= static_cast<uint32_t>(value.bits) << slot % 2 * 16;
  }
  __device__ float at(int64_t slot) const {
    const uint32_t pair = pairs[slot / 2];
    return __uint_as_float(slot % 2 ? pair & 0xFFFF0000U : pair << 16);
  }
};

/// A sum of rows, each weighted by exp(its logit - the largest logit so far), of which a lane has
/// `Slots` elements.
template <int64_t Slots> struct SoftmaxSum {
  float largest = kLowest, sums[Slots] = {};

  /// Adds rows with equal lanes' `logits`, one after another.
  template <size_t Count, class Element>
  __device__ void add(const float (&logits)[Count], const HeldRow<Element, Slots> (&rows)[Count]) {
    const float before = largest;
#pragma unroll
    for (size_t k = 0; k < Count; ++k)
      largest = maximum(largest, logits[k]);
    if (largest != before) { // NaN is not itself either
      const float factor = exp(before - largest);
#pragma unroll
      for (int64_t slot = 0; slot < Slots; ++slot)
        sums[slot] *= factor;
    }
#pragma unroll
    for (size_t k = 0; k < Count; ++k) {
      const float weight = exp(logits[k] - largest);
#pragma unroll
      for (int64_t slot = 0; slot < Slots; ++slot)
        sums[slot] = mulAdd(weight, rows[k].at(slot), sums[slot]);
    }
  }
};

/// `Count` rows of gatherSoftmax from j on.
template <int64_t D, int64_t L, int64_t V, size_t Count, class Element, class Index, int64_t Slots>
__device__ inline void softmaxMore(const Element *base, int64_t ld, int64_t j, const float *q,
                                   const Logits<Index> &logits, float *dots,
                                   SoftmaxSum<Slots> &sum) {
  const Element *rows[Count];
  HeldRow<Element, Slots> held[Count];
  float totals[Count] = {};
#pragma unroll
  for (size_t k = 0; k < Count; ++k)
    rows[k] = base + static_cast<int64_t>(logits.index[j + static_cast<int64_t>(k)]) * ld;
  forGathered<D, L, V>(rows, [&](int64_t slot, int64_t i, const Element(&values)[Count]) {
#pragma unroll
    for (size_t k = 0; k < Count; ++k) {
      held[k].keep(slot, values[k]);
      totals[k] = mulAdd(widened(values[k]), q[i], totals[k]);
    }
  });
#pragma unroll
  for (size_t k = 0; k < Count; ++k) {
    totals[k] = cuda::sumOfLanes<L>(totals[k], laneMask<L>());
    if (isFirstLane<L>())
      dots[j + static_cast<int64_t>(k)] = totals[k];
    totals[k] = logits.of(j + static_cast<int64_t>(k), totals[k]);
  }
  sum.add(totals, held);
}

} // namespace detail

/// out[j] = dot(row index[j], q) for j < n; `out` is shared. Of lanes that fill several warps,
/// each warp takes every so many rows.
template <int64_t D, int64_t L, int64_t V, class Element, class Index>
__device__ inline void gatherDot(const Element *base, int64_t ld, const Index *index, int64_t n,
                                 const float *q, float *out) {
  constexpr int64_t kGroup = kLanesOfWarp<L>, kGroups = L / kGroup;
  // A lane of one row has all of it.
  constexpr int64_t kPack = L == 1 ? D : V;
  constexpr int64_t kAtOnce = detail::kRowsAtOnce<kSlots<D, kGroup, kPack>>;
  int64_t j = lane<L>() / kGroup;
  for (; j + (kAtOnce - 1) * kGroups < n; j += kAtOnce * kGroups)
    detail::gatherDots<D, kGroup, kPack, kAtOnce>(base, ld, index, j, kGroups, q, out);
  for (; j < n; j += kGroups)
    detail::gatherDots<D, kGroup, kPack, 1>(base, ld, index, j, kGroups, q, out);
  meet<L>();
}

/// out[D] = sum over j < n of coefficients[j] * row index[j]; zeros for n = 0.
template <int64_t D, int64_t L, int64_t V, class Element, class Index, class Out>
__device__ inline void gatherSum(const Element *base, int64_t ld, const Index *index,
                                 const float *coefficients, int64_t n, Out &&out) {
  // A lane of one row has all of it.
  constexpr int64_t kPack = L == 1 ? D : V;
  constexpr int64_t kOwn = kSlots<D, L, kPack>, kAtOnce = detail::kRowsAtOnce<kOwn>;
  float sums[kOwn] = {};
  int64_t j = 0;
  for (; j + kAtOnce <= n; j += kAtOnce)
    detail::gatherMore<D, L, kPack, kAtOnce>(base, ld, index, coefficients, j, sums);
  for (; j < n; ++j)
    detail::gatherMore<D, L, kPack, 1>(base, ld, index, coefficients, j, sums);
  forElements<D, L, kPack>(
      [&](int64_t slot, int64_t element) { elementOf(out, slot, element) = sums[slot]; });
  meetAfterWriting<L, Out>();
}

/// dots[j] = dot(row index[j], q) for j < n; `dots` is shared. mix[D] = sum of exp(logit[j] - the
/// largest logit, or the lowest float where all are below) * row index[j]; logit[j] is `masked`
/// where index[j] is `hit`, else dots[j] * scale. A row is read once, by lanes of one warp.
template <int64_t D, int64_t L, int64_t V, class Element, class Index, class Out>
__device__ inline void gatherSoftmax(const Element *base, int64_t ld, const Index *index, int64_t n,
                                     const float *q, Index hit, float scale, float masked,
                                     float *dots, Out &&mix) {
  static_assert(L <= kWarpLanes);
  // A lane of one row has all of it.
  constexpr int64_t kPack = L == 1 ? D : V, kAtOnce = sizeof(Element) == 2 ? 4 : 2;
  const detail::Logits<Index> logits{index, hit, scale, masked};
  detail::SoftmaxSum<kSlots<D, L, kPack>> sum;
  int64_t j = 0;
  for (; j + kAtOnce <= n; j += kAtOnce)
    detail::softmaxMore<D, L, kPack, kAtOnce>(base, ld, j, q, logits, dots, sum);
  for (; j < n; ++j)
    detail::softmaxMore<D, L, kPack, 1>(base, ld, j, q, logits, dots, sum);
  meet<L>();
  forElements<D, L, kPack>(
      [&](int64_t slot, int64_t element) { elementOf(mix, slot, element) = sum.sums[slot]; });
  meetAfterWriting<L, Out>();
}

/// out[D] = sum over the rows of gatherSoftmax of factor * exp(logit - largest) * row, from its
/// `mix` and `most`, the largest logit; zeros unless `valid`.
template <int64_t D, int64_t L, int64_t V, class Mix, class Out>
__device__ inline void softmaxSum(const Mix &mix, float factor, float most, float largest,
                                  bool valid, Out &&out) {
  constexpr int64_t kPack = L == 1 ? D : V;
  const float by = factor * exp(maximum(most, detail::kLowest) - largest);
  forElements<D, L, kPack>([&](int64_t slot, int64_t element) {
    elementOf(out, slot, element) = valid ? elementOf(mix, slot, element) * by : 0;
  });
  meetAfterWriting<L, Out>();
}

/// row index[j] of the accumulator += coefficients[j] * q, one j after another.
template <int64_t D, int64_t L, int64_t V, class Index>
__device__ inline void scatterAddOuter(float *base, int64_t ld, const Index *index,
                                       const float *coefficients, int64_t n, const float *q) {
  for (int64_t j = 0; j < n; ++j) {
    float *row = base + static_cast<int64_t>(index[j]) * ld;
    const float coefficient = coefficients[j];
    forElements<D, L, V>([&](int64_t, int64_t element) {
      row[element] = detail::mulAdd(coefficient, q[element], row[element]);
    });
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_GATHERED_ROWS_H
