//===- JsonBatch.h - batches in the JSON of genrec-run ----------*- C++ -*-===//

#ifndef GENREC_TEST_ENDTOEND_DRIVER_JSONBATCH_H
#define GENREC_TEST_ENDTOEND_DRIVER_JSONBATCH_H

#include "genrec_rt/batch.h"
#include "llvm/Support/JSON.h"

namespace genrec::rt::driver {

/// The rows of `root` (a data root or a catalogue) and of the domains below it.
/// `rows` is the JSON list of root rows. Throws Error where something is missing.
Batch readRows(const genrec_model_desc &model, int32_t root, const llvm::json::Array &rows,
               const llvm::json::Array *positions);

} // namespace genrec::rt::driver

#endif // GENREC_TEST_ENDTOEND_DRIVER_JSONBATCH_H
