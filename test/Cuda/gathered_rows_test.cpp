//===- gathered_rows_test.cpp - Products with gathered rows ---------------===//
//
// Functions of gathered_rows.h beside double precision, whatever number of lanes a row has, of rows
// of floats and of bfloat16.
//
//===----------------------------------------------------------------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/gathered_rows.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace genrec::rt::kernels {
namespace {

constexpr float kScale = 4, kMasked = -1e30f, kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kItems = 40;

/// A warp has one row; of fewer lanes the first ones work.
template <int64_t D, int64_t L, int64_t V, class Element>
__global__ void gatherOnce(const Element *items, const int64_t *index, int64_t n, const float *q,
                           int64_t hit, float *dots, float *mix) {
  if (threadIdx.x >= L)
    return;
  constexpr int64_t kPack = L == 1 ? D : V;
  float own[kSlots<D, L, kPack>];
  gatherSoftmax<D, L, V>(items, D, index, n, q, hit, kScale, kMasked, dots, own);
  forElements<D, L, kPack>([&](int64_t slot, int64_t element) { mix[element] = own[slot]; });
}

struct Case {
  std::vector<float> items, q;
  std::vector<int64_t> index;
  int64_t hit = -1;
};

Case makeCase(int64_t width, int64_t n, int64_t hit) {
  std::mt19937 random(static_cast<unsigned>(width * 131 + n));
  std::normal_distribution<float> draw;
  Case made;
  made.items.resize(static_cast<size_t>(kItems * width));
  made.q.resize(static_cast<size_t>(width));
  for (float &value : made.items)
    value = draw(random);
  for (float &value : made.q)
    value = draw(random) / std::sqrt(static_cast<float>(width));
  for (int64_t j = 0; j < n; ++j)
    made.index.push_back(static_cast<int64_t>(random() % kItems));
  made.hit = hit < 0 ? hit : made.index[static_cast<size_t>(hit)];
  return made;
}

struct Result {
  std::vector<float> dots, mix;
};

/// Calls `launch(items)` with the items of a case on the device, of `Element`.
template <class Element, class Launch> void withItems(const Case &from, const Launch &launch) {
  std::vector<Element> items;
  for (float value : from.items)
    if constexpr (sizeof(Element) == 2)
      items.push_back(narrowed(value)); // which is a bfloat16
    else
      items.push_back(value);
  cuda::test::Copy<Element> copy(items);
  launch(copy.data());
}

/// The items are numbers that bfloat16 has.
Case rounded(Case from) {
  for (float &value : from.items)
    value = widened(nearestBf16(value));
  return from;
}

template <int64_t D, int64_t L, int64_t V, class Element = float> Result run(const Case &from) {
  using cuda::test::Copy;
  Copy<float> q(from.q);
  Copy<int64_t> index(from.index);
  Copy<float> dots{std::vector<float>(from.index.size(), -7)};
  Copy<float> mix{std::vector<float>(static_cast<size_t>(D), -7)};
  withItems<Element>(from, [&](const Element *items) {
    GENREC_CUDA_LAUNCH(cuda::test::testStream(), (cuda::LaunchShape{1, 32, 0}),
                       (gatherOnce<D, L, V, Element>), items, index.data(),
                       static_cast<int64_t>(from.index.size()), q.data(), from.hit, dots.data(),
                       mix.data());
  });
  return {dots.fetch(), mix.fetch()};
}

/// The product of row j with q, and the weighted sum, in double precision.
void expectExact(const Case &from, const Result &found, const std::string &what) {
  const size_t width = from.q.size(), n = from.index.size();
  std::vector<double> logits(n), mix(width, 0), sizes(width, 0);
  double largest = std::numeric_limits<float>::lowest();
  for (size_t j = 0; j < n; ++j) {
    const float *row = &from.items[static_cast<size_t>(from.index[j]) * width];
    double dot = 0, size = 0;
    for (size_t i = 0; i < width; ++i)
      dot += double(row[i]) * from.q[i], size += std::fabs(double(row[i]) * from.q[i]);
    EXPECT_NEAR(found.dots[j], dot, size * 1e-6) << what << ", row " << j;
    logits[j] = from.index[j] == from.hit ? kMasked : dot * kScale;
    largest = std::max(largest, logits[j]);
  }
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < width; ++i) {
      const double term = std::exp(logits[j] - largest) *
                          from.items[static_cast<size_t>(from.index[j]) * width + i];
      mix[i] += term;
      sizes[i] += std::fabs(term);
    }
  for (size_t i = 0; i < width; ++i) // logits of some 10, of which 2^-22 are exp's
    EXPECT_NEAR(found.mix[i], mix[i], sizes[i] * 1e-5) << what << ", element " << i;
}

template <int64_t D, int64_t L, int64_t V> void expectSums() {
  const std::string width = std::to_string(D) + " columns, ";
  for (int64_t n : {0, 1, 2, 3, 7, 128})
    expectExact(makeCase(D, n, -1), run<D, L, V>(makeCase(D, n, -1)), width + std::to_string(n));
  const Case hit = makeCase(D, 64, 5);
  expectExact(hit, run<D, L, V>(hit), width + "one is hit");
  Case alone = makeCase(D, 1, 0); // whose weight is 1, as it is the largest
  expectExact(alone, run<D, L, V>(alone), width + "all are hit");
}

