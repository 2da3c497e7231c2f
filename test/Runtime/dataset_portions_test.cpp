//===- dataset_portions_test.cpp - Batches cut into portions of ranks -----===//

#include "ReadingModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace genrec::rt::test {
namespace {

/// What a step sees of the rows of a batch.
struct BatchRows {
  std::vector<int64_t> positions, users, movies, lengths;

  bool operator==(const BatchRows &) const = default;
  void add(const Batch &batch) {
    auto append = [](std::vector<int64_t> &to, const std::vector<int64_t> &from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    positions.insert(positions.end(), batch.positions.data(), batch.positions.data() + batch.rows);
    append(users, valuesOf<int64_t>(batch, 0, batch.rows));
    append(movies, valuesOf<int64_t>(batch, 1, batch.domains[1].count));
    std::vector<int64_t> offsets = offsetsOf(batch, 1, batch.rows);
    for (int64_t row = 0; row < batch.rows; ++row)
      lengths.push_back(offsets[row + 1] - offsets[row]);
  }
};

/// The batches of an epoch, each of all of its portions that are read.
std::vector<BatchRows> readEpoch(Dataset &data, const ReadingModel &model,
                                 const EpochOptions &options) {
  std::vector<BatchRows> batches;
  Batch batch(model.description);
  auto source = data.epoch(options);
  for (int64_t count = 0; batch.reset(), source->next(batch); ++count) {
    if (count % options.own.count == 0)
      batches.emplace_back();
    batches.back().add(batch);
  }
  return batches;
}

/// The same from ranks, each with a dataset of its own.
std::vector<BatchRows> readOnRanks(const std::string &files, const DatasetOptions &reading,
                                   const ReadingModel &model, EpochOptions options, int32_t ranks) {
  std::vector<std::unique_ptr<Dataset>> data;
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    data.push_back(
        std::make_unique<Dataset>(model.description, std::vector{&model.program}, files, reading));
    options.own = getPortions(options.portions, rank, ranks);
    sources.push_back(data.back()->epoch(options));
  }
  std::vector<BatchRows> batches;
  Batch batch(model.description);
  for (bool isOpen = true; isOpen;) {
    BatchRows rows;
    for (int32_t rank = 0; rank < ranks; ++rank)
      for (int32_t i = 0; i < getPortions(options.portions, rank, ranks).count; ++i) {
        batch.reset();
        bool given = sources[rank]->next(batch);
        EXPECT_TRUE(rank + i == 0 || given == isOpen) << "sources end after different batches";
        isOpen = given;
        if (given)
          rows.add(batch);
      }
    if (isOpen)
      batches.push_back(std::move(rows));
  }
  return batches;
}

TEST(DatasetPortions, OfAllRanksAreTheBatchesOfOne) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    auto draw = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    TestFolder folder;
    ReadingModel model = userModel();
    int64_t count = draw(1, 150);
    std::string files = writeUsers(folder, count, draw(1, 80), draw(1, 30));
    DatasetOptions reading;
    reading.memoryBudget = draw(0, 1) ? int64_t(1) << 30 : draw(500, 4000);
    EpochOptions options;
    options.batch = draw(1, 40);
    options.shuffle = draw(0, 1);
    options.seed = seed;
    options.epoch = draw(1, 3);
    options.windowRows = draw(0, 1) * draw(1, 160);
    options.skipBatches = draw(0, 1) * draw(0, 4);
    Dataset one(model.description, {&model.program}, files, reading);
    std::vector<BatchRows> expected = readEpoch(one, model, options);
    for (int32_t ranks = 1; ranks <= 4; ++ranks) {
      options.portions = static_cast<int32_t>(draw(ranks, 13));
      EXPECT_EQ(readOnRanks(files, reading, model, options, ranks), expected)
          << "seed " << seed << ", " << ranks << " ranks, " << options.portions << " portions";
    }
  }
}

TEST(DatasetPortions, CutTheLastBatchByItsOwnRows) {
  TestFolder folder;
  ReadingModel model = userModel();
  Dataset data(model.description, {&model.program}, writeUsers(folder, 13, 13, 13), {});
  EpochOptions options;
  options.batch = 8;
  options.portions = 4;
  options.own = {1, 2};
  std::vector<std::vector<int64_t>> portions;
  Batch batch(model.description);
  for (auto source = data.epoch(options); batch.reset(), source->next(batch);)
    portions.push_back(valuesOf<int64_t>(batch, 0, batch.rows));
  EXPECT_EQ(portions, (std::vector<std::vector<int64_t>>{{2, 3}, {4, 5}, {9}, {10}}));
  options.batch = 2; // fewer rows than portions
  options.skipBatches = 6;
  options.own = {0, 4};
  portions.clear();
  for (auto source = data.epoch(options); batch.reset(), source->next(batch);)
    portions.push_back(valuesOf<int64_t>(batch, 0, batch.rows));
  EXPECT_EQ(portions, (std::vector<std::vector<int64_t>>{{}, {}, {}, {12}}));
}

TEST(DatasetPortions, NeedOnlySomeRowGroups) {
  TestFolder folder;
  ReadingModel model = userModel();
  std::string files = writeUsers(folder, 240, 120, 10);
  EpochOptions options;
  options.batch = 12;
  options.portions = 4;
  options.own = {2, 1};
  auto decoded = [&](int64_t epochs, int64_t budget) {
    DatasetOptions reading;
    reading.memoryBudget = budget;
    Dataset data(model.description, {&model.program}, files, reading);
    for (options.epoch = 1; options.epoch <= static_cast<uint64_t>(epochs); ++options.epoch)
      readEpoch(data, model, options);
    DecodedData all = data.decoded();
    EXPECT_GE(all.rows, all.rowGroups * 10);
    EXPECT_GE(all.bytes, all.rows * 8);
    return all.rowGroups;
  };
  options.shuffle = true;
  EXPECT_LE(decoded(1, 1), 6 + 2);
  EXPECT_GE(decoded(3, 1), 18);
  EXPECT_LE(decoded(50, int64_t(1) << 30), 24); // kept
  TestFolder one;                               // the line begins and ends within it
  files = writeUsers(one, 240, 240, 240);
  options.own = {0, 4};
  EXPECT_EQ(decoded(1, 1), 1);
  options.own = {2, 1};
  files = writeUsers(folder, 240, 120, 10);
  // In the order of the files every row group has rows of this portion, unless batches are as
  // large.
  options.shuffle = false;
  EXPECT_EQ(decoded(1, 1), 24);
  options.batch = 240;
  EXPECT_EQ(decoded(1, 1), 6);
  options.skipBatches = 1;
  EXPECT_EQ(decoded(1, 1), 0);
}

TEST(DatasetPortions, ThatAreNotThereAreRefused) {
  TestFolder folder;
  ReadingModel model = userModel();
  Dataset data(model.description, {&model.program}, writeUsers(folder, 3, 3, 3), {});
  EpochOptions options;
  options.portions = 2;
  options.own = {1, 2};
  EXPECT_THAT(errorOf([&] { data.epoch(options); }).text, testing::HasSubstr("not among 2"));
}

} // namespace
} // namespace genrec::rt::test
