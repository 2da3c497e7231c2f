//===- trainer_test.cpp - Training, and mistakes in command lines ---------===//

#include "TrainerTest.h"
#include "genrec_rt/dataset.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace genrec::rt::test {
namespace {

/// All events of a run with --progress json.
std::vector<Json> events(const std::string &out) {
  std::vector<Json> all;
  std::stringstream lines(out);
  for (std::string line; std::getline(lines, line);)
    all.push_back(Json::parse(line));
  return all;
}

//===-- training ----------------------------------------------------------===//

TEST_F(TrainerTest, TrainsEvaluatesAndWritesMetrics) {
  Ran ran = runCommand(training(
      "", evaluating() + std::vector<std::string>{"--epochs", "6", "--eval-every", "3",
                                                  "--metrics-json", folder / "m.json", "--progress",
                                                  "json", "--log-every", "1"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json metrics = Json::parse(readText(folder / "m.json"));
  EXPECT_EQ(metrics["model"], "tiny");
  ASSERT_EQ(metrics["history"].size(), 6u);
  EXPECT_LT(metrics["history"][5]["loss"], metrics["history"][0]["loss"]);
  for (size_t epoch = 0; epoch < 6; ++epoch)
    EXPECT_EQ(metrics["history"][epoch].contains("evaluation"), epoch % 3 == 2);
  const Json &evaluation = metrics["final"]["evaluation"];
  EXPECT_EQ(evaluation["rows"], 70);
  for (const char *name : {"hr@1", "hr@5", "ndcg@1", "ndcg@5", "mrr", "auc"})
    EXPECT_TRUE(evaluation["metrics"].contains(name)) << name;
  EXPECT_LE(evaluation["metrics"]["hr@1"], evaluation["metrics"]["hr@5"]);
  EXPECT_EQ(metrics["metric_notes"]["ranking"], "nothing excluded");
  EXPECT_EQ(metrics["final"]["step"], 6 * 23);
  EXPECT_GT(metrics["timings"]["rows_per_second"], 0);
  EXPECT_GE(metrics["hardware"]["cores"], 1);

  std::vector<Json> all = events(ran.out);
  auto count = [&](const char *kind) {
    return std::count_if(all.begin(), all.end(), [&](const Json &e) { return e["event"] == kind; });
  };
  EXPECT_EQ(count("epoch"), 6);
  EXPECT_EQ(count("evaluation"), 2);
  EXPECT_EQ(all.back()["event"], "done");
  double before = 0; // the clock of steps goes on from epoch to epoch
  for (const Json &event : all)
    if (event["event"] == "step") {
      EXPECT_GT(event["seconds"], before);
      before = event["seconds"];
    }
  EXPECT_GT(before, 0);
}

TEST_F(TrainerTest, SameBitsAtAnyNumberOfThreads) {
  ASSERT_EQ(runCommand(training("one", {"--threads", "1", "--epochs", "2"})).status, 0);
  ASSERT_EQ(runCommand(training("three", {"--threads", "3", "--epochs", "2"})).status, 0);
  EXPECT_EQ(stateIn("one"), stateIn("three"));
}

TEST_F(TrainerTest, ListedEpochsAreEvaluated) {
  Ran ran = runCommand(
      training("", evaluating() + std::vector<std::string>{"--epochs", "5", "--eval-epochs", "2,4",
                                                           "--metrics-json", folder / "m.json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json history = Json::parse(readText(folder / "m.json"))["history"];
  for (size_t epoch = 1; epoch <= 5; ++epoch)
    EXPECT_EQ(history[epoch - 1].contains("evaluation"), epoch == 2 || epoch == 4);
}

TEST_F(TrainerTest, EveryStepsLossIsKeptOnRequest) {
  Ran ran = runCommand(training("", {"--max-steps", "7", "--log-every", "1", "--metrics-json",
                                     folder / "m.json", "--progress", "json", "--no-shuffle"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json losses = Json::parse(readText(folder / "m.json"))["step_losses"];
  ASSERT_EQ(losses.size(), 7u);
  // The same, driven by hand.
  SessionOptions options;
  options.seed = 4;
  Session session(tinyModel(), options);
  Dataset data(tinyModel(), {&session.program(Mode::train)}, folder / "train.parquet", {});
  EpochOptions order;
  order.batch = 10;
  auto source = data.epoch(order);
  Batch batch(tinyModel());
  for (size_t step = 0; step < 7; ++step) {
    batch.reset();
    ASSERT_TRUE(source->next(batch));
    EXPECT_EQ(losses[step]["loss"], *session.train(batch).loss);
  }
}

//===-- mistakes ----------------------------------------------------------===//

TEST_F(TrainerTest, MistakesAreToldWithTheFix) {
  Ran none = runCommand(training("", {"--data", folder / "none.parquet"}));
  EXPECT_EQ(none.status, 1);
  EXPECT_EQ(none.err,
            "tiny: error: there is no file or folder '" + folder / "none.parquet" + "'\n");
  auto helpFor = [&](const std::string &path) {
    const std::string err = runCommand(training("", {"--data", path})).err;
    return err.find("help: ") == std::string::npos ? "" : err.substr(err.find("help: ") + 6);
  };
  EXPECT_EQ(helpFor(folder / "vaild.parquet"),
            "did you mean '" + folder / "valid.parquet" + "'?\n");
  EXPECT_EQ(helpFor(folder / "no/such/x.parquet"), "there is no folder '" + folder / "no" + "'\n");
  EXPECT_EQ(helpFor(folder.path + "s/valid.parquet"),
            "did you mean '" + folder / "valid.parquet" + "'?\n");
  EXPECT_EQ(helpFor(folder.path + "s/vaild.parquet"),
            "did you mean '" + folder / "valid.parquet" + "'?\n");
  EXPECT_EQ(helpFor("tarin"), "");

  Ran catalogue = runCommand(training("", {"--validation", folder / "valid.parquet"}));
  EXPECT_EQ(catalogue.err, "tiny: error: the model needs catalogue 'movies' and names no file for "
                           "it\n  help: pass --catalogue movies=<file>; in Python, "
                           "catalogues={\"movies\": <file>}\n");

  Ran unknown = runCommand(training("", {"--catalogue", "films=x"}));
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("the model has no catalogue 'films'; it has movies"),
            std::string::npos);

  EXPECT_EQ(runCommand({"train"}).status, 2);
  EXPECT_EQ(runCommand(training("", {"--resume"})).status, 2);
  EXPECT_EQ(runCommand({"train", "--help"}).status, 0);

  genrec_model_desc training_only = tinyModel();
  training_only.program_count = 1;
  Ran predict = runCommand({"predict", "--data", folder / "valid.parquet", "--checkpoint",
                            folder / "c", "--out", folder / "x"},
                           training_only);
  EXPECT_EQ(predict.err.find("tiny: error: there is no checkpoint in"), 0u);
}

TEST_F(TrainerTest, MistakesInFlagsAreToldWithTheRule) {
  auto expect = [&](const std::vector<std::string> &arguments, const std::string &what,
                    const std::string &command) {
    Ran wrong = runCommand(arguments);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.err,
              "tiny: error: " + what + "\n  help: " + command + "--help lists what there is\n");
  };
  expect({}, "a command is needed: one of train, evaluate, predict, export, info, calibrate", "");
  expect({"fly"},
         "there is no command 'fly': give one of train, evaluate, predict, export, info, calibrate",
         "");
  expect({"eval", "--data", "x.parquet"}, "there is no command 'eval'; did you mean 'evaluate'?",
         "");
  expect({"trian", "--data", "x.parquet"}, "there is no command 'trian'; did you mean 'train'?",
         "");
  expect({"evaluate"}, "--data is required", "evaluate ");
  expect(training("", {"--bach", "3"}), "there is no flag '--bach'; did you mean '--batch'?",
         "train ");
  expect(training("", {"--zzz=3"}), "there is no flag '--zzz'", "train ");
  expect(training("", {"more"}), "an argument was not expected: 'more'", "train ");
  expect(training("", {"--epochs", "0"}), "--epochs: must be above 0, got 0", "train ");
  expect(training("", {"--warmup", "-1"}), "--warmup: must be at least 0, got -1", "train ");
  expect(training("", {"--schedule-final", "2"}), "--schedule-final: must be 0 to 1, got 2",
         "train ");
  expect(training("", {"--lr", "fast"}), "--lr: must be a number, got 'fast'", "train ");
  expect(training("", {"--epochs", "1.5"}), "--epochs: must be a whole number, got '1.5'",
         "train ");
  expect(training("", {"--epochs", "99999999999999999999"}),
         "--epochs: must be a whole number of at most 9223372036854775807, got "
         "99999999999999999999",
         "train ");
  expect(training("", {"--seed", "-1"}), "--seed: must be a whole number of at least 0, got '-1'",
         "train ");
  // What a script's variable without a value gives.
  for (const char *flag : {"--checkpoint", "--continue", "--metrics-json", "--seed", "--data"})
    expect(training("", {flag, ""}), std::string(flag) + ": has an empty value", "train ");
  expect({"export", "--checkpoint", folder / "c", "--out", ""}, "--out: has an empty value",
         "export ");
}

TEST_F(TrainerTest, NumbersAreDecimal) {
  ASSERT_EQ(runCommand(training("", {"--seed", "010", "--batch", "+020", "--max-steps", "1",
                                     "--metrics-json", folder / "m.json"}))
                .status,
            0);
  Json config = Json::parse(readText(folder / "m.json"))["config"];
  EXPECT_EQ(config["seed"], 10);
  EXPECT_EQ(config["batch"], 20);
}

/// Found before the first step, not after the last.
TEST_F(TrainerTest, WhatCannotBeWrittenIsToldAtTheStart) {
  std::ofstream(folder / "file") << "x";
  for (const char *flag : {"--checkpoint", "--profile", "--tensorboard"}) {
    Ran wrong = runCommand(training("", {flag, folder / "file"}));
    EXPECT_EQ(wrong.status, 1);
    EXPECT_EQ(wrong.out, "");
    EXPECT_EQ(wrong.err, std::string("tiny: error: ") + flag + " " + (folder / "file") +
                             ": cannot make folder " + (folder / "file") +
                             ": Not a directory\n"
                             "  help: name another place\n");
  }
  Ran missing = runCommand(training("", {"--metrics-json", folder / "none/m.json"}));
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err, "tiny: error: --metrics-json " + (folder / "none/m.json") +
                             ": cannot be written: there is no folder " + folder / "none" +
                             "\n  help: make it, or name another place\n");
}

TEST_F(TrainerTest, ErrorsAreEventsInAJsonRun) {
  Ran ran = runCommand(training("", {"--data", folder / "none.parquet", "--progress", "json"}));
  EXPECT_EQ(ran.status, 1);
  Json event = events(ran.out).back();
  EXPECT_EQ(event["event"], "error");
  EXPECT_EQ(event["message"], "there is no file or folder '" + folder / "none.parquet" + "'");
}

} // namespace
} // namespace genrec::rt::test
