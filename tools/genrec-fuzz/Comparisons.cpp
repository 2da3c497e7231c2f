//===- Comparisons.cpp - levels and binaries of random models -------------===//

#include "BlindTally.h"
#include "Modes.h"

#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"
#include "genrec/Fuzz/CheckCompiled.h"
#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/Fuzz/CheckpointPass.h"
#include "genrec/Fuzz/Coverage.h"
#include "genrec/Fuzz/Damage.h"
#include "genrec/Fuzz/Shrink.h"
#include "genrec/Pipelines/Pipelines.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"

using namespace genrec;
using namespace genrec::fuzz;

/// What kind of problem it is: a pass that refuses, a binary that ends or differs, or the step
/// after which something differs ("after import", "-O2: after differentiate"). A model that fails
/// in another way, such as one that the interpreter refuses, is no smaller example of this one.
static llvm::StringRef getKind(llvm::StringRef problem) {
  constexpr llvm::StringLiteral kRefusal = "a pass failed", kEnd = "model-driver ended",
                                kStep = "after ", kBinary = "compiled at ";
  if (size_t begin = problem.find(kRefusal); begin != llvm::StringRef::npos)
    return problem.take_front(begin + kRefusal.size());
  if (size_t begin = problem.find(kEnd); begin != llvm::StringRef::npos)
    return problem.substr(begin).split('\n').first;
  if (problem.starts_with(kBinary))
    return kBinary;
  size_t begin = problem.find(kStep);
  return begin == llvm::StringRef::npos ? llvm::StringRef()
                                        : problem.take_front(problem.find(':', begin));
}

/// Checks one model; prints it, shrunk, when a level disagrees.
static bool check(mlir::ModuleOp module, uint64_t seed, const Comparison &comparison,
                  const Check &find, BoundWidths &widths) {
  std::optional<std::string> problem = find(module, seed, &widths);
  if (!problem)
    return true;
  llvm::errs() << "genrec-fuzz: seed " << seed << ": " << *problem << "\n";
  auto fails = [&](mlir::ModuleOp candidate) {
    std::optional<std::string> found = find(candidate, seed, nullptr);
    return found && getKind(*found) == getKind(*problem);
  };
  mlir::OwningOpRef<mlir::ModuleOp> smallest = module.clone();
  if (comparison.shrink)
    smallest = shrink(module, fails, comparison.shrinkAttempts);
  llvm::errs() << "genrec-fuzz: " << find(*smallest, seed, nullptr).value_or("") << "\n";
  smallest->print(llvm::errs());
  llvm::errs() << "\n";
  return false;
}

/// Notes what every level has; changes the module. A pass that fails was reported before.
static void coverLevels(mlir::ModuleOp module, Coverage &coverage) {
  mlir::PassManager pm(module.getContext());
  pm.enableVerifier(false); // the comparison has verified the same levels
  PipelineOptions pipeline;
  pipeline.splitClasses = kClassBlock;
  buildGraphPipeline(pm, pipeline, [&](mlir::OpPassManager &models, llvm::StringRef) {
    models.addPass(makeCheckpoint([&](ModelOp model) {
      coverage.addLevel(model);
      return mlir::success();
    }));
  });
  mlir::ScopedDiagnosticHandler quiet(module.getContext(),
                                      [](mlir::Diagnostic &) { return mlir::success(); });
  (void)pm.run(module);
}

