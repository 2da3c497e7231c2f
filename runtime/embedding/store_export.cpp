//===- store_export.cpp - Rows of the host's store, in and out ------------===//

#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/store.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

class HostMemory final : public ArgumentMemory {
public:
  MemoryKind kind() const override { return MemoryKind::host; }
  void *allocate(int64_t bytes, const StoreStream &) const override {
    return ::operator new(static_cast<size_t>(bytes));
  }
  void release(void *memory, int64_t, const StoreStream &) const noexcept override {
    ::operator delete(memory);
  }
  void copyIn(void *to, const void *host, int64_t bytes, const StoreStream &) const override {
    if (bytes > 0)
      std::memcpy(to, host, static_cast<size_t>(bytes));
  }
  void copyOut(void *host, const void *from, int64_t bytes, const StoreStream &on) const override {
    copyIn(host, from, bytes, on);
  }
};

} // namespace

const ArgumentMemory &hostMemory() {
  static const HostMemory memory;
  return memory;
}

void packValues(const float *values, int64_t dim, float *row) {
  row[storeValueFloats(dim, /*isBf16=*/true) - 1] = 0.0F; // what fills it up
  for (int64_t i = 0; i < dim; ++i) {
    const kernels::Bf16 value = kernels::nearestBf16(values[i]);
    std::memcpy(reinterpret_cast<char *>(row) + i * sizeof value, &value, sizeof value);
  }
}

void unpackValues(const float *row, int64_t dim, float *values) {
  for (int64_t i = 0; i < dim; ++i) {
    kernels::Bf16 value;
    std::memcpy(&value, reinterpret_cast<const char *>(row) + i * sizeof value, sizeof value);
    values[i] = kernels::widened(value);
  }
}

std::unique_ptr<TableStore> makeHostStore(const StoreConfig &config) {
  return std::make_unique<EmbeddingStore>(config);
}

int64_t EmbeddingStore::memberRow(int64_t member, int64_t position) const {
  if (config.members.empty() || member < 0)
    return position;
  for (; listedRows < rowCount; ++listedRows)
    memberRows[id(listedRows) >> config.keyBits].push_back(listedRows);
  return memberRows[member][position];
}

void EmbeddingStore::exportRows(const StoreStream &, int64_t member, int64_t first, int64_t count,
                                int64_t *ids, float **rows) const {
  for (int64_t i = 0; i < count; ++i) {
    int64_t number = memberRow(member, first + i);
    if (ids)
      ids[i] = id(number);
    if (rows)
      rows[i] = row(number);
  }
}

void EmbeddingStore::readRows(const StoreStream &, float *const *rows, int64_t count,
                              int64_t offset, int64_t width, float *to) const {
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(rows[i] + offset, width, to + i * width);
}

void EmbeddingStore::writeRows(const StoreStream &, float *const *rows, int64_t count,
                               int64_t offset, int64_t width, const float *from) {
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(from + i * width, width, rows[i] + offset);
}

} // namespace genrec::rt
