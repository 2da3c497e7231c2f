//===- exact_sum_test.cpp - sums of floats without rounding ---------------===//

#include "../../runtime/ranks/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

using namespace genrec::rt;

namespace {

constexpr float kLeast = std::numeric_limits<float>::denorm_min(),
                kMost = std::numeric_limits<float>::max(),
                kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

uint32_t sumBits(const std::vector<float> &values) {
  ExactSum sum;
  sum.add(values);
  float first = sum.round();
  EXPECT_EQ(std::bit_cast<uint32_t>(sum.round()),
            std::bit_cast<uint32_t>(first)); // asking changes nothing
  return std::bit_cast<uint32_t>(first);
}
float sumOf(const std::vector<float> &values) { return std::bit_cast<float>(sumBits(values)); }

/// A float of any bits whose exponent is in [least, most], as the format counts it: 0 to 254.
float makeFloat(std::mt19937 &random, uint32_t least, uint32_t most) {
  auto bits = static_cast<uint32_t>(random()), range = most - least + 1;
  return std::bit_cast<float>((least + static_cast<uint32_t>(random()) % range) << 23 |
                              (bits & 0x807FFFFF));
}

TEST(ExactSum, EveryFloatIsItsOwnSum) {
  std::mt19937 random(1);
  for (float value :
       {0.0F, 1.0F, -1.0F, kLeast, -kLeast, kMost, -kMost, std::numeric_limits<float>::min()})
    EXPECT_EQ(sumOf({value}), value);
  for (int i = 0; i < 100000; ++i) {
    float value = makeFloat(random, 0, 254);
    ASSERT_EQ(sumOf({value}), value);
  }
  EXPECT_EQ(sumBits({}), 0U);
  EXPECT_EQ(sumBits({-0.0F}), 0U);
  EXPECT_EQ(sumBits({kMost, -kMost}), 0U);
}

TEST(ExactSum, AgreesWithIntegers) {
  // Exponents over a range of 64: integers of 128 bits hold the sum, and a conversion rounds it to
  // the nearest, ties to even.
  std::mt19937 random(2);
  for (int round = 0; round < 20000; ++round) {
    uint32_t least = 1 + random() % 191;
    std::vector<float> values(1 + random() % 50);
    __int128 sum = 0;
    for (float &value : values) {
      value = makeFloat(random, least, least + random() % 64);
      sum += static_cast<__int128>(
          std::ldexp(static_cast<double>(value), 150 - static_cast<int>(least)));
    }
    // The float of the integer, then the power of two: both exact but for subnormal results and
    // overflow.
    float expected = std::ldexp(static_cast<float>(sum), static_cast<int>(least) - 150);
    if (std::abs(expected) >= std::numeric_limits<float>::min())
      ASSERT_EQ(sumOf(values), expected) << round;
  }
}

TEST(ExactSum, AgreesWithLongDoubles) {
  // Two values less than 40 binary digits apart: a long double holds the sum, and rounds subnormal
  // ones as they are.
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    uint32_t least = random() % 215;
    float a = makeFloat(random, least, least + 39), b = makeFloat(random, least, least + 39);
    ASSERT_EQ(sumOf({a, b}), static_cast<float>(static_cast<long double>(a) + b))
        << a << " + " << b;
  }
}

TEST(ExactSum, TiesGoToEven) {
  float ulp = std::ldexp(1.0F, -23);
  EXPECT_EQ(sumOf({1, ulp / 2}), 1.0F);
  EXPECT_EQ(sumOf({1 + ulp, ulp / 2}), 1 + 2 * ulp);
  EXPECT_EQ(sumOf({-1 - ulp, -ulp / 2}), -1 - 2 * ulp);
  // The least bit of all decides; a sum in long doubles would not see it.
  EXPECT_EQ(sumOf({1, ulp / 2, kLeast}), 1 + ulp);
  EXPECT_EQ(sumOf({1 + ulp, ulp / 2, -kLeast}), 1 + ulp);
  EXPECT_EQ(sumOf({kMost, kLeast, -kMost}), kLeast);
}

TEST(ExactSum, WhatIsTooLargeIsInfinite) {
  float half = std::ldexp(1.0F, 103); // of the last place of the largest float
  EXPECT_EQ(sumOf({kMost, half}), kInfinity);
  EXPECT_EQ(sumOf({-kMost, -half}), -kInfinity);
  EXPECT_EQ(sumOf({kMost, half, -kLeast}), kMost);
  EXPECT_EQ(sumOf({kMost, kMost, kMost, -kMost, -kMost}), kMost); // on the way, nothing is
  EXPECT_EQ(sumOf(std::vector<float>(100000, kMost)), kInfinity);
}

TEST(ExactSum, InfinitiesAndNansStay) {
  EXPECT_EQ(sumOf({1, kInfinity, -kMost}), kInfinity);
  EXPECT_EQ(sumOf({-kInfinity, kMost}), -kInfinity);
  EXPECT_TRUE(std::isnan(sumOf({kInfinity, 1, -kInfinity})));
  EXPECT_TRUE(std::isnan(sumOf({kInfinity, kNan})));
  EXPECT_TRUE(std::isnan(sumOf({-kNan, 1})));
}

