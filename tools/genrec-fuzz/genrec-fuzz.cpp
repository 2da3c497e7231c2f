//===- genrec-fuzz.cpp - looks for disagreement ---------------------------===//
//
// Builds random models and compares what the interpreter sees of them after every
// pass; prints a shrunk model where two levels disagree.
//
//===----------------------------------------------------------------------===//

#include "Modes.h"

#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/InitAllDialects.h"
#include "genrec/Plugins/PluginOption.h"
#include "genrec/Target/Cpp/Toolchain.h"
#include "genrec/ToolVersion.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"

using namespace genrec;
namespace cl = llvm::cl;

static cl::opt<std::string> seeds("seeds", cl::desc("Seeds to try, first..last"),
                                  cl::value_desc("A..B"), cl::init("1..200"));
static cl::opt<bool> print("print", cl::desc("Print the models instead of checking them"));
static cl::opt<bool> gradients("check-gradients",
                               cl::desc("Compare gradients with central differences too (slower)"));
static cl::opt<bool>
    requireCoverage("require-coverage",
                    cl::desc("Fail unless the seeds exercised every op, option and rewrite"));
static cl::opt<bool> printCoverage("print-coverage", cl::desc("Print what the seeds exercised"));
static cl::opt<int64_t>
    world("world", cl::init(0), cl::value_desc("ranks"),
          cl::desc("Ranks that training steps run on; 0: 1 to 5, by the seed. With "
                   "--compiled: of all steps; 0: one process"));
static cl::opt<bool> noShrink("no-shrink", cl::desc("Print a failing model as it is"));

static cl::opt<bool>
    compiled("compiled",
             cl::desc("Compare binaries at -O0 and -O2 with the interpreter, instead of passes"));
static cl::opt<std::string>
    target("target", cl::init("cpu"), cl::value_desc("cpu | cuda-emulated"),
           cl::desc("What --compiled compiles for; another than cpu implies it. Models without a "
                    "form there are passed over"));
static cl::opt<std::string> toolchain("toolchain", cl::value_desc("file"),
                                      cl::desc("Description of the C++ toolchain for --compiled"));
static cl::opt<std::string>
    driver("driver", cl::value_desc("program"),
           cl::desc("model-driver, which runs the binaries of --compiled, or "
                    "model-driver-emulated"));
static cl::opt<bool> mpi("mpi", cl::desc("With --compiled --world: ranks are processes that mpirun "
                                         "starts, not threads of one"));
static cl::opt<int64_t>
    level("level", cl::init(-1), cl::value_desc("0..2"),
          cl::desc("Optimization level that --compiled compiles at, not 0 and 2"));
static cl::opt<double> scaleGradient(
    "scale-gradient", cl::init(1.0), cl::value_desc("factor"),
    cl::desc("Scale one gradient of every model that --compiled compiles: it must then disagree"));

static cl::opt<bool>
    blindSpots("blind-spots",
               cl::desc("Print the ops that can be wrong without anything showing it, and count "
                        "them; nothing is compared"));
static cl::opt<bool> mutate("mutate",
                            cl::desc("Damage the levels and count what the comparison catches"));
static cl::opt<int64_t> mostPerStep("mutants-per-step", cl::init(60), cl::value_desc("n"),
                                    cl::desc("Mutants tried after each step of the pipeline"));
static cl::opt<std::string> survivors(
    "survivors", cl::value_desc("file"),
    cl::desc("Mutants that --mutate may miss, with an explanation each; without it, none"));
static cl::opt<bool> explainAll(
    "explain-all",
    cl::desc(
        "With --survivors: fail unless the file lists equivalent mutants as well, and no other"));
static cl::opt<int64_t> batchKinds(
    "batch-kinds", cl::init(100), cl::value_desc("n"),
    cl::desc("Judge mutants on the first n kinds of batches alone, to see what the others "
             "are for"));
static cl::opt<int64_t> moreBatches(
    "more-batches", cl::init(2), cl::value_desc("n"),
    cl::desc(
        "Try mutants that survive on n times as many other batches, which may tell them apart"));

static PluginOption plugins;

static bool parseSeeds(uint64_t &first, uint64_t &last) {
  auto [from, to] = llvm::StringRef(seeds).split("..");
  return !from.getAsInteger(10, first) && !to.getAsInteger(10, last) && first <= last;
}

/// What to compile for; null, told, where it cannot be run.
static const Target *readTarget() {
  const Target *found = Target::find(target);
  if (!found || found->compiler == UnitCompiler::nvcc) {
    llvm::errs() << "genrec-fuzz: error: --target takes cpu or cuda-emulated, got '" << target
                 << "'\n";
    return nullptr;
  }
  return found;
}

static std::optional<std::string> checkPasses(mlir::ModuleOp module, uint64_t seed,
                                              fuzz::BoundWidths *widths) {
  fuzz::CheckOptions options;
  options.widths = widths;
  options.gradients = gradients;
  options.ranks = world;
  return fuzz::checkPasses(module, seed, options);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-fuzz");
  hideLibraryOptions();
  cl::ParseCommandLineOptions(
      argc, argv,
      "looks for disagreement between the levels of random models\n\n"
      "For each seed: a random well-typed model and random batches (empty lists, duplicate and\n"
      "skewed ids, nulls). The reference interpreter runs the model as imported and again after\n"
      "every pass, at -O0 and -O2; losses, metrics, outputs, gradients, parameters and table rows\n"
      "must agree. A model that does not is shrunk and printed. Exit status 1 on disagreement.\n"
      "With --compiled, binaries made at -O0 and -O2 run evaluation, prediction and two training\n"
      "steps instead; with --world as well on several ranks, threads of a process, whose bits\n"
      "must be those of another number of ranks. With --mutate, the levels are damaged in every "
      "way, and what goes unnoticed\n"
      "is printed. --target=cuda-emulated runs binaries on the emulated device. Tolerances are "
      "in\ndocs/testing.md.\n");
  fuzz::Comparison comparison;
  if (!parseSeeds(comparison.first, comparison.last)) {
    llvm::errs() << "genrec-fuzz: error: --seeds takes first..last with first <= last, got '"
                 << seeds << "'\n";
    return 2;
  }
  const Target *compiledFor = readTarget();
  if (!compiledFor)
    return 2;
  comparison.print = print;
  comparison.shrink = !noShrink;
  comparison.requireCoverage = requireCoverage;
  comparison.printCoverage = printCoverage;
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  plugins.load(registry, "genrec-fuzz");
  comparison.dialects = &registry;
  if (blindSpots)
    return fuzz::countBlindSpots(comparison.first, comparison.last, registry);
  if (mutate)
    return fuzz::countMutants({comparison.first, comparison.last, mostPerStep, batchKinds,
                               moreBatches, survivors, explainAll},
                              registry);
  if (!compiled && !compiledFor->hasDevice)
    return fuzz::compareLevels(comparison, checkPasses);
  std::string self =
      llvm::sys::fs::getMainExecutable(argv[0], reinterpret_cast<void *>(&checkPasses));
  std::string beside = (llvm::sys::path::parent_path(self) + "/model-driver" +
                        (compiledFor->hasDevice ? "-emulated" : ""))
                           .str();
  fuzz::BinaryRun run;
  run.target = compiledFor;
  run.toolchain = toolchain.empty() ? Toolchain::getDefaultPath(self) : toolchain;
  run.driver = driver.empty() ? beside : driver;
  run.ranks = world;
  run.isMpi = mpi;
  run.level = level;
  run.gradient = scaleGradient;
  return fuzz::compareBinaries(comparison, run);
}
