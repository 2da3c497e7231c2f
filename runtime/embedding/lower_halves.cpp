//===- lower_halves.cpp - What hot rows keep beside bfloat16 --------------===//

#include "genrec_rt/error.h"
#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/store.h"

#include <cstring>

namespace genrec::rt {

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

LowerHalves::~LowerHalves() {
  for (char *chunk : chunks)
    freeAligned(chunk, blocksPerChunk() * bytes);
}

uint16_t *LowerHalves::take() {
  const std::lock_guard lock(mutex);
  ++taken;
  uint16_t *block;
  if (!given.empty()) {
    block = given.back();
    given.pop_back();
  } else {
    if (used == static_cast<int64_t>(chunks.size()) * blocksPerChunk()) {
      chunks.push_back(static_cast<char *>(allocateZeroed(blocksPerChunk() * bytes)));
      given.reserve(chunks.size() * static_cast<size_t>(blocksPerChunk()));
    }
    char *chunk = chunks[static_cast<size_t>(used / blocksPerChunk())];
    block = reinterpret_cast<uint16_t *>(chunk + used % blocksPerChunk() * bytes);
    ++used;
  }
  std::memset(block, 0, static_cast<size_t>(bytes));
  return block;
}

void LowerHalves::give(uint16_t *block) {
  --taken;
  given.push_back(block);
}

void LowerHalves::clear() {
  taken = used = 0;
  given.clear();
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

void TableStore::readHalves(const StoreStream &, float *const *, int64_t, float *) const {
  throw Error("a store without hot rows is asked for their halves");
}

void TableStore::writeHalves(const StoreStream &, float *const *, int64_t, const float *) {
  throw Error("a store without hot rows is given their halves");
}

void TableStore::settleHot(const StoreStream &, float *const *, int64_t) {}

void EmbeddingStore::readHalves(const StoreStream &, float *const *rows, int64_t count,
                                float *to) const {
  for (int64_t row = 0; row < count; ++row) {
    const kernels::Bf16 *upper = kernels::bf16Values(rows[row]);
    const uint16_t *lower = lowerOf(rows[row]);
    for (int64_t i = 0; i < config.dim; ++i)
      to[row * config.dim + i] = kernels::joined(upper[i], lower ? lower[i] : 0, lower);
  }
}

void EmbeddingStore::writeHalves(const StoreStream &, float *const *rows, int64_t count,
                                 const float *from) {
  for (int64_t row = 0; row < count; ++row) {
    kernels::Bf16 *upper = kernels::bf16Values(rows[row]);
    uint16_t *lower = lowerOf(rows[row]);
    for (int64_t i = 0; i < config.dim; ++i) {
      const float value = from[row * config.dim + i];
      upper[i] = kernels::upperHalf(value, lower);
      if (lower)
        lower[i] = kernels::lowerHalf(value, true);
    }
  }
}

void EmbeddingStore::settleHot(const StoreStream &, float *const *rows, int64_t count) {
  for (int64_t row = 0; row < count; ++row) {
    uint16_t *&lower = lowerOf(rows[row]);
    const bool isHot = config.rules.isHot(sightingOf(rows[row]).steps);
    if (isHot == (lower != nullptr))
      continue;
    if (!isHot)
      lowerHalves.give(lower);
    lower = isHot ? lowerHalves.take() : nullptr;
  }
}

} // namespace genrec::rt
