//===- genrec-fuzz.cpp - looks for disagreement ---------------------------===//
//
// Builds random models and compares what the interpreter sees of them after every
// pass; prints a shrunk model where two levels disagree.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"
#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/Fuzz/Coverage.h"
#include "genrec/Fuzz/RandomModel.h"
#include "genrec/Fuzz/Shrink.h"
#include "genrec/InitAllDialects.h"
#include "genrec/ToolVersion.h"

#include "genrec/Pipelines/Pipelines.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace genrec;

static llvm::cl::opt<std::string> seeds("seeds", llvm::cl::desc("Seeds to try, first..last"),
                                        llvm::cl::value_desc("A..B"), llvm::cl::init("1..200"));
static llvm::cl::opt<bool> print("print", llvm::cl::desc("Print the models instead of checking them"));
static llvm::cl::opt<bool> gradients("check-gradients",
                                     llvm::cl::desc("Compare gradients with central differences too (slower)"));
static llvm::cl::opt<bool> requireCoverage(
    "require-coverage", llvm::cl::desc("Fail unless the seeds exercised every op, option and rewrite"));
static llvm::cl::opt<bool> printCoverage("print-coverage", llvm::cl::desc("Print what the seeds exercised"));
static llvm::cl::opt<bool> noShrink("no-shrink", llvm::cl::desc("Print a failing model as it is"));

static bool parseSeeds(uint64_t &first, uint64_t &last) {
  auto [from, to] = llvm::StringRef(seeds).split("..");
  return !from.getAsInteger(10, first) && !to.getAsInteger(10, last) && first <= last;
}

static bool isRefusal(llvm::StringRef problem) { return problem.contains("a pass failed"); }

/// Checks one model; prints it, shrunk, when a level disagrees.
static bool check(mlir::ModuleOp module, uint64_t seed) {
  fuzz::CheckOptions options;
  options.gradients = gradients;
  std::optional<std::string> problem = fuzz::checkPasses(module, seed, options);
  if (!problem)
    return true;
  llvm::errs() << "genrec-fuzz: seed " << seed << ": " << *problem << "\n";
  mlir::OwningOpRef<mlir::ModuleOp> smallest =
      noShrink ? module.clone() : fuzz::shrink(module, [&](mlir::ModuleOp candidate) {
        // A candidate that a pass refuses is another problem than a difference.
        std::optional<std::string> found = fuzz::checkPasses(candidate, seed, options);
        return found && isRefusal(*found) == isRefusal(*problem);
      }).release();
  llvm::errs() << "genrec-fuzz: " << fuzz::checkPasses(*smallest, seed, options).value_or("") << "\n";
  smallest->print(llvm::errs());
  llvm::errs() << "\n";
  return false;
}

static int run(uint64_t first, uint64_t last) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  RewriteCounter counter;
  fuzz::Coverage coverage;
  int64_t failures = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    mlir::OwningOpRef<mlir::ModuleOp> module = fuzz::makeRandomModel(&context, seed);
    if (print) {
      module->print(llvm::outs());
      continue;
    }
    coverage.addModel(*module);
    failures += !check(*module, seed);
    mlir::PassManager pm(&context);
    buildGraphPipeline(pm, PipelineOptions());
    if (mlir::succeeded(pm.run(*module)))
      coverage.addKernels(*module);
  }
  coverage.addRewrites(counter.getCounts());
  if (printCoverage)
    llvm::outs() << coverage.toString();
  std::vector<std::string> missing =
      requireCoverage ? coverage.getMissing() : std::vector<std::string>();
  for (const std::string &name : missing)
    llvm::errs() << "genrec-fuzz: never exercised: " << name << "\n";
  if (!print)
    llvm::outs() << last - first + 1 - failures << " seeds agree, " << failures << " disagree\n";
  return failures || !missing.empty() ? 1 : 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-fuzz");
  llvm::cl::ParseCommandLineOptions(
      argc, argv,
      "looks for disagreement between the levels of random models\n\n"
      "For each seed: a random well-typed model and random batches (empty lists, duplicate and\n"
      "skewed ids, nulls). The reference interpreter runs the model as imported and again after\n"
      "every pass, at -O0 and -O2; losses, metrics, outputs, gradients, parameters and table rows\n"
      "must agree. A model that does not is shrunk and printed. Exit status 1 on disagreement.\n");
  uint64_t first, last;
  if (!parseSeeds(first, last)) {
    llvm::errs() << "genrec-fuzz: error: --seeds takes first..last with first <= last, got '" << seeds << "'\n";
    return 2;
  }
  return run(first, last);
}
