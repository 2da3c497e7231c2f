//===- checkpoint_incremental_test.cpp - Saves of what changed -------------===//

#include "../../runtime/checkpoint/inspect.h"
#include "CheckpointTesting.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/warm_start.h"

#include <gmock/gmock.h>
#include <random>

namespace genrec::rt::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kRows = 3000;

/// Some of the ids 0 to `end` that this rank owns: by `seed`, the same whatever the ranks.
std::vector<int64_t> someIds(const Communicator *comm, const char *table, int64_t end, int64_t part,
                             uint64_t seed) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < end; ++id) {
    std::mt19937_64 random(seed * 1000003 + static_cast<uint64_t>(id));
    random.discard(3);
    bool isOwned =
        !comm || getOwner(getSlice(hashTableName(table), id), comm->getSize()) == comm->getRank();
    if (isOwned && static_cast<int64_t>(random() % 100) < part)
      ids.push_back(id);
  }
  return ids;
}

void writeRows(TableView table, const std::vector<int64_t> &ids, uint64_t step) {
  auto count = static_cast<int64_t>(ids.size());
  int64_t width = table.dim() * (1 + table.states());
  TableRows rows = table.findOrInsert(ids.data(), count);
  std::vector<float> floats;
  std::vector<Sighting> sightings;
  for (int64_t id : ids) {
    for (int64_t i = 0; i < width; ++i)
      floats.push_back(static_cast<float>(id * 31 + i) / static_cast<float>(step + 1));
    sightings.push_back({static_cast<int64_t>(step), id % 7 + 1});
  }
  rows.write(0, width, floats.data());
  if (table.configuration().rules.any())
    rows.writeSightings(sightings.data());
}

/// What a step of training might do: rows come, change and leave, ids begin to wait and are
/// admitted.
void change(Session &session, uint64_t step) {
  Communicator *comm = session.comm();
  session.parameter(0).value[0] = static_cast<float>(step);
  session.setStepsDone(step);
  for (const char *name : {"movie", "genre"}) {
    TableView table = session.table(name);
    auto erase = [&](TableView from, int64_t part, uint64_t seed) {
      std::vector<int64_t> gone = someIds(comm, name, kRows, part, seed);
      from.erase(gone.data(), static_cast<int64_t>(gone.size()));
    };
    erase(table, 7, step * 10 + 1);
    writeRows(table, someIds(comm, name, kRows, 10, step * 10 + 2), step);
    if (std::optional<TableView> waiting = table.waiting()) {
      std::vector<int64_t> admitted = someIds(comm, name, kRows, 10, step * 10 + 2);
      waiting->erase(admitted.data(), static_cast<int64_t>(admitted.size()));
      std::vector<int64_t> waits = someIds(comm, name, kRows, 5, step * 10 + 3);
      table.erase(waits.data(), static_cast<int64_t>(waits.size()));
      writeRows(*waiting, waits, step);
      erase(*waiting, 3, step * 10 + 4);
    }
  }
}

/// Saves after each of the steps; what a full save of the last state would be goes to
/// `<folder>.full`.
void saveSteps(const std::string &folder, int32_t ranks, uint64_t steps,
               const CheckpointOptions &options) {
  TwoTables two;
  auto run = [&](Communicator *comm) {
    Session session(two.model, optionsOf(comm));
    CheckpointOptions mine = options; // ranks are threads
    mine.comm = comm;
    CheckpointWriter writer(folder, mine);
    for (uint64_t step = 1; step <= steps; ++step) {
      change(session, step);
      writer.save(session, stateOf(session));
    }
    saveCheckpoint(folder + ".full", session, stateOf(session));
  };
  if (ranks == 0)
    run(nullptr);
  else
    runThreadRanks(ranks, [&](Communicator &comm) { run(&comm); });
}

std::string tensorsOf(const std::string &folder, const std::string &generation) {
  return readText(folder + "/" + generation + "/model.safetensors");
}

