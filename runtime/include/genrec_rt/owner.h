//===- owner.h - Which rank owns a row of a sharded table --------*- C++ -*-===//
//
// A row's slice is the high bits of a hash of its logical table's name and its id; ranks own runs of
// slices. The hash is fixed, published (XXH3) and not the store's: neither the merging of
// tables nor the seed of a store nor the number of ranks changes a slice, so checkpoints sort rows by it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_OWNER_H
#define GENREC_RT_OWNER_H

#include "genrec_rt/slices.h"

#include <cstdint>
#include <string_view>

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace genrec::rt {

/// What the slices of a table's rows are drawn by.
inline uint64_t hashTableName(std::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

/// The slice, 0 to kSlices - 1, of row `id` of the table whose name hashes to `table`.
inline int32_t getSlice(uint64_t table, int64_t id) {
  return static_cast<int32_t>(XXH3_64bits_withSeed(&id, sizeof id, table) >> (64 - kSliceBits));
}

} // namespace genrec::rt

#endif // GENREC_RT_OWNER_H
