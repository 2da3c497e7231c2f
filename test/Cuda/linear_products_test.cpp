//===- linear_products_test.cpp - Matrix products and sums over the rows of a domain --===//

#include "domain_copies.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/exact_sum.h"
#include "genrec_rt/kernels/cuda/interaction.h"
#include "genrec_rt/kernels/cuda/linear_products.h"

#include "ranks/exact_sum.h"

#include <cmath>
#include <cstring>
#include <deque>
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

/// Fewer rows than a tile, a tile, more than one, more than the emulator's four blocks have at
/// once; sizes that fill no tile.
constexpr int64_t kRows[] = {0, 1, 63, 64, 65, 300};
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
        const int64_t ldPre = n + 1, ldMore = n + 2, ldY = n + 3;
        std::vector<float> bias = randomFloats(n, random),
                           more = randomFloats((rows + 1) * ldMore, random);
        Copy<float> xs(x), ws(w), biases(bias), residual(more);
        Copy<float> pre(std::vector<float>(static_cast<size_t>((rows + 9) * ldPre), -7)),
            y(std::vector<float>(static_cast<size_t>((rows + 9) * ldY), -7));
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
        product.ldResidual = ldMore;
        product.pre = pre.data();
        product.ldPre = ldPre;
        product.y = y.data();
        product.ldY = ldY;
        multiply(product, testStream());
        std::vector<float> got = y.fetch(), before = pre.fetch();
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < n; ++c) {
            float sum = 0;
            for (int64_t i = 0; i < k; ++i)
              sum = std::fma(x[static_cast<size_t>(r * (k + 2) + i)],
                             w[static_cast<size_t>(transposed ? c * k + i : i * n + c)], sum);
            const float total = sum + bias[static_cast<size_t>(c)];
            ASSERT_EQ(before[static_cast<size_t>(r * ldPre + c)], total)
                << rows << " rows, " << k << " by " << n;
            float &to = got[static_cast<size_t>(r * ldY + c)];
            ASSERT_EQ(to, std::max(total, 0.0f) + more[static_cast<size_t>(r * ldMore + c)]);
            to = -7;
          }
        for (float value : got)
          ASSERT_EQ(value, -7) << "what is not there must not be written";
        // Nobody keeps the sums.
        const std::vector<float> kept = y.fetch();
        product.pre = nullptr;
        multiply(product, testStream());
        ASSERT_EQ(y.fetch(), kept);
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

/// Products of all pairs of `Count` vectors, and their gradient, of `rows` rows of which the host
/// knows no number. Products of a vector with itself are among them where `Self`.
template <int Count, int Size, bool Self, bool Bf16> void expectPairs(int64_t rows) {
  constexpr int kPairs = Count * (Self ? Count + 1 : Count - 1) / 2, kLd = Count * Size + 3,
                kLdGradient = kPairs + 2;
  SCOPED_TRACE(::testing::Message() << rows << " rows of " << Count << " vectors");
  std::mt19937_64 random(4);
  auto host = makeRoot(rows, random);
  DeviceDomain device(*host, nullptr, rows + 3);
  genrec_domain domain = host->view;
  domain.count = -1;
  domain.capacity = rows + 3;
  domain.device = device.get();
  const auto x = cuda::test::randomFloats(rows * kLd, random),
             g = cuda::test::randomFloats(rows * kLdGradient, random);
  auto factorOf = [](const std::vector<float> &from, int64_t at) {
    const float value = from[static_cast<size_t>(at)];
    return Bf16 ? toFloat(fromFloat<cuda::Bf16>(value)) : value;
  };
  auto placeOf = [](int i, int j) {
    const int high = std::max(i, j);
    return high * (Self ? high + 1 : high - 1) / 2 + std::min(i, j);
  };
  std::vector<float> products(static_cast<size_t>(rows * kPairs)),
      dx(static_cast<size_t>(rows * Count * Size));
  for (int64_t row = 0; row < rows; ++row)
    for (int i = 0; i < Count; ++i) {
      for (int j = 0; j < i + Self; ++j)
        for (int c = 0; c < Size; ++c) {
          float &to = products[static_cast<size_t>(row * kPairs + placeOf(i, j))];
          to = std::fma(factorOf(x, row * kLd + i * Size + c),
                        factorOf(x, row * kLd + j * Size + c), to);
        }
      for (int j = 0; j < Count; ++j)
        for (int c = 0; c < Size && (Self || i != j); ++c) {
          float &to = dx[static_cast<size_t>((row * Count + i) * Size + c)];
          to = std::fma((i == j ? 2 : 1) * factorOf(g, row * kLdGradient + placeOf(i, j)),
                        factorOf(x, row * kLd + j * Size + c), to);
        }
    }
  genrec_step step{};
  step.stream = testStream();
  Copy<float> xs(x), gs(g), got(std::vector<float>(products.size() + 1)),
      gotDx(std::vector<float>(dx.size() + 1));
  genrec::rt::kernels::dotInteraction<Count, Size, Self, Bf16>(&step, &domain, xs.data(), kLd,
                                                               got.data());
  std::vector<float> fetched = got.fetch();
  fetched.resize(products.size());
  EXPECT_EQ(fetched, products);
  genrec::rt::kernels::dotInteractionGradient<Count, Size, Self, Bf16>(
      &step, &domain, xs.data(), kLd, gs.data(), kLdGradient, gotDx.data());
  fetched = gotDx.fetch();
  fetched.resize(dx.size());
  EXPECT_EQ(fetched, dx);
}

