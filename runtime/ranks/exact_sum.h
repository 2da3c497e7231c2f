//===- exact_sum.h - Sums of floats without rounding ------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_EXACT_SUM_H
#define GENREC_RT_RANKS_EXACT_SUM_H

#include "genrec_rt/comm.h"

#include <cstdint>
#include <span>

namespace genrec::rt {

/// An exact sum of floats, rounded once when it is asked for: its bits depend neither on the order
/// of what is added nor on how ranks share it. For sums over table rows, which have no tree of
/// portions (portions.h).
///
/// A fixed-point number that holds every finite float: digits of 32 bits, each in a limb of 64 with
/// room for carries (the "small superaccumulator" of Neal, arXiv:1505.05571, for single precision).
class ExactSum {
public:
  void add(std::span<const float> values);
  /// The sum of the sums of all ranks, on all of them. Collective.
  void reduce(Communicator &comm);
  /// The nearest float, ties to even: an infinity where the sum is too large. What is infinite or
  /// NaN makes the sum so, as additions would in any order; a sum of 0 is +0.
  float round();

private:
  /// The lowest digit begins at 2^-149, the last bit of the smallest float; the highest float ends
  /// in digit 8. The last digit takes the carries of 2^74 floats.
  static constexpr int kDigits = 10;

  /// Makes every limb but the last one a digit, 0 to 2^32 - 1. The last one has the sign.
  void carry();
  void addSpecial(float value);

  struct State {
    int64_t limbs[kDigits] = {};
    int64_t positive = 0, negative = 0, nan = 0; ///< infinities and NaNs that were added: 0 or more
  };
  State sum;
  int64_t uncarried = 0; ///< values added since the last carry
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_EXACT_SUM_H
