//===- CheckMutants.cpp - does the interpreter catch damage? --------------===//

#include "genrec/Fuzz/CheckMutants.h"
#include "genrec/Fuzz/CheckPasses.h"

#include "genrec/Fuzz/CheckpointPass.h"
#include "genrec/Fuzz/PassJudge.h"
#include "genrec/Pipelines/Pipelines.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {
/// A place for a mutation: an op by its number in the order of a walk.
struct Site {
  int64_t number;
  Mutation mutation;
};

class MutantChecker {
public:
  MutantChecker(ModelOp model, uint64_t seed, const MutantOptions &options)
      : seed(seed), options(options), judge(model, makeAdversarialBatches(model, seed), seed),
        more(makeAdversarialBatches(model, seed + 1)) {}

  /// Judges the level after `step`, then every mutant of it.
  LogicalResult look(ModelOp model, StringRef step);

  std::vector<Mutant> mutants;
  std::string problem;

private:
  SmallVector<Site> findSites(ModelOp model);
  void check(ModelOp model, StringRef step, const Site &site);
  Fate judgeMutant(ModelOp mutant, ModelOp original);
  Fate judgeAside(ModelOp mutant, ModelOp original);
  bool showsTheSame(ModelOp mutant, ModelOp original, ArrayRef<interpreter::Batch> batches);

  uint64_t seed;
  const MutantOptions &options;
  PassJudge judge;
  std::vector<BatchSeries> more;
  /// How many ops of each kind, attributes and types there were before a step: by address, an op
  /// made where one was freed would pass for old, in some runs and not in others.
  DenseMap<uint64_t, int64_t> old;
};
} // namespace

/// What an op is, apart from what it reads.
static uint64_t describeOp(Operation *op) {
  return static_cast<size_t>(OperationEquivalence::computeHash(
             op, OperationEquivalence::ignoreHashValue, OperationEquivalence::ignoreHashValue,
             OperationEquivalence::IgnoreLocations)) >>
         2; // clear of the keys that DenseMap keeps for itself
}

/// Whether anything that is shown or stored depends on the op.
static bool isLive(Operation *op, DenseMap<Operation *, bool> &known) {
  if (op->getNumResults() == 0)
    return true;
  auto [place, isNew] = known.try_emplace(op, false);
  if (!isNew)
    return place->second;
  bool found = llvm::any_of(op->getUsers(), [&](Operation *user) { return isLive(user, known); });
  return known[op] = found;
}

/// Mutants of ops that the step made and that matter.
SmallVector<Site> MutantChecker::findSites(ModelOp model) {
  SmallVector<Site> sites;
  int64_t number = 0;
  DenseMap<Operation *, bool> live;
  DenseMap<uint64_t, int64_t> left = old;
  model.walk([&](Operation *op) {
    bool isNew = --left[describeOp(op)] < 0;
    if (isNew && op->getParentOfType<ProgramOp>() && isLive(op, live))
      for (const Mutation &mutation : getMutations(op))
        sites.push_back({number, mutation});
    ++number;
  });
  SmallVector<Site> chosen;
  int64_t count = static_cast<int64_t>(sites.size()), most = std::min(count, options.mostPerStep);
  for (int64_t i = 0; i < most; ++i)
    chosen.push_back(sites[i * count / most]);
  return chosen;
}

/// Whether every value is the same as a float.
bool MutantChecker::showsTheSame(ModelOp mutant, ModelOp original,
                                 ArrayRef<interpreter::Batch> batches) {
  llvm::Expected<Observations> expected = observe(original, batches, seed),
                               actual = observe(mutant, batches, seed);
  bool isEvaluated = bool(expected) && bool(actual);
  llvm::consumeError(expected.takeError());
  llvm::consumeError(actual.takeError());
  if (!isEvaluated)
    return false;
  auto agree = [](const Values &a, const Values &b) {
    return a.size() == b.size() && llvm::all_of(a, [&](const auto &entry) {
             auto other = b.find(entry.first);
             return other != b.end() && other->second.size() == entry.second.size() &&
                    llvm::all_of(llvm::zip_equal(entry.second, other->second), [](auto pair) {
                      auto [x, y] = pair;
                      return x == y || (std::isnan(x) && std::isnan(y)) ||
                             std::fabs(x - y) <= 0x1.0p-24 * std::fabs(x);
                    });
           });
  };
  return agree(expected->forward, actual->forward) && agree(expected->trained, actual->trained);
}

