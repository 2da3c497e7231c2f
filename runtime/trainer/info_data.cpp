//===- info_data.cpp - What a model reads of some data --------------------===//

#include "../core/aside_file.h"
#include "commands.h"
#include "genrec_rt/identity.h"
#include "overwriting.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_set>

namespace genrec::rt {

namespace {

/// Rows of a domain in all of the data and in the largest batch, and the longest list.
struct DomainFacts {
  int64_t rows = 0, largest = 0, longest = 0;

  void add(int64_t batchRows, int64_t batchLongest) {
    rows += batchRows;
    largest = std::max(largest, batchRows);
    longest = std::max(longest, batchLongest);
  }
};

/// The program whose columns are read: training, else the first that reads data.
const genrec_program_desc &programOf(const genrec_model_desc &model) {
  for (int32_t i = 0; i < model.program_count; ++i)
    if (model.programs[i].mode == static_cast<int32_t>(Mode::train))
      return model.programs[i];
  return model.programs[0];
}

/// Counts the rows of every domain of `batch`, and of domains truncated from them.
void count(const genrec_model_desc &model, const Batch &batch, std::vector<DomainFacts> &facts) {
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    bool isCut = domain.kind == GENREC_DOMAIN_DERIVED && domain.max_length > 0;
    const DomainBatch &read = batch.domains[isCut ? domain.truncated : i];
    if (!read.given)
      continue;
    if (domain.parent < 0) {
      facts[i].add(read.count, 0);
      continue;
    }
    int64_t rows = 0, longest = 0;
    for (int64_t list = 0; list < batch.domains[domain.parent].count; ++list) {
      int64_t length = read.offsets[list + 1] - read.offsets[list];
      length = isCut ? std::min(length, domain.max_length) : length;
      rows += length;
      longest = std::max(longest, length);
    }
    facts[i].add(rows, longest);
  }
}

struct IdHash {
  size_t operator()(int64_t id) const {
    return splitMix64(static_cast<uint64_t>(id) ^ processHashSeed());
  }
};

using IdSet = std::unordered_set<int64_t, IdHash>;
/// Distinct ids by table.
using TableIds = std::map<std::string, IdSet>;

/// Adds the ids of `batch` that reach a table unchanged.
void collectIds(const genrec_model_desc &model, const Batch &batch, TableIds &ids) {
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    const ColumnBatch &column = batch.columns[i];
    if (!feature.table || !column.given || feature.type != GENREC_I64)
      continue;
    IdSet &known = ids[feature.table];
    const auto *values = reinterpret_cast<const int64_t *>(column.values.data());
    for (int64_t row = 0; row < batch.domains[feature.domain].count; ++row)
      if (!column.hasNulls || column.valid[row])
        known.insert(values[row]);
  }
}

/// Rows and ids of the catalogues whose files are there.
void countCatalogues(const genrec_model_desc &model, const Flags &flags,
                     std::vector<DomainFacts> &facts, TableIds &ids) {
  for (int32_t i = 0; i < model.domain_count; ++i) {
    if (model.domains[i].kind != GENREC_DOMAIN_CATALOGUE)
      continue;
    std::string file = catalogueFile(model, flags, i);
    if (!flags.catalogues.count(model.domains[i].name) && !std::filesystem::exists(file))
      continue;
    Batch rows = readCatalogue(model, i, file).rows;
    facts[i].add(rows.rows, 0);
    collectIds(model, rows, ids);
  }
}

std::string join(const std::string &list, const std::string &entry) {
  return list.empty() ? entry : list + "," + entry;
}

} // namespace

