//===- gemm_rows.h - Contraction of two matrices over their rows -*- C++ -*-===//
//
// dw = x^T dy: the gradient of a weight. Rows are cut into chunks whose number
// depends on the sizes only; each chunk yields a partial result, and the partial
// results are added in order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_GEMM_ROWS_H
#define GENREC_RT_KERNELS_CPU_GEMM_ROWS_H

#include "genrec_rt/kernels/cpu/pack.h"
#include "genrec_rt/parallel.h"
#include "genrec_rt/scratch_sizes.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

/// Rows that a panel of dy is taken over while it stays in the first-level cache.
inline constexpr int64_t kContractionBlock = 64;
/// Floats of a cache line.
inline constexpr int64_t kLineFloats = 16;
/// No chunk of rows is smaller.
inline constexpr int64_t kLeastRowChunk = 256;

/// How the rows of a contraction are cut: a function of the sizes only. Each
/// chunk yields a partial result and the partial results are added in order.
struct RowChunks {
  int64_t rows, count;
};

constexpr int64_t maxRowChunks(int64_t k, int64_t n) {
  return mostRowChunks(k, roundUp(n, kLanes));
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
  int most = tileRows(vectors) < rows ? tileRows(vectors) : rows;
  int best = most, bestCost = 1 << 30;
  for (int r = most; r > 0; --r) {
    int cost = rows / r * tileStepCost(r, vectors) +
               (rows % r ? tileStepCost(rows % r, vectors) : 0);
    if (cost < bestCost)
      best = r, bestCost = cost;
  }
  return best;
}

struct ContractionSides {
  const float *x;
  int64_t ldx;
  const float *dy;
  int64_t lddy;
};

/// A line in each of the rows to come, which a tile asks for while it computes, one in a step:
/// more at once would have to wait for each other.
struct LineAhead {
  const float *line;
  int64_t ld; ///< 0: there are no rows to come, and `line` is any
};

/// Hands the lines of the next block out to the tiles of this one.
struct LinesAhead {
  const ContractionSides &sides;
  int64_t row;             ///< the first of the next block
  int64_t dyLines, xLines; ///< of a row
  int64_t given = 0;

  LineAhead next() {
    int64_t line = given++;
    if (line < dyLines)
      return {sides.dy + row * sides.lddy + line * kLineFloats, sides.lddy};
    line -= dyLines;
    if (line < xLines)
      return {sides.x + row * sides.ldx + line * kLineFloats, sides.ldx};
    return {sides.x, 0};
  }
};

/// Columns of dy, and a dense and aligned copy of them, for it is read K / R times.
struct DyPanel {
  float *copy;
  const float *dy;
  int64_t lddy;
  LaneMask last; ///< lanes of the last vector that exist
};

/// part[r][...] (+)= sum over `rows` rows of x[row][r] * panel[row][...]. Fills: the copy is
/// made on the way, beside the multiply-adds.
template <int R, int NV, bool Fills>
__attribute__((noinline)) void
contractTile(const float *x, int64_t ldx, const DyPanel &panel, LineAhead ahead, int64_t rows,
             bool first, float *part, int64_t ldPart) {
  VecF acc[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      acc[r][v] = first ? VecF{} : load(part + r * ldPart + v * kLanes);
  float *copy = panel.copy;
  const float *dy = panel.dy;
  for (int64_t s = 0; s < rows; ++s) {
    VecF right[NV];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      if constexpr (Fills) {
        right[v] = v == NV - 1 ? loadMasked(dy + v * kLanes, panel.last) : load(dy + v * kLanes);
        store(copy + v * kLanes, right[v]);
      } else {
        right[v] = load(copy + v * kLanes);
      }
    }
    __builtin_prefetch(ahead.line, 0, 2);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      VecF left = splat(x[r]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v)
        acc[r][v] = fma(left, right[v], acc[r][v]);
    }
    x += ldx;
    dy += panel.lddy;
    copy += NV * kLanes;
    ahead.line += ahead.ld;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      store(part + r * ldPart + v * kLanes, acc[r][v]);
}