TEST(GatheredRows, SoftmaxOfEveryNumberOfLanes) {
  expectSums<1, 1, 1>();
  expectSums<7, 1, 7>();
  expectSums<50, 8, 2>();
  expectSums<64, 4, 4>();
  expectSums<100, 8, 4>();
  expectSums<37, 16, 1>();
  expectSums<256, 16, 4>();
  expectSums<1000, 32, 4>();
  expectSums<1024, 32, 4>();
}

template <int64_t D, int64_t L, int64_t V> void expectRounded() {
  for (int64_t n : {0, 1, 3, 4, 7, 128}) {
    const Case made = rounded(makeCase(D, n, n > 3 ? 2 : -1));
    expectExact(made, run<D, L, V, Bf16>(made),
                std::to_string(D) + " columns of bfloat16, " + std::to_string(n));
  }
}

TEST(GatheredRows, SoftmaxOfRoundedRows) {
  expectRounded<8, 1, 8>();
  expectRounded<24, 4, 4>();
  expectRounded<56, 16, 1>();
  expectRounded<200, 8, 4>();
  expectRounded<1024, 32, 4>();
}

/// dots = the products of rows with q; sums = their sum by the dots. `dots` are shared by all
/// lanes.
template <int64_t D, int64_t L, int64_t V>
__global__ void gatherTwice(const Bf16 *items, const int64_t *index, int64_t n, const float *q,
                            float *dots, float *sums) {
  constexpr int64_t kPack = L == 1 ? D : V;
  if (threadIdx.x >= L)
    return;
  gatherDot<D, L, V>(items, D, index, n, q, dots);
  float own[kSlots<D, L, kPack>];
  gatherSum<D, L, V>(items, D, index, dots, n, own);
  forElements<D, L, kPack>([&](int64_t slot, int64_t element) { sums[element] = own[slot]; });
}

template <int64_t D, int64_t L, int64_t V> void expectSumsOfRounded(int64_t n) {
  using cuda::test::Copy;
  const Case from = rounded(makeCase(D, n, -1));
  Copy<float> q(from.q), dots{std::vector<float>(static_cast<size_t>(n), -7)};
  Copy<float> sums{std::vector<float>(static_cast<size_t>(D), -7)};
  Copy<int64_t> index(from.index);
  withItems<Bf16>(from, [&](const Bf16 *items) {
    GENREC_CUDA_LAUNCH(cuda::test::testStream(), (cuda::LaunchShape{1, 32, 0}),
                       (gatherTwice<D, L, V>), items, index.data(), n, q.data(), dots.data(),
                       sums.data());
  });
  const std::vector<float> foundDots = dots.fetch(), foundSums = sums.fetch();
  std::vector<double> sum(static_cast<size_t>(D), 0), sizes(static_cast<size_t>(D), 0);
  for (size_t j = 0; j < from.index.size(); ++j) {
    const float *row = &from.items[static_cast<size_t>(from.index[j] * D)];
    double dot = 0, size = 0;
    for (size_t i = 0; i < sum.size(); ++i)
      dot += double(row[i]) * from.q[i], size += std::fabs(double(row[i]) * from.q[i]);
    EXPECT_NEAR(foundDots[j], dot, size * 1e-6) << D << " columns, row " << j;
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += double(foundDots[j]) * row[i];
      sizes[i] += std::fabs(double(foundDots[j]) * row[i]);
    }
  }
  for (size_t i = 0; i < sum.size(); ++i)
    EXPECT_NEAR(foundSums[i], sum[i], sizes[i] * 1e-5) << D << " columns, element " << i;
}

TEST(GatheredRows, ProductsAndSumsOfRoundedRows) {
  for (int64_t n : {1, 4, 9}) {
    expectSumsOfRounded<8, 1, 8>(n);
    expectSumsOfRounded<48, 4, 4>(n);
    expectSumsOfRounded<512, 32, 4>(n);
  }
}

/// Logits of `values` in turn, each of items of ones and q of one column.
template <int64_t D, int64_t L, int64_t V> std::vector<float> mixOf(std::vector<float> values) {
  Case made;
  for (size_t j = 0; j < values.size(); ++j) {
    made.items.insert(made.items.end(), static_cast<size_t>(D), 1);
    made.items[j * static_cast<size_t>(D)] = values[j];
    made.index.push_back(static_cast<int64_t>(j));
  }
  made.q.assign(static_cast<size_t>(D), 0);
  made.q[0] = 1;
  std::vector<float> mix = run<D, L, V>(made).mix;
  return {mix.begin() + 1, mix.end()};
}

