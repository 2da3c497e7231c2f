//===- Options.h - genrec-run's command line --------------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_RUN_OPTIONS_H
#define GENREC_TOOLS_GENREC_RUN_OPTIONS_H

#include "Printer.h"

#include "mlir/IR/DialectRegistry.h"

namespace genrec::run {

struct Options {
  std::string input = "-";
  std::vector<std::string> batches; ///< JSON files; none: random batches
  uint64_t randomSeed = 1;
  int64_t rows = 4;
  int64_t steps = 1;
  uint64_t seed = 1;
  interpreter::Mode mode = interpreter::Mode::train;
  interpreter::RunOptions run;
  std::string pipeline;
  std::vector<Section> sections;
  bool json = false;
  bool printBatch = false;
  bool splitInput = false;
  bool checkGradients = false;
  bool allowZero = false;
  interpreter::GradientCheckOptions check;
};

/// Adds the dialects of the plugins that the command line names. Ends the program with a message
/// where it is wrong.
Options parseCommandLine(int argc, char **argv, mlir::DialectRegistry &registry);

} // namespace genrec::run

#endif // GENREC_TOOLS_GENREC_RUN_OPTIONS_H
