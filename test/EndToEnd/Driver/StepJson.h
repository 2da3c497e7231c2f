//===- StepJson.h - what a step leaves, as JSON -----------------*- C++ -*-===//
//
// In the form of `genrec-run --json`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_ENDTOEND_DRIVER_STEPJSON_H
#define GENREC_TEST_ENDTOEND_DRIVER_STEPJSON_H

#include "genrec_rt/session.h"
#include "llvm/Support/JSON.h"

#include <vector>

namespace genrec::rt::driver {

/// Losses, metrics, outputs of this rank's portions, parameters, and the rows that this rank has.
/// Throws Error at a row that it does not own.
llvm::json::Object stepToJson(Session &session, const StepReport &report);

/// stepToJson of all ranks, in order, as one process would have it. Throws Error where ranks differ
/// in what all should have, as rows of the tables `replicated`, or two have one row of another.
llvm::json::Object joinRanks(std::vector<llvm::json::Object> ofRanks,
                             const std::vector<std::string> &replicated);

} // namespace genrec::rt::driver

#endif // GENREC_TEST_ENDTOEND_DRIVER_STEPJSON_H
