//===- interaction.h - Dot products of all pairs of vectors -----*- C++ -*-===//
//
// What cpu/interaction.h computes, in its order: each product and each element of a gradient is one
// chain of multiply-adds in ascending order, so both targets have the same bits. A block takes a
// row whose vectors lie in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_INTERACTION_H
#define GENREC_RT_KERNELS_CUDA_INTERACTION_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

template <int Count, int Size, bool Self> struct Interaction {
  static constexpr int kThreads = 128;
  static constexpr int kFloats = Count * Size;
  /// Vectors are an odd number of words apart: lanes read one element of a vector each, which then
  /// lie in different banks.
  static constexpr int kApart = Size | 1;
  static constexpr int kPairs = Count * (Self ? Count + 1 : Count - 1) / 2;

  /// Where the products of vector i with those before it begin.
  __device__ static constexpr int start(int i) { return i * (Self ? i + 1 : i - 1) / 2; }
  /// Where the product of vectors i and j is.
  __device__ static constexpr int place(int i, int j) {
    return i >= j ? start(i) + j : start(j) + i;
  }

  /// Loads the vectors of a row to where `vectors` are.
  template <bool Bf16> __device__ static void load(const float *row, float *vectors) {
    for (int i = threadIdx.x; i < kFloats; i += kThreads)
      vectors[i / Size * kApart + i % Size] = cuda::factor<Bf16>(row[i]);
  }

  static cuda::LaunchShape shape(int64_t rows, int64_t floats) {
    cuda::LaunchShape shape = cuda::shapeOfThreads(rows * kThreads, kThreads);
    shape.dynamicBytes = floats * 4;
    return shape;
  }
};

template <int Count, int Size, bool Self, bool Bf16>
__global__ void __launch_bounds__(128)
    interact(const genrec_domain *domain, const float *x, int64_t ldX, float *products) {
  using Rows = Interaction<Count, Size, Self>;
  GENREC_DYNAMIC_SHARED(float, vectors);
  const int64_t count = domain->count;
  for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    Rows::template load<Bf16>(x + row * ldX, vectors);
    __syncthreads();
    int i = Self ? 0 : 1, first = 0; // the vector of product `first`
    for (int pair = threadIdx.x; pair < Rows::kPairs; pair += Rows::kThreads) {
      while (Rows::start(i + 1) <= pair)
        first = Rows::start(++i);
      const float *a = vectors + i * Rows::kApart, *b = vectors + (pair - first) * Rows::kApart;
      float sum = 0;
      for (int k = 0; k < Size; ++k)
        sum = fmaf(a[k], b[k], sum);
      products[row * Rows::kPairs + pair] = sum;
    }
    __syncthreads(); // the next row overwrites the vectors
  }
}

template <int Count, int Size, bool Self, bool Bf16>
__global__ void __launch_bounds__(128)
    interactGradient(const genrec_domain *domain, const float *x, int64_t ldX,
                     const float *gradient, int64_t ldGradient, float *dx) {
  using Rows = Interaction<Count, Size, Self>;
  GENREC_DYNAMIC_SHARED(float, vectors);
  float *shares = vectors + Count * Rows::kApart; // gradients of the products
  const int64_t count = domain->count;
  for (int64_t row = blockIdx.x; row < count; row += gridDim.x) {
    Rows::template load<Bf16>(x + row * ldX, vectors);
    for (int i = threadIdx.x; i < Rows::kPairs; i += Rows::kThreads)
      shares[i] = cuda::factor<Bf16>(gradient[row * ldGradient + i]);
    __syncthreads();
    for (int element = threadIdx.x; element < Rows::kFloats; element += Rows::kThreads) {
      const int i = element / Size, c = element % Size;
      float sum = 0;
      for (int j = 0; j < Count; ++j)
        if (i != j)
          sum = fmaf(shares[Rows::place(i, j)], vectors[j * Rows::kApart + c], sum);
        else if (Self)
          sum = fmaf(2 * shares[Rows::place(i, i)], vectors[i * Rows::kApart + c], sum);
      dx[row * Rows::kFloats + element] = sum;
    }
    __syncthreads();
  }
}

} // namespace detail

/// `products` of each row of x; with Bf16 the vectors are rounded to bfloat16.
template <int64_t Count, int64_t Size, bool Self, bool Bf16 = false>
void dotInteraction(genrec_step *step, const genrec_domain *domain, const float *x, int64_t ldX,
                    float *products) {
  using Rows = detail::Interaction<Count, Size, Self>;
  if (domain->capacity > 0)
    GENREC_CUDA_LAUNCH(streamOf(step), Rows::shape(domain->capacity, Count * Rows::kApart),
                       (detail::interact<Count, Size, Self, Bf16>), domain->device, x, ldX,
                       products);
}

/// dx of each row, from the gradient of its products; with Bf16 both factors are rounded.
template <int64_t Count, int64_t Size, bool Self, bool Bf16 = false>
void dotInteractionGradient(genrec_step *step, const genrec_domain *domain, const float *x,
                            int64_t ldX, const float *gradient, int64_t ldGradient, float *dx) {
  using Rows = detail::Interaction<Count, Size, Self>;
  if (domain->capacity > 0)
    GENREC_CUDA_LAUNCH(streamOf(step), Rows::shape(domain->capacity, Count * Rows::kApart + Rows::kPairs),
                       (detail::interactGradient<Count, Size, Self, Bf16>), domain->device, x, ldX,
                       gradient, ldGradient, dx);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_INTERACTION_H
