//===- linear_products_test.cpp - Matrix products and sums over the rows of a domain --===//

#include "domain_copies.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/exact_sum.h"
#include "genrec_rt/kernels/cuda/interaction.h"
#include "genrec_rt/kernels/cuda/linear_products.h"

#include "ranks/exact_sum.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

using namespace genrec::rt;
using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::test;

namespace {

std::vector<float> randomFloats(int64_t count, std::mt19937_64 &random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = static_cast<float>(static_cast<int64_t>(random() % 2001) - 1000) / 512;
  return values;
}

/// Fewer rows than a tile, a tile, more than one; sizes that fill no tile.
constexpr int64_t kRows[] = {0, 1, 63, 64, 65, 200};
constexpr int64_t kSizes[][2] = {{1, 1}, {3, 64}, {64, 32}, {17, 70}, {65, 5}};

TEST(LinearProducts, RowsTimesAWeightWithEveryEpilogue) {
  std::mt19937_64 random(1);
  for (int64_t rows : kRows)
    for (auto [k, n] : kSizes)
      for (bool transposed : {false, true}) {
        auto host = makeRoot(rows, random);
        DeviceDomain domain(*host, nullptr, rows + 9);
        std::vector<float> x = randomFloats((rows + 1) * (k + 2), random),
                           w = randomFloats(k * n, random);
        std::vector<float> bias = randomFloats(n, random),
                           more = randomFloats((rows + 1) * n, random);
        Copy<float> xs(x), ws(w), biases(bias), residual(more);
        Copy<float> pre(std::vector<float>(static_cast<size_t>((rows + 9) * n), -7)),
            y(pre.fetch());
        LinearProduct product;
        product.rows = domain.get();
        product.capacity = rows + 9;
        product.k = k;
        product.n = n;
        product.x = xs.data();
        product.ldX = k + 2;
        product.weight = ws.data();
        product.transposed = transposed;
        product.bias = biases.data();
        product.activation = Activation::relu;
        product.residual = residual.data();
        product.ldResidual = n;
        product.pre = pre.data();
        product.ldPre = n;
        product.y = y.data();
        product.ldY = n;
        multiply(product, testStream());
        std::vector<float> got = y.fetch(), before = pre.fetch();
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < n; ++c) {
            float sum = 0;
            for (int64_t i = 0; i < k; ++i)
              sum = std::fma(x[static_cast<size_t>(r * (k + 2) + i)],
                             w[static_cast<size_t>(transposed ? c * k + i : i * n + c)], sum);
            const auto at = static_cast<size_t>(r * n + c);
            const float total = sum + bias[static_cast<size_t>(c)];
            ASSERT_EQ(before[at], total) << rows << " rows, " << k << " by " << n;
            ASSERT_EQ(got[at], std::max(total, 0.0f) + more[at]);
          }
        for (size_t at = static_cast<size_t>(rows * n); at < got.size(); ++at)
          ASSERT_EQ(got[at], -7) << "rows that are not there must not be written";
      }
}

/// out = x^T y for `rows` rows in a domain with room for `capacity`.
std::vector<float> contract(int64_t rows, int64_t capacity, int64_t k, int64_t n,
                            const std::vector<float> &x, const std::vector<float> &y) {
  std::mt19937_64 random(2);
  auto host = makeRoot(rows, random);
  DeviceDomain domain(*host, nullptr, capacity);
  Copy<float> xs(x), ys(y), out(std::vector<float>(static_cast<size_t>(k * n), -7));
  Scratch scratch(contractionScratchBytes(capacity, k, n));
  contractRows({domain.get(), capacity, k, n, xs.data(), k, ys.data(), n, out.data()},
               scratch.data(), testStream());
  return out.fetch();
}

TEST(LinearProducts, ContractionsOverRows) {
  std::mt19937_64 random(3);
  for (int64_t rows : {int64_t(0), int64_t(1), int64_t(255), int64_t(257), int64_t(700)})
    for (auto [k, n] : kSizes) {
      std::vector<float> x = randomFloats(rows * k, random), y = randomFloats(rows * n, random);
      std::vector<float> got = contract(rows, std::max<int64_t>(rows, 1), k, n, x, y);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (int64_t r = 0; r < rows; ++r) {
            const double term =
                double(x[static_cast<size_t>(r * k + i)]) * y[static_cast<size_t>(r * n + j)];
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(got[static_cast<size_t>(i * n + j)], sum, 1e-6 * (size + 1))
              << rows << " rows";
        }
      // Room for more rows, as a larger batch before left it, changes nothing.
      EXPECT_EQ(contract(rows, 4 * rows + 1000, k, n, x, y), got);
    }
}