int fuzz::compareLevels(const Comparison &comparison, const Check &find) {
  mlir::MLIRContext context(*comparison.dialects, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  RewriteCounter counter;
  Coverage coverage;
  BlindTally blind;
  uint64_t failures = 0, leftOut = 0;
  for (uint64_t seed = comparison.first; seed <= comparison.last; ++seed) {
    ObservableModel made = makeObservableModel(&context, seed, comparison.choice);
    mlir::OwningOpRef<mlir::ModuleOp> module = std::move(made.module);
    if (!module) {
      ++leftOut;
      continue;
    }
    if (comparison.print) {
      module->print(llvm::outs());
      continue;
    }
    coverage.addModel(*module);
    blind.add(made.spots);
    failures += !check(*module, seed, comparison, find, blind.widths);
    if (comparison.requireCoverage || comparison.printCoverage)
      coverLevels(*module, coverage);
  }
  coverage.addRewrites(counter.getCounts());
  if (comparison.printCoverage)
    llvm::outs() << coverage.toString();
  std::vector<std::string> missing;
  if (comparison.requireCoverage)
    missing = coverage.getMissing(&context);
  if (comparison.requireCoverage && blind.isMany())
    missing.push_back("a percent of the ops or more, which are blind spots");
  for (const std::string &name : missing)
    llvm::errs() << "genrec-fuzz: never exercised: " << name << "\n";
  if (leftOut)
    llvm::outs() << leftOut << " seeds left out: none of their models has a form for the target\n";
  if (!comparison.print)
    llvm::outs() << comparison.last - comparison.first + 1 - failures - leftOut << " seeds agree, "
                 << failures << " disagree\n"
                 << blind.describeOps() << ", " << blind.describeWidths() << "\n";
  return failures || !missing.empty() ? 1 : 0;
}

/// Scales a gradient once the model has any.
static PipelineHook scaleGradients(double factor) {
  return [factor](mlir::OpPassManager &models, llvm::StringRef step) {
    if (step == "differentiate")
      models.addPass(makeCheckpoint([factor](ModelOp model) {
        scaleGradient(model, 0, factor);
        return mlir::success();
      }));
  };
}

int fuzz::compareBinaries(Comparison comparison, const BinaryRun &run) {
  CompiledOptions options;
  options.target = run.target;
  options.toolchain = run.toolchain;
  options.driver = run.driver;
  options.ranks = run.ranks;
  const auto level = static_cast<unsigned>(run.level);
  if (run.level >= 0)
    options.levels = level;
  if (run.isMpi) {
    llvm::ErrorOr<std::string> launcher = llvm::sys::findProgramByName("mpirun");
    if (!launcher) {
      llvm::errs() << "genrec-fuzz: error: --mpi: there is no mpirun on PATH\n";
      return 2;
    }
    options.launcher = *launcher;
  }
  if (run.gradient != 1.0)
    options.hook = scaleGradients(run.gradient);
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("genrec-fuzz", folder)) {
    llvm::errs() << "genrec-fuzz: error: cannot make a temporary folder: " << error.message()
                 << "\n";
    return 2;
  }
  options.folder = std::string(folder);
  // Two runs of a C++ compiler per candidate allow fewer of them.
  comparison.shrinkAttempts = 60;
  int status = 2;
  if (auto checker = CompiledChecker::create(options)) {
    if (run.target->hasDevice)
      comparison.choice = {[&](mlir::ModuleOp module) { return (*checker)->hasForm(module); },
                           /*forDevice=*/true};
    status =
        compareLevels(comparison, [&](mlir::ModuleOp module, uint64_t seed, BoundWidths *widths) {
          return (*checker)->check(module, seed, widths);
        });
    const Margin &margin = (*checker)->getMargin();
    llvm::outs() << llvm::formatv("at most {0:P} of an allowed difference used, by {1}\n",
                                  margin.used, margin.name);
    for (const auto &[name, count] : (*checker)->missingForms)
      llvm::outs() << count << " models passed over: " << name << " has no form for '"
                   << run.target->name << "'\n";
    if (run.ranks)
      llvm::outs() << (*checker)->ranked << " binaries ran on several ranks, "
                   << (*checker)->repeated << " on two numbers of ranks with the same bits\n";
  } else {
    llvm::errs() << "genrec-fuzz: error: " << llvm::toString(checker.takeError()) << "\n";
  }
  llvm::sys::fs::remove(folder);
  return status;
}
