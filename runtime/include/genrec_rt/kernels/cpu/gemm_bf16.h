//===- gemm_bf16.h - Matrix products of bfloat16 factors --------*- C++ -*-===//
//
// The products of gemm.h and gemm_rows.h with both sides rounded to bfloat16 (bf16.h) and float
// sums. With AVX512-BF16 both sides are packed as pairs along the contraction, which one
// instruction multiplies and adds: twice the products of fma. The left side is packed for a block
// of rows at a time. Elsewhere both sides are rounded in float, and the products are those of
// float.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_GEMM_BF16_H
#define GENREC_RT_KERNELS_CPU_GEMM_BF16_H

#include "genrec_rt/kernels/cpu/bf16.h"
#include "genrec_rt/kernels/cpu/gemm.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Rows of the left side that are rounded at a time: a multiple of every tile height, and few
/// enough for them to stay in the second-level cache.
constexpr int64_t bf16RowBlock(int64_t depth) { return depth <= 64 ? 96 : depth <= 512 ? 48 : 24; }

/// Rows of both sides of a contraction that are rounded at a time.
constexpr int64_t bf16ContractionBlock(int64_t k, int64_t n) { return k + n <= 256 ? 128 : 64; }

#ifdef GENREC_AVX512_BF16

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

constexpr int64_t pairsOf(int64_t depth) { return (depth + 1) / 2; }

/// Whole vectors only: a tail of columns costs less than its reductions.
constexpr ColumnPlan planPairColumns(int64_t columns) { return planColumns(1, columns); }

constexpr int64_t packedPairs(int64_t depth, int64_t columns) {
  return pairsOf(depth) * planPairColumns(columns).vectors() * kLanes;
}

/// Packs rows [depth] as pairs of their elements, the last with 0 where depth is odd.
inline void packPairs(const float *from, int64_t ld, int64_t rows, int64_t depth, uint32_t *to) {
  const int64_t pairs = pairsOf(depth);
  for (int64_t row = 0; row < rows; ++row, from += ld, to += pairs) {
    auto *halves = reinterpret_cast<unsigned char *>(to);
    for (int64_t k = 0; k < depth; k += kLanes) {
      const int64_t left = depth - k;
      const VecHalves rounded =
          toBf16(left < kLanes ? loadTail(from + k, static_cast<int>(left)) : load(from + k));
      const int64_t bytes = (left < kLanes ? roundUp(left, 2) : kLanes) * 2;
      __builtin_memcpy(halves + k * 2, &rounded, static_cast<size_t>(bytes));
    }
  }
}

/// Packs pairs of rows: lane by lane row 2p and row 2p + 1, the last with 0 where there is no
/// other. `to` is [pairs, ldTo], padded with zeros to whole vectors.
inline void packRowPairs(const float *from, int64_t ld, int64_t rows, int64_t width, uint32_t *to,
                         int64_t ldTo) {
  for (int64_t row = 0; row < rows; row += 2, from += 2 * ld, to += ldTo) {
    const bool isAlone = row + 1 == rows;
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t left = width - c;
      const LaneMask mask = laneMask(left < kLanes ? static_cast<int>(left) : kLanes);
      const VecF low = loadMasked(from + c, mask);
      const VecF high = isAlone ? VecF{} : loadMasked(from + ld + c, mask);
      storeU(to + c, pairBf16(low, high));
    }
  }
}

