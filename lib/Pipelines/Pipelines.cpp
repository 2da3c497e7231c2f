//===- Pipelines.cpp - the order of genrec's passes -----------------------===//

#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Adds passes over `genrec.model`, each followed by the hook.
class ModelSteps {
public:
  ModelSteps(OpPassManager &pm, const PipelineHook &hook)
      : models(pm.nest<ModelOp>()), hook(hook) {}

  /// A step that is `passes`, in order, seen by the hook as one.
  template <typename... Passes>
  void add(StringRef step, Passes... passes) {
    (models.addPass(std::move(passes)), ...);
    if (hook)
      hook(models, step);
  }

private:
  OpPassManager &models;
  const PipelineHook &hook;
};
} // namespace

void genrec::buildGraphPipeline(OpPassManager &pm,
                                const PipelineOptions &options,
                                const PipelineHook &hook) {
  ModelSteps steps(pm, hook);
  // Reject first: later passes take a well-formed model for granted.
  steps.add("verify-model", createVerifyModel());
  steps.add("infer-domains", createInferDomains());
  // Before anything is built for a mode that does not need it.
  steps.add("specialize-modes", createSpecializeModes());
  // What a mode does not need is not worth a thought of later passes.
  if (options.pruneColumns)
    steps.add("prune-columns", createPruneColumns());
  // Before tables are merged: a lookup that sinks is one of another domain.
  if (options.sinkFanout)
    steps.add("sink-fanout", createSinkFanout());
  if (options.mergeTables)
    // Equal lookups become one part of a group.
    steps.add("merge-tables", createCSEPass(), createMergeTables());
  // Writes into the keys of merged tables.
  if (options.fuseTransforms)
    steps.add("fuse-transforms", createFuseTransforms());
  // Blocks stay whole for passes over blocks, which come before this.
  steps.add("decompose-blocks", createDecomposeBlocks());
  // Equal lookups become one before differentiation, or their table would be
  // updated through two lists of gradients.
  steps.add("cse", createCSEPass());
  if (options.sinkFanout)
    // Inside of what were blocks.
    steps.add("sink-fanout", createSinkFanout(), createCSEPass());
  steps.add("differentiate", createDifferentiate());
  if (options.sinkFanout)
    steps.add("sink-fanout", createSinkFanout());
  // Gradients repeat parts of the forward computation.
  steps.add("cse", createCSEPass());
  if (options.splitClasses > 0) {
    // What reads the logits is known once gradients are there, and read them once.
    SplitClassesOptions classes;
    classes.block = options.splitClasses;
    steps.add("split-classes", createSplitClasses(classes));
  }
  steps.add("expand-updates", createExpandUpdates());
  steps.add("cse", createCSEPass());
  // The last that may still be told from what the user wrote.
  steps.add("verify-ownership", createVerifyOwnership());
  if (options.factorLookups) {
    // Handles and their gradients are known; what is left of the columns is fused below.
    steps.add("factor-lookups", createFactorLookups(), createCSEPass());
    steps.add("verify-ownership", createVerifyOwnership());
  }
  // Nothing is fused across stages, so they come before fusion.
  steps.add("assign-stages", createAssignStages());
  // What only reads a product is done before it is stored, rather than by a kernel
  // that reads it back.
  if (options.opt >= 1)
    steps.add("fold-epilogues", createFoldEpilogues());
  FormRowKernelsOptions kernels;
  kernels.opt = options.opt;
  steps.add("form-row-kernels", createFormRowKernels(kernels));
}

void genrec::buildMemoryPipeline(OpPassManager &pm, TargetKind target) {
  AttachTargetOptions attach;
  attach.target = stringifyTargetKind(target).str();
  pm.addPass(createAttachTarget(attach));
  // Buffers are planned while programs are still lists of ops on values; which of them need
  // room for all rows is known once calls that run block by block are.
  pm.nest<ModelOp>().addPass(createFormRowBlocks());
  pm.nest<ModelOp>().addPass(createPlanMemory());
}

void genrec::buildKernelPipeline(OpPassManager &pm, TargetKind target) {
  buildMemoryPipeline(pm, target);
  pm.addPass(createOutlineKernels());
}

void genrec::buildLoweringPipeline(OpPassManager &pm, TargetKind target, StringRef compiler) {
  buildKernelPipeline(pm, target);
  LowerToRuntimeOptions runtime;
  runtime.compiler = compiler.str();
  pm.addPass(createLowerToRuntime(runtime));
  pm.addPass(createLowerToEmitC());
}

void genrec::buildPipeline(OpPassManager &pm, const PipelineOptions &options,
                           const PipelineHook &hook) {
  buildGraphPipeline(pm, options, hook);
  buildLoweringPipeline(pm, options.target, options.compiler);
}

void genrec::registerPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "genrec-graph-pipeline",
      "from an imported model to row kernels: what the interpreter evaluates",
      [](OpPassManager &pm, const PipelineOptions &options) {
        buildGraphPipeline(pm, options);
      });
  PassPipelineRegistration<>("genrec-lowering-pipeline", "from row kernels to EmitC, for the CPU",
                             [](OpPassManager &pm) {
                               buildLoweringPipeline(pm, TargetKind::cpu, "genrec-opt");
                             });
  PassPipelineRegistration<PipelineOptions>(
      "genrec-pipeline", "from an imported model to EmitC",
      [](OpPassManager &pm, const PipelineOptions &options) {
        buildPipeline(pm, options);
      });
}
