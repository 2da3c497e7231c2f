//===- hash.h - published hashes of ids and strings -------------*- C++ -*-===//
//
// What genrec.hash computes: a 64-bit hash of the 8 little-endian bytes of an
// integer or of the bytes of a string, cut to its low `bits` bits (1 to 63).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_HASH_H
#define GENREC_RT_KERNELS_HASH_H

#include "genrec_rt/abi.h"

namespace genrec::rt::kernels {

/// XXH3_64bits_withSeed of xxHash (Collet).
int64_t hashXxh3(int64_t value, int64_t seed, int64_t bits);
int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits);

/// The first 64 bits of MurmurHash3_x64_128 (Appleby) with the low 32 bits of the seed.
int64_t hashMurmur3(int64_t value, int64_t seed, int64_t bits);
int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits);

/// FarmHash (Pike), the portable variant: Fingerprint64 for seed 0, else Hash64WithSeed.
int64_t hashFarm64(int64_t value, int64_t seed, int64_t bits);
int64_t hashFarm64(genrec_string text, int64_t seed, int64_t bits);

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_HASH_H
