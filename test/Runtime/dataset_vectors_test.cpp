//===- dataset_vectors_test.cpp - Rows of several values, from lists of one length -===//

#include "ReadingModel.h"

#include <gtest/gtest.h>

namespace genrec::rt::test {
namespace {

genrec_feature_desc vectorFeature(const char *column, int32_t domain, int32_t type, int64_t width) {
  genrec_feature_desc desc = feature(column, domain, type);
  desc.width = width;
  return desc;
}

/// A file of rows [x], x of the type given.
std::string writeColumn(const TestFolder &folder, const std::shared_ptr<arrow::DataType> &type,
                        const std::string &json, int64_t perGroup = 100) {
  std::string path = folder / "a.parquet";
  writeParquet(path, *tableOf(arrow::schema({field("x", type)}), json), perGroup);
  return path;
}

Message errorFor(const ReadingModel &model, const std::string &path) {
  return errorOf([&] { readAll(model, path); });
}

const char *kThreeRows = "[[[1, 2]], [[3, 4]], [[5, 6]]]";

TEST(DatasetVectors, ListsOfOneLengthAreRows) {
  TestFolder folder;
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 2)});
  for (const auto &type : {arrow::fixed_size_list(arrow::float32(), 2), arrow::list(arrow::float32()),
                           arrow::large_list(arrow::float32())}) {
    Batch batch = readAll(model, writeColumn(folder, type, kThreeRows));
    EXPECT_EQ(valuesOf<float>(batch, 0, 6), (std::vector<float>{1, 2, 3, 4, 5, 6})) << *type;
    EXPECT_FALSE(batch.columns[0].hasNulls);
  }
}

TEST(DatasetVectors, DoublesAndHalvesAreReadAsDeclared) {
  TestFolder folder;
  std::string path = writeColumn(folder, arrow::fixed_size_list(arrow::float64(), 2), kThreeRows);
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F64, 2)});
  EXPECT_EQ(valuesOf<double>(readAll(model, path), 0, 6), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  ReadingModel narrow({root("user")}, {vectorFeature("x", 0, GENREC_F32, 2)});
  EXPECT_EQ(errorFor(narrow, path).text, path + ": column 'x' is double, the model reads float");
}

// Rows of one batch from several groups, one at a time, shuffled: whole rows move.
TEST(DatasetVectors, RowsStayWholeInAnyOrder) {
  TestFolder folder;
  std::string json = "[";
  for (int row = 0; row < 50; ++row)
    json += (row ? ",[[" : "[[") + std::to_string(3 * row) + "," + std::to_string(3 * row + 1) + "," +
            std::to_string(3 * row + 2) + "]]";
  std::string path = writeColumn(folder, arrow::fixed_size_list(arrow::float32(), 3), json + "]", 7);
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 3)});
  EpochOptions options;
  options.shuffle = true;
  options.seed = 5;
  Batch batch = readAll(model, path, options);
  std::vector<float> values = valuesOf<float>(batch, 0, 150);
  bool isMoved = false;
  for (size_t row = 0; row < 50; ++row) {
    auto first = static_cast<float>(3 * batch.positions[static_cast<int64_t>(row)]);
    isMoved |= batch.positions[static_cast<int64_t>(row)] != static_cast<int64_t>(row);
    for (size_t i = 0; i < 3; ++i)
      ASSERT_EQ(values[3 * row + i], first + static_cast<float>(i)) << row;
  }
  EXPECT_TRUE(isMoved);
}

TEST(DatasetVectors, InListsTooAndWithoutPadding) {
  TestFolder folder;
  auto event = arrow::struct_({field("id", arrow::int64()),
                               field("v", arrow::fixed_size_list(arrow::float32(), 2))});
  std::string path = writeColumn(folder, arrow::list(event),
                                 R"([[[{"id": 0, "v": [1, 2]}, {"id": 7, "v": [3, 4]}]], [[]],
                                     [[{"id": 8, "v": [5, 6]}, {"id": 0, "v": [7, 8]}]]])");
  ReadingModel model({root("user"), child("event", 0, "x")},
                     {feature("x.id", 1, GENREC_I64), vectorFeature("x.v", 1, GENREC_F32, 2)});
  model.features[0].has_padding_id = 1;
  Batch batch = readAll(model, path);
  EXPECT_EQ(offsetsOf(batch, 1, 3), (std::vector<int64_t>{0, 1, 1, 2}));
  EXPECT_EQ(valuesOf<float>(batch, 1, 4), (std::vector<float>{3, 4, 5, 6}));
}

