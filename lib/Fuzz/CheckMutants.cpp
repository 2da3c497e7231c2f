//===- CheckMutants.cpp - does the comparison catch mutants? --------------===//

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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {
/// A mutation and its op, by number in the order of a walk.
struct Site {
  int64_t number;
  Mutation mutation;
};

class MutantChecker {
public:
  MutantChecker(ModelOp model, uint64_t seed, const MutantOptions &options);

  /// Compares the level after `step` with the reference, then every mutant of it.
  LogicalResult look(ModelOp model, StringRef step);

  std::vector<Mutant> mutants;
  std::string problem;

private:
  SmallVector<Site> findSites(ModelOp model);
  void check(ModelOp model, StringRef step, const Site &site);
  void checkRanks(ModelOp model, StringRef step);
  void observeOriginal(ModelOp model);
  Fate judgeMutant(ModelOp mutant, std::string &difference);
  Fate judgeAside(ModelOp mutant, std::string &difference);
  std::string tellApart(ModelOp mutant, const BatchSeries &series, const Observations &expected);

  uint64_t seed;
  const MutantOptions &options;
  std::vector<BatchSeries> more; ///< more batches, for mutants that survive
  PassJudge judge;
  /// The observations of the level that mutants are made from, per series, `more` included.
  std::vector<Observations> originals;
  /// The number of ops of each kind, with attributes and types, before a step. Addresses would not
  /// do: a new op may reuse the address of a freed one.
  DenseMap<uint64_t, int64_t> old;
};
} // namespace

/// Removes and returns the first `count` kinds of batches in `all`.
static std::vector<BatchSeries> takeKinds(std::vector<BatchSeries> &all, int64_t count) {
  auto end = all.begin() + std::min(count, static_cast<int64_t>(all.size()));
  std::vector<BatchSeries> taken(std::make_move_iterator(all.begin()),
                                 std::make_move_iterator(end));
  all.erase(all.begin(), end);
  return taken;
}

MutantChecker::MutantChecker(ModelOp model, uint64_t seed, const MutantOptions &options)
    : seed(seed), options(options), more(makeAdversarialBatches(model, seed)),
      judge(model, takeKinds(more, options.batchKinds), seed) {
  for (int64_t i = 1; i <= options.moreBatches; ++i)
    llvm::append_range(more, makeAdversarialBatches(model, seed + i));
}

/// A hash of an op without its operands.
static uint64_t describeOp(Operation *op) {
  return static_cast<size_t>(OperationEquivalence::computeHash(
             op, OperationEquivalence::ignoreHashValue, OperationEquivalence::ignoreHashValue,
             OperationEquivalence::IgnoreLocations)) >>
         2; // DenseMap reserves two keys
}

/// Whether any observed value depends on the op.
static bool isLive(Operation *op, DenseMap<Operation *, bool> &known) {
  if (op->getNumResults() == 0)
    return true;
  auto [place, isNew] = known.try_emplace(op, false);
  if (!isNew)
    return place->second;
  bool found = llvm::any_of(op->getUsers(), [&](Operation *user) { return isLive(user, known); });
  return known[op] = found;
}

/// The mutations of ops that the last step created and that observed values depend on.
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

/// The first value of `shown` that is another float than expected.
static std::string findDifference(const Values &expected, const Values &shown) {
  for (const auto &[name, list] : shown) {
    auto wanted = expected.find(name);
    if (wanted == expected.end())
      return name + " is not there";
    if (wanted->second.size() != list.size())
      return name + " has another size";
    for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(wanted->second, list))) {
      auto [x, y] = pair;
      bool isSame = x == y || (std::isnan(x) && std::isnan(y)) ||
                    std::fabs(x - y) <= 0x1.0p-24 * std::fabs(x);
      if (!isSame)
        return llvm::formatv("{0} [{1}] is {2:e12}, expected {3:e12}", name, index, y, x);
    }
  }
  return "";
}

void MutantChecker::observeOriginal(ModelOp model) {
  originals.clear();
  interpreter::State initial(model, seed);
  for (ArrayRef<BatchSeries> all : {judge.getSeries(), ArrayRef<BatchSeries>(more)})
    for (const BatchSeries &series : all) {
      llvm::Expected<Observations> seen = observe(model, initial, series.batches, {judge.getRun()});
      // Batches that the model rejects cannot tell mutants apart.
      originals.push_back(seen ? std::move(*seen) : Observations());
      llvm::consumeError(seen.takeError());
    }
}

