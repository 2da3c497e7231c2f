//===- decode.cpp - From Arrow tables to chunks ---------------------------===//

#include "decode.h"

#include "../core/text.h"
#include "decode_memory.h"
#include "genrec_rt/batch.h"
#include "genrec_rt/error.h"
#include "key_values.h"
#include "leaf_values.h"
#include "padding.h"
#include "vector_values.h"

#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/table.h>

#include <algorithm>

namespace genrec::rt {

namespace {

using arrow::Type;

/// A position on the way from a table's column down to its leaf.
struct Walk {
  std::shared_ptr<arrow::Array> array;
  std::vector<uint8_t> valid;               ///< enclosing structs; empty: all valid
  std::vector<std::vector<int64_t>> levels; ///< offsets of the lists passed
};

std::shared_ptr<arrow::Array> oneArray(const arrow::ChunkedArray &chunked) {
  if (chunked.num_chunks() == 1)
    return chunked.chunk(0);
  if (chunked.num_chunks() == 0)
    return *arrow::MakeEmptyArray(chunked.type(), decodeMemory());
  auto joined = arrow::Concatenate(chunked.chunks(), decodeMemory());
  if (!joined.ok())
    throw Error("cannot join the pieces of a column: " + joined.status().message());
  return *joined;
}

/// Offsets from 0 of a list array, and the elements they cover.
template <class List> void enterTyped(Walk &walk) {
  const auto &list = static_cast<const List &>(*walk.array);
  std::vector<int64_t> offsets(list.length() + 1);
  int64_t first = list.value_offset(0);
  for (int64_t i = 0; i <= list.length(); ++i)
    offsets[i] = list.value_offset(i) - first;
  int64_t count = offsets[list.length()];
  walk.levels.push_back(std::move(offsets));
  walk.array = list.values()->Slice(first, count);
  walk.valid.clear();
}

void enterList(Walk &walk) {
  switch (walk.array->type_id()) {
  case Type::LARGE_LIST:
    return enterTyped<arrow::LargeListArray>(walk);
  case Type::FIXED_SIZE_LIST:
    if (walk.array->null_count() > 0)
      throw Error("a list of fixed size is null",
                  "write the column as lists of any size: a null list is an empty one");
    return enterTyped<arrow::FixedSizeListArray>(walk);
  default:
    return enterTyped<arrow::ListArray>(walk);
  }
}

void enterField(Walk &walk, const std::string &name) {
  const auto &structs = static_cast<const arrow::StructArray &>(*walk.array);
  if (structs.null_count() > 0) {
    if (walk.valid.empty())
      walk.valid.assign(structs.length(), 1);
    for (int64_t i = 0; i < structs.length(); ++i)
      walk.valid[i] = walk.valid[i] && structs.IsValid(i);
  }
  int index = structs.struct_type()->GetFieldIndex(name);
  walk.array = structs.field(index);
}

/// Enters `depth` lists; deeper ones are rows of other domains, or vectors.
Walk followPath(const arrow::Table &table, const ColumnPath &path, int32_t depth) {
  Walk walk{oneArray(*table.GetColumnByName(path.names[0])), {}, {}};
  auto enterLists = [&] {
    while (walk.levels.size() < static_cast<size_t>(depth) && isList(*walk.array->type()))
      enterList(walk);
  };
  for (size_t i = 1; i < path.names.size(); ++i) {
    enterLists();
    enterField(walk, path.names[i]);
  }
  enterLists();
  return walk;
}

class Decoder {
public:
  Decoder(const genrec_model_desc &model, const FilePlan &plan, const arrow::Table &table,
          const RowGroupLocation &location, OrderWatch &order)
      : model(model), plan(plan), table(table), location(location), order(order) {
    chunk.rows = table.num_rows();
    chunk.domains.resize(model.domain_count);
    chunk.columns.resize(model.feature_count);
    chunk.domains[plan.root] = {true, chunk.rows, {}};
    openedBy.resize(model.domain_count);
  }

