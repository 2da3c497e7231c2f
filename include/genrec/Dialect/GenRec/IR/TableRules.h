//===- TableRules.h - admission and eviction rules of a table ----*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_IR_TABLERULES_H
#define GENREC_DIALECT_GENREC_IR_TABLERULES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <optional>

namespace genrec {

/// The unit attribute of a table whose `ttl` counts seconds of the run's clock instead of steps.
inline constexpr llvm::StringLiteral kTtlInSeconds = "ttl_in_seconds";

/// Steps without being seen after which a row is evicted; none where `ttl` counts seconds.
std::optional<int64_t> getTtlSteps(TableOp table);
/// The same in seconds; none where `ttl` counts steps.
std::optional<int64_t> getTtlSeconds(TableOp table);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_TABLERULES_H
