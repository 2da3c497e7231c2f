//===- gemm.h - Matrix products of recommendation shapes --------*- C++ -*-===//
//
// Tall and skinny products: many rows, 50 to 512 columns. The right side is
// packed once per call into panels of a few vectors; row blocks of the left
// side then run against the panels with the result in registers, and the
// epilogue is applied before anything is stored.
//
// A width such as 50 = 3 * 16 + 2 would waste most of a fourth vector on two
// columns. Such a tail of up to kMaxTailColumns columns is computed the other
// way around instead: as dot products along the contraction, many at a time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_GEMM_H
#define GENREC_RT_KERNELS_CPU_GEMM_H

#include "genrec_rt/kernels/cpu/gemm_rows.h"
#include "genrec_rt/kernels/cpu/pack.h"
#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

enum class Activation { none, relu, silu, gelu, sigmoid, tanh };

template <Activation A> GENREC_SIMD VecF activate(VecF x) {
  if constexpr (A == Activation::relu)
    return x <= 0.0f ? VecF{} : x; // keeps NaN
  else if constexpr (A == Activation::silu)
    return silu(x);
  else if constexpr (A == Activation::gelu)
    return gelu(x);
  else if constexpr (A == Activation::sigmoid)
    return sigmoid(x);
  else if constexpr (A == Activation::tanh)
    return tanh(x);
  else
    return x;
}

/// What happens to a product before it is stored, in this order:
///   t = x W + bias;  pre = t (StorePre);  t = A(t);  t += residual;
///   y = t, or y + t (Accumulate).
/// Fields of absent parts are not read. `pre` and `residual` are [m, N] and
/// must not overlap y, except that `residual` may be y itself.
template <Activation A = Activation::none, bool HasBias = false,
          bool StorePre = false, bool HasResidual = false,
          bool Accumulate = false>
struct Epilogue {
  const float *bias = nullptr; ///< [N]
  float *pre = nullptr;
  int64_t ldPre = 0;
  const float *residual = nullptr;
  int64_t ldResidual = 0;

  /// Finishes the vector at (row, column); with Masked, the lanes in `mask`.
  template <bool Masked>
  GENREC_SIMD void finish(VecF t, int64_t row, int64_t column, float *y,
                          LaneMask mask) const {
    auto loadLanes = [&](const float *p) __attribute__((always_inline)) {
      if constexpr (Masked)
        return loadMasked(p, mask);
      else
        return load(p);
    };
    auto storeLanes = [&](float *p, VecF v) __attribute__((always_inline)) {
      if constexpr (Masked)
        storeMasked(p, v, mask);
      else
        store(p, v);
    };
    if constexpr (HasBias)
      t = t + loadLanes(bias + column);
    if constexpr (StorePre)
      storeLanes(pre + row * ldPre + column, t);
    t = activate<A>(t);
    if constexpr (HasResidual)
      t = t + loadLanes(residual + row * ldResidual + column);
    if constexpr (Accumulate)
      t = t + loadLanes(y);
    storeLanes(y, t);
  }
};

namespace detail {

/// Rows that run against all panels before the next ones: a multiple of every
/// tile height, few enough to stay in the first-level cache, and many enough that
/// a panel, which comes anew for each block, is used often.
constexpr int64_t rowBlock(int64_t depth) { return depth <= 64 ? 96 : 48; }
/// Rows per chunk of the parallel-for.
inline constexpr int64_t kRowGrain = 240;

//===----------------------------------------------------------------------===//
// y = epilogue(x W)
//===----------------------------------------------------------------------===//

/// The sides of one product; `packed` is W.
struct MatmulSides {
  const float *x;
  int64_t ldx;
  const float *packed;
  float *y;
  int64_t ldy;
  int64_t depth;
};

/// Rows [begin, end) against one panel of NV vectors at column `column`, of
/// which `lastLanes` lanes of the last vector exist.
template <int NV, class E>
__attribute__((noinline)) void
matmulPanel(const MatmulSides &sides, const E &epilogue, const float *panel,
            int64_t begin, int64_t end, int64_t column, int lastLanes) {
  constexpr int R = tileRows(NV);
  const LaneMask last = laneMask(lastLanes);
  for (int64_t row = begin; row < end; row += R) {
    VecF acc[R][NV];
    tileClear(acc);
    int rows = end - row < R ? static_cast<int>(end - row) : R;
    const float *x = sides.x + row * sides.ldx;
    float *y = sides.y + row * sides.ldy + column;
    if (rows == R) {
      // By the time that the sums are there, so are the lines that take them. They are asked
      // for row by row: at once they would have to wait for each other.
      const int64_t share = sides.depth / R;
      for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v)
          __builtin_prefetch(y + r * sides.ldy + v * kLanes, /*rw=*/1);
        int64_t from = r * share;
        tileMultiply(acc, x + from, sides.ldx, 1, panel + from * NV * kLanes, kLanes, NV * kLanes,
                     r < R - 1 ? share : sides.depth - from);
      }
    } else {
      const float *xs[R];
      for (int r = 0; r < R; ++r)
        xs[r] = x + (r < rows ? r : 0) * sides.ldx;
      tileMultiplyRows(acc, xs, panel, kLanes, NV * kLanes, sides.depth);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, y += sides.ldy) {
      if (r >= rows)
        break;
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) {
        if (v == NV - 1)
          epilogue.template finish<true>(acc[r][v], row + r,
                                         column + v * kLanes, y + v * kLanes,
                                         last);
        else
          epilogue.template finish<false>(acc[r][v], row + r,
                                          column + v * kLanes, y + v * kLanes,
                                          last);
      }
    }
  }
}

