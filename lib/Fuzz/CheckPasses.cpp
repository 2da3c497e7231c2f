//===- CheckPasses.cpp - compares the model after every pass --------------===//

#include "genrec/Fuzz/CheckPasses.h"

#include "genrec/Fuzz/CheckpointPass.h"
#include "genrec/Fuzz/LevelHash.h"
#include "genrec/Fuzz/PassJudge.h"
#include "genrec/Interpreter/GradientCheck.h"
#include "genrec/Pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"

#include <set>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// Random batches, and one adversarial series, which rotates with the seed.
static std::vector<BatchSeries> chooseBatches(ModelOp model, uint64_t seed,
                                              const CheckOptions &options) {
  std::vector<BatchSeries> all = makeAdversarialBatches(model, seed);
  size_t turn = 1 + seed % (all.size() - 1);
  return {makeBatches(model, seed, options.batches), std::move(all[turn])};
}

namespace {
/// Compares each level of one model, and checks its gradients after differentiate.
class Check {
public:
  Check(ModelOp model, uint64_t seed, const CheckOptions &options)
      : imported(model), seed(seed), options(options),
        judge(model, chooseBatches(model, seed, options), seed) {
    if (options.ranks)
      judge.setRanks(options.ranks);
  }

  LogicalResult look(ModelOp model, StringRef step) {
    if (isNew(model))
      if (std::optional<Difference> difference = judge.look(model))
        return fail(step, difference->name + " " + difference->text);
    if (step == "differentiate" && options.gradients)
      return checkDerivatives(model);
    return success();
  }

  const PassJudge &getJudge() const { return judge; }

  std::string problem;

private:
  /// Whether this level is new. Most passes leave most models unchanged, and -O0 and -O2 share
  /// their first passes.
  bool isNew(ModelOp model) { return looked.insert(hashOp(model)).second; }

  LogicalResult fail(StringRef step, StringRef what) {
    problem = ("after " + step + ": " + what).str();
    return failure();
  }

  /// Checks gradients on a copy without clipping, as clipped gradients are not the derivatives.
  LogicalResult checkDerivatives(ModelOp differentiated) {
    OwningOpRef<ModelOp> model = differentiated.clone();
    model->setClipNorm(llvm::APFloat(0.0));
    model->setClipValue(llvm::APFloat(0.0));
    for (ProgramOp program : model->getOps<ProgramOp>()) {
      if (program.getMode() != ProgramMode::train)
        continue;
      interpreter::State state(*model, seed);
      interpreter::GradientCheckOptions gradientOptions;
      gradientOptions.original = *imported.getOps<ProgramOp>().begin();
      llvm::Expected<interpreter::GradientCheck> check = checkGradients(
          program, judge.getSeries().front().batches.front(), state, gradientOptions);
      if (!check)
        return fail("differentiate", llvm::toString(check.takeError()));
      if (!check->mismatches.empty()) {
        const interpreter::GradientMismatch &wrong = check->mismatches.front();
        return fail("differentiate",
                    llvm::formatv("gradient of {0} [{1}, {2}] is {3:e9}, central difference {4:e9}",
                                  wrong.name, wrong.row, wrong.column, wrong.gradient,
                                  wrong.difference)
                        .str());
      }
    }
    return success();
  }

  ModelOp imported; ///< not changed: copies go through the pipeline
  uint64_t seed;
  const CheckOptions &options;
  PassJudge judge;
  std::set<uint64_t> looked; ///< hashes of the levels compared so far
};
} // namespace

std::optional<std::string> fuzz::checkPasses(ModuleOp module, uint64_t seed,
                                             const CheckOptions &options) {
  ModelOp model = *module.getOps<ModelOp>().begin();
  Check check(model, seed, options);
  if (failed(check.look(model, "import")))
    return check.problem;
  for (unsigned level : options.levels) {
    OwningOpRef<ModuleOp> copy = module.clone();
    PassManager pm(module.getContext());
    PipelineOptions pipeline;
    pipeline.opt = level;
    pipeline.splitClasses = kClassBlock;
    buildGraphPipeline(pm, pipeline, [&](OpPassManager &models, StringRef step) {
      std::string name = step.str();
      models.addPass(
          makeCheckpoint([&check, name](ModelOp model) { return check.look(model, name); }));
    });
    std::string diagnostics;
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      diagnostics += diagnostic.str() + "\n";
      return success();
    });
    if (failed(pm.run(*copy)))
      return "-O" + std::to_string(level) + ": " +
             (check.problem.empty() ? "a pass failed: " + diagnostics : check.problem);
  }
  if (options.widths)
    check.getJudge().addWidths(*options.widths);
  return std::nullopt;
}
