//===- hash_strings.h - published hashes of strings -------------*- C++ -*-===//
//
// What hash.h has for strings, as functions of bytes, for hosts and devices. Bytes need no
// alignment.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_SHARED_HASH_STRINGS_H
#define GENREC_RT_KERNELS_SHARED_HASH_STRINGS_H

#include "genrec_rt/kernels/shared/hash.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

inline constexpr uint64_t kLowFactor = 0x87C37B91114253D5, kHighFactor = 0x4CF5AD432745937F;

/// Up to 8 bytes, the missing ones 0.
GENREC_HOST_DEVICE uint64_t loadBytes(const char *data, uint64_t count) {
  uint64_t word = 0;
  if (count > 0)
    __builtin_memcpy(&word, data, count);
  return word;
}

GENREC_HOST_DEVICE uint64_t scrambleLow(uint64_t word) {
  return rotateLeft(word * kLowFactor, 31) * kHighFactor;
}
GENREC_HOST_DEVICE uint64_t scrambleHigh(uint64_t word) {
  return rotateLeft(word * kHighFactor, 33) * kLowFactor;
}

GENREC_HOST_DEVICE uint64_t murmur3(const char *data, uint64_t size, uint32_t seed) {
  uint64_t low = seed, high = seed;
  uint64_t whole = size / 16 * 16, rest = size - whole;
  for (uint64_t at = 0; at < whole; at += 16) {
    low ^= scrambleLow(loadBytes(data + at, 8));
    low = (rotateLeft(low, 27) + high) * 5 + 0x52DCE729;
    high ^= scrambleHigh(loadBytes(data + at + 8, 8));
    high = (rotateLeft(high, 31) + low) * 5 + 0x38495AB5;
  }
  if (rest > 8)
    high ^= scrambleHigh(loadBytes(data + whole + 8, rest - 8));
  if (rest > 0)
    low ^= scrambleLow(loadBytes(data + whole, rest < 8 ? rest : 8));
  low ^= size;
  high ^= size;
  low += high;
  high += low;
  return finishMurmur3(low) + finishMurmur3(high);
}

//===----------------------------------------------------------------------===//
// FarmHash, the portable variant "na"
//===----------------------------------------------------------------------===//

inline constexpr uint64_t kFarm0 = 0xC3A5C85C97CB3127, kFarm1 = 0xB492B66FBE98F273,
                          kFarm2 = kFarmFactor;

GENREC_HOST_DEVICE uint64_t word(const char *data) { return loadBytes(data, 8); }
GENREC_HOST_DEVICE uint64_t fold(uint64_t x) { return x ^ (x >> 47); }
GENREC_HOST_DEVICE uint64_t farmShort(const char *data, uint64_t size) {
  uint64_t factor = kFarm2 + size * 2;
  if (size >= 8) {
    uint64_t a = word(data) + kFarm2, b = word(data + size - 8);
    return mixFarm(rotateRight(b, 37) * factor + a, (rotateRight(a, 25) + b) * factor, factor);
  }
  if (size >= 4)
    return mixFarm(size + (loadBytes(data, 4) << 3), loadBytes(data + size - 4, 4), factor);
  if (size == 0)
    return kFarm2;
  auto byte = [&](uint64_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>(data[i]));
  };
  return fold((byte(0) + (byte(size / 2) << 8)) * kFarm2 ^
              (size + (byte(size - 1) << 2)) * kFarm0) *
         kFarm2;
}