/// The bytes of a full save of what a generation holds, loaded on so many ranks.
std::string replayed(const std::string &folder, const std::string &generation, int32_t ranks) {
  TwoTables two;
  TestFolder to;
  auto run = [&](Communicator *comm) {
    Session session(two.model, optionsOf(comm));
    CheckpointReader reader(folder, generation);
    reader.restore(session, RestoreFor::training);
    saveCheckpoint(to.path, session, reader.state());
  };
  if (ranks == 0)
    run(nullptr);
  else
    runThreadRanks(ranks, [&](Communicator &comm) { run(&comm); });
  return tensorsOf(to.path, CheckpointReader(to.path).generation());
}

std::vector<std::string> generationsOf(const std::string &folder) {
  nlohmann::json manifest = nlohmann::json::parse(readText(folder + "/manifest.json"));
  std::vector<std::string> names;
  for (const auto &one : manifest["generations"])
    names.push_back(one["name"]);
  return names;
}

TEST(IncrementalCheckpoint, ReplayedItIsTheFullOne) {
  TestFolder folder;
  std::string one = folder / "one";
  saveSteps(one, 0, 5, {.keep = 9, .fullEvery = 9});
  std::string full = tensorsOf(one + ".full", "step-5");
  EXPECT_TRUE(replayed(one, "", 0) == full);
  EXPECT_TRUE(replayed(one, "", 3) == full);
  // Every state on the way.
  for (uint64_t steps : {1, 3}) {
    std::string some = folder / ("some" + std::to_string(steps));
    saveSteps(some, 0, steps, {});
    std::string name = "step-" + std::to_string(steps);
    EXPECT_TRUE(replayed(one, name, 0) == tensorsOf(some + ".full", name)) << steps;
  }
  // What changed is a part of it: of 3,000 rows, a tenth was written.
  EXPECT_LT(tensorsOf(one, "step-5").size() * 2, full.size());
}

TEST(IncrementalCheckpoint, HasTheSameBytesOnAnyNumberOfRanks) {
  TestFolder folder;
  saveSteps(folder / "alone", 0, 4, {.keep = 9, .fullEvery = 3});
  for (int32_t ranks : {1, 2, 3}) {
    std::string name = folder / ("on" + std::to_string(ranks));
    saveSteps(name, ranks, 4, {.keep = 9, .fullEvery = 3});
    for (const std::string &file : filesIn(folder / "alone"))
      if (file.find("lock") == std::string::npos)
        EXPECT_TRUE(readText(name + "/" + file) == readText(folder / "alone/" + file))
            << file << " on " << ranks;
    EXPECT_TRUE(replayed(name, "", 4) == tensorsOf(name + ".full", "step-4"));
  }
}

/// Its rows lie in several files.
TEST(IncrementalCheckpoint, IsWhatAnotherRunStartsFrom) {
  TestFolder folder;
  saveSteps(folder / "c", 0, 5, {.keep = 9, .fullEvery = 9});
  TwoTables two;
  Session incremental(two.model, seeded()), full(two.model, seeded());
  WarmStart result = warmStart({folder / "c"}, incremental);
  EXPECT_TRUE(result.unused.empty());
  EXPECT_EQ(result.filled.size(), warmStart({folder / "c.full"}, full).filled.size());
  EXPECT_EQ(incremental.table("movie").size(), full.table("movie").size());
  for (Session *session : {&incremental, &full})
    saveCheckpoint(folder / (session == &full ? "a" : "b"), *session, stateOf(*session));
  EXPECT_TRUE(compareCheckpoints(folder / "a", folder / "b").empty());
}