TEST(DatasetVectors, NullRowsOfANullableColumnAreZeros) {
  TestFolder folder;
  for (const auto &type :
       {arrow::fixed_size_list(arrow::float32(), 2), arrow::list(arrow::float32())}) {
    std::string path = writeColumn(folder, type, "[[[1, 2]], [null], [[5, 6]]]");
    ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 2)});
    EXPECT_EQ(errorFor(model, path).text, path + ", row group 0, row 1: feature 'x' is null");
    model.features[0].nullable = 1;
    Batch batch = readAll(model, path);
    EXPECT_EQ(valuesOf<float>(batch, 0, 6), (std::vector<float>{1, 2, 0, 0, 5, 6})) << *type;
    ASSERT_TRUE(batch.columns[0].hasNulls);
    EXPECT_EQ(batch.columns[0].valid[0], 1);
    EXPECT_EQ(batch.columns[0].valid[1], 0);
  }
}

TEST(DatasetVectors, ANullAmongTheValuesNamesFileColumnRowAndPlace) {
  TestFolder folder;
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 2)});
  model.features[0].nullable = 1; // of rows, not of values
  for (const auto &type :
       {arrow::fixed_size_list(arrow::float32(), 2), arrow::list(arrow::float32())}) {
    std::string path = writeColumn(folder, type, "[[[1, 2]], [[3, 4]], [[5, null]]]", 2);
    Message message = errorFor(model, path);
    EXPECT_EQ(message.text,
              path + ", row group 1, row 0: feature 'x' is null in place 1 of its 2 values");
    EXPECT_NE(message.help.find("only the whole row may be null"), std::string::npos);
  }
}

TEST(DatasetVectors, AnotherLengthNamesBoth) {
  TestFolder folder;
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 3)});
  std::string path = writeColumn(folder, arrow::list(arrow::float32()), "[[[1, 2, 3]], [[4, 5]]]");
  Message message = errorFor(model, path);
  EXPECT_EQ(message.text, path + ", row group 0, row 1: feature 'x' has 2 values, the model reads 3 "
                                 "per row");
  EXPECT_NE(message.help.find("lists of one length"), std::string::npos);
  path = writeColumn(folder, arrow::fixed_size_list(arrow::float32(), 2), kThreeRows);
  EXPECT_EQ(errorFor(model, path).text,
            path + ", row group 0, row 0: feature 'x' has 2 values, the model reads 3 per row");
}

TEST(DatasetVectors, AScalarColumnIsNoList) {
  TestFolder folder;
  std::string path = writeColumn(folder, arrow::float32(), "[[1], [2]]");
  ReadingModel model({root("user")}, {vectorFeature("x", 0, GENREC_F32, 3)});
  EXPECT_EQ(errorFor(model, path).text,
            path + ": column 'x' lies in no list, but feature 'x', 3 values per row of domain 'user' "
                   "lies in a list");
}

// Only nulls of the rows are asked for.
TEST(DatasetVectors, ValidityAlone) {
  TestFolder folder;
  std::string path = writeColumn(folder, arrow::fixed_size_list(arrow::float32(), 2),
                                 "[[[1, 2]], [null], [[5, 6]]]");
  ReadingModel model({root("user")}, {feature("x", 0, GENREC_VALID)});
  model.features[0].nullable = 1;
  Batch batch = readAll(model, path);
  ASSERT_TRUE(batch.columns[0].hasNulls);
  EXPECT_EQ(batch.columns[0].valid[0], 1);
  EXPECT_EQ(batch.columns[0].valid[1], 0);
}

} // namespace
} // namespace genrec::rt::test