  Chunk run() {
    for (int32_t i = 0; i < model.domain_count; ++i)
      if (plan.readDomain[i] && i != plan.root)
        readDomain(i);
    for (int32_t i = 0; i < model.feature_count; ++i)
      if (plan.readFeature[i])
        readFeature(i);
    dropPadding(model, plan.readFeature, chunk);
    for (int32_t i = 0; i < model.feature_count; ++i)
      if (plan.readFeature[i])
        checkFeature(i);
    return std::move(chunk);
  }

private:
  Error inColumn(const char *column, const Error &error) const {
    return Error(location.file + ", row group " + std::to_string(location.group) + ": column '" +
                     column + "': " + error.what(),
                 error.help());
  }

  /// Down to the values of `column`, rows of `domain`.
  Walk follow(const ColumnPath &path, const char *column, int32_t domain) const {
    try {
      return followPath(table, path, domainDepth(model, domain));
    } catch (const Error &error) {
      throw inColumn(column, error);
    }
  }

  /// Sets the offsets of the domains that the lists of one path open, the innermost for `domain`.
  /// All paths of a domain must have equal offsets.
  void keepOffsets(int32_t domain, std::vector<std::vector<int64_t>> levels, const char *path) {
    for (; !levels.empty(); domain = model.domains[domain].parent) {
      ChunkDomain &rows = chunk.domains[domain];
      if (!rows.given) {
        rows.given = true;
        rows.count = levels.back().back();
        rows.offsets = std::move(levels.back());
        openedBy[domain] = path;
      } else if (rows.offsets != levels.back()) {
        throwUneven(domain, levels.back(), path);
      }
      levels.pop_back();
    }
  }

  [[noreturn]] void throwUneven(int32_t domain, const std::vector<int64_t> &offsets,
                                const char *path) {
    const std::vector<int64_t> &known = chunk.domains[domain].offsets;
    size_t at = 0;
    while (at < known.size() && at < offsets.size() && known[at] == offsets[at])
      ++at;
    auto lengthAt = [&](const std::vector<int64_t> &from) {
      return at == 0 || at >= from.size() ? 0 : from[at] - from[at - 1];
    };
    int64_t row = rootRow(model.domains[domain].parent, static_cast<int64_t>(at) - 1);
    throw Error(location.row(row) + ": list columns '" + openedBy[domain] + "' and '" + path +
                    "' of domain '" + model.domains[domain].name + "' have " +
                    std::to_string(lengthAt(known)) + " and " + std::to_string(lengthAt(offsets)) +
                    " entries",
                "columns of one list must be equally long; give the other a domain of its own");
  }

  void readDomain(int32_t domain) {
    const char *path = model.domains[domain].column;
    keepOffsets(domain, follow(plan.domainPaths[domain], path, domain).levels, path);
  }

  /// The root row above a row of `domain`, before or after padding is dropped.
  int64_t rootRow(int32_t domain, int64_t row) const {
    for (; domain != plan.root; domain = model.domains[domain].parent) {
      const std::vector<int64_t> &offsets = chunk.domains[domain].offsets;
      row = std::upper_bound(offsets.begin(), offsets.end(), row) - offsets.begin() - 1;
    }
    return row;
  }

  void readFeature(int32_t index) {
    const genrec_feature_desc &feature = model.features[index];
    Walk walk = follow(plan.featurePaths[index], feature.column, feature.domain);
    keepOffsets(feature.domain, std::move(walk.levels), feature.column);
    ChunkColumn &column = chunk.columns[index];
    const std::vector<uint8_t> *parentValid = walk.valid.empty() ? nullptr : &walk.valid;
    if (feature.width > 0)
      return convertVectors(*walk.array, parentValid, feature.type, feature.width,
                            [&](int64_t row) { return at(index, row); }, column);
    try {
      convertLeaf(*walk.array, parentValid, feature.type, column);
      if (feature.type == GENREC_KEY)
        widenKey(column, *plainType(walk.array->type()), *(*plan.keyTypes)[index]);
    } catch (const Error &error) {
      throw inColumn(feature.column, error);
    }
    bool isTime = walk.array->type_id() == Type::TIMESTAMP;
    if (isTime && feature.type == GENREC_I64 && feature.domain != plan.root)
      checkOrder(index);
  }