/// All K rows of the result against one panel of NV vectors of dy.
template <int K, int NV>
inline void contractPanel(const ContractionSides &sides, LinesAhead &ahead, int64_t row,
                          int64_t rows, int64_t column, int lastLanes, bool first, float *part,
                          int64_t ldPart) {
  constexpr int R = bestTileRows(K, NV);
  alignas(64) float copy[kContractionBlock * NV * kLanes];
  const DyPanel panel{copy, sides.dy + row * sides.lddy + column, sides.lddy, laneMask(lastLanes)};
  const float *x = sides.x + row * sides.ldx;
  part += column;
  contractTile<R, NV, true>(x, sides.ldx, panel, ahead.next(), rows, first, part, ldPart);
  int k = R;
  for (; k + R <= K; k += R)
    contractTile<R, NV, false>(x + k, sides.ldx, panel, ahead.next(), rows, first,
                               part + k * ldPart, ldPart);
  if constexpr (K % R != 0)
    contractTile<K % R, NV, false>(x + k, sides.ldx, panel, ahead.next(), rows, first,
                                   part + k * ldPart, ldPart);
}

/// The T tail columns of the result, computed with the K rows as lanes.
template <int T>
__attribute__((noinline)) void
contractTail(const ContractionSides &sides, int64_t begin, int64_t end, int k,
             int64_t column, bool first, float *part, int64_t ldPart) {
  constexpr int NV = kMaxTileVectors;
  const float *dy = sides.dy + begin * sides.lddy + column;
  for (int from = 0; from < k; from += NV * kLanes) {
    int lanes = k - from < NV * kLanes ? k - from : NV * kLanes;
    VecF acc[T][NV];
    tileClear(acc);
    LaneMask masks[NV];
    for (int v = 0; v < NV; ++v) {
      int left = lanes - v * kLanes;
      masks[v] = laneMask(left < 0 ? 0 : left < kLanes ? left : kLanes);
    }
    for (int64_t row = begin; row < end; ++row) {
      const float *x = sides.x + row * sides.ldx + from;
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
      for (int lane = 0; lane < lanes; ++lane) {
        float &sum = part[(from + lane) * ldPart + column + t];
        sum = first ? lanesOf[lane] : sum + lanesOf[lane];
      }
    }
  }
}

/// The partial result of the rows [begin, end), row-major with `ldPart`; added to
/// `part` unless they are its first.
template <int K, int N>
inline void contractRange(const ContractionSides &sides, int64_t begin,
                          int64_t end, float *part, int64_t ldPart,
                          bool first = true) {
  constexpr ColumnPlan plan = planColumns(2 * kLanes, N);
  constexpr int lastLanes = plan.lastLanes();
  for (int64_t row = begin; row < end; row += kContractionBlock) {
    int64_t rows = end - row < kContractionBlock ? end - row : kContractionBlock;
    bool isLast = row + rows == end;
    LinesAhead ahead{sides, row + rows, isLast ? 0 : roundUp(N, kLineFloats) / kLineFloats,
                     isLast ? 0 : roundUp(K, kLineFloats) / kLineFloats};
    for (int p = 0; p < plan.panels; ++p) {
      int64_t column = plan.panelBegin(p) * kLanes;
      int lanes = p == plan.panels - 1 ? lastLanes : kLanes;
      if (p < plan.wideCount)
        contractPanel<K, plan.wide>(sides, ahead, row, rows, column, lanes,
                                    first && row == begin, part, ldPart);
      else if constexpr (plan.wideCount < plan.panels)
        contractPanel<K, plan.wide - 1>(sides, ahead, row, rows, column, lanes,
                                        first && row == begin, part, ldPart);
    }
  }
  if constexpr (plan.tail() > 0)
    contractTail<plan.tail()>(sides, begin, end, K, plan.tailBegin, first,
                              part, ldPart);
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
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_GEMM_ROWS_H
