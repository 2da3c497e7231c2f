//===- item_sets.h - A set of items per query, within a launch ----*- C++ -*-===//
//
// List l of a domain has the slots [2 o(l), 2 o(l + 1)) of a hash table, with o the
// offsets, so no set is more than half full. Which of several equal items comes first is
// no matter of results: they are equal.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ITEM_SETS_H
#define GENREC_RT_KERNELS_CUDA_ITEM_SETS_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::cuda {

/// Sets of the lists of a domain: `slots` has two words per row, all bits set before.
struct ItemSets {
  static constexpr Word kFree = ~Word(0);
  const genrec_domain *lists;
  Word *slots;

  struct Place {
    Word *slot;
    bool isNew;
  };

  /// Puts an item into the set of `list`; `isNew` for one thread of those that put it.
  __device__ Place insert(int64_t list, int64_t item) const {
    return search(list, item, [](Word *slot, Word there, Word wanted) {
      return there == kFree ? atomicCAS(slot, kFree, wanted) : there;
    });
  }
  /// The slot of an item, null where the set lacks it; of sets that no thread adds to.
  __device__ const Word *find(int64_t list, int64_t item) const {
    const Place place = search(list, item, [](Word *, Word there, Word) { return there; });
    return place.isNew ? nullptr : place.slot;
  }

private:
  template <class Claim>
  __device__ Place search(int64_t list, int64_t item, const Claim &claim) const {
    const int64_t begin = 2 * lists->offsets[list], size = 2 * lists->offsets[list + 1] - begin;
    const auto wanted = static_cast<Word>(item);
    if (size == 0)
      return {nullptr, true};
    const uint64_t hash = splitMix64(static_cast<uint64_t>(item)) >> 32;
    int64_t at = static_cast<int64_t>(hash * static_cast<uint64_t>(size) >> 32);
    while (true) {
      Word *slot = slots + begin + at;
      const Word there = claim(slot, loadRelaxed(slot), wanted);
      if (there == kFree || there == wanted)
        return {slot, there == kFree};
      at = at + 1 < size ? at + 1 : 0;
    }
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ITEM_SETS_H