  /// Histories are oldest first: lists whose times fall are counted.
  void checkOrder(int32_t index) {
    int32_t domain = model.features[index].domain;
    const std::vector<int64_t> &offsets = chunk.domains[domain].offsets;
    const auto *times = reinterpret_cast<const int64_t *>(chunk.columns[index].values.data());
    int64_t lists = 0, first = -1;
    for (size_t list = 0; list + 1 < offsets.size(); ++list)
      if (!std::is_sorted(times + offsets[list], times + offsets[list + 1])) {
        if (lists++ == 0)
          first = static_cast<int64_t>(list);
      }
    if (lists > 0)
      order.count(index, lists, location.row(rootRow(model.domains[domain].parent, first)));
  }

  std::string at(int32_t feature, int64_t row) const {
    return location.row(rootRow(model.features[feature].domain, row)) + ": feature '" +
           model.features[feature].column + "'";
  }

  void checkFeature(int32_t index) {
    const genrec_feature_desc &feature = model.features[index];
    const ChunkColumn &column = chunk.columns[index];
    if (!feature.nullable && !column.valid.empty()) {
      auto null = std::find(column.valid.begin(), column.valid.end(), uint8_t(0));
      bool isThroughout = plan.featurePaths[index].type->id() == Type::NA;
      if (null != column.valid.end())
        throw Error(at(index, null - column.valid.begin()) + " is null" +
                        (isThroughout ? ", as the whole column, which has Arrow's type null" : ""),
                    "declare the column nullable in the schema, or fill it when the data is "
                    "written");
    }
    if (feature.id_bits > 0 && feature.type == GENREC_I64)
      checkIds<int64_t>(index);
    else if (feature.id_bits > 0 && feature.type == GENREC_I32)
      checkIds<int32_t>(index);
  }

  template <class Id> void checkIds(int32_t index) {
    const genrec_feature_desc &feature = model.features[index];
    const ChunkColumn &column = chunk.columns[index];
    const Id *ids = reinterpret_cast<const Id *>(column.values.data());
    int64_t count = chunk.domains[feature.domain].count;
    for (int64_t row = 0; row < count; ++row) {
      auto id = static_cast<int64_t>(ids[row]);
      bool isBad = id < 0 || (feature.id_bits < 63 && id >> feature.id_bits != 0);
      if (!isBad || (!column.valid.empty() && !column.valid[row]))
        continue;
      std::string bits = std::to_string(feature.id_bits);
      std::string owner =
          feature.table ? std::string(" of table '") + feature.table + "'" : " of the feature";
      bool isInList = model.domains[feature.domain].parent >= 0;
      std::string dropping = isInList ? ", or have it dropped: gr.int64.padded(" +
                                            std::to_string(id) + ") in the schema"
                                      : "";
      throw Error(at(index, row) + " has id " + std::to_string(id) + ", " +
                      (id < 0 ? "below 0" : "beyond the " + bits + " bits" + owner),
                  "hash it (gr.hash(feature, bits=" + bits + "))" +
                      (id < 0 ? dropping : ", or declare the table with more id_bits"));
    }
  }

  const genrec_model_desc &model;
  const FilePlan &plan;
  const arrow::Table &table;
  const RowGroupLocation &location;
  OrderWatch &order;
  Chunk chunk;
  std::vector<std::string> openedBy; ///< per domain, the path its offsets came from
};

} // namespace

std::string RowGroupLocation::row(int64_t row) const {
  return file + ", row group " + std::to_string(group) + ", row " + withThousands(row);
}

OrderWatch::OrderWatch(const genrec_model_desc &model)
    : model(model), entries(model.feature_count) {}

void OrderWatch::count(int32_t feature, int64_t lists, const std::string &first) {
  std::lock_guard<std::mutex> lock(mutex);
  Entry &entry = entries[feature];
  if (entry.lists == 0)
    entry.first = first;
  entry.lists += lists;
}

std::vector<std::string> OrderWatch::warnings() const {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<std::string> texts;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].lists > 0)
      texts.push_back(std::string("column '") + model.features[i].column +
                      "': " + withThousands(entries[i].lists) +
                      " lists are not oldest first (one of them: " + entries[i].first +
                      "); negative time differences count as 0");
  return texts;
}

Chunk decodeTable(const genrec_model_desc &model, const FilePlan &plan, const arrow::Table &table,
                  const RowGroupLocation &location, OrderWatch &order) {
  return Decoder(model, plan, table, location, order).run();
}

} // namespace genrec::rt
