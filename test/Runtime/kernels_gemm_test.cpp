// Matrix products against sums in double precision, at sizes below, at and
// above tiles, vectors and chunks, with every epilogue.

#include "kernels_testing.h"

#include "../../runtime/kernels/cpu/gemm_impl.h"

#include <algorithm>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::Activation;
using k::Epilogue;

const int64_t kRows[] = {0, 1, 2, 5, 7, 8, 11, 12, 13, 47, 48, 49, 239, 240, 241, 600};

double activated(Activation a, double x) {
  switch (a) {
  case Activation::relu:
    return x > 0 ? x : 0;
  case Activation::silu:
    return x / (1 + std::exp(-x));
  case Activation::gelu:
    return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  case Activation::sigmoid:
    return 1 / (1 + std::exp(-x));
  case Activation::tanh:
    return std::tanh(x);
  default:
    return x;
  }
}

/// A matrix in a wider buffer; what lies between its rows must stay.
struct Matrix {
  int64_t rows, columns, ld;
  std::vector<float> values;
  Matrix(Random &random, int64_t rows, int64_t columns, int64_t gap)
      : rows(rows), columns(columns), ld(columns + gap),
        values(random.reals(rows * ld + 1)) {}
  float *data() { return values.data(); }
  float &at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * ld + j)]; }
};

void expectSameGaps(Matrix &a, Matrix &b) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = a.columns; j < a.ld; ++j)
      ASSERT_EQ(a.at(i, j), b.at(i, j)) << "between rows, at " << i << ", " << j;
  ASSERT_EQ(a.values.back(), b.values.back()) << "behind the last row";
}

/// Rounding of a sum of `terms` products of values in [-1, 1): errors of half
/// a unit of partial sums (which stay below 1.5 sqrt(terms) + 1) that add up like a
/// random walk, with a margin of four. One missing product is far above it.
double sumBound(int64_t terms) {
  double root = std::sqrt(static_cast<double>(terms));
  return 0x1p-24 * (1.5 * root + 1) * (4 * root + 4);
}

template <int K, int N, bool T, Activation A, bool Bias, bool Pre, bool Residual,
          bool Accumulate>
void checkMatmul(genrec_rt_pool *pool, int64_t m, int64_t gap) {
  Random random(static_cast<uint64_t>(m * 1000 + K * 10 + N));
  Matrix x(random, m, K, gap), w(random, T ? N : K, T ? K : N, gap);
  Matrix y(random, m, N, gap), pre(random, m, N, gap), residual(random, m, N, gap);
  std::vector<float> bias = random.reals(N);
  Matrix before = y, preBefore = pre;
  Scratch scratch(k::matmulScratchBytes<K, N>());
  Epilogue<A, Bias, Pre, Residual, Accumulate> epilogue{
      bias.data(), pre.data(), pre.ld, residual.data(), residual.ld};
  k::matmul<K, N, T>(pool, m, x.data(), x.ld, w.data(), w.ld, y.data(), y.ld,
                     epilogue, scratch.data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double total = Bias ? bias[static_cast<size_t>(j)] : 0;
      for (int64_t s = 0; s < K; ++s)
        total += static_cast<double>(x.at(i, s)) * (T ? w.at(j, s) : w.at(s, j));
      double expected = activated(A, total) + (Residual ? residual.at(i, j) : 0) +
                        (Accumulate ? before.at(i, j) : 0);
      ASSERT_NEAR(y.at(i, j), expected, 2 * sumBound(K)) << m << ": " << i << ", " << j;
      if (Pre)
        ASSERT_NEAR(pre.at(i, j), total, sumBound(K));
      else
        ASSERT_EQ(pre.at(i, j), preBefore.at(i, j));
    }
  expectSameGaps(y, before);
  expectSameGaps(pre, preBefore);
  EXPECT_TRUE(scratch.guardIsWhole());
}

