//===- key_index.h - The distinct keys of a step ----------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_KEY_INDEX_H
#define GENREC_RT_RANKS_KEY_INDEX_H

#include "genrec_rt/error.h"
#include "genrec_rt/identity.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// Numbers distinct keys from 0 on, in the order of first appearance: open addressing, at most half
/// full. `clear` is cheap and keeps the memory.
class KeyIndex {
public:
  KeyIndex() : slots(16) {}

  void clear() {
    distinct.clear();
    if (++step == 0) { // slots of 2^32 steps ago would look like those of this one
      slots.assign(slots.size(), Slot{});
      step = 1;
    }
  }

  /// The number of `key`, which gets the next one where it has none.
  int32_t findOrAdd(int64_t key) {
    size_t at = home(key);
    for (; slots[at].step == step; at = next(at))
      if (slots[at].key == key)
        return slots[at].number;
    if (distinct.size() == kMost)
      throw Error("a step asks for more than " + std::to_string(kMost) +
                      " distinct keys of one store",
                  "use a smaller --batch");
    auto number = static_cast<int32_t>(distinct.size());
    slots[at] = {key, step, number};
    distinct.push_back(key);
    if (distinct.size() * 2 > slots.size())
      grow();
    return number;
  }
  bool contains(int64_t key) const {
    for (size_t at = home(key); slots[at].step == step; at = next(at))
      if (slots[at].key == key)
        return true;
    return false;
  }
  /// Asks for the memory that a search for `key` will read.
  void prefetch(int64_t key) const { __builtin_prefetch(&slots[home(key)], /*rw=*/1); }

  int64_t size() const { return static_cast<int64_t>(distinct.size()); }
  /// By number.
  std::span<const int64_t> keys() const { return distinct; }

private:
  static constexpr size_t kMost = INT32_MAX;

  struct Slot {
    int64_t key = 0;
    uint32_t step = 0; ///< in which it was taken; free in others
    int32_t number = 0;
  };

  size_t home(int64_t key) const {
    return static_cast<size_t>(splitMix64(static_cast<uint64_t>(key) ^ seed)) & (slots.size() - 1);
  }
  size_t next(size_t at) const { return (at + 1) & (slots.size() - 1); }
  void grow() {
    slots.assign(slots.size() * 2, Slot{});
    for (size_t number = 0; number < distinct.size(); ++number) {
      size_t at = home(distinct[number]);
      while (slots[at].step == step)
        at = next(at);
      slots[at] = {distinct[number], step, static_cast<int32_t>(number)};
    }
  }

  uint64_t seed = processHashSeed();
  uint32_t step = 1;
  std::vector<Slot> slots; ///< a power of two
  std::vector<int64_t> distinct;
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_KEY_INDEX_H
