//===- GenRecTraits.h - facts about ops that passes ask for -----*- C++ -*-===//
//
// Traits without methods; GenRecInterfaces.td declares them to TableGen, and holds what needs an
// argument or an answer.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H
#define GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H

#include "mlir/IR/OpDefinition.h"

namespace genrec {

/// The rows of result 0 are rows of operand 0, unchanged, or 0.
template <typename OpT> struct PassesRowsOn : mlir::OpTrait::TraitBase<OpT, PassesRowsOn> {};

/// The results are domains whose rows are read from data.
template <typename OpT> struct ReadsDomains : mlir::OpTrait::TraitBase<OpT, ReadsDomains> {};

/// The elements of the result are elements of operand 0, repeated or 0: a kernel that reads them
/// from the operand does not have to compute anything.
template <typename OpT> struct CopiesElements : mlir::OpTrait::TraitBase<OpT, CopiesElements> {};

/// In a row kernel, a row of the result is the row of operand 0.
template <typename OpT> struct IsOperandRow : mlir::OpTrait::TraitBase<OpT, IsOperandRow> {};

/// A row of the results follows from the same row of the operands (and from shared tensors), though
/// the op is not row-wise as a kernel is.
template <typename OpT> struct RowLocal : mlir::OpTrait::TraitBase<OpT, RowLocal> {};

/// The rows of the results that belong to a list follow from the rows of the operands that belong
/// to it.
template <typename OpT> struct ListLocal : mlir::OpTrait::TraitBase<OpT, ListLocal> {};

/// The result has a row per list of operand 0's domain.
template <typename OpT> struct ReducesLists : mlir::OpTrait::TraitBase<OpT, ReducesLists> {};

/// Reads what only the running step has: weights, table rows, step values, random numbers.
template <typename OpT> struct NeedsRunningStep : mlir::OpTrait::TraitBase<OpT, NeedsRunningStep> {};

/// A row of operand 0 becomes several rows of the result.
template <typename OpT> struct FansOut : mlir::OpTrait::TraitBase<OpT, FansOut> {};

/// The result is operand 0 plus or minus operand 1.
template <typename OpT> struct IsSum : mlir::OpTrait::TraitBase<OpT, IsSum> {};

/// A matrix product that is a sum over the columns of operand 0: of parts of them, apart.
template <typename OpT> struct IsColumnProduct : mlir::OpTrait::TraitBase<OpT, IsColumnProduct> {};

/// The results are keys of merged tables.
template <typename OpT> struct MakesMergedKeys : mlir::OpTrait::TraitBase<OpT, MakesMergedKeys> {};

/// The result names rows of tables or parameters, none of them twice.
template <typename OpT> struct MakesUniqueRows : mlir::OpTrait::TraitBase<OpT, MakesUniqueRows> {};

/// A body op that computes each element of its result from the same element of its operand.
template <typename OpT> struct ElementwiseBody : mlir::OpTrait::TraitBase<OpT, ElementwiseBody> {};

/// `IdBitsOpInterface` of integers that nothing is known of.
inline constexpr int64_t kUnknownIdBits = 64;

/// The form that an op of a row kernel's body takes in the loops over a row's elements.
enum class BodyKind {
  scalar,  ///< a C value, computed once
  address, ///< a pointer into memory that holds the row
  element, ///< one element per iteration of a loop
  call,    ///< a call that reads whole rows
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_GENRECTRAITS_H
