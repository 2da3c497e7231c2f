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

#ifndef GENREC_RT_KERNELS_GEMM_H
#define GENREC_RT_KERNELS_GEMM_H

#include "genrec_rt/kernels/math.h"
#include "genrec_rt/kernels/pack.h"
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
/// tile height, and few enough to stay in the first-level cache.
inline constexpr int64_t kRowBlock = 48;
/// Rows per chunk of the parallel-for.
inline constexpr int64_t kRowGrain = 5 * kRowBlock;
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
    if (rows == R) {
      tileMultiply(acc, x, sides.ldx, 1, panel, kLanes, NV * kLanes,
                   sides.depth);
    } else {
      const float *xs[R];
      for (int r = 0; r < R; ++r)
        xs[r] = x + (r < rows ? r : 0) * sides.ldx;
      tileMultiplyRows(acc, xs, panel, kLanes, NV * kLanes, sides.depth);
    }
    float *y = sides.y + row * sides.ldy + column;
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
  for (int64_t row = begin; row < end; row += kRowBlock) {
    int64_t rowEnd = end - row < kRowBlock ? end : row + kRowBlock;
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

//===----------------------------------------------------------------------===//
// dw = x^T dy: a contraction over rows
//===----------------------------------------------------------------------===//

namespace detail {

/// Rows that a panel of dy is taken over while it stays in the first-level
/// cache: the more work there is per row, the more of them.
constexpr int64_t contractionBlock(int64_t k, int64_t n) {
  return k * n < 128 * 128 ? 64 : 128;
}
inline constexpr int64_t kMostContractionBlock = 128;
/// No chunk of rows is smaller.
inline constexpr int64_t kLeastRowChunk = 192;

/// How the rows of a contraction are cut: a function of the sizes only. Each
/// chunk yields a partial result and the partial results are added in order.
struct RowChunks {
  int64_t rows, count;
};

constexpr int64_t maxRowChunks(int64_t k, int64_t n) {
  int64_t fit = (int64_t(1) << 21) / (k * roundUp(n, kLanes));
  return fit < 8 ? 8 : fit > 32 ? 32 : fit;
}
constexpr RowChunks planRowChunks(int64_t m, int64_t k, int64_t n) {
  int64_t most = maxRowChunks(k, n);
  int64_t rows = roundUp((m + most - 1) / most, 64);
  if (rows < kLeastRowChunk)
    rows = kLeastRowChunk;
  return {rows, (m + rows - 1) / rows};
}

/// Half cycles that one step of a tile takes: bound by multiply-adds, by loads, or by
/// the latency of a short chain.
constexpr int tileStepCost(int rows, int vectors) {
  int cost = rows * vectors;
  if (cost < rows + vectors)
    cost = rows + vectors;
  return cost < 8 ? 8 : cost;
}

/// The tile height that takes `rows` rows in the least time.
constexpr int bestTileRows(int rows, int vectors) {
  int best = tileRows(vectors), bestCost = 1 << 30;
  for (int r = tileRows(vectors); r > 0; --r) {
    int cost = rows / r * tileStepCost(r, vectors) +
               (rows % r ? tileStepCost(rows % r, vectors) : 0);
    if (cost < bestCost)
      best = r, bestCost = cost;
  }
  return best;
}

/// part[r][...] (+)= sum over `rows` rows of x[row][r] * panel[row][...].
template <int R, int NV>
__attribute__((noinline)) void
contractTile(const float *x, int64_t ldx, const float *panel, int64_t rows,
             bool first, float *part, int64_t ldPart) {
  VecF acc[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      acc[r][v] = first ? VecF{} : load(part + r * ldPart + v * kLanes);
  tileMultiply(acc, x, 1, ldx, panel, kLanes, NV * kLanes, rows);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      store(part + r * ldPart + v * kLanes, acc[r][v]);
}

struct ContractionSides {
  const float *x;
  int64_t ldx;
  const float *dy;
  int64_t lddy;
};

/// Asks for the rows of the next block a few at a time, while tiles of this
/// one are computed.
struct RowPrefetch {
  const ContractionSides &sides;
  int64_t row, end, step; ///< rows left to ask for, and how many at a time
  int64_t xBytes, dyBytes;

  void next() {
    int64_t until = end - row < step ? end : row + step;
    for (; row < until; ++row) {
      const char *x = reinterpret_cast<const char *>(sides.x + row * sides.ldx);
      const char *dy =
          reinterpret_cast<const char *>(sides.dy + row * sides.lddy);
      for (int64_t byte = 0; byte < xBytes; byte += 64)
        __builtin_prefetch(x + byte, 0, 2);
      for (int64_t byte = 0; byte < dyBytes; byte += 64)
        __builtin_prefetch(dy + byte, 0, 2);
    }
  }
};

/// All K rows of the result against one panel of NV vectors of dy. The panel
/// is copied first: aligned and dense, it is read K / R times.
template <int K, int NV>
inline void contractPanel(const ContractionSides &sides, RowPrefetch &prefetch,
                          int64_t row, int64_t rows, int64_t column,
                          int lastLanes, bool first, float *part,
                          int64_t ldPart) {
  constexpr int R = bestTileRows(K, NV);
  alignas(64) float panel[kMostContractionBlock * NV * kLanes];
  const LaneMask last = laneMask(lastLanes);
  const float *dy = sides.dy + row * sides.lddy + column;
  for (int64_t i = 0; i < rows; ++i, dy += sides.lddy) {
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      store(panel + (i * NV + v) * kLanes,
            v == NV - 1 ? loadMasked(dy + v * kLanes, last)
                        : load(dy + v * kLanes));
  }
  const float *x = sides.x + row * sides.ldx;
  part += column;
  int k = 0;
  for (; k + R <= K; k += R) {
    contractTile<R, NV>(x + k, sides.ldx, panel, rows, first, part + k * ldPart,
                        ldPart);
    prefetch.next();
  }
  if constexpr (K % R != 0)
    contractTile<K % R, NV>(x + k, sides.ldx, panel, rows, first,
                            part + k * ldPart, ldPart);
}

/// The T tail columns of the result, computed with the K rows as lanes.
template <int T>
__attribute__((noinline)) void
contractTail(const ContractionSides &sides, int64_t begin, int64_t end, int k,
             int64_t column, float *part, int64_t ldPart) {
  constexpr int NV = kMaxTileVectors;
  const float *dy = sides.dy + begin * sides.lddy + column;
  for (int first = 0; first < k; first += NV * kLanes) {
    int lanes = k - first < NV * kLanes ? k - first : NV * kLanes;
    VecF acc[T][NV];
    tileClear(acc);
    LaneMask masks[NV];
    for (int v = 0; v < NV; ++v) {
      int left = lanes - v * kLanes;
      masks[v] = laneMask(left < 0 ? 0 : left < kLanes ? left : kLanes);
    }
    for (int64_t row = begin; row < end; ++row) {
      const float *x = sides.x + row * sides.ldx + first;
      const float *d = dy + (row - begin) * sides.lddy;
      VecF right[NV];
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        right[v] = loadMasked(x + v * kLanes, masks[v]);
#pragma GCC unroll 4
      for (int t = 0; t < T; ++t) {
        VecF left = splat(d[t]);
#pragma GCC unroll 4
        for (int v = 0; v < NV; ++v)
          acc[t][v] = fma(left, right[v], acc[t][v]);
      }
    }
    float lanesOf[NV * kLanes];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        store(lanesOf + v * kLanes, acc[t][v]);
      for (int lane = 0; lane < lanes; ++lane)
        part[(first + lane) * ldPart + column + t] = lanesOf[lane];
    }
  }
}

/// The partial result of the rows [begin, end), row-major with `ldPart`.
template <int K, int N>
inline void contractRange(const ContractionSides &sides, int64_t begin,
                          int64_t end, float *part, int64_t ldPart) {
  constexpr ColumnPlan plan = planColumns(2 * kLanes, N);
  constexpr int lastLanes = plan.lastLanes();
  constexpr int64_t kBlock = contractionBlock(K, N);
  constexpr int64_t kTiles = plan.panels * (K / bestTileRows(K, plan.wide));
  constexpr int64_t kRowsPerTile = kBlock / (kTiles > 0 ? kTiles : 1) + 1;
  for (int64_t row = begin; row < end; row += kBlock) {
    int64_t rows = end - row < kBlock ? end - row : kBlock;
    int64_t after = end - row < 2 * kBlock ? end : row + 2 * kBlock;
    RowPrefetch prefetch{sides, row + rows, after, kRowsPerTile, K * 4, N * 4};
    for (int p = 0; p < plan.panels; ++p) {
      int64_t column = plan.panelBegin(p) * kLanes;
      int lanes = p == plan.panels - 1 ? lastLanes : kLanes;
      if (p < plan.wideCount)
        contractPanel<K, plan.wide>(sides, prefetch, row, rows, column, lanes,
                                    row == begin, part, ldPart);
      else if constexpr (plan.wideCount < plan.panels)
        contractPanel<K, plan.wide - 1>(sides, prefetch, row, rows, column, lanes,
                                        row == begin, part, ldPart);
    }
  }
  if constexpr (plan.tail() > 0)
    contractTail<plan.tail()>(sides, begin, end, K, plan.tailBegin, part,
                              ldPart);
}

/// dw (+)= the sum of `count` partial results, in their order.
inline void addPartials(genrec_rt_pool *pool, const float *parts, int64_t count,
                        int64_t k, int64_t n, int64_t ldPart, bool accumulate,
                        float *dw, int64_t lddw) {
  int64_t stride = k * ldPart;
  int64_t grain = (4096 + n - 1) / n;
  parallelFor(pool, k, grain, [=](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < n; column += kLanes) {
        int64_t left = n - column;
        LaneMask mask = laneMask(left < kLanes ? static_cast<int>(left) : kLanes);
        float *to = dw + row * lddw + column;
        const float *from = parts + row * ldPart + column;
        VecF total = accumulate ? loadMasked(to, mask) : VecF{};
        for (int64_t i = 0; i < count; ++i)
          total = total + loadMasked(from + i * stride, mask);
        storeMasked(to, total, mask);
      }
  });
}

} // namespace detail

