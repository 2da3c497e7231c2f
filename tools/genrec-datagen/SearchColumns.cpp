//===- SearchColumns.cpp - hundreds of columns of a search log ------------===//

#include "SearchColumns.h"
#include "ParquetOutput.h"

#include <cstdio>

using namespace genrec::datagen;

namespace {

// What kinds follow one another among the columns made for tables, and among the others.
constexpr std::array tabled = {Content::Id,   Content::Text, Content::Id,    Content::Value,
                               Content::Time, Content::Id,   Content::Level, Content::Value};
constexpr std::array dense = {Content::Amount, Content::Ratio, Content::Count};
constexpr std::array<int64_t, 4> vocabularies = {500, 2000, 8000, 32000};
constexpr int64_t levels = 32;
constexpr int64_t namedTables = 4;
constexpr double secondsPerDay = 86400;

const char *getWord(Content content) {
  switch (content) {
  case Content::Id:
    return "id";
  case Content::Text:
    return "text";
  case Content::Level:
    return "level";
  case Content::Value:
    return "value";
  case Content::Time:
    return "time";
  case Content::Amount:
    return "amount";
  case Content::Ratio:
    return "ratio";
  case Content::Count:
    return "count";
  }
  return "";
}

/// The owner of column `index` of `count`: a third describe requests, most of the others
/// impressions.
Owner getOwner(int64_t index, int64_t count) {
  int64_t thousandths = index * 1000 / count;
  return thousandths < 330   ? Owner::Request
         : thousandths < 930 ? Owner::Impression
         : thousandths < 970 ? Owner::Click
                             : Owner::Search;
}

int64_t getVocabulary(const SearchColumn &column) {
  return column.content == Content::Level ? levels : column.vocabulary;
}

/// The value's index in its vocabulary: small ones are frequent.
int64_t getIndex(const SearchColumn &column, double quantile) {
  return int64_t(quantile * quantile * quantile * double(getVocabulary(column)));
}

/// The quantile function of the normal distribution, to three digits (Abramowitz and
/// Stegun 26.2.23).
double getNormal(double quantile) {
  double tail = std::max(1e-9, quantile < 0.5 ? quantile : 1 - quantile);
  double t = std::sqrt(-2 * std::log(tail));
  double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                     (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return quantile < 0.5 ? -x : x;
}

template <typename Builder, typename Value>
void append(arrow::ArrayBuilder &builder, const SearchColumn &column, const Value &value) {
  check(static_cast<Builder &>(builder).Append(value), column.name);
}

} // namespace

std::array<std::vector<SearchColumn>, ownerCount>
genrec::datagen::planSearchColumns(int64_t columns) {
  std::array<std::vector<SearchColumn>, ownerCount> result;
  int64_t count = columns - namedColumns;
  int64_t withTable = columns * 8 / 11 - namedTables;
  int64_t tables = 0;
  for (int64_t number = 0; number < count; ++number) {
    // Spread evenly over all.
    bool hasTable = (number + 1) * withTable / count > tables;
    SearchColumn column;
    column.content = hasTable ? tabled[size_t(tables) % tabled.size()]
                              : dense[size_t(number - tables) % dense.size()];
    tables += hasTable;
    char digits[24];
    std::snprintf(digits, sizeof(digits), "_%03lld", (long long)number);
    column.name = getWord(column.content) + std::string(digits);
    column.owner = getOwner(number, count);
    column.number = number;
    column.vocabulary = vocabularies[size_t(number) % vocabularies.size()];
    column.drawn = number % 5 == 4;
    // One column in six tells something of the click, one in ten of the order.
    column.clickWeight = number % 6 == 1 ? 0.15 : 0;
    column.orderWeight = number % 10 == 3 ? 0.2 : 0;
    result[size_t(column.owner)].push_back(column);
  }
  return result;
}

std::shared_ptr<arrow::Field> genrec::datagen::getField(const SearchColumn &column) {
  switch (column.content) {
  case Content::Id:
  case Content::Level:
  case Content::Time:
  case Content::Count:
    return arrow::field(column.name, arrow::int64(), false);
  case Content::Text:
    return arrow::field(column.name, arrow::utf8(), false);
  case Content::Value:
  case Content::Amount:
    return arrow::field(column.name, arrow::float32(), false);
  case Content::Ratio:
    return arrow::field(column.name, arrow::float32(), true);
  }
  return nullptr;
}

double genrec::datagen::getQuantile(uint64_t seed, const SearchColumn &column, uint64_t entity) {
  // Above the kinds of entities that World and the kinds of data set draw for.
  constexpr uint64_t firstColumnKind = 16;
  return Random::forEntity(seed ^ (uint64_t(column.number) << 32), firstColumnKind, entity)
      .uniform();
}

double genrec::datagen::getEffect(const SearchColumn &column, double quantile) {
  bool hasVocabulary = column.content == Content::Id || column.content == Content::Text ||
                       column.content == Content::Level;
  if (!hasVocabulary)
    return getNormal(quantile);
  // Each id its own effect, which no order of the ids tells.
  int64_t index = getIndex(column, quantile);
  return getNormal(Random::forEntity(uint64_t(column.number), 17, uint64_t(index)).uniform());
}

void genrec::datagen::appendValue(arrow::ArrayBuilder &builder, const SearchColumn &column,
                                  double quantile, int64_t now) {
  int64_t index = getIndex(column, quantile);
  switch (column.content) {
  case Content::Id:
    // Ids of real systems are neither small nor dense.
    return append<arrow::Int64Builder>(builder, column,
                                       (column.number + 1) * 10000000 + index * 7919);
  case Content::Text:
    return append<arrow::StringBuilder>(builder, column, "word " + std::to_string(index));
  case Content::Level:
    return append<arrow::Int64Builder>(builder, column, index);
  case Content::Value:
    return append<arrow::FloatBuilder>(builder, column, float(getNormal(quantile)));
  case Content::Time:
    return append<arrow::Int64Builder>(builder, column,
                                       now - int64_t(-std::log1p(-quantile) * secondsPerDay));
  case Content::Amount:
    return append<arrow::FloatBuilder>(
        builder, column, quantile < 0.05 ? -1.0f : float(-20 * std::log1p(-quantile)));
  case Content::Ratio:
    if (quantile < 0.2)
      return check(builder.AppendNull(), column.name);
    return append<arrow::FloatBuilder>(builder, column, float(quantile));
  case Content::Count:
    return append<arrow::Int64Builder>(builder, column, int64_t(-30 * std::log1p(-quantile)));
  }
}
