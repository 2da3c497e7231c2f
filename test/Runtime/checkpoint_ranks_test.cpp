//===- checkpoint_ranks_test.cpp - Checkpoints of several ranks -----------===//

#include "CheckpointTesting.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/warm_start.h"

#include <gmock/gmock.h>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

namespace genrec::rt::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kMovieRows = 40000; // of table "movie": several blocks from each rank

/// What a row of a table holds: ids, then floats.
using Rows = std::map<int64_t, std::vector<float>>;

std::vector<float> floatsOf(int64_t id, int64_t width) {
  std::vector<float> floats(width);
  for (int64_t i = 0; i < width; ++i)
    floats[i] = static_cast<float>(id * 31 + i) / 7;
  return floats;
}

bool isOwned(const Communicator *comm, const char *table, int64_t id) {
  return !comm || getOwner(getSlice(hashTableName(table), id), comm->getSize()) == comm->getRank();
}

/// Ids 0 to `count` - 1 that this rank owns, in an order of `seed`.
std::vector<int64_t> ownedIds(const Communicator *comm, const char *table, int64_t count,
                              uint32_t seed) {
  std::vector<int64_t> ids;
  for (int64_t id = 0; id < count; ++id)
    if (isOwned(comm, table, id))
      ids.push_back(id);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(seed));
  return ids;
}

/// Gives rows of all kinds to a session: what they hold depends on ids alone, where they are on
/// `seed`.
void fill(Session &session, uint32_t seed) {
  for (const char *name : {"movie", "genre"}) {
    TableView table = session.table(name);
    int64_t width = table.dim() * 2;
    const Communicator *comm = session.commOfRows(name[0] == 'm' ? 0 : 1);
    std::vector<int64_t> ids = ownedIds(comm, name, name[0] == 'm' ? kMovieRows : 1000, seed);
    auto count = static_cast<int64_t>(ids.size());
    std::vector<float> floats;
    std::vector<Sighting> sightings;
    for (int64_t id : ids) {
      std::vector<float> row = floatsOf(id, width);
      floats.insert(floats.end(), row.begin(), row.end());
      sightings.push_back({id + 5, id % 9 + 3});
    }
    TableRows rows = table.findOrInsert(ids.data(), count);
    rows.write(0, width, floats.data());
    if (!table.configuration().rules.any())
      continue;
    rows.writeSightings(sightings.data());
    std::vector<int64_t> waiting = ownedIds(comm, name, 2000, seed);
    std::erase_if(waiting, [&](int64_t id) { return id < 1000; });
    sightings.clear();
    for (int64_t id : waiting)
      sightings.push_back({id * 2, 1 + id % 2});
    table.waiting()
        ->findOrInsert(waiting.data(), static_cast<int64_t>(waiting.size()))
        .writeSightings(sightings.data());
  }
  session.parameter(0).value[0] = 0.125F;
  session.setStepsDone(7);
}

/// With "movie" on all ranks, or its rows divided.
SessionOptions placedOn(Communicator *comm, bool isReplicated) {
  SessionOptions options = optionsOf(comm);
  if (isReplicated)
    options.replicate = {"movie"};
  return options;
}

/// Saves on so many ranks what a session of the same content has; 0: alone, without a communicator.
void saveOn(int32_t ranks, const std::string &folder, bool isReplicated = false) {
  TwoTables two;
  auto save = [&](Communicator *comm) {
    Session session(two.model, placedOn(comm, isReplicated));
    // Rows of a replica lie in another order on every rank.
    fill(session, 10 + ranks + (isReplicated && comm ? comm->getRank() : 0));
    saveCheckpoint(folder, session, stateOf(session));
  };
  if (ranks == 0)
    save(nullptr);
  else
    runThreadRanks(ranks, [&](Communicator &comm) { save(&comm); });
}

/// Bytes of the only generation, tensors and manifest.
std::string contents(const std::string &folder) {
  std::string tensors = readText(folder + "/step-7/model.safetensors");
  EXPECT_GT(tensors.size(), kMovieRows * 40U);
  return tensors + readText(folder + "/step-7/manifest.json");
}

TEST(CheckpointOfRanks, HasTheSameBytesOnAnyNumberOfThem) {
  TestFolder folder;
  saveOn(0, folder / "alone");
  std::string alone = contents(folder / "alone");
  for (int32_t ranks : {1, 2, 3, 4, 7}) {
    std::string name = folder / ("on" + std::to_string(ranks));
    saveOn(ranks, name);
    EXPECT_TRUE(contents(name) == alone) << ranks;
    EXPECT_EQ(filesIn(name), filesIn(folder / "alone")) << ranks;
    saveOn(ranks, name + "replicated", /*isReplicated=*/true);
    EXPECT_TRUE(contents(name + "replicated") == alone) << ranks;
  }
}