/// Rows [begin, end) against T tail columns at column `column`.
template <int T, class E>
__attribute__((noinline)) void
matmulTail(const MatmulSides &sides, const E &epilogue, const float *tail,
           int64_t begin, int64_t end, int64_t column) {
  constexpr int R = kLanes / T;
  const int64_t padded = roundUp(sides.depth, kLanes);
  const LaneMask last =
      laneMask(static_cast<int>(sides.depth - (padded - kLanes)));
  const LaneMask mask = laneMask(T);
  float sums[2 * kLanes] = {};
  for (int64_t row = begin; row < end; row += R) {
    int rows = end - row < R ? static_cast<int>(end - row) : R;
    const float *xs[R];
    for (int r = 0; r < R; ++r)
      xs[r] = sides.x + (row + (r < rows ? r : 0)) * sides.ldx;
    VecF acc[kLanes] = {};
    int64_t k = 0;
    for (; k < padded - kLanes; k += kLanes) {
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        VecF x = load(xs[r] + k);
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t)
          acc[r * T + t] =
              fma(x, load(tail + t * padded + k), acc[r * T + t]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      VecF x = loadMasked(xs[r] + k, last);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t)
        acc[r * T + t] = fma(x, load(tail + t * padded + k), acc[r * T + t]);
    }
    store(sums, sumEach(acc));
    for (int r = 0; r < rows; ++r)
      epilogue.template finish<true>(load(sums + r * T), row + r, column,
                                     sides.y + (row + r) * sides.ldy + column,
                                     mask);
  }
}

/// Rows [begin, end) of a product whose plan is a compile-time constant.
template <int K, int N, class E>
inline void matmulRange(const MatmulSides &sides, const E &epilogue,
                        int64_t begin, int64_t end) {
  constexpr ColumnPlan plan = planColumns(K, N);
  constexpr int lastLanes = plan.lastLanes();
  constexpr int64_t kBlock = rowBlock(K);
  for (int64_t row = begin; row < end; row += kBlock) {
    int64_t rowEnd = end - row < kBlock ? end : row + kBlock;
    const float *panel = sides.packed;
    for (int p = 0; p < plan.panels; ++p) {
      int64_t column = plan.panelBegin(p) * kLanes;
      int lanes = p == plan.panels - 1 ? lastLanes : kLanes;
      if (p < plan.wideCount)
        matmulPanel<plan.wide>(sides, epilogue, panel, row, rowEnd, column,
                               lanes);
      else if constexpr (plan.wideCount < plan.panels)
        matmulPanel<plan.wide - 1>(sides, epilogue, panel, row, rowEnd, column,
                                   lanes);
      panel += sides.depth * plan.panelVectors(p) * kLanes;
    }
    if constexpr (plan.tail() > 0)
      matmulTail<plan.tail()>(sides, epilogue, panel, row, rowEnd,
                              plan.tailBegin);
  }
}

} // namespace detail

/// Bytes of scratch that matmul<K, N> needs: the packed right side.
template <int K, int N> constexpr int64_t matmulScratchBytes() {
  return roundUp(detail::packedFloats(K, N) * 4, 64);
}

/// y[m, N] = epilogue(x[m, K] W). W is row-major [K, N], or [N, K] with
/// TransposeW (then y = x W^T). `y` must not overlap `x`.
template <int K, int N, bool TransposeW = false, class E = Epilogue<>>
inline void matmul(genrec_rt_pool *pool, int64_t m, const float *x, int64_t ldx,
                   const float *w, int64_t ldw, float *y, int64_t ldy,
                   const E &epilogue, void *scratch) {
  float *packed = static_cast<float *>(scratch);
  detail::packColumns(detail::planColumns(K, N), w, ldw, TransposeW, K, packed);
  detail::MatmulSides sides{x, ldx, packed, y, ldy, K};
  parallelFor(pool, m, detail::kRowGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                detail::matmulRange<K, N>(sides, epilogue, begin, end);
              });
}

} // namespace GENREC_RT_ISA

//===----------------------------------------------------------------------===//
// Sizes at run time (runtime/kernels/cpu/gemm.cpp)
//===----------------------------------------------------------------------===//

/// y[m, n] (+)= x[m, k] W with W [k, n], or [n, k] when `transposeW`.
void matmulDynamic(genrec_rt_pool *pool, bool transposeW, int64_t m, int64_t k,
                   int64_t n, const float *x, int64_t ldx, const float *w,
                   int64_t ldw, float *y, int64_t ldy, bool accumulate,
                   void *scratch);
int64_t matmulDynamicScratchBytes(int64_t k, int64_t n);

/// dw[k, n] (+)= x[m, k]^T dy[m, n].
void matmulRowsDynamic(genrec_rt_pool *pool, int64_t m, int64_t k, int64_t n,
                       const float *x, int64_t ldx, const float *dy,
                       int64_t lddy, float *dw, int64_t lddw, bool accumulate,
                       void *scratch);
int64_t matmulRowsDynamicScratchBytes(int64_t k, int64_t n);

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_GEMM_H
