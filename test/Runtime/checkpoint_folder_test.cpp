//===- checkpoint_folder_test.cpp - What a checkpoint folder keeps --------===//

#include "../../runtime/checkpoint/folder_lock.h"
#include "../../runtime/core/aside_file.h"
#include "CheckpointTesting.h"

#include <atomic>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace genrec::rt::test {
namespace {

using Files = std::vector<std::string>;

const Files kOfStep2 = {"step-2/manifest.json", "step-2/model.safetensors"};

void saveNext(CheckpointWriter &writer, Session &session, int64_t steps = 2) {
  trainSome(session, steps);
  writer.save(session, stateOf(session));
}

uint64_t restoredStep(const std::string &folder, const std::string &generation = {}) {
  Session restored(tinyModel(), seeded());
  CheckpointReader reader(folder, generation);
  reader.restore(restored, RestoreFor::training);
  EXPECT_EQ(reader.state().step, restored.stepsDone());
  return restored.stepsDone();
}

TEST(CheckpointFolder, KeepsTheNewestGenerations) {
  for (int64_t keep : {1, 2, 3}) {
    TestFolder folder;
    Session session(tinyModel(), seeded());
    CheckpointWriter writer(folder.path, {keep, false});
    for (int i = 0; i < 4; ++i)
      saveNext(writer, session);
    Files expected = {"checkpoint.lock", "manifest.json"};
    for (int64_t step = 8; step > 8 - 2 * keep; step -= 2)
      for (const char *file : {"manifest.json", "model.safetensors"})
        expected.push_back("step-" + std::to_string(step) + "/" + file);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(filesIn(folder.path), expected);
    EXPECT_EQ(restoredStep(folder.path), 8u);
    EXPECT_EQ(restoredStep(folder.path, keep > 1 ? "step-6" : "8"), keep > 1 ? 6u : 8u);
  }
}

/// At the end of an epoch that ends with such a step, for example: it takes no other's place.
TEST(CheckpointFolder, AStepThatIsSavedAgainReplacesItself) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  saveCheckpoint(folder.path, session, stateOf(session));
  EXPECT_EQ(filesIn(folder.path),
            (Files{"checkpoint.lock", "manifest.json", kOfStep2[0], kOfStep2[1],
                   "step-4.2/manifest.json", "step-4.2/model.safetensors"}));
  EXPECT_EQ(restoredStep(folder.path), 4u);
  EXPECT_EQ(restoredStep(folder.path, "step-2"), 2u);
}

TEST(CheckpointFolder, FilesOfTheUserStay) {
  TestFolder folder;
  std::filesystem::create_directories(folder / "step-2/mine");
  std::filesystem::create_directories(folder / "step-by-step");
  writeText(folder / "step-2/mine/a", "a");
  writeText(folder / "step-4", "a file");
  writeText(folder / "checkpoint.lock", "mine");
  writeText(folder / "step-by-step/b", "b");
  Session session(tinyModel(), seeded());
  CheckpointWriter writer(folder.path, {1, false});
  saveNext(writer, session);
  saveNext(writer, session);
  // The user's own, in a folder of ours that is then removed.
  writeText(folder / "step-4.2/notes", "c");
  saveNext(writer, session);
  EXPECT_EQ(filesIn(folder.path),
            (Files{"checkpoint.lock", "manifest.json", "step-2/mine/a", "step-4", "step-4.2/notes",
                   "step-6/manifest.json", "step-6/model.safetensors", "step-by-step/b"}));
  EXPECT_EQ(readText(folder / "checkpoint.lock"), "mine");
}

