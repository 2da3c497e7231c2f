//===- genrec-fuzz.cpp - looks for disagreement ---------------------------===//
//
// Builds random models and compares what the interpreter sees of them after every
// pass; prints a shrunk model where two levels disagree.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"
#include "genrec/Fuzz/CheckCompiled.h"
#include "genrec/Fuzz/Coverage.h"
#include "genrec/Fuzz/RandomModel.h"
#include "genrec/Fuzz/Shrink.h"
#include "genrec/InitAllDialects.h"
#include "genrec/ToolVersion.h"

#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/Toolchain.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

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

static llvm::cl::opt<bool> compiled(
    "compiled", llvm::cl::desc("Compare binaries at -O0 and -O2 with the interpreter, instead of passes"));
static llvm::cl::opt<std::string> toolchain("toolchain", llvm::cl::value_desc("file"),
                                            llvm::cl::desc("Description of the C++ toolchain for --compiled"));
static llvm::cl::opt<std::string> driver("driver", llvm::cl::value_desc("program"),
                                         llvm::cl::desc("model-driver, which runs the binaries of --compiled"));

static bool parseSeeds(uint64_t &first, uint64_t &last) {
  auto [from, to] = llvm::StringRef(seeds).split("..");
  return !from.getAsInteger(10, first) && !to.getAsInteger(10, last) && first <= last;
}

static bool isRefusal(llvm::StringRef problem) { return problem.contains("a pass failed"); }

/// Says what is wrong with a model; nothing where all agree.
using Check = std::function<std::optional<std::string>(mlir::ModuleOp, uint64_t seed)>;

/// Checks one model; prints it, shrunk, when a level disagrees.
static bool check(mlir::ModuleOp module, uint64_t seed, const Check &find) {
  std::optional<std::string> problem = find(module, seed);
  if (!problem)
    return true;
  llvm::errs() << "genrec-fuzz: seed " << seed << ": " << *problem << "\n";
  // Two runs of a C++ compiler per candidate allow fewer of them.
  int64_t attempts = compiled ? 60 : 2000;
  mlir::OwningOpRef<mlir::ModuleOp> smallest =
      noShrink ? module.clone() : fuzz::shrink(module, [&](mlir::ModuleOp candidate) {
        // A candidate that a pass refuses is another problem than a difference.
        std::optional<std::string> found = find(candidate, seed);
        return found && isRefusal(*found) == isRefusal(*problem);
      }, attempts).release();
  llvm::errs() << "genrec-fuzz: " << find(*smallest, seed).value_or("") << "\n";
  smallest->print(llvm::errs());
  llvm::errs() << "\n";
  return false;
}

static int run(uint64_t first, uint64_t last, const Check &find) {
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
    failures += !check(*module, seed, find);
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

static std::optional<std::string> checkPasses(mlir::ModuleOp module, uint64_t seed) {
  fuzz::CheckOptions options;
  options.gradients = gradients;
  return fuzz::checkPasses(module, seed, options);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-fuzz");
  hideLibraryOptions();
  llvm::cl::ParseCommandLineOptions(
      argc, argv,
      "looks for disagreement between the levels of random models\n\n"
      "For each seed: a random well-typed model and random batches (empty lists, duplicate and\n"
      "skewed ids, nulls). The reference interpreter runs the model as imported and again after\n"
      "every pass, at -O0 and -O2; losses, metrics, outputs, gradients, parameters and table rows\n"
      "must agree. A model that does not is shrunk and printed. Exit status 1 on disagreement.\n"
      "With --compiled, binaries made at -O0 and -O2 run evaluation, prediction and two training\n"
      "steps instead; tolerances are in docs/testing.md.\n");
  uint64_t first, last;
  if (!parseSeeds(first, last)) {
    llvm::errs() << "genrec-fuzz: error: --seeds takes first..last with first <= last, got '" << seeds << "'\n";
    return 2;
  }
  if (!compiled)
    return run(first, last, checkPasses);
  fuzz::CompiledOptions options;
  std::string self = llvm::sys::fs::getMainExecutable(argv[0], reinterpret_cast<void *>(&main));
  options.toolchain = toolchain.empty() ? Toolchain::getDefaultPath(self) : toolchain;
  options.driver = driver.empty() ? (llvm::sys::path::parent_path(self) + "/model-driver").str() : driver;
  llvm::SmallString<128> folder;
  if (std::error_code error = llvm::sys::fs::createUniqueDirectory("genrec-fuzz", folder)) {
    llvm::errs() << "genrec-fuzz: error: cannot make a temporary folder: " << error.message() << "\n";
    return 2;
  }
  options.folder = std::string(folder);
  int status = run(first, last, [&](mlir::ModuleOp module, uint64_t seed) {
    return fuzz::checkCompiled(module, seed, options);
  });
  llvm::sys::fs::remove(folder);
  return status;
}
