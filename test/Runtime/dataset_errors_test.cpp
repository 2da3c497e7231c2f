//===- dataset_errors_test.cpp - Every way in which data can be wrong -----===//

#include "ReadingModel.h"
#include "TinyModel.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace genrec::rt::test {
namespace {

TEST(DatasetErrors, MissingColumnNamesFileColumnsAndTheClosest) {
  TestFolder folder;
  writeParquet(folder / "a.parquet", *tableOf(tinySchema(), "[]"));
  ReadingModel model({root("user"), child("history", 0, "history")},
                     {feature("history.movi", 1, GENREC_I64)});
  Message message = errorOf([&] { readAll(model, folder / "a.parquet"); });
  EXPECT_EQ(message.text, folder / "a.parquet" +
                              ": has no column 'history.movi', which feature 'history.movi' reads; "
                              "it has user, label, target, history.movie");
  EXPECT_EQ(message.help, "did you mean 'history.movie'?");
  auto helpFor = [&](const char *column) {
    ReadingModel other({root("user")}, {feature(column, 0, GENREC_I64)});
    return errorOf([&] { readAll(other, folder / "a.parquet"); }).help;
  };
  EXPECT_EQ(helpFor("USER"), "did you mean 'user'?");
  EXPECT_EQ(
      helpFor("price"),
      "write the column, or compile the model for this schema; of a folder that holds other files "
      "too, name those to read");
}

TEST(DatasetErrors, WrongTypeNamesBoth) {
  TestFolder folder;
  auto schema = arrow::schema({field("user", arrow::utf8()), field("score", arrow::float64()),
                               field("time", arrow::timestamp(arrow::TimeUnit::MILLI))});
  writeParquet(folder / "a.parquet", *tableOf(schema, "[]"));
  auto errorFor = [&](const char *column, int32_t type) {
    ReadingModel model({root("user")}, {feature(column, 0, type)});
    return errorOf([&] { readAll(model, folder / "a.parquet"); });
  };
  EXPECT_EQ(errorFor("user", GENREC_I64).text,
            folder / "a.parquet" + ": column 'user' is string, the model reads int64");
  EXPECT_EQ(errorFor("score", GENREC_F32).text,
            folder / "a.parquet" + ": column 'score' is double, the model reads float");
  Message time = errorFor("time", GENREC_I64);
  EXPECT_EQ(time.text,
            folder / "a.parquet" + ": column 'time' is timestamp[ms], the model reads int64");
  EXPECT_NE(time.help.find("without a time zone"), std::string::npos);
}

TEST(DatasetErrors, WrongDepthIsNamed) {
  TestFolder folder;
  writeParquet(folder / "a.parquet", *tableOf(tinySchema(), "[]"));
  ReadingModel model({root("user")}, {feature("history.movie", 0, GENREC_I64)});
  EXPECT_EQ(errorOf([&] { readAll(model, folder / "a.parquet"); }).text,
            folder / "a.parquet" + ": column 'history.movie' lies in a list, but feature "
                                   "'history.movie' of domain 'user' lies in no list");
}

TEST(DatasetErrors, UnexpectedNullNamesFileRowAndColumn) {
  TestFolder folder;
  writeParquet(folder / "a.parquet",
               *tableOf(tinySchema(), R"([[0, 0, 0, []], [1, 0, 0, [{"movie": 3}]],
                                          [2, 0, 0, [{"movie": 3}, {"movie": null}]]])"),
               2);
  ReadingModel model = userModel();
  Message message = errorOf([&] { readAll(model, folder / "a.parquet"); });
  EXPECT_EQ(message.text,
            folder / "a.parquet" + ", row group 1, row 0: feature 'history.movie' is null");
  EXPECT_NE(message.help.find("nullable"), std::string::npos);
}

