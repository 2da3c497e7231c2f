//===- checkpoint_test.cpp - Saving and restoring training ----------------===//

#include "genrec_rt/checkpoint.h"

#include "TinyData.h"
#include "TinyModel.h"
#include "genrec_rt/safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <sys/resource.h>

namespace genrec::rt::test {
namespace {

constexpr int64_t kMovies = 60;

SessionOptions seeded() {
  SessionOptions options;
  options.seed = 3;
  options.threads = 2;
  return options;
}

void trainSome(Session &session, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Batch batch = tinyBatch(session.stepsDone(), 30, kMovies);
    session.train(batch);
  }
}

TrainingState stateOf(const Session &session) {
  TrainingState state;
  state.step = session.stepsDone();
  state.epoch = 2;
  state.rowsInEpoch = 60;
  state.epochLosses = {{0.1 + 0.2, 1.0 / 3}};
  state.history = R"([{"epoch":1,"loss":0.625}])";
  state.seed = session.seed();
  state.batch = 30;
  state.shuffle = true;
  state.dataRows = 600;
  state.windowRows = 600;
  return state;
}

std::string messageOf(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

/// The files below a folder, sorted.
std::vector<std::string> filesIn(const std::string &folder) {
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      files.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::sort(files.begin(), files.end());
  return files;
}

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

std::string bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

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

TEST(Checkpoint, ANewOneReplacesTheOldOne) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  saveCheckpoint(folder.path, session, stateOf(session)); // of the same step, under another name
  EXPECT_EQ(filesIn(folder.path),
            (std::vector<std::string>{"manifest.json", "step-4.2/model.safetensors"}));
  Session restored(tinyModel(), seeded());
  EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 4u);
  EXPECT_EQ(trainedState(session), trainedState(restored));
}

/// Limits the size of files that this process writes, so that writes fail as on a
/// full disk.
struct FileLimit {
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before); }
  struct rlimit before{};
};

TEST(Checkpoint, AFailedSaveLeavesThePreviousOneWhole) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  std::vector<float> saved = trainedState(session);
  saveCheckpoint(folder.path, session, stateOf(session));
  std::vector<std::string> files = filesIn(folder.path);
  trainSome(session, 2);
  for (rlim_t bytes : {0, 100, 1000, 2000}) {
    std::string message;
    {
      FileLimit limit(bytes);
      message = messageOf([&] { saveCheckpoint(folder.path, session, stateOf(session)); });
    }
    EXPECT_EQ(message, "the checkpoint of step 4 was not saved: cannot write " +
                           folder / "step-4.partial/model.safetensors.partial" +
                           ": File too large; the one of step 2 is whole");
    EXPECT_EQ(filesIn(folder.path), files); // nor is anything left behind
    Session restored(tinyModel(), seeded());
    EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 2u);
    EXPECT_EQ(trainedState(restored), saved);
  }
  // The tensors are written, the manifest cannot be.
  std::filesystem::create_directories(folder / "manifest.json.partial");
  EXPECT_EQ(messageOf([&] { saveCheckpoint(folder.path, session, stateOf(session)); }),
            "the checkpoint of step 4 was not saved: cannot create " +
                folder / "manifest.json.partial" + ": Is a directory; the one of step 2 is whole");
  EXPECT_EQ(filesIn(folder.path), files);
  std::filesystem::remove(folder / "manifest.json.partial");

  saveCheckpoint(folder.path, session, stateOf(session));
  Session restored(tinyModel(), seeded());
  EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 4u);
}

TEST(Checkpoint, WhatAKilledSaveLeftBehindIsIgnoredAndRemoved) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  // Killed while writing tensors; killed before the manifest was renamed.
  std::filesystem::create_directories(folder / "step-9.partial");
  std::ofstream(folder / "step-9.partial/model.safetensors.partial") << "half";
  std::filesystem::create_directories(folder / "step-8");
  std::ofstream(folder / "step-8/model.safetensors") << "whole, but of no manifest";
  std::ofstream(folder / "manifest.json.partial") << "{\"ver";
  Session restored(tinyModel(), seeded());
  EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 2u);
  trainSome(session, 6);
  saveCheckpoint(folder.path, session, stateOf(session));
  EXPECT_EQ(filesIn(folder.path),
            (std::vector<std::string>{"manifest.json", "step-8.2/model.safetensors"}));
}

TEST(Checkpoint, DamageIsNamed) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  auto errorOf = [&] {
    Session restored(tinyModel(), seeded());
    return messageOf([&] { loadCheckpoint(folder.path, restored); });
  };
  EXPECT_EQ(errorOf(), "there is no checkpoint in '" + folder.path + "' (no manifest.json)");
  saveCheckpoint(folder.path, session, stateOf(session));
  std::string tensors = folder / "step-2/model.safetensors", manifest = folder / "manifest.json";
  auto size = std::filesystem::file_size(tensors);
  std::string good = readText(manifest);

  std::filesystem::resize_file(tensors, size - 1);
  EXPECT_EQ(errorOf(), tensors + ": is damaged: it has " + std::to_string(size - 1) +
                           " bytes, the manifest says " + std::to_string(size));
  std::filesystem::remove(tensors);
  EXPECT_EQ(errorOf(),
            manifest + ": names " + tensors + ", which cannot be read: No such file or directory");
  std::ofstream(manifest) << "{\"version\": 1, \"model\"";
  EXPECT_EQ(errorOf(), manifest + ": is damaged: no JSON object with a version");
  std::ofstream(manifest) << "{\"version\": 99}";
  EXPECT_EQ(errorOf(), manifest + ": has version 99, this binary reads 1");
  std::ofstream(manifest) << "{\"version\": 1, \"model\": \"tiny\"}";
  EXPECT_EQ(errorOf().find(manifest + ": is damaged: "), 0u);
  std::ofstream(manifest) << "{\"version\": 1, \"model\": \"large\"}";
  EXPECT_EQ(errorOf(), "'" + folder.path +
                           "' is a checkpoint of model \"large\", this binary is "
                           "model \"tiny\"");
}

} // namespace
} // namespace genrec::rt::test
