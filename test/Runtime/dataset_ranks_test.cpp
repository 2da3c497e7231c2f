//===- dataset_ranks_test.cpp - One rank reads footers --------------------===//

#include "../../runtime/data/dataset_files.h"
#include "ReadingModel.h"
#include "TinyModel.h"
#include "genrec_rt/comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <mutex>

namespace genrec::rt::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kFileRows = 40, kPerFile = 5;

/// The error of every rank, or "no error". Between opening and reading, rank 0 calls `change`.
std::vector<Message> readOnRanks(const FileSpec &files, int32_t ranks,
                                 const std::function<void()> &change = {},
                                 std::vector<int64_t> *users = nullptr) {
  ReadingModel model = userModel();
  std::vector<Message> messages(ranks);
  std::mutex mutex;
  runThreadRanks(ranks, [&](Communicator &comm) {
    messages[comm.getRank()] = errorOf([&] {
      DatasetOptions reading;
      reading.comm = &comm;
      Dataset data(model.description, {&model.program}, files, reading);
      if (change && isFirstRank(&comm))
        change();
      comm.barrier();
      EpochOptions epoch;
      epoch.batch = data.rows(); // so rank r reads the r-th part of the files
      epoch.portions = ranks;
      epoch.own = {comm.getRank(), 1};
      auto source = data.epoch(epoch);
      for (Batch batch(model.description); batch.reset(), source->next(batch);) {
        std::lock_guard<std::mutex> lock(mutex);
        if (std::vector<int64_t> own = valuesOf<int64_t>(batch, 0, batch.rows); users)
          users->insert(users->end(), own.begin(), own.end());
      }
    });
  });
  return messages;
}

std::vector<std::string> textsOf(const std::vector<Message> &messages) {
  std::vector<std::string> texts;
  for (const Message &message : messages)
    texts.push_back(message.text);
  return texts;
}

std::string file(const TestFolder &folder, int number) {
  return folder / ("part-00" + std::to_string(number) + ".parquet");
}

TEST(DatasetRanks, ReadEveryRowOnce) {
  for (int32_t ranks : {1, 2, 3, 4}) {
    TestFolder folder;
    writeUsers(folder, kFileRows, kPerFile, 3);
    std::vector<int64_t> users;
    EXPECT_THAT(textsOf(readOnRanks(folder.path, ranks, {}, &users)), testing::Each("no error"));
    std::sort(users.begin(), users.end());
    std::vector<int64_t> all(kFileRows);
    for (int64_t i = 0; i < kFileRows; ++i)
      all[i] = i;
    EXPECT_EQ(users, all);
  }
}

/// Files that rank 0 alone has rows of are gone before the others open any: they do not look for
/// them. Nor do they list the folder, in which there is another file then.
TEST(DatasetRanks, OpenOnlyFilesWithRowsOfTheirOwn) {
  TestFolder folder;
  writeUsers(folder, kFileRows, kPerFile, kPerFile);
  auto messages = readOnRanks(folder.path, 4, [&] {
    for (int number : {0, 1})
      fs::remove(file(folder, number));
    std::ofstream(folder / "part-new.parquet") << "x";
  });
  EXPECT_EQ(messages[0].text.find(file(folder, 0) + ": cannot be read: "), std::string::npos)
      << messages[0].text;
  EXPECT_THAT(messages[0].text, HasSubstr(file(folder, 0) + ", row group 0: cannot be read: "));
  for (int rank : {1, 2, 3})
    EXPECT_EQ(messages[rank].text, "no error");
}

TEST(DatasetRanks, WithoutRowsOpenNothing) {
  TestFolder folder;
  writeUsers(folder, 2, 2, 2);
  std::vector<int64_t> users;
  EXPECT_THAT(textsOf(readOnRanks(folder.path, 4, {}, &users)), testing::Each("no error"));
  EXPECT_EQ(users.size(), 2u);
}

//===-- errors of rank 0 are those of all -------------------------------------===//

TEST(DatasetRanks, WhatRankZeroCannotReadEndsAll) {
  TestFolder folder;
  writeUsers(folder, kFileRows, kPerFile, kPerFile);
  const std::string last = file(folder, 7);
  auto expectAll = [&](const std::string &text) {
    for (int32_t ranks : {2, 4}) {
      std::vector<Message> messages = readOnRanks(folder.path, ranks);
      EXPECT_THAT(messages[0].text, HasSubstr(text));
      for (int32_t rank = 1; rank < ranks; ++rank) {
        EXPECT_EQ(messages[rank].text, messages[0].text);
        EXPECT_EQ(messages[rank].help, messages[0].help);
      }
    }
  };
  fs::resize_file(last, fs::file_size(last) / 2);
  expectAll(last + ": cannot be read: ");
  writeParquet(last, *tableOf(arrow::schema({field("user", arrow::int64())}), "[[1]]"));
  expectAll(last + ": has no column 'history.movie', which ");
  fs::remove_all(folder.path);
  expectAll(folder.path);
}

//===-- files that are others when they are opened ----------------------------===//

