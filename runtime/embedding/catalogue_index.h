//===- catalogue_index.h - Rows of a catalogue by id -------------*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H
#define GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H

#include <cstdint>
#include <vector>

namespace genrec::rt {

/// A hash table from the ids of a catalogue column to their row numbers, built
/// once. Safe to read from several threads.
class CatalogueIndex {
public:
  /// Throws Error, naming the id and both rows, where an id occurs twice.
  CatalogueIndex(const int64_t *ids, int64_t count);

  /// The row of `id`, -1 where the catalogue lacks it.
  int64_t find(int64_t id) const;

private:
  struct Slot {
    int64_t id;
    int64_t row; ///< -1: empty
  };

  std::vector<Slot> slots; ///< a power of two, at most half full
};

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_CATALOGUE_INDEX_H