TEST(CheckpointOfRanks, RowsAreSortedBySliceAndId) {
  TestFolder folder;
  saveOn(3, folder / "saved");
  SafetensorsReader file(folder / "saved/step-7/model.safetensors");
  for (std::string tensor : {"movie.ids", "genre.ids", "genre.waiting.ids"}) {
    std::vector<int64_t> ids(file.tensor(tensor).shape[0]);
    EXPECT_GT(ids.size(), 300U);
    file.readIntegers(tensor, 0, static_cast<int64_t>(ids.size()), ids.data());
    uint64_t hash = hashTableName(tensor.substr(0, tensor.find('.')));
    auto placeOf = [&](int64_t id) { return std::pair(getSlice(hash, id), id); };
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(), [&](int64_t a, int64_t b) {
      return placeOf(a) < placeOf(b);
    })) << tensor;
  }
}

/// All that a rank has of a table: floats, then its sightings.
Rows rowsOf(const TableView &table) {
  Rows rows;
  std::vector<int64_t> ids = table.ids(0, table.size());
  int64_t width = table.dim() * (1 + table.states());
  bool hasRules = table.configuration().rules.any();
  for (int64_t id : ids) {
    std::vector<float> &row = rows[id];
    row.resize(width);
    TableRows found = table.find(&id, 1);
    found.read(0, width, row.data());
    Sighting sighting;
    if (hasRules)
      found.readSightings(&sighting);
    row.push_back(static_cast<float>(sighting.lastStep));
    row.push_back(static_cast<float>(sighting.steps));
  }
  return rows;
}

TEST(CheckpointOfRanks, IsLoadedOnAnyNumberOfThem) {
  TestFolder folder;
  saveOn(0, folder / "1");
  std::string alone = contents(folder / "1"), last = folder / "1";
  TwoTables two;
  Session all(two.model, optionsOf(nullptr));
  fill(all, 1);
  for (int32_t ranks : {4, 2, 3, 1}) {
    std::string next = folder / ("on" + std::to_string(ranks));
    bool isReplicated = ranks == 2 || ranks == 3;
    runThreadRanks(ranks, [&](Communicator &comm) {
      Session session(two.model, placedOn(&comm, isReplicated));
      TrainingState state = loadCheckpoint(last, session);
      EXPECT_EQ(session.parameter(0).value[0], 0.125F);
      for (const char *name : {"movie", "genre"}) {
        auto expect = [&](const TableView &got, const TableView &whole) {
          Rows rows = rowsOf(got), owned = rowsOf(whole);
          if (!isReplicated || name[0] == 'g')
            std::erase_if(owned, [&](const auto &row) { return !isOwned(&comm, name, row.first); });
          EXPECT_GT(owned.size(), 50U);
          EXPECT_TRUE(rows == owned) << name << " on rank " << comm.getRank() << " of " << ranks;
        };
        expect(session.table(name), all.table(name));
        if (name[0] == 'g')
          expect(*session.table(name).waiting(), *all.table(name).waiting());
      }
      saveCheckpoint(next, session, state);
    });
    EXPECT_TRUE(contents(next) == alone) << ranks;
    last = next;
  }
}

TEST(CheckpointOfRanks, EachReadsWhatItOwns) {
  TestFolder folder;
  TwoTables two;
  constexpr int64_t kMany = 1000000; // some 40 MB
  runThreadRanks(3, [&](Communicator &comm) {
    Session session(two.model, optionsOf(&comm));
    std::vector<int64_t> ids = ownedIds(&comm, "movie", kMany, 1);
    session.table("movie").findOrInsert(ids.data(), static_cast<int64_t>(ids.size()));
    session.setStepsDone(7);
    saveCheckpoint(folder.path, session, stateOf(session));
  });
  auto size =
      static_cast<int64_t>(std::filesystem::file_size(folder.path + "/step-7/model.safetensors"));
  auto load = [&](RestoreFor purpose) {
    std::vector<int64_t> bytes(4), rows(4);
    runThreadRanks(4, [&](Communicator &comm) {
      Session session(two.model, optionsOf(&comm));
      CheckpointReader reader(folder.path);
      reader.restore(session, purpose);
      bytes[comm.getRank()] = reader.tensors().bytesRead();
      rows[comm.getRank()] = session.table("movie").size();
    });
    EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t(0)), kMany);
    return bytes;
  };
  constexpr int64_t kBlock = TensorDigest::kBlockBytes;
  for (RestoreFor purpose : {RestoreFor::training, RestoreFor::inference})
    for (int64_t bytes : load(purpose)) // and blocks at the ends of its shares, and of the search
      EXPECT_LT(bytes, size / 4 + 12 * kBlock);
  // A file whose rows may be in any order is read whole, and gives the same.
  std::string path = folder.path + "/step-7/manifest.json", text = readText(path);
  nlohmann::json manifest = nlohmann::json::parse(text);
  manifest["version"] = 1;
  manifest["tensors"] = "step-7/model.safetensors";
  manifest["tensor_bytes"] = size;
  manifest.erase("checksum");
  writeText(folder.path + "/manifest.json", manifest.dump());
  for (int64_t bytes : load(RestoreFor::training))
    EXPECT_GE(bytes, size - kBlock);
}

