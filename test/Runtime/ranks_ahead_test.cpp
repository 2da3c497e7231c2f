//===- ranks_ahead_test.cpp - What goes wrong with the step ahead ---------===//
//
// While a step runs, the next one is dispatched on a duplicate of the communicator.
//
//===----------------------------------------------------------------------===//

#include "TinyModel.h"
#include "failing_ranks.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace genrec::rt::test {
namespace {

struct Ending {
  std::string why, help;
  std::vector<uint64_t> steps;
};

/// Trains on two ranks, of which rank 1 cannot read its third batch and is late from step 2 on.
std::array<Ending, 2> endings(Overlap overlap) {
  std::array<Ending, 2> all;
  EXPECT_THROW(runThreadRanks(2,
                              [&](Communicator &inner) {
                                LateComm comm(inner);
                                Ending &ending = all[comm.getRank()];
                                SessionOptions options;
                                options.threads = 1;
                                options.comm = &comm;
                                options.overlap = overlap;
                                Session session(tinyModel(), options);
                                TinySource whole(4, 20, 30);
                                TornSource source(whole, comm.getRank() == 1 ? 2 : -1);
                                try {
                                  session.run(
                                      Mode::train, source,
                                      [&](const StepReport &report) {
                                        ending.steps.push_back(report.step);
                                        if (report.step == 1 && comm.getRank() == 1)
                                          comm.linger();
                                        return true;
                                      },
                                      [](uint64_t) { return false; });
                                } catch (const Error &error) {
                                  ending.why = error.what();
                                  ending.help = error.help();
                                  throw;
                                }
                              }),
               Error);
  return all;
}

/// Rank 0 ends first, and rank 1 hears of that within its step 2; yet it is the one that knows
/// which file is torn, and what helps.
TEST(RanksAhead, TellTheirOwnFirst) {
  for (const Overlap overlap : {Overlap::keys, Overlap::rows}) {
    const std::array<Ending, 2> all = endings(overlap);
    EXPECT_EQ(all[0].why, "rank 1: the file is torn");
    EXPECT_THAT(all[0].steps, testing::ElementsAre(1, 2));
    EXPECT_EQ(all[1].why, "the file is torn");
    EXPECT_EQ(all[1].help, "mend it");
    EXPECT_THAT(all[1].steps, testing::ElementsAre(1));
  }
}

} // namespace
} // namespace genrec::rt::test
