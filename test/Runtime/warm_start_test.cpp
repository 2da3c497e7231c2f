//===- warm_start_test.cpp - Training that starts from given values -------===//

#include "genrec_rt/warm_start.h"

#include "CheckpointTesting.h"

#include <cmath>

namespace genrec::rt::test {
namespace {

/// What a file holds; by default all that the tiny model has.
struct InitFile {
  std::vector<float> weight = {1, 2, 3, 4}, values = {1, 1, 1, 1, 2, 2, 2, 2};
  float bias = 0.5;
  std::vector<int64_t> ids = {30, 7};

  SafetensorsWriter writer(bool withTable = true) {
    SafetensorsWriter writer;
    writer.add("weight", weight.data(), {4});
    writer.add("bias", &bias, {});
    if (withTable) {
      writer.add("movie.ids", ids.data(), {2});
      writer.add("movie.values", values.data(), {2, 4});
    }
    return writer;
  }
};

/// The message of the Error, and its help.
std::string messageAndHelp(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what() + (error.help().empty() ? "" : " | " + error.help());
  }
  return "no error";
}

std::vector<std::string> filledIn(const WarmStart &result) {
  std::vector<std::string> names;
  for (const WarmStart::Filled &one : result.filled)
    names.push_back(one.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(WarmStart, ParametersAndTablesAreSetByName) {
  TestFolder folder;
  InitFile file;
  file.writer().write(folder / "a");
  Session session(tinyModel(), seeded());
  WarmStart result = warmStart({folder / "a"}, session);
  EXPECT_EQ(filledIn(result).size(), 3u);
  EXPECT_TRUE(result.notFilled.empty() && result.unused.empty());
  EXPECT_EQ(session.parameter("bias").value[0], 0.5f);
  EXPECT_EQ(session.parameter("weight").value[2], 3.0f);
  TableView table = session.table("movie");
  ASSERT_EQ(table.size(), 2);
  EXPECT_EQ(table.id(1), 7);
  EXPECT_EQ(table.row(1)[3], 2.0f);
  EXPECT_EQ(table.row(1)[4], 0.1f); // the state keeps its initial value
}

TEST(WarmStart, ACheckpointGivesItsWeightsAndNoStates) {
  TestFolder folder;
  Session trained(tinyModel(), seeded()), started(tinyModel(), seeded());
  for (int64_t i = 0; i < 3; ++i) {
    Batch batch = tinyBatch(trained.stepsDone(), 30, 60);
    trained.train(batch);
  }
  TrainingState state;
  state.step = trained.stepsDone();
  state.batch = 30;
  state.epochLosses.resize(static_cast<size_t>(tinyModel().loss_count));
  saveCheckpoint(folder.path, trained, state);
  WarmStart result = warmStart({folder.path}, started);
  EXPECT_EQ(result.filled.size(), 3u);
  EXPECT_TRUE(result.unused.empty());
  ASSERT_EQ(started.table("movie").size(), trained.table("movie").size());
  int64_t id = started.table("movie").id(2);
  std::vector<float> row(2 * kTinyDim), before(2 * kTinyDim);
  started.table("movie").find(&id, 1).read(0, 2 * kTinyDim, row.data());
  trained.table("movie").find(&id, 1).read(0, 2 * kTinyDim, before.data());
  EXPECT_EQ(row[1], before[1]);
  EXPECT_EQ(started.parameter("weight").value[3], trained.parameter("weight").value[3]);
  EXPECT_EQ(row[kTinyDim], 0.1f);
  EXPECT_NE(before[kTinyDim], 0.1f);
  EXPECT_EQ(started.stepsDone(), 0u);
}

TEST(WarmStart, WhatIsNotThereIsToldAndKeepsItsInitialValue) {
  TestFolder folder;
  InitFile file;
  SafetensorsWriter writer = file.writer(false);
  writer.add("wieght", file.weight.data(), {4});
  writer.filtered([](const std::string &name) { return name != "weight"; }).write(folder / "a");
  Session session(tinyModel(), seeded()), fresh(tinyModel(), seeded());
  WarmStart result = warmStart({folder / "a"}, session);
  EXPECT_EQ(filledIn(result), Names({"bias"}));
  EXPECT_EQ(result.notFilled, Names({"weight", "movie"}));
  EXPECT_EQ(result.unused, Names({folder / "a" + ": 'wieght'"}));
  EXPECT_EQ(session.parameter("weight").value[1], fresh.parameter("weight").value[1]);
}

TEST(WarmStart, ANameComesFromAnotherOne) {
  TestFolder folder;
  InitFile file;
  SafetensorsWriter writer;
  writer.add("old.ids", file.ids.data(), {2});
  writer.add("old.values", file.values.data(), {2, 4});
  writer.add("weight", file.weight.data(), {4});
  writer.write(folder / "a");
  Session session(tinyModel(), seeded());
  WarmStart result = warmStart({folder / "a", "movie=" + folder / "a:old"}, session);
  EXPECT_EQ(filledIn(result), Names({"weight", "movie"}));
  EXPECT_EQ(result.filled[1].rows, 2);
  EXPECT_EQ(session.table("movie").id(0), 30);
}

TEST(WarmStart, ShapesAndTypesOfBothSidesAreTold) {
  TestFolder folder;
  InitFile file;
  SafetensorsWriter shapes;
  shapes.add("weight", file.weight.data(), {2, 2});
  shapes.add("bias", file.ids.data(), {1});
  shapes.add("movie.ids", file.ids.data(), {2});
  shapes.add("movie.values", file.values.data(), {4, 2});
  shapes.write(folder / "b");
  Session session(tinyModel(), seeded());
  EXPECT_EQ(messageAndHelp([&] { warmStart({folder / "b"}, session); }),
            "--init: " + folder / "b" + ": 'bias' is I64 [1], parameter 'bias' is F32 []; " +
                folder / "b" +
                ": 'movie' is F32 [4, 2] by ids I64 [2], table 'movie' is F32 [n, 4]; " +
                folder / "b" +
                ": 'weight' is F32 [2, 2], parameter 'weight' is F32 [4] | write it with the shape "
                "and type of the model, or give the model those of the file");
}

/// The flags that the help gives load what fits.
TEST(WarmStart, WhereSomeDifferTheOthersAreGivenAsFlags) {
  TestFolder folder;
  InitFile file;
  SafetensorsWriter wider;
  wider.add("weight", file.weight.data(), {4});
  wider.add("bias", &file.bias, {});
  wider.add("movie.ids", file.ids.data(), {2});
  wider.add("movie.values", file.values.data(), {2, 2});
  wider.write(folder / "my weights");
  file.writer().write(folder / "old");
  auto told = [&](const std::vector<std::string> &entries) {
    Session session(tinyModel(), seeded());
    return messageAndHelp([&] { warmStart(entries, session); });
  };
  const std::string path = folder / "my weights";
  const std::string message = told({path});
  EXPECT_EQ(message.find("--init: " + path +
                         ": 'movie' is F32 [2, 2] by ids I64 [2], table 'movie' "
                         "is F32 [n, 4] | write it"),
            0u)
      << message;
  const std::string others = "; to start from the others alone:\n    ";
  ASSERT_NE(message.find(others), std::string::npos) << message;
  EXPECT_EQ(message.substr(message.find(others) + others.size()),
            "--init 'bias=" + path + "' --init 'weight=" + path + "'");
  const std::string beside = told({path, "weight=" + folder / "old"});
  EXPECT_EQ(beside.substr(beside.find(others) + others.size()),
            "--init 'bias=" + path + "' --init weight=" + folder / "old");

  Session session(tinyModel(), seeded());
  WarmStart result = warmStart({"bias=" + path, "weight=" + path}, session);
  EXPECT_EQ(filledIn(result), Names({"weight", "bias"}));
  EXPECT_EQ(result.notFilled, Names({"movie"}));
}

TEST(WarmStart, BadIdsAndValuesAreNamed) {
  TestFolder folder;
  auto errorFor = [&](std::vector<int64_t> ids, float value) {
    InitFile file;
    file.ids = std::move(ids);
    file.values[5] = value;
    file.writer().write(folder / "a");
    Session session(tinyModel(), seeded());
    return messageAndHelp([&] { warmStart({folder / "a"}, session); });
  };
  std::string source = folder / "a: 'movie'";
  EXPECT_EQ(errorFor({5, 5}, 0),
            source + ": an id is there twice, before row 2 | keep one row of each id");
  EXPECT_EQ(errorFor({5, 1 << 20}, 0), source + ", row 1: id 1048576 is outside of table 'movie', "
                                                "whose ids are 0 to 1048575");
  EXPECT_EQ(errorFor({-1, 5}, 0), source + ", row 0: id -1 is outside of table 'movie', whose ids "
                                           "are 0 to 1048575");
  EXPECT_EQ(errorFor({5, 6}, std::nanf("")),
            source + ": value 5 is NaN | weights must be numbers: look at how it was made");
}

TEST(WarmStart, MistakesInEntriesAreTold) {
  TestFolder folder;
  InitFile file;
  file.writer().write(folder / "a");
  SafetensorsWriter other;
  other.add("x", &file.bias, {});
  other.add("y", &file.bias, {});
  other.write(folder / "other");
  auto errorOf = [&](const std::vector<std::string> &entries) {
    Session session(tinyModel(), seeded());
    return messageAndHelp([&] { warmStart(entries, session); });
  };
  EXPECT_EQ(errorOf({folder / "none"}),
            "--init " + folder / "none" + ": there is no file or folder '" + folder / "none" +
                "' | it takes <path>, <name>=<path> or <name>=<path>:<its name there>");
  EXPECT_EQ(
      errorOf({"mvie=" + folder / "a"}),
      "--init mvie=" + folder / "a" +
          ": the model has no table or parameter 'mvie'; it has weight, bias, movie | did you "
          "mean 'movie'?");
  EXPECT_EQ(errorOf({"bias=" + folder / "a", "bias=" + folder / "a"}),
            "--init bias=" + folder / "a" + ": 'bias' is given by --init bias=" + folder / "a" +
                ", too | leave one of them out");
  EXPECT_EQ(errorOf({folder / "other"}),
            "--init " + folder / "other" +
                ": nothing in it has a name of the model; it has x, y, the model has weight, bias, "
                "movie | give each its name in the model: --init <name>=" +
                folder / "other" + ":<its name there>");
  EXPECT_EQ(errorOf({"bias=" + folder / "other"})
                .find(folder / "other" + ": has no 'bias'; it has x, y | name what to "
                                         "take: --init bias="),
            0u);
}

} // namespace
} // namespace genrec::rt::test
