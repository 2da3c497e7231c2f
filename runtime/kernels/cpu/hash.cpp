//===- hash.cpp - published hashes of ids and strings ---------------------===//

#include "genrec_rt/kernels/shared/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace genrec::rt::kernels {

namespace {

static_assert(std::endian::native == std::endian::little, "hashes read integers as little-endian bytes");

constexpr uint64_t kLowFactor = 0x87C37B91114253D5, kHighFactor = 0x4CF5AD432745937F;

/// Up to 8 bytes, the missing ones 0.
uint64_t loadBytes(const char *data, size_t count) {
  uint64_t word = 0;
  if (count > 0)
    std::memcpy(&word, data, count);
  return word;
}

uint64_t scrambleLow(uint64_t word) { return std::rotl(word * kLowFactor, 31) * kHighFactor; }
uint64_t scrambleHigh(uint64_t word) { return std::rotl(word * kHighFactor, 33) * kLowFactor; }

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
  return detail::finishMurmur3(low) + detail::finishMurmur3(high);
}

//===----------------------------------------------------------------------===//
// FarmHash, the portable variant "na"
//===----------------------------------------------------------------------===//

constexpr uint64_t kFarm0 = 0xC3A5C85C97CB3127, kFarm1 = 0xB492B66FBE98F273,
                   kFarm2 = detail::kFarmFactor;

uint64_t word(const char *data) { return loadBytes(data, 8); }
uint64_t fold(uint64_t x) { return x ^ (x >> 47); }
uint64_t farmShort(const char *data, uint64_t size) {
  uint64_t factor = kFarm2 + size * 2;
  if (size >= 8) {
    uint64_t a = word(data) + kFarm2, b = word(data + size - 8);
    return detail::mixFarm(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
  }
  if (size >= 4)
    return detail::mixFarm(size + (loadBytes(data, 4) << 3), loadBytes(data + size - 4, 4), factor);
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
uint64_t farmMiddle(const char *data, uint64_t size) {
  const char *end = data + size;
  uint64_t factor = kFarm2 + size * 2;
  uint64_t a = word(data) * (size > 32 ? kFarm2 : kFarm1), b = word(data + 8);
  uint64_t c = word(end - 8) * factor, d = word(end - 16) * kFarm2;
  uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  uint64_t z = detail::mixFarm(y, a + std::rotr(b + kFarm2, 18) + c, factor);
  if (size <= 32)
    return z;
  uint64_t e = word(data + 16) * factor, f = word(data + 24);
  uint64_t g = (y + word(end - 32)) * factor, h = (z + word(end - 24)) * factor;
  return detail::mixFarm(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g,
                         factor);
}

struct FarmPair {
  uint64_t first = 0, second = 0;

  /// Of 32 bytes and two numbers.
  static FarmPair of(const char *data, uint64_t a, uint64_t b) {
    uint64_t last = word(data + 24);
    a += word(data);
    b = std::rotr(b + a + last, 21);
    uint64_t sum = a + word(data + 8) + word(data + 16);
    return {sum + last, b + std::rotr(sum, 44) + a};
  }
};

uint64_t farmLong(const char *data, uint64_t size) {
  constexpr uint64_t start = 81;
  uint64_t x = start * kFarm2 + word(data), y = start * kFarm1 + 113,
           z = fold(y * kFarm2 + 113) * kFarm2;
  FarmPair v, w;
  auto take = [&](const char *block, uint64_t factor, uint64_t weight) {
    x = std::rotr(x + y + v.first + word(block + 8), 37) * factor;
    y = std::rotr(y + v.second + word(block + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word(block + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = FarmPair::of(block, v.second * factor, x + w.first);
    w = FarmPair::of(block + 32, z + w.second, y + word(block + 16));
    std::swap(z, x);
  };
  const char *last = data + size - 64;
  for (const char *block = data; block < last; block += 64)
    take(block, kFarm1, 1);
  uint64_t factor = kFarm1 + ((z & 0xFF) << 1);
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  take(last, factor, 9);
  return detail::mixFarm(detail::mixFarm(v.first, w.first, factor) + fold(y) * kFarm0 + z,
                         detail::mixFarm(v.second, w.second, factor) + x, factor);
}

uint64_t farm64(const char *data, size_t size, uint64_t seed) {
  constexpr uint64_t factor = 0x9DDFEA08EB382D69;
  uint64_t hash = size <= 16   ? farmShort(data, size)
                  : size <= 64 ? farmMiddle(data, size)
                               : farmLong(data, size);
  return seed == 0 ? hash : detail::mixFarm(hash - kFarm2, seed, factor);
}

} // namespace

int64_t hashFarm64(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      farm64(text.data, static_cast<size_t>(text.size), static_cast<uint64_t>(seed)), bits);
}

int64_t hashXxh3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      XXH3_64bits_withSeed(text.data, static_cast<size_t>(text.size), static_cast<uint64_t>(seed)),
      bits);
}

int64_t hashMurmur3(genrec_string text, int64_t seed, int64_t bits) {
  return detail::cutHash(
      murmur3(text.data, static_cast<size_t>(text.size), static_cast<uint32_t>(seed)), bits);
}

} // namespace genrec::rt::kernels