/// Writes `counts` as genrec-compile --ids reads them, a table's most frequent ids first.
static void writeLookupCounts(const genrec_model_desc &model, const LookupCounts &counts,
                              const std::vector<DomainFacts> &facts, const std::string &file) {
  Json tables = Json::object(), domains = Json::object();
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (facts[i].largest > 0)
      domains[model.domains[i].name] = {{"rows", facts[i].rows}, {"longest", facts[i].longest}};
  for (int32_t i = 0; i < model.table_count; ++i) {
    const LookupCounts::Table &table = counts.tables[i];
    if (table.entries == 0)
      continue;
    std::vector<std::pair<int64_t, int64_t>> sorted; // fewest rows last, then by id
    for (auto [id, rows] : table.rows)
      sorted.emplace_back(-rows, id);
    std::sort(sorted.begin(), sorted.end());
    Json ids = Json::array(), rows = Json::array();
    for (auto [negative, id] : sorted) {
      ids.push_back(id);
      rows.push_back(-negative);
    }
    tables[model.tables[i].name] = {
        {"lookups", table.entries}, {"ids", std::move(ids)}, {"rows", std::move(rows)}};
  }
  Json all = {
      {"rows", counts.rows}, {"domains", std::move(domains)}, {"tables", std::move(tables)}};
  writeFile(file, toText(all) + "\n");
}

/// What --ids-out writes.
static void countLookups(const genrec_model_desc &model, const Flags &flags,
                         const std::vector<DomainFacts> &facts) {
  refuseOverwriting(model, flags);
  requireWritable("--ids-out", flags.idsOut);
  SessionOptions one;
  one.threads = 1;
  Session session(model, one);
  Mode mode = static_cast<Mode>(programOf(model).mode);
  Dataset data(model, {&programOf(model)}, flags.data, datasetOptions(flags, 1));
  Progress progress("none", 0);
  loadCatalogues(session, flags, {mode}, progress);
  EpochOptions options;
  options.batch = flags.batch;
  auto source = data.epoch(options);
  writeLookupCounts(model, session.countLookups(mode, *source), facts, flags.idsOut);
}

Json dataJson(const genrec_model_desc &model, const Flags &flags) {
  Dataset data(model, {&programOf(model)}, flags.data, datasetOptions(flags, 1));
  EpochOptions options;
  options.batch = flags.batch;
  std::vector<DomainFacts> facts(static_cast<size_t>(model.domain_count));
  TableIds ids;
  Batch batch(model);
  auto source = data.epoch(options);
  while (source->next(batch)) {
    count(model, batch, facts);
    collectIds(model, batch, ids);
    batch.reset();
  }
  countCatalogues(model, flags, facts, ids);
  if (!flags.idsOut.empty())
    countLookups(model, flags, facts);

  Json domains = Json::array();
  std::string rows, longest, dataset, tables;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    const DomainFacts &fact = facts[i];
    if (domain.kind == GENREC_DOMAIN_STEP || fact.largest == 0)
      continue;
    Json entry = {{"name", domain.name}, {"rows", fact.rows}, {"largest_batch", fact.largest}};
    std::string name = std::string(domain.name) + "=";
    bool isData = domain.kind == GENREC_DOMAIN_DATA;
    if (domain.parent >= 0) {
      entry["longest"] = fact.longest;
      if (isData)
        longest = join(longest, name + std::to_string(fact.longest));
    }
    if (domain.parent >= 0 || !isData)
      rows = join(rows, name + std::to_string(fact.largest));
    if (isData)
      dataset = join(dataset, name + std::to_string(fact.rows));
    domains.push_back(entry);
  }
  Json distinct = Json::object();
  for (const auto &[table, known] : ids) {
    distinct[table] = known.size();
    tables = join(tables, table + "=" + std::to_string(known.size()));
  }
  std::string explain = "--batch=" + std::to_string(flags.batch);
  for (const auto &[flag, value] :
       {std::pair(" --longest=", longest), std::pair(" --rows=", rows),
        std::pair(" --ids=", tables), std::pair(" --dataset=", dataset)})
    explain += value.empty() ? "" : flag + value;
  return {{"files", data.files()},
          {"batch", flags.batch},
          {"domains", domains},
          {"distinct_ids", distinct},
          {"explain", explain}};
}

} // namespace genrec::rt
