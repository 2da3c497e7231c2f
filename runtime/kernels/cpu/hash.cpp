//===- hash.cpp - published hashes of ids and strings ---------------------===//

#include "genrec_rt/kernels/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace genrec::rt::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "hashes read integers as little-endian bytes");

constexpr uint64_t kLowFactor = 0x87C37B91114253D5, kHighFactor = 0x4CF5AD432745937F;

int64_t cut(uint64_t hash, int64_t bits) { return static_cast<int64_t>(hash & ((uint64_t{1} << bits) - 1)); }

/// Up to 8 bytes, the missing ones 0.
uint64_t loadBytes(const char *data, size_t count) {
  uint64_t word = 0;
  if (count > 0)
    std::memcpy(&word, data, count);
  return word;
}

uint64_t scrambleLow(uint64_t word) { return std::rotl(word * kLowFactor, 31) * kHighFactor; }
uint64_t scrambleHigh(uint64_t word) { return std::rotl(word * kHighFactor, 33) * kLowFactor; }

uint64_t finish(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

uint64_t murmur3(const char *data, size_t size, uint32_t seed) {
  uint64_t low = seed, high = seed;
  size_t whole = size / 16 * 16, rest = size - whole;
  for (size_t at = 0; at < whole; at += 16) {
    low ^= scrambleLow(loadBytes(data + at, 8));
    low = (std::rotl(low, 27) + high) * 5 + 0x52DCE729;
    high ^= scrambleHigh(loadBytes(data + at + 8, 8));
    high = (std::rotl(high, 31) + low) * 5 + 0x38495AB5;
  }
  if (rest > 8)
    high ^= scrambleHigh(loadBytes(data + whole + 8, rest - 8));
  if (rest > 0)
    low ^= scrambleLow(loadBytes(data + whole, std::min<size_t>(rest, 8)));
  low ^= size;
  high ^= size;
  low += high;
  high += low;
  return finish(low) + finish(high);
}

} // namespace

int64_t hashXxh3(int64_t value, int64_t seed, int64_t bits) {
  return cut(XXH3_64bits_withSeed(&value, sizeof value, static_cast<uint64_t>(seed)), bits);
}

int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits) {
  return cut(XXH3_64bits_withSeed(text.data, static_cast<size_t>(text.size), static_cast<uint64_t>(seed)), bits);
}

int64_t hashMurmur3(int64_t value, int64_t seed, int64_t bits) {
  return cut(murmur3(reinterpret_cast<const char *>(&value), sizeof value, static_cast<uint32_t>(seed)), bits);
}

int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits) {
  return cut(murmur3(text.data, static_cast<size_t>(text.size), static_cast<uint32_t>(seed)), bits);
}

} // namespace genrec::rt::kernels
