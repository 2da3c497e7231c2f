// Philox against the published known answers, streams against their
// definition, and initial values against their distributions.

#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/init.h"

#include <algorithm>
#include <set>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::Distribution;
using k::PhiloxBlock;
using k::RandomStream;

void expectBlock(PhiloxBlock got, PhiloxBlock expected) {
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(got.word[i], expected.word[i]) << "word " << i;
}

// The vectors of Random123 1.14 (tests/kat_vectors, philox4x32 10).
KERNEL_TEST(KernelsRandom, PhiloxKnownAnswers) {
  expectBlock(k::philox4x32({{0, 0, 0, 0}}, 0, 0),
              {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  uint32_t ones = 0xffffffff;
  expectBlock(k::philox4x32({{ones, ones, ones, ones}}, ones, ones),
              {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expectBlock(
      k::philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
      {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

KERNEL_TEST(KernelsRandom, SplitmixKnownAnswers) {
  // The first outputs of SplitMix64 seeded with 1234567.
  EXPECT_EQ(k::splitmix64(1234567), 6457827717110365317ull);
  EXPECT_EQ(k::splitmix64(1234567 + 0x9E3779B97F4A7C15ull), 3203168211198807973ull);
}

KERNEL_TEST(KernelsRandom, WordIsWhatTheHeaderDefines) {
  RandomStream stream{42, 7, 3};
  uint64_t row = 0x123456789ABCDEF0ull;
  uint64_t key = k::splitmix64(42 + 0x9E3779B97F4A7C15ull * 7);
  for (uint64_t e : {0, 15, 16, 63, 64, 100, 1000, 1 << 20, 5 << 20}) {
    PhiloxBlock block =
        k::philox4x32({{static_cast<uint32_t>(e / 64 * 16 + e % 16), 3, 0x9ABCDEF0u, 0x12345678u}},
                      static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    EXPECT_EQ(k::philoxWord(stream, row, e), block.word[e / 16 % 4]) << e;
  }
}

KERNEL_TEST(KernelsRandom, FilledBitsAreTheWords) {
  RandomStream stream{~0ull, 1ull << 40, 0xFFFFFFFFu};
  for (uint64_t first : {0, 1, 17, 63, 64, 1 << 20, (1 << 20) - 5})
    for (int64_t count : {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 200}) {
      std::vector<uint32_t> words(static_cast<size_t>(count) + 1, 77);
      k::fillBits(stream, 99 + first, first, count, words.data());
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(words[static_cast<size_t>(i)],
                  k::philoxWord(stream, 99 + first, first + static_cast<uint64_t>(i)))
            << first << " + " << i;
      EXPECT_EQ(words.back(), 77u);
    }
}

template <int64_t N> void expectFilledFromTheStart() {
  RandomStream stream{5, 6, 7};
  std::vector<uint32_t> words(N + 1, 77);
  k::fillBits<N>(stream, 99, words.data());
  for (int64_t i = 0; i < N; ++i)
    ASSERT_EQ(words[static_cast<size_t>(i)], k::philoxWord(stream, 99, static_cast<uint64_t>(i)))
        << i << " of " << N;
  EXPECT_EQ(words.back(), 77u) << N;
}

KERNEL_TEST(KernelsRandom, FilledBitsOfAKnownCountAreTheWords) {
  expectFilledFromTheStart<1>();
  expectFilledFromTheStart<7>();
  expectFilledFromTheStart<16>();
  expectFilledFromTheStart<50>();
  expectFilledFromTheStart<63>();
  expectFilledFromTheStart<64>();
  expectFilledFromTheStart<65>();
  expectFilledFromTheStart<200>();
}

KERNEL_TEST(KernelsRandom, HalfIsWhatTheHeaderDefines) {
  RandomStream stream{42, 7, 3};
  uint64_t row = 0x123456789ABCDEF0ull;
  uint64_t key = k::splitmix64(42 + 0x9E3779B97F4A7C15ull * 7);
  for (uint64_t e : {0, 1, 15, 16, 63, 64, 101, 1000, 1 << 20, 5 << 20}) {
    PhiloxBlock block = k::philox4x32(
        {{static_cast<uint32_t>(e / 64 * 8 + e % 16 / 2), 3, 0x9ABCDEF0u, 0x12345678u}},
        static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
    uint32_t word = block.word[e / 16 % 4];
    EXPECT_EQ(k::philoxHalf(stream, row, e), e % 2 ? word >> 16 : word & 0xFFFF) << e;
  }
}

template <int64_t N> void expectHalves() {
  RandomStream stream{5, 6, 7};
  std::vector<uint16_t> halves(N + 1, 77);
  k::fillHalves<N>(stream, 99, halves.data());
  for (int64_t i = 0; i < N; ++i)
    ASSERT_EQ(halves[static_cast<size_t>(i)], k::philoxHalf(stream, 99, static_cast<uint64_t>(i)))
        << i << " of " << N;
  EXPECT_EQ(halves.back(), 77u) << N;
}

KERNEL_TEST(KernelsRandom, FilledHalvesAreTheHalves) {
  expectHalves<1>();
  expectHalves<7>();
  expectHalves<16>();
  expectHalves<63>();
  expectHalves<64>();
  expectHalves<65>();
  expectHalves<200>();
}

KERNEL_TEST(KernelsRandom, UniformNumbersAreTheHighBitsOfTheWords) {
  RandomStream stream{5, 6, 7};
  float drawn[70];
  k::fillUniform<70>(stream, 99, drawn);
  for (uint64_t i = 0; i < 70; ++i) {
    EXPECT_EQ(drawn[i], static_cast<float>(k::philoxWord(stream, 99, i) >> 8) / 16777216.0f) << i;
    EXPECT_TRUE(drawn[i] >= 0 && drawn[i] < 1) << i;
  }
}

KERNEL_TEST(KernelsRandom, EveryPartOfTheIdentityMatters) {
  std::set<uint32_t> words;
  RandomStream base{1, 2, 3};
  words.insert(k::philoxWord(base, 4, 5));
  words.insert(k::philoxWord({2, 2, 3}, 4, 5));
  words.insert(k::philoxWord({1, 3, 3}, 4, 5));
  words.insert(k::philoxWord({1, 2, 4}, 4, 5));
  words.insert(k::philoxWord(base, 5, 5));
  words.insert(k::philoxWord(base, 4 + (1ull << 32), 5));
  words.insert(k::philoxWord(base, 4, 6));
  words.insert(k::philoxWord({1ull << 32 | 1, 2, 3}, 4, 5));
  EXPECT_EQ(words.size(), 8u);
}

KERNEL_TEST(KernelsRandom, UniformsAndIndices) {
  EXPECT_EQ(k::uniformFromBits(0), 0.0f);
  EXPECT_EQ(k::uniformFromBits(0xFFFFFFFFu), 1.0f - 0x1p-24f);
  EXPECT_EQ(k::drawIndex(0, 1), 0u);
  EXPECT_EQ(k::drawIndex(0xFFFFFFFFu, 3706), 3705u);
  EXPECT_EQ(k::drawIndex(0xFFFFFFFFu, 0xFFFFFFFFu), 0xFFFFFFFEu);
  EXPECT_EQ(k::drawIndex64(~0ull, 1ull << 40), (1ull << 40) - 1);
  EXPECT_EQ(k::drawIndex64(1ull << 63, 1ull << 40), 1ull << 39);
  // Each of 10 indices within five standard deviations of 10,000 draws.
  int64_t counts[10] = {};
  for (uint64_t e = 0; e < 100000; ++e)
    ++counts[k::drawIndex(k::philoxWord({5, 6, 7}, 8, e), 10)];
  for (int64_t count : counts)
    EXPECT_NEAR(static_cast<double>(count), 10000, 5 * std::sqrt(9000.0));
}

KERNEL_TEST(KernelsRandom, DropoutKeepsItsShare) {
  EXPECT_EQ(k::keepThreshold(0), 0u);
  EXPECT_EQ(k::keepThreshold(-1), 0u);
  EXPECT_EQ(k::keepThreshold(NAN), 0u);
  EXPECT_EQ(k::keepThreshold(1), 0xFFFFFFFFu);
  EXPECT_TRUE(k::keeps(0, k::keepThreshold(0)));
  EXPECT_EQ(k::keepThreshold(0.25), 1u << 30);
  // ceil(0.3 * 2^32) of the double 0.3; of the float it would be 1288490240.
  EXPECT_EQ(k::keepThreshold(0.3), 1288490189u);
  EXPECT_EQ(k::keepThreshold(1 - 0x1p-40), 0xFFFFFFFFu);
  int64_t kept = 0;
  for (uint64_t e = 0; e < 100000; ++e)
    kept += k::keeps(k::philoxWord({1, 2, 3}, 4, e), k::keepThreshold(0.2f));
  EXPECT_NEAR(static_cast<double>(kept), 80000, 5 * std::sqrt(16000.0));
}

struct Moments {
  double mean, deviation, least, most;
};
Moments momentsOf(Distribution kind, float mean, float scale) {
  double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
  const int rows = 4000, columns = 50;
  std::vector<float> row(columns);
  for (int id = 0; id < rows; ++id) {
    k::initialRow(kind, mean, scale, 11, 22, static_cast<uint64_t>(id), columns, row.data());
    for (double x : row) {
      sum += x, squares += x * x;
      least = std::min(least, x), most = std::max(most, x);
    }
  }
  double n = rows * columns;
  return {sum / n, std::sqrt(squares / n - sum / n * (sum / n)), least, most};
}

KERNEL_TEST(KernelsInit, DistributionsHaveTheirMoments) {
  Moments m = momentsOf(Distribution::normal, 1, 0.5);
  EXPECT_NEAR(m.mean, 1, 0.006);
  EXPECT_NEAR(m.deviation, 0.5, 0.005);
  EXPECT_GT(m.most, 1 + 0.5 * 4);
  m = momentsOf(Distribution::truncatedNormal, 0, 0.02f);
  EXPECT_NEAR(m.mean, 0, 0.0003);
  // The standard deviation of a normal cut at two of its own.
  EXPECT_NEAR(m.deviation, 0.02 * 0.87962566, 0.0002);
  EXPECT_GE(m.least, -0.04f);
  EXPECT_LE(m.most, 0.04f);
  EXPECT_GT(m.most, 0.0399);
  m = momentsOf(Distribution::uniform, 0, 3);
  EXPECT_NEAR(m.mean, 0, 0.02);
  EXPECT_NEAR(m.deviation, std::sqrt(3.0), 0.01);
  EXPECT_GE(m.least, -3);
  EXPECT_LT(m.most, 3.0001);
  m = momentsOf(Distribution::zeros, 5, 6);
  EXPECT_EQ(m.least, 0);
  EXPECT_EQ(m.most, 0);
  m = momentsOf(Distribution::constant, 0.25, 6);
  EXPECT_EQ(m.least, 0.25);
  EXPECT_EQ(m.most, 0.25);
}

KERNEL_TEST(KernelsInit, QuantileInvertsTheDistribution) {
  for (double p = 1.2e-10; p < 0.5; p *= 1.01) {
    double x = k::detail::normalQuantile(p);
    double slope = std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
    ASSERT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)), p, 1e-8 * slope * std::fabs(x));
    ASSERT_NEAR(k::detail::normalQuantile(1 - p), -x, 1e-6);
  }
}

KERNEL_TEST(KernelsInit, RowsAreTheirElements) {
  float row[130];
  k::initialRow(Distribution::normal, 0, 1, 1, 2, 3, 130, row);
  for (uint32_t c = 0; c < 130; ++c)
    EXPECT_EQ(row[c], k::initialValue(Distribution::normal, 0, 1, 1, 2, 3, c));
  EXPECT_NE(row[0], k::initialValue(Distribution::normal, 0, 1, 1, 2, 4, 0));
  EXPECT_NE(row[0], k::initialValue(Distribution::normal, 0, 1, 1, 3, 3, 0));
  EXPECT_NE(row[0], k::initialValue(Distribution::normal, 0, 1, 2, 2, 3, 0));
}

} // namespace
