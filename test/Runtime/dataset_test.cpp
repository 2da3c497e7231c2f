//===- dataset_test.cpp - Parquet files as batches ------------------------===//

#include "ReadingModel.h"
#include "TinyModel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace genrec::rt::test {
namespace {

//===-- what is read ------------------------------------------------------===//

TEST(Dataset, NestedListsBecomeDomains) {
  TestFolder folder;
  auto tag = arrow::struct_({field("id", arrow::int64())});
  auto event = arrow::struct_({field("movie", arrow::int64()), field("tags", arrow::list(tag)),
                               field("unused", arrow::utf8())});
  auto schema = arrow::schema({field("user", arrow::int64()), field("history", arrow::list(event)),
                               field("interest", arrow::list(arrow::int32()))});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([
      [7, [{"movie": 1, "tags": [{"id": 10}, {"id": 11}]}, {"movie": 2, "tags": []}], [5, 6]],
      [8, [], []],
      [9, [{"movie": 3, "tags": [{"id": 12}]}], null]])"));
  ReadingModel model({root("user"), child("history", 0, "history"), child("tag", 1, "history.tags"),
                      child("interest", 0, "interest")},
                     {feature("user", 0, GENREC_I64), feature("history.movie", 1, GENREC_I64),
                      feature("history.tags.id", 2, GENREC_I64),
                      feature("interest", 3, GENREC_I32)});
  Batch batch = readAll(model, folder / "a.parquet");
  EXPECT_EQ(batch.rows, 3);
  EXPECT_EQ(valuesOf<int64_t>(batch, 0, 3), (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(offsetsOf(batch, 1, 3), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 1, 3), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(offsetsOf(batch, 2, 3), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 2, 3), (std::vector<int64_t>{10, 11, 12}));
  EXPECT_EQ(offsetsOf(batch, 3, 3), (std::vector<int64_t>{0, 2, 2, 2})); // null list: empty
  EXPECT_EQ(valuesOf<int32_t>(batch, 3, 2), (std::vector<int32_t>{5, 6}));
}

TEST(Dataset, ADomainWithoutFeaturesHasItsOffsets) {
  TestFolder folder;
  auto schema = arrow::schema(
      {field("user", arrow::int64()), field("events", arrow::list(arrow::list(arrow::utf8())))});
  writeParquet(folder / "a.parquet",
               *tableOf(schema, R"([[1, [["a"], [], ["b", "c"]]], [2, []]])"));
  ReadingModel model({root("user"), child("event", 0, "events"), child("word", 1, "events")}, {});
  Batch batch = readAll(model, folder / "a.parquet");
  EXPECT_EQ(offsetsOf(batch, 1, 2), (std::vector<int64_t>{0, 3, 3}));
  EXPECT_EQ(offsetsOf(batch, 2, 3), (std::vector<int64_t>{0, 1, 1, 3}));
}

TEST(Dataset, ParallelListsShareADomain) {
  TestFolder folder;
  auto schema = arrow::schema({field("movies", arrow::list(arrow::int64())),
                               field("ratings", arrow::list(arrow::float32()))});
  writeParquet(folder / "a.parquet",
               *tableOf(schema, "[[[1, 2], [0.5, 1]], [[], []], [[3], [4]]]"));
  ReadingModel model({root("user"), child("history", 0, "movies")},
                     {feature("movies", 1, GENREC_I64), feature("ratings", 1, GENREC_F32)});
  Batch batch = readAll(model, folder / "a.parquet");
  EXPECT_EQ(offsetsOf(batch, 1, 3), (std::vector<int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(valuesOf<float>(batch, 1, 3), (std::vector<float>{0.5, 1, 4}));

  writeParquet(folder / "b.parquet",
               *tableOf(schema, "[[[1, 2], [0.5, 1]], [[1], [1]], [[3], [4, 5]]]"));
  EXPECT_EQ(errorOf([&] { readAll(model, folder / "b.parquet"); }).text,
            folder / "b.parquet" + ", row group 0, row 2: list columns 'movies' and 'ratings' of "
                                   "domain 'history' have 1 and 2 entries");
}

TEST(Dataset, TypesAreWidenedWithoutLoss) {
  TestFolder folder;
  auto schema = arrow::schema({field("small", arrow::int16()), field("day", arrow::date32()),
                               field("time", arrow::timestamp(arrow::TimeUnit::MILLI, "UTC")),
                               field("flag", arrow::boolean()), field("real", arrow::float32()),
                               field("word", arrow::dictionary(arrow::int32(), arrow::utf8())),
                               field("text", arrow::utf8())});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([[-3, 2, 1999, true, 0.5, "x", "abc"],
                                    [300, -1, -1, false, 2.0, "yy", ""]])"));
  ReadingModel model({root("user")},
                     {feature("small", 0, GENREC_I64), feature("day", 0, GENREC_I64),
                      feature("time", 0, GENREC_I64), feature("flag", 0, GENREC_I1),
                      feature("real", 0, GENREC_F64), feature("word", 0, GENREC_STRING),
                      feature("text", 0, GENREC_STRING), feature("small", 0, GENREC_F32),
                      feature("real", 0, GENREC_BF16)});
  Batch batch = readAll(model, folder / "a.parquet");
  EXPECT_EQ(valuesOf<int64_t>(batch, 0, 2), (std::vector<int64_t>{-3, 300}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 1, 2), (std::vector<int64_t>{172800, -86400}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 2, 2), (std::vector<int64_t>{1, -1})); // rounded down
  EXPECT_EQ(valuesOf<uint8_t>(batch, 3, 2), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(valuesOf<double>(batch, 4, 2), (std::vector<double>{0.5, 2}));
  auto word = valuesOf<genrec_string>(batch, 5, 2), text = valuesOf<genrec_string>(batch, 6, 2);
  EXPECT_EQ(std::string(word[1].data, static_cast<size_t>(word[1].size)), "yy");
  EXPECT_EQ(std::string(text[0].data, static_cast<size_t>(text[0].size)), "abc");
  EXPECT_EQ(text[1].size, 0);
  EXPECT_EQ(valuesOf<float>(batch, 7, 2), (std::vector<float>{-3, 300}));
  EXPECT_EQ(valuesOf<uint16_t>(batch, 8, 2), (std::vector<uint16_t>{0x3F00, 0x4000}));
}

TEST(Dataset, NullsOfNullableColumnsAreTold) {
  TestFolder folder;
  auto event = arrow::struct_({field("movie", arrow::int64())});
  auto schema = arrow::schema({field("age", arrow::int64()), field("history", arrow::list(event))});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([
      [30, [{"movie": 1}, null, {"movie": null}]], [null, null]])"));
  ReadingModel model({root("user"), child("history", 0, "history")},
                     {feature("age", 0, GENREC_I64), feature("history.movie", 1, GENREC_I64)});
  model.features[0].nullable = model.features[1].nullable = 1;
  Batch batch = readAll(model, folder / "a.parquet");
  ASSERT_TRUE(batch.columns[0].hasNulls);
  EXPECT_EQ(batch.columns[0].valid[0], 1);
  EXPECT_EQ(batch.columns[0].valid[1], 0);
  EXPECT_EQ(valuesOf<int64_t>(batch, 1, 3), (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(batch.columns[1].valid[1], 0);
  EXPECT_EQ(batch.columns[1].valid[2], 0);
  EXPECT_EQ(batch.domains[1].count, 3);
}

TEST(Dataset, WhereOnlyNullsMatterAnyTypeIsRead) {
  TestFolder folder;
  auto schema = arrow::schema({field("price", arrow::float64()), field("name", arrow::utf8())});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([[0.5, "a"], [null, "b"], [2, null]])"));
  ReadingModel model({root("user")},
                     {feature("price", 0, GENREC_VALID), feature("name", 0, GENREC_VALID)});
  model.features[0].nullable = model.features[1].nullable = 1;
  Batch batch = readAll(model, folder / "a.parquet");
  for (int32_t column : {0, 1}) {
    ASSERT_TRUE(batch.columns[column].hasNulls);
    for (int64_t row = 0; row < 3; ++row)
      EXPECT_EQ(batch.columns[column].valid[row], row != 1 + column);
  }
}

TEST(Dataset, PaddingIsDroppedWithWhatLiesBelow) {
  TestFolder folder;
  auto event = arrow::struct_({field("movie", arrow::int64()), field("word", arrow::utf8()),
                               field("tags", arrow::list(arrow::int64()))});
  auto schema =
      arrow::schema({field("user", arrow::int64()), field("history", arrow::list(event))});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([
      [1, [{"movie": 0, "word": "p", "tags": [9]}, {"movie": 4, "word": "four", "tags": [1, 0, 2]}]],
      [2, [{"movie": 0, "word": "p", "tags": []}]],
      [3, [{"movie": 5, "word": "five", "tags": []}, {"movie": 0, "word": "p", "tags": [3]}]]])"));
  ReadingModel model(
      {root("user"), child("history", 0, "history"), child("tag", 1, "history.tags")},
      {feature("history.movie", 1, GENREC_I64), feature("history.word", 1, GENREC_STRING),
       feature("history.tags", 2, GENREC_I64)});
  model.features[0].has_padding_id = 1;
  Batch batch = readAll(model, folder / "a.parquet");
  EXPECT_EQ(offsetsOf(batch, 1, 3), (std::vector<int64_t>{0, 1, 1, 2}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 0, 2), (std::vector<int64_t>{4, 5}));
  auto words = valuesOf<genrec_string>(batch, 1, 2);
  EXPECT_EQ(std::string(words[0].data, static_cast<size_t>(words[0].size)), "four");
  EXPECT_EQ(offsetsOf(batch, 2, 2), (std::vector<int64_t>{0, 3, 3}));
  EXPECT_EQ(valuesOf<int64_t>(batch, 2, 3), (std::vector<int64_t>{1, 0, 2}));
}

TEST(Dataset, ListsNotOldestFirstAreCounted) {
  TestFolder folder;
  auto event = arrow::struct_({field("time", arrow::timestamp(arrow::TimeUnit::SECOND, "UTC"))});
  auto schema = arrow::schema({field("history", arrow::list(event))});
  writeParquet(folder / "a.parquet", *tableOf(schema, R"([[[{"time": 1}, {"time": 1}, {"time": 3}]],
                                    [[{"time": 2}, {"time": 1}]], [[{"time": 5}, {"time": 4}]]])"));
  ReadingModel model({root("user"), child("history", 0, "history")},
                     {feature("history.time", 1, GENREC_I64)});
  Dataset data(model.description, {&model.program}, folder / "a.parquet", {});
  Batch batch(model.description);
  data.epoch({})->next(batch);
  ASSERT_EQ(data.warnings().size(), 1u);
  EXPECT_EQ(
      data.warnings()[0],
      "column 'history.time': 2 lists are not oldest first (one of them: " + folder / "a.parquet" +
          ", row group 0, row 1); negative time differences count as 0");
}

//===-- batches and their order -------------------------------------------===//

/// The values of root feature 0 of all batches of an epoch, batch by batch.
std::vector<std::vector<int64_t>> batchesOf(Dataset &data, const genrec_model_desc &model,
                                            const EpochOptions &options) {
  std::vector<std::vector<int64_t>> batches;
  Batch batch(model);
  auto source = data.epoch(options);
  while (batch.reset(), source->next(batch)) {
    batches.push_back(valuesOf<int64_t>(batch, 0, batch.rows));
    for (int64_t row = 0; row < batch.rows; ++row)
      EXPECT_EQ(batch.positions[row], batches.back()[row]); // user u is row u of the dataset
  }
  return batches;
}

std::vector<int64_t> flat(const std::vector<std::vector<int64_t>> &batches) {
  std::vector<int64_t> all;
  for (const auto &batch : batches)
    all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(Dataset, WithoutShufflingRowsComeInFileOrder) {
  TestFolder folder;
  ReadingModel model = userModel();
  Dataset data(model.description, {&model.program}, writeUsers(folder, 100, 40, 15), {});
  EXPECT_EQ(data.rows(), 100);
  EpochOptions options;
  options.batch = 32;
  auto batches = batchesOf(data, model.description, options);
  ASSERT_EQ(batches.size(), 4u); // the partial last batch is kept
  EXPECT_EQ(batches[3].size(), 4u);
  std::vector<int64_t> rows = flat(batches);
  for (int64_t row = 0; row < 100; ++row)
    EXPECT_EQ(rows[row], row);
}

TEST(Dataset, ShufflingIsAPermutationBySeedAndEpoch) {
  TestFolder folder;
  ReadingModel model = userModel();
  std::string files = writeUsers(folder, 100, 40, 15);
  auto orderOf = [&](uint64_t seed, uint64_t epoch, int32_t threads, int64_t batch) {
    DatasetOptions reading;
    reading.decodeThreads = threads;
    Dataset data(model.description, {&model.program}, files, reading);
    EpochOptions options;
    options.batch = batch;
    options.shuffle = true;
    options.seed = seed;
    options.epoch = epoch;
    return flat(batchesOf(data, model.description, options));
  };
  std::vector<int64_t> order = orderOf(1, 1, 1, 32);
  EXPECT_EQ(order, orderOf(1, 1, 4, 32));
  EXPECT_NE(order, orderOf(2, 1, 1, 32));
  EXPECT_NE(order, orderOf(1, 2, 1, 32));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 100u);
}

/// Groups without nulls, with some, and with nothing else; batches of rows of one group, and of
/// several.
TEST(Dataset, NullsTravelWithTheirRows) {
  TestFolder folder;
  constexpr int64_t kRows = 60, kPerGroup = 10;
  auto isNull = [](int64_t row) { return row / kPerGroup % 3 == 2 || (row >= 30 && row % 3 == 0); };
  std::string json = "[";
  for (int64_t row = 0; row < kRows; ++row) {
    const std::string own = std::to_string(row);
    json += (row ? ",[" : "[") + own + "," + (isNull(row) ? "null" : own) + "," + own + ".5]";
  }
  auto schema = arrow::schema({field("user", arrow::int64()), field("age", arrow::int32()),
                               field("price", arrow::float64())});
  writeParquet(folder / "a.parquet", *tableOf(schema, json + "]"), kPerGroup);
  ReadingModel model({root("user")}, {feature("user", 0, GENREC_I64), feature("age", 0, GENREC_I32),
                                      feature("price", 0, GENREC_F64)});
  model.features[1].nullable = 1;
  Dataset data(model.description, {&model.program}, folder / "a.parquet", {});
  for (bool shuffles : {false, true})
    for (int64_t rows : {1, 7, 60}) {
      EpochOptions options;
      options.batch = rows;
      options.shuffle = shuffles;
      Batch batch(model.description);
      auto source = data.epoch(options);
      std::set<int64_t> seen;
      while (batch.reset(), source->next(batch))
        for (int64_t i = 0; i < batch.rows; ++i) {
          const auto user = valuesOf<int64_t>(batch, 0, batch.rows)[i];
          seen.insert(user);
          ASSERT_EQ(batch.columns[1].hasNulls && !batch.columns[1].valid[i], isNull(user)) << user;
          ASSERT_EQ(valuesOf<int32_t>(batch, 1, batch.rows)[i], isNull(user) ? 0 : user);
          ASSERT_EQ(valuesOf<double>(batch, 2, batch.rows)[i], static_cast<double>(user) + 0.5);
        }
      EXPECT_EQ(seen.size(), static_cast<size_t>(kRows));
    }
}

TEST(Dataset, ListsTravelWithTheirRows) {
  TestFolder folder;
  ReadingModel model = userModel();
  Dataset data(model.description, {&model.program}, writeUsers(folder, 50, 20, 7), {});
  EpochOptions options;
  options.batch = 13;
  options.shuffle = true;
  Batch batch(model.description);
  auto source = data.epoch(options);
  int64_t seen = 0;
  while (batch.reset(), source->next(batch)) {
    auto users = valuesOf<int64_t>(batch, 0, batch.rows);
    auto movies = valuesOf<int64_t>(batch, 1, batch.domains[1].count);
    for (int64_t row = 0; row < batch.rows; ++row, ++seen) {
      int64_t at = batch.domains[1].offsets[row];
      EXPECT_EQ(batch.domains[1].offsets[row + 1], at + 2);
      EXPECT_EQ(movies[at], users[row] * 2);
      EXPECT_EQ(movies[at + 1], users[row] * 2 + 1);
    }
  }
  EXPECT_EQ(seen, 50);
}

TEST(Dataset, SkippedRowsAreTheFirstOfTheOrder) {
  TestFolder folder;
  ReadingModel model = userModel();
  std::string files = writeUsers(folder, 100, 40, 15);
  for (int64_t budget : {int64_t(1) << 30, int64_t(4000)}) // in memory, and windowed
    for (bool shuffle : {true, false}) {
      DatasetOptions reading;
      reading.memoryBudget = budget;
      Dataset data(model.description, {&model.program}, files, reading);
      EpochOptions options;
      options.batch = 10;
      options.shuffle = shuffle;
      std::vector<int64_t> all = flat(batchesOf(data, model.description, options));
      EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 100u);
      for (int64_t skip : {10, 60, 90, 100}) {
        options.skipBatches = skip / options.batch;
        EXPECT_EQ(flat(batchesOf(data, model.description, options)),
                  std::vector<int64_t>(all.begin() + skip, all.end()));
      }
    }
}

TEST(Dataset, TheOrderDoesNotDependOnTheMemory) {
  TestFolder folder;
  ReadingModel model = userModel();
  std::string files = writeUsers(folder, 120, 60, 10);
  auto orderOf = [&](int64_t budget, int64_t window) {
    DatasetOptions reading;
    reading.memoryBudget = budget;
    reading.decodeThreads = 3;
    Dataset data(model.description, {&model.program}, files, reading);
    EXPECT_EQ(data.inMemory(), budget > 10000);
    EXPECT_EQ(data.defaultWindow(), 120);
    EpochOptions options;
    options.shuffle = true;
    options.batch = 16;
    options.windowRows = window;
    std::vector<int64_t> order = flat(batchesOf(data, model.description, options));
    EXPECT_EQ(order, flat(batchesOf(data, model.description, options)));
    EXPECT_EQ(std::set<int64_t>(order.begin(), order.end()).size(), 120u);
    EXPECT_EQ(data.heldBytes() > 0, data.inMemory()); // or nothing is kept between epochs
    return order;
  };
  for (int64_t window : {0, 1, 40, 1000})
    EXPECT_EQ(orderOf(int64_t(1) << 30, window), orderOf(1, window)) << window;
  EXPECT_EQ(orderOf(1, 0), orderOf(1, 120));
  EXPECT_NE(orderOf(1, 0), orderOf(1, 40));
}

TEST(Dataset, EmptyFilesAreSkipped) {
  TestFolder folder;
  writeParquet(folder / "a.parquet", *tableOf(tinySchema(), "[]"));
  writeParquet(folder / "b.parquet", *tableOf(tinySchema(), "[[5, 0, 0, []]]"));
  ReadingModel model = userModel();
  Batch batch = readAll(model, folder.path);
  EXPECT_EQ(batch.rows, 1);
  EXPECT_EQ(batch.domains[1].count, 0);
}

//===-- lists of files ----------------------------------------------------===//

TEST(Dataset, FoldersPatternsAndListsAreExpanded) {
  TestFolder folder;
  std::filesystem::create_directories(folder / "day=1/_hidden");
  std::filesystem::create_directories(folder / "day=2");
  for (const char *name : {"day=2/b.parquet", "day=1/c.parquet", "day=1/a.parquet",
                           "day=1/_hidden/x.parquet", "day=1/notes.txt", "day=1/.tmp.parquet"})
    std::ofstream(folder / name) << "";
  std::vector<std::string> expected = {folder / "day=1/a.parquet", folder / "day=1/c.parquet",
                                       folder / "day=2/b.parquet"};
  EXPECT_EQ(listFiles(folder.path), expected);
  EXPECT_EQ(listFiles(folder / "day=*"), expected);
  EXPECT_EQ(listFiles(folder / "**/*.parquet"), expected);
  EXPECT_EQ(listFiles(folder / "**/day=1/**/a.parquet"), (std::vector<std::string>{expected[0]}));
  EXPECT_EQ(listFiles(folder / "**"), expected);
  EXPECT_EQ(listFiles(folder / "day=2/b.parquet" + "," + folder / "day=1/*.parquet"),
            (std::vector<std::string>{expected[2], expected[0], expected[1]}));
  // A path with a comma is taken as it stands; entries are taken one by one.
  std::filesystem::create_directories(folder / "a,b");
  for (const char *name : {"a,b/c,d.parquet", "a,b/e.parquet"})
    std::ofstream(folder / name) << "";
  std::vector<std::string> commas = {folder / "a,b/c,d.parquet", folder / "a,b/e.parquet"};
  EXPECT_EQ(listFiles(folder / "a,b"), commas);
  EXPECT_EQ(listFiles(folder / "a,b/*,*.parquet"), (std::vector<std::string>{commas[0]}));
  EXPECT_EQ(listFiles(commas), commas);
  EXPECT_EQ(listFiles(std::vector<std::string>{expected[0] + "," + expected[1], commas[0]}),
            (std::vector<std::string>{expected[0], expected[1], commas[0]}));
  EXPECT_EQ(errorOf([&] { listFiles(folder / "none"); }).text,
            "there is no file or folder '" + folder / "none" + "'");
  EXPECT_EQ(errorOf([&] { listFiles(folder / "x*"); }).text,
            "no file matches '" + folder / "x*" + "'");
  EXPECT_EQ(errorOf([&] { listFiles("s3://bucket/a"); }).text,
            "'s3://bucket/a' is not a local file");
}

} // namespace
} // namespace genrec::rt::test