TEST(DatasetErrors, SeveralColumnsOfOneNameAreRefusedIfTheyAreRead) {
  TestFolder folder;
  arrow::FieldVector both = {field("x", arrow::int64()), field("x", arrow::float32())};
  auto file = arrow::schema(
      {both[0], both[1], field("y", arrow::int64()),
       field("h", arrow::list(arrow::struct_({both[0], both[1], field("z", arrow::int64())})))});
  std::string path = folder / "a.parquet";
  writeParquet(path, *arrow::Table::MakeEmpty(file).ValueOrDie());
  auto errorFor = [&](const char *column, int32_t domain) {
    ReadingModel model({root("user"), child("h", 0, "h")}, {feature(column, domain, GENREC_I64)});
    return errorOf([&] { readAll(model, path); });
  };
  EXPECT_EQ(errorFor("x", 0).text, path + ": has several columns 'x', and feature 'x' reads 'x'");
  EXPECT_NE(errorFor("x", 0).help.find("different names"), std::string::npos);
  EXPECT_EQ(errorFor("h.x", 1).text,
            path + ": has several columns 'h.x', and feature 'h.x' reads 'h.x'");
  EXPECT_EQ(errorFor("y", 0).text, "no error");
  EXPECT_EQ(errorFor("h.z", 1).text, "no error");
}

TEST(DatasetErrors, AColumnThatIsNullThroughoutIsReadWhereNullsAre) {
  TestFolder folder;
  auto rows = arrow::struct_({field("item", arrow::null())});
  auto file = arrow::schema({field("x", arrow::null()), field("h", arrow::list(rows)),
                             field("empty", arrow::list(arrow::null()))});
  std::string path = folder / "a.parquet";
  writeParquet(path, *tableOf(file, R"([[null, [{"item": null}], []], [null, [], []]])"));
  std::vector<genrec_domain_desc> domains = {root("user"), child("h", 0, "h"),
                                             child("empty", 0, "empty")};
  for (int32_t type : {GENREC_I1, GENREC_I32, GENREC_I64, GENREC_F32, GENREC_F64, GENREC_STRING})
    for (int64_t width : {0, 3}) {
      ReadingModel model(domains, {feature("x", 0, type), feature("h.item", 1, type)});
      for (genrec_feature_desc &one : model.features)
        one.nullable = 1;
      if (type == GENREC_F32)
        model.features[0].width = width;
      Batch batch = readAll(model, path);
      ASSERT_TRUE(batch.columns[0].hasNulls && batch.columns[1].hasNulls) << type;
      EXPECT_EQ(batch.columns[0].valid.data()[0] + batch.columns[0].valid.data()[1], 0);
      EXPECT_EQ(batch.columns[1].valid.data()[0], 0);
      EXPECT_EQ(offsetsOf(batch, 1, 2), (std::vector<int64_t>{0, 1, 1}));
    }
  auto errorFor = [&](const char *column, int32_t domain) {
    ReadingModel model(domains, {feature(column, domain, GENREC_I64)});
    return errorOf([&] { readAll(model, path); }).text;
  };
  EXPECT_EQ(errorFor("x", 0), path + ", row group 0, row 0: feature 'x' is null, as the whole "
                                     "column, which has Arrow's type null");
  EXPECT_EQ(errorFor("empty", 2), "no error"); // it has no rows
  EXPECT_EQ(errorFor("x", 2), path +
                                  ": column 'x' is null throughout, without a type of its own, but "
                                  "feature 'x' of domain 'empty' lies in a list");
  EXPECT_EQ(errorFor("x.item", 2),
            path + ": has no column 'x.item', which feature 'x.item' reads: "
                   "column 'x' has nothing but nulls or empty lists, without a type of its own");
}

