//===- batch.cpp - Batches made from plain vectors ------------------------===//

#include "genrec_rt/batch.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

int64_t elementBytes(int32_t type) {
  switch (type) {
  case GENREC_I1:
  case GENREC_VALID:
    return 1;
  case GENREC_BF16:
    return 2;
  case GENREC_I32:
  case GENREC_F32:
    return 4;
  case GENREC_STRING:
  case GENREC_KEY:
    return sizeof(genrec_string);
  default:
    return 8;
  }
}

int64_t rowBytes(const genrec_feature_desc &feature) {
  return elementBytes(feature.type) * std::max<int64_t>(feature.width, 1);
}

int32_t rootDomain(const genrec_model_desc &model, int32_t domain) {
  while (model.domains[domain].parent >= 0)
    domain = model.domains[domain].parent;
  return domain;
}

int32_t domainDepth(const genrec_model_desc &model, int32_t domain) {
  int32_t depth = 0;
  for (; model.domains[domain].parent >= 0; ++depth)
    domain = model.domains[domain].parent;
  return depth;
}

BatchBuilder::BatchBuilder(const genrec_model_desc &model)
    : model(model), batch(model), counts(model.feature_count), offsetCounts(model.domain_count, 0) {
}

int32_t BatchBuilder::domainIndex(const std::string &name) const {
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (name == model.domains[i].name)
      return i;
  throw Error("the model has no domain '" + name + "'");
}

int32_t BatchBuilder::featureIndex(const std::string &path) const {
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (path == model.features[i].column)
      return i;
  throw Error("the model has no feature '" + path + "'");
}

BatchBuilder &BatchBuilder::rows(const std::string &domain, int64_t count, int64_t firstPosition) {
  DomainBatch &root = batch.domains[domainIndex(domain)];
  root.given = true;
  root.count = count;
  batch.rows = count;
  int64_t *positions = batch.positions.ensure(std::max<int64_t>(count, 1));
  for (int64_t row = 0; row < count; ++row)
    positions[row] = firstPosition + row;
  return *this;
}

BatchBuilder &BatchBuilder::offsets(const std::string &domain,
                                    const std::vector<int64_t> &offsets) {
  DomainBatch &rows = batch.domains[domainIndex(domain)];
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end()))
    throw Error("offsets of domain '" + domain + "' must start at 0 and never fall");
  std::copy(offsets.begin(), offsets.end(),
            rows.offsets.ensure(static_cast<int64_t>(offsets.size())));
  offsetCounts[domainIndex(domain)] = static_cast<int64_t>(offsets.size());
  rows.given = true;
  rows.count = offsets.back();
  return *this;
}

ColumnBatch &BatchBuilder::newColumn(int32_t feature, int64_t count,
                                     const std::vector<uint8_t> &valid) {
  if (!valid.empty() && static_cast<int64_t>(valid.size()) != count)
    throw Error("feature '" + std::string(model.features[feature].column) + "' has " +
                std::to_string(count) + " values and " + std::to_string(valid.size()) +
                " validity bytes");
  counts[feature] = count;
  batch.columns[feature].given = true;
  ColumnBatch &column = batch.columns[feature];
  int64_t room = capacityBucket(std::max<int64_t>(count, 1));
  int64_t bytes = room * rowBytes(model.features[feature]);
  std::memset(column.values.ensure(bytes), 0, static_cast<size_t>(bytes));
  column.hasNulls = !valid.empty();
  if (column.hasNulls) {
    std::memset(column.valid.ensure(room), 0, static_cast<size_t>(room));
    std::transform(valid.begin(), valid.end(), column.valid.data(),
                   [](uint8_t byte) -> uint8_t { return byte != 0; }); // kernels read them as bool
  }
  return column;
}

BatchBuilder &BatchBuilder::columnBytes(const std::string &path, const void *values,
                                        size_t elementSize, int64_t count,
                                        const std::vector<uint8_t> &valid) {
  int32_t index = featureIndex(path);
  const genrec_feature_desc &feature = model.features[index];
  if (static_cast<int64_t>(elementSize) != elementBytes(feature.type))
    throw Error("feature '" + path + "' holds values of " +
                std::to_string(elementBytes(feature.type)) + " bytes, got " +
                std::to_string(elementSize));
  int64_t width = std::max<int64_t>(feature.width, 1);
  if (count % width != 0)
    throw Error("feature '" + path + "' holds " + std::to_string(width) + " values per row, got " +
                std::to_string(count) + " in all");
  ColumnBatch &column = newColumn(index, count / width, valid);
  if (count > 0)
    std::memcpy(column.values.data(), values, static_cast<size_t>(count) * elementSize);
  return *this;
}

BatchBuilder &BatchBuilder::strings(const std::string &path, const std::vector<std::string> &values,
                                    const std::vector<uint8_t> &valid) {
  int32_t feature = featureIndex(path);
  int64_t bytes = 1;
  for (const std::string &value : values)
    bytes += static_cast<int64_t>(value.size());
  ColumnBatch &column = newColumn(feature, static_cast<int64_t>(values.size()), valid);
  char *to = column.bytes.ensure(bytes);
  auto *views = reinterpret_cast<genrec_string *>(column.values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(to, values[i].data(), values[i].size());
    views[i] = {to, static_cast<int64_t>(values[i].size())};
    to += values[i].size();
  }
  return *this;
}

Batch BatchBuilder::take() {
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    if (domain.parent < 0 || !batch.domains[i].given)
      continue;
    int64_t parents = batch.domains[domain.parent].count;
    if (offsetCounts[i] != parents + 1)
      throw Error("domain '" + std::string(domain.name) + "' needs " + std::to_string(parents + 1) +
                  " offsets, one per row of '" + model.domains[domain.parent].name + "' plus one");
  }
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    int64_t rows = batch.domains[feature.domain].count;
    if (batch.columns[i].given && counts[i] != rows)
      throw Error("feature '" + std::string(feature.column) + "' has " + std::to_string(counts[i]) +
                  " values for " + std::to_string(rows) + " rows of '" +
                  model.domains[feature.domain].name + "'");
  }
  return std::move(batch);
}

} // namespace genrec::rt
