//===- BlindTally.h - what a run could not have noticed ---------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_FUZZ_BLINDTALLY_H
#define GENREC_TOOLS_GENREC_FUZZ_BLINDTALLY_H

#include "genrec/Fuzz/BlindSpots.h"
#include "genrec/Fuzz/RoundingBound.h"

namespace genrec::fuzz {

/// Blind spots of all models of a run.
struct BlindTally {
  uint64_t ops = 0, blind = 0;
  BoundWidths widths;

  void add(const BlindSpots &spots) {
    ops += spots.ops;
    blind += spots.blind.size();
  }
  /// Too many to trust a run in which all agrees: 1 % of the ops.
  bool isMany() const { return 100 * blind >= ops; }
  std::string describeOps() const {
    return "blind spots: " + share(blind, ops) + " ops can be wrong unnoticed";
  }
  std::string describeWidths() const {
    return share(widths.wide, widths.values) + " values have bounds wider than themselves";
  }

private:
  static std::string share(uint64_t part, uint64_t whole) {
    double ratio = whole ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
    return llvm::formatv("{0} of {1} ({2:P3})", part, whole, ratio);
  }
};

} // namespace genrec::fuzz

#endif // GENREC_TOOLS_GENREC_FUZZ_BLINDTALLY_H
