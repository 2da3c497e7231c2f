//===- hash.h - published hashes of ids and strings -------------*- C++ -*-===//
//
// What genrec.hash computes: a 64-bit hash of the 8 little-endian bytes of an
// integer or of the bytes of a string, cut to its low `bits` bits (1 to 63). Those of
// integers are inline, so that loops over columns compute them in vectors.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_HASH_H
#define GENREC_RT_KERNELS_SHARED_HASH_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {

#if !defined(GENREC_WARP_ROWS) // for those of a device see the end
int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits);
int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits);
int64_t hashFarm64(genrec_string text, int64_t seed, int64_t bits);
#endif

inline namespace GENREC_RT_ISA {
namespace detail {

GENREC_HOST_DEVICE int64_t cutHash(uint64_t hash, int64_t bits) {
  return static_cast<int64_t>(hash & ((uint64_t{1} << bits) - 1));
}
GENREC_HOST_DEVICE uint64_t rotateLeft(uint64_t x, int by) { return x << by | x >> (64 - by); }
GENREC_HOST_DEVICE uint64_t rotateRight(uint64_t x, int by) { return x >> by | x << (64 - by); }

/// MurmurHash3's finalizer.
GENREC_HOST_DEVICE uint64_t finishMurmur3(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

inline constexpr uint64_t kFarmFactor = 0x9AE16A3B2F90404F; ///< FarmHash's k2

/// FarmHash's mix of two words into one.
GENREC_HOST_DEVICE uint64_t mixFarm(uint64_t u, uint64_t v, uint64_t factor) {
  u = (u ^ v) * factor;
  u = (v ^ (u ^ (u >> 47))) * factor;
  return (u ^ (u >> 47)) * factor;
}

} // namespace detail

/// XXH3_64bits_withSeed of xxHash (Collet; the format's "XXH3 for 4-8 byte inputs").
GENREC_HOST_DEVICE uint64_t wholeXxh3(int64_t value, int64_t seed) {
  // Words 1 and 2 of the default secret, and the seed with its low half, bytes reversed, on top.
  constexpr uint64_t kFlip = 0xC73AB174C5ECD5A2, kFactor = 0x9FB21C651E98DF25;
  auto start = static_cast<uint64_t>(seed);
#if defined(__CUDA_ARCH__)
  start ^= static_cast<uint64_t>(__byte_perm(static_cast<uint32_t>(start), 0, 0x0123)) << 32;
#else
  start ^= static_cast<uint64_t>(__builtin_bswap32(static_cast<uint32_t>(start))) << 32;
#endif
  uint64_t x = detail::rotateLeft(static_cast<uint64_t>(value), 32) ^ (kFlip - start);
  x ^= detail::rotateLeft(x, 49) ^ detail::rotateLeft(x, 24);
  x *= kFactor;
  x = (x ^ ((x >> 35) + 8)) * kFactor;
  return x ^ (x >> 28);
}

/// The low bits of that.
GENREC_HOST_DEVICE int64_t hashXxh3(int64_t value, int64_t seed, int64_t bits) {
  return detail::cutHash(wholeXxh3(value, seed), bits);
}

/// The first 64 bits of MurmurHash3_x64_128 (Appleby) with the low 32 bits of the seed.
GENREC_HOST_DEVICE int64_t hashMurmur3(int64_t value, int64_t seed, int64_t bits) {
  constexpr uint64_t kLowFactor = 0x87C37B91114253D5, kHighFactor = 0x4CF5AD432745937F;
  uint64_t start = static_cast<uint32_t>(seed);
  uint64_t word = detail::rotateLeft(static_cast<uint64_t>(value) * kLowFactor, 31) * kHighFactor;
  uint64_t low = start ^ word ^ 8, high = start ^ 8;
  low += high;
  high += low;
  return detail::cutHash(detail::finishMurmur3(low) + detail::finishMurmur3(high), bits);
}

/// FarmHash (Pike), the portable variant: Fingerprint64 for seed 0, else Hash64WithSeed.
GENREC_HOST_DEVICE int64_t hashFarm64(int64_t value, int64_t seed, int64_t bits) {
  constexpr uint64_t kFactor = detail::kFarmFactor + 2 * 8, kSeedFactor = 0x9DDFEA08EB382D69;
  auto b = static_cast<uint64_t>(value);
  uint64_t a = b + detail::kFarmFactor;
  uint64_t hash = detail::mixFarm(detail::rotateRight(b, 37) * kFactor + a,
                                  (detail::rotateRight(a, 25) + b) * kFactor, kFactor);
  if (seed != 0)
    hash = detail::mixFarm(hash - detail::kFarmFactor, static_cast<uint64_t>(seed), kSeedFactor);
  return detail::cutHash(hash, bits);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#if defined(GENREC_WARP_ROWS)
#include "genrec_rt/kernels/shared/hash_strings.h"
#endif

#endif // GENREC_RT_KERNELS_SHARED_HASH_H
