//===- Costs.h - what an op of a step has to do at least --------*- C++ -*-===//
//
// Bytes and floating-point operations of row kernels and library calls, per row of the domains
// that they go over. Bytes are those that must be touched: a value that several lines of a kernel
// read counts once. `--explain`, the profile of a binary and the roofline's predictions use
// them; a test compares those of row kernels with the loads and stores of the emitted code.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_COSTS_H
#define GENREC_DIALECT_GENREC_STEP_COSTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {


/// What is done once per row of `domain`, or once at all where that is null.
struct OpCost {
  mlir::FlatSymbolRefAttr domain;
  double bytes = 0;         ///< read and written one after another
  double gatheredBytes = 0; ///< in rows picked by an index
  double flops = 0;         ///< outside of matrix products, by Analysis/Operations.h
  double productFlops = 0;
  double pairFlops = 0;   ///< per pair of an entry with itself or one before it in its list
  double sourceBytes = 0; ///< that others pick rows from

  CostAttr toAttribute(mlir::MLIRContext *context) const;
  static OpCost fromAttribute(CostAttr attribute);
};

/// Bytes of an index, an offset, an identity or a handle.
inline constexpr double kIndexBytes = 8;

/// Costs of one op by domain; the first domain asked for stays the first.
class StepCosts {
public:
  explicit StepCosts(mlir::FlatSymbolRefAttr over) : own(over) { get(over); }

  OpCost &get(mlir::FlatSymbolRefAttr domain);
  /// Of the domain that the op goes over.
  OpCost &getOwn() { return get(own); }

  /// All of a tensor, read or written once; other types count nothing.
  void addTensor(mlir::Type type);
  /// A tensor that rows are picked from.
  void addSource(mlir::Type type);
  /// Every operand read once, every result written once.
  void addOperandsAndResults(mlir::Operation *op);

  llvm::SmallVector<OpCost> take();

private:
  mlir::FlatSymbolRefAttr own;
  llvm::SmallVector<OpCost> costs;
};

/// The costs of a row kernel, a launch or a library call, the domain that it goes over first.
llvm::SmallVector<OpCost> getCosts(mlir::Operation *op);

/// The domain of the first result that has one, else of the first operand; null where none has.
mlir::FlatSymbolRefAttr getFirstDomain(mlir::Operation *op);

/// What the C++ and profiles call `op`: a kernel's function, or the op's own name. Kernels of one
/// name get numbers behind theirs when they are outlined.
std::string getStepOpName(mlir::Operation *op);

/// "lookup, pool (ranker.py:9)": what `op` came from, by the names and lines of the user's model.
std::string describeOrigin(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_COSTS_H
