//===- checkpoint_test.cpp - Saving and restoring training ----------------===//

#include "CheckpointTesting.h"

#include <array>

namespace genrec::rt::test {
namespace {

TEST(Checkpoint, RestoredTrainingContinuesWithTheSameBits) {
  TestFolder folder;
  Session whole(tinyModel(), seeded()), first(tinyModel(), seeded()), second(tinyModel(), seeded());
  trainSome(whole, 20);
  trainSome(first, 11);
  EXPECT_FALSE(hasCheckpoint(folder.path));
  saveCheckpoint(folder.path, first, stateOf(first));
  EXPECT_TRUE(hasCheckpoint(folder.path));
  TrainingState state = loadCheckpoint(folder.path, second);
  EXPECT_EQ(second.stepsDone(), 11u);
  EXPECT_EQ(trainedState(first), trainedState(second));
  trainSome(second, 9);
  EXPECT_EQ(trainedState(whole), trainedState(second));

  EXPECT_EQ(state.step, 11u);
  EXPECT_EQ(state.epoch, 2);
  EXPECT_EQ(state.rowsInEpoch, 60);
  ASSERT_EQ(state.epochLosses.size(), 1u);
  EXPECT_EQ(state.epochLosses[0].sum, 0.1 + 0.2); // every bit of a double survives
  EXPECT_EQ(state.epochLosses[0].weight, 1.0 / 3);
  EXPECT_EQ(nlohmann::json::parse(state.history)[0]["loss"], 0.625);
  EXPECT_EQ(readTrainingState(folder.path).seed, 3u);
}

/// The tiny model with rules about the rows of its table.
struct RuledModel {
  RuledModel(int64_t bounded, int64_t ttl, int64_t admitAfter)
      : table(tinyModel().tables[0]), model(tinyModel()) {
    table.bounded = bounded;
    table.evict = 1;
    table.ttl = ttl;
    table.admit_after = admitAfter;
    model.tables = &table;
  }
  genrec_table_desc table;
  genrec_model_desc model;
};

TEST(Checkpoint, RowsThatComeAndLeaveByRuleContinueWithTheSameBits) {
  for (auto [bounded, ttl, admitAfter] :
       {std::array<int64_t, 3>{20, 0, 0}, {0, 1, 0}, {0, 0, 15}, {20, 4, 2}}) {
    TestFolder folder, ends;
    RuledModel ruled(bounded, ttl, admitAfter);
    Session whole(ruled.model, seeded()), first(ruled.model, seeded()),
        second(ruled.model, seeded());
    trainSome(whole, 20);
    trainSome(first, 11);
    saveCheckpoint(folder.path, first, stateOf(first));
    loadCheckpoint(folder.path, second);
    trainSome(second, 9);
    saveCheckpoint(ends / "whole", whole, stateOf(whole));
    saveCheckpoint(ends / "second", second, stateOf(second));
    std::string bytes = bytesOf(ends / "whole/step-20/model.safetensors");
    EXPECT_GT(bytes.size(), 1000u);
    EXPECT_EQ(bytes, bytesOf(ends / "second/step-20/model.safetensors"))
        << bounded << ttl << admitAfter;
    if (bounded > 0)
      EXPECT_LE(whole.table(0).size(), bounded);
    EXPECT_GT(whole.table(0).size(), 0);
    EXPECT_LT(whole.table(0).size(), kMovies);
  }
}

TEST(Checkpoint, OfAModelWithRulesIsNotOneOfTheModelWithout) {
  TestFolder folder;
  RuledModel ruled(20, 0, 2);
  Session with(ruled.model, seeded()), without(tinyModel(), seeded());
  trainSome(with, 3);
  saveCheckpoint(folder.path, with, stateOf(with));
  EXPECT_NE(messageOf([&] { loadCheckpoint(folder.path, without); }).find("movie.waiting.ids"),
            std::string::npos);
}

} // namespace
} // namespace genrec::rt::test
