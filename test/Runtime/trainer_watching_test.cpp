//===- trainer_watching_test.cpp - Early stops, curves and profiles -------===//

#include "../../runtime/session/calibrate.h"
#include "../../runtime/trainer/event_file.h"
#include "../../runtime/trainer/patience.h"
#include "RunCommand.h"
#include "genrec_rt/checkpoint.h"

#include <cmath>
#include <cstring>
#include <filesystem>

namespace genrec::rt::test {
namespace {

class TrainerWatchingTest : public CommandTest {
protected:
  /// Trains for 20 epochs of 23 steps of 10 rows, evaluates after each.
  Ran train(const Arguments &more) {
    return runCommand(validating(join({"--epochs", "20"}, more)));
  }

  Json read(const std::string &name) { return Json::parse(readText(folder / name)); }
};

/// A history of evaluations of `name`, one per epoch; NaN is undefined.
Json historyOf(const std::string &name, const std::vector<double> &values) {
  Json history = Json::array();
  int64_t epoch = 0;
  for (double value : values) {
    ++epoch;
    Json metrics = toJson({{name, value}});
    Json evaluation = name == "loss" ? metrics : Json{{"metrics", metrics}};
    history.push_back({{"epoch", epoch}, {"step", 10 * epoch}, {"evaluation", evaluation}});
    history.push_back({{"epoch", epoch}, {"loss", 1.0}}); // not evaluated
  }
  return history;
}

//===-- early stopping ------------------------------------------------------===//

TEST_F(TrainerWatchingTest, PatienceCountsFromTheBest) {
  Patience rising = patienceOf(historyOf("hr@10", {0.1, 0.3, 0.2, 0.3}), "hr@10");
  EXPECT_EQ(rising.bestEpoch, 2);
  EXPECT_EQ(rising.bestStep, 20);
  EXPECT_EQ(rising.since, 2); // as good is not better
  Patience falling = patienceOf(historyOf("loss", {0.5, 0.4, 0.6}), "loss");
  EXPECT_EQ(falling.bestEpoch, 2);
  EXPECT_EQ(falling.since, 1);
  EXPECT_EQ(patienceOf(historyOf("clicks.ne", {0.9, 0.8}), "clicks.ne").since, 0);
  Patience undefined = patienceOf(historyOf("auc", {NAN, NAN}), "auc");
  EXPECT_FALSE(undefined.hasBest());
  EXPECT_EQ(undefined.since, 2);
  EXPECT_EQ(patienceOf(Json::array(), "loss").since, 0);
}

TEST_F(TrainerWatchingTest, StopsWhenNothingImprovesAndKeepsTheBest) {
  // Nothing is learned at rate 0: the first evaluation stays the best.
  std::vector<std::string> still = {
      "--lr",         "0",          "--patience",     "2",
      "--checkpoint", folder / "c", "--metrics-json", folder / "m.json"};
  Ran ran = train(still);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("stopped early: 2 evaluations without improvement, best loss in epoch 1"),
            std::string::npos)
      << ran.out;
  Json metrics = read("m.json");
  EXPECT_EQ(metrics["history"].size(), 3u);
  EXPECT_EQ(metrics["final"]["stopped_early"], true);
  EXPECT_EQ(metrics["final"]["best"]["epoch"], 1);
  EXPECT_EQ(readTrainingState(folder / "c/best").step, 23u);
  EXPECT_EQ(readTrainingState(folder / "c").step, 69u);
  // Resumed, it has nothing left to do.
  std::vector<std::string> resumed = still;
  resumed.push_back("--resume");
  ASSERT_EQ(train(resumed).status, 0);
  EXPECT_EQ(read("m.json")["history"].size(), 3u);
  EXPECT_EQ(read("m.json")["timings"]["steps"], 0);
}

/// The state of its best evaluation is saved before its own: killed between them, it begins anew.
TEST_F(TrainerWatchingTest, ARunThatSavedOnlyItsBestIsResumed) {
  std::vector<std::string> job = {"--epochs",   "1", "--patience", "1", "--checkpoint",
                                  folder / "c"};
  ASSERT_EQ(train(job).status, 0);
  for (const char *of : {"manifest.json", "step-23", "step-23.2"})
    std::filesystem::remove_all(folder / (std::string("c/") + of));
  Ran refused = train(job);
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("c/best/ holds a checkpoint of this model at step 23"),
            std::string::npos)
      << refused.err;
  job.push_back("--resume");
  // Not of this run.
  EXPECT_EQ(train(join(job, {"--data", folder / "valid.parquet"})).status, 1);
  EXPECT_EQ(train(join(job, {"--seed", "77"})).status, 1);
  Ran resumed = train(job);
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(readTrainingState(folder / "c").step, 23u);
  EXPECT_EQ(readTrainingState(folder / "c/best").step, 23u);
}