TEST(Inspection, ListsVerifiesAndComparesGenerations) {
  TestFolder folder;
  saveSteps(folder / "c", 0, 3, {.keep = 9, .fullEvery = 9});
  std::vector<std::string> lines = listCheckpoint(folder / "c");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], HasSubstr("step-1: step 1, epoch 2, full, "));
  EXPECT_THAT(lines[2], HasSubstr("step-3: step 3, epoch 2, incremental, built on step-2, "));
  EXPECT_THAT(lines[2], HasSubstr(" removed; movie: "));
  // A chain and a full one of the same state.
  EXPECT_TRUE(compareCheckpoints(folder / "c", folder / "c.full").empty());
  EXPECT_TRUE(compareCheckpoints(folder / "c/step-3", folder / "c.full/step-3/").empty());
  TwoTables two;
  Session session(two.model, seeded());
  loadCheckpoint(folder / "c", session);
  int64_t ids[] = {90001, 90002};
  session.table("movie").findOrInsert(ids, 2);
  std::vector<int64_t> gone = session.table("movie").ids(0, 3);
  session.table("movie").erase(gone.data(), 3);
  float value = 0;
  TableRows row = session.table("movie").rows(5, 1);
  row.read(1, 1, &value);
  row.write(1, 1, &(value += 0.5F));
  session.parameter(0).value[0] += 0.25F;
  saveCheckpoint(folder / "d", session, stateOf(session));
  EXPECT_THAT(
      compareCheckpoints(folder / "c", folder / "d"),
      ElementsAre("table 'movie': 2 rows added, 3 removed, 1 changed, values by at most 0.5",
                  "parameter '" + std::string(two.model.parameters[0].name) +
                      "': changed by at most 0.25"));
  for (const Verified &one : verifyCheckpoint(folder / "c"))
    EXPECT_TRUE(one.isWhole) << one.line;
  std::filesystem::resize_file(folder / "c/step-2/model.safetensors", 100);
  std::vector<Verified> found = verifyCheckpoint(folder / "c");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_TRUE(found[0].isWhole);
  EXPECT_THAT(found[1].line, HasSubstr("step-2/model.safetensors: is damaged: it has 100 bytes"));
  EXPECT_FALSE(found[2].isWhole); // built on it
  EXPECT_TRUE(verifyCheckpoint(folder / "c/step-1")[0].isWhole);
  EXPECT_THAT(listCheckpoint(folder / "c")[1], HasSubstr("is damaged"));
  EXPECT_THAT(messageOf([&] { listCheckpoint(folder / "none"); }),
              HasSubstr("there is no checkpoint"));
}

/// An exported table starts another run.
TEST(Inspection, ExportsATableThatIsReadAgain) {
  TestFolder folder;
  saveSteps(folder / "c", 0, 3, {.keep = 9, .fullEvery = 9});
  int64_t rows = exportTable(folder / "c", "movie", folder / "movie.parquet");
  TwoTables two;
  Session session(two.model, seeded()), restored(two.model, seeded());
  WarmStart result = warmStart({"movie=" + folder / "movie.parquet:id,vector"}, session);
  ASSERT_EQ(result.filled.size(), 1U);
  EXPECT_EQ(result.filled[0].rows, rows);
  loadCheckpoint(folder / "c", restored);
  ASSERT_EQ(restored.table("movie").size(), rows);
  std::vector<int64_t> ids = restored.table("movie").ids(0, rows);
  std::vector<float> is(rows * kTinyDim), was(is.size());
  session.table("movie").find(ids.data(), rows).read(0, kTinyDim, is.data());
  restored.table("movie").find(ids.data(), rows).read(0, kTinyDim, was.data());
  EXPECT_EQ(is, was);
  EXPECT_EQ(exportTable(folder / "c/step-3/", "movie", folder / "newest.parquet"), rows);
  EXPECT_THAT(messageOf([&] { exportTable(folder / "c", "film", folder / "x.parquet"); }),
              HasSubstr("has no table 'film'; it has genre, movie"));
  EXPECT_THAT(messageOf([&] { exportTable(folder / "c", "movie", folder / "none/x.parquet"); }),
              HasSubstr("cannot create "));
}

TEST(IncrementalCheckpoint, WhatItIsBuiltOnIsKept) {
  TestFolder folder;
  saveSteps(folder / "a", 0, 3, {.keep = 1, .fullEvery = 3});
  EXPECT_THAT(generationsOf(folder / "a"), ElementsAre("step-1", "step-2", "step-3"));
  saveSteps(folder / "b", 0, 4, {.keep = 1, .fullEvery = 3});
  EXPECT_THAT(generationsOf(folder / "b"), ElementsAre("step-4"));
  EXPECT_FALSE(std::filesystem::exists(folder / "b/step-1"));
  saveSteps(folder / "c", 0, 5, {.keep = 3, .fullEvery = 3});
  EXPECT_THAT(generationsOf(folder / "c"),
              ElementsAre("step-1", "step-2", "step-3", "step-4", "step-5"));
  saveSteps(folder / "d", 0, 6, {.keep = 2, .fullEvery = 3});
  EXPECT_THAT(generationsOf(folder / "d"), ElementsAre("step-4", "step-5", "step-6"));
}

