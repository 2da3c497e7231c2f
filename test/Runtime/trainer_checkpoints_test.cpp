//===- trainer_checkpoints_test.cpp - Runs that are cut, refused and resumed ===//

#include "TrainerTest.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace genrec::rt::test {
namespace {

/// Runs a command in a process of its own, which `during` may send signals; returns
/// its exit status, or minus the signal that ended it.
int runApart(const std::vector<std::string> &arguments, const std::function<void(pid_t)> &during,
             rlim_t mostFileBytes = RLIM_INFINITY) {
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    // As on a full disk, writes fail beyond this size.
    std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {mostFileBytes, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    std::vector<const char *> argv = {"tiny"};
    for (const std::string &argument : arguments)
      argv.push_back(argument.c_str());
    _exit(trainerMain(tinyModel(), static_cast<int>(argv.size()), argv.data()));
  }
  during(child);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Waits until the checkpoint in `checkpoint` has at least this step.
void waitForStep(const std::string &checkpoint, uint64_t step) {
  for (int i = 0; i < 20000; ++i) {
    if (hasCheckpoint(checkpoint) && readTrainingState(checkpoint).step >= step)
      return;
    usleep(1000);
  }
  FAIL() << "no checkpoint of step " << step << " in " << checkpoint;
}

TEST_F(TrainerTest, AResumedRunEndsWithTheSameBits) {
  std::vector<std::string> epochs = {"--epochs", "3"};
  ASSERT_EQ(runCommand(training("whole", epochs)).status, 0);
  // Cut in the middle of the second epoch, then at the end of it.
  ASSERT_EQ(
      runCommand(training("cut", epochs + std::vector<std::string>{"--max-steps", "30"})).status,
      0);
  EXPECT_NE(stateIn("whole"), stateIn("cut"));
  Ran resumed = runCommand(
      training("cut", epochs + std::vector<std::string>{"--max-steps", "46", "--resume"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_NE(resumed.out.find("resuming at step 30, epoch 2, row 70"), std::string::npos)
      << resumed.out;
  ASSERT_EQ(runCommand(training("cut", epochs + std::vector<std::string>{"--resume"})).status, 0);
  EXPECT_EQ(stateIn("whole"), stateIn("cut"));
  // As a copy that lacks the folder's manifest is resumed.
  std::filesystem::remove(folder / "cut/manifest.json");
  Ran lacking = runCommand(
      training("cut", epochs + std::vector<std::string>{"--resume", "--max-steps", "1"}));
  EXPECT_NE(lacking.out.find("/cut yet (but step-69, which no manifest.json names: --generation "
                             "step-69 goes on from it): the run begins"),
            std::string::npos)
      << lacking.out;
}

TEST_F(TrainerTest, ARunThatSavesNothingSaysSo) {
  const char *told = "what is trained is not saved: --checkpoint <folder> does";
  EXPECT_THAT(runCommand(training("", {"--max-steps", "1"})).out, testing::HasSubstr(told));
  EXPECT_THAT(runCommand(training("c", {"--max-steps", "1"})).out,
              testing::Not(testing::HasSubstr(told)));
  EXPECT_EQ(runCommand(training("", {"--data", folder / "none.parquet"})).out, "");
  EXPECT_THAT(runCommand(training("", {"--max-steps", "1", "--progress", "json"})).out,
              testing::Not(testing::HasSubstr("not saved")));
}

TEST_F(TrainerTest, AFinishedRunSaysSo) {
  std::vector<std::string> epochs = {"--epochs", "1"};
  ASSERT_EQ(runCommand(training("cut", epochs)).status, 0);
  Ran done = runCommand(training("cut", epochs + std::vector<std::string>{"--resume"}));
  EXPECT_EQ(done.status, 0);
  EXPECT_NE(done.out.find("nothing is left to train: --epochs 1 are done"), std::string::npos)
      << done.out;
}

/// A run may have saved its last step, and be killed before it has evaluated it.
TEST_F(TrainerTest, AResumedRunEvaluatesWhatMaxStepsLeft) {
  std::vector<std::string> steps = evaluating() + std::vector<std::string>{"--epochs", "3"};
  ASSERT_EQ(runCommand(training("c", steps + std::vector<std::string>{"--max-steps", "40",
                                                                      "--checkpoint-every", "30"}))
                .status,
            0);
  std::vector<std::string> resuming =
      steps + std::vector<std::string>{"--max-steps", "30", "--resume", "--metrics-json",
                                       folder / "m.json"};
  Ran resumed =
      runCommand(training("c", resuming + std::vector<std::string>{"--generation", "step-30"}));
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  Json report = Json::parse(readText(folder / "m.json"));
  ASSERT_EQ(report["history"].size(), 2u) << report["history"];
  EXPECT_EQ(report["history"][1]["step"], 30);
  EXPECT_EQ(report["history"][1]["rows"], 70);
  EXPECT_EQ(report["final"]["evaluation"]["step"], 30);
  // Once.
  ASSERT_EQ(runCommand(training("c", resuming)).status, 0);
  EXPECT_EQ(Json::parse(readText(folder / "m.json"))["history"], report["history"]);
}

TEST_F(TrainerTest, ResumeRefusesOtherSettings) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "5"})).status, 0);
  auto errorOf = [&](const std::vector<std::string> &more) {
    return runCommand(training("c", more + std::vector<std::string>{"--resume"})).err;
  };
  EXPECT_NE(
      errorOf({"--batch", "20"}).find("the checkpoint was trained with --batch 10, now it is 20"),
      std::string::npos);
  EXPECT_NE(errorOf({"--seed", "5"}).find("trained with --seed 4, now it is 5"), std::string::npos);
  EXPECT_NE(errorOf({"--no-shuffle"}).find("trained with shuffling on, now it is off"),
            std::string::npos);
  EXPECT_NE(errorOf({"--data", folder / "valid.parquet"})
                .find("trained on other data: file 1 of the data, " + folder / "valid.parquet"),
            std::string::npos);
  // As long, and of as many rows.
  writeTinyData(folder / "train.parquet", 3, 230, 40, 50);
  EXPECT_NE(errorOf({}).find("trained on other data: file 1 of the data, "), std::string::npos);
  // The same elsewhere.
  writeTinyData(folder / "moved.parquet", 1, 230, 40, 50);
  EXPECT_EQ(errorOf({"--data", folder / "moved.parquet"}), "");
}

