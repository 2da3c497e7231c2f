//===- bf16_products_test.cpp - Products with factors rounded to bfloat16 --===//
//
// Without tensor cores: to the bit, against chains of multiply-adds of factors that are rounded
// without a look at bits; per distinct row against double precision.
//
//===----------------------------------------------------------------------===//

#include "domain_copies.h"

#include "../Runtime/kernels_bf16_reference.h"

#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/interaction.h"
#include "genrec_rt/kernels/cuda/linear_products.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

namespace genrec::rt::cuda::test {
namespace {

float rounded(float x) { return static_cast<float>(kernels::test::roundedToBf16(x)); }

TEST(Bf16Products, FactorsAreRoundedAsTheCpuRounds) {
  std::mt19937_64 random(1);
  std::vector<float> values = {0.0f,        -0.0f,      1e-39f,
                               -1e-45f,     0x1p-126f,  0x1.fffffep-127f,
                               3.4e38f,     -3.4e38f,   std::numeric_limits<float>::infinity(),
                               1.00390625f, 1.01171875f};
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, 4);
    values.push_back(value);
  }
  for (float value : values) {
    const float got = factor(true, value);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(got)) << value;
    else
      EXPECT_EQ(got, rounded(value)) << value;
    EXPECT_EQ(std::signbit(got), std::signbit(value) && !std::isnan(value)) << value;
  }
}

TEST(Bf16Products, RowsTimesAWeight) {
  std::mt19937_64 random(2);
  for (int64_t rows : {0, 1, 65})
    for (auto [k, n] : {std::pair<int64_t, int64_t>(3, 64), {17, 70}, {65, 5}})
      for (bool transposed : {false, true}) {
        auto host = makeRoot(rows, random);
        DeviceDomain domain(*host, nullptr, rows + 9);
        std::vector<float> x = randomFloats((rows + 1) * k, random),
                           w = randomFloats(k * n, random), bias = randomFloats(n, random);
        Copy<float> xs(x), ws(w), biases(bias), y(randomFloats((rows + 9) * n, random));
        LinearProduct product;
        product.rows = domain.get(), product.capacity = rows + 9;
        product.k = k, product.n = n;
        product.x = xs.data(), product.ldX = k;
        product.weight = ws.data(), product.transposed = transposed, product.bf16 = true;
        product.bias = biases.data();
        product.y = y.data(), product.ldY = n;
        multiply(product, testStream());
        const std::vector<float> got = y.fetch();
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < n; ++c) {
            float sum = 0;
            for (int64_t i = 0; i < k; ++i)
              sum = std::fma(rounded(x[static_cast<size_t>(r * k + i)]),
                             rounded(w[static_cast<size_t>(transposed ? c * k + i : i * n + c)]),
                             sum);
            ASSERT_EQ(got[static_cast<size_t>(r * n + c)], sum + bias[static_cast<size_t>(c)])
                << rows << " rows, " << k << " by " << n;
          }
      }
}

TEST(Bf16Products, ContractionsOverRows) {
  std::mt19937_64 random(3);
  for (int64_t rows : {0, 1, 257})
    for (auto [k, n] : {std::pair<int64_t, int64_t>(3, 64), {17, 70}}) {
      auto host = makeRoot(rows, random);
      DeviceDomain domain(*host, nullptr, rows + 300);
      std::vector<float> x = randomFloats((rows + 1) * k, random),
                         y = randomFloats((rows + 1) * n, random);
      Copy<float> xs(x), ys(y), out(randomFloats(k * n, random));
      Copy<char> scratch(
          std::vector<char>(static_cast<size_t>(contractionScratchBytes(rows + 300, k, n))));
      contractRows({domain.get(), rows + 300, k, n, xs.data(), k, ys.data(), n, out.data(), true},
                   scratch.data(), testStream());
      const std::vector<float> got = out.fetch();
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t r = 0; r < rows; ++r) {
            const double term = double(rounded(x[static_cast<size_t>(r * k + i)])) *
                                rounded(y[static_cast<size_t>(r * n + j)]);
            sum += term, size += std::fabs(term);
          }
          ASSERT_NEAR(got[static_cast<size_t>(i * n + j)], sum, 1e-6 * (size + 1));
        }
    }
}

TEST(Bf16Products, PairsOfVectorsAndTheirGradient) {
  constexpr int kCount = 5, kSize = 6, kPairs = kCount * (kCount - 1) / 2;
  constexpr int64_t kRows = 7;
  std::mt19937_64 random(4);
  auto host = makeRoot(kRows, random);
  DeviceDomain device(*host, nullptr, kRows + 3);
  genrec_domain domain = host->view;
  domain.capacity = kRows + 3;
  domain.device = device.get();
  const std::vector<float> x = randomFloats(kRows * kCount * kSize, random),
                           g = randomFloats(kRows * kPairs, random);
  Copy<float> xs(x), gs(g), products(g), dx(x);
  genrec_step step{};
  step.stream = testStream();
  kernels::dotInteraction<kCount, kSize, false, true>(&step, &domain, xs.data(), kCount * kSize,
                                                      products.data());
  kernels::dotInteractionGradient<kCount, kSize, false, true>(
      &step, &domain, xs.data(), kCount * kSize, gs.data(), kPairs, dx.data());
  const std::vector<float> got = products.fetch(), gotDx = dx.fetch();
  auto at = [&](int64_t row, int i, int c) {
    return rounded(x[static_cast<size_t>((row * kCount + i) * kSize + c)]);
  };
  for (int64_t row = 0; row < kRows; ++row)
    for (int i = 0; i < kCount; ++i) {
      for (int j = 0; j < i; ++j) {
        float sum = 0;
        for (int c = 0; c < kSize; ++c)
          sum = std::fma(at(row, i, c), at(row, j, c), sum);
        ASSERT_EQ(got[static_cast<size_t>(row * kPairs + i * (i - 1) / 2 + j)], sum);
      }
      for (int c = 0; c < kSize; ++c) {
        float sum = 0;
        for (int j = 0; j < kCount; ++j)
          if (const int high = std::max(i, j); i != j)
            sum = std::fma(
                rounded(
                    g[static_cast<size_t>(row * kPairs + high * (high - 1) / 2 + std::min(i, j))]),
                at(row, j, c), sum);
        ASSERT_EQ(gotDx[static_cast<size_t>((row * kCount + i) * kSize + c)], sum);
      }
    }
}

} // namespace
} // namespace genrec::rt::cuda::test
