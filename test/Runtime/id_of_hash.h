//===- id_of_hash.h - Ids that collide as a test wants -----------*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_ID_OF_HASH_H
#define GENREC_TEST_RUNTIME_ID_OF_HASH_H

#include "genrec_rt/identity.h"

namespace genrec::rt::test {

/// The id whose hash is `hash`: SplitMix64 backwards.
inline int64_t idOfHash(uint64_t hash) {
  auto unshift = [](uint64_t x, int by) {
    uint64_t y = x;
    for (int i = by; i < 64; i += by)
      y = x ^ (y >> by);
    return y;
  };
  auto inverse = [](uint64_t odd) { // modulo 2^64, by Newton's method
    uint64_t x = odd;
    for (int i = 0; i < 6; ++i)
      x *= 2 - odd * x;
    return x;
  };
  uint64_t x = unshift(hash, 31) * inverse(0x94D049BB133111EBull);
  x = unshift(x, 27) * inverse(0xBF58476D1CE4E5B9ull);
  x = unshift(x, 30) - 0x9E3779B97F4A7C15ull;
  return static_cast<int64_t>(x);
}

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_ID_OF_HASH_H
