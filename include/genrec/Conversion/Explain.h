//===- Explain.h - what became of a model, and why --------------*- C++ -*-===//

#ifndef GENREC_CONVERSION_EXPLAIN_H
#define GENREC_CONVERSION_EXPLAIN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The size of the batch to speak of.
struct ExplainOptions {
  int64_t batch = 128;   ///< root rows
  int64_t longest = 200; ///< entries of every list: an upper bound
};

/// Writes, as plain text: tables, kernels with the ops each was made of, library calls
/// with their matrix-product FLOPs, values kept between kernels with the reason, and the
/// memory of a step. `model` is a model after `plan-memory`.
void explain(ModelOp model, const ExplainOptions &options, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_CONVERSION_EXPLAIN_H
