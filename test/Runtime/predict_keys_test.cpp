//===- predict_keys_test.cpp - Keys leave as they came --------------------===//

#include "RunCommand.h"

#include <arrow/api.h>
#include <gmock/gmock.h>

namespace genrec::rt::test {
namespace {

using arrow::field;
using arrow::TimeUnit;

class PredictKeysTest : public CommandTest {
protected:
  PredictKeysTest() {
    EXPECT_EQ(runCommand(training({"--max-steps", "2", "--checkpoint", folder / "c"})).status, 0);
  }

  Ran predict(const std::string &data, const std::string &keys) {
    return runCommand({"predict", "--checkpoint", folder / "c", "--data", data, "--catalogue",
                       "movies=" + folder / "movies.parquet", "--batch", "3", "--keys", keys,
                       "--out", folder / "out.parquet"});
  }
};

/// Values of every type that a key may have, some of them null, in raw numbers.
struct Keys {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  std::string names;

  void add(const std::string &name, const std::shared_ptr<arrow::DataType> &type,
           const std::string &json) {
    auto table = tableOf(arrow::schema({field(name, arrow::int64())}), json);
    add(name, type, table->column(0)->chunk(0));
  }
  void add(const std::string &name, const std::shared_ptr<arrow::DataType> &type,
           const std::shared_ptr<arrow::Array> &numbers) {
    auto array = numbers;
    if (!type->Equals(*numbers->type())) {
      auto data = numbers->data()->Copy();
      data->type = type;
      array = arrow::MakeArray(data);
    }
    fields.push_back(field(name, type));
    arrays.push_back(array);
    names += (names.empty() ? "" : ",") + name;
  }

