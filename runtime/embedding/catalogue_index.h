//===- catalogue_index.h - Rows of a catalogue by id -------------*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H
#define GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H

#include "genrec_rt/kernels/shared/catalogue_slots.h"

#include <cstdint>
#include <vector>

namespace genrec::rt {

/// A hash table from the ids of a catalogue column to their row numbers, built
/// once. Safe to read from several threads.
class CatalogueIndex {
public:
  /// Throws Error, naming the id and both rows, where an id occurs twice.
  /// `hashSeed` is where ids go, and shows nowhere.
  CatalogueIndex(const int64_t *ids, int64_t count, uint64_t hashSeed = processHashSeed());

  /// The row of `id`, -1 where the catalogue lacks it.
  int64_t find(int64_t id) const;
  /// How many slots a search for `id` reads, for tests of collisions.
  int64_t slotsRead(int64_t id) const;

  /// The table, to be searched or copied to a device.
  CatalogueSlots view() const { return {slots.data(), slots.size(), hashSeed}; }

private:
  uint64_t hashSeed;
  std::vector<CatalogueSlot> slots;
};

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H
