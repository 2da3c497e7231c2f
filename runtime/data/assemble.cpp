//===- assemble.cpp - From chunks to batches ------------------------------===//

#include "assemble.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

/// memcpy that takes null pointers for 0 bytes, as data() of an empty vector may be null.
void copyBytes(void *to, const void *from, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

/// Copies rows [begin, end) of `from`; returns where the next go. Rows of a shuffled batch come
/// one at a time.
template <class T> T *copyRows(T *to, const void *from, int64_t begin, int64_t end) {
  const T *values = static_cast<const T *>(from) + begin;
  if (end - begin == 1)
    *to = *values;
  else
    copyBytes(to, values, (end - begin) * static_cast<int64_t>(sizeof(T)));
  return to + (end - begin);
}

} // namespace

Assembler::Assembler(const genrec_model_desc &model, const std::vector<char> &domains,
                     const std::vector<char> &features, int32_t root)
    : model(model), domains(domains), features(features), root(root), ranges(model.domain_count) {}

int32_t Assembler::numberOf(const Chunk *chunk) {
  const auto group = static_cast<size_t>(chunk->number);
  if (group >= seen.size())
    seen.resize(group + 1);
  if (seen[group].batch != batches) {
    seen[group] = {batches, static_cast<int32_t>(chunks.size())};
    chunks.push_back(chunk);
  }
  return seen[group].number;
}

void Assembler::findRuns(const RowRef *refs, int64_t count) {
  int32_t *from = numbers.ensure(count + 1);
  int64_t *begin = ranges[root].begin.ensure(count + 1);
  int64_t *end = ranges[root].end.ensure(count + 1);
  runs = 0;
  rootRows = count;
  ++batches;
  chunks.clear();
  pieces.clear();
  int64_t *row = rowOf.ensure(count + 1);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t number = numberOf(refs[i].chunk);
    row[i] = refs[i].row;
    if (pieces.empty() || pieces.back().number != number)
      pieces.push_back({number, i});
    ++pieces.back().end;
    if (runs > 0 && from[runs - 1] == number && end[runs - 1] == refs[i].row) {
      ++end[runs - 1];
      continue;
    }
    from[runs] = number;
    begin[runs] = refs[i].row;
    end[runs++] = refs[i].row + 1;
  }
}

void Assembler::assemble(const RowRef *refs, int64_t count, Batch &batch) {
  // A model with key columns has more features than the session's.
  if (batch.columns.size() < features.size())
    batch.columns.resize(features.size());
  batch.rows = count;
  int64_t *positions = batch.positions.ensure(std::max<int64_t>(count, 1));
  for (int64_t i = 0; i < count; ++i)
    positions[i] = refs[i].chunk->firstPosition + refs[i].row;
  findRuns(refs, count);
  batch.domains[root].given = true;
  batch.domains[root].count = count;
  // Parents come before their children.
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (domains[i] && i != root)
      gatherDomain(i, batch);
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (features[i])
      gatherColumn(i, batch);
}

