//===- CheckPasses.cpp - the interpreter judges every pass ----------------===//

#include "genrec/Fuzz/CheckPasses.h"

#include "genrec/Interpreter/GradientCheck.h"
#include "genrec/Pipelines/Pipelines.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;

namespace {
/// Calls a function on the model at its place in the pipeline.
class CheckpointPass : public PassWrapper<CheckpointPass, OperationPass<ModelOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckpointPass)
  explicit CheckpointPass(std::function<LogicalResult(ModelOp)> check) : check(std::move(check)) {}
  StringRef getArgument() const override { return "genrec-fuzz-checkpoint"; }
  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
    else
      markAllAnalysesPreserved();
  }

private:
  std::function<LogicalResult(ModelOp)> check;
};

/// Compares each level of one model with the level that fixed its meaning: the
/// imported model for what goes forward, the differentiated one for what is trained.
class Judge {
public:
  Judge(ModelOp model, uint64_t seed, const CheckOptions &options)
      : seed(seed), options(options), tolerance(getTolerance(model)),
        batches(makeBatches(model, seed, options.batches)) {}

  /// Looks at the model after `step`; the first look gives the meaning.
  LogicalResult look(ModelOp model, StringRef step) {
    llvm::Expected<Observations> seen = observe(model, batches, seed);
    if (!seen)
      return fail(step, llvm::toString(seen.takeError()));
    if (expected.forward.empty())
      expected.forward = seen->forward;
    // update ops say nothing of clipping: for a model that clips, what is trained
    // is fixed where they are expanded into ops that do.
    bool clips = !model.getClipNorm().isZero() || !model.getClipValue().isZero();
    if (clips && !isExpanded(model))
      seen->trained.clear();
    if (expected.trained.empty())
      expected.trained = seen->trained;
    // Blocks that are decomposed hold their constants as f32 from then on.
    decomposed = step == "decompose-blocks" || (decomposed && step != "import" && step != "verify-model");
    std::string difference =
        compare(expected.forward, seen->forward, decomposed ? kConstantTolerance : tolerance);
    if (difference.empty())
      difference = compare(withoutGradients(expected.trained, *seen), seen->trained, kConstantTolerance);
    if (!difference.empty())
      return fail(step, difference);
    if (step == "differentiate" && options.gradients)
      return checkDerivatives(model);
    return success();
  }

  std::string problem;

private:
  LogicalResult fail(StringRef step, StringRef what) {
    problem = ("after " + step + ": " + what).str();
    return failure();
  }

  /// Below expand-updates there are no ops that name a parameter's gradient.
  static std::map<std::string, std::vector<double>>
  withoutGradients(const std::map<std::string, std::vector<double>> &values, const Observations &seen) {
    std::map<std::string, std::vector<double>> kept;
    for (const auto &[name, list] : values)
      if (seen.trained.count(name) || name.find(" gradient ") == std::string::npos)
        kept[name] = list;
    return seen.trained.empty() ? std::map<std::string, std::vector<double>>() : kept;
  }

  LogicalResult checkDerivatives(ModelOp model) {
    for (ProgramOp program : model.getOps<ProgramOp>()) {
      if (program.getMode() != ProgramMode::train)
        continue;
      interpreter::State state(model, seed);
      llvm::Expected<interpreter::GradientCheck> check =
          checkGradients(program, batches.front(), state);
      if (!check)
        return fail("differentiate", llvm::toString(check.takeError()));
      if (!check->mismatches.empty()) {
        const interpreter::GradientMismatch &wrong = check->mismatches.front();
        return fail("differentiate",
                    llvm::formatv("gradient of {0} [{1}, {2}] is {3:e9}, central difference {4:e9}",
                                  wrong.name, wrong.row, wrong.column, wrong.gradient, wrong.difference)
                        .str());
      }
    }
    return success();
  }

  /// Whether updates are row kernels or what becomes row kernels.
  static bool isExpanded(ModelOp model) {
    return model
        .walk([](Operation *op) {
          return isa<ParameterRowsOp, UniqueRowsOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Expanded optimizers and the bodies of row kernels hold their constants as
  /// f32: 2^-24, magnified a hundredfold by divisions through small roots.
  static constexpr double kConstantTolerance = 6e-6;

  uint64_t seed;
  bool decomposed = false;
  const CheckOptions &options;
  double tolerance;
  std::vector<Batch> batches;
  Observations expected;
};
} // namespace

std::vector<Batch> fuzz::makeBatches(ModelOp model, uint64_t seed, int64_t count) {
  ProgramOp program = *model.getOps<ProgramOp>().begin();
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) {
    interpreter::RandomBatchOptions batch;
    batch.rows = 1 + static_cast<int64_t>((seed + i) % 5);
    batch.firstPosition = 100 * i;
    // The catalogue is loaded once: every batch has the first one's.
    batches.push_back(randomBatch(program, seed * 1000 + i, batch));
    for (auto &[name, rows] : batches.front().domains)
      if (DomainOp domain = lookupDomain(model, FlatSymbolRefAttr::get(model.getContext(), name));
          domain && domain.getKind() == DomainKind::catalogue)
        batches.back().domains[name] = rows;
  }
  return batches;
}

double fuzz::getTolerance(ModelOp model) {
  int64_t ops = 0;
  model.walk([&](Operation *) { ++ops; });
  // Gradients are about three times as many ops as the model has.
  return 0x1.0p-53 * static_cast<double>(4 * ops) * 1e5;
}

std::optional<std::string> fuzz::checkPasses(ModuleOp module, uint64_t seed, const CheckOptions &options) {
  ModelOp model = *module.getOps<ModelOp>().begin();
  Judge judge(model, seed, options);
  if (failed(judge.look(model, "import")))
    return judge.problem;
  for (unsigned level : options.levels) {
    OwningOpRef<ModuleOp> copy = module.clone();
    PassManager pm(module.getContext());
    PipelineOptions pipeline;
    pipeline.opt = level;
    buildGraphPipeline(pm, pipeline, [&](OpPassManager &models, StringRef step) {
      std::string name = step.str();
      models.addPass(std::make_unique<CheckpointPass>(
          [&judge, name](ModelOp model) { return judge.look(model, name); }));
    });
    std::string diagnostics;
    ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
      diagnostics += diagnostic.str() + "\n";
      return success();
    });
    if (failed(pm.run(*copy)))
      return "-O" + std::to_string(level) + ": " +
             (judge.problem.empty() ? "a pass failed: " + diagnostics : judge.problem);
  }
  return std::nullopt;
}
