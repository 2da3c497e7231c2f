//===- InitAllPasses.h - registration of passes and pipelines ---*- C++ -*-===//
//
// The one place where passes are registered; tools and tests call it and add nothing by hand.
//
//===----------------------------------------------------------------------===//
#ifndef GENREC_INITALLPASSES_H
#define GENREC_INITALLPASSES_H

#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"
#include "genrec/Pipelines/Pipelines.h"

#include "mlir/Transforms/Passes.h"

namespace genrec {

/// Registers genrec's passes and pipelines and upstream's general ones (canonicalize, cse, …).
inline void registerAllPasses() {
  mlir::registerTransformsPasses();
  registerGenRecPasses();
  registerGenRecStepPasses();
  registerGenRecConversionPasses();
  registerPipelines();
  registerRewriteCounterOptions();
}

} // namespace genrec

#endif // GENREC_INITALLPASSES_H