/// In the words of what to do next.
TEST_F(TrainerTest, NoRunBeginsOverACheckpoint) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "5"})).status, 0);
  std::vector<float> saved = stateIn("c");
  Ran again = runCommand(training("c", {"--max-steps", "3"}));
  EXPECT_EQ(again.status, 1);
  EXPECT_EQ(again.err, "tiny: error: " + folder / "c" +
                           "/ holds a checkpoint of this model at step 5; --resume goes on with "
                           "its run, --continue with new data, --overwrite starts anew\n");
  genrec_model_desc other = tinyModel();
  other.name = "large";
  EXPECT_EQ(runCommand(training("c", {"--max-steps", "3"}), other).err,
            "large: error: " + folder / "c" +
                "/ holds a checkpoint of another model at step 5: it is model 'tiny', this binary "
                "is model 'large'\n  help: use another folder to keep it, or --overwrite to start "
                "anew\n");
  EXPECT_EQ(stateIn("c"), saved);
  EXPECT_EQ(runCommand(training("c", {"--resume", "--overwrite"})).status, 2);
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "3", "--overwrite"})).status, 0);
  EXPECT_EQ(readTrainingState(folder / "c").step, 3u);
  EXPECT_FALSE(std::filesystem::exists(folder / "c/step-5"));
  // Damage is no reason to begin anew either.
  std::ofstream(folder / "c/manifest.json") << "x";
  Ran damaged = runCommand(training("c", {"--max-steps", "3"}));
  EXPECT_EQ(damaged.err,
            "tiny: error: " + folder / "c" +
                "/ holds a checkpoint that cannot be used: " + (folder / "c/manifest.json") +
                ": is damaged: no JSON object\n  help: generation step-3 is whole: "
                "--generation step-3 uses it; --overwrite starts anew\n");
  Ran resumed =
      runCommand(training("c", {"--max-steps", "6", "--resume", "--generation", "step-3"}));
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(readTrainingState(folder / "c").step, 6u);
}

TEST_F(TrainerTest, ASecondRunInOneFolderIsRefused) {
  int status =
      runApart(training("c", {"--epochs", "100000", "--progress", "none"}), [&](pid_t child) {
        waitForStep(folder / "c", 1);
        for (const char *flag : {"--resume", "--overwrite"}) {
          Ran second = runCommand(training("c", {flag}));
          EXPECT_EQ(second.status, 1);
          EXPECT_NE(second.err.find("/c is being trained into by process " + std::to_string(child) +
                                    " on "),
                    std::string::npos)
              << second.err;
        }
        kill(child, SIGTERM);
      });
  EXPECT_EQ(status, 128 + SIGTERM);
}

TEST_F(TrainerTest, ALossThatIsNotFiniteEndsTheRun) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "5"})).status, 0);
  std::vector<std::string> diverging = {"--lr", "1e30", "--resume", "--epochs", "3"};
  Ran ran = runCommand(training("c", diverging));
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.err.find("tiny: error: loss 'bce' (tiny.py:14) is "), 0u) << ran.err;
  EXPECT_NE(ran.err.find(" in step 7, epoch 1: op 'linear' ('logit') (tiny.py:12) made "),
            std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("; what was saved before is as it was\n"), std::string::npos) << ran.err;
  EXPECT_EQ(readTrainingState(folder / "c").step, 5u);
  ASSERT_EQ(
      runCommand({"evaluate", "--checkpoint", folder / "c", "--data", folder / "valid.parquet",
                  "--catalogue", "movies=" + folder / "movies.parquet"})
          .status,
      0);
  diverging.push_back("--allow-nonfinite");
  ASSERT_EQ(runCommand(training("c", diverging)).status, 0);
  EXPECT_EQ(readTrainingState(folder / "c").step, 69u);
  // It may be resumed and exported.
  diverging[4] = "4"; // epochs
  EXPECT_EQ(runCommand(training("c", diverging)).status, 0);
  EXPECT_EQ(runCommand({"export", "--checkpoint", folder / "c", "--out", folder / "out",
                        "--catalogue", "movies=" + folder / "movies.parquet"})
                .status,
            0);
}