/// Packs W [depth, columns] (or its transpose) into panels, each [pairs, vectors * kLanes].
inline void packPairColumns(const ColumnPlan &plan, const float *w, int64_t ldw, bool transposed,
                            int64_t depth, uint32_t *packed) {
  const int64_t pairs = pairsOf(depth);
  for (int panel = 0; panel < plan.panels; ++panel) {
    const int begin = plan.panelBegin(panel) * kLanes;
    const int width = plan.panelVectors(panel) * kLanes;
    const int left = plan.columns - begin;
    const int valid = left < width ? left : width;
    if (!transposed) {
      packRowPairs(w + begin, ldw, depth, valid, packed, width);
    } else {
      if (valid < width)
        __builtin_memset(packed, 0, static_cast<size_t>(pairs * width) * 4);
      for (int n = 0; n < valid; ++n)
        for (int64_t k = 0; k < depth; k += kLanes) { // a column lies in a row
          const int64_t rest = depth - k;
          const int count = rest < kLanes ? static_cast<int>(rest) : kLanes;
          const VecHalves rounded = toBf16(loadTail(w + (begin + n) * ldw + k, count));
          uint32_t few[kLanes / 2];
          __builtin_memcpy(few, &rounded, sizeof(few));
          for (int p = 0; p < (count + 1) / 2; ++p)
            packed[(k / 2 + p) * width + n] = few[p];
        }
    }
    packed += pairs * width;
  }
}

/// acc[r][v] += sum over s < pairs of a[r * aRow + s * aStep] times b[s * bStep + v * kLanes ...].
template <int R, int NV>
GENREC_SIMD void tileMultiplyPairs(VecF (&acc)[R][NV], const uint32_t *a, int64_t aRow,
                                   int64_t aStep, const uint32_t *b, int64_t bStep, int64_t pairs) {
  for (int64_t s = 0; s < pairs; ++s) {
    VecU right[NV];
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      right[v] = loadU(b + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const VecU left = splatU(a[r * aRow]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v)
        acc[r][v] = addPairs(acc[r][v], left, right[v]);
    }
    a += aStep;
    b += bStep;
  }
}

//===----------------------------------------------------------------------===//
// y = epilogue(x W)
//===----------------------------------------------------------------------===//

/// Rows [begin, end), packed at `x`, against one panel.
template <int NV, class E>
__attribute__((noinline)) void
matmulPairPanel(const MatmulSides &sides, const E &epilogue, const uint32_t *x,
                const uint32_t *panel, int64_t begin, int64_t end, int64_t column, int lastLanes) {
  constexpr int R = tileRows(NV);
  const LaneMask last = laneMask(lastLanes);
  const int64_t pairs = pairsOf(sides.depth);
  for (int64_t row = begin; row < end; row += R, x += R * pairs) {
    VecF acc[R][NV];
    tileClear(acc);
    const int rows = end - row < R ? static_cast<int>(end - row) : R;
    float *y = sides.y + row * sides.ldy + column;
    // There is room for a whole tile at `x`; rows that do not exist are not stored. Lines of the
    // result are asked for on the way, as in matmulPanel.
    const int64_t share = pairs / R;
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        __builtin_prefetch(y + (r < rows ? r : 0) * sides.ldy + v * kLanes, /*rw=*/1);
      const int64_t from = r * share;
      tileMultiplyPairs(acc, x + from, pairs, 1, panel + from * NV * kLanes, NV * kLanes,
                        r < R - 1 ? share : pairs - from);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, y += sides.ldy) {
      if (r >= rows)
        break;
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) {
        if (v == NV - 1)
          epilogue.template finish<true>(acc[r][v], row + r, column + v * kLanes, y + v * kLanes,
                                         last);
        else
          epilogue.template finish<false>(acc[r][v], row + r, column + v * kLanes, y + v * kLanes,
                                          last);
      }
    }
  }
}

/// Rows [begin, end); `sides.packed` is what packBf16Columns wrote.
template <int K, int N, class E>
inline void matmulBf16Range(const MatmulSides &sides, const E &epilogue, int64_t begin,
                            int64_t end) {
  constexpr ColumnPlan plan = planPairColumns(N);
  constexpr int lastLanes = plan.lastLanes();
  constexpr int64_t kBlock = bf16RowBlock(K), pairs = pairsOf(K);
  alignas(64) uint32_t block[kBlock * pairs];
  const auto *packed = reinterpret_cast<const uint32_t *>(sides.packed);
  for (int64_t row = begin; row < end; row += kBlock) {
    const int64_t rows = end - row < kBlock ? end - row : kBlock;
    packPairs(sides.x + row * sides.ldx, sides.ldx, rows, K, block);
    if (rows < kBlock) { // the last tile reads on
      const int64_t more = kBlock - rows < 16 ? kBlock - rows : 16;
      __builtin_memset(block + rows * pairs, 0, static_cast<size_t>(more * pairs) * 4);
    }
    const uint32_t *panel = packed;
    for (int p = 0; p < plan.panels; ++p) {
      const int64_t column = plan.panelBegin(p) * kLanes;
      const int lanes = p == plan.panels - 1 ? lastLanes : kLanes;
      if (p < plan.wideCount)
        matmulPairPanel<plan.wide>(sides, epilogue, block, panel, row, row + rows, column, lanes);
      else if constexpr (plan.wideCount < plan.panels)
        matmulPairPanel<plan.wide - 1>(sides, epilogue, block, panel, row, row + rows, column,
                                       lanes);
      panel += pairs * plan.panelVectors(p) * kLanes;
    }
  }
}