TEST(LinearProducts, PairsOfVectorsAreChainsOfMultiplyAdds) {
  for (int64_t rows : {0, 1, 37})
    expectPairs<9, 6, false, false>(rows);
  expectPairs<9, 6, true, false>(6);
  expectPairs<18, 9, false, false>(6); // more pairs and floats than threads
  expectPairs<18, 9, true, true>(6);
  expectPairs<1, 5, true, false>(6);
}

/// By row: every third is left out of a sum.
std::vector<float> weightsOf(size_t rows) {
  std::vector<float> weights(rows, 1);
  for (size_t row = 0; row < rows; ++row)
    if (row % 3 < 2)
      weights[row] = static_cast<float>(row % 3) / 2;
  return weights;
}

float exactlyOnHost(const std::vector<float> &values, bool isWeighted) {
  const std::vector<float> weights = weightsOf(values.size());
  std::vector<float> counted;
  for (size_t row = 0; row < values.size(); ++row)
    if (!isWeighted || weights[row] != 0)
      counted.push_back(values[row]);
  ExactSum exact;
  exact.add(std::span<const float>(counted));
  return exact.round();
}

TEST(ExactSum, HasTheBitsOfTheHost) {
  std::mt19937_64 random(5);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<std::vector<float>> cases = {{},        {0.0f, -0.0f},    {1e38f, 1e38f, 3e38f},
                                           {inf, 1},  {inf, -inf},      {nan, 1},
                                           {-inf, 2}, {1e-45f, 1e-45f}, {-1e30f, 1e30f, -1e-40f}};
  // Halves of the last place: to even, up, and up where any lower bit is set, next to it or last.
  constexpr float kHalf = 0x1p-24f;
  for (std::vector<float> tie : {std::vector{1.0f, kHalf},
                                 {1.0f + 2 * kHalf, kHalf},
                                 {1.0f, kHalf, kHalf / 2},
                                 {1.0f, kHalf, 0x1p-149f},
                                 {-1.0f, -kHalf, 0x1p-149f}})
    cases.push_back(tie);
  for (int64_t count : {3, 300, 5000}) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = std::ldexp(static_cast<float>(static_cast<int64_t>(random() % 65536) - 32768),
                         static_cast<int>(random() % 60) - 30);
    cases.push_back(values);
  }
  // All at once, those that have fewer rows too, and again: more than a launch adds up.
  const std::vector<std::vector<float>> once = cases;
  while (cases.size() <= static_cast<size_t>(kMostExactSums))
    cases.insert(cases.end(), once.begin(), once.end());
  std::vector<std::unique_ptr<HostDomain>> hosts;
  std::deque<DeviceDomain> domains;
  std::deque<Copy<float>> values, counts;
  Copy<float> sums(std::vector<float>(cases.size(), 7));
  Scratch scratch(static_cast<int64_t>(cases.size()) * kExactSumBytes);
  std::vector<ExactTerms> terms;
  std::vector<ExactLimbs> limbs;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto count = static_cast<int64_t>(cases[i].size());
    hosts.push_back(makeRoot(count, random));
    domains.emplace_back(*hosts.back(), nullptr, count + 5);
    values.emplace_back(cases[i]);
    counts.emplace_back(weightsOf(cases[i].size()));
    terms.push_back({domains.back().get(), count + 5, values.back().data(),
                     i % 2 ? counts.back().data() : nullptr});
    limbs.push_back(
        {static_cast<char *>(scratch.data()) + i * kExactSumBytes, 1, 0, sums.data() + i});
  }
  addExactly(terms, scratch.data(), testStream());
  roundExactly(limbs, testStream());
  const std::vector<float> got = sums.fetch();
  for (size_t i = 0; i < cases.size(); ++i) {
    const float expected = exactlyOnHost(cases[i], i % 2);
    EXPECT_TRUE(std::memcmp(&got[i], &expected, 4) == 0 ||
                (std::isnan(got[i]) && std::isnan(expected)))
        << i << ": " << got[i] << " instead of " << expected;
  }
}

} // namespace
