//===- portions_test.cpp - sums whose bits no number of ranks changes -----===//

#include "genrec_rt/portions.h"

#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace genrec::rt;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

/// Values of a portion whose sum depends on the order: of many sizes.
std::vector<float> makePortion(int32_t portion, int64_t length) {
  std::mt19937 random(portion * 7919 + 1);
  std::vector<float> values(length);
  for (float &value : values)
    value = std::ldexp(static_cast<float>(random() % 2000) - 1000,
                       static_cast<int>(random() % 30) - 15);
  return values;
}

/// The bits of the sum on `ranks` ranks; those of all ranks are compared.
std::vector<uint32_t> run(int32_t ranks, int32_t portions, int64_t length) {
  std::vector<std::vector<uint32_t>> results(ranks);
  runThreadRanks(ranks, [&](Communicator &comm) {
    PortionSums sums(length, portions, comm.getRank(), ranks);
    for (int round = 0; round < 2; ++round) { // buffers of the first are used again
      PortionRange own = getPortions(portions, comm.getRank(), ranks);
      for (int32_t i = 0; i < own.count; ++i) {
        std::vector<float> values = makePortion(own.first + i, length);
        float *to = sums.begin();
        for (int64_t j = 0; j < length; ++j)
          to[j] = values[j];
        sums.commit();
      }
      std::vector<float> total(length, NAN);
      sums.reduce(comm, total.data());
      std::vector<uint32_t> bits;
      for (float value : total)
        bits.push_back(std::bit_cast<uint32_t>(value));
      EXPECT_TRUE(round == 0 || bits == results[comm.getRank()]);
      results[comm.getRank()] = bits;
    }
  });
  for (const std::vector<uint32_t> &result : results)
    EXPECT_EQ(result, results[0]);
  return results[0];
}

/// The tree of portions.h, written down plainly.
float addTree(const std::vector<float> &values, size_t first, size_t span) {
  if (span == 1)
    return values[first];
  float left = addTree(values, first, span / 2);
  return first + span / 2 < values.size() ? left + addTree(values, first + span / 2, span / 2)
                                          : left;
}

class Portions : public testing::TestWithParam<int32_t> {};

TEST_P(Portions, BitsDoNotDependOnRanks) {
  int32_t portions = GetParam();
  for (int64_t length : {1, 5, 100, 20000}) { // the last is cut into slices
    std::vector<uint32_t> one = run(1, portions, length);
    for (int32_t ranks : {2, 3, 4, 5})
      if (ranks <= portions) {
        EXPECT_EQ(run(ranks, portions, length), one) << ranks << " ranks, length " << length;
      }
    std::vector<float> first;
    for (int32_t portion = 0; portion < portions; ++portion)
      first.push_back(makePortion(portion, length)[0]);
    EXPECT_EQ(std::bit_cast<float>(one[0]), addTree(first, 0, std::bit_ceil(first.size())));
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Portions, testing::Values(1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 24));

TEST(Portions, TheOrderMatters) {
  // Else the tests above would show nothing.
  std::vector<float> values;
  for (int32_t portion = 0; portion < 12; ++portion)
    values.push_back(makePortion(portion, 1)[0]);
  float forwards = 0;
  for (float value : values)
    forwards += value;
  EXPECT_NE(forwards, addTree(values, 0, 16));
}

TEST(Portions, AreDealtInRuns) {
  EXPECT_EQ(getPortions(12, 1, 4).first, 3);
  EXPECT_EQ(getPortions(7, 0, 3).count, 3);
  EXPECT_EQ(getPortions(7, 1, 3).first, 3);
  EXPECT_EQ(getPortions(7, 2, 3).first, 5);
  EXPECT_THAT([] { getPortions(2, 0, 3); },
              ThrowsMessage<Error>(HasSubstr("2 portions are too few for 3 ranks")));
}

TEST(Portions, MissingOnesAreAnError) {
  std::unique_ptr<Communicator> comm = makeSingleComm();
  PortionSums sums(4, 2, 0, 1);
  sums.begin();
  sums.commit();
  float total[4];
  EXPECT_THAT([&] { sums.reduce(*comm, total); },
              ThrowsMessage<Error>(HasSubstr("1 of 2 portions")));
  sums.begin();
  sums.commit();
  EXPECT_THAT([&] { sums.begin(); }, ThrowsMessage<Error>(HasSubstr("all 2 portions")));
}

} // namespace