/// Packs W for matmulBf16Range, in the room of matmulScratchBytes<K, N>.
template <int K, int N>
inline void packBf16Columns(const float *w, int64_t ldw, bool transposed, float *packed) {
  static_assert(packedPairs(K, N) <= packedFloats(K, N));
  packPairColumns(planPairColumns(N), w, ldw, transposed, K, reinterpret_cast<uint32_t *>(packed));
}

//===----------------------------------------------------------------------===//
// dw = x^T dy
//===----------------------------------------------------------------------===//

/// part[r][...] (+)= sum over pairs of rows of x[.][r] times dy[.][...], for R rows of the result.
template <int R, int NV>
__attribute__((noinline)) void contractPairs(const uint32_t *x, int64_t ldx, const uint32_t *dy,
                                             int64_t lddy, int64_t pairs, bool first, float *part,
                                             int64_t ldPart) {
  VecF acc[R][NV];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      acc[r][v] = first ? VecF{} : load(part + r * ldPart + v * kLanes);
  tileMultiplyPairs(acc, x, 1, ldx, dy, lddy, pairs);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      store(part + r * ldPart + v * kLanes, acc[r][v]);
}

/// All K rows of the result against one panel of NV vectors of dy.
template <int K, int NV>
inline void contractPairPanel(const uint32_t *x, int64_t ldx, const uint32_t *dy, int64_t lddy,
                              int64_t pairs, bool first, float *part, int64_t ldPart) {
  constexpr int R = bestTileRows(K, NV);
  int k = 0;
  for (; k + R <= K; k += R)
    contractPairs<R, NV>(x + k, ldx, dy, lddy, pairs, first, part + k * ldPart, ldPart);
  if constexpr (K % R != 0)
    contractPairs<K % R, NV>(x + k, ldx, dy, lddy, pairs, first, part + k * ldPart, ldPart);
}

/// contractRange with both sides rounded.
template <int K, int N>
inline void contractBf16Range(const ContractionSides &sides, int64_t begin, int64_t end,
                              float *part, int64_t ldPart, bool first = true) {
  constexpr ColumnPlan plan = planPairColumns(N);
  constexpr int64_t kBlock = bf16ContractionBlock(K, N);
  constexpr int64_t ldx = roundUp(K, kLanes), lddy = roundUp(N, kLanes);
  alignas(64) uint32_t x[kBlock / 2 * ldx];
  alignas(64) uint32_t dy[kBlock / 2 * lddy];
  for (int64_t row = begin; row < end; row += kBlock) {
    const int64_t rows = end - row < kBlock ? end - row : kBlock, pairs = pairsOf(rows);
    packRowPairs(sides.x + row * sides.ldx, sides.ldx, rows, K, x, ldx);
    packRowPairs(sides.dy + row * sides.lddy, sides.lddy, rows, N, dy, lddy);
    const bool isFirst = first && row == begin;
    for (int p = 0; p < plan.panels; ++p) {
      const int64_t column = plan.panelBegin(p) * kLanes;
      if (p < plan.wideCount)
        contractPairPanel<K, plan.wide>(x, ldx, dy + column, lddy, pairs, isFirst, part + column,
                                        ldPart);
      else if constexpr (plan.wideCount < plan.panels)
        contractPairPanel<K, plan.wide - 1>(x, ldx, dy + column, lddy, pairs, isFirst,
                                            part + column, ldPart);
    }
  }
}