TEST(DatasetErrors, IdOutOfRangeNamesFileRowAndColumn) {
  TestFolder folder;
  auto errorFor = [&](const std::string &id) {
    writeParquet(folder / "a.parquet",
                 *tableOf(tinySchema(), "[[0, 0, 0, [{\"movie\": 7}]], [1, 0, 0, [{\"movie\": 8}, "
                                        "{\"movie\": " +
                                            id + "}]]]"));
    ReadingModel model = userModel();
    model.features[1].id_bits = 52;
    model.features[1].table = "movie";
    return errorOf([&] { readAll(model, folder / "a.parquet"); });
  };
  Message beyond = errorFor("9007199254740993");
  EXPECT_EQ(beyond.text, folder / "a.parquet" +
                             ", row group 0, row 1: feature 'history.movie' has id "
                             "9007199254740993, beyond the 52 bits of table 'movie'");
  EXPECT_NE(beyond.help.find("gr.hash(feature, bits=52)"), std::string::npos);
  EXPECT_EQ(errorFor("-1").text, folder / "a.parquet" + ", row group 0, row 1: feature "
                                                        "'history.movie' has id -1, below 0");
  EXPECT_EQ(errorFor("4503599627370495").text, "no error"); // 2^52 - 1
}

TEST(DatasetErrors, UnreadableAndTruncatedFilesAreNamed) {
  TestFolder folder;
  ReadingModel model = userModel();
  std::ofstream(folder / "text.parquet") << "user,history\n1,2\n";
  Message text = errorOf([&] { readAll(model, folder / "text.parquet"); });
  EXPECT_EQ(text.text.find(folder / "text.parquet" + ": cannot be read: "), 0u);
  EXPECT_NE(text.help.find("truncated"), std::string::npos);
  std::filesystem::copy_file(folder / "text.parquet", folder / "text.csv");
  EXPECT_EQ(errorOf([&] { readAll(model, folder / "text.csv"); }).help,
            "Parquet is read; text files become Parquet by genrec.data in Python");

  writeUsers(folder, 300, 300, 300);
  std::string whole = folder / "part-000.parquet", cut = folder / "cut.parquet";
  std::filesystem::copy_file(whole, cut);
  auto size = std::filesystem::file_size(cut);
  std::filesystem::resize_file(cut, size * 2 / 3);
  EXPECT_EQ(errorOf([&] { readAll(model, cut); }).text.find(cut + ": cannot be read: "), 0u);

  // Pages overwritten in the middle: the footer is fine, decoding is not.
  std::string broken = folder / "broken.parquet";
  std::filesystem::copy_file(whole, broken);
  {
    std::fstream file(broken, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4);
    std::string junk(200, '\xff');
    file.write(junk.data(), static_cast<std::streamsize>(junk.size()));
  }
  EXPECT_EQ(errorOf([&] { readAll(model, broken); }).text.find(broken + ", row group 0"), 0u);
  std::filesystem::permissions(whole, std::filesystem::perms::none);
}

TEST(DatasetErrors, TheFirstBadRowGroupIsReportedAtAnyNumberOfThreads) {
  TestFolder folder;
  std::string json = "[";
  for (int row = 0; row < 60; ++row)
    json += (row ? ",[" : "[") + std::string(row >= 25 ? "null" : "1") + ",0,0,[]]";
  writeParquet(folder / "a.parquet", *tableOf(tinySchema(), json + "]"), 10);
  ReadingModel model = userModel();
  for (int32_t threads : {1, 4}) {
    DatasetOptions options;
    options.decodeThreads = threads;
    Dataset data(model.description, {&model.program}, folder / "a.parquet", options);
    auto source = data.epoch({});
    Batch batch(model.description);
    EXPECT_EQ(errorOf([&] {
                while (source->next(batch))
                  ;
              }).text,
              folder / "a.parquet" + ", row group 2, row 5: feature 'user' is null");
  }
}

TEST(DatasetErrors, CataloguesNeedRows) {
  TestFolder folder;
  writeTinyCatalogue(folder / "movies.parquet", 0);
  EXPECT_EQ(
      errorOf([&] { readCatalogue(tinyModel(), kTinyMovies, folder / "movies.parquet"); }).text,
      folder / "movies.parquet" + ": the catalogue 'movies' has no rows");
  writeTinyCatalogue(folder / "movies.parquet", 5);
  Batch rows = readCatalogue(tinyModel(), kTinyMovies, folder / "movies.parquet").rows;
  EXPECT_EQ(rows.domains[kTinyMovies].count, 5);
  EXPECT_EQ(valuesOf<int64_t>(rows, 4, 5), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

} // namespace
} // namespace genrec::rt::test