/// 17 to 64 bytes.
GENREC_HOST_DEVICE uint64_t farmMiddle(const char *data, uint64_t size) {
  const char *end = data + size;
  uint64_t factor = kFarm2 + size * 2;
  uint64_t a = word(data) * (size > 32 ? kFarm2 : kFarm1), b = word(data + 8);
  uint64_t c = word(end - 8) * factor, d = word(end - 16) * kFarm2;
  uint64_t y = rotateRight(a + b, 43) + rotateRight(c, 30) + d;
  uint64_t z = mixFarm(y, a + rotateRight(b + kFarm2, 18) + c, factor);
  if (size <= 32)
    return z;
  uint64_t e = word(data + 16) * factor, f = word(data + 24);
  uint64_t g = (y + word(end - 32)) * factor, h = (z + word(end - 24)) * factor;
  return mixFarm(rotateRight(e + f, 43) + rotateRight(g, 30) + h, e + rotateRight(f + a, 18) + g,
                 factor);
}

struct FarmPair {
  uint64_t first = 0, second = 0;

  /// Of 32 bytes and two numbers.
  GENREC_HOST_DEVICE static FarmPair of(const char *data, uint64_t a, uint64_t b) {
    uint64_t last = word(data + 24);
    a += word(data);
    b = rotateRight(b + a + last, 21);
    uint64_t sum = a + word(data + 8) + word(data + 16);
    return {sum + last, b + rotateRight(sum, 44) + a};
  }
};

