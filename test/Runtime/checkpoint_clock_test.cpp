//===- checkpoint_clock_test.cpp - Clocks that are saved ------------------===//

#include "../../runtime/checkpoint/manifest.h"
#include "CheckpointTesting.h"

#include <gmock/gmock.h>

namespace genrec::rt::test {
namespace {

using testing::HasSubstr;

/// The tiny model, whose rows leave 100 seconds after they were seen.
struct TimedModel {
  TimedModel() : table(tinyModel().tables[0]), model(tinyModel()) {
    table.ttl_seconds = 100;
    model.tables = &table;
  }
  genrec_table_desc table;
  genrec_model_desc model;
};

SessionOptions clocked(int64_t secondsPerStep) {
  SessionOptions options = seeded();
  options.clock = [=](uint64_t step) { return static_cast<int64_t>(step) * secondsPerStep - 30; };
  return options;
}

TEST(CheckpointClock, GoesOnWhereItWas) {
  TimedModel timed;
  TestFolder folder;
  Session session(timed.model, clocked(9));
  EXPECT_TRUE(session.needsClock());
  trainSome(session, 8);
  StepClock::State saved = session.clock();
  EXPECT_EQ(saved.seconds, 42);
  EXPECT_GT(saved.periods.at(100).size(), 5u);
  saveCheckpoint(folder / "c", session, stateOf(session));

  Session again(timed.model, clocked(9));
  EXPECT_EQ(loadCheckpoint(folder / "c", again).clock, saved);
  EXPECT_EQ(again.clock(), saved);
  for (Session *each : {&session, &again})
    trainSome(*each, 10);
  EXPECT_EQ(again.clock(), session.clock());
  EXPECT_EQ(again.table("movie").size(), session.table("movie").size());

  // For inference it matters nothing; without rules there is none.
  Session reading(timed.model, clocked(9));
  CheckpointReader(folder / "c").restore(reading, RestoreFor::inference);
  EXPECT_FALSE(reading.clock().seconds);
  Session plain(tinyModel(), clocked(9));
  trainSome(plain, 2);
  EXPECT_FALSE(plain.needsClock());
  saveCheckpoint(folder / "plain", plain, stateOf(plain));
  EXPECT_EQ(readText(folder / "plain/step-2/manifest.json").find("\"clock\""), std::string::npos);
}

/// Checkpoints of before there were clocks: ages begin with the first time.
TEST(CheckpointClock, BeginsWhereThereWasNone) {
  TimedModel timed;
  TestFolder folder;
  Session session(timed.model, seeded()); // whose batches have no times
  trainSome(session, 3);
  const int64_t rows = session.table("movie").size();
  saveCheckpoint(folder / "c", session, stateOf(session));
  Session again(timed.model, clocked(60));
  EXPECT_FALSE(loadCheckpoint(folder / "c", again).clock.seconds);
  trainSome(again, 1);
  EXPECT_GE(again.table("movie").size(), rows);
  trainSome(again, 1); // 60 s later
  EXPECT_GE(again.table("movie").size(), rows);
}

TEST(CheckpointClock, DamagedOnesAreRefused) {
  TimedModel timed;
  TestFolder folder;
  Session session(timed.model, clocked(9));
  trainSome(session, 8);
  saveCheckpoint(folder / "c", session, stateOf(session));
  const auto whole = nlohmann::json::parse(readText(folder / "c/step-8/manifest.json"));
  auto errorWith = [&](const std::function<void(nlohmann::json & clock)> &change) {
    nlohmann::json text = whole;
    change(text["clock"]);
    return messageOf([&] { parseGenerationManifest(text.dump(), "m.json"); });
  };
  EXPECT_EQ(errorWith([](auto &) {}), "no error");
  EXPECT_THAT(errorWith([](auto &clock) { clock["seconds"] = "noon"; }),
              HasSubstr("field 'seconds'"));
  EXPECT_THAT(errorWith([](auto &clock) { clock.erase("periods"); }), HasSubstr("field 'periods'"));
  EXPECT_THAT(errorWith([](auto &clock) { clock["periods"]["1h"] = nlohmann::json::array(); }),
              HasSubstr("field '1h' of 'periods' is no number of seconds"));
  EXPECT_THAT(errorWith([](auto &clock) { clock["periods"]["100"][1]["period"] = -99; }),
              HasSubstr("field '100' of 'periods' does not ascend"));
  EXPECT_THAT(errorWith([](auto &clock) { clock["periods"]["100"][0]["first_step"] = 9; }),
              HasSubstr("field 'first_step'"));
}

} // namespace
} // namespace genrec::rt::test
