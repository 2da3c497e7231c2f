//===- distinct.cpp - The distinct rows of each of several lookups --------===//
//
// Each list is numbered by itself, with a small hash table of addresses; then the
// lists of distinct rows of a group move together.
//
//===----------------------------------------------------------------------===//

#include "distinct.h"

#include "../core/text.h"
#include "genrec_rt/error.h"
#include "genrec_rt/identity.h"

#include <bit>
#include <cstring>

namespace genrec::rt {

namespace {

int64_t slotsFor(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count) * 2 + 2));
}

/// Numbers the distinct rows of one list; `table` is scratch.
int64_t numberRows(int64_t count, float *const *handles, float **rows, int32_t *index,
                   uint32_t *table) {
  const int64_t slots = slotsFor(count);
  const uint64_t seed = processHashSeed();
  std::memset(table, 0, static_cast<size_t>(slots) * 4);
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    float *row = handles[i];
    // Rows are 64 bytes apart at least, so the low bits of an address say nothing.
    int64_t at =
        static_cast<int64_t>(splitMix64(reinterpret_cast<uintptr_t>(row) >> 6 ^ seed)) &
        (slots - 1);
    while (table[at] && rows[table[at] - 1] != row)
      at = (at + 1) & (slots - 1);
    if (!table[at]) {
      rows[found] = row;
      table[at] = static_cast<uint32_t>(++found);
    }
    index[i] = static_cast<int32_t>(table[at] - 1);
  }
  return found;
}

} // namespace

int64_t distinctBytes(int64_t parts, int64_t capacity) {
  return 8 * (parts + 3) + 4 * parts * capacity;
}

int64_t distinctScratchBytes(int64_t count) { return 4 * slotsFor(count); }

/// Where there is room for the rows of lookup `part`, of `count` handles.
static float **roomFor(const LookupGroups &lookups, int64_t count, int64_t part) {
  size_t group = 0;
  for (; part >= lookups.groups[group]; ++group)
    part -= lookups.groups[group];
  return lookups.rows[group] + part * count;
}

void findDistinct(genrec_rt_pool *pool, int64_t count, const LookupGroups &lookups,
                  const std::function<void *()> &scratch) {
  const int64_t parts = lookups.parts();
  if (count > kMostDistinctRows)
    throw Error("a batch has " + withThousands(count) + " rows of a list whose lookups are "
                "numbered, more than " + withThousands(kMostDistinctRows),
                "use a smaller --batch");
  auto *header = static_cast<int64_t *>(lookups.places);
  header[0] = parts;
  header[1] = count;
  int64_t *starts = header + 2;
  auto *index = reinterpret_cast<int32_t *>(starts + parts + 1);
  parallelFor(pool, parts, 1, [&](int64_t part, int64_t, int64_t) {
    starts[part + 1] =
        numberRows(count, lookups.handles[part], roomFor(lookups, count, part),
                   index + part * count, static_cast<uint32_t *>(scratch()));
  });
  starts[0] = 0;
  int64_t part = 0;
  for (size_t group = 0; group < lookups.groups.size(); ++group) {
    float **to = lookups.rows[group];
    const float *const *from = to;
    for (const int64_t end = part + lookups.groups[group]; part < end; ++part, from += count) {
      const int64_t size = starts[part + 1];
      std::memmove(to, from, static_cast<size_t>(size) * sizeof(float *));
      to += size;
      starts[part + 1] = starts[part] + size;
    }
  }
}

} // namespace genrec::rt
