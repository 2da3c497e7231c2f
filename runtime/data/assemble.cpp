//===- assemble.cpp - From chunks to batches ------------------------------===//

#include "assemble.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

/// memcpy that may be given null for no bytes: what an empty vector's data() is.
void copyBytes(void *to, const void *from, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

} // namespace

Assembler::Assembler(const genrec_model_desc &model, const std::vector<char> &domains,
                     const std::vector<char> &features, int32_t root)
    : model(model), domains(domains), features(features), root(root), ranges(model.domain_count) {}

void Assembler::assemble(const RowRef *refs, int64_t count, Batch &batch) {
  // A model with key columns has more features than the session's.
  if (batch.columns.size() < features.size())
    batch.columns.resize(features.size());
  batch.rows = count;
  int64_t *positions = batch.positions.ensure(std::max<int64_t>(count, 1));
  Ranges &rows = ranges[root];
  rows.begin.ensure(count + 1);
  rows.end.ensure(count + 1);
  for (int64_t i = 0; i < count; ++i) {
    positions[i] = refs[i].chunk->firstPosition + refs[i].row;
    rows.begin[i] = refs[i].row;
    rows.end[i] = refs[i].row + 1;
  }
  batch.domains[root].given = true;
  batch.domains[root].count = count;
  // Parents come before their children.
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (domains[i] && i != root)
      gatherDomain(i, refs, count, batch);
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (features[i])
      gatherColumn(i, refs, count, batch);
}

void Assembler::gatherDomain(int32_t domain, const RowRef *refs, int64_t count, Batch &batch) {
  const Ranges &parents = ranges[model.domains[domain].parent];
  Ranges &rows = ranges[domain];
  rows.begin.ensure(count + 1);
  rows.end.ensure(count + 1);
  DomainBatch &to = batch.domains[domain];
  int64_t parentRows = batch.domains[model.domains[domain].parent].count;
  int64_t *offsets = to.offsets.ensure(parentRows + 1);
  int64_t at = 0, total = 0;
  offsets[at++] = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> &from = refs[i].chunk->domains[domain].offsets;
    int64_t begin = parents.begin[i], end = parents.end[i];
    rows.begin[i] = from[begin];
    rows.end[i] = from[end];
    for (int64_t parent = begin; parent < end; ++parent)
      offsets[at++] = total + from[parent + 1] - from[begin];
    total += from[end] - from[begin];
  }
  to.given = true;
  to.count = total;
}

void Assembler::gatherColumn(int32_t feature, const RowRef *refs, int64_t count, Batch &batch) {
  const genrec_feature_desc &desc = model.features[feature];
  const Ranges &rows = ranges[desc.domain];
  ColumnBatch &to = batch.columns[feature];
  int64_t total = batch.domains[desc.domain].count;
  int64_t room = columnRows(total);
  to.given = true;
  to.hasNulls = false;
  for (int64_t i = 0; i < count && !to.hasNulls; ++i)
    to.hasNulls = !refs[i].chunk->columns[feature].valid.empty();
  if (to.hasNulls) {
    uint8_t *valid = to.valid.ensure(room);
    for (int64_t i = 0; i < count; ++i) {
      const std::vector<uint8_t> &from = refs[i].chunk->columns[feature].valid;
      int64_t begin = rows.begin[i], length = rows.end[i] - begin;
      if (from.empty())
        std::memset(valid, 1, static_cast<size_t>(length));
      else
        copyBytes(valid, from.data() + begin, length);
      valid += length;
    }
    std::memset(valid, 0, static_cast<size_t>(room - total));
  }
  if (desc.type == GENREC_STRING)
    return gatherStrings(feature, refs, count, to);
  int64_t size = elementBytes(desc.type);
  char *values = to.values.ensure(room * size);
  for (int64_t i = 0; i < count; ++i) {
    int64_t begin = rows.begin[i], length = rows.end[i] - begin;
    copyBytes(values, refs[i].chunk->columns[feature].values.data() + begin * size, length * size);
    values += length * size;
  }
  // What lies between count and capacity is zero, so that kernels may read it.
  std::memset(values, 0, static_cast<size_t>((room - total) * size));
}

void Assembler::gatherStrings(int32_t feature, const RowRef *refs, int64_t count, ColumnBatch &to) {
  const Ranges &rows = ranges[model.features[feature].domain];
  int64_t bytes = 0, total = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::vector<int64_t> &offsets = refs[i].chunk->columns[feature].stringOffsets;
    bytes += offsets[rows.end[i]] - offsets[rows.begin[i]];
    total += rows.end[i] - rows.begin[i];
  }
  int64_t room = columnRows(total);
  char *text = to.bytes.ensure(bytes + 1);
  auto *views = reinterpret_cast<genrec_string *>(
      to.values.ensure(room * static_cast<int64_t>(sizeof(genrec_string))));
  for (int64_t i = 0; i < count; ++i) {
    const ChunkColumn &from = refs[i].chunk->columns[feature];
    int64_t first = from.stringOffsets[rows.begin[i]];
    for (int64_t row = rows.begin[i]; row < rows.end[i]; ++row)
      *views++ = {text + (from.stringOffsets[row] - first),
                  from.stringOffsets[row + 1] - from.stringOffsets[row]};
    int64_t size = from.stringOffsets[rows.end[i]] - first;
    copyBytes(text, from.bytes.data() + first, size);
    text += size;
  }
  for (int64_t i = total; i < room; ++i)
    *views++ = {text, 0};
}

} // namespace genrec::rt