  /// Integers of another width, from small numbers; null where -1.
  template <class Builder, class... Arguments>
  void build(const std::string &name, const std::vector<int64_t> &values, Arguments... arguments) {
    Builder builder(arguments...);
    for (int64_t value : values)
      ASSERT_TRUE((value == -1 ? builder.AppendNull()
                               : builder.Append(static_cast<typename Builder::value_type>(value)))
                      .ok());
    auto array = *builder.Finish();
    add(name, array->type(), array);
  }
};

TEST_F(PredictKeysTest, KeysOfAllTypesLeaveAsTheyCame) {
  const std::string times = "[[1700000000123456], [-1], [null], [1], [0]]";
  const std::vector<int64_t> small = {3, -1, 0, 7, 100};
  Keys keys;
  for (auto [name, unit] : {std::pair("ms", TimeUnit::MILLI), std::pair("us", TimeUnit::MICRO),
                            std::pair("ns", TimeUnit::NANO)})
    for (const char *zone : {"", "UTC", "Asia/Tokyo"})
      keys.add(std::string(name) + "_" + std::string(zone).substr(0, 3),
               arrow::timestamp(unit, zone), times);
  keys.add("clock", arrow::time64(TimeUnit::MICRO), "[[5], [null], [86399999999], [0], [1]]");
  keys.add("took", arrow::duration(TimeUnit::MILLI), times);
  keys.add("count", arrow::int64(), times);
  keys.build<arrow::Date32Builder>("day", {19000, -1, 0, 1, 2});
  keys.build<arrow::Int8Builder>("i8", small);
  keys.build<arrow::Int16Builder>("i16", small);
  keys.build<arrow::Int32Builder>("i32", small);
  keys.build<arrow::UInt8Builder>("u8", small);
  keys.build<arrow::UInt16Builder>("u16", small);
  keys.build<arrow::UInt32Builder>("u32", small);
  keys.build<arrow::UInt64Builder>("u64", {-2, 4, 5, -1, 0}); // 2^64 - 2 among them
  keys.build<arrow::BooleanBuilder>("flag", {1, 0, -1, 1, 0});
  keys.build<arrow::FloatBuilder>("f32", small);
  keys.build<arrow::DoubleBuilder>("f64", small);
  arrow::Decimal128Builder decimals(arrow::decimal128(20, 3), arrow::default_memory_pool());
  for (int64_t value : {5, -7, 0, 123456})
    ASSERT_TRUE(decimals.Append(arrow::Decimal128(value)).ok());
  ASSERT_TRUE(decimals.AppendNull().ok());
  auto decimal = *decimals.Finish();
  keys.add("decimal", decimal->type(), decimal);
  arrow::StringBuilder texts;
  arrow::BinaryBuilder blobs;
  for (const char *text : {"", "a", "\xc3\xbc", "long enough to be somewhere else"}) {
    ASSERT_TRUE(texts.Append(text).ok());
    ASSERT_TRUE(blobs.Append(text).ok());
  }
  ASSERT_TRUE(texts.AppendNull().ok() && blobs.AppendNull().ok());
  auto text = *texts.Finish(), blob = *blobs.Finish();
  keys.add("text", text->type(), text);
  keys.add("blob", blob->type(), blob);

  keys.fields.push_back(tinySchema()->field(3));
  keys.arrays.push_back(
      tableOf(tinySchema(),
              R"([[0,0,0,[]],[0,0,0,[{"movie":1}]],[0,0,0,[]],[0,0,0,[]],[0,0,0,[]]])")
          ->column(3)
          ->chunk(0));
  writeParquet(folder / "keys.parquet",
               *arrow::Table::Make(arrow::schema(keys.fields), keys.arrays), 2);
  Ran ran = predict(folder / "keys.parquet", keys.names);
  ASSERT_EQ(ran.status, 0) << ran.err;
  auto given = readParquet(folder / "keys.parquet"), written = readParquet(folder / "out.parquet");
  ASSERT_EQ(written->num_rows(), 5);
  for (int i = 0; i + 1 < given->num_columns(); ++i) {
    const std::string &name = given->field(i)->name();
    EXPECT_EQ(written->field(i)->ToString(), given->field(i)->ToString());
    EXPECT_TRUE(written->column(i)->Equals(*given->column(i))) << name;
  }
}

TEST_F(PredictKeysTest, FilesWithKeysOfOtherTypesAreRefused) {
  auto narrow = arrow::schema({field("user", arrow::int32()), tinySchema()->field(1),
                               tinySchema()->field(2), tinySchema()->field(3)});
  writeParquet(folder / "narrow.parquet", *tableOf(narrow, "[[1, 0, 0, []]]"));
  Ran ran = predict(folder / "valid.parquet" + "," + folder / "narrow.parquet", "user");
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, testing::HasSubstr("key 'user' is int32, in " + folder / "valid.parquet" +
                                          " it is int64"));
}

/// Polars writes large strings, pyarrow others.
TEST_F(PredictKeysTest, StringsOfSeveralFilesMayHaveOffsetsOfAnySize) {
  auto table = tableOf(tinySchema(), "[[1, 0, 0, []]]");
  arrow::StringBuilder plain;
  arrow::LargeStringBuilder large;
  ASSERT_TRUE(plain.Append("plain").ok() && large.Append("large").ok());
  std::string files;
  for (const std::shared_ptr<arrow::Array> &names : {*plain.Finish(), *large.Finish()}) {
    const std::string file = folder / (names->type()->ToString() + ".parquet");
    writeParquet(file, **table->AddColumn(4, field("name", names->type()),
                                          std::make_shared<arrow::ChunkedArray>(names)));
    files += (files.empty() ? "" : ",") + file;
  }
  Ran ran = predict(files, "name");
  ASSERT_EQ(ran.status, 0) << ran.err;
  auto names = readParquet(folder / "out.parquet")->GetColumnByName("name");
  EXPECT_EQ((*names->GetScalar(0))->ToString(), "plain");
  EXPECT_EQ((*names->GetScalar(1))->ToString(), "large");
}

} // namespace
} // namespace genrec::rt::test
