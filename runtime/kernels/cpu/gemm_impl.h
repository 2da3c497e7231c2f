//===- gemm_impl.h - Matrix products of sizes known at run time -*- C++ -*-===//
//
// The same tiles as the static products, chosen by a switch per panel.
// Included by gemm.cpp and gemm.avx512.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_GEMM_IMPL_H
#define GENREC_RT_KERNELS_CPU_GEMM_IMPL_H

#include "dynamic_gemm.h"

#include "genrec_rt/kernels/cpu/gemm.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace {

using namespace detail;

template <class E>
void multiplyPanel(int vectors, const MatmulSides &sides, const E &epilogue,
                   const float *panel, int64_t begin, int64_t end,
                   int64_t column, int lastLanes) {
  switch (vectors) {
  case 1:
    return matmulPanel<1>(sides, epilogue, panel, begin, end, column, lastLanes);
  case 2:
    return matmulPanel<2>(sides, epilogue, panel, begin, end, column, lastLanes);
#if defined(GENREC_AVX512)
  case 3:
    return matmulPanel<3>(sides, epilogue, panel, begin, end, column, lastLanes);
  case 4:
    return matmulPanel<4>(sides, epilogue, panel, begin, end, column, lastLanes);
#endif
  }
}

template <class E>
void multiplyTail(int columns, const MatmulSides &sides, const E &epilogue,
                  const float *tail, int64_t begin, int64_t end,
                  int64_t column) {
  switch (columns) {
  case 1:
    return matmulTail<1>(sides, epilogue, tail, begin, end, column);
#if defined(GENREC_AVX512) || defined(GENREC_AVX2)
  case 2:
    return matmulTail<2>(sides, epilogue, tail, begin, end, column);
#endif
#if defined(GENREC_AVX512)
  case 3:
    return matmulTail<3>(sides, epilogue, tail, begin, end, column);
  case 4:
    return matmulTail<4>(sides, epilogue, tail, begin, end, column);
#endif
  }
}

template <class E>
void multiply(genrec_rt_pool *pool, int64_t m, int64_t n,
              const MatmulSides &sides, const E &epilogue) {
  const ColumnPlan plan = planColumns(sides.depth, n);
  const int lastLanes = plan.lastLanes();
  const int64_t block = rowBlock(sides.depth);
  parallelFor(pool, m, kRowGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; row += block) {
      int64_t rowEnd = end - row < block ? end : row + block;
      const float *panel = sides.packed;
      for (int p = 0; p < plan.panels; ++p) {
        multiplyPanel(plan.panelVectors(p), sides, epilogue, panel, row, rowEnd,
                      plan.panelBegin(p) * kLanes,
                      p == plan.panels - 1 ? lastLanes : kLanes);
        panel += sides.depth * plan.panelVectors(p) * kLanes;
      }
      if (plan.tail() > 0)
        multiplyTail(plan.tail(), sides, epilogue, panel, row, rowEnd,
                     plan.tailBegin);
    }
  });
}

/// The result's rows in tiles of the full height, then of 4, 2 and 1 rows.
template <int NV>
void contractRows(const float *x, int64_t ldx, int64_t k, const DyPanel &panel,
                  int64_t rows, bool first, float *part, int64_t ldPart) {
  constexpr int R = tileRows(NV);
  const LineAhead none{x, 0};
  int64_t i = 0;
  for (; i + R <= k; i += R)
    contractTile<R, NV, false>(x + i, ldx, panel, none, rows, first, part + i * ldPart, ldPart);
  for (; i + 4 <= k; i += 4)
    contractTile<4, NV, false>(x + i, ldx, panel, none, rows, first, part + i * ldPart, ldPart);
  for (; i + 2 <= k; i += 2)
    contractTile<2, NV, false>(x + i, ldx, panel, none, rows, first, part + i * ldPart, ldPart);
  for (; i < k; ++i)
    contractTile<1, NV, false>(x + i, ldx, panel, none, rows, first, part + i * ldPart, ldPart);
}

/// Rows whose columns are copied into a panel at a time.
constexpr int64_t kBlock = 96;

void contractColumns(const ContractionSides &sides, int64_t k, int64_t n,
                     int64_t begin, int64_t end, float *part, int64_t ldPart) {
  alignas(64) float copy[kBlock * kMaxTileVectors * kLanes];
  const DyPanel panel{copy, nullptr, 0, {}};
  constexpr int64_t kWidth = kMaxTileVectors * kLanes;
  for (int64_t row = begin; row < end; row += kBlock) {
    int64_t rows = end - row < kBlock ? end - row : kBlock;
    const float *x = sides.x + row * sides.ldx;
    for (int64_t column = 0; column < n; column += kWidth) {
      int64_t valid = n - column < kWidth ? n - column : kWidth;
      int vectors = vectorsFor(static_cast<int>(valid));
      int64_t width = vectors * kLanes;
      for (int64_t i = 0; i < rows; ++i) {
        const float *from = sides.dy + (row + i) * sides.lddy + column;
        for (int64_t c = 0; c < width; ++c)
          copy[i * width + c] = c < valid ? from[c] : 0.0f;
      }
      bool first = row == begin;
      float *to = part + column;
      switch (vectors) {
      case 1:
        contractRows<1>(x, sides.ldx, k, panel, rows, first, to, ldPart);
        break;
      case 2:
        contractRows<2>(x, sides.ldx, k, panel, rows, first, to, ldPart);
        break;
#if defined(GENREC_AVX512)
      case 3:
        contractRows<3>(x, sides.ldx, k, panel, rows, first, to, ldPart);
        break;
      case 4:
        contractRows<4>(x, sides.ldx, k, panel, rows, first, to, ldPart);
        break;
#endif
      }
    }
  }
}

int64_t productScratchBytes(int64_t k, int64_t n) {
  return roundUp(packedFloats(k, n) * 4, 64);
}

void runProduct(genrec_rt_pool *pool, bool transposeW, int64_t m, int64_t k,
                int64_t n, const float *x, int64_t ldx, const float *w,
                int64_t ldw, float *y, int64_t ldy, bool accumulate,
                void *scratch) {
  float *packed = static_cast<float *>(scratch);
  packColumns(planColumns(k, n), w, ldw, transposeW, k, packed);
  MatmulSides sides{x, ldx, packed, y, ldy, k};
  if (accumulate)
    multiply(pool, m, n, sides,
             Epilogue<Activation::none, false, false, false, true>{});
  else
    multiply(pool, m, n, sides, Epilogue<>{});
}

int64_t contractionScratchBytes(int64_t k, int64_t n) {
  return maxRowChunks(k, n) * k * roundUp(n, kLanes) * 4;
}

void runContraction(genrec_rt_pool *pool, int64_t m, int64_t k, int64_t n,
                    const float *x, int64_t ldx, const float *dy, int64_t lddy,
                    float *dw, int64_t lddw, bool accumulate, void *scratch) {
  int64_t ldPart = roundUp(n, kLanes);
  float *parts = static_cast<float *>(scratch);
  RowChunks chunks = planRowChunks(m, k, n);
  ContractionSides sides{x, ldx, dy, lddy};
  parallelFor(pool, m, chunks.rows,
              [&](int64_t begin, int64_t end, int64_t chunk) {
                contractColumns(sides, k, n, begin, end,
                                parts + chunk * k * ldPart, ldPart);
              });
  addPartials(pool, parts, chunks.count, k, n, ldPart, accumulate, dw, lddw);
}

constexpr DynamicGemm kDynamicGemm = {runProduct, productScratchBytes,
                                      runContraction, contractionScratchBytes};

} // namespace
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_GEMM_IMPL_H
