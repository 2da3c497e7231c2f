//===- Costs.h - lower bounds on the work of step ops -----------*- C++ -*-===//
//
// Bytes and floating-point operations of row kernels and library calls, per row of the domains that
// they iterate over. Each byte counts once, even if several lines of a kernel read it. `--explain`,
// the profile of a binary and the roofline predictions use these costs. A test compares those of
// row kernels with the loads and stores of the emitted code.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_COSTS_H
#define GENREC_DIALECT_GENREC_STEP_COSTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The work per row of `domain`, or per step if that is null.
struct OpCost {
  mlir::FlatSymbolRefAttr domain;
  double bytes = 0;         ///< read and written sequentially
  double gatheredBytes = 0; ///< of rows that are gathered or scattered by an index
  double flops = 0;         ///< outside of matrix products, by Analysis/Operations.h
  double productFlops = 0;
  double pairFlops = 0; ///< per causal pair: a row with itself or with a row before it in its list
  double sourceBytes = 0; ///< of tensors that rows are gathered from

  CostAttr toAttribute(mlir::MLIRContext *context) const;
  static OpCost fromAttribute(CostAttr attribute);
};

/// Bytes of an index, offset, identity or handle.
inline constexpr double kIndexBytes = 8;

/// The costs of one op, by domain. The domain that was asked for first stays the first.
class StepCosts {
public:
  explicit StepCosts(mlir::FlatSymbolRefAttr over) : own(over) { get(over); }

  OpCost &get(mlir::FlatSymbolRefAttr domain);
  /// The costs for the domain that the op iterates over.
  OpCost &getOwn() { return get(own); }

  /// Adds one sequential read or write of a tensor; other types cost nothing.
  void addTensor(mlir::Type type);
  /// Adds `elements` elements of a row of `type` per row of `domain`, which may be another one.
  void addRowOf(mlir::FlatSymbolRefAttr domain, mlir::Type type, int64_t elements);
  /// Adds `elements` elements of each row of a tensor with a domain.
  void addRow(mlir::Type type, int64_t elements);
  /// Adds a tensor that rows are gathered from.
  void addSource(mlir::Type type);
  /// Adds one read of every operand and one write of every result.
  void addOperandsAndResults(mlir::Operation *op);

  llvm::SmallVector<OpCost> take();

private:
  mlir::FlatSymbolRefAttr own;
  llvm::SmallVector<OpCost> costs;
};

/// The costs of a row kernel, a launch or a library call; those of the domain it iterates over come
/// first.
llvm::SmallVector<OpCost> getCosts(mlir::Operation *op);

/// Whether `op` multiplies factors that are rounded to bfloat16.
bool multipliesRounded(mlir::Operation *op);

/// The domain of the first result that has one, or else of the first such operand; null if there is
/// none.
mlir::FlatSymbolRefAttr getFirstDomain(mlir::Operation *op);

/// The name of `op` in the C++ code and in profiles: that of a kernel's function, or the op's own.
/// When kernels are outlined, equal names get a number appended.
std::string getStepOpName(mlir::Operation *op);

/// "lookup, pool (ranker.py:9)": the ops that `op` was made from, with user names and source lines.
std::string describeOrigin(mlir::Operation *op);

/// Whether these are several lines: the location of `op` is then one of them.
bool isOfSeveralLines(mlir::Operation *op);

/// The location of `op`, and behind it the lines that it lacks of a row kernel's body: for the
/// launch that takes the kernel's place.
mlir::Location getLocOfLines(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_COSTS_H
