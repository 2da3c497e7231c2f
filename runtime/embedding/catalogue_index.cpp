//===- catalogue_index.cpp - Rows of a catalogue by id --------------------===//

#include "catalogue_index.h"

#include "genrec_rt/error.h"
#include "genrec_rt/identity.h"

#include <bit>

namespace genrec::rt {

namespace {

inline size_t home(int64_t id, uint64_t seed, size_t slots) {
  return static_cast<size_t>(splitMix64(static_cast<uint64_t>(id) ^ seed)) & (slots - 1);
}

} // namespace

CatalogueIndex::CatalogueIndex(const int64_t *ids, int64_t count, uint64_t hashSeed)
    : hashSeed(hashSeed), slots(std::bit_ceil(static_cast<size_t>(count) * 2 + 16), Slot{0, -1}) {
  for (int64_t row = 0; row < count; ++row) {
    size_t at = home(ids[row], hashSeed, slots.size());
    for (; slots[at].row >= 0; at = (at + 1) & (slots.size() - 1))
      if (slots[at].id == ids[row])
        throw Error("id " + std::to_string(ids[row]) + " occurs twice, in rows " +
                        std::to_string(slots[at].row) + " and " + std::to_string(row),
                    "keep one row per item in the catalogue's file");
    slots[at] = {ids[row], row};
  }
}

int64_t CatalogueIndex::find(int64_t id) const {
  for (size_t at = home(id, hashSeed, slots.size()); slots[at].row >= 0;
       at = (at + 1) & (slots.size() - 1))
    if (slots[at].id == id)
      return slots[at].row;
  return -1;
}

int64_t CatalogueIndex::slotsRead(int64_t id) const {
  int64_t count = 1;
  for (size_t at = home(id, hashSeed, slots.size()); slots[at].row >= 0 && slots[at].id != id;
       at = (at + 1) & (slots.size() - 1))
    ++count;
  return count;
}

} // namespace genrec::rt
