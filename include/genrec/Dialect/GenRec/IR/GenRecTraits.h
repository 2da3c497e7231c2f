//===- GenRecTraits.h - properties of ops that passes query -----*- C++ -*-===//
//
// Traits without methods. GenRecInterfaces.td declares them to TableGen; properties with arguments
// or results are interfaces there.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H
#define GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H

#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallBitVector.h"

namespace genrec {

/// Each row of result 0 is an unchanged row of operand 0, or 0.
template <typename OpT> struct PassesRowsOn : mlir::OpTrait::TraitBase<OpT, PassesRowsOn> {};

/// The results are domains that are read from data.
template <typename OpT> struct ReadsDomains : mlir::OpTrait::TraitBase<OpT, ReadsDomains> {};

/// Each element of the result is an element of operand 0, or 0. A kernel can read it from the
/// operand without computing anything.
template <typename OpT> struct CopiesElements : mlir::OpTrait::TraitBase<OpT, CopiesElements> {};

/// In a row kernel, a row of the result is the row of operand 0.
template <typename OpT> struct IsOperandRow : mlir::OpTrait::TraitBase<OpT, IsOperandRow> {};

/// Each row of the results depends on the same row of the operands (and on shared tensors),
/// although the op is not a `RowwiseOpInterface`.
template <typename OpT> struct RowLocal : mlir::OpTrait::TraitBase<OpT, RowLocal> {};

/// The rows of a list in the results depend only on the rows of the same list in the operands.
template <typename OpT> struct ListLocal : mlir::OpTrait::TraitBase<OpT, ListLocal> {};

/// What the results have below one row of a root domain depends only on what the operands have
/// below that row (and on shared tensors), although the op is neither row-wise nor `ListLocal`.
template <typename OpT> struct TreeLocal : mlir::OpTrait::TraitBase<OpT, TreeLocal> {};

/// The result is a column of the data, per row of the operand, a domain.
template <typename OpT> struct ReadsColumn : mlir::OpTrait::TraitBase<OpT, ReadsColumn> {};

/// Depends on the seed and the number of the step, besides the operands.
template <typename OpT> struct ReadsStepNumber : mlir::OpTrait::TraitBase<OpT, ReadsStepNumber> {};

/// The result has one row per list of operand 0's domain.
template <typename OpT> struct ReducesLists : mlir::OpTrait::TraitBase<OpT, ReducesLists> {};

/// Reads values that exist only while a step runs: weights, table rows, step values, random
/// numbers.
template <typename OpT>
struct NeedsRunningStep : mlir::OpTrait::TraitBase<OpT, NeedsRunningStep> {};

/// A row of operand 0 is copied to several rows of the result.
template <typename OpT> struct FansOut : mlir::OpTrait::TraitBase<OpT, FansOut> {};

/// The result is operand 0 plus or minus operand 1.
template <typename OpT> struct IsSum : mlir::OpTrait::TraitBase<OpT, IsSum> {};

/// A matrix product that can be split into a sum of products over blocks of operand 0's columns.
template <typename OpT> struct IsColumnProduct : mlir::OpTrait::TraitBase<OpT, IsColumnProduct> {};

/// The results are keys of merged tables.
template <typename OpT> struct MakesMergedKeys : mlir::OpTrait::TraitBase<OpT, MakesMergedKeys> {};

/// The result is a list of table or parameter rows without duplicates.
template <typename OpT> struct MakesUniqueRows : mlir::OpTrait::TraitBase<OpT, MakesUniqueRows> {};

/// The rows of the domain that it makes belong to this rank: rows of a table, or of a parameter
/// whose updates ranks may share.
template <typename OpT> struct MakesOwnedRows : mlir::OpTrait::TraitBase<OpT, MakesOwnedRows> {};

/// Each element of the results is an unchanged element of one of several operands.
template <typename OpT> struct SelectsElements : mlir::OpTrait::TraitBase<OpT, SelectsElements> {};

/// No element of the results is rounded: each is an element of an operand, its negative or absolute
/// value, its conversion to another type, a constant, a random number, or 0. Ops with
/// `PassesRowsOn`, `CopiesElements` or `SelectsElements` round nothing either and do not have this
/// trait.
template <typename OpT> struct RoundsNothing : mlir::OpTrait::TraitBase<OpT, RoundsNothing> {};

/// Gives values of one portion of a batch to sums over all portions.
template <typename OpT> struct GivesToSums : mlir::OpTrait::TraitBase<OpT, GivesToSums> {};

/// The results are sums over all portions of a batch. A program with such an op is distributed.
template <typename OpT> struct SumsPortions : mlir::OpTrait::TraitBase<OpT, SumsPortions> {};

/// Works on the table rows that a portion touches, and on their gradients.
template <typename OpT> struct OfTouchedRows : mlir::OpTrait::TraitBase<OpT, OfTouchedRows> {};

/// The result is a domain of kind `derived`.
template <typename OpT> struct DerivesDomain : mlir::OpTrait::TraitBase<OpT, DerivesDomain> {};

/// A declaration of weights: a table or a parameter.
template <typename OpT> struct DeclaresWeights : mlir::OpTrait::TraitBase<OpT, DeclaresWeights> {};

/// Applies an optimizer to weights (until `expand-updates`).
template <typename OpT> struct UpdatesWeights : mlir::OpTrait::TraitBase<OpT, UpdatesWeights> {};

/// Reports a loss.
template <typename OpT> struct IsLoss : mlir::OpTrait::TraitBase<OpT, IsLoss> {};

/// Each element of the result depends on the same element of the operands, of which those with rows
/// of shape [] are repeated.
template <typename OpT> struct ElementwiseRows : mlir::OpTrait::TraitBase<OpT, ElementwiseRows> {};

/// A body op where each element of the result depends on the same element of the operand.
template <typename OpT> struct ElementwiseBody : mlir::OpTrait::TraitBase<OpT, ElementwiseBody> {};

/// Rows of its source that an op reads (`GathersRowsOpInterface`).
struct GatheredRows {
  int64_t perRow = 0; ///< for each row of the result
  int64_t shared = 0; ///< for all rows together
};

/// Whether `operands` are all operands of `op` whose elements are floats.
bool variesInAllFloats(mlir::Operation *op, const llvm::SmallBitVector &operands);

/// Result of `IdBitsOpInterface` if no bound is known.
inline constexpr int64_t kUnknownIdBits = 64;

/// How an op of a row kernel's body is emitted in the loops over a row's elements.
enum class BodyKind {
  scalar,  ///< a C value, computed once
  address, ///< a pointer to the memory of the row
  element, ///< one element per iteration of a loop
  call,    ///< a call on whole rows
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H
