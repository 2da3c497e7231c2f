//===- BlindSpots.cpp - genrec-fuzz --blind-spots --------------------------===//

#include "BlindTally.h"
#include "Modes.h"

using namespace genrec;
using namespace genrec::fuzz;

int fuzz::countBlindSpots(uint64_t first, uint64_t last, const mlir::DialectRegistry &dialects) {
  mlir::MLIRContext context(dialects, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  BlindTally tally;
  for (uint64_t seed = first; seed <= last; ++seed) {
    ObservableModel model = makeObservableModel(&context, seed);
    tally.add(model.spots);
    for (mlir::Operation *op : model.spots.blind)
      llvm::outs() << "seed " << seed << ": " << *op << "\n";
  }
  llvm::outs() << tally.describeOps() << "\n";
  return tally.isMany() ? 1 : 0;
}
