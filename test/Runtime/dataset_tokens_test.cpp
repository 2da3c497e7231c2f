//===- dataset_tokens_test.cpp - Batches of about equal tokens ------------===//

#include "ReadingModel.h"
#include "genrec_rt/comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

namespace genrec::rt::test {
namespace {

/// Users 0, 1, … with lists so long; -1: a null list. Movie 0 is padding.
std::string writeLists(const TestFolder &folder, const std::vector<int64_t> &lengths,
                       int64_t perGroup, const std::string &name = "a.parquet",
                       bool padded = false) {
  std::string json;
  for (size_t u = 0; u < lengths.size(); ++u) {
    json += (u == 0 ? "[" : ",[") + std::to_string(u) + ",0,0,";
    std::string list;
    for (int64_t i = 0; i < lengths[u]; ++i)
      list +=
          (i == 0 ? "" : ",") + std::string("{\"movie\":") + (padded && i % 2 ? "0" : "1") + "}";
    json += lengths[u] < 0 ? "null]" : "[" + list + "]]";
  }
  writeParquet(folder / name, *tableOf(tinySchema(), "[" + json + "]"), perGroup);
  return folder.path;
}

struct Portion {
  std::vector<int64_t> users;
  int64_t tokens = 0;

  bool operator==(const Portion &) const = default;
};

/// The portions of all batches, read by `ranks` threads with a dataset each.
std::vector<std::vector<Portion>> readOnRanks(const ReadingModel &model, const std::string &files,
                                              EpochOptions options, int32_t ranks,
                                              int64_t budget = int64_t(1) << 30) {
  std::vector<std::vector<Portion>> batches;
  std::mutex mutex;
  runThreadRanks(ranks, [&](Communicator &comm) {
    EpochOptions mine = options;
    mine.own = getPortions(options.portions, comm.getRank(), ranks);
    DatasetOptions reading;
    reading.memoryBudget = budget;
    reading.comm = &comm;
    Dataset data(model.description, {&model.program}, files, reading);
    mine.tokenDomain = data.tokenDomain("history");
    data.countTokens(mine);
    {
      std::lock_guard<std::mutex> lock(mutex);
      batches.resize(data.batches(mine), std::vector<Portion>(options.portions));
    }
    auto source = data.epoch(mine);
    Batch batch(model.description);
    for (int64_t at = 0; batch.reset(), source->next(batch); ++at) {
      std::lock_guard<std::mutex> lock(mutex);
      Portion &portion = batches.at(at / mine.own.count)[mine.own.first + at % mine.own.count];
      portion.users = valuesOf<int64_t>(batch, 0, batch.rows);
      std::vector<int64_t> offsets = offsetsOf(batch, 1, batch.rows);
      portion.tokens = offsets.back();
    }
  });
  return batches;
}

std::vector<int64_t> usersOf(const std::vector<std::vector<Portion>> &batches) {
  std::vector<int64_t> users;
  for (const auto &batch : batches)
    for (const Portion &portion : batch)
      users.insert(users.end(), portion.users.begin(), portion.users.end());
  return users;
}

void expectAll(const std::vector<std::vector<Portion>> &batches, int64_t count, bool inOrder) {
  std::vector<int64_t> users = usersOf(batches);
  if (!inOrder)
    std::sort(users.begin(), users.end());
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), int64_t(0));
  EXPECT_EQ(users, all);
}

