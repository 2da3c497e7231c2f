//===- RoundingBound.h - how far rounding moves a model's values -*- C++ -*-===//
//
// Two levels of a model may show different values by rounding and by nothing else. How far rounding
// reaches depends on the model (an optimizer divides by a small root, a sum cancels), so it is
// measured, value by value: the interpreter runs the model several times with random errors of
// 2^-24 after every op (Monte Carlo arithmetic; Parker, 1997), and the largest deviation of these
// runs is the value's spread. What a value may differ by follows from its spread and from its own
// size.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_ROUNDINGBOUND_H
#define GENREC_FUZZ_ROUNDINGBOUND_H

#include "genrec/Fuzz/Observations.h"

#include <set>

namespace genrec::fuzz {

/// What a value may differ by: `spreads` of its spreads and `units` of its size, the largest that
/// it has been: rounding of a change is relative to the change, which an optimizer makes without
/// regard to the size of the gradient.
struct Allowance {
  double spreads, units;
};

/// For compiled code, which rounds inside an op as well (a sum of n terms rounds n times; exp and
/// tanh are off by a few units), in other orders, while the largest of a few random runs falls
/// short of the worst: a few dozen spreads in all. What is stored is rounded at each of two steps,
/// before and after weight decay. A defect that scales a gradient by 1.001 exceeds this a
/// hundredfold.
inline constexpr Allowance kCompiledAllowance{64.0, 8 * 0x1.0p-24};
/// For levels that hold their constants as f32 (blocks that are decomposed, optimizers that are
/// expanded) and are interpreted in double: an error of 2^-24 here and there, which some ops
/// magnify more than others.
inline constexpr Allowance kConstantsAllowance{16.0, 8 * 0x1.0p-24};
/// For levels that only order sums and products otherwise, in double: the same, 2^-29 times as
/// large.
inline constexpr Allowance kDoubleAllowance{64.0 * 0x1.0p-29, 8 * 0x1.0p-53};

/// Values, and how far rounding to float moves each.
struct RoundedValues {
  Values exact, spread;
  Values sizes; ///< of some; the size of others is that of the exact value
  /// That only runs with errors have: rows whose gradient is 0 but for rounding.
  std::set<std::string> byChance;
};

struct RoundedObservations {
  RoundedValues forward, trained;
};

/// How close values came to what they are allowed, and where.
struct Margin {
  double used = 0.0; ///< largest |difference| / allowed difference
  std::string name;
};

/// That all of so many random errors of a value are small by chance has a probability below 1e-9.
inline constexpr uint64_t kManyRuns = 12;
/// For kConstantsAllowance, of whose errors there are few.
inline constexpr uint64_t kFewRuns = 6;

/// Runs `model` exactly and `runs` times perturbed.
llvm::Expected<RoundedObservations> observeRounding(ModelOp model,
                                                    llvm::ArrayRef<interpreter::Batch> batches,
                                                    uint64_t seed, uint64_t runs);

/// A value that rounding does not explain.
struct Difference {
  std::string name; ///< as `observe` names it
  std::string text; ///< what it is and what was expected
};

/// The first value of `actual` that differs by more than is allowed, or is missing, or is a row of
/// a table that should not be there. Gradients may be missing, as some levels do not name them.
/// `margin` grows to what was used.
std::optional<Difference> compareRounded(const RoundedValues &expected, const Values &actual,
                                         Allowance allowance, Margin *margin = nullptr);

/// The same for what `actual` has so far: values may be missing.
std::optional<Difference> compareShown(const RoundedValues &expected, const Values &actual,
                                       Allowance allowance);

/// How many numbers other than 0 are compared, and how many of them have a bound that is wider than
/// they are: those could be anything, 0 included.
struct BoundWidths {
  uint64_t values = 0, wide = 0;

  void add(const RoundedValues &expected, Allowance allowance);
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_ROUNDINGBOUND_H
