//===- exact_sum.cpp - sums of floats without rounding --------------------===//

#include "exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

using namespace genrec::rt;

/// Each value adds less than 2^32 to a limb, which then has room for 2^30 and more.
static constexpr int64_t kValuesBetweenCarries = int64_t(1) << 30;

template <class Float> void BasicExactSum<Float>::add(std::span<const Float> values) {
  using Bits = std::conditional_t<sizeof(Float) == 4, uint32_t, uint64_t>;
  // A mantissa, moved by up to 31 bits.
  using Placed = std::conditional_t<sizeof(Float) == 4, uint64_t, unsigned __int128>;
  constexpr int kLimbs = (Limits::digits + kDigitBits - 2) / kDigitBits + 1;
  constexpr Bits kHidden = Bits(1) << (Limits::digits - 1), kSpecial = 2 * Limits::max_exponent - 1;
  constexpr int kSignBit = sizeof(Float) * 8 - 1;
  while (!values.empty()) {
    if (uncarried == kValuesBetweenCarries)
      carry();
    size_t count = std::min<size_t>(values.size(), kValuesBetweenCarries - uncarried);
    for (Float value : values.first(count)) {
      auto bits = std::bit_cast<Bits>(value);
      Bits exponent = bits >> (Limits::digits - 1) & kSpecial;
      if (exponent == kSpecial) {
        addSpecial(value);
        continue;
      }
      // Subnormal numbers have the exponent of the smallest normal ones, and no hidden bit.
      Bits mantissa = (bits & (kHidden - 1)) | (exponent ? kHidden : 0);
      auto shift = static_cast<uint32_t>(exponent ? exponent - 1 : 0);
      Placed placed = static_cast<Placed>(mantissa) << shift % kDigitBits;
      int64_t *limb = sum.limbs + shift / kDigitBits;
      for (int i = 0; i < kLimbs; ++i) {
        auto digit = static_cast<int64_t>(placed >> i * kDigitBits & 0xFFFFFFFF);
        limb[i] += bits >> kSignBit ? -digit : digit;
      }
    }
    uncarried += static_cast<int64_t>(count);
    values = values.subspan(count);
  }
}

template <class Float> void BasicExactSum<Float>::addSpecial(Float value) {
  ++(std::isnan(value) ? sum.nan : value > 0 ? sum.positive : sum.negative);
}

template <class Float> void BasicExactSum<Float>::carry() {
  for (int digit = 0; digit + 1 < kDigits; ++digit) {
    sum.limbs[digit + 1] += sum.limbs[digit] >> kDigitBits; // rounds down: digits are not negative
    sum.limbs[digit] &= 0xFFFFFFFF;
  }
  uncarried = 0;
}

template <class Float>
void BasicExactSum<Float>::reduceAll(Communicator &comm, std::span<BasicExactSum> sums) {
  std::vector<State> mine, all(sums.size() * comm.getSize());
  for (BasicExactSum &each : sums) {
    each.carry();
    mine.push_back(each.sum);
    each.sum = {};
  }
  comm.allGather(mine.data(), all.data(), static_cast<int64_t>(mine.size() * sizeof(State)));
  for (size_t i = 0; i < all.size(); ++i)
    sums[i % sums.size()].addState(all[i]);
  for (BasicExactSum &each : sums)
    each.carry();
}

template <class Float> void BasicExactSum<Float>::addState(const State &other) {
  for (int digit = 0; digit < kDigits; ++digit)
    sum.limbs[digit] += other.limbs[digit];
  sum.positive += other.positive;
  sum.negative += other.negative;
  sum.nan += other.nan;
}

template <class Float> Float BasicExactSum<Float>::round() const {
  if (sum.nan || (sum.positive && sum.negative))
    return Limits::quiet_NaN();
  if (sum.positive || sum.negative)
    return sum.positive ? Limits::infinity() : -Limits::infinity();
  BasicExactSum magnitude = *this;
  magnitude.carry();
  int64_t(&limbs)[kDigits] = magnitude.sum.limbs;
  bool isNegative = limbs[kDigits - 1] < 0;
  if (isNegative) {
    for (int64_t &limb : limbs)
      limb = -limb;
    magnitude.carry();
  }
  int highest = kDigits - 1;
  while (highest > 0 && !limbs[highest])
    --highest;
  int top =
      highest * kDigitBits + std::bit_width(static_cast<uint64_t>(limbs[highest])); // bits in all

  // The mantissa's bits, the one behind them, and whether there is more.
  int cut = std::max(0, top - Limits::digits);
  auto getBit = [&](int bit) {
    int digit = std::min(bit / kDigitBits, kDigits - 1); // the last one has more bits
    return static_cast<uint64_t>(limbs[digit] >> (bit - digit * kDigitBits) & 1);
  };
  uint64_t mantissa = 0;
  for (int bit = top - 1; bit >= cut; --bit)
    mantissa = mantissa * 2 + getBit(bit);
  bool isHalf = cut > 0 && getBit(cut - 1), isMore = false;
  for (int bit = 0; bit + 1 < cut && !isMore; ++bit)
    isMore = getBit(bit);
  if (isHalf && (isMore || mantissa % 2))
    ++mantissa;
  Float value = std::ldexp(static_cast<Float>(mantissa), cut + kLowestExponent);
  return isNegative ? -value : value;
}

template class genrec::rt::BasicExactSum<float>;
template class genrec::rt::BasicExactSum<double>;
