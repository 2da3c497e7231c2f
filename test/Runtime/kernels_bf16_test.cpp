// Products of factors rounded to bfloat16 against sums in double precision of factors that are
// rounded here: the same bound on every instruction set.

#include "kernels_bf16_reference.h"

#include "genrec_rt/kernels/cpu/gemm_bf16.h"
#include "genrec_rt/kernels/cpu/interaction.h"

#include <bit>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::Activation;
using k::Epilogue;

float roundedByKernel(float x) {
  float out;
  k::roundBf16(&x, 1, &out);
  return out;
}

KERNEL_TEST(KernelsBf16, RoundsToNearestEven) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    float x = std::bit_cast<float>(static_cast<uint32_t>(random.word()));
    float got = roundedByKernel(x);
    if (std::isnan(x))
      ASSERT_TRUE(std::isnan(got));
    else
      ASSERT_EQ(got, roundedToBf16(x)) << x;
  }
  // Ties go to the even neighbour.
  EXPECT_EQ(roundedByKernel(1 + 0x1p-8f), 1);
  EXPECT_EQ(roundedByKernel(1 + 3 * 0x1p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(roundedByKernel(std::nextafter(1 + 0x1p-8f, 2.0f)), 1 + 0x1p-7f);
}

KERNEL_TEST(KernelsBf16, SpecialValues) {
  EXPECT_EQ(roundedByKernel(0x1.ffp127f), INFINITY); // rounds up, out of range
  EXPECT_EQ(roundedByKernel(-INFINITY), -INFINITY);
  EXPECT_EQ(roundedByKernel(0x1p-126f), 0x1p-126f);
  EXPECT_EQ(roundedByKernel(0x1.fp-127f), 0); // below the smallest normal number
  EXPECT_TRUE(std::signbit(roundedByKernel(-0x1p-140f)));
  EXPECT_TRUE(std::isnan(roundedByKernel(std::bit_cast<float>(0x7fffffffu)))); // not an infinity
  EXPECT_TRUE(std::isnan(roundedByKernel(std::bit_cast<float>(0x7f800001u)))); // nor one of those
}

/// A matrix in a wider buffer.
struct Matrix {
  int64_t ld;
  std::vector<float> values;
  Matrix(Random &random, int64_t rows, int64_t columns, int64_t gap)
      : ld(columns + gap), values(random.reals(rows * ld + 1)) {}
  float *data() { return values.data(); }
  float &at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * ld + j)]; }
};

/// What bf16.h states, for `terms` products whose magnitudes add up to `sum`.
double sumBound(int64_t terms, double sum) {
  return static_cast<double>(terms) * (0x1p-24 * sum + 0x1p-126);
}

template <int K, int N, bool T> void checkMatmul(genrec_rt_pool *pool, int64_t m, int64_t gap) {
  Random random(static_cast<uint64_t>(m * 1000 + K * 10 + N));
  Matrix x(random, m, K, gap), w(random, T ? N : K, T ? K : N, gap), y(random, m, N, gap);
  Matrix before = y, residual(random, m, N, 0);
  std::vector<float> bias = random.reals(N);
  Scratch scratch(k::matmulScratchBytes<K, N>());
  Epilogue<Activation::relu, true, false, true> epilogue{bias.data(), nullptr, 0, residual.data(),
                                                         residual.ld};
  k::matmulBf16<K, N, T>(pool, m, x.data(), x.ld, w.data(), w.ld, y.data(), y.ld, epilogue,
                         scratch.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      double total = bias[static_cast<size_t>(j)], magnitude = std::fabs(total);
      for (int64_t s = 0; s < K; ++s) {
        double product = roundedToBf16(x.at(i, s)) * roundedToBf16(T ? w.at(j, s) : w.at(s, j));
        total += product;
        magnitude += std::fabs(product);
      }
      double expected = std::max(total, 0.0) + residual.at(i, j);
      ASSERT_NEAR(y.at(i, j), expected, sumBound(K + 2, magnitude + 1))
          << m << ": " << i << ", " << j;
    }
    for (int64_t j = N; j < y.ld; ++j)
      ASSERT_EQ(y.at(i, j), before.at(i, j)) << "between rows";
  }
  EXPECT_TRUE(scratch.guardIsWhole());
}