/// Two things had to fail for the last good checkpoint to be lost: that is still the rule, and
/// both fail here.
TEST(CheckpointFolder, NothingIsRemovedWhereTheManifestCannotBeRead) {
  for (const char *text : {"", "{\"version\": 1", "{\"version\": 99}", "nonsense"}) {
    TestFolder folder;
    Session session(tinyModel(), seeded());
    trainSome(session, 2);
    saveCheckpoint(folder.path, session, stateOf(session));
    CheckpointWriter writer(folder.path, {1, false});
    writeText(folder / "manifest.json", text);
    std::filesystem::create_directories(folder / "manifest.json.partial");
    EXPECT_NE(messageOf([&] { saveNext(writer, session); }).find("was not saved"),
              std::string::npos);
    for (const std::string &file : kOfStep2)
      EXPECT_TRUE(std::filesystem::exists(folder / file)) << text;
    EXPECT_EQ(restoredStep(folder.path, "step-2"), 2u);
  }
  // One that begins with such a manifest removes nothing either.
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  writeText(folder / "manifest.json", "{\"version\": 99}");
  CheckpointWriter writer(folder.path, {1, false});
  saveNext(writer, session);
  saveNext(writer, session);
  EXPECT_EQ(restoredStep(folder.path), 6u);
  EXPECT_EQ(restoredStep(folder.path, "step-2"), 2u);
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

TEST(CheckpointFolder, AFailedSaveLeavesThePreviousOneWhole) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  std::vector<float> saved = trainedState(session);
  CheckpointWriter writer(folder.path, {});
  writer.save(session, stateOf(session));
  Files files = filesIn(folder.path);
  trainSome(session, 2);
  for (rlim_t bytes : {0, 100, 1000, 2000}) {
    std::string message;
    {
      FileLimit limit(bytes);
      message = messageOf([&] { writer.save(session, stateOf(session)); });
    }
    EXPECT_EQ(message, "the checkpoint of step 4 was not saved: cannot write " +
                           folder / "step-4/model.safetensors.partial" +
                           ": File too large; the one of step 2 is whole");
    EXPECT_EQ(filesIn(folder.path), files); // nor is anything left behind
    Session restored(tinyModel(), seeded());
    EXPECT_EQ(loadCheckpoint(folder.path, restored).step, 2u);
    EXPECT_EQ(trainedState(restored), saved);
  }
  // The tensors are written, the manifest cannot be.
  std::filesystem::create_directories(folder / "manifest.json.partial");
  EXPECT_EQ(messageOf([&] { writer.save(session, stateOf(session)); }),
            "the checkpoint of step 4 was not saved: cannot create " +
                folder / "manifest.json.partial" + ": Is a directory; the one of step 2 is whole");
  EXPECT_EQ(filesIn(folder.path), files);
  std::filesystem::remove(folder / "manifest.json.partial");

  writer.save(session, stateOf(session));
  EXPECT_EQ(restoredStep(folder.path), 4u);
  EXPECT_EQ(restoredStep(folder.path, "step-2"), 2u);
}

TEST(CheckpointFolder, WeightsThatAreNotFiniteLeaveThePreviousOneWhole) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  CheckpointWriter writer(folder.path, {});
  writer.save(session, stateOf(session));
  Files files = filesIn(folder.path);
  float *row = session.table(0).row(3);
  for (float *value : {&session.parameter(0).value[2], &row[1], &row[5]}) {
    float before = *value;
    *value = value == &row[1] ? HUGE_VALF : NAN;
    EXPECT_EQ(messageOf([&] { writer.save(session, stateOf(session)); })
                  .rfind("the checkpoint of step 2 was not saved: there is a NaN or an infinity in "
                         "tensor '",
                         0),
              0u);
    *value = before;
    EXPECT_EQ(filesIn(folder.path), files);
  }
  TrainingState state = stateOf(session);
  state.epochLosses[0].sum = NAN;
  EXPECT_NE(messageOf([&] { writer.save(session, state); }).find("loss of the epoch is a NaN"),
            std::string::npos);

  // Where it was asked for, it is saved, and can be read by everything.
  row[1] = NAN;
  state.epochLosses[0].weight = HUGE_VAL;
  CheckpointWriter(folder / "any", {.allowNonFinite = true}).save(session, state);
  for (RestoreFor purpose : {RestoreFor::training, RestoreFor::inference}) {
    Session restored(tinyModel(), seeded());
    CheckpointReader reader(folder / "any");
    reader.restore(restored, purpose);
    TableView table = restored.table(0);
    for (int64_t number = 0; number < table.size(); ++number) // in an order of its own
      EXPECT_EQ(std::isnan(table.row(number)[1]), table.id(number) == session.table(0).id(3));
    EXPECT_TRUE(std::isnan(reader.state().epochLosses[0].sum));
    EXPECT_EQ(reader.state().epochLosses[0].weight, HUGE_VAL);
  }
}

