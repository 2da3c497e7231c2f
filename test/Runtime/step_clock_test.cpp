//===- step_clock_test.cpp - Which steps are how long ago -----------------===//

#include "genrec_rt/step_clock.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace genrec::rt::test {
namespace {

/// expired(ttl) after each of the given times, of steps 1, 2, …
std::vector<int64_t> expiredAfter(int64_t ttl, const std::vector<std::optional<int64_t>> &times) {
  StepClock clock;
  clock.watch(ttl);
  std::vector<int64_t> expired;
  for (size_t i = 0; i < times.size(); ++i) {
    clock.end(static_cast<int64_t>(i) + 1, times[i]);
    expired.push_back(clock.expired(ttl));
  }
  return expired;
}

TEST(StepClock, RowsStayForTheirTtl) {
  // Of 3 seconds, in periods of one.
  EXPECT_EQ(expiredAfter(3, {10, 11, 12, 13, 14}), (std::vector<int64_t>{-1, -1, -1, 1, 2}));
  // Several steps in a second; the first of the next one looks.
  EXPECT_EQ(expiredAfter(3, {10, 10, 11, 12, 13, 13, 14}),
            (std::vector<int64_t>{-1, -1, -1, -1, 2, -1, 3}));
  // Time without steps.
  EXPECT_EQ(expiredAfter(3, {10, 11, 900, 901}), (std::vector<int64_t>{-1, -1, 2, -1}));
}

TEST(StepClock, LongTimesAreCutIntoSixteenths) {
  // Periods of 10 seconds: those of steps 1 to 3 and of step 4.
  EXPECT_EQ(expiredAfter(160, {100, 105, 109, 110, 269, 270, 279, 280, 290}),
            (std::vector<int64_t>{-1, -1, -1, -1, -1, 3, -1, 4, -1}));
}

TEST(StepClock, NeverGoesBackAndNeedsNoTime) {
  EXPECT_EQ(expiredAfter(3, {10, 5, std::nullopt, -7, 12, 13}),
            (std::vector<int64_t>{-1, -1, -1, -1, -1, 4}));
  EXPECT_EQ(expiredAfter(3, {std::nullopt, std::nullopt, 10, 12, 13}),
            (std::vector<int64_t>{-1, -1, -1, -1, 3}))
      << "steps before the first time are as old as it";
  EXPECT_EQ(expiredAfter(2, {-5, -4, -3, -2}), (std::vector<int64_t>{-1, -1, 1, 2}))
      << "before 1970";
  StepClock back;
  back.watch(3);
  for (int64_t step : {1, 2, 3})
    back.end(step, 12 - step);
  EXPECT_EQ(back.state().seconds, 11);
  EXPECT_EQ(back.state().periods.at(3), (std::vector<StepClock::Period>{{11, 1}}));
  StepClock clock; // that nobody needs
  EXPECT_FALSE(clock.isNeeded());
  clock.end(1, 10);
  EXPECT_EQ(clock.expired(3), -1);
}

/// Rows leave after their ttl, and at the latest in the first step after an eighth more; a clock
/// that was saved and restored says the same; few periods are kept.
TEST(StepClock, KeepsItsPromiseAndLittle) {
  std::mt19937_64 random(3);
  for (int64_t ttl : {1, 2, 15, 16, 31, 32, 33, 100, 1000, 2592000})
    for (int64_t pace : {1, 3, 40}) {
      StepClock clock;
      clock.watch(ttl);
      clock.watch(7);
      const int64_t period = StepClock::periodSeconds(ttl);
      std::vector<int64_t> times{0}; // by step
      int64_t gone = 0, seconds = 1'000'000;
      for (int64_t step = 1; step <= 3000; ++step) {
        seconds +=
            static_cast<int64_t>(random() % static_cast<uint64_t>(2 * pace * period / 8 + 2));
        times.push_back(seconds);
        clock.end(step, seconds);
        int64_t expired = clock.expired(ttl);
        ASSERT_TRUE(expired == -1 || expired > gone) << ttl;
        if (expired > gone)
          for (; gone < expired; ++gone)
            ASSERT_GE(seconds - times[gone + 1], ttl) << "too early: step " << gone + 1;
        if (gone < step)
          ASSERT_LT(seconds - times[gone + 1], ttl + 2 * period) << "too late: step " << gone + 1;
        ASSERT_LE(clock.state().periods.at(ttl).size(), size_t(StepClock::kMostPeriods));
        if (step % 100 == 0) {
          StepClock other;
          other.watch(ttl);
          other.watch(7);
          other.restore(clock.state());
          EXPECT_EQ(other.state(), clock.state());
          // It says what the other does from the next step on.
          clock = other;
        }
      }
      EXPECT_GT(gone, 0);
    }
}

TEST(StepClock, GoesOnWithOtherTables) {
  StepClock clock;
  clock.watch(100);
  clock.end(1, 50);
  StepClock other;
  other.watch(20);
  other.restore(clock.state());
  EXPECT_EQ(other.state().seconds, 50);
  EXPECT_TRUE(other.state().periods.at(20).empty());
  EXPECT_FALSE(other.state().periods.contains(100));
  other.end(2, 51);
  other.end(3, 71);
  EXPECT_EQ(other.expired(20), 2);
}

} // namespace
} // namespace genrec::rt::test