Fate MutantChecker::judgeMutant(ModelOp mutant, ModelOp original) {
  if (failed(verify(mutant)) || judge.look(mutant))
    return Fate::caught;
  auto showsNothing = [&](const BatchSeries &series) {
    return showsTheSame(mutant, original, series.batches);
  };
  bool isEquivalent =
      llvm::all_of(judge.getSeries(), showsNothing) && llvm::all_of(more, showsNothing);
  return isEquivalent ? Fate::equivalent : Fate::missed;
}

/// In a process of its own: damage may take the interpreter where it may not be. A crash is a
/// catch.
Fate MutantChecker::judgeAside(ModelOp mutant, ModelOp original) {
  llvm::outs().flush(); // or a child that crashes prints it again
  pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO); // reports of the crash
    _exit(static_cast<int>(judgeMutant(mutant, original)));
  }
  int status = 0;
  bool hasExited = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status);
  return hasExited ? static_cast<Fate>(WEXITSTATUS(status)) : Fate::caught;
}

void MutantChecker::check(ModelOp model, StringRef step, const Site &site) {
  OwningOpRef<ModelOp> mutant = model.clone();
  int64_t number = 0;
  Operation *target = nullptr;
  mutant->walk([&](Operation *op) {
    if (number++ == site.number)
      target = op;
  });
  std::string name = llvm::formatv("after {0}, op {1} {2}: ", step, site.number, target->getName());
  std::string done = applyMutation(target, site.mutation);
  if (done.empty())
    return;
  ScopedDiagnosticHandler quiet(model.getContext(), [](Diagnostic &) { return success(); });
  mutants.push_back({name + done, judgeAside(*mutant, model)});
}

LogicalResult MutantChecker::look(ModelOp model, StringRef step) {
  if (std::optional<Difference> difference = judge.look(model)) {
    problem = ("after " + step + ": " + difference->name + " " + difference->text).str();
    return failure();
  }
  // The first level is what the user wrote: no pass has made anything yet.
  for (const Site &site : old.empty() ? SmallVector<Site>() : findSites(model))
    check(model, step, site);
  old.clear();
  model.walk([&](Operation *op) { ++old[describeOp(op)]; });
  return success();
}

std::vector<Mutant> fuzz::checkMutants(ModuleOp module, uint64_t seed, const MutantOptions &options,
                                       std::string &problem) {
  OwningOpRef<ModuleOp> copy = module.clone();
  // Until updates are expanded nothing says how a model clips, and what it trains cannot be judged.
  ModelOp model = *copy->getOps<ModelOp>().begin();
  model.setClipNorm(llvm::APFloat(0.0));
  model.setClipValue(llvm::APFloat(0.0));
  OwningOpRef<ModuleOp> imported = copy->clone();
  MutantChecker checker(*imported->getOps<ModelOp>().begin(), seed, options);
  PassManager pm(module.getContext());
  PipelineOptions pipeline;
  pipeline.opt = options.level;
  pipeline.splitClasses = kClassBlock;
  buildGraphPipeline(pm, pipeline, [&](OpPassManager &models, StringRef step) {
    models.addPass(makeCheckpoint(
        [&checker, name = step.str()](ModelOp model) { return checker.look(model, name); }));
  });
  if (failed(pm.run(*copy)))
    problem = checker.problem.empty() ? "a pass failed" : checker.problem;
  return problem.empty() ? std::move(checker.mutants) : std::vector<Mutant>();
}