TEST(CheckpointFolder, WhatAKilledSaveLeftBehindIsIgnoredAndRemoved) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 2);
  saveCheckpoint(folder.path, session, stateOf(session));
  // Killed before the folder's manifest was renamed, as the lock says.
  std::filesystem::create_directories(folder / "step-9");
  writeText(folder / "step-9/model.safetensors.partial", "half");
  writeText(folder / "checkpoint.lock", R"({"pid": 7, "host": "a", "since": "b", "writing": "step-9"})");
  // Of no run that is known.
  std::filesystem::create_directories(folder / "step-8");
  writeText(folder / "step-8/model.safetensors", "whole, but of no manifest");
  writeText(folder / "manifest.json.partial", "{\"ver");
  EXPECT_EQ(restoredStep(folder.path), 2u);
  { FolderLock killed(folder.path); } // of a run that ended before it removed anything
  trainSome(session, 6);
  saveCheckpoint(folder.path, session, stateOf(session));
  EXPECT_EQ(filesIn(folder.path),
            (Files{"checkpoint.lock", "manifest.json", "step-2/manifest.json", "step-2/model.safetensors",
                   "step-8.2/manifest.json", "step-8.2/model.safetensors",
                   "step-8/model.safetensors"}));
}

//===-- going on, and beginning anew ----------------------------------------===//

TEST(CheckpointFolder, ANewRunReplacesAllOnlyOnceItHasSaved) {
  TestFolder folder;
  Session old(tinyModel(), seeded()), session(tinyModel(), seeded());
  CheckpointWriter(folder.path, {}).save(old, stateOf(old));
  {
    CheckpointWriter writer(folder.path, {});
    EXPECT_EQ(restoredStep(folder.path), 0u);
    saveNext(writer, session);
    EXPECT_EQ(filesIn(folder.path), (Files{"checkpoint.lock", "manifest.json", kOfStep2[0], kOfStep2[1]}));
  }
}

TEST(CheckpointFolder, GoingOnFromAnOlderGenerationReplacesTheLaterOnes) {
  TestFolder folder;
  Session session(tinyModel(), seeded()), restored(tinyModel(), seeded());
  {
    CheckpointWriter writer(folder.path, {3, false});
    for (int i = 0; i < 3; ++i)
      saveNext(writer, session);
  }
  CheckpointWriter writer(folder.path, {3, false});
  {
    CheckpointReader reader(folder.path, "step-4");
    reader.restore(restored, RestoreFor::training);
    writer.continueFrom(reader);
  }
  saveNext(writer, restored, 1);
  EXPECT_EQ(filesIn(folder.path),
            (Files{"checkpoint.lock", "manifest.json", kOfStep2[0], kOfStep2[1], "step-4/manifest.json",
                   "step-4/model.safetensors", "step-5/manifest.json", "step-5/model.safetensors"}));
}

TEST(CheckpointFolder, ADamagedNewestOneNamesTheOneThatIsWhole) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  CheckpointWriter writer(folder.path, {});
  saveNext(writer, session);
  saveNext(writer, session);
  std::string tensors = folder / "step-4/model.safetensors";
  auto size = std::filesystem::file_size(tensors);
  std::filesystem::resize_file(tensors, size - 1);
  auto read = [&] { restoredStep(folder.path); };
  EXPECT_EQ(messageOf(read), tensors + ": is damaged: it has " + std::to_string(size - 1) +
                                 " bytes, the manifest says " + std::to_string(size));
  EXPECT_EQ(helpOf(read), "generation step-2 is whole: --generation step-2 uses it");
  std::filesystem::remove(tensors);
  EXPECT_EQ(messageOf(read), tensors + ": is not there, and the newest generation that " +
                                 folder / "manifest.json" + " names needs it");
  EXPECT_EQ(helpOf(read), "generation step-2 is whole: --generation step-2 uses it");
  writeText(folder / "manifest.json", "{\"version\": 1, \"model\"");
  EXPECT_EQ(messageOf(read), folder / "manifest.json" + ": is damaged: no JSON object");
  EXPECT_EQ(helpOf(read), "generation step-2 is whole: --generation step-2 uses it");
  EXPECT_EQ(messageOf([&] { restoredStep(folder / "step-9/"); }),
            "there is no generation step-9 in '" + folder.path + "'");
  std::filesystem::remove(folder / "manifest.json");
  EXPECT_EQ(messageOf(read), "there is no checkpoint in '" + folder.path + "' (no manifest.json)");
  EXPECT_EQ(helpOf(read), "generation step-2 is whole: --generation step-2 uses it");
  EXPECT_EQ(restoredStep(folder.path, "step-2"), 2u);
  EXPECT_EQ(messageOf([&] { restoredStep(folder.path, "step-3"); }),
            "there is no generation step-3 in '" + folder.path + "'");
  EXPECT_EQ(messageOf([&] { restoredStep(folder.path, "../step-2"); }),
            "'../step-2' is no generation of a checkpoint");
}

