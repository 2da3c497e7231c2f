//===- hash.cpp - published hashes of ids and strings ---------------------===//

#include "genrec_rt/kernels/shared/hash_strings.h"

#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace genrec::rt::kernels {

static_assert(std::endian::native == std::endian::little,
              "hashes read integers as little-endian bytes");

int64_t hashFarm64(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      detail::farm64(text.data, static_cast<size_t>(text.size), static_cast<uint64_t>(seed)), bits);
}

int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      XXH3_64bits_withSeed(text.data, static_cast<size_t>(text.size), static_cast<uint64_t>(seed)),
      bits);
}

int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      detail::murmur3(text.data, static_cast<size_t>(text.size), static_cast<uint32_t>(seed)),
      bits);
}

} // namespace genrec::rt::kernels