void Assembler::gatherDomain(int32_t domain, Batch &batch) {
  const Ranges &parents = ranges[model.domains[domain].parent];
  Ranges &rows = ranges[domain];
  rows.begin.ensure(batch.rows + 1);
  rows.end.ensure(batch.rows + 1);
  DomainBatch &to = batch.domains[domain];
  int64_t parentRows = batch.domains[model.domains[domain].parent].count;
  int64_t *offsets = to.offsets.ensure(parentRows + 1);
  int64_t at = 0, total = 0;
  offsets[at++] = 0;
  for (int64_t i = 0; i < runs; ++i) {
    const std::vector<int64_t> &from = chunkOf(i).domains[domain].offsets;
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

template <class T> void Assembler::copyRuns(int32_t domain, const char *const *from, T *to) const {
  constexpr int64_t kShortRun = 4; // rows, in the mean
  const Ranges &rows = ranges[domain];
  if (domain != root || rootRows >= kShortRun * runs) {
    for (int64_t i = 0; i < runs; ++i)
      to = copyRows(to, from[numbers[i]], rows.begin[i], rows.end[i]);
    return;
  }
  // Shuffled rows one by one: without branches, many loads are under way together.
  T *__restrict behind = to;
  const int64_t *__restrict row = rowOf.data();
  for (const Piece &piece : pieces) {
    const T *__restrict values = reinterpret_cast<const T *>(from[piece.number]);
    for (const T *end = to + piece.end; behind < end;)
      *behind++ = values[*row++];
  }
}

/// Which rows of a column that has nulls are there. A chunk without nulls has no flags.
void Assembler::gatherFlags(int32_t feature, int64_t total, ColumnBatch &to) {
  const int32_t domain = model.features[feature].domain;
  const Ranges &rows = ranges[domain];
  const int64_t room = columnRows(total);
  uint8_t *valid = to.valid.ensure(room);
  bool haveAll = true;
  const char **from = bases.ensure(static_cast<int64_t>(chunks.size()) + 1);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const std::vector<uint8_t> &flags = chunks[i]->columns[feature].valid;
    from[i] = flags.empty() ? nullptr : reinterpret_cast<const char *>(flags.data());
    haveAll &= !flags.empty();
  }
  if (haveAll)
    copyRuns(domain, from, valid);
  else
    for (int64_t i = 0, at = 0; i < runs; at += rows.end[i] - rows.begin[i], ++i)
      if (const char *flags = from[numbers[i]])
        copyRows(valid + at, flags, rows.begin[i], rows.end[i]);
      else
        std::fill_n(valid + at, rows.end[i] - rows.begin[i], uint8_t(1));
  std::fill(valid + total, valid + room, uint8_t(0));
}

void Assembler::gatherColumn(int32_t feature, Batch &batch) {
  const genrec_feature_desc &desc = model.features[feature];
  ColumnBatch &to = batch.columns[feature];
  int64_t total = batch.domains[desc.domain].count;
  int64_t room = columnRows(total);
  to.given = true;
  to.hasNulls = std::any_of(chunks.begin(), chunks.end(), [&](const Chunk *chunk) {
    return !chunk->columns[feature].valid.empty();
  });
  if (to.hasNulls)
    gatherFlags(feature, total, to);
  if (hasBytes(desc.type))
    return gatherStrings(feature, to);
  int64_t size = rowBytes(desc);
  char *values = to.values.ensure(room * size);
  const char **from = bases.ensure(static_cast<int64_t>(chunks.size()) + 1);
  for (size_t i = 0; i < chunks.size(); ++i)
    from[i] = chunks[i]->columns[feature].values.data();
  switch (size) {
  case 1:
    copyRuns(desc.domain, from, reinterpret_cast<uint8_t *>(values));
    break;
  case 2:
    copyRuns(desc.domain, from, reinterpret_cast<uint16_t *>(values));
    break;
  case 4:
    copyRuns(desc.domain, from, reinterpret_cast<uint32_t *>(values));
    break;
  case 8:
    copyRuns(desc.domain, from, reinterpret_cast<uint64_t *>(values));
    break;
  default: // rows of several values
    copyRowsOf(feature, size, values);
  }
  // Rows between count and capacity are zeroed, since kernels may read them.
  std::memset(values + total * size, 0, static_cast<size_t>((room - total) * size));
}

void Assembler::copyRowsOf(int32_t feature, int64_t size, char *to) {
  const Ranges &rows = ranges[model.features[feature].domain];
  for (int64_t i = 0; i < runs; ++i) {
    int64_t bytes = (rows.end[i] - rows.begin[i]) * size;
    copyBytes(to, chunkOf(i).columns[feature].values.data() + rows.begin[i] * size, bytes);
    to += bytes;
  }
}

void Assembler::gatherStrings(int32_t feature, ColumnBatch &to) {
  const Ranges &rows = ranges[model.features[feature].domain];
  int64_t bytes = 0, total = 0;
  for (int64_t i = 0; i < runs; ++i) {
    const std::vector<int64_t> &offsets = chunkOf(i).columns[feature].stringOffsets;
    bytes += offsets[rows.end[i]] - offsets[rows.begin[i]];
    total += rows.end[i] - rows.begin[i];
  }
  int64_t room = columnRows(total);
  char *text = to.bytes.ensure(bytes + 1);
  auto *views = reinterpret_cast<genrec_string *>(
      to.values.ensure(room * static_cast<int64_t>(sizeof(genrec_string))));
  for (int64_t i = 0; i < runs; ++i) {
    const ChunkColumn &from = chunkOf(i).columns[feature];
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