TEST(ExactSum, OrderAndSplitDoNotMatter) {
  std::mt19937 random(4);
  for (int round = 0; round < 20; ++round) {
    std::vector<float> values(3000);
    for (float &value : values)
      value = makeFloat(random, 0, round % 2 ? 250 : 20);
    for (size_t i = 0; i < values.size() / 2; ++i) // most of it cancels
      values.push_back(-values[i]);
    uint32_t expected = sumBits(values);
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(sumBits(values), expected);
    for (int32_t ranks : {1, 2, 3, 4}) {
      std::vector<size_t> cuts = {0};
      for (int32_t rank = 1; rank < ranks; ++rank)
        cuts.push_back(random() % values.size());
      cuts.push_back(values.size());
      std::sort(cuts.begin(), cuts.end());
      runThreadRanks(ranks, [&](Communicator &comm) {
        size_t begin = cuts[comm.getRank()], end = cuts[comm.getRank() + 1];
        ExactSum sum;
        for (size_t i = begin; i < end; ++i) // one by one: as good as at once
          sum.add({&values[i], 1});
        ExactSum more;
        float value = static_cast<float>(comm.getRank());
        more.add({&value, 1});
        ExactSum together[] = {more, sum};
        sum.reduce(comm);
        EXPECT_EQ(std::bit_cast<uint32_t>(sum.round()), expected);
        int64_t before = comm.rounds();
        ExactSum::reduceAll(comm, together);
        EXPECT_EQ(comm.rounds(), before + 1);
        EXPECT_EQ(together[0].round(), static_cast<float>(ranks * (ranks - 1) / 2));
        EXPECT_EQ(std::bit_cast<uint32_t>(together[1].round()), expected);
      });
    }
  }
}

TEST(ExactSum, SpecialValuesReachAllRanks) {
  runThreadRanks(3, [](Communicator &comm) {
    ExactSum sum;
    float value = comm.getRank() == 1 ? kInfinity : 1;
    sum.add({&value, 1});
    sum.reduce(comm);
    EXPECT_EQ(sum.round(), kInfinity);
    value = comm.getRank() == 2 ? -kInfinity : 1;
    ExactSum other;
    other.add({&value, 1});
    other.reduce(comm);
    EXPECT_EQ(other.round(), -kInfinity);
  });
}

//===----------------------------------------------------------------------===//
// Doubles
//===----------------------------------------------------------------------===//

double doubleSumOf(const std::vector<double> &values) {
  ExactDoubleSum sum;
  sum.add(values);
  return sum.round();
}

/// A double of any bits whose exponent is in [least, most], as the format counts it: 0 to 2046.
double makeDouble(std::mt19937_64 &random, uint64_t least, uint64_t most) {
  uint64_t bits = random(), exponent = least + random() % (most - least + 1);
  return std::bit_cast<double>(exponent << 52 | (bits & 0x800FFFFFFFFFFFFF));
}

TEST(ExactDoubleSum, EveryDoubleIsItsOwnSum) {
  using Limits = std::numeric_limits<double>;
  std::mt19937_64 random(1);
  for (double value : {0.0, 1.0, -1.0, Limits::denorm_min(), Limits::max(), -Limits::max(), Limits::min()})
    EXPECT_EQ(doubleSumOf({value}), value);
  for (int i = 0; i < 100000; ++i) {
    double value = makeDouble(random, 0, 2046);
    ASSERT_EQ(doubleSumOf({value}), value);
  }
  EXPECT_EQ(doubleSumOf({Limits::max(), Limits::denorm_min(), -Limits::max()}),
            Limits::denorm_min());
  EXPECT_EQ(doubleSumOf({Limits::max(), Limits::max()}), Limits::infinity());
  EXPECT_TRUE(std::isnan(doubleSumOf({Limits::infinity(), -Limits::infinity()})));
}

TEST(ExactDoubleSum, AgreesWithLongDoubles) {
  // Two values less than 11 binary digits apart: a long double holds the sum.
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    uint64_t least = random() % 2036;
    double a = makeDouble(random, least, least + 9), b = makeDouble(random, least, least + 9);
    ASSERT_EQ(doubleSumOf({a, b}), static_cast<double>(static_cast<long double>(a) + b))
        << a << " + " << b;
  }
}

TEST(ExactDoubleSum, OrderAndRanksDoNotMatter) {
  std::mt19937_64 random(3);
  std::vector<double> values(3000);
  for (double &value : values)
    value = makeDouble(random, 0, 2000);
  for (size_t i = 0; i < values.size() / 2; ++i) // most of it cancels
    values.push_back(-values[i]);
  double expected = doubleSumOf(values);
  std::shuffle(values.begin(), values.end(), random);
  EXPECT_EQ(doubleSumOf(values), expected);
  runThreadRanks(3, [&](Communicator &comm) {
    ExactDoubleSum sum;
    for (size_t i = comm.getRank(); i < values.size(); i += 3)
      sum.add(values[i]);
    sum.reduce(comm);
    EXPECT_EQ(sum.round(), expected);
  });
}

} // namespace