/// A run that goes on from one begins with a full one, and keeps what it came from.
TEST(IncrementalCheckpoint, ARunGoesOnFromOne) {
  TestFolder folder;
  saveSteps(folder / "c", 0, 4, {.keep = 9, .fullEvery = 9});
  TwoTables two;
  Session session(two.model, seeded());
  CheckpointReader reader(folder / "c", "step-3");
  reader.restore(session, RestoreFor::training);
  CheckpointWriter writer(folder / "c", {.keep = 2, .fullEvery = 9});
  writer.continueFrom(reader);
  change(session, 4);
  writer.save(session, stateOf(session));
  EXPECT_THAT(generationsOf(folder / "c"), ElementsAre("step-1", "step-2", "step-3", "step-4.2"));
  EXPECT_TRUE(tensorsOf(folder / "c", "step-4.2") == tensorsOf(folder / "c.full", "step-4"));
  // The same step again, on top of it.
  session.parameter(0).value[0] = 77;
  writer.save(session, stateOf(session));
  change(session, 5);
  writer.save(session, stateOf(session));
  EXPECT_THAT(generationsOf(folder / "c"), ElementsAre("step-4.2", "step-4", "step-5"));
}

TEST(IncrementalCheckpoint, DamageNamesTheLastWholeState) {
  TestFolder folder;
  saveSteps(folder / "c", 0, 5, {.keep = 9, .fullEvery = 9});
  auto damage = [&](const std::string &generation) {
    std::string path = folder / ("c/" + generation + "/model.safetensors"), text = readText(path);
    text[text.size() / 2] ^= 1;
    writeText(path, text);
  };
  TwoTables two;
  auto load = [&](const std::string &generation) {
    Session session(two.model, seeded());
    CheckpointReader(folder / "c", generation).restore(session, RestoreFor::training);
  };
  damage("step-4");
  EXPECT_THAT(messageOf([&] { load(""); }), HasSubstr("step-4/model.safetensors: is damaged"));
  EXPECT_EQ(helpOf([&] { load(""); }), "generation step-3 is whole: --generation step-3 uses it");
  load("step-3");
  // A truncated link.
  std::filesystem::resize_file(folder / "c/step-2/model.safetensors", 1000);
  EXPECT_THAT(messageOf([&] { load(""); }),
              HasSubstr("step-2/model.safetensors: is damaged: it has 1000 bytes"));
  EXPECT_EQ(helpOf([&] { load(""); }), "generation step-1 is whole: --generation step-1 uses it");
  // One that is gone, and another in its place.
  std::filesystem::rename(folder / "c/step-2", folder / "c/gone");
  EXPECT_THAT(messageOf([&] { load("step-3"); }),
              HasSubstr("step-2/manifest.json: is not there, and generation step-3 needs it"));
  EXPECT_THAT(messageOf([&] { load(""); }), HasSubstr("step-2/manifest.json: is not there"));
  std::filesystem::copy(folder / "c/step-1", folder / "c/step-2");
  EXPECT_THAT(messageOf([&] { load("step-3"); }),
              HasSubstr("step-2/manifest.json: has another checksum than "));
}

TEST(IncrementalCheckpoint, ASaveThatFailedIsFollowedByAFullOne) {
  TestFolder folder;
  TwoTables two;
  Session session(two.model, seeded());
  CheckpointWriter writer(folder.path, {.keep = 1, .fullEvery = 9});
  change(session, 1);
  writer.save(session, stateOf(session));
  change(session, 2);
  session.parameter(0).value[0] = NAN;
  EXPECT_THAT(messageOf([&] { writer.save(session, stateOf(session)); }),
              HasSubstr("was not saved: there is a NaN"));
  change(session, 3);
  writer.save(session, stateOf(session));
  EXPECT_THAT(generationsOf(folder.path), ElementsAre("step-3"));
  TwoTables other;
  saveCheckpoint(folder / "full", session, stateOf(session));
  EXPECT_TRUE(tensorsOf(folder.path, "step-3") == tensorsOf(folder / "full", "step-3"));
}

} // namespace
} // namespace genrec::rt::test