TEST(CheckpointOfRanks, AnErrorOfOneIsThrownOnAll) {
  TestFolder folder;
  TwoTables two;
  std::mutex mutex;
  std::map<std::string, int> messages;
  runThreadRanks(3, [&](Communicator &comm) {
    Session session(two.model, optionsOf(&comm));
    fill(session, 1);
    saveCheckpoint(folder.path, session, stateOf(session));
    float nan = NAN;
    int64_t last = session.table("movie").size() - 1;
    TableRows row = session.table("movie").rows(last, 1);
    if (comm.getRank() == 1)
      row.write(1, 1, &nan);
    session.setStepsDone(8);
    std::string message =
        messageOf([&] { saveCheckpoint(folder.path, session, stateOf(session)); });
    {
      std::lock_guard lock(mutex);
      ++messages[message];
    }
    // The ranks go on, and the next save counts.
    if (comm.getRank() == 1)
      row.write(1, 1, floatsOf(0, 1).data());
    saveCheckpoint(folder.path, session, stateOf(session));
  });
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages.begin()->second, 3);
  EXPECT_THAT(messages.begin()->first,
              HasSubstr("the checkpoint of step 8 was not saved: rank 1: there is a NaN or an "
                        "infinity in tensor 'movie.values', row "));
  EXPECT_THAT(messages.begin()->first, HasSubstr("; the one of step 7 is whole"));
  EXPECT_EQ(readTrainingState(folder.path).step, 8U);
}

TEST(CheckpointOfRanks, DamageThatOneFindsIsThrownOnAll) {
  TestFolder folder;
  saveOn(2, folder / "saved");
  std::string path = folder / "saved/step-7/model.safetensors", text = readText(path);
  text[text.size() / 2] ^= 1;
  writeText(path, text);
  TwoTables two;
  std::atomic<int> told = 0;
  runThreadRanks(3, [&](Communicator &comm) {
    Session session(two.model, optionsOf(&comm));
    std::string message = messageOf([&] { loadCheckpoint(folder / "saved", session); });
    told += message.find("have another checksum than the manifest says") != std::string::npos;
    comm.barrier();
  });
  EXPECT_EQ(told, 3);
}

TEST(CheckpointOfRanks, IsARunsOwnFolder) {
  TestFolder folder;
  TwoTables two;
  CheckpointWriter other(folder.path, {});
  std::atomic<int> told = 0;
  runThreadRanks(2, [&](Communicator &comm) {
    std::string message = messageOf([&] { CheckpointWriter(folder.path, {.comm = &comm}); });
    told += message.find("is being trained into by process") != std::string::npos;
  });
  EXPECT_EQ(told, 2);
}

TEST(CheckpointOfRanks, KeepsTheNumberOfPortions) {
  TestFolder folder;
  Session session(tinyModel(), seeded());
  TrainingState state = stateOf(session);
  EXPECT_EQ(state.portions, 1);
  state.portions = 12;
  saveCheckpoint(folder.path, session, state);
  EXPECT_EQ(readTrainingState(folder.path).portions, 12);
  saveVersion1(folder / "old", session); // which knows none
  EXPECT_EQ(readTrainingState(folder / "old").portions, 1);
}

TEST(WarmStartOfRanks, EachTakesTheRowsThatItOwns) {
  TestFolder folder;
  saveOn(0, folder / "saved");
  TwoTables two;
  for (auto [ranks, isReplicated] : {std::pair(1, false), std::pair(3, false), std::pair(3, true)})
    runThreadRanks(ranks, [&, isReplicated = isReplicated](Communicator &comm) {
      Session session(two.model, placedOn(&comm, isReplicated));
      WarmStart result = warmStart({folder / "saved"}, session);
      EXPECT_EQ(result.filled.size(), 4U);
      TableView table = session.table("movie");
      std::vector<int64_t> ids = table.ids(0, table.size()),
                           owned = ownedIds(isReplicated ? nullptr : &comm, "movie", kMovieRows, 1);
      std::sort(ids.begin(), ids.end());
      std::sort(owned.begin(), owned.end());
      EXPECT_TRUE(ids == owned);
      for (int64_t row : {int64_t(0), table.size() - 1}) {
        std::vector<float> value(kTinyDim);
        table.rows(row, 1).read(0, kTinyDim, value.data());
        EXPECT_EQ(value, floatsOf(table.id(row), kTinyDim));
      }
    });
}

} // namespace
} // namespace genrec::rt::test
