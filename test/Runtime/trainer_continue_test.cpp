//===- trainer_continue_test.cpp - Runs that go on with other data ---------===//

#include "TrainerTest.h"

#include <gmock/gmock.h>

namespace genrec::rt::test {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;

class ContinueTest : public TrainerTest {
protected:
  ContinueTest() {
    writeTinyData(folder / "day2.parquet", 5, 130, 40, 50); // 13 batches of 10
    writeTinyData(folder / "day3.parquet", 6, 70, 40, 50);
  }

  Words day(int64_t number, const Words &more = {}) const {
    return Words{"--data", folder / ("day" + std::to_string(number) + ".parquet")} + more;
  }
  Words continuing(const std::string &from, const Words &more = {}) const {
    return Words{"--continue", folder / from} + more;
  }
  Words movies() const { return {"--catalogue", "movies=" + folder / "movies.parquet"}; }

  void succeed(const Words &arguments) const {
    Ran ran = runCommand(arguments);
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  void fail(const Words &arguments, const std::string &message) const {
    Ran ran = runCommand(arguments);
    EXPECT_NE(ran.status, 0);
    EXPECT_THAT(ran.err + ran.out, HasSubstr(message));
  }
  static std::string newest(const std::string &folder) {
    return CheckpointReader(folder).generation();
  }
};

/// Where order does not depend on the epoch, another pass over the data is a run that continues.
TEST_F(ContinueTest, KeepsTablesStatesAndSteps) {
  Words plain = {"--no-shuffle", "--schedule", "linear", "--schedule-steps", "60"};
  succeed(training("two", plain + Words{"--epochs", "2"}));
  succeed(training("one", plain));
  Ran ran = runCommand(training("next", plain + continuing("one")));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("continuing at step 23 of " + folder / "one/step-23"));
  EXPECT_THAT(ran.out, HasSubstr("the data is what the checkpoint was trained on"));
  EXPECT_EQ(stateIn("next"), stateIn("two"));
  TrainingState state = readTrainingState(folder / "next");
  EXPECT_EQ(state.step, 46U);
  EXPECT_EQ(state.firstStep, 23U);
  EXPECT_EQ(state.epoch, 2); // the next one
  EXPECT_EQ(nlohmann::json::parse(state.history).size(), 1U);
  EXPECT_EQ(newest(folder / "one"), "step-23"); // as it was
}

TEST_F(ContinueTest, TakesOtherDataIntoTheSameFolder) {
  succeed(training("c"));
  std::vector<float> before = stateIn("c");
  fail(training("c", day(2, {"--resume"})), "go on with other data by --continue");
  succeed(training("c", day(2, continuing("c", {"--batch", "13"}))));
  EXPECT_NE(stateIn("c"), before);
  EXPECT_EQ(readTrainingState(folder / "c").step, 33U); // 23 + 130 / 13
  EXPECT_TRUE(std::filesystem::exists(folder / "c/step-23"));
  // From an older generation.
  succeed(training("older", day(3, continuing("c", {"--generation", "step-23"}))));
  EXPECT_EQ(readTrainingState(folder / "older").step, 30U);
}

TEST_F(ContinueTest, ADecayingScheduleEndsWithTheRun) {
  Words linear = {"--schedule", "linear"};
  succeed(training("c", linear));
  succeed(training("a", day(2, continuing("c", linear + Words{"--epochs", "2"}))));
  succeed(training(
      "b", day(2, continuing("c", linear + Words{"--epochs", "2", "--schedule-steps", "49"}))));
  succeed(training(
      "d", day(2, continuing("c", linear + Words{"--epochs", "2", "--schedule-steps", "48"}))));
  EXPECT_EQ(stateIn("a"), stateIn("b"));
  EXPECT_NE(stateIn("a"), stateIn("d"));
  Ran ended =
      runCommand(training("e", day(2, continuing("c", linear + Words{"--schedule-steps", "23"}))));
  EXPECT_THAT(ended.out, HasSubstr("warning: the learning rate is 0: the schedule has ended"));
  // Resumed, it ends there, too.
  succeed(training("cut", day(2, continuing("c", linear + Words{"--epochs", "2", "--schedule-steps",
                                                                "49", "--max-steps", "30"}))));
  succeed(training("cut", day(2, linear + Words{"--epochs", "2", "--resume"})));
  EXPECT_EQ(stateIn("cut"), stateIn("a"));
}

/// The command of a job that may be killed and started again.
TEST_F(ContinueTest, BesideResumeItGoesOnWithWhatItHad) {
  succeed(training("c"));
  succeed(training("whole", day(2, continuing("c", {"--epochs", "3"}))));
  for (std::string into : {"other", "c"}) { // another folder, and the same
    Words job = training(into, day(2, continuing("c", {"--epochs", "3", "--resume"})));
    for (std::string steps : {"30", "40", "62"})
      succeed(job + Words{"--max-steps", steps});
    EXPECT_EQ(stateIn(into), stateIn("whole")) << into;
    EXPECT_EQ(readTrainingState(folder / into).firstStep, 23U);
    succeed(job); // nothing is left to do
    EXPECT_EQ(readTrainingState(folder / into).step, 62U);
    fail(job + Words{"--batch", "9"}, into == "c" ? "now it is 9\n  help: resume with what it was "
                                                    "trained with, or leave --resume out: "
                                                    "--continue begins a new run on this data"
                                                  : "or start anew with --overwrite");
  }
}

TEST_F(ContinueTest, EvaluatesEachFileBeforeTrainingOnIt) {
  Words files = {"--data", folder / "day2.parquet", folder / "day3.parquet"};
  Words flags = {"--eval-before-train", "--epochs", "2"};
  succeed(training("c"));
  Ran ran = runCommand(
      training("ab", files + flags + movies() + continuing("c", {"--progress", "json"})));
  ASSERT_EQ(ran.status, 0) << ran.err;
  // Each file by itself.
  auto evaluated = [&](const std::string &checkpoint, int64_t number) {
    Ran alone = runCommand(Words{"evaluate", "--checkpoint", folder / checkpoint, "--batch", "10",
                                 "--progress", "json"} +
                           day(number) + movies());
    EXPECT_EQ(alone.status, 0) << alone.err;
    return alone.events("evaluation").at(0);
  };
  std::vector<Json> before = ran.events("evaluation");
  ASSERT_EQ(before.size(), 2U);
  EXPECT_EQ(before[0]["metrics"], evaluated("c", 2)["metrics"]);
  EXPECT_EQ(before[0]["before"], folder / "day2.parquet");
  EXPECT_EQ(before[0]["step"], 23);
  succeed(training("a", day(2, continuing("c", {"--epochs", "2"}))));
  EXPECT_EQ(before[1]["metrics"], evaluated("a", 3)["metrics"]);
  EXPECT_EQ(before[1]["step"], 49);
  succeed(training("b", day(3, continuing("a", {"--epochs", "2"}))));
  EXPECT_EQ(stateIn("ab"), stateIn("b"));
  // Cut in both files, and between them.
  Words job = training("cut", files + flags + movies() + continuing("c", {"--resume"}));
  for (std::string steps : {"30", "49", "55"})
    succeed(job + Words{"--max-steps", steps});
  succeed(job + Words{"--metrics-json", folder / "m.json"});
  EXPECT_EQ(stateIn("cut"), stateIn("ab"));
  std::vector<Json> measured = Json::parse(readText(folder / "m.json"))["before"];
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0]["metrics"], before[0]["metrics"]);
  EXPECT_EQ(measured[1]["metrics"], before[1]["metrics"]);
  std::vector<Json> epochs = ran.events("epoch");
  ASSERT_EQ(epochs.size(), 4U);
  for (int epoch = 0; epoch < 4; ++epoch)
    EXPECT_EQ(epochs[epoch]["file"], folder / (epoch < 2 ? "day2.parquet" : "day3.parquet"));
}