/// Bytes of scratch that matmulRows<K, N> needs, for any number of rows.
template <int K, int N> constexpr int64_t matmulRowsScratchBytes() {
  return detail::maxRowChunks(K, N) * K * roundUp(N, kLanes) * 4;
}

/// dw[K, N] = x[m, K]^T dy[m, N], or dw += with Accumulate. Zero rows give zero.
template <int K, int N, bool Accumulate = false>
inline void matmulRows(genrec_rt_pool *pool, int64_t m, const float *x,
                       int64_t ldx, const float *dy, int64_t lddy, float *dw,
                       int64_t lddw, void *scratch) {
  constexpr int64_t ldPart = roundUp(N, kLanes);
  float *parts = static_cast<float *>(scratch);
  detail::RowChunks chunks = detail::planRowChunks(m, K, N);
  detail::ContractionSides sides{x, ldx, dy, lddy};
  parallelFor(pool, m, chunks.rows,
              [&](int64_t begin, int64_t end, int64_t chunk) {
                detail::contractRange<K, N>(sides, begin, end,
                                            parts + chunk * K * ldPart, ldPart);
              });
  detail::addPartials(pool, parts, chunks.count, K, N, ldPart, Accumulate, dw,
                      lddw);
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

#endif // GENREC_RT_KERNELS_GEMM_H
