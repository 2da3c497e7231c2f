//===- Mutation.h - IR damaged mechanically ---------------------*- C++ -*-===//
//
// How much of what can go wrong does the comparison of levels catch? Each op that a pass made is
// damaged in every way listed here, one at a time, and the damaged level is judged like any other.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_MUTATION_H
#define GENREC_FUZZ_MUTATION_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <string>

namespace genrec::fuzz {

/// One way to damage an op.
struct Mutation {
  enum class Kind {
    operand,      ///< operand `index` replaced by another value of its type
    constant,     ///< attribute `index` changed: a number, a kind, a flag
    reduction,    ///< a reduction dropped: one row stands for the list, nothing is added up
    fanout,       ///< what is fanned out counts twice
    tableBits,    ///< only the lowest bits of a table's ids are kept
    lostGradient, ///< gradient list `index` of a table lost, or that of a row's duplicate
  };
  Kind kind;
  unsigned index = 0;
};

/// Every way to damage `op`, in a fixed order.
llvm::SmallVector<Mutation> getMutations(mlir::Operation *op);

/// Damages `op`. Returns what was done, "operand 1 replaced by op12"; empty where it cannot be done
/// here (there is no other value of the type, or the change gives back what was there).
std::string applyMutation(mlir::Operation *op, const Mutation &mutation);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_MUTATION_H