template <int64_t D, int64_t L, int64_t V> void expectExtremes() {
  for (float each : mixOf<D, L, V>({-1e30f, 200, 100, 200, -1e30f, 199.75f}))
    EXPECT_NEAR(each, 2 + std::exp(-1.0f), 1e-5);
  for (float each : mixOf<D, L, V>({3e37f, -3e37f, 1})) // the first one alone
    EXPECT_EQ(each, 1);
  for (float each : mixOf<D, L, V>({-3e37f, 1, 3e37f}))
    EXPECT_EQ(each, 1);
  for (float each : mixOf<D, L, V>({-kInfinity, 2, -kInfinity, 2, 2}))
    EXPECT_EQ(each, 3);
  for (float each : mixOf<D, L, V>({-kInfinity, -kInfinity, -kInfinity}))
    EXPECT_EQ(each, 0);
  for (float bad : {kInfinity, std::nanf("")})
    for (float each : mixOf<D, L, V>({1, 2, 3, bad, 4}))
      EXPECT_TRUE(std::isnan(each));
}

TEST(GatheredRows, SoftmaxOfExtremeLogits) {
  expectExtremes<8, 1, 8>();
  expectExtremes<64, 4, 4>();
  expectExtremes<1024, 32, 4>();
}

//===----------------------------------------------------------------------===//
// Dot products, sums and scattered rows
//===----------------------------------------------------------------------===//

constexpr int kThreads = 64;
constexpr int64_t kMostPicked = 40;

/// A row has the dot products of q with the rows that it picks, their sum by these, and half of
/// what softmaxSum makes of that sum. Those it picks then get q by its dot products.
template <int64_t D, int64_t L, int64_t V>
__global__ void gatherAndScatter(const float *items, const int64_t *index, int64_t n,
                                 const float *q, float *dots, float *sum, float *weighted,
                                 float *items2) {
  constexpr int64_t kPack = L == 1 ? D : V;
  __shared__ float ofRow[kThreads / L][kMostPicked];
  float *own = ofRow[threadIdx.x / L], mix[kSlots<D, L, kPack>], half[kSlots<D, L, kPack>];
  if (threadIdx.x >= L) // one row
    return;
  gatherDot<D, L, V>(items, D, index, n, q, own);
  for (int64_t j = lane<L>(); j < n; j += L)
    dots[n - 1 - j] = own[n - 1 - j]; // what another lane has written
  gatherSum<D, L, V>(items, D, index, own, n, mix);
  softmaxSum<D, L, V>(mix, 0.5f, n > 0 ? 3.0f : -kInfinity, 3.0f, n != 3, half);
  forElements<D, L, kPack>([&](int64_t slot, int64_t element) {
    sum[element] = mix[slot];
    weighted[element] = half[slot];
  });
  scatterAddOuter<D, L, kPack>(items2, D, index, own, n, q);
}

template <int64_t D, int64_t L, int64_t V> void expectProducts() {
  for (int64_t n : {0, 1, 2, 3, 5, 39}) {
    const std::string what = std::to_string(D) + " columns, " + std::to_string(n);
    const Case from = makeCase(D, n, -1);
    using cuda::test::Copy;
    Copy<float> items(from.items), q(from.q), dots{std::vector<float>(from.index.size(), -7)};
    Copy<float> sum{std::vector<float>(from.q.size(), -7)}, half{std::vector<float>(from.q.size())},
        scattered(from.items);
    Copy<int64_t> index(from.index);
    GENREC_CUDA_LAUNCH(cuda::test::testStream(), (cuda::LaunchShape{1, kThreads, 0}),
                       (gatherAndScatter<D, L, V>), items.data(), index.data(), n, q.data(),
                       dots.data(), sum.data(), half.data(), scattered.data());
    const std::vector<float> found = dots.fetch(), sums = sum.fetch(), halves = half.fetch();
    std::vector<double> exact(from.q.size(), 0), after(from.items.begin(), from.items.end());
    for (size_t j = 0; j < from.index.size(); ++j) {
      const size_t row = static_cast<size_t>(from.index[j] * D);
      double dot = 0;
      for (size_t i = 0; i < from.q.size(); ++i)
        dot += double(from.items[row + i]) * from.q[i];
      EXPECT_NEAR(found[j], dot, 1e-5 * (1 + std::fabs(dot))) << what << ", row " << j;
      for (size_t i = 0; i < from.q.size(); ++i) {
        exact[i] += dot * from.items[row + i];
        after[row + i] += dot * from.q[i];
      }
    }
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_NEAR(sums[i], exact[i], 1e-4) << what << ", element " << i;
      EXPECT_EQ(halves[i], n == 3 ? 0 : sums[i] / 2) << what << ", element " << i;
    }
    const std::vector<float> more = scattered.fetch();
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(more[i], after[i], 1e-4) << what << ", place " << i;
  }
}

TEST(GatheredRows, ProductsOfEveryNumberOfLanes) {
  expectProducts<7, 1, 7>();
  expectProducts<50, 16, 1>();
  expectProducts<64, 4, 4>();
  expectProducts<100, 32, 1>();
  expectProducts<260, 64, 4>(); // two warps
}

} // namespace
} // namespace genrec::rt::kernels
