//===- Mutation.h - changes ops, as mutation tests do -----------*- C++ -*-===//
//
// Mutation testing of the comparison of models before and after passes: each op that a pass created
// is changed in each of these ways, one at a time, and the comparison should detect it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_MUTATION_H
#define GENREC_FUZZ_MUTATION_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <string>

namespace genrec::fuzz {

/// One way to change an op.
struct Mutation {
  enum class Kind {
    operand,  ///< operand `index` replaced by another value of its type
    constant, ///< attribute `index` changed: a number, a kind, a flag
    /// a reduction removed: the list's first row replaces its sum, or nothing is accumulated
    reduction,
    fanout,    ///< the result of a fan-out is doubled
    tableBits, ///< only the lowest bits of a table's ids are kept
    /// gradient list `index` of a table is 0, or the gradients of its duplicate ids are
    lostGradient,
    portionSum, ///< sum `index` over portions is this portion's part; the next one: added up twice
    rowSums,    ///< the sums that a portion gives to owners of rows are 0, or twice what they are
  };
  Kind kind;
  unsigned index = 0;
};

/// Every mutation of `op`, in a fixed order.
llvm::SmallVector<Mutation> getMutations(mlir::Operation *op);

/// Changes `op` and returns a description, "operand 1 replaced by op12". Returns "" if the mutation
/// does not apply: there is no other value of the type, or the op stays the same.
std::string applyMutation(mlir::Operation *op, const Mutation &mutation);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_MUTATION_H
