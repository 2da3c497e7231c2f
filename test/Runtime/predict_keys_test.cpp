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

/// Of each array a file, with its values as column "key": what predict writes, or what it says.
class KeysOfSeveralFiles : public PredictKeysTest {
protected:
  using Array = std::shared_ptr<arrow::Array>;

  template <class Builder, class Value, class... Arguments>
  static Array arrayOf(const std::vector<Value> &values, Arguments... arguments) {
    Builder builder(arguments..., arrow::default_memory_pool());
    for (const Value &value : values)
      EXPECT_TRUE(builder.Append(value).ok());
    EXPECT_TRUE(builder.AppendNull().ok());
    return *builder.Finish();
  }
  template <class Builder> static Array integers(const std::vector<int64_t> &values) {
    std::vector<typename Builder::value_type> narrow;
    for (int64_t value : values)
      narrow.push_back(static_cast<typename Builder::value_type>(value));
    return arrayOf<Builder>(narrow);
  }
  static Array times(const std::shared_ptr<arrow::DataType> &type, std::vector<int64_t> values) {
    return arrayOf<arrow::TimestampBuilder>(values, type);
  }
  static Array entries(const Array &dictionary, const std::vector<int64_t> &numbers) {
    return *arrow::DictionaryArray::FromArrays(integers<arrow::Int8Builder>(numbers),
                                               dictionary->Slice(0, dictionary->length() - 1));
  }

  Ran predictAll(const std::vector<Array> &arrays) {
    std::string files;
    for (const Array &array : arrays) {
      const std::string file = folder / ("key" + std::to_string(number++) + ".parquet");
      std::string rows;
      for (int64_t row = 0; row < array->length(); ++row)
        rows += row == 0 ? "[1, 0, 0, []]" : ", [1, 0, 0, []]";
      auto table = tableOf(tinySchema(), "[" + rows + "]");
      writeParquet(file, **table->AddColumn(4, field("key", array->type()),
                                            std::make_shared<arrow::ChunkedArray>(array)));
      files += (files.empty() ? "" : ",") + file;
    }
    return predict(files, "key");
  }

  /// The written column: its type, and its values as text.
  std::string written(const std::vector<Array> &arrays) {
    Ran ran = predictAll(arrays);
    if (ran.status != 0)
      return ran.err;
    auto column = readParquet(folder / "out.parquet")->GetColumnByName("key");
    std::string text = column->type()->ToString() + ":";
    for (int64_t row = 0; row < column->length(); ++row)
      text += " " + (*column->GetScalar(row))->ToString();
    return text;
  }

  int number = 0;
};

TEST_F(KeysOfSeveralFiles, IntegersAndFloatsBecomeTheWidest) {
  EXPECT_EQ(
      written({integers<arrow::Int32Builder>({-7}), integers<arrow::Int64Builder>({1LL << 40})}),
      "int64: -7 null 1099511627776 null");
  EXPECT_EQ(
      written({integers<arrow::Int64Builder>({-1}), integers<arrow::UInt32Builder>({4294967295}),
               integers<arrow::Int8Builder>({-8})}),
      "int64: -1 null 4294967295 null -8 null");
  EXPECT_EQ(written({integers<arrow::UInt8Builder>({255}), integers<arrow::Int8Builder>({-1})}),
            "int16: 255 null -1 null");
  EXPECT_EQ(written({integers<arrow::UInt16Builder>({65535}), integers<arrow::UInt32Builder>({7})}),
            "uint32: 65535 null 7 null");
  EXPECT_EQ(written({integers<arrow::UInt64Builder>({5}), integers<arrow::Int64Builder>({-5})}),
            "int64: 5 null -5 null");
  EXPECT_EQ(written({arrayOf<arrow::FloatBuilder, float>({0.5f}),
                     arrayOf<arrow::DoubleBuilder, double>({0.25})}),
            "double: 0.5 null 0.25 null");
  EXPECT_EQ(
      written({integers<arrow::Int32Builder>({3}), arrayOf<arrow::FloatBuilder, float>({0.5f})}),
      "double: 3 null 0.5 null");
  EXPECT_EQ(
      written({arrayOf<arrow::FloatBuilder, float>({0.5f}), integers<arrow::Int16Builder>({3})}),
      "float: 0.5 null 3 null");
}

