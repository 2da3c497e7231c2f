//===- catalogue_index.cpp - Rows of a catalogue by id --------------------===//

#include "catalogue_index.h"

#include "genrec_rt/error.h"

#include <bit>

namespace genrec::rt {

CatalogueIndex::CatalogueIndex(const int64_t *ids, int64_t count, uint64_t hashSeed)
    : hashSeed(hashSeed), slots(std::bit_ceil(static_cast<size_t>(count) * 2 + 16)) {
  for (int64_t row = 0; row < count; ++row) {
    CatalogueSlot &slot = slots[view().find(ids[row])];
    if (slot.row >= 0)
      throw Error("id " + std::to_string(ids[row]) + " occurs twice, in rows " +
                      std::to_string(slot.row) + " and " + std::to_string(row),
                  "keep one row per item in the catalogue's file");
    slot = {ids[row], row};
  }
}

int64_t CatalogueIndex::find(int64_t id) const { return slots[view().find(id)].row; }

int64_t CatalogueIndex::slotsRead(int64_t id) const {
  return static_cast<int64_t>((view().find(id) - view().home(id)) & (slots.size() - 1)) + 1;
}

} // namespace genrec::rt
