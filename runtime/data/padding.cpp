//===- padding.cpp - Dropping padding from lists --------------------------===//

#include "padding.h"

#include "genrec_rt/batch.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

/// One byte per row of a domain: 1 is kept. Empty: all are.
using Mask = std::vector<uint8_t>;

template <class Id>
void markPadding(const ChunkColumn &column, int64_t count, int64_t padding, Mask &mask) {
  const Id *ids = reinterpret_cast<const Id *>(column.values.data());
  for (int64_t row = 0; row < count; ++row) {
    bool isNull = !column.valid.empty() && !column.valid[row];
    if (isNull || static_cast<int64_t>(ids[row]) != padding)
      continue;
    if (mask.empty())
      mask.assign(count, 1);
    mask[row] = 0;
  }
}

/// Rows below dropped rows are dropped as well.
void markBelow(const ChunkDomain &domain, const Mask &parents, Mask &mask) {
  if (parents.empty())
    return;
  if (mask.empty())
    mask.assign(domain.count, 1);
  for (size_t parent = 0; parent < parents.size(); ++parent)
    if (!parents[parent])
      std::fill(mask.begin() + domain.offsets[parent], mask.begin() + domain.offsets[parent + 1],
                uint8_t(0));
}

/// Offsets of the kept rows, one per kept parent plus one.
std::vector<int64_t> keptOffsets(const std::vector<int64_t> &offsets, const Mask &parents,
                                 const Mask &mask) {
  std::vector<int64_t> kept = {0};
  for (size_t parent = 0; parent + 1 < offsets.size(); ++parent) {
    if (!parents.empty() && !parents[parent])
      continue;
    int64_t length = offsets[parent + 1] - offsets[parent];
    if (!mask.empty())
      length = std::count(mask.begin() + offsets[parent], mask.begin() + offsets[parent + 1],
                          uint8_t(1));
    kept.push_back(kept.back() + length);
  }
  return kept;
}

void compactStrings(ChunkColumn &column, const Mask &mask) {
  std::vector<int64_t> offsets = {0};
  std::vector<char> bytes;
  for (size_t row = 0; row < mask.size(); ++row) {
    if (!mask[row])
      continue;
    bytes.insert(bytes.end(), column.bytes.begin() + column.stringOffsets[row],
                 column.bytes.begin() + column.stringOffsets[row + 1]);
    offsets.push_back(static_cast<int64_t>(bytes.size()));
  }
  column.stringOffsets = std::move(offsets);
  column.bytes = std::move(bytes);
}

void compact(ChunkColumn &column, const genrec_feature_desc &feature, const Mask &mask) {
  auto size = static_cast<size_t>(rowBytes(feature));
  int32_t type = feature.type;
  size_t to = 0;
  for (size_t row = 0; row < mask.size(); ++row) {
    if (!mask[row])
      continue;
    if (!hasBytes(type) && to != row)
      std::memcpy(column.values.data() + to * size, column.values.data() + row * size, size);
    if (!column.valid.empty())
      column.valid[to] = column.valid[row];
    ++to;
  }
  if (hasBytes(type))
    compactStrings(column, mask);
  else
    column.values.resize(to * size);
  if (!column.valid.empty())
    column.valid.resize(to);
}

} // namespace

void dropPadding(const genrec_model_desc &model, const std::vector<char> &read, Chunk &chunk) {
  std::vector<Mask> masks(model.domain_count);
  bool any = false;
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    if (!read[i] || !feature.has_padding_id)
      continue;
    Mask &mask = masks[feature.domain];
    int64_t count = chunk.domains[feature.domain].count;
    if (feature.type == GENREC_I32)
      markPadding<int32_t>(chunk.columns[i], count, feature.padding_id, mask);
    else
      markPadding<int64_t>(chunk.columns[i], count, feature.padding_id, mask);
    any |= !mask.empty();
  }
  if (!any)
    return;
  // Parents come before their children, so masks are complete when used.
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (chunk.domains[i].given && model.domains[i].parent >= 0)
      markBelow(chunk.domains[i], masks[model.domains[i].parent], masks[i]);
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (read[i] && !masks[model.features[i].domain].empty())
      compact(chunk.columns[i], model.features[i], masks[model.features[i].domain]);
  for (int32_t i = 0; i < model.domain_count; ++i) {
    ChunkDomain &domain = chunk.domains[i];
    if (!domain.given || model.domains[i].parent < 0)
      continue;
    domain.offsets = keptOffsets(domain.offsets, masks[model.domains[i].parent], masks[i]);
    domain.count = domain.offsets.back();
  }
}

} // namespace genrec::rt
