//===- clock_source.cpp - What gives training steps their times -----------===//

#include "clock_source.h"

#include "../core/floor_divide.h"
#include "../core/model_queries.h"
#include "../data/leaf_values.h"
#include "genrec_rt/error.h"
#include "key_columns.h"

#include <arrow/type.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace genrec::rt {

namespace {

constexpr std::pair<const char *, int64_t> kUnits[] = {
    {"s", 1}, {"ms", 1'000}, {"us", 1'000'000}, {"ns", 1'000'000'000}};

/// The first second of year 1, and the last of year 9999.
constexpr int64_t kFirstSecond = -62'135'596'800, kLastSecond = 253'402'300'799;

class TimedSource : public BatchSource {
public:
  TimedSource(std::unique_ptr<BatchSource> source, const genrec_feature_desc &feature,
              int32_t number, int64_t unitsPerSecond)
      : source(std::move(source)), name(feature.column), domain(feature.domain), number(number),
        unitsPerSecond(unitsPerSecond) {}

  bool next(Batch &batch) override {
    if (!source->next(batch))
      return false;
    const ColumnBatch &column = batch.columns[number];
    const auto *times = reinterpret_cast<const int64_t *>(column.values.data());
    std::optional<int64_t> latest;
    for (int64_t i = 0; column.given && i < batch.domains[domain].count; ++i)
      if (!column.hasNulls || column.valid.data()[i])
        latest = std::max(latest.value_or(times[i]), times[i]);
    batch.seconds = latest;
    if (latest)
      batch.seconds = floorDivide(*latest, unitsPerSecond);
    if (latest && (*batch.seconds < kFirstSecond || *batch.seconds > kLastSecond))
      throw Error("column '" + name + "', the clock, has " + std::to_string(*latest) +
                      ", which is no date of the years 1 to 9999",
                  unitsPerSecond == 1 ? "is its unit another one? --clock " + name + ":ms, :us, :ns"
                                      : "is its unit another one?");
    return true;
  }

private:
  std::unique_ptr<BatchSource> source;
  std::string name;
  int32_t domain, number;
  int64_t unitsPerSecond;
};

} // namespace

ClockSource ClockSource::parse(const std::string &text) {
  ClockSource source;
  if (text == "machine")
    return source;
  size_t colon = text.rfind(':');
  std::string before = text.substr(0, colon);
  std::string after = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (before == "steps" && !after.empty()) {
    auto [end, error] =
        std::from_chars(after.data(), after.data() + after.size(), source.secondsPerStep);
    // Times of 2^31 steps fit.
    if (error == std::errc() && end == after.data() + after.size() && source.secondsPerStep >= 1 &&
        source.secondsPerStep <= INT32_MAX) {
      source.kind = Kind::steps;
      return source;
    }
  }
  source.kind = Kind::column;
  source.column = text;
  for (const auto &[unit, perSecond] : kUnits)
    if (!before.empty() && after == unit) {
      source.column = before;
      source.unitsPerSecond = perSecond;
    }
  return source;
}

std::function<int64_t(uint64_t step)> ClockSource::clock() const {
  switch (kind) {
  case Kind::machine:
    return [](uint64_t) {
      return std::chrono::duration_cast<std::chrono::seconds>(
                 std::chrono::system_clock::now().time_since_epoch())
          .count();
    };
  case Kind::steps:
    return [each = secondsPerStep](uint64_t step) { return static_cast<int64_t>(step) * each; };
  case Kind::column:
    return nullptr;
  }
  return nullptr;
}

/// How many units of the column's values a second has, once they are read.
static int64_t unitsOf(const ClockSource &source, const ColumnPath &found,
                       const std::string &file) {
  const std::string named =
      file + ": column '" + source.column + "', the clock, is " + typeName(*found.type);
  std::string why;
  if (found.type->id() == arrow::Type::NA || !isReadable(*found.type, GENREC_I64, why))
    throw Error(named + ", which is no time",
                why.empty()
                    ? "times are timestamps with a time zone, dates, or integers with a unit"
                    : why);
  const arrow::Type::type type = found.type->id();
  const bool saysUnit =
      type == arrow::Type::TIMESTAMP || type == arrow::Type::DATE32 || type == arrow::Type::DATE64;
  if (saysUnit && source.unitsPerSecond != 0)
    throw Error(named + ", which has a unit of its own", "--clock " + source.column);
  if (!saysUnit && source.unitsPerSecond == 0)
    throw Error(named + ": its unit is not known",
                "say it: --clock " + source.column + ":s, or :ms, :us, :ns, since 1970");
  return saysUnit ? 1 : source.unitsPerSecond;
}

TimeColumn::TimeColumn(const genrec_model_desc &model, const genrec_program_desc &program,
                       const ClockSource &source, const FileSpec &files, Communicator *comm)
    : column(source.column), extended(model), extendedProgram(program),
      features(model.features, model.features + model.feature_count),
      read(program.features, program.features + program.feature_count) {
  FoundColumns found = findColumns(files, {column}, comm);
  const ColumnPath &path = found.columns[0];
  unitsPerSecond = unitsOf(source, path, found.file);
  std::vector<int32_t> lists(program.domains, program.domains + program.domain_count);
  int32_t domain = path.depth == 0 ? dataRoot(model) : listDomain(model, lists, path, column);
  if (domain < 0)
    throw Error(found.file + ": column '" + column +
                    "', the clock, is of a list that the model does not read",
                "name a column of the rows, or of a list that the model reads");
  genrec_feature_desc feature{};
  feature.column = column.c_str();
  feature.domain = domain;
  feature.type = GENREC_I64;
  feature.nullable = 1;
  read.push_back(static_cast<int32_t>(features.size()));
  features.push_back(feature);
  extended.features = features.data();
  extended.feature_count = static_cast<int32_t>(features.size());
  extendedProgram.features = read.data();
  extendedProgram.feature_count = static_cast<int32_t>(read.size());
}

std::unique_ptr<BatchSource> TimeColumn::timed(std::unique_ptr<BatchSource> source) const {
  return std::make_unique<TimedSource>(std::move(source), features.back(), read.back(),
                                       unitsPerSecond);
}

} // namespace genrec::rt
