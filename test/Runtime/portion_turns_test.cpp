//===- portion_turns_test.cpp - Portions of a rank, one at a time ---------===//

#include "../../runtime/session/portion_turns.h"

#include "genrec_rt/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

namespace genrec::rt {
namespace {

class PortionsInTurn : public testing::Test {
protected:
  /// Runs a step in which each portion notes "<portion><phase>", and meets between two phases.
  std::string run(size_t count, int phases) {
    std::string seen;
    turns.run(count, [&](size_t portion) {
      for (int phase = 0; phase < phases; ++phase) {
        if (phase > 0)
          turns.meet([&] { seen += "| "; });
        EXPECT_FALSE(isBusy.exchange(true));
        seen += std::to_string(portion) + static_cast<char>('a' + phase) + " ";
        isBusy = false;
      }
    });
    return seen;
  }

  /// What `run` throws where `body(portion, phase)` throws; empty: nothing.
  template <class Body> std::string failure(size_t count, int phases, const Body &body) {
    try {
      turns.run(count, [&](size_t portion) {
        for (int phase = 0; phase < phases; ++phase) {
          if (phase > 0)
            turns.meet([&] { body(count, phase); });
          body(portion, phase);
        }
      });
    } catch (const std::exception &error) {
      return error.what();
    }
    return "";
  }

  std::atomic<int> entered = 0;
  std::atomic<bool> isBusy = false;
  PortionTurns turns{[this] { ++entered; }};
};

TEST_F(PortionsInTurn, GoOnInTheirOrderWhereTheyMeet) {
  for (int step = 0; step < 50; ++step) {
    EXPECT_EQ(run(3, 3), "0a 1a 2a | 0b 1b 2b | 0c 1c 2c ");
    EXPECT_EQ(run(2, 2), "0a 1a | 0b 1b ");
  }
  EXPECT_EQ(entered, 2); // each thread once
}

TEST_F(PortionsInTurn, RunOnTheCallingThreadWhereTheyDoNotMeet) {
  EXPECT_EQ(run(3, 1), "0a 1a 2a ");
  EXPECT_EQ(run(1, 3), "0a | 0b | 0c ");
  EXPECT_EQ(entered, 0);
  EXPECT_EQ(run(2, 2), "0a 1a | 0b 1b "); // and do so once more when there are threads
  EXPECT_EQ(run(4, 1), "0a 1a 2a 3a ");
  EXPECT_EQ(entered, 1);
}

TEST_F(PortionsInTurn, MeetNobodyOutsideOfARun) {
  bool isCalled = false;
  turns.meet([&] { isCalled = true; });
  EXPECT_TRUE(isCalled);
}

/// Whichever throws, in whichever phase, at the meeting (portion 3) or not.
TEST_F(PortionsInTurn, AllEndWhereOneThrows) {
  for (size_t thrower = 0; thrower <= 3; ++thrower)
    for (int when = thrower == 3; when < 3; ++when) {
      const std::string what = failure(3, 3, [&](size_t portion, int phase) {
        if (portion == thrower && phase == when)
          throw Error("portion " + std::to_string(portion) + " in " + std::to_string(phase));
      });
      EXPECT_EQ(what, "portion " + std::to_string(thrower) + " in " + std::to_string(when));
      EXPECT_EQ(run(3, 2), "0a 1a 2a | 0b 1b 2b ");
    }
}

TEST_F(PortionsInTurn, ThatMeetLessOftenThanOthersAreAnError) {
  for (size_t missing = 0; missing < 3; ++missing) {
    auto body = [&](size_t portion) {
      if (portion != missing)
        turns.meet([] {});
    };
    EXPECT_THROW(turns.run(3, body), Error) << missing;
  }
}

} // namespace
} // namespace genrec::rt
