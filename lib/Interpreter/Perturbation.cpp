//===- Perturbation.cpp - rounding, random errors, injected faults --------===//
//
// Monte Carlo arithmetic (Parker, 1997): each result of an f32 op is changed by a random fraction
// of at most 2^-24, so that a few runs show how far rounding errors propagate. The fraction depends
// on the value and the run only, so equal values stay equal. Ops that only move, select or negate
// values are exact, so ties stay ties.
//
//===----------------------------------------------------------------------===//

#include "Random.h"
#include "genrec/Interpreter/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

static bool isChoice(PoolKind kind) { return kind != PoolKind::sum && kind != PoolKind::mean; }

/// Whether each element of the result is an element of an operand, its negative or absolute value,
/// a constant, or 0. What is read (parameters, features, lookups and the loads of rows that these
/// become) is not exact, although nothing rounds it: perturbing it models the rounding inside of
/// the sums that it enters (a computed sum is the exact sum of slightly changed operands).
static bool isExact(Operation *op) {
  if (isa<RowLoadOp>(op))
    return false;
  if (auto pool = dyn_cast<PoolOp>(op))
    return isChoice(pool.getKind());
  if (auto pool = dyn_cast<PoolGradOp>(op))
    return isChoice(pool.getKind());
  // The sum, mean or product of one element is that element.
  if (auto reduce = dyn_cast<RowReduceOp>(op))
    return reduce.getKind() == ReduceKind::max || getRowSize(reduce.getX().getType()) == 1;
  if (auto reduce = dyn_cast<vector::ReductionOp>(op))
    return (reduce.getKind() != vector::CombiningKind::ADD &&
            reduce.getKind() != vector::CombiningKind::MUL) ||
           reduce.getSourceVectorType().getNumElements() == 1;
  return op->hasTrait<PassesRowsOn>() || op->hasTrait<CopiesElements>() ||
         op->hasTrait<SelectsElements>() || op->hasTrait<RoundsNothing>() ||
         isa<arith::ConstantOp, arith::SelectOp, arith::MaximumFOp, arith::MinimumFOp,
             arith::MaxNumFOp, arith::MinNumFOp, arith::NegFOp, math::AbsFOp, math::CopySignOp,
             arith::SIToFPOp, arith::UIToFPOp, arith::ExtFOp, vector::BroadcastOp,
             vector::ExtractStridedSliceOp, vector::InsertStridedSliceOp, vector::ExtractOp,
             vector::InsertOp, vector::FromElementsOp>(op);
}

void Evaluator::perturb(Operation *op, std::vector<double> &values) const {
  // A stored weight is rounded once per step. Its update is small compared with it, and a
  // perturbation of the weight would hide the update.
  if (!op || updatesRows || isExact(op))
    return;
  for (double &value : values)
    value = perturbed(value);
}

/// A random number in [-1, 1), the same of equal values in a run.
static double getFraction(double value, uint64_t run) {
  uint64_t word = splitMix(llvm::bit_cast<uint64_t>(value) ^ splitMix(run));
  return static_cast<double>(static_cast<int64_t>(word)) * 0x1.0p-63;
}

double Evaluator::perturbed(double value) const {
  if (options.precision != Precision::perturbed)
    return value;
  double fraction = getFraction(value, options.perturbation);
  return value * (1.0 + fraction * 0x1.0p-24); // an infinity, as of a masked score, stays one
}

double Evaluator::perturbedSum(double sum, double squares) const {
  if (options.precision != Precision::perturbed || !std::isfinite(squares))
    return sum;
  return sum + getFraction(sum, options.perturbation) * 0x1.0p-24 * std::sqrt(squares);
}

/// With double as with float, as machines round f32: to float first. Factors of products that are
/// subnormal are 0.
static double roundFactorToBf16(double value) {
  float single = static_cast<float>(value);
  if (!std::isfinite(single))
    return single;
  if (std::fabs(single) < std::numeric_limits<float>::min())
    return std::copysign(0.0, value);
  uint32_t bits = llvm::bit_cast<uint32_t>(single);
  bits += 0x7fff + (bits >> 16 & 1);
  return llvm::bit_cast<float>(bits & 0xffff0000);
}

double Evaluator::coarse(double value, double most) const {
  return value * (1.0 + getFraction(value, options.perturbation) * most);
}

double Evaluator::toBf16(double value) const {
  return options.coarseFactors ? coarse(value, 0x1.0p-8) : roundFactorToBf16(value);
}

// A rounding error before may give another bfloat16: the next one, at most 2^-7 away.
double Evaluator::storedBf16(double value) const {
  return options.coarseFactors ? coarse(value, 0x1.0p-7) : nearestBf16(value);
}

void Evaluator::readValue(const RowHandle &row, int64_t count, double *to) const {
  std::transform(row.value, row.value + count, to, [&](double value) {
    if (!row.isHot)
      return value;
    return options.coarseFactors ? coarse(value, 0x1.0p-7) : truncatedBf16(value);
  });
}

double Evaluator::storedBf16(double value, uint16_t bits) const {
  return options.coarseFactors ? coarse(value, 0x1.0p-7) : stochasticBf16(value, bits);
}

Factor::Factor(const Evaluator &e, ProductOpInterface product, const Tensor &x) : whole(x) {
  if (!product.getBf16())
    return;
  rounded = x;
  for (double &value : rounded->floats())
    value = e.toBf16(value);
}

double Evaluator::label(double value) const {
  constexpr double kUnits = 0x1.0p20; // far above perturbations, far below differences of labels
  return options.precision == Precision::perturbed ? std::round(value * kUnits) / kUnits : value;
}

void Evaluator::makeFaulty(Type element, Tensor &tensor) {
  if (tensor.isFloat()) {
    for (auto [index, value] : llvm::enumerate(tensor.floats()))
      value *= splitMix(index) % 2 ? 1.5 : 0.5;
  } else if (tensor.isInteger() && element.isInteger(1)) {
    for (int64_t &flag : tensor.integers())
      flag = !flag;
  } else if (tensor.rows > 1) {
    // Row r gets the values of row r + 1, which are valid ids, classes, positions or times. The
    // last row keeps its own, as a rotation would leave sums over rows unchanged.
    std::visit(
        [&](auto &values) {
          std::copy(values.begin() + tensor.width, values.end(), values.begin());
        },
        tensor.data);
  }
}
