//===- Random.cpp - random words, identities, hashes ----------------------===//

#include "Random.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

using llvm::StringRef;

using namespace genrec;
using namespace genrec::interpreter;

namespace {
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15; // 2^64 / golden ratio
} // namespace

uint64_t interpreter::splitMix(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

uint64_t interpreter::rootIdentity(int64_t position) {
  return splitMix(static_cast<uint64_t>(position));
}

uint64_t interpreter::childIdentity(uint64_t identity, uint64_t ordinal) {
  return splitMix(identity + kGolden * (ordinal + 1));
}

//===----------------------------------------------------------------------===//
// Philox
//===----------------------------------------------------------------------===//

std::array<uint32_t, 4> interpreter::philox(std::array<uint32_t, 4> counter, uint32_t keyLow,
                                            uint32_t keyHigh) {
  for (int round = 0; round < 10; ++round) {
    uint64_t even = uint64_t(counter[0]) * 0xD2511F53, odd = uint64_t(counter[2]) * 0xCD9E8D57;
    counter = {static_cast<uint32_t>(odd >> 32) ^ counter[1] ^ keyLow, static_cast<uint32_t>(odd),
               static_cast<uint32_t>(even >> 32) ^ counter[3] ^ keyHigh,
               static_cast<uint32_t>(even)};
    keyLow += 0x9E3779B9;
    keyHigh += 0xBB67AE85;
  }
  return counter;
}

uint32_t interpreter::randomWord(uint64_t seed, uint64_t step, uint32_t stream, uint64_t row,
                                 uint64_t element) {
  uint64_t key = splitMix(seed + kGolden * step);
  // 64 elements use 16 counters: element e is word (e / 16) % 4 of its counter.
  uint64_t block = (element / 64) * 16 + element % 16;
  std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(block), stream, static_cast<uint32_t>(row),
              static_cast<uint32_t>(row >> 32)},
             static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return words[(element / 16) % 4];
}

uint16_t interpreter::randomHalf(uint64_t seed, uint64_t step, uint32_t stream, uint64_t row,
                                 uint64_t element) {
  uint64_t key = splitMix(seed + kGolden * step);
  // 64 elements use 8 counters: 16 neighbours are the halves of one word of each.
  uint64_t block = (element / 64) * 8 + element % 16 / 2;
  std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(block), stream, static_cast<uint32_t>(row),
              static_cast<uint32_t>(row >> 32)},
             static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return static_cast<uint16_t>(words[(element / 16) % 4] >> (element % 2 * 16));
}

//===----------------------------------------------------------------------===//
// Hashes
//===----------------------------------------------------------------------===//