/// From 16,385 rows on there are as many chunks as there may be, and these have more rows.
TEST(LinearProducts, ContractionsHaveSoManyChunksAtMost) {
  const int64_t rows = 64 * 256 + 70;
  std::vector<float> x(static_cast<size_t>(rows)), y(x.size(), 1);
  for (size_t r = 0; r < x.size(); ++r)
    x[r] = static_cast<float>(r % 5); // sums are exact
  const float sum = std::accumulate(x.begin(), x.end(), 0.0f);
  EXPECT_EQ(contract(rows, rows + 2000, 1, 1, x, y), std::vector{sum});
}

TEST(LinearProducts, PairsOfVectorsAreChainsOfMultiplyAdds) {
  constexpr int kCount = 9, kSize = 6, kPairs = kCount * (kCount - 1) / 2, kLd = kCount * kSize + 3;
  std::mt19937_64 random(4);
  for (int64_t rows : {int64_t(0), int64_t(1), int64_t(37)}) {
    auto host = makeRoot(rows, random);
    DeviceDomain device(*host, nullptr, rows + 3);
    genrec_domain domain = host->view;
    domain.capacity = rows + 3;
    domain.device = device.get();
    std::vector<float> x = randomFloats(rows * kLd, random),
                       g = randomFloats(rows * kPairs, random);
    std::vector<float> products(static_cast<size_t>(rows * kPairs)),
        dx(static_cast<size_t>(rows * kCount * kSize));
    genrec_step step{};
    step.stream = testStream();
    for (int64_t row = 0; row < rows; ++row)
      for (int i = 1; i < kCount; ++i)
        for (int j = 0; j < i; ++j) {
          float sum = 0;
          for (int c = 0; c < kSize; ++c)
            sum = std::fma(x[static_cast<size_t>(row * kLd + i * kSize + c)],
                           x[static_cast<size_t>(row * kLd + j * kSize + c)], sum);
          products[static_cast<size_t>(row * kPairs + i * (i - 1) / 2 + j)] = sum;
        }
    auto shareOf = [&](int64_t row, int i, int j) {
      return g[static_cast<size_t>(row * kPairs + std::max(i, j) * (std::max(i, j) - 1) / 2 +
                                   std::min(i, j))];
    };
    for (int64_t row = 0; row < rows; ++row)
      for (int i = 0; i < kCount; ++i)
        for (int c = 0; c < kSize; ++c) {
          float sum = 0;
          for (int j = 0; j < kCount; ++j)
            if (i != j)
              sum = std::fma(shareOf(row, i, j), x[static_cast<size_t>(row * kLd + j * kSize + c)],
                             sum);
          dx[static_cast<size_t>((row * kCount + i) * kSize + c)] = sum;
        }
    Copy<float> xs(x), gs(g), got(std::vector<float>(products.size() + 1)),
        gotDx(std::vector<float>(dx.size() + 1));
    genrec::rt::kernels::dotInteraction<kCount, kSize, false>(&step, &domain, xs.data(), kLd,
                                                              got.data());
    std::vector<float> fetched = got.fetch();
    fetched.resize(products.size());
    EXPECT_EQ(fetched, products);
    genrec::rt::kernels::dotInteractionGradient<kCount, kSize, false>(
        &step, &domain, xs.data(), kLd, gs.data(), kPairs, gotDx.data());
    fetched = gotDx.fetch();
    fetched.resize(dx.size());
    EXPECT_EQ(fetched, dx);
  }
}

TEST(ExactSum, HasTheBitsOfTheHost) {
  std::mt19937_64 random(5);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<std::vector<float>> cases = {{},        {0.0f, -0.0f},    {1e38f, 1e38f, 3e38f},
                                           {inf, 1},  {inf, -inf},      {nan, 1},
                                           {-inf, 2}, {1e-45f, 1e-45f}, {-1e30f, 1e30f, -1e-40f}};
  for (int64_t count : {3, 300, 5000}) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 65536) - 32768),
                         static_cast<int>(random() % 60) - 30);
    cases.push_back(values);
  }
  for (const std::vector<float> &values : cases) {
    const auto count = static_cast<int64_t>(values.size());
    auto host = makeRoot(count, random);
    DeviceDomain domain(*host, nullptr, count + 5);
    Copy<float> on(values), sum(std::vector<float>{7});
    Scratch scratch(kExactSumScratchBytes);
    addExactly(domain.get(), count + 5, on.data(), sum.data(), scratch.data(), testStream());
    ExactSum exact;
    exact.add(std::span<const float>(values));
    const float expected = exact.round(), got = sum.fetch()[0];
    EXPECT_TRUE(std::memcmp(&got, &expected, 4) == 0 || (std::isnan(got) && std::isnan(expected)))
        << got << " instead of " << expected;
  }
}

} // namespace
