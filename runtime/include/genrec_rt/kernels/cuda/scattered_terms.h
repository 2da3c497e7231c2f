//===- scattered_terms.h - Terms of scattered sums, for row kernels -*- C++ -*-===//
//
// What a row kernel calls where a sum into rows that an index picks is added up behind it
// (row_mapping.h, SumShape): the functions by whose names rows are added to a chunk's own sums
// (rowbody.h, gathered_rows.h), but that leave terms. A term is the lanes' of its row alone, so
// nothing is ordered and nothing is read.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SCATTERED_TERMS_H
#define GENREC_RT_KERNELS_CUDA_SCATTERED_TERMS_H

#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <type_traits>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Of all rows of a kernel, `rows` at most, in `memory`; and the memory behind them. Template
/// arguments are the members of the SumShape.
template <int64_t Terms, int64_t Vectors, int64_t Width, bool IsScaled, bool IsRounded>
__device__ inline ScatteredTerms termsOf(float *memory, int64_t rows) {
  return scatteredTerms(memory, rows, Terms);
}
template <int64_t Terms, int64_t Vectors, int64_t Width, bool IsScaled, bool IsRounded>
__device__ inline float *behindTerms(float *memory, int64_t rows) {
  return memory + scatteredWords(rows, Terms, Vectors, Width, IsScaled, IsRounded);
}

/// Those of one row that are multiples of one vector: where their keys, coefficients (null: none)
/// and the vector go.
template <class Element> struct TermsOfRow {
  uint32_t *keys;
  float *coefficients;
  Element *vector;
};
using RowTerms = TermsOfRow<float>;
using RoundedTerms = TermsOfRow<Bf16>;

/// Of row `row`: the terms from `First` on, multiples of vector `Vector`.
template <int64_t Terms, int64_t Vectors, int64_t Width, bool IsScaled, bool IsRounded,
          int64_t First, int64_t Vector>
__device__ inline std::conditional_t<IsRounded, RoundedTerms, RowTerms>
rowTerms(const ScatteredTerms &terms, int64_t row) {
  using Element = std::conditional_t<IsRounded, Bf16, float>;
  float *values = terms.values + row * valueFloats(Terms, Vectors, Width, IsScaled, IsRounded);
  auto *vectors = reinterpret_cast<Element *>(values + coefficientFloats(Terms, IsScaled));
  return {terms.keys + row * Terms + First, IsScaled ? values + First : nullptr,
          vectors + Vector * Width};
}

namespace detail {

__device__ inline uint32_t termKey(int64_t index) {
  return index < 0 ? ScatteredTerms::kNoRow : static_cast<uint32_t>(index);
}

__device__ inline void setElement(float &to, float value) { to = value; }
__device__ inline void setElement(Bf16 &to, float value) { to = narrowed(value); }

/// D elements that lanes keep or that lie in memory, by packs; `to` is aligned to them where D is a
/// multiple of the pack. To bfloat16 they are rounded already.
template <int64_t D, int64_t L, int64_t V, class Element, class X>
__device__ inline void storeVector(Element *to, const X &value) {
  constexpr int64_t kPack = V < D ? V : D;
  if constexpr (kPack > 1 && D % kPack == 0 && L > 1) {
#pragma unroll
    for (int64_t pack = 0; pack < kPacks<D, L, V>; ++pack) {
      const int64_t first = firstOfPack<L, V>(pack);
      if (first < D) {
        Element values[kPack];
#pragma unroll
        for (int64_t j = 0; j < kPack; ++j)
          setElement(values[j], elementOf(value, pack * kPack + j, first + j));
        storePack<kPack>(to + first, values);
      }
    }
  } else {
    forElements<D, L, V>([&](int64_t slot, int64_t element) {
      setElement(to[element], elementOf(value, slot, element));
    });
  }
}

} // namespace detail

template <int64_t D, int64_t L, int64_t V, class X>
__device__ inline void addRow(const RowTerms &to, int64_t, int64_t index, const X &value) {
  detail::storeVector<D, L, V>(to.vector, value);
  if (isFirstLane<L>()) {
    *to.keys = detail::termKey(index);
    if (to.coefficients)
      *to.coefficients = 1;
  }
}

template <int64_t L, int64_t V>
__device__ inline void addElement(const RowTerms &to, int64_t index, float value) {
  if (isFirstLane<L>()) {
    *to.vector = value;
    *to.keys = detail::termKey(index);
    if (to.coefficients)
      *to.coefficients = 1;
  }
}

/// A multiple of the vector that the row's other terms leave.
template <int64_t L, int64_t V>
__device__ inline void addMultiple(const RoundedTerms &to, int64_t index, float coefficient) {
  if (isFirstLane<L>()) {
    *to.keys = detail::termKey(index);
    *to.coefficients = coefficient;
  }
}

template <int64_t D, int64_t L, int64_t V, class Element, class Index>
__device__ inline void scatterAddOuter(const TermsOfRow<Element> &to, int64_t, const Index *index,
                                       const float *coefficients, int64_t n, const float *q) {
  detail::storeVector<D, L, V>(to.vector, q);
  for (int64_t j = lane<L>(); j < n; j += L) {
    to.keys[j] = detail::termKey(static_cast<int64_t>(index[j]));
    to.coefficients[j] = coefficients[j];
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_SCATTERED_TERMS_H