/// The first value in which a mutant differs from its original on `series`; "" if there is none.
std::string MutantChecker::tellApart(ModelOp mutant, const BatchSeries &series,
                                     const Observations &expected) {
  std::string difference;
  auto watch = [&](const Observations &shown) {
    difference = findDifference(expected.forward, shown.forward);
    if (difference.empty())
      difference = findDifference(expected.trained, shown.trained);
    return !difference.empty();
  };
  llvm::Expected<Observations> seen =
      observe(mutant, interpreter::State(mutant, seed), series.batches, {judge.getRun(), watch});
  if (!seen)
    return llvm::toString(seen.takeError());
  bool isMore = seen->forward.size() < expected.forward.size() ||
                seen->trained.size() < expected.trained.size();
  return difference.empty() && isMore ? "values are missing" : difference;
}

Fate MutantChecker::judgeMutant(ModelOp mutant, std::string &difference) {
  if (failed(verify(mutant)) || judge.look(mutant))
    return Fate::caught;
  size_t number = 0;
  auto isTold = [&](ArrayRef<BatchSeries> all, StringRef where) {
    for (const BatchSeries &series : all) {
      const Observations &expected = originals[number++];
      if (expected.forward.empty())
        continue;
      difference = tellApart(mutant, series, expected);
      if (difference.empty())
        continue;
      difference = (where + series.name + ": " + difference).str();
      return true;
    }
    return false;
  };
  return isTold(judge.getSeries(), "less than allowed, on ") || isTold(more, "on other ")
             ? Fate::missed
             : Fate::equivalent;
}

/// CPU seconds that a mutant may take; most take milliseconds.
static constexpr rlim_t kMostMutantSeconds = 60;

/// Judges a mutant in a child process, as a mutant may crash the interpreter or make it loop. Both
/// count as caught.
Fate MutantChecker::judgeAside(ModelOp mutant, std::string &difference) {
  llvm::outs().flush(); // or a child that crashes prints it again
  int ends[2];
  if (pipe(ends) != 0)
    return Fate::caught;
  pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO); // silences crash reports
    rlimit most{kMostMutantSeconds, kMostMutantSeconds};
    setrlimit(RLIMIT_CPU, &most);
    close(ends[0]);
    int fate = static_cast<int>(judgeMutant(mutant, difference));
    llvm::raw_fd_ostream(ends[1], /*shouldClose=*/true) << difference;
    _exit(fate);
  }
  close(ends[1]);
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;)
    difference.append(buffer, size);
  close(ends[0]);
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
  Mutant result{name + done, Fate::caught, ""};
  result.fate = judgeAside(*mutant, result.difference);
  mutants.push_back(std::move(result));
}

/// Ranks that exchange rows wrongly are mutants too, once there are any.
void MutantChecker::checkRanks(ModelOp model, StringRef step) {
  using Fault = interpreter::RankFault;
  if (step != "distribute")
    return;
  for (auto [fault, what] : {std::pair(Fault::wrongOwner, "the wrong owner is asked for rows"),
                             std::pair(Fault::lostTouch, "a touched row is lost"),
                             std::pair(Fault::doubledTouch, "a touched row counts twice"),
                             std::pair(Fault::lostReplica, "a copy of a row is not updated")}) {
    Mutant result{("after " + step + ", ranks: " + what).str(), Fate::caught, ""};
    judge.setFault(fault);
    result.fate = judgeAside(model, result.difference);
    mutants.push_back(std::move(result));
  }
  judge.setFault(Fault::none);
}

LogicalResult MutantChecker::look(ModelOp model, StringRef step) {
  if (std::optional<Difference> difference = judge.look(model)) {
    problem = ("after " + step + ": " + difference->name + " " + difference->text).str();
    return failure();
  }
  // The first level has no ops that a pass created.
  SmallVector<Site> sites = old.empty() ? SmallVector<Site>() : findSites(model);
  if (!sites.empty())
    observeOriginal(model);
  for (const Site &site : sites)
    check(model, step, site);
  if (!sites.empty())
    checkRanks(model, step);
  old.clear();
  model.walk([&](Operation *op) { ++old[describeOp(op)]; });
  return success();
}

std::vector<Mutant> fuzz::checkMutants(ModuleOp module, uint64_t seed, const MutantOptions &options,
                                       std::string &problem) {
  OwningOpRef<ModuleOp> copy = module.clone();
  // Without clipping: before expand-updates the IR does not say how gradients are clipped, so
  // trained values could not be compared.
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
