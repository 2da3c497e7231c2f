//===- device_ranks_failures_test.cpp - What ends a session's ranks -------===//
//
// Ranks are threads with an emulated device each, of which one fails. All of them end within
// seconds with its reason, however long they would wait for a rank that does not come.
//
//===----------------------------------------------------------------------===//

#include "../Runtime/failing_ranks.h"
#include "rank_batches.h"

#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <atomic>
#include <thread>

namespace genrec::rt::cuda::test {
namespace {

using rt::test::LateComm;
using rt::test::TornSource;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr int32_t kRanks = 2;
constexpr std::chrono::seconds kPatience(30), kAtMost(25);

/// What a rank's runs have come to.
struct Ending {
  std::string why, help; ///< of the error; empty: none
  std::vector<uint64_t> steps = {};
};
void PrintTo(const Ending &ending, std::ostream *out) {
  *out << "'" << ending.why << "' behind steps " << testing::PrintToString(ending.steps);
}

/// Counts duplicates; and of a rank that is slow: `pause` takes effect behind the next exchange,
/// between the keys that it sends to a device's memory and the rows.
class Host final : public LateComm {
public:
  Host(Communicator &inner, std::atomic<int64_t> &duplicates)
      : LateComm(inner), duplicates(duplicates) {}
  void pause() { isArmed = true; }
  std::unique_ptr<Communicator> duplicate() override {
    ++duplicates;
    return LateComm::duplicate();
  }
  std::optional<std::string> getError() override {
    if (questions > 0 && --questions == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return LateComm::getError();
  }

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    LateComm::doExchange(send, receive);
    if (std::exchange(isArmed, false))
      questions = 2;
  }

private:
  std::atomic<int64_t> &duplicates;
  bool isArmed = false;
  int questions = 0;
};

struct How {
  Overlap overlap = Overlap::none;
  EarlyGradients early = EarlyGradients::no;
  RankCompute compute = RankCompute::plain;
  /// Rank 0 or 1 reads what is torn, in this batch, counted from 0.
  int32_t tornRank = -1;
  int64_t tornBatch = 0;
  std::chrono::milliseconds tornTime{}; ///< it takes to find out
  uint64_t lastStep = UINT64_MAX;       ///< the first run ends behind it, and comes a second one
  /// On rank 1 behind each step, and before the first one.
  std::function<void(uint64_t, Host &)> after = [](uint64_t, Host &) {};
};

class DeviceRanksThatFail : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    EXPECT_EQ(simt::communicatorCount(), 0);
    simt::clearError();
    simt::options() = {};
  }

  static void train(Communicator &comm, const How &how, const std::vector<Samples> &batches,
                    Host &host, Ending &ending) {
    SessionOptions options;
    options.threads = 1;
    options.comm = &host;
    options.portions = kPortions;
    options.overlap = how.overlap;
    options.earlyGradients = how.early;
    Session session(rankModel(how.compute), options);
    const PortionRange own = getPortions(kPortions, comm.getRank(), kRanks);
    auto run = [&](BatchSource &source, uint64_t last) {
      session.run(
          Mode::train, source,
          [&](const StepReport &report) {
            ending.steps.push_back(report.step);
            if (comm.getRank() == 1)
              how.after(report.step, host);
            return report.step < last;
          },
          [](uint64_t) { return false; });
    };
    if (comm.getRank() == 1)
      how.after(0, host);
    PortionSource whole(batches, own);
    TornSource source(whole, comm.getRank() == how.tornRank ? how.tornBatch * own.count : -1,
                      how.tornTime);
    run(source, how.lastStep);
    if (how.lastStep == UINT64_MAX)
      return;
    PortionSource again(batches, own);
    run(again, UINT64_MAX);
  }

  /// Trains on two ranks; what each of them comes to.
  std::vector<Ending> endings(const How &how) {
    simt::options() = {.seed = GetParam() + simt::defaultSeed() - 1, .devices = kRanks};
    std::vector<Samples> batches;
    for (uint64_t step = 1; step <= 4; ++step)
      batches.push_back(drawSamples(step, 16, kLaterIds));
    std::vector<Ending> all(kRanks);
    const auto begin = std::chrono::steady_clock::now();
    try {
      runThreadRanks(kRanks, [&](Communicator &comm) {
        comm.setPatience(kPatience);
        Host host(comm, duplicates);
        Ending &ending = all[comm.getRank()];
        try {
          train(comm, how, batches, host, ending);
        } catch (const Error &error) {
          ending.why = error.what();
          ending.help = error.help();
          throw;
        }
      });
    } catch (const std::exception &) {
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kAtMost);
    return all;
  }

  static auto saying(const std::string &why) { return Field(&Ending::why, HasSubstr(why)); }
  static auto seeing(std::vector<uint64_t> steps) { return Field(&Ending::steps, steps); }

  std::atomic<int64_t> duplicates = 0; ///< of all ranks
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRanksThatFail, testing::Range<uint64_t>(1, 3));