template <int K, int N> void checkShape() {
  Pool pool(3);
  for (int64_t m : kRows) {
    checkMatmul<K, N, false, Activation::none, false, false, false, false>(pool, m, 3);
    checkMatmul<K, N, true, Activation::none, false, false, false, false>(nullptr, m, 0);
  }
}

KERNEL_TEST(KernelsGemm, ShapesOfModels) {
  checkShape<50, 200>();
  checkShape<200, 50>();
  checkShape<50, 50>();
  checkShape<64, 64>();
}
KERNEL_TEST(KernelsGemm, SmallAndOddShapes) {
  checkShape<1, 1>();
  checkShape<3, 5>();
  checkShape<16, 16>();
  checkShape<33, 17>();
  checkShape<40, 19>();
  checkShape<31, 52>();
  checkShape<17, 129>();
}

KERNEL_TEST(KernelsGemm, Epilogues) {
  for (int64_t m : {1, 49, 300}) {
    checkMatmul<50, 50, false, Activation::silu, true, true, false, false>(nullptr, m, 5);
    checkMatmul<50, 50, false, Activation::none, true, false, true, false>(nullptr, m, 5);
    checkMatmul<40, 40, false, Activation::relu, false, true, true, true>(nullptr, m, 5);
    checkMatmul<40, 18, true, Activation::gelu, true, true, true, true>(nullptr, m, 5);
    checkMatmul<40, 18, false, Activation::sigmoid, true, false, false, false>(nullptr, m, 5);
    checkMatmul<40, 18, false, Activation::tanh, false, false, false, true>(nullptr, m, 0);
  }
}

KERNEL_TEST(KernelsGemm, ResidualMayBeTheOutput) {
  Random random(4);
  Matrix x(random, 60, 40, 0), w(random, 40, 40, 0), y(random, 60, 40, 0);
  Matrix before = y;
  Scratch scratch(k::matmulScratchBytes<40, 40>());
  Epilogue<Activation::none, false, false, true> epilogue{nullptr, nullptr, 0, y.data(), y.ld};
  k::matmul<40, 40>(nullptr, 60, x.data(), 40, w.data(), 40, y.data(), 40, epilogue, scratch.data());
  for (int64_t i = 0; i < 60; ++i) {
    double total = before.at(i, 7);
    for (int64_t s = 0; s < 40; ++s)
      total += static_cast<double>(x.at(i, s)) * w.at(s, 7);
    ASSERT_NEAR(y.at(i, 7), total, sumBound(40));
  }
}

template <int K, int N, bool Accumulate>
void checkMatmulRows(genrec_rt_pool *pool, int64_t m, int64_t gap) {
  Random random(static_cast<uint64_t>(m * 1000 + K * 10 + N));
  Matrix x(random, m, K, gap), dy(random, m, N, gap), dw(random, K, N, gap);
  Matrix before = dw;
  Scratch scratch(k::matmulRowsScratchBytes<K, N>());
  k::matmulRows<K, N, Accumulate>(pool, m, x.data(), x.ld, dy.data(), dy.ld,
                                  dw.data(), dw.ld, scratch.data());
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < N; ++j) {
      double total = Accumulate ? before.at(i, j) : 0;
      for (int64_t row = 0; row < m; ++row)
        total += static_cast<double>(x.at(row, i)) * dy.at(row, j);
      ASSERT_NEAR(dw.at(i, j), total, sumBound(m)) << m << ": " << i << ", " << j;
    }
  expectSameGaps(dw, before);
  EXPECT_TRUE(scratch.guardIsWhole());
}

