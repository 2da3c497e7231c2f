//===- StepExchanges.h - what a step exchanges among ranks ------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_STEPEXCHANGES_H
#define GENREC_LIB_REPORT_STEPEXCHANGES_H

#include "DomainSizes.h"

#include <vector>

namespace genrec {

/// Rows whose ids are looked up in one table.
struct StepLookup {
  /// Of the data, all items of a catalogue, or rows that each portion draws.
  enum class Kind { data, catalogue, drawn };

  TableOp table;
  Kind kind;
  mlir::FlatSymbolRefAttr domain;
  int64_t rows = 0;         ///< in the assumed batch; drawn: in a portion
  bool isLate = false;      ///< looked up after the dispatch stage, by a fetch of its own
  bool hasGradient = false; ///< its rows are updated
};

/// What a distributed program exchanges in a step. Tables must not be merged.
struct StepExchanges {
  StepExchanges(ProgramOp program, const DomainSizes &sizes);

  std::vector<StepLookup> lookups;
  std::vector<int64_t> sums; ///< floats of each sum over portions
  std::vector<int64_t> gradients; ///< those of them that only updates of parameters read
  int64_t norms = 0;      ///< sums over rows of tables and parameters that take a round together
  int64_t tableNorms = 0; ///< those that have some over table rows
  int64_t losses = 0;
  bool updatesRows = false;
  bool sumsWithKeys = false; ///< some sums are complete before rows are there

  int64_t countFetches() const;
  int64_t countSumFloats() const;
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_STEPEXCHANGES_H