#else // GENREC_AVX512_BF16

/// An epilogue that sees rows from `row` on as rows from 0 on.
template <class E> struct EpilogueFrom {
  const E &whole;
  int64_t first;

  template <bool Masked>
  GENREC_SIMD void finish(VecF t, int64_t row, int64_t column, float *y, LaneMask mask) const {
    whole.template finish<Masked>(t, first + row, column, y, mask);
  }
};

template <int K, int N, class E>
inline void matmulBf16Range(const MatmulSides &sides, const E &epilogue, int64_t begin,
                            int64_t end) {
  constexpr int64_t kBlock = bf16RowBlock(K);
  alignas(64) float block[kBlock * K];
  for (int64_t row = begin; row < end; row += kBlock) {
    const int64_t rows = end - row < kBlock ? end - row : kBlock;
    roundBf16Rows(sides.x + row * sides.ldx, sides.ldx, rows, K, block, K);
    const MatmulSides rounded{block, K, sides.packed, sides.y + row * sides.ldy, sides.ldy, K};
    matmulRange<K, N>(rounded, EpilogueFrom<E>{epilogue, row}, 0, rows);
  }
}

template <int K, int N>
inline void packBf16Columns(const float *w, int64_t ldw, bool transposed, float *packed) {
  packColumns(planColumns(K, N), w, ldw, transposed, K, packed);
  roundBf16(packed, packedFloats(K, N), packed);
}

template <int K, int N>
inline void contractBf16Range(const ContractionSides &sides, int64_t begin, int64_t end,
                              float *part, int64_t ldPart, bool first = true) {
  constexpr int64_t kBlock = bf16ContractionBlock(K, N);
  alignas(64) float x[kBlock * K];
  alignas(64) float dy[kBlock * N];
  for (int64_t row = begin; row < end; row += kBlock) {
    const int64_t rows = end - row < kBlock ? end - row : kBlock;
    roundBf16Rows(sides.x + row * sides.ldx, sides.ldx, rows, K, x, K);
    roundBf16Rows(sides.dy + row * sides.lddy, sides.lddy, rows, N, dy, N);
    contractRange<K, N>({x, K, dy, N}, 0, rows, part, ldPart, first && row == begin);
  }
}

#endif

} // namespace detail

/// matmul with x and W rounded to bfloat16.
template <int K, int N, bool TransposeW = false, class E = Epilogue<>>
inline void matmulBf16(genrec_rt_pool *pool, int64_t m, const float *x, int64_t ldx, const float *w,
                       int64_t ldw, float *y, int64_t ldy, const E &epilogue, void *scratch) {
  float *packed = static_cast<float *>(scratch);
  detail::packBf16Columns<K, N>(w, ldw, TransposeW, packed);
  detail::MatmulSides sides{x, ldx, packed, y, ldy, K};
  parallelFor(pool, m, detail::kRowGrain, [&](int64_t begin, int64_t end, int64_t) {
    detail::matmulBf16Range<K, N>(sides, epilogue, begin, end);
  });
}

/// matmulRows with x and dy rounded to bfloat16.
template <int K, int N, bool Accumulate = false>
inline void matmulRowsBf16(genrec_rt_pool *pool, int64_t m, const float *x, int64_t ldx,
                           const float *dy, int64_t lddy, float *dw, int64_t lddw, void *scratch) {
  constexpr int64_t ldPart = roundUp(N, kLanes);
  float *parts = static_cast<float *>(scratch);
  detail::RowChunks chunks = detail::planRowChunks(m, K, N);
  detail::ContractionSides sides{x, ldx, dy, lddy};
  parallelFor(pool, m, chunks.rows, [&](int64_t begin, int64_t end, int64_t chunk) {
    detail::contractBf16Range<K, N>(sides, begin, end, parts + chunk * K * ldPart, ldPart);
  });
  detail::addPartials(pool, parts, chunks.count, K, N, ldPart, Accumulate, dw, lddw);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_GEMM_BF16_H
