//===- exact_sum.cpp - sums of floats without rounding --------------------===//

#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace genrec::rt;

/// Each value adds less than 2^32 to a limb, which then has room for 2^30 and more.
static constexpr int64_t kValuesBetweenCarries = int64_t(1) << 30;
static constexpr int kDigitBits = 32, kLowestExponent = -149, kMantissaBits = 24;

void ExactSum::add(std::span<const float> values) {
  while (!values.empty()) {
    if (uncarried == kValuesBetweenCarries)
      carry();
    size_t count = std::min<size_t>(values.size(), kValuesBetweenCarries - uncarried);
    for (float value : values.first(count)) {
      auto bits = std::bit_cast<uint32_t>(value);
      uint32_t exponent = bits >> 23 & 0xFF;
      if (exponent == 0xFF) {
        addSpecial(value);
        continue;
      }
      // Subnormal numbers have the exponent of the smallest normal ones, and no hidden bit.
      uint64_t mantissa = (bits & 0x7FFFFF) | (exponent ? 0x800000 : 0);
      uint32_t shift = exponent ? exponent - 1 : 0;
      uint64_t placed = mantissa << shift % kDigitBits;
      auto low = static_cast<int64_t>(placed & 0xFFFFFFFF),
           high = static_cast<int64_t>(placed >> kDigitBits);
      int64_t *limb = sum.limbs + shift / kDigitBits;
      limb[0] += bits >> 31 ? -low : low;
      limb[1] += bits >> 31 ? -high : high;
    }
    uncarried += static_cast<int64_t>(count);
    values = values.subspan(count);
  }
}

void ExactSum::addSpecial(float value) {
  ++(std::isnan(value) ? sum.nan : value > 0 ? sum.positive : sum.negative);
}

void ExactSum::carry() {
  for (int digit = 0; digit + 1 < kDigits; ++digit) {
    sum.limbs[digit + 1] += sum.limbs[digit] >> kDigitBits; // rounds down: digits are not negative
    sum.limbs[digit] &= 0xFFFFFFFF;
  }
  uncarried = 0;
}

void ExactSum::reduce(Communicator &comm) {
  carry();
  std::vector<State> all(comm.getSize());
  comm.allGather(&sum, all.data(), sizeof sum);
  sum = {};
  for (const State &other : all) {
    for (int digit = 0; digit < kDigits; ++digit)
      sum.limbs[digit] += other.limbs[digit];
    sum.positive += other.positive;
    sum.negative += other.negative;
    sum.nan += other.nan;
  }
  carry();
}

float ExactSum::round() {
  if (sum.nan || (sum.positive && sum.negative))
    return std::numeric_limits<float>::quiet_NaN();
  if (sum.positive || sum.negative)
    return sum.positive ? std::numeric_limits<float>::infinity()
                        : -std::numeric_limits<float>::infinity();
  carry();
  ExactSum magnitude = *this;
  bool isNegative = sum.limbs[kDigits - 1] < 0;
  if (isNegative) {
    for (int64_t &limb : magnitude.sum.limbs)
      limb = -limb;
    magnitude.carry();
  }
  const int64_t *limbs = magnitude.sum.limbs;
  int highest = kDigits - 1;
  while (highest > 0 && !limbs[highest])
    --highest;
  int top =
      highest * kDigitBits + std::bit_width(static_cast<uint64_t>(limbs[highest])); // bits in all

  // The mantissa's bits, the one behind them, and whether there is more.
  int cut = std::max(0, top - kMantissaBits);
  auto getBit = [&](int bit) {
    int digit = std::min(bit / kDigitBits, kDigits - 1); // the last one has more bits
    return static_cast<uint32_t>(limbs[digit] >> (bit - digit * kDigitBits) & 1);
  };
  uint32_t mantissa = 0;
  for (int bit = top - 1; bit >= cut; --bit)
    mantissa = mantissa * 2 + getBit(bit);
  bool isHalf = cut > 0 && getBit(cut - 1), isMore = false;
  for (int bit = 0; bit + 1 < cut && !isMore; ++bit)
    isMore = getBit(bit);
  if (isHalf && (isMore || mantissa % 2))
    ++mantissa;
  float value = std::ldexp(static_cast<float>(mantissa), cut + kLowestExponent);
  return isNegative ? -value : value;
}
