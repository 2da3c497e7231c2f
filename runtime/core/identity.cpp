//===- identity.cpp - The hash seed of a process --------------------------===//

#include "genrec_rt/identity.h"

#include <cstring>

#include <sys/auxv.h>

namespace genrec::rt {

uint64_t processHashSeed() {
  static const uint64_t seed = [] {
    uint64_t words[2] = {};
    if (const auto *random = reinterpret_cast<const void *>(getauxval(AT_RANDOM)))
      std::memcpy(words, random, sizeof words);
    // Not the bytes themselves: the C library makes its stack guard of them.
    return splitMix64(words[0] ^ splitMix64(words[1]));
  }();
  return seed;
}

} // namespace genrec::rt
