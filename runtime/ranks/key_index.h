//===- key_index.h - The distinct keys of a step ----------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_KEY_INDEX_H
#define GENREC_RT_RANKS_KEY_INDEX_H

#include "genrec_rt/error.h"
#include "genrec_rt/identity.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// Numbers distinct keys from 0 on, in the order of first appearance: open addressing, at most half
/// full. `clear` is cheap and keeps the memory.
class KeyIndex {
public:
  KeyIndex() : slots(2 * kBlock), distinct(kBlock) {}

  void clear() {
    used = 0;
    if (++step == 0) { // slots of 2^32 steps ago would look like those of this one
      slots.assign(slots.size(), Slot{});
      step = 1;
    }
  }

  /// The number of `key`, which gets the next one where it has none.
  int32_t findOrAdd(int64_t key) {
    int32_t number;
    findOrAdd(&key, nullptr, 1, &number);
    return number;
  }
  /// The number of every key, -1 where valid[i] == 0 (`valid` may be null) or the key is -1: many
  /// searches wait for memory together.
  void findOrAdd(const int64_t *keys, const uint8_t *valid, int64_t count, int32_t *numbers) {
    size_t homes[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      int64_t size = std::min(kBlock, count - begin);
      makeRoom();
      for (int64_t i = 0; i < size; ++i) {
        homes[i] = home(keys[begin + i]);
        __builtin_prefetch(&slots[homes[i]], /*rw=*/1);
      }
      for (int64_t i = 0; i < size; ++i) {
        int64_t key = keys[begin + i];
        bool isAsked = (!valid || valid[begin + i]) && key != -1;
        numbers[begin + i] = isAsked ? findOrAddAt(homes[i], key) : -1;
      }
    }
  }

  /// The same, but every key gets a number of its own; none is found.
  void add(const int64_t *keys, const uint8_t *valid, int64_t count, int32_t *numbers) {
    if (used > kMost - count)
      throwFull();
    if (static_cast<int64_t>(distinct.size()) < used + count)
      distinct.resize(std::max<size_t>(used + count, distinct.size() * 2));
    for (int64_t i = 0; i < count; ++i) {
      bool isAsked = (!valid || valid[i]) && keys[i] != -1;
      numbers[i] = isAsked ? static_cast<int32_t>(used) : -1;
      if (isAsked)
        distinct[used++] = keys[i];
    }
  }

  bool contains(int64_t key) const {
    for (size_t at = home(key); slots[at].step == step; at = next(at))
      if (slots[at].key == key)
        return true;
    return false;
  }

  int64_t size() const { return used; }
  /// By number.
  std::span<const int64_t> keys() const { return {distinct.data(), static_cast<size_t>(used)}; }

private:
  static constexpr int64_t kMost = INT32_MAX;
  /// Keys that are searched together.
  static constexpr int64_t kBlock = 64;

  struct Slot {
    int64_t key = 0;
    uint32_t step = 0; ///< in which it was taken; free in others
    int32_t number = 0;
  };

  size_t home(int64_t key) const {
    return static_cast<size_t>(splitMix64(static_cast<uint64_t>(key) ^ seed)) & (slots.size() - 1);
  }
  [[noreturn]] static void throwFull() {
    throw Error("a step asks for more than " + std::to_string(kMost - kBlock) +
                    " distinct keys of one store",
                "use a smaller --batch");
  }
  /// Room for one block: slots do not move while it is searched.
  void makeRoom() {
    if (used > kMost - kBlock)
      throwFull();
    while ((used + kBlock) * 2 > static_cast<int64_t>(slots.size()))
      grow();
  }
  /// Whether a key is new is no branch: nobody could predict it.
  int32_t findOrAddAt(size_t at, int64_t key) {
    while (slots[at].step == step && slots[at].key != key) [[unlikely]]
      at = next(at);
    bool isNew = slots[at].step != step;
    auto number = isNew ? static_cast<int32_t>(used) : slots[at].number;
    slots[at] = {key, step, number};
    distinct[used] = key;
    used += isNew;
    return number;
  }
  size_t next(size_t at) const { return (at + 1) & (slots.size() - 1); }
  void grow() {
    slots.assign(slots.size() * 2, Slot{});
    distinct.resize(slots.size() / 2);
    for (int64_t number = 0; number < used; ++number) {
      size_t at = home(distinct[number]);
      while (slots[at].step == step)
        at = next(at);
      slots[at] = {distinct[number], step, static_cast<int32_t>(number)};
    }
  }

  uint64_t seed = processHashSeed();
  uint32_t step = 1;
  std::vector<Slot> slots;       ///< a power of two
  std::vector<int64_t> distinct; ///< the first `used`
  int64_t used = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_KEY_INDEX_H
