//===- RoundingBound.h - bounds on rounding errors --------------*- C++ -*-===//
//
// Two levels of a model may differ by rounding errors, and by nothing else. How large rounding
// errors become depends on the model (an optimizer divides by a small root, a sum cancels), so the
// bound is measured for each value: the interpreter runs the model several times with random errors
// of 2^-24 after every op (Monte Carlo arithmetic; Parker, 1997). The largest deviation among these
// runs is the value's *spread*. The bound is computed from the spread and the size of the value.
//
// A product with `bf16` rounds a factor to 8 bits: another rounding error before it may give
// another bfloat16, and a pass may round a sum of gradients instead of its terms. How far that
// reaches is measured likewise, by runs that change every such factor by a random fraction of at
// most 2^-8.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_ROUNDINGBOUND_H
#define GENREC_FUZZ_ROUNDINGBOUND_H

#include "genrec/Fuzz/Observations.h"

#include <set>

namespace genrec::fuzz {

/// The bound on the difference of a value: `spreads` times its spread plus `units` times its size,
/// the largest absolute value that it ever had. The size matters because an optimizer's change of a
/// weight has a rounding error relative to that change, however small the gradient is.
struct Allowance {
  double spreads, units;
};

/// What is allowed besides, in spreads of the runs that change factors of products with `bf16`:
/// they change every factor, where rounding errors change few.
inline constexpr double kCoarseSpreads = 4.0;

/// For compiled code. It also rounds inside of an op (a sum of n terms rounds n times; exp and tanh
/// have errors of a few units) and in another order, and a few random runs do not show the worst
/// case: hence a few dozen spreads. Stored values are rounded at each of two steps, before and
/// after weight decay. A gradient scaled by 1.001 exceeds the bound a hundredfold.
inline constexpr Allowance kCompiledAllowance{64.0, 8 * 0x1.0p-24};
/// For levels whose constants are f32 (decomposed blocks, expanded optimizers), interpreted in
/// double: a few errors of 2^-24, which some ops magnify.
inline constexpr Allowance kConstantsAllowance{16.0, 8 * 0x1.0p-24};
/// For levels that only reorder sums and products, in double: kCompiledAllowance scaled by 2^-29.
inline constexpr Allowance kDoubleAllowance{64.0 * 0x1.0p-29, 8 * 0x1.0p-53};

/// Values and their spreads.
struct RoundedValues {
  Values exact, spread;
  Values sizes; ///< the largest absolute value, where it is not that of the exact value
  /// Names that exist only in runs with errors: table rows whose gradient is 0 but for rounding.
  std::set<std::string> byChance;
  /// Spreads of changed factors and rows; empty for a model without bf16.
  Values coarse = {};
};

struct RoundedObservations {
  RoundedValues forward, trained;
};

/// The largest share of a bound that any value used, and which value that is.
struct Margin {
  double used = 0.0; ///< largest |difference| / allowed difference
  std::string name;
};

/// With this many runs, all random errors of a value are small with a probability below 1e-9.
inline constexpr uint64_t kManyRuns = 12;
/// For kConstantsAllowance: such levels have few errors.
inline constexpr uint64_t kFewRuns = 6;

/// Runs `model` once exactly and `runs` times perturbed, and as often with changed factors where it
/// rounds to bf16.
llvm::Expected<RoundedObservations> observeRounding(ModelOp model,
                                                    llvm::ArrayRef<interpreter::Batch> batches,
                                                    uint64_t seed, uint64_t runs);
/// The same where what it shows exactly, from `initial` on, is known, with batches of
/// `portionsInOne` portions.
llvm::Expected<RoundedObservations> observeRounding(ModelOp model,
                                                    const interpreter::State &initial,
                                                    llvm::ArrayRef<interpreter::Batch> batches,
                                                    Observations exact, uint64_t runs,
                                                    int64_t portionsInOne);

/// A value that differs by more than its bound.
struct Difference {
  std::string name; ///< as `observe` names it
  std::string text; ///< the value and the expected one
};

/// The first value of `actual` that differs by more than its bound, is missing, or is a table row
/// that should not exist. Gradients may be missing, as some levels do not name them. Updates
/// `margin`.
std::optional<Difference> compareRounded(const RoundedValues &expected, const Values &actual,
                                         Allowance allowance, Margin *margin = nullptr);

/// The same for a run that is not finished: values may be missing.
std::optional<Difference> compareShown(const RoundedValues &expected, const Values &actual,
                                       Allowance allowance);

/// The number of compared values other than 0, and how many of them have a bound larger than
/// themselves: these could have any value, 0 included.
struct BoundWidths {
  uint64_t values = 0, wide = 0;

  void add(const RoundedValues &expected, Allowance allowance);
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_ROUNDINGBOUND_H
