//===- IdStatistics.cpp - how often ids are looked up ---------------------===//

#include "genrec/Report/IdStatistics.h"

#include "genrec_rt/owner.h"

#include "llvm/Support/JSON.h"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace genrec;
using llvm::StringRef;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static llvm::Error makeError(StringRef file, const llvm::Twine &what) {
  return llvm::createStringError(
      "--ids " + file + ": " + what +
      "; `info --data <data> --ids-out <file>` of a binary writes such files");
}

static bool readNumbers(const json::Object &object, StringRef key, std::vector<int64_t> &numbers) {
  const json::Array *list = object.getArray(key);
  if (!list)
    return false;
  for (const json::Value &value : *list) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number)
      return false;
    numbers.push_back(*number);
  }
  return true;
}

llvm::Expected<IdStatistics> IdStatistics::parse(StringRef text, StringRef file) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value) {
    llvm::consumeError(value.takeError());
    return makeError(file, "is no JSON");
  }
  const json::Object *object = value->getAsObject();
  const json::Object *tables = object ? object->getObject("tables") : nullptr;
  IdStatistics result;
  result.rows = object ? object->getInteger("rows").value_or(0) : 0;
  if (!tables || result.rows < 1)
    return makeError(file, "lacks \"rows\", a number above 0, or \"tables\"");
  if (const json::Object *domains = object->getObject("domains"))
    for (const auto &[name, entry] : *domains)
      if (const json::Object *domain = entry.getAsObject())
        result.domains[name] = {domain->getInteger("rows").value_or(0),
                                domain->getInteger("longest").value_or(0)};
  for (const auto &[name, entry] : *tables) {
    const json::Object *table = entry.getAsObject();
    TableIds &ids = result.tables[name];
    std::optional<double> lookups = table ? table->getNumber("lookups") : std::nullopt;
    if (!lookups || *lookups < 0 || !readNumbers(*table, "rows", ids.rows))
      return makeError(file, "table '" + name.str() + "' lacks \"lookups\" or \"rows\"");
    if (table->get("ids") &&
        (!readNumbers(*table, "ids", ids.ids) || ids.ids.size() != ids.rows.size()))
      return makeError(file, "table '" + name.str() + "' has other \"ids\" than \"rows\"");
    for (int64_t rows : ids.rows)
      if (rows < 1 || rows > result.rows)
        return makeError(file, "table '" + name.str() + "' has an id of " + llvm::Twine(rows) +
                                   " rows, of " + llvm::Twine(result.rows));
    ids.lookups = *lookups / static_cast<double>(result.rows);
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Distinct ids
//===----------------------------------------------------------------------===//

IdModel::IdModel(StringRef table, const TableIds &counted, int64_t countedRows, double batch,
                 int64_t ranks)
    : ranks(ranks), perRow(counted.lookups), counts(counted.rows),
      population(static_cast<double>(countedRows)),
      isSample(batch > static_cast<double>(countedRows)) {
  uint64_t name = rt::hashTableName(std::string_view(table.data(), table.size()));
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t id = counted.ids.empty() ? static_cast<int64_t>(i) : counted.ids[i];
    owners.push_back(rt::getOwner(rt::getSlice(name, id), static_cast<int32_t>(ranks)));
  }
}

IdModel::IdModel(StringRef table, int64_t count, double exponent, double lookups, int64_t ranks)
    : ranks(ranks), perRow(lookups) {
  uint64_t name = rt::hashTableName(std::string_view(table.data(), table.size()));
  double sum = 0;
  for (int64_t id = 0; id < count; ++id) {
    owners.push_back(rt::getOwner(rt::getSlice(name, id), static_cast<int32_t>(ranks)));
    probability.push_back(std::pow(static_cast<double>(id + 1), -exponent));
    sum += probability.back();
  }
  for (double &each : probability)
    each /= sum;
}

std::vector<double> IdModel::countOwned() const {
  std::vector<double> owned(ranks);
  for (int32_t owner : owners)
    ++owned[owner];
  return owned;
}

/// The probability that `rows` root rows do not look up an id.
double IdModel::missing(size_t id, double rows) const {
  if (!probability.empty())
    return std::exp(rows * perRow * std::log1p(-std::min(probability[id], 1.0 - 1e-12)));
  auto with = static_cast<double>(counts[id]);
  if (isSample)
    return with >= population ? 0 : std::exp(rows * std::log1p(-with / population));
  // Rows of an epoch are drawn without replacement: none of `with` among `rows` of `population`.
  double left = population - rows;
  if (with > left)
    return 0;
  return std::exp(std::lgamma(left + 1) - std::lgamma(left - with + 1) -
                  std::lgamma(population + 1) + std::lgamma(population - with + 1));
}

std::vector<double> IdModel::countDistinct(double rows, double draws) const {
  std::vector<double> distinct(ranks);
  double notDrawn =
      draws > 0 ? std::exp(draws * std::log1p(-1.0 / std::max<double>(size(), 2))) : 1;
  // Ids of one count have one probability; counts are sorted, or repeat anyway.
  int64_t known = -1;
  double missed = 0;
  for (size_t id = 0; id < owners.size(); ++id) {
    if (counts.empty() || counts[id] != known) {
      missed = missing(id, rows);
      known = counts.empty() ? -1 : counts[id];
    }
    distinct[owners[id]] += 1 - missed * notDrawn;
  }
  return distinct;
}

std::vector<double> IdModel::listProbabilities(double rows) const {
  std::vector<double> list(owners.size());
  for (size_t id = 0; id < list.size(); ++id)
    list[id] = 1 - missing(id, rows);
  std::sort(list.begin(), list.end(), std::greater<>());
  return list;
}