template <int K, int N> void checkRows(genrec_rt_pool *pool, int64_t m, int64_t gap) {
  Random random(static_cast<uint64_t>(m * 1000 + K * 10 + N));
  Matrix x(random, m, K, gap), dy(random, m, N, gap), dw(random, K, N, gap);
  Matrix before = dw;
  Scratch scratch(k::matmulRowsScratchBytes<K, N>());
  k::matmulRowsBf16<K, N>(pool, m, x.data(), x.ld, dy.data(), dy.ld, dw.data(), dw.ld,
                          scratch.data());
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t j = 0; j < N; ++j) {
      double total = 0, magnitude = 0;
      for (int64_t row = 0; row < m; ++row) {
        double product = roundedToBf16(x.at(row, i)) * roundedToBf16(dy.at(row, j));
        total += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(dw.at(i, j), total, sumBound(m + 1, magnitude)) << m << ": " << i << ", " << j;
    }
    for (int64_t j = N; j < dw.ld; ++j)
      ASSERT_EQ(dw.at(i, j), before.at(i, j)) << "between rows";
  }
  EXPECT_TRUE(scratch.guardIsWhole());
}

template <int K, int N> void checkShape() {
  Pool pool(3);
  for (int64_t m : {0, 1, 2, 5, 48, 49, 241}) {
    checkMatmul<K, N, false>(pool, m, 3);
    checkMatmul<K, N, true>(nullptr, m, 0);
    checkRows<K, N>(pool, m, 3);
  }
}

KERNEL_TEST(KernelsBf16, ShapesOfModels) {
  checkShape<50, 200>();
  checkShape<200, 50>();
  checkShape<64, 64>();
  checkShape<130, 64>();
  checkShape<520, 8>(); // a smaller block of rows
}
KERNEL_TEST(KernelsBf16, SmallAndOddShapes) {
  checkShape<1, 1>();
  checkShape<3, 5>();
  checkShape<16, 16>();
  checkShape<33, 17>();
  checkShape<31, 52>();
  checkShape<17, 129>();
}

/// One missing or doubled row of a chunk would show.
KERNEL_TEST(KernelsBf16, ManyRows) {
  Pool pool(3);
  checkRows<8, 24>(pool, 5000, 0);
}

KERNEL_TEST(KernelsBf16, SameBitsAtAnyNumberOfThreads) {
  Random random(7);
  Matrix x(random, 1000, 50, 0), dy(random, 1000, 70, 0);
  Scratch scratch(k::matmulRowsScratchBytes<50, 70>());
  std::vector<float> one(50 * 70), many(50 * 70);
  k::matmulRowsBf16<50, 70>(nullptr, 1000, x.data(), 50, dy.data(), 70, one.data(), 70,
                            scratch.data());
  Pool pool(3);
  k::matmulRowsBf16<50, 70>(pool, 1000, x.data(), 50, dy.data(), 70, many.data(), 70,
                            scratch.data());
  EXPECT_EQ(one, many);
}

/// The bits of products of vectors that were rounded before.
KERNEL_TEST(KernelsBf16, InteractionsOfRoundedVectors) {
  constexpr int kRows = 9, kCount = 5, kSize = 17, kPairs = 10;
  Random random(8);
  std::vector<float> x = random.reals(kRows * kCount * kSize), g = random.reals(kRows * kPairs);
  std::vector<float> rounded(x.size()), factors(g.size());
  k::roundBf16(x.data(), static_cast<int64_t>(x.size()), rounded.data());
  k::roundBf16(g.data(), static_cast<int64_t>(g.size()), factors.data());
  std::vector<float> got(g.size()), wanted(g.size()), dGot(x.size()), dWanted(x.size());
  genrec_step step{};
  k::dotInteraction<kCount, kSize, false, true>(&step, kRows, x.data(), kCount * kSize, got.data());
  k::dotInteraction<kCount, kSize, false>(&step, kRows, rounded.data(), kCount * kSize,
                                          wanted.data());
  EXPECT_EQ(got, wanted);
  k::dotInteractionGradient<kCount, kSize, false, true>(&step, kRows, x.data(), kCount * kSize,
                                                        g.data(), kPairs, dGot.data());
  k::dotInteractionGradient<kCount, kSize, false>(&step, kRows, rounded.data(), kCount * kSize,
                                                  factors.data(), kPairs, dWanted.data());
  EXPECT_EQ(dGot, dWanted);
}

} // namespace