TEST_F(TrainerTest, ResumeWithoutACheckpointStartsAnew) {
  ASSERT_EQ(runCommand(training("a", {"--max-steps", "5"})).status, 0);
  ASSERT_EQ(runCommand(training("b", {"--max-steps", "5", "--resume"})).status, 0);
  EXPECT_EQ(stateIn("a"), stateIn("b"));
}

TEST_F(TrainerTest, ASignalSavesACheckpointAndResumesToTheSameBits) {
  std::vector<std::string> epochs = {"--epochs", "150", "--progress", "none"};
  ASSERT_EQ(runCommand(training("whole", epochs)).status, 0);
  for (int signal : {SIGTERM, SIGHUP}) {
    std::string name = "cut" + std::to_string(signal);
    int status = runApart(training(name, epochs), [&](pid_t child) {
      waitForStep(folder / name, 23);
      kill(child, signal);
      if (signal == SIGHUP) // as a terminal that closes does
        for (int i = 0; i < 5; ++i, usleep(100))
          kill(child, signal);
    });
    ASSERT_EQ(status, 128 + signal);
    EXPECT_LT(readTrainingState(folder / name).epoch, 150);
    ASSERT_EQ(runCommand(training(name, epochs + std::vector<std::string>{"--resume"})).status, 0);
    EXPECT_EQ(stateIn("whole"), stateIn(name));
  }
}

TEST_F(TrainerTest, UnderNohupARunGoesOn) {
  std::signal(SIGHUP, SIG_IGN);
  int status =
      runApart(training("c", {"--epochs", "100000", "--progress", "none"}), [&](pid_t child) {
        waitForStep(folder / "c", 23);
        kill(child, SIGHUP);
        waitForStep(folder / "c", readTrainingState(folder / "c").step + 46);
        kill(child, SIGTERM);
      });
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(status, 128 + SIGTERM);
}

/// Ctrl-C ends all of `./model train … | tee log`, and tee at once.
TEST_F(TrainerTest, ASignalThatEndsTheReaderOfTheOutputStillSaves) {
  int ends[2], own = dup(STDOUT_FILENO);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  std::fflush(stdout);
  dup2(ends[1], STDOUT_FILENO);
  uint64_t saved = 0;
  int status =
      runApart(training("c", {"--epochs", "100000", "--progress", "json", "--log-every", "1"}),
               [&](pid_t child) {
                 dup2(own, STDOUT_FILENO);
                 waitForStep(folder / "c", 23);
                 saved = readTrainingState(folder / "c").step;
                 kill(child, SIGINT);
                 shutdown(ends[0], SHUT_RDWR);
               });
  for (int descriptor : {ends[0], ends[1], own})
    close(descriptor);
  EXPECT_EQ(status, 128 + SIGINT);
  EXPECT_GE(readTrainingState(folder / "c").step, saved);
}

TEST_F(TrainerTest, AKilledRunLeavesAWholeCheckpoint) {
  std::vector<std::string> flags = {"--epochs", "100000",     "--checkpoint-every",
                                    "1",        "--progress", "none"};
  // Saving after every step, it is nearly always killed while it saves.
  for (uint64_t steps : {5, 40, 90}) {
    int status =
        runApart(training("k", flags + std::vector<std::string>{"--resume"}), [&](pid_t child) {
          waitForStep(folder / "k", steps);
          kill(child, SIGKILL);
        });
    ASSERT_EQ(status, -SIGKILL);
    TrainingState state = readTrainingState(folder / "k");
    ASSERT_GE(state.step, steps);
    // The same steps without interruption give the same bits.
    std::string name = "straight" + std::to_string(steps);
    ASSERT_EQ(runCommand(
                  training(name, {"--epochs", "100000", "--max-steps", std::to_string(state.step)}))
                  .status,
              0);
    EXPECT_EQ(stateIn("k"), stateIn(name));
  }
}

TEST_F(TrainerTest, AFullDiskEndsTheRunAndKeepsTheCheckpoint) {
  ASSERT_EQ(runCommand(training("c", {"--max-steps", "3"})).status, 0);
  std::vector<float> saved = stateIn("c");
  int status = runApart(
      training("c", {"--max-steps", "5", "--resume", "--progress", "none"}), [](pid_t) {},
      /*mostFileBytes=*/1000);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(readTrainingState(folder / "c").step, 3u);
  EXPECT_EQ(stateIn("c"), saved);
}

} // namespace
} // namespace genrec::rt::test
