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

  /// Adds `passes` in order as one step: the hook is called once, after the last.
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
  // First: later passes assume a well-formed model.
  steps.add("verify-model", createVerifyModel());
  steps.add("infer-domains", createInferDomains());
  // Before passes that take products apart: the pieces get the attribute from the whole.
  if (options.mixedPrecision)
    steps.add("mixed-precision", createMixedPrecision());
  // Before passes spend work on ops that a mode does not need.
  steps.add("specialize-modes", createSpecializeModes());
  // Right after specialisation, so that later passes do not process columns that a mode does not
  // need.
  if (options.pruneColumns)
    steps.add("prune-columns", createPruneColumns());
  // Before merge-tables: moving a lookup below a fan-out changes the lookup's domain.
  if (options.sinkFanout)
    steps.add("sink-fanout", createSinkFanout());
  if (options.mergeTables)
    // CSE first: equal lookups then become one part of the merged lookup.
    steps.add("merge-tables", createCSEPass(), createMergeTables());
  // After merge-tables: the fused columns compute the keys of merged tables.
  if (options.fuseTransforms)
    steps.add("fuse-transforms", createFuseTransforms());
  // After the passes that match whole blocks.
  steps.add("decompose-blocks", createDecomposeBlocks());
  // Before differentiation: equal lookups must become one op, as their table would otherwise be
  // updated with two lists of gradients.
  steps.add("cse", createCSEPass());
  if (options.sinkFanout)
    // Again for fan-outs inside of the decomposed blocks.
    steps.add("sink-fanout", createSinkFanout(), createCSEPass());
  // Before differentiation, whose gradient is then that of the interaction.
  if (options.formInteractions)
    steps.add("form-interactions", createFormInteractions());
  // Before differentiation: the backward pass is then that of lookups of the picked rows.
  if (options.pickCatalogueRows)
    steps.add("pick-catalogue-rows", createPickCatalogueRows(), createCSEPass());
  steps.add("differentiate", createDifferentiate());
  if (options.sinkFanout)
    steps.add("sink-fanout", createSinkFanout());
  // Gradients repeat parts of the forward pass.
  steps.add("cse", createCSEPass());
  if (options.splitClasses > 0) {
    // After differentiate and cse: all readers of the logits now exist, and each reads them once.
    SplitClassesOptions classes;
    classes.block = options.splitClasses;
    steps.add("split-classes", createSplitClasses(classes));
  }
  steps.add("expand-updates", createExpandUpdates());
  steps.add("cse", createCSEPass());
  // After expand-updates, which makes handles, sums and the norm of gradients explicit; before
  // factor-lookups: nothing is factored yet.
  steps.add("distribute", createDistribute());
  // Before factor-lookups, which introduces ops that the user's model did not have.
  steps.add("verify-ownership", createVerifyOwnership());
  if (options.factorLookups) {
    // After expand-updates, which creates row handles and their gradients; before form-row-kernels,
    // which fuses the ops that remain.
    steps.add("factor-lookups", createFactorLookups(), createCSEPass());
    steps.add("verify-ownership", createVerifyOwnership());
  }
  // Behind distribute, which need not know what of the products belongs to whom; before
  // assign-stages and round-factors.
  if (options.multiplyNegatives)
    steps.add("multiply-negatives", createMultiplyNegatives(), createCSEPass());
  // Before fusion, which never crosses stages.
  steps.add("assign-stages", createAssignStages());
  // After the passes that match products by their operands, before those that fuse row ops.
  if (options.target == TargetKind::cuda)
    steps.add("round-factors", createRoundFactors());
  // Folds elementwise ops into the matrix product that they follow, so that no kernel has to read
  // the product back.
  if (options.opt >= 1)
    steps.add("fold-epilogues", createFoldEpilogues());
  FormRowKernelsOptions kernels;
  kernels.opt = options.opt;
  kernels.wideJoins = options.target == TargetKind::cuda;
  steps.add("form-row-kernels", createFormRowKernels(kernels));
}

void genrec::buildMemoryPipeline(OpPassManager &pm, TargetKind target) {
  AttachTargetOptions attach;
  attach.target = stringifyTargetKind(target).str();
  pm.addPass(createAttachTarget(attach));
  // Memory is planned while programs are still lists of ops on tensors. It needs to know which
  // calls run block by block, as their buffers hold the rows of one block only.
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