KERNEL_TEST(KernelsGemm, ContractionOverRows) {
  Pool pool(2);
  for (int64_t m : {0, 1, 2, 63, 64, 65, 255, 256, 257, 1000, 7000}) {
    checkMatmulRows<50, 200, false>(pool, m, 4);
    checkMatmulRows<200, 50, true>(pool, m, 4);
  }
  for (int64_t m : {0, 1, 200, 500}) {
    checkMatmulRows<50, 50, false>(nullptr, m, 0);
    checkMatmulRows<1, 1, false>(nullptr, m, 0);
    checkMatmulRows<5, 3, true>(nullptr, m, 1);
    checkMatmulRows<33, 17, false>(nullptr, m, 2);
    checkMatmulRows<17, 129, false>(nullptr, m, 2);
    checkMatmulRows<130, 36, true>(nullptr, m, 2);
  }
}

/// The build that the process would pick, and this file's own.
const k::DynamicGemm kPublicGemm = {k::matmulDynamic, k::matmulDynamicScratchBytes,
                                    k::matmulRowsDynamic, k::matmulRowsDynamicScratchBytes};

KERNEL_TEST(KernelsGemm, SizesAtRunTime) {
  Pool pool(2);
  Random random(9);
  for (int round = 0; round < 60; ++round) {
    int64_t m = random.below(400), depth = 1 + random.below(150), n = 1 + random.below(150);
    bool transposed = round % 2, accumulate = round % 3 == 0;
    const k::DynamicGemm &gemm = round % 5 < 3 ? k::kDynamicGemm : kPublicGemm;
    Matrix x(random, m, depth, 2), w(random, transposed ? n : depth, transposed ? depth : n, 1);
    Matrix y(random, m, n, 3), dw(random, depth, n, 1);
    Matrix before = y, dwBefore = dw;
    Scratch scratch(gemm.productScratchBytes(depth, n));
    gemm.product(pool, transposed, m, depth, n, x.data(), x.ld, w.data(), w.ld, y.data(), y.ld,
                 accumulate, scratch.data());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double total = accumulate ? before.at(i, j) : 0;
        for (int64_t s = 0; s < depth; ++s)
          total += static_cast<double>(x.at(i, s)) * (transposed ? w.at(j, s) : w.at(s, j));
        ASSERT_NEAR(y.at(i, j), total, sumBound(depth)) << m << " " << depth << " " << n;
      }
    expectSameGaps(y, before);
    EXPECT_TRUE(scratch.guardIsWhole());

    Scratch rows(gemm.contractionScratchBytes(depth, n));
    gemm.contraction(pool, m, depth, n, x.data(), x.ld, y.data(), y.ld, dw.data(), dw.ld,
                     accumulate, rows.data());
    for (int64_t i = 0; i < depth; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double total = accumulate ? dwBefore.at(i, j) : 0, size = 1;
        for (int64_t row = 0; row < m; ++row) {
          total += static_cast<double>(x.at(row, i)) * y.at(row, j);
          size += std::fabs(x.at(row, i) * y.at(row, j));
        }
        ASSERT_NEAR(dw.at(i, j), total, 1e-6 * size);
      }
    expectSameGaps(dw, dwBefore);
    EXPECT_TRUE(rows.guardIsWhole());
  }
}

KERNEL_TEST(KernelsGemm, SameBitsAtAnyNumberOfThreads) {
  Random random(1);
  Matrix x(random, 3000, 50, 0), w(random, 50, 200, 0), dy(random, 3000, 200, 0);
  Scratch scratch(std::max(k::matmulScratchBytes<50, 200>(),
                           k::matmulRowsScratchBytes<50, 200>()));
  std::vector<float> firstY, firstDw;
  for (int threads : {1, 2, 3, 7}) {
    Pool pool(threads);
    std::vector<float> y(3000 * 200), dw(50 * 200);
    k::matmul<50, 200>(pool, 3000, x.data(), 50, w.data(), 200, y.data(), 200,
                       Epilogue<>{}, scratch.data());
    k::matmulRows<50, 200>(pool, 3000, x.data(), 50, dy.data(), 200, dw.data(),
                           200, scratch.data());
    if (threads == 1)
      firstY = y, firstDw = dw;
    EXPECT_EQ(y, firstY);
    EXPECT_EQ(dw, firstDw);
  }
}

} // namespace