TEST_F(KeysOfSeveralFiles, DictionariesAndStringsOfAnyKind) {
  const Array plain = arrayOf<arrow::StringBuilder, std::string>({"plain"});
  const Array large = arrayOf<arrow::LargeStringBuilder, std::string>({"large"});
  EXPECT_EQ(written({plain, large, entries(large, {0, 0})}),
            "string: plain null large null large large null");
  EXPECT_EQ(written({entries(plain, {0, 0}), plain}), "string: plain plain null plain null");
  EXPECT_EQ(written({entries(integers<arrow::Int32Builder>({7}), {0}),
                     integers<arrow::Int64Builder>({8})}),
            "int64: 7 null 8 null");
  const Array sized =
      arrayOf<arrow::FixedSizeBinaryBuilder, std::string>({"ab"}, arrow::fixed_size_binary(2));
  const std::string both = written({plain, sized});
  EXPECT_THAT(both, testing::StartsWith("binary: ")) << both;
}

TEST_F(KeysOfSeveralFiles, TimesBecomeThoseOfTheFinestUnit) {
  auto of = [](arrow::TimeUnit::type unit) { return arrow::timestamp(unit, "UTC"); };
  const Array seconds = times(of(TimeUnit::SECOND), {86400}),
              days = integers<arrow::Date32Builder>({2});
  EXPECT_EQ(
      written({seconds, times(of(TimeUnit::MICRO), {1500000})}),
      written({times(of(TimeUnit::MICRO), {86400000000}), times(of(TimeUnit::MICRO), {1500000})}));
  EXPECT_EQ(written({times(of(TimeUnit::MILLI), {5}), days}),
            written({times(of(TimeUnit::MILLI), {5}), times(of(TimeUnit::MILLI), {172800000})}));
  EXPECT_THAT(written({times(of(TimeUnit::NANO), {5}), times(of(TimeUnit::SECOND), {1LL << 40})}),
              testing::HasSubstr("column 'key': time 1099511627776000 does not fit timestamp[ns"));
}

TEST_F(KeysOfSeveralFiles, NullsWithoutATypeTakeThatOfOtherFiles) {
  const Array none = *arrow::MakeArrayOfNull(arrow::null(), 2);
  const Array number = integers<arrow::Int64Builder>({3}),
              flag = arrayOf<arrow::BooleanBuilder, bool>({true});
  EXPECT_EQ(written({none, number}), "int64: null null 3 null");
  EXPECT_EQ(written({flag, none}), "bool: true null null null");
  EXPECT_EQ(written({none, arrayOf<arrow::StringBuilder, std::string>({"a"})}),
            "string: null null a null");
  EXPECT_THAT(written({none}),
              testing::HasSubstr("column 'key' is null throughout, without a type, "
                                 "so it cannot be a key\n  help: leave it out"));
}

TEST_F(KeysOfSeveralFiles, OthersAreRefused) {
  Ran ran = predictAll(
      {integers<arrow::Int64Builder>({1}), arrayOf<arrow::StringBuilder, std::string>({"1"})});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, testing::HasSubstr("key1.parquet: key 'key' is string, in " +
                                          folder / "key0.parquet" + " it is int64"));
  EXPECT_THAT(ran.err, testing::HasSubstr("no type holds the values of both"));
  EXPECT_EQ(
      predictAll({integers<arrow::Int64Builder>({1}), arrayOf<arrow::DoubleBuilder, double>({1})})
          .status,
      1);
  EXPECT_EQ(predictAll({times(arrow::timestamp(TimeUnit::SECOND), {1}),
                        times(arrow::timestamp(TimeUnit::SECOND, "UTC"), {1})})
                .status,
            1);
  EXPECT_THAT(written({integers<arrow::Int8Builder>({1}), integers<arrow::UInt64Builder>({-2})}),
              testing::HasSubstr("column 'key': value 18446744073709551614 does not fit int64"));
}

} // namespace
} // namespace genrec::rt::test