/// The first step is dispatched ahead of nothing: no exchange behind it tells what went wrong.
TEST_P(DeviceRanksThatFail, HearWhatWentWrongAhead) {
  for (const int32_t rank : {0, 1})
    EXPECT_THAT(endings({.overlap = Overlap::keys, .tornRank = rank}),
                Each(saying("the file is torn")));
}

/// Between two steps no exchange tells it.
TEST_P(DeviceRanksThatFail, TellWhatABatchIsNotReadFor) {
  const std::vector<Ending> all = endings({.tornRank = 1, .tornBatch = 2});
  EXPECT_THAT(all, ElementsAre(saying("rank 1: the file is torn"), saying("the file is torn")));
  EXPECT_THAT(all[1], seeing({1, 2}));
  EXPECT_EQ(all[1].help, "mend it");
}

TEST_P(DeviceRanksThatFail, TellWhatAStepIsNotReportedFor) {
  for (const Overlap overlap : {Overlap::none, Overlap::keys})
    EXPECT_THAT(endings({.overlap = overlap,
                         .after =
                             [](uint64_t step, Host &) {
                               if (step == 2)
                                 throw Error("no space is left");
                             }}),
                ElementsAre(saying("rank 1: no space is left"), saying("no space is left")));
}

/// What carries sums waits for what carries rows, and that for it.
TEST_P(DeviceRanksThatFail, EndAllThatIsUnderWay) {
  EXPECT_THAT(endings({.early = EarlyGradients::yes,
                       .after =
                           [](uint64_t step, Host &host) {
                             if (step != 1)
                               return;
                             host.pause();
                             simt::failGroup(1, 2); // the keys, the rows
                           }}),
              Each(saying("rank 1: an exchange failed, for the rows of step 2, over NCCL")));
}

/// The first that a portion's own thread does is to wait.
TEST_P(DeviceRanksThatFail, AreWatchedByThreadsOfPortions) {
  EXPECT_THAT(endings({.compute = RankCompute::looksUpLater,
                       .after =
                           [](uint64_t step, Host &host) {
                             if (step != 0)
                               return;
                             host.pause();
                             simt::failGroup(1, 2);
                           }}),
              Each(saying("rank 1: an exchange failed, for the rows of step 1, over NCCL")));
}

/// What is wrong with the next step's batch is told when it is that one's turn. While a rank ends
/// the step that runs, it may hear of what others have ended with.
TEST_P(DeviceRanksThatFail, EndTheStepThatRuns) {
  for (const int32_t rank : {0, 1}) {
    const std::vector<Ending> all =
        endings({.overlap = Overlap::keys, .tornRank = rank, .tornBatch = 2});
    EXPECT_THAT(all, Each(AllOf(saying("the file is torn"), AnyOf(seeing({1}), seeing({1, 2})))));
    EXPECT_EQ(all[rank].why, "the file is torn");
    EXPECT_EQ(all[rank].help, "mend it");
  }
}

/// The other rank is the first to dispatch, and has nothing under way to the one that does not
/// come: it would wait for that.
TEST_P(DeviceRanksThatFail, EndTheStepThatRunsBesideSums) {
  const std::vector<Ending> all = endings({.overlap = Overlap::keys,
                                           .compute = RankCompute::sumsFirst,
                                           .tornRank = 1,
                                           .tornBatch = 2,
                                           .tornTime = std::chrono::seconds(1)});
  EXPECT_THAT(all, ElementsAre(saying("rank 1: the file is torn"), saying("the file is torn")));
  EXPECT_EQ(all[1].help, "mend it");
}

/// The rank whose file is torn, too: it tells the user what it found, and what helps.
TEST_P(DeviceRanksThatFail, TellTheirOwnFirst) {
  const std::vector<Ending> all = endings({.overlap = Overlap::keys,
                                           .tornRank = 1,
                                           .tornBatch = 2,
                                           .after = [](uint64_t step, Host &host) {
                                             if (step == 1)
                                               host.linger();
                                           }});
  EXPECT_THAT(all, ElementsAre(saying("rank 1: the file is torn"), seeing({1})));
  EXPECT_EQ(all[1].why, "the file is torn");
  EXPECT_EQ(all[1].help, "mend it");
}

/// Runs share the communicator that carries the next step's keys.
TEST_P(DeviceRanksThatFail, DispatchAheadOverOneDuplicate) {
  EXPECT_THAT(endings({.overlap = Overlap::keys, .lastStep = 2}),
              Each(AllOf(Field(&Ending::why, ""), seeing({1, 2, 3, 4, 5, 6}))));
  EXPECT_EQ(duplicates, kRanks);
}

/// A run that ends before a torn batch does not know of it, and neither does the next one.
TEST_P(DeviceRanksThatFail, ForgetWhatNobodyTook) {
  for (const int32_t rank : {0, 1})
    EXPECT_THAT(
        endings({.overlap = Overlap::keys, .tornRank = rank, .tornBatch = 2, .lastStep = 2}),
        Each(AllOf(Field(&Ending::why, ""), seeing({1, 2, 3, 4, 5, 6}))));
}

} // namespace
} // namespace genrec::rt::cuda::test
