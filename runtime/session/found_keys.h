//===- found_keys.h - By which keys a step found its rows -------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_FOUND_KEYS_H
#define GENREC_RT_SESSION_FOUND_KEYS_H

#include "genrec_rt/buffer.h"

#include <cstdint>
#include <vector>

namespace genrec::rt {

/// Copies of the keys of a step's lookups, by where their handles are. To find a row's key from its
/// address takes several times as long.
class FoundKeys {
public:
  /// handles[i] was found by keys[i].
  void note(float *const *handles, const int64_t *keys, int64_t count);
  /// `count` handles there are of another call now.
  void forget(float *const *handles, int64_t count);
  void clear();

  /// The keys of `count` handles, part of those of one lookup; null where they are not known.
  const int64_t *find(float *const *handles, int64_t count) const;

private:
  struct Lookup {
    float *const *handles = nullptr;
    int64_t count = 0;
    GrowBuffer<int64_t> keys;
  };
  std::vector<Lookup> lookups; ///< memory of unused ones is kept
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_FOUND_KEYS_H