TEST_F(TrainerWatchingTest, GoesOnWhileItImproves) {
  Ran ran = train({"--epochs", "4", "--patience", "1", "--lr", "0.01", "--monitor", "loss",
                   "--metrics-json", folder / "m.json"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(read("m.json")["history"].size(), 4u) << ran.out;
  EXPECT_EQ(read("m.json")["final"]["stopped_early"], false);
}

TEST_F(TrainerWatchingTest, AMonitorThatIsNotMeasuredIsToldAtOnce) {
  Ran ran = train({"--patience", "2", "--monitor", "hr@6"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.err.find("--monitor hr@6: evaluations do not measure that"), std::string::npos)
      << ran.err;
  EXPECT_NE(ran.err.find("hr@5"), std::string::npos) << ran.err;
}

//===-- TensorBoard ----------------------------------------------------------===//

TEST_F(TrainerWatchingTest, ChecksumsAreCastagnolis) { // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

TEST_F(TrainerWatchingTest, EventFilesHoldWholeRecords) {
  ASSERT_EQ(train({"--epochs", "2", "--tensorboard", folder / "tb"}).status, 0);
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder / "tb"))
    files.push_back(entry.path());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_NE(files[0].find("events.out.tfevents."), std::string::npos);
  std::string data = readText(files[0]);
  size_t place = 0, records = 0;
  auto masked = [](uint32_t c) { return ((c >> 15) | (c << 17)) + 0xa282ead8u; };
  while (place < data.size()) {
    uint64_t length;
    uint32_t check;
    ASSERT_LE(place + 12, data.size());
    std::memcpy(&length, data.data() + place, 8);
    std::memcpy(&check, data.data() + place + 8, 4);
    EXPECT_EQ(check, masked(crc32c(data.substr(place, 8))));
    ASSERT_LE(place + 16 + length, data.size());
    std::memcpy(&check, data.data() + place + 12 + length, 4);
    EXPECT_EQ(check, masked(crc32c(data.substr(place + 12, length))));
    place += 16 + length;
    ++records;
  }
  EXPECT_EQ(records, 1u + 4 + 2); // the version; steps 10, 20, 30, 40; two evaluations
}

//===-- profiles --------------------------------------------------------------===//

TEST_F(TrainerWatchingTest, AProfileCountsCallsAndWork) {
  Ran ran = train({"--epochs", "1", "--profile", folder / "p"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("pool, linear (tiny.py:12)"), std::string::npos) << ran.out;
  Json profile = read("p/profile.json");
  EXPECT_EQ(profile["steps"], 23 - 5); // the first five are left out
  ASSERT_EQ(profile["ops"].size(), 2u);
  const Json &linear = profile["ops"][0];
  EXPECT_EQ(linear["name"], "linear");
  EXPECT_EQ(linear["stage"], "compute");
  EXPECT_EQ(linear["calls_per_step"], 1);
  EXPECT_EQ(linear["rows"], 10);
  EXPECT_EQ(linear["bytes"], 10 * 20 + 100);
  EXPECT_EQ(linear["flops"], 10 * 8);
  EXPECT_GT(linear["milliseconds"], 0);
  const Json &phases = profile["milliseconds_per_step_by_phase"];
  double ops =
      linear["milliseconds"].get<double>() + profile["ops"][1]["milliseconds"].get<double>();
  EXPECT_LE(ops, phases["compute"].get<double>());
  EXPECT_GT(phases["read"], 0);
}

TEST_F(TrainerWatchingTest, ATraceHoldsOpsWithinPhases) {
  ASSERT_EQ(train({"--epochs", "1", "--max-steps", "3", "--profile", folder / "p"}).status, 0);
  Json trace = read("p/trace.json");
  int64_t ops = 0, waits = 0;
  double computeBegin = 0, computeEnd = 0;
  for (const Json &event : trace["traceEvents"]) {
    if (event["ph"] == "M")
      continue;
    double begin = event["ts"], end = begin + event["dur"].get<double>();
    EXPECT_GE(event["dur"], 0);
    waits += event["name"] == "wait for data";
    if (event["name"] == "compute") {
      computeBegin = begin;
      computeEnd = end;
    } else if (event["cat"] == "op" && event["args"]["program"] == "train") {
      EXPECT_GE(begin, computeBegin);
      EXPECT_LE(end, computeEnd + 0.002);
      EXPECT_EQ(event["tid"], 1);
      ++ops;
    }
  }
  EXPECT_EQ(ops, 3 * 2);
  EXPECT_GE(waits, 3);
}

TEST_F(TrainerWatchingTest, ATraceSaysWhatAnOpTakesAtLeast) {
  std::string machine = folder / "machine.json";
  saveRoofline({processorName(), 2, 1e9, 2e9, 1e-6, {{1e12, 1e9}}, {{1e12, 1e8}}}, machine);
  setenv("GENREC_MACHINE", machine.c_str(), 1);
  Ran ran = train({"--epochs", "1", "--profile", folder / "p"});
  unsetenv("GENREC_MACHINE");
  ASSERT_EQ(ran.status, 0) << ran.err;
  Json profile = read("p/profile.json"), trace = read("p/trace.json");
  const Json &linear = profile["ops"][0];
  // 300 bytes at 1 GB/s take longer than 80 operations at 1 GFLOP/s.
  EXPECT_NEAR(linear["predicted_milliseconds"].get<double>(), (0.3 + 1) * 1e-3, 1e-9);
  int64_t told = 0;
  for (const Json &event : trace["traceEvents"])
    if (event["ph"] == "X" && event["name"] == "linear" && event["args"]["program"] == "train") {
      EXPECT_NEAR(event["args"]["at least, in the mean (us)"].get<double>(), 0.3 + 1, 1e-6);
      EXPECT_EQ(event["args"]["by"], linear["bound"]);
      ++told;
    }
  EXPECT_GT(told, 0);
}

TEST_F(TrainerWatchingTest, CalibrateWritesWhatItMeasured) {
  std::string machine = folder / "new/machine.json";
  Ran ran = runCommand({"calibrate", "--threads", "1", "--out", machine});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find(processorName() + ", 1 threads\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("written to " + machine), std::string::npos) << ran.out;
  std::optional<Roofline> limits = loadRoofline(machine, processorName());
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->threads, 1);
  EXPECT_EQ(limits->copies.size(), 4u);
  EXPECT_FALSE(loadRoofline(machine, "another processor"));
}

TEST_F(TrainerWatchingTest, WhatBf16ReachesIsKept) {
  std::string file = folder / "device.json";
  saveRoofline({"a device", 0, 1e9, 2e9, 0, {{1e12, 1e9}}, {{1e12, 1e8}}, 8e9}, file);
  std::optional<Roofline> limits = loadRoofline(file, "a device");
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->bf16Flops, 8e9);
}

} // namespace
} // namespace genrec::rt::test