class ReplacedBeforeOpening : public testing::Test {
protected:
  /// What rank 1, which has rows of the last files, says where `change` is made to one of them
  /// after rank 0 has opened it. Rank 0 reads none of them.
  std::string lastAfter(const std::function<void(const std::string &)> &change) {
    TestFolder folder;
    writeUsers(folder, kFileRows, kPerFile, kPerFile);
    const std::string last = file(folder, 7);
    auto messages = readOnRanks(folder.path, 2, [&] { change(last); });
    EXPECT_EQ(messages[0].text, "no error");
    std::string text = messages[1].text;
    if (auto at = text.find(folder.path); at != std::string::npos)
      text = text.substr(0, at) + text.substr(at + folder.path.size() + 1);
    return text;
  }
};

void writeLast(const std::string &path, int64_t add) {
  std::string json = "[";
  for (int64_t u = 35; u < kFileRows; ++u)
    json += (u == 35 ? "[" : ",[") + std::to_string(u + add) +
            ",0,0,[{\"movie\":" + std::to_string(2 * u) +
            "},{\"movie\":" + std::to_string(2 * u + 1) + "}]]";
  writeParquet(path, *tableOf(tinySchema(), json + "]"), kPerFile);
}

TEST_F(ReplacedBeforeOpening, InPlace) {
  EXPECT_EQ(lastAfter([](const std::string &path) {
              std::ofstream(path, std::ios::app) << "PAR1";
            }).find("part-007.parquet: "),
            0u);
  EXPECT_EQ(lastAfter([](const std::string &path) {
              std::fstream(path, std::ios::in | std::ios::out).seekp(30).put('?');
            }),
            "part-007.parquet: was replaced while it is read: it was written to");
}

TEST_F(ReplacedBeforeOpening, ByAnother) {
  EXPECT_THAT(lastAfter([](const std::string &path) {
                writeLast(path + ".new", 1000);
                fs::rename(path + ".new", path);
              }),
              testing::StartsWith("has other data than rank 0: part-007.parquet of "));
}

/// Machines may have copies.
TEST_F(ReplacedBeforeOpening, ByACopyIsNoDifference) {
  EXPECT_EQ(lastAfter([](const std::string &path) {
              fs::copy_file(path, path + ".new");
              fs::rename(path + ".new", path);
            }),
            "no error");
}

TEST_F(ReplacedBeforeOpening, ByNothing) {
  EXPECT_THAT(lastAfter([](const std::string &path) { fs::remove(path); }),
              HasSubstr("part-007.parquet: cannot be read: Failed to open local file"));
}

//===-- columns that predict passes through -----------------------------------===//

TEST(DatasetRanks, ColumnsAreFoundByRankZero) {
  TestFolder folder;
  auto schema = arrow::schema(
      {field("name", arrow::dictionary(arrow::int32(), arrow::utf8())),
       field("at", arrow::timestamp(arrow::TimeUnit::MICRO, "UTC")),
       field("prices", arrow::list(arrow::struct_({field("price", arrow::decimal128(9, 2))})))});
  writeParquet(folder / "a.parquet", *arrow::Table::MakeEmpty(schema).ValueOrDie());
  const std::vector<std::string> paths = {"prices.price", "at", "name"};
  runThreadRanks(3, [&](Communicator &comm) {
    FoundColumns found =
        findColumns(comm.getRank() == 0 ? FileSpec(folder.path) : FileSpec(), paths, &comm);
    EXPECT_EQ(found.file, folder / "a.parquet");
    std::vector<std::string> types;
    for (const ColumnPath &column : found.columns)
      types.push_back(typeName(*column.type));
    EXPECT_EQ(types[0], "decimal128(9, 2)");
    EXPECT_EQ(types[1], "timestamp[us, tz=UTC]");
    EXPECT_EQ(found.columns[2].type->id(), arrow::Type::DICTIONARY);
    EXPECT_EQ(found.columns[0].depth, 1);
    EXPECT_EQ(found.columns[1].depth, 0);
    std::string wrong = errorOf([&] { findColumns(folder.path, {"tme"}, &comm); }).text;
    EXPECT_EQ(wrong,
              folder / "a.parquet" +
                  ": has no column 'tme', which was asked for; it has name, at, prices.price");
  });
}

TEST(DatasetRanks, CataloguesAreReadByAll) {
  TestFolder folder;
  writeTinyCatalogue(folder / "movies.parquet", 5);
  runThreadRanks(3, [&](Communicator &comm) {
    FileSpec files = comm.getRank() == 0 ? FileSpec(folder.path) : FileSpec();
    Catalogue movies = readCatalogue(tinyModel(), kTinyMovies, files, &comm);
    EXPECT_EQ(movies.rows.domains[kTinyMovies].count, 5);
    ASSERT_EQ(movies.files.size(), 1u);
    DataFile told = describeData("catalogue 'movies'", {folder / "movies.parquet"})[0];
    EXPECT_TRUE(movies.files[0].isSame(told));
  });
}

} // namespace
} // namespace genrec::rt::test