TEST(DatasetTokens, AreTheSameOnAnyRanks) {
  std::vector<int64_t> lengths;
  for (int64_t u = 0; u < 200; ++u)
    lengths.push_back(u % 11 == 0 ? -1 : u % 7 == 0 ? 0 : (u * u) % 37);
  for (int64_t perGroup : {200, 13, 1}) {
    TestFolder folder;
    std::string files = writeLists(folder, lengths, perGroup);
    ReadingModel model = userModel();
    for (bool shuffle : {false, true})
      for (int64_t window : {0, 60}) {
        EpochOptions options;
        options.batchTokens = 240;
        options.shuffle = shuffle;
        options.windowRows = window;
        options.portions = 4;
        auto alone = readOnRanks(model, files, options, 1);
        expectAll(alone, 200, !shuffle);
        for (const auto &batch : alone)
          for (const Portion &portion : batch)
            EXPECT_LE(portion.tokens, 60 + 2 * 36);
        for (int32_t ranks : {2, 3, 4})
          EXPECT_EQ(readOnRanks(model, files, options, ranks, ranks == 3 ? 1 : int64_t(1) << 30),
                    alone)
              << perGroup << " " << shuffle << " " << window << " " << ranks;
      }
  }
}

TEST(DatasetTokens, AGiantListIsAPortionOfItsOwn) {
  TestFolder folder;
  std::vector<int64_t> lengths(40, 5);
  lengths[17] = 3000;
  std::string files = writeLists(folder, lengths, 10);
  ReadingModel model = userModel();
  EpochOptions options;
  options.batchTokens = 40;
  options.portions = 2;
  auto batches = readOnRanks(model, files, options, 2);
  expectAll(batches, 40, true);
  EXPECT_LE(batches.size(), 7u); // it counts as the 20 tokens of a portion: no run of empty batches
  for (const auto &batch : batches) {
    EXPECT_GT(batch[0].users.size() + batch[1].users.size(), 0u);
    for (const Portion &portion : batch)
      if (portion.tokens >= 3000)
        EXPECT_LE(portion.users.size(), 3u);
  }
}

TEST(DatasetTokens, RowsWithoutAnyCountAsOne) {
  TestFolder folder;
  std::string files = writeLists(folder, std::vector<int64_t>(30, -1), 7);
  ReadingModel model = userModel();
  EpochOptions options;
  options.batchTokens = 10;
  options.portions = 4;
  auto batches = readOnRanks(model, files, options, 3);
  EXPECT_EQ(batches.size(), 3u);
  expectAll(batches, 30, true);
  options.batchTokens = 1000; // fewer rows than portions would fill
  options.portions = 40;
  EXPECT_EQ(readOnRanks(model, files, options, 2).size(), 1u);
}

TEST(DatasetTokens, PaddingAndWhatIsCutAreNotCounted) {
  TestFolder folder;
  std::string files = writeLists(folder, std::vector<int64_t>(64, 20), 8, "a.parquet", true);
  ReadingModel model = userModel();
  EpochOptions options;
  options.batchTokens = 80;
  auto batchesOf = [&](const std::string &list) {
    Dataset data(model.description, {&model.program}, files, {});
    options.tokenDomain = data.tokenDomain(list);
    data.countTokens(options);
    return data.batches(options);
  };
  EXPECT_EQ(batchesOf("history"), 64 * 20 / 80);
  model.features[1].has_padding_id = 1; // every other entry
  EXPECT_EQ(batchesOf("history"), 64 * 10 / 80);
  genrec_domain_desc recent = child("recent", 0, "");
  recent.kind = GENREC_DOMAIN_DERIVED;
  recent.max_length = 5;
  recent.truncated = 1;
  std::vector<genrec_domain_desc> domains = {model.domains[0], model.domains[1], recent};
  model.description.domains = domains.data();
  model.description.domain_count = 3;
  EXPECT_EQ(batchesOf("recent"), 64 * 5 / 80);
  EXPECT_THAT(errorOf([&] { batchesOf("user"); }).text,
              testing::HasSubstr("it reads history, recent"));
}

TEST(DatasetTokens, MustBeCountedFirst) {
  TestFolder folder;
  ReadingModel model = userModel();
  Dataset data(model.description, {&model.program}, writeLists(folder, {1, 2}, 2), {});
  EpochOptions options;
  options.batchTokens = 3;
  options.tokenDomain = 1;
  EXPECT_THAT(errorOf([&] { data.epoch(options); }).text, testing::HasSubstr("not counted"));
}

} // namespace
} // namespace genrec::rt::test
