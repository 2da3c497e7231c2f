//===- Pipeline.cpp - the order of the passes below row kernels -----------===//

#include "genrec/Conversion/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace genrec;

void genrec::buildMemoryPipeline(OpPassManager &pm, StringRef target) {
  // Buffers are planned while programs are still lists of ops on values; which of them need
  // room for all rows is known once calls that run block by block are.
  if (target == "cpu")
    pm.nest<ModelOp>().addPass(createFormRowBlocks());
  pm.nest<ModelOp>().addPass(createPlanMemory());
}

void genrec::buildLoweringPipeline(OpPassManager &pm, StringRef target, StringRef compiler) {
  buildMemoryPipeline(pm, target);
  OutlineKernelsOptions outline;
  outline.target = target.str();
  pm.addPass(createOutlineKernels(outline));
  LowerToRuntimeOptions runtime;
  runtime.compiler = compiler.str();
  pm.addPass(createLowerToRuntime(runtime));
  pm.addPass(createLowerToEmitC());
}

void genrec::registerLoweringPipeline() {
  PassPipelineRegistration<>("genrec-lowering-pipeline", "from row kernels to EmitC, for the CPU",
                             [](OpPassManager &pm) { buildLoweringPipeline(pm, "cpu", "genrec-opt"); });
}