TEST_F(ContinueTest, MistakesAreNamed) {
  succeed(training("c"));
  fail(training("d", day(2, continuing("nowhere"))),
       "there is no checkpoint in '" + folder / "nowhere'");
  fail(training("d", day(2, continuing("c", {"--init", folder / "c"}))),
       "--init: cannot act beside --continue");
  fail(training("d", day(2, {"--generation", "step-23"})),
       "--generation: needs --resume or --continue");
  fail(training("d", day(2, continuing("c", {"--resume", "--generation", "step-23"}))),
       "is unclear beside both --resume and --continue");
  fail(training("c", day(2, continuing("c", {"--overwrite"}))),
       "--overwrite would replace the checkpoint that --continue reads");
  fail(training("d", day(2, continuing("c", {"--max-steps", "23"}))),
       "has 23 steps already, which count");
  fail(training("d", {"--eval-before-train", "--data", folder / "day2.parquet",
                      folder / "day2.parquet"}),
       "have the same content");
  fail(training("d", day(2, movies() + Words{"--eval-before-train", "--patience", "2",
                                             "--validation", folder / "valid.parquet"})),
       "--eval-before-train: cannot act beside --patience");
  succeed(training("d", day(3)));
  fail(training("d", day(2, continuing("c"))), "holds a checkpoint of this model at step 7");
  EXPECT_EQ(newest(folder / "c"), "step-23");
  genrec_model_desc other = tinyModel();
  other.name = "large";
  EXPECT_THAT(runCommand(training("e", day(2, continuing("c"))), other).err,
              HasSubstr("is a checkpoint of another model: it is model 'tiny'"));
}

} // namespace
} // namespace genrec::rt::test
