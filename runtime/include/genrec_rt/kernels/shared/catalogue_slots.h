//===- catalogue_slots.h - The hash table of a catalogue's ids --*- C++ -*-===//
//
// Built on the host (embedding/catalogue_index.h), searched there and on devices.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_CATALOGUE_SLOTS_H
#define GENREC_RT_KERNELS_SHARED_CATALOGUE_SLOTS_H

#include "genrec_rt/identity.h"

#include <cstdint>

namespace genrec::rt {

struct CatalogueSlot {
  int64_t id = 0;
  int64_t row = -1; ///< -1: empty
};

/// Slots on the host or in the memory of a device: `count`, a power of two, are at most half full.
struct CatalogueSlots {
  const CatalogueSlot *slots = nullptr;
  uint64_t count = 0;
  uint64_t seed = 0; ///< of where ids go

  constexpr uint64_t home(int64_t id) const {
    return splitMix64(static_cast<uint64_t>(id) ^ seed) & (count - 1);
  }
  /// The slot of `id`, or the empty one where it would be.
  constexpr uint64_t find(int64_t id) const {
    uint64_t at = home(id);
    while (slots[at].row >= 0 && slots[at].id != id)
      at = (at + 1) & (count - 1);
    return at;
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_KERNELS_SHARED_CATALOGUE_SLOTS_H