GENREC_HOST_DEVICE uint64_t farmLong(const char *data, uint64_t size) {
  constexpr uint64_t start = 81;
  uint64_t x = start * kFarm2 + word(data), y = start * kFarm1 + 113,
           z = fold(y * kFarm2 + 113) * kFarm2;
  FarmPair v, w;
  auto take = [&](const char *block, uint64_t factor, uint64_t weight) {
    x = rotateRight(x + y + v.first + word(block + 8), 37) * factor;
    y = rotateRight(y + v.second + word(block + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word(block + 40);
    z = rotateRight(z + w.first, 33) * factor;
    v = FarmPair::of(block, v.second * factor, x + w.first);
    w = FarmPair::of(block + 32, z + w.second, y + word(block + 16));
    const uint64_t swapped = z;
    z = x;
    x = swapped;
  };
  const char *last = data + size - 64;
  for (const char *block = data; block < last; block += 64)
    take(block, kFarm1, 1);
  uint64_t factor = kFarm1 + ((z & 0xFF) << 1);
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  take(last, factor, 9);
  return mixFarm(mixFarm(v.first, w.first, factor) + fold(y) * kFarm0 + z,
                 mixFarm(v.second, w.second, factor) + x, factor);
}

GENREC_HOST_DEVICE uint64_t farm64(const char *data, uint64_t size, uint64_t seed) {
  constexpr uint64_t factor = 0x9DDFEA08EB382D69;
  uint64_t hash = size <= 16   ? farmShort(data, size)
                  : size <= 64 ? farmMiddle(data, size)
                               : farmLong(data, size);
  return seed == 0 ? hash : mixFarm(hash - kFarm2, seed, factor);
}

//===----------------------------------------------------------------------===//
// XXH3, 64 bits (Collet; the format of xxHash 0.8), for devices: the CPU has a library's
//===----------------------------------------------------------------------===//

/// Byte `at` and the seven behind it of the default secret.
GENREC_HOST_DEVICE uint64_t secretWord(uint64_t at) {
  constexpr uint64_t kWords[] = {
      0xBE4BA423396CFEB8u, 0x1CAD21F72C81017Cu, 0xDB979083E96DD4DEu, 0x1F67B3B7A4A44072u,
      0x78E5C0CC4EE679CBu, 0x2172FFCC7DD05A82u, 0x8E2443F7744608B8u, 0x4C263A81E69035E0u,
      0xCB00C391BB52283Cu, 0xA32E531B8B65D088u, 0x4EF90DA297486471u, 0xD8ACDEA946EF1938u,
      0x3F349CE33F76FAA8u, 0x1D4F0BC7C7BBDCF9u, 0x3159B4CD4BE0518Au, 0x647378D9C97E9FC8u,
      0xC3EBD33483ACC5EAu, 0xEB6313FAFFA081C5u, 0x49DAF0B751DD0D17u, 0x9E68D429265516D3u,
      0xFCA1477D58BE162Bu, 0xCE31D07AD1B8F88Fu, 0x280416958F3ACB45u, 0x7E404BBBCAFBD7AFu};
  const uint64_t word = kWords[at / 8], shift = at % 8 * 8;
  return shift == 0 ? word : word >> shift | kWords[at / 8 + 1] << (64 - shift);
}

inline constexpr uint64_t kXxhShort1 = 0x9E3779B1u, kXxhShort2 = 0x85EBCA77u,
                          kXxhShort3 = 0xC2B2AE3Du;
inline constexpr uint64_t kXxhPrime1 = 0x9E3779B185EBCA87u, kXxhPrime2 = 0xC2B2AE3D27D4EB4Fu,
                          kXxhPrime3 = 0x165667B19E3779F9u, kXxhPrime4 = 0x85EBCA77C2B2AE63u,
                          kXxhPrime5 = 0x27D4EB2F165667C5u;

/// The halves of the product of 64 bits each, one on the other.
GENREC_HOST_DEVICE uint64_t foldProduct(uint64_t a, uint64_t b) {
#if defined(__CUDA_ARCH__)
  return a * b ^ __umul64hi(a, b);
#else
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#endif
}
GENREC_HOST_DEVICE uint64_t finishXxh3(uint64_t x) {
  x = (x ^ (x >> 37)) * 0x165667919E3779F9u;
  return x ^ (x >> 32);
}
GENREC_HOST_DEVICE uint64_t finishXxh64(uint64_t x) {
  x = (x ^ (x >> 33)) * kXxhPrime2;
  x = (x ^ (x >> 29)) * kXxhPrime3;
  return x ^ (x >> 32);
}
GENREC_HOST_DEVICE uint64_t reverseBytes(uint64_t x) {
  uint64_t reversed = 0;
  for (int i = 0; i < 8; ++i)
    reversed = reversed << 8 | (x >> (8 * i) & 0xFF);
  return reversed;
}

/// Up to 16 bytes.
GENREC_HOST_DEVICE uint64_t xxh3Short(const char *data, uint64_t size, uint64_t seed) {
  auto byte = [&](uint64_t i) {
    return static_cast<uint64_t>(static_cast<unsigned char>(data[i]));
  };
  if (size > 8) {
    const uint64_t low = loadBytes(data, 8) ^ ((secretWord(24) ^ secretWord(32)) + seed);
    const uint64_t high =
        loadBytes(data + size - 8, 8) ^ ((secretWord(40) ^ secretWord(48)) - seed);
    return finishXxh3(size + reverseBytes(low) + high + foldProduct(low, high));
  }
  if (size >= 4) {
    constexpr uint64_t kFactor = 0x9FB21C651E98DF25u;
    seed ^= reverseBytes(seed << 32) << 32;
    const uint64_t word = loadBytes(data + size - 4, 4) + (loadBytes(data, 4) << 32);
    uint64_t x = word ^ ((secretWord(8) ^ secretWord(16)) - seed);
    x ^= rotateLeft(x, 49) ^ rotateLeft(x, 24);
    x *= kFactor;
    x = (x ^ ((x >> 35) + size)) * kFactor;
    return x ^ (x >> 28);
  }
  if (size == 0)
    return finishXxh64(seed ^ secretWord(56) ^ secretWord(64));
  const uint64_t word = byte(0) << 16 | byte(size / 2) << 24 | byte(size - 1) | size << 8;
  const uint64_t first = secretWord(0);
  return finishXxh64((((first ^ first >> 32) & 0xFFFFFFFFu) + seed) ^ word);
}

/// 16 bytes at `data` with those of the secret from `at` on.
GENREC_HOST_DEVICE uint64_t mixXxh3(const char *data, uint64_t at, uint64_t seed) {
  return foldProduct(loadBytes(data, 8) ^ (secretWord(at) + seed),
                     loadBytes(data + 8, 8) ^ (secretWord(at + 8) - seed));
}

/// 17 to 240 bytes.
GENREC_HOST_DEVICE uint64_t xxh3Middle(const char *data, uint64_t size, uint64_t seed) {
  uint64_t total = size * kXxhPrime1;
  if (size <= 128) {
    for (uint64_t i = 0; i <= (size - 1) / 32; ++i)
      total += mixXxh3(data + 16 * i, 32 * i, seed) +
               mixXxh3(data + size - 16 * (i + 1), 32 * i + 16, seed);
    return finishXxh3(total);
  }
  for (uint64_t i = 0; i < 8; ++i)
    total += mixXxh3(data + 16 * i, 16 * i, seed);
  total = finishXxh3(total);
  for (uint64_t i = 8; i < size / 16; ++i)
    total += mixXxh3(data + 16 * i, 16 * (i - 8) + 3, seed);
  return finishXxh3(total + mixXxh3(data + size - 16, 119, seed));
}

/// More than 240 bytes: eight sums over stripes of 64, stirred after each block of 16.
GENREC_HOST_DEVICE uint64_t xxh3Long(const char *data, uint64_t size, uint64_t seed) {
  uint64_t sums[8] = {kXxhShort3, kXxhPrime1, kXxhPrime2, kXxhPrime3,
                      kXxhPrime4, kXxhShort2, kXxhPrime5, kXxhShort1};
  // The secret with the seed in it, whose words at odd places lose it.
  auto seeded = [&](uint64_t at) {
    const uint64_t here = secretWord(at / 8 * 8) + (at / 8 % 2 ? 0 - seed : seed),
                   shift = at % 8 * 8;
    if (shift == 0)
      return here;
    const uint64_t next = secretWord(at / 8 * 8 + 8) + (at / 8 % 2 ? seed : 0 - seed);
    return here >> shift | next << (64 - shift);
  };
  auto take = [&](const char *stripe, uint64_t at) {
    for (uint64_t i = 0; i < 8; ++i) {
      const uint64_t word = loadBytes(stripe + 8 * i, 8), key = word ^ seeded(at + 8 * i);
      sums[i ^ 1] += word;
      sums[i] += (key & 0xFFFFFFFFu) * (key >> 32);
    }
  };
  for (uint64_t stripe = 0; stripe < (size - 1) / 64; ++stripe) {
    take(data + 64 * stripe, stripe % 16 * 8);
    if (stripe % 16 == 15)
      for (uint64_t i = 0; i < 8; ++i)
        sums[i] = (sums[i] ^ sums[i] >> 47 ^ seeded(128 + 8 * i)) * kXxhShort1;
  }
  take(data + size - 64, 121);
  uint64_t total = size * kXxhPrime1;
  for (uint64_t i = 0; i < 4; ++i)
    total += foldProduct(sums[2 * i] ^ seeded(11 + 16 * i), sums[2 * i + 1] ^ seeded(19 + 16 * i));
  return finishXxh3(total);
}

GENREC_HOST_DEVICE uint64_t xxh3(const char *data, uint64_t size, uint64_t seed) {
  return size <= 16    ? xxh3Short(data, size, seed)
         : size <= 240 ? xxh3Middle(data, size, seed)
                       : xxh3Long(data, size, seed);
}

} // namespace detail

#if defined(GENREC_WARP_ROWS)

/// The strings, and their bytes, are in memory of the device.
GENREC_HOST_DEVICE int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      detail::xxh3(text.data, static_cast<uint64_t>(text.size), static_cast<uint64_t>(seed)), bits);
}
GENREC_HOST_DEVICE int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      detail::murmur3(text.data, static_cast<uint64_t>(text.size), static_cast<uint32_t>(seed)),
      bits);
}
GENREC_HOST_DEVICE int64_t hashFarm64(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      detail::farm64(text.data, static_cast<uint64_t>(text.size), static_cast<uint64_t>(seed)),
      bits);
}

#endif

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_HASH_STRINGS_H
