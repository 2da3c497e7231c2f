//===- trainer_order_test.cpp - The order of rows over a whole run --------===//

#include "TrainerTest.h"

#include <gmock/gmock.h>

namespace genrec::rt::test {
namespace {

using testing::HasSubstr;

class TrainerOrder : public TrainerTest {
protected:
  /// 24,000 rows, more than a megabyte decoded, with batches by tokens unless `more` has others.
  Arguments large(const std::string &checkpoint, const Arguments &more) {
    if (readText(folder / "large.parquet").empty())
      writeTinyData(folder / "large.parquet", 1, 24000, 40, 700);
    return join({"train", "--data", folder / "large.parquet", "--seed", "4", "--threads", "1",
                 "--checkpoint", folder / checkpoint},
                more);
  }

  void succeed(const Arguments &arguments, const std::string &says = "") {
    Ran ran = runCommand(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr(says));
  }
};

TEST_F(TrainerOrder, MemoryChangesNoBit) {
  succeed(large("much", {"--batch", "100", "--shuffle-window", "1000"}));
  succeed(large("little", {"--batch", "100", "--shuffle-window", "1000", "--data-memory", "1"}),
          "more than --data-memory, 1 MB: row groups are decoded again in each epoch");
  EXPECT_EQ(stateIn("much"), stateIn("little"));
  succeed(large("all", {"--batch", "100", "--data-memory", "1"}),
          "warning: windows of 24,000 rows take about");
  EXPECT_NE(stateIn("much"), stateIn("all"));
  succeed(large("limit", {"--batch", "100", "--shuffle-window", "24000"}));
  EXPECT_EQ(stateIn("limit"), stateIn("all"));
}

TEST_F(TrainerOrder, AResumedRunKeepsItsWindow) {
  Arguments run = {"--batch", "100", "--epochs", "2"}, window = {"--shuffle-window", "1000"};
  succeed(large("whole", run + window));
  succeed(large("cut", run + window + Arguments{"--max-steps", "33"}));
  EXPECT_THAT(runCommand(large("cut", run + Arguments{"--resume", "--shuffle-window", "2000"})).err,
              HasSubstr("trained with --shuffle-window 1000, now it is 2000"));
  succeed(large("cut", run + Arguments{"--resume"}),
          "within windows of at most 1,000 of 24,000 rows");
  EXPECT_EQ(stateIn("cut"), stateIn("whole"));
}

/// As an earlier version wrote it.
TEST_F(TrainerOrder, AnOlderOrderIsNotMixedIntoAnEpoch) {
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options);
  TrainingState state;
  state.epochLosses.assign(tinyModel().loss_count, {});
  state.seed = 4;
  state.batch = 100;
  state.shuffle = true;
  state.dataRows = state.windowRows = 24000;
  state.rowsInEpoch = 300;
  state.batchesInEpoch = 3;
  saveCheckpoint(folder / "within", session, state);
  Arguments run = {"--batch", "100", "--resume"};
  Ran refused = runCommand(large("within", run));
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err,
              HasSubstr("was saved within epoch 1, by a version of genrec that visited"));
  EXPECT_THAT(refused.err, HasSubstr("--generation"));
  state.rowsInEpoch = state.batchesInEpoch = 0;
  state.epoch = 2;
  saveCheckpoint(folder / "between", session, state);
  succeed(large("between", run + Arguments{"--epochs", "2"}),
          "further epochs have the order of this version");
  state.shuffle = false; // that order is what it was
  state.windowRows = 0;
  state.rowsInEpoch = 300;
  state.batchesInEpoch = 3;
  saveCheckpoint(folder / "plain", session, state);
  succeed(large("plain", run + Arguments{"--epochs", "2", "--no-shuffle"}), "row 300");
}

TEST_F(TrainerOrder, BatchesByTokensAreResumed) {
  Arguments run = {"--batch-tokens", "history=400", "--epochs", "2"};
  succeed(large("whole", run));
  int64_t steps = static_cast<int64_t>(readTrainingState(folder / "whole").step);
  EXPECT_GT(steps, 20);
  succeed(large("cut", run + Arguments{"--max-steps", std::to_string(steps / 4)}));
  EXPECT_THAT(runCommand(large("cut", {"--batch-tokens", "history=500", "--resume"})).err,
              HasSubstr("trained with --batch-tokens history=400, now it is history=500"));
  EXPECT_THAT(runCommand(large("cut", {"--batch", "100", "--resume"})).err,
              HasSubstr("--batch-tokens history=400, now it is (none)"));
  succeed(large("cut", {"--batch-tokens", "history=400", "--epochs", "2", "--resume"}));
  EXPECT_EQ(stateIn("cut"), stateIn("whole"));
  EXPECT_EQ(static_cast<int64_t>(readTrainingState(folder / "cut").step), steps);
}

TEST_F(TrainerOrder, MistakesAboutTokensAreTold) {
  for (const char *wrong : {"history", "=5", "history=", "history=0", "history=x", "history=-1"})
    EXPECT_THAT(runCommand(large("c", {"--batch-tokens", wrong})).err,
                HasSubstr("is not of the form list=tokens"))
        << wrong;
  EXPECT_THAT(runCommand(large("c", {"--batch-tokens", "histroy=5"})).err,
              HasSubstr("there is no list 'histroy' that the model reads; it reads history"));
  EXPECT_THAT(runCommand(large("c", {"--batch-tokens", "history=5", "--batch", "7"})).err,
              HasSubstr("cannot act beside --batch-tokens"));
  EXPECT_THAT(runCommand(large("c", {"--shuffle-window", "5", "--no-shuffle"})).err,
              HasSubstr("cannot act beside --no-shuffle"));
}

} // namespace
} // namespace genrec::rt::test