TEST(CheckpointFolder, OfVersion1IsReadAndReplaced) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  trainSome(session, 3);
  saveVersion1(folder.path, session, {{"epoch_losses", {{{"sum", nullptr}, {"weight", 1.5}}}}});
  for (const char *generation : {"", "step-3"}) {
    Session restored(tinyModel(), seeded());
    CheckpointReader reader(folder.path, generation);
    reader.restore(restored, RestoreFor::training);
    EXPECT_EQ(trainedState(restored), trainedState(session));
    EXPECT_TRUE(std::isnan(reader.state().epochLosses[0].sum));
  }
  CheckpointWriter writer(folder.path, {});
  {
    CheckpointReader reader(folder.path);
    writer.continueFrom(reader);
  }
  saveNext(writer, session, 1);
  EXPECT_EQ(restoredStep(folder.path), 4u);
  EXPECT_FALSE(std::filesystem::exists(folder / "step-3"));
}

//===-- one writer, many readers --------------------------------------------===//

TEST(CheckpointFolder, IsTrainedIntoByOneRunAtATime) {
  TestFolder folder;
  auto open = [&] { CheckpointWriter second(folder.path, {}); };
  {
    CheckpointWriter writer(folder.path, {});
    std::string message = messageOf(open), begin = folder.path + " is being trained into by process " +
                                                   std::to_string(getpid()) + " on ";
    EXPECT_EQ(message.substr(0, begin.size()), begin);
    EXPECT_NE(message.find(", since 2"), std::string::npos) << message;
  }
  EXPECT_EQ(messageOf(open), "no error");
  // A process that is killed leaves no lock.
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  pid_t child = fork();
  if (child == 0) {
    CheckpointWriter writer(folder.path, {});
    (void)!write(pipes[1], "x", 1);
    pause();
  }
  char byte;
  ASSERT_EQ(read(pipes[0], &byte, 1), 1);
  EXPECT_NE(messageOf(open).find("process " + std::to_string(child) + " on "), std::string::npos);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(messageOf(open), "no error");
  close(pipes[0]);
  close(pipes[1]);
}

TEST(CheckpointFolder, AReaderKeepsWhatItReadsUntilItHasDone) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  CheckpointWriter writer(folder.path, {1, false});
  saveNext(writer, session);
  std::vector<float> saved = trainedState(session);
  {
    CheckpointReader reader(folder.path);
    for (int i = 0; i < 3; ++i)
      saveNext(writer, session);
    Files expected = {"checkpoint.lock", "manifest.json", kOfStep2[0], kOfStep2[1], "step-8/manifest.json",
                      "step-8/model.safetensors"};
    EXPECT_EQ(filesIn(folder.path), expected);
    Session restored(tinyModel(), seeded());
    reader.restore(restored, RestoreFor::training);
    EXPECT_EQ(trainedState(restored), saved);
  }
  saveNext(writer, session);
  EXPECT_EQ(filesIn(folder.path),
            (Files{"checkpoint.lock", "manifest.json", "step-10/manifest.json", "step-10/model.safetensors"}));
}

/// One generation only, replaced as fast as can be: the hardest case for readers.
TEST(CheckpointFolder, ReadersNeverFailWhileARunSaves) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  CheckpointWriter writer(folder.path, {1, false});
  saveNext(writer, session, 1);
  std::atomic<bool> isDone{false};
  std::atomic<int> reads{0};
  std::vector<std::string> failures(3);
  std::vector<std::thread> readers;
  for (std::string &failure : failures)
    readers.emplace_back([&] {
      uint64_t before = 0;
      while (!isDone) {
        try {
          CheckpointReader reader(folder.path);
          reader.verify();
          if (reader.state().step < before)
            failure = "went back from " + std::to_string(before);
          before = reader.state().step;
          ++reads;
        } catch (const std::exception &error) {
          failure = error.what();
        }
      }
    });
  for (int i = 0; i < 300 || reads < 30; ++i)
    saveNext(writer, session, 1);
  isDone = true;
  for (std::thread &reader : readers)
    reader.join();
  for (const std::string &failure : failures)
    EXPECT_EQ(failure, "");
}

} // namespace
} // namespace genrec::rt::test