static uint64_t rotateLeft(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

static uint64_t loadBytes(const char *bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

/// The finaliser of MurmurHash3 for 64 bits.
static uint64_t mixMurmur(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53;
  return x ^ (x >> 33);
}

/// The first 64 bits of MurmurHash3_x64_128 (Appleby, public domain).
static uint64_t murmur3(StringRef bytes, uint32_t seed) {
  constexpr uint64_t c1 = 0x87C37B91114253D5, c2 = 0x4CF5AD432745937F;
  auto scrambleLow = [](uint64_t k) { return rotateLeft(k * c1, 31) * c2; };
  auto scrambleHigh = [](uint64_t k) { return rotateLeft(k * c2, 33) * c1; };
  uint64_t low = seed, high = seed;
  size_t whole = bytes.size() / 16 * 16;
  for (size_t i = 0; i < whole; i += 16) {
    low ^= scrambleLow(loadBytes(bytes.data() + i, 8));
    low = (rotateLeft(low, 27) + high) * 5 + 0x52DCE729;
    high ^= scrambleHigh(loadBytes(bytes.data() + i + 8, 8));
    high = (rotateLeft(high, 31) + low) * 5 + 0x38495AB5;
  }
  size_t rest = bytes.size() - whole;
  if (rest > 8)
    high ^= scrambleHigh(loadBytes(bytes.data() + whole + 8, rest - 8));
  if (rest > 0)
    low ^= scrambleLow(loadBytes(bytes.data() + whole, std::min<size_t>(rest, 8)));
  low ^= bytes.size();
  high ^= bytes.size();
  low += high;
  high += low;
  return mixMurmur(low) + mixMurmur(high);
}

//===----------------------------------------------------------------------===//
// FarmHash
//===----------------------------------------------------------------------===//

/// Hash64 of FarmHash's portable variant "na" (Pike, 2014), which is also its Fingerprint64.
namespace farm {

constexpr uint64_t k0 = 0xC3A5C85C97CB3127, k1 = 0xB492B66FBE98F273, k2 = 0x9AE16A3B2F90404F;

static uint64_t rotateRight(uint64_t x, int bits) { return (x >> bits) | (x << (64 - bits)); }
static uint64_t shiftMix(uint64_t x) { return x ^ (x >> 47); }
static uint64_t mixTwo(uint64_t u, uint64_t v, uint64_t factor) {
  uint64_t a = shiftMix((u ^ v) * factor);
  return shiftMix((v ^ a) * factor) * factor;
}

/// The bytes to hash, addressed from the front or from the end.
struct Bytes {
  StringRef text;
  uint64_t front(size_t at) const { return loadBytes(text.data() + at, 8); }
  uint64_t back(size_t before) const { return front(text.size() - before); }
};

static uint64_t hashUpTo16(Bytes bytes) {
  StringRef text = bytes.text;
  uint64_t size = text.size(), factor = k2 + size * 2;
  if (size >= 8) {
    uint64_t a = bytes.front(0) + k2, b = bytes.back(8);
    return mixTwo(rotateRight(b, 37) * factor + a, (rotateRight(a, 25) + b) * factor, factor);
  }
  if (size >= 4)
    return mixTwo(size + (loadBytes(text.data(), 4) << 3), loadBytes(text.data() + size - 4, 4),
                  factor);
  if (size == 0)
    return k2;
  auto at = [&](size_t i) { return uint64_t(static_cast<unsigned char>(text[i])); };
  uint64_t y = at(0) + (at(size / 2) << 8), z = size + (at(size - 1) << 2);
  return shiftMix(y * k2 ^ z * k0) * k2;
}

static uint64_t hashUpTo64(Bytes bytes) {
  uint64_t size = bytes.text.size(), factor = k2 + size * 2;
  bool isLong = size > 32;
  uint64_t a = bytes.front(0) * (isLong ? k2 : k1), b = bytes.front(8);
  uint64_t c = bytes.back(8) * factor, d = bytes.back(16) * k2;
  uint64_t y = rotateRight(a + b, 43) + rotateRight(c, 30) + d;
  uint64_t z = mixTwo(y, a + rotateRight(b + k2, 18) + c, factor);
  if (!isLong)
    return z;
  uint64_t e = bytes.front(16) * factor, f = bytes.front(24);
  uint64_t g = (y + bytes.back(32)) * factor, h = (z + bytes.back(24)) * factor;
  return mixTwo(rotateRight(e + f, 43) + rotateRight(g, 30) + h, e + rotateRight(f + a, 18) + g,
                factor);
}

/// The state of the hash of a long string: x, y, z and the two pairs v and w, as FarmHash names
/// them.
struct State {
  uint64_t x, y, z;
  std::array<uint64_t, 2> v{}, w{};

  static std::array<uint64_t, 2> mix32(Bytes bytes, size_t at, uint64_t a, uint64_t b) {
    a += bytes.front(at);
    b = rotateRight(b + a + bytes.front(at + 24), 21);
    uint64_t c = a;
    a += bytes.front(at + 8) + bytes.front(at + 16);
    return {a + bytes.front(at + 24), b + rotateRight(a, 44) + c};
  }
  /// Mixes in 64 bytes. `weight` multiplies what v and w carry over.
  void take(Bytes bytes, size_t at, uint64_t factor, uint64_t weight) {
    x = rotateRight(x + y + v[0] + bytes.front(at + 8), 37) * factor;
    y = rotateRight(y + v[1] + bytes.front(at + 48), 42) * factor;
    x ^= w[1] * weight;
    y += v[0] * weight + bytes.front(at + 40);
    z = rotateRight(z + w[0], 33) * factor;
    v = mix32(bytes, at, v[1] * factor, x + w[0]);
    w = mix32(bytes, at + 32, z + w[1], y + bytes.front(at + 16));
    std::swap(z, x);
  }
};

static uint64_t hash(StringRef text) {
  constexpr uint64_t seed = 81;
  Bytes bytes{text};
  if (text.size() <= 16)
    return hashUpTo16(bytes);
  if (text.size() <= 64)
    return hashUpTo64(bytes);
  State s{seed * k2 + bytes.front(0), seed * k1 + 113, 0};
  s.z = shiftMix(s.y * k2 + 113) * k2;
  for (size_t at = 0; at + 64 < text.size(); at += 64)
    s.take(bytes, at, k1, 1);
  uint64_t factor = k1 + ((s.z & 0xFF) << 1);
  s.w[0] += (text.size() - 1) & 63;
  s.v[0] += s.w[0];
  s.w[0] += s.v[0];
  s.take(bytes, text.size() - 64, factor, 9);
  return mixTwo(mixTwo(s.v[0], s.w[0], factor) + shiftMix(s.y) * k0 + s.z,
                mixTwo(s.v[1], s.w[1], factor) + s.x, factor);
}

} // namespace farm

static uint64_t farmHash(StringRef bytes, uint64_t seed) {
  constexpr uint64_t factor = 0x9DDFEA08EB382D69;
  uint64_t hash = farm::hash(bytes);
  return seed == 0 ? hash : farm::mixTwo(hash - farm::k2, seed, factor);
}

uint64_t interpreter::hashBytes(HashKind kind, StringRef bytes, uint64_t seed) {
  switch (kind) {
  case HashKind::xxh3:
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  case HashKind::murmur3:
    return murmur3(bytes, static_cast<uint32_t>(seed));
  case HashKind::farmhash64:
    return farmHash(bytes, seed);
  }
  llvm_unreachable("every hash is handled");
}

uint64_t interpreter::hashInteger(HashKind kind, int64_t value, uint64_t seed) {
  char bytes[8];
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return hashBytes(kind, StringRef(bytes, sizeof bytes), seed);
}
