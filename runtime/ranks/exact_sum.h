//===- exact_sum.h - Sums of floats without rounding ------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_EXACT_SUM_H
#define GENREC_RT_RANKS_EXACT_SUM_H

#include "genrec_rt/comm.h"

#include <cstdint>
#include <limits>
#include <span>

namespace genrec::rt {

/// An exact sum of floats or doubles, rounded once when it is asked for: its bits depend neither on
/// the order of what is added nor on how ranks share it. For sums that have no tree of portions
/// (portions.h): over table rows, and of metrics.
///
/// A fixed-point number that holds every finite value: digits of 32 bits, each in a limb of 64 with
/// room for carries (the "small superaccumulator" of Neal, arXiv:1505.05571).
template <class Float> class BasicExactSum {
public:
  void add(std::span<const Float> values);
  void add(Float value) { add(std::span<const Float>(&value, 1)); }
  /// The sum of the sums of all ranks, on all of them. Collective.
  void reduce(Communicator &comm) { reduceAll(comm, std::span(this, 1)); }
  /// The same of several sums, in one round.
  static void reduceAll(Communicator &comm, std::span<BasicExactSum> sums);
  /// The nearest value, ties to even: an infinity where the sum is too large. What is infinite or
  /// NaN makes the sum so, as additions would in any order; a sum of 0 is +0.
  Float round() const;

private:
  using Limits = std::numeric_limits<Float>;
  static constexpr int kDigitBits = 32;
  /// Of the lowest digit's first bit: the last bit of the smallest value.
  static constexpr int kLowestExponent = Limits::min_exponent - Limits::digits;
  /// Those of the highest value, and one that takes the carries of 2^74 of them.
  static constexpr int kDigits = (Limits::max_exponent - kLowestExponent - 1) / kDigitBits + 2;

  /// Makes every limb but the last one a digit, 0 to 2^32 - 1. The last one has the sign.
  void carry();
  void addSpecial(Float value);

  struct State {
    int64_t limbs[kDigits] = {};
    int64_t positive = 0, negative = 0, nan = 0; ///< infinities and NaNs that were added: 0 or more
  };
  void addState(const State &other);

  State sum;
  int64_t uncarried = 0; ///< values added since the last carry
};

using ExactSum = BasicExactSum<float>;
using ExactDoubleSum = BasicExactSum<double>;

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_EXACT_SUM_H
