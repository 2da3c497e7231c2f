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
  // 64 elements share 16 counters: element e is word (e / 16) % 4.
  uint64_t block = (element / 64) * 16 + element % 16;
  std::array<uint32_t, 4> words =
      philox({static_cast<uint32_t>(block), stream, static_cast<uint32_t>(row),
              static_cast<uint32_t>(row >> 32)},
             static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  return words[(element / 16) % 4];
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

uint64_t interpreter::hashBytes(HashKind kind, StringRef bytes, uint64_t seed) {
  switch (kind) {
  case HashKind::xxh3:
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  case HashKind::murmur3:
    return murmur3(bytes, static_cast<uint32_t>(seed));
  }
  llvm_unreachable("every hash is handled");
}

uint64_t interpreter::hashInteger(HashKind kind, int64_t value, uint64_t seed) {
  char bytes[8];
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return hashBytes(kind, StringRef(bytes, sizeof bytes), seed);
}
