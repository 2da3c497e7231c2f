//===- CheckCompiled.cpp - compares binaries with the interpreter ---------===//
//
// A binary is a shared object that model-driver of test/EndToEnd runs in a process of its own, so
// that a crash is reported like any other difference.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/CheckCompiled.h"
#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/Fuzz/CheckpointPass.h"

#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/CppPrinter.h"
#include "genrec/Target/EmitC/Callees.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cmath>
#include <cstdlib>
#include <unistd.h>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
namespace json = llvm::json;

/// After which a binary counts as one that hangs: long, as the machine may be shared and the
/// emulated device takes seconds for what a device does in milliseconds.
static constexpr unsigned kMostSeconds = 600;

/// What test/Cuda/Simt reads.
static constexpr StringLiteral kDeviceSeed = "GENREC_SIMT_SEED";
/// And the devices that it emulates, at most: one for each rank.
static constexpr int64_t kMostDevices = 4;

/// Of the kinds that ranks share unevenly.
static constexpr int64_t kUnevenBatches = 2;

/// One run of a binary on a batch.
struct CompiledChecker::Run {
  StringRef mode;
  std::string name; ///< prefix of its values' names, as in `observe`
  const Batch *batch;
};

namespace {
/// What the programs of a model cannot do.
struct Limits {
  bool isSingleRank = false;
};

/// How many ranks run the portions of a batch.
struct World {
  int64_t ranks = 1, portions = 1;
  bool isMpi = false; ///< ranks are processes, not threads
  /// Tables that all ranks have.
  std::set<std::string, std::less<>> replicated = {};
};
} // namespace

/// The binary of one level and its temporary files.
struct CompiledChecker::Binary {
  unsigned level;
  std::string path;
  std::string problem;
  Limits limits;
  std::set<std::string, std::less<>> replicated; ///< tables, in the runs that are compared first
};

namespace {
/// Removes files at the end of the check.
struct Remover {
  std::vector<std::string> paths;
  ~Remover() {
    for (const std::string &path : paths)
      llvm::sys::fs::remove(path);
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// Notes how the programs of a model may be cut, once its stages are known.
static void noteLimits(ModelOp model, Limits &limits) {
  for (ProgramOp program : model.getOps<ProgramOp>())
    limits.isSingleRank |= program->hasAttr(GenRecDialect::SingleRankAttrHelper::getNameStr());
}

/// Adds the passes from an imported model to EmitC.
static void lower(PassManager &pm, unsigned level, const CompiledOptions &options, Limits &limits) {
  PipelineOptions graph;
  graph.target = options.target->kind;
  graph.opt = level;
  graph.splitClasses = kClassBlock;
  buildGraphPipeline(pm, graph, options.hook);
  pm.nest<ModelOp>().addPass(makeCheckpoint([&](ModelOp model) {
    noteLimits(model, limits);
    return success();
  }));
  buildLoweringPipeline(pm, options.target->kind, "genrec-fuzz");
}

/// Writes the source of `module` at a level. Returns an error message or "".
static std::string writeSource(ModuleOp module, unsigned level, StringRef path,
                               const CompiledOptions &options, Limits &limits) {
  OwningOpRef<ModuleOp> copy = module.clone();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  PassManager pm(module.getContext());
  lower(pm, level, options, limits);
  if (failed(pm.run(*copy)))
    return "a pass failed: " + diagnostics;
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  return failed(printCpp(*copy, os)) ? "the printer failed: " + diagnostics : "";
}

bool CompiledChecker::hasForm(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
  PassManager pm(module.getContext());
  Limits limits;
  lower(pm, options.levels.back(), options, limits);
  if (succeeded(pm.run(*copy)))
    return true;
  std::vector<std::string> missing = listMissingForms(*copy, options.target->kind);
  for (const std::string &name : missing)
    ++missingForms[name];
  return missing.empty();
}

/// Writes a source that includes all headers that emitted code for a target may include.
static std::string writeHeaders(StringRef path, TargetKind target) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  llvm::StringSet<> written;
  for (const Callee &callee : getCallees())
    if (StringRef header = callee.getHeader(target);
        !header.empty() && written.insert(header).second)
      os << "#include \"" << header << "\"\n";
  return "";
}

/// Precompiles the kernels' headers: parsing them takes a third of a compilation.
std::string CompiledChecker::precompile(Toolchain &flags, StringRef stem) {
  std::string header = options.folder + "/" + stem.str() + ".h", output = header + ".pch";
  if (std::string problem = writeHeaders(header, options.target->kind); !problem.empty())
    return problem;
  files.append({header, output});
  if (llvm::Error error = flags.make(Product::header, header, output, false))
    return llvm::toString(std::move(error));
  flags.setPrecompiledHeader(output);
  return "";
}

/// Compiles all levels, one after another, as the machine may be shared.
void CompiledChecker::compileAll(ModuleOp module, std::vector<Binary> &binaries, Toolchain flags) {
  for (const std::string &folder : getKernelIncludeFolders(module.getContext()))
    flags.addIncludeFolder(folder);
  for (Binary &binary : binaries) {
    binary.problem =
        writeSource(module, binary.level, binary.path + ".cpp", options, binary.limits);
    if (!binary.problem.empty())
      continue;
    if (llvm::Error error = flags.make(Product::shared, binary.path + ".cpp", binary.path, false))
      binary.problem = llvm::toString(std::move(error));
  }
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// Reads a number. JSON has no infinity and no NaN, so they are strings.
static double toNumber(const json::Value &value) {
  if (auto number = value.getAsNumber())
    return *number;
  StringRef text = value.getAsString().value_or("nan");
  return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
}

static void append(std::vector<double> &list, const json::Value &value) {
  const json::Array *array = value.getAsArray();
  if (!array)
    return list.push_back(toNumber(value));
  for (const json::Value &entry : *array)
    append(list, entry);
}

/// Adds the members of a section as lists of numbers, named `prefix` and their key.
static void note(Values &values, const json::Object &step, StringRef section,
                 const std::string &prefix) {
  if (const json::Object *members = step.getObject(section))
    for (const auto &[key, value] : *members)
      append(values[prefix + key.str()], value);
}

static void noteStep(Values &values, const json::Object &step, const std::string &prefix) {
  if (const json::Object *losses = step.getObject("losses"))
    for (const auto &[key, value] : *losses)
      values[prefix + " loss " + key.str()] = {toNumber(*value.getAsObject()->get("mean")),
                                               toNumber(*value.getAsObject()->get("weight"))};
  if (const json::Value *loss = step.get("loss"))
    values[prefix + " total"] = {toNumber(*loss)};
  note(values, step, "metrics", prefix + " metric ");
  note(values, step, "outputs", prefix + " output ");
}

static void noteState(Values &values, const json::Object &step) {
  note(values, step, "parameters", "parameter ");
  note(values, step, "states", "parameter ");
  if (const json::Object *tables = step.getObject("tables"))
    for (const auto &[table, rows] : *tables)
      note(values, *tables, table, "table " + table.str() + " id ");
}

using Run = CompiledChecker::Run;

/// The runs of `observe`, in its order. A model that is being shrunk may lack a program.
static SmallVector<Run> listRuns(ModelOp lowered, ArrayRef<Batch> batches) {
  llvm::StringSet<> modes;
  for (ProgramOp program : lowered.getOps<ProgramOp>())
    modes.insert(stringifyProgramMode(program.getMode()));
  SmallVector<Run> runs;
  auto add = [&](StringRef mode, StringRef name, const Batch &batch) {
    if (modes.contains(mode))
      runs.push_back({mode, name.str(), &batch});
  };
  for (auto [index, batch] : llvm::enumerate(batches)) {
    add("evaluate", ("evaluate " + Twine(index)).str(), batch);
    add("predict", ("predict " + Twine(index)).str(), batch);
  }
  for (auto [index, batch] : llvm::enumerate(batches))
    add("train", ("step " + Twine(index)).str(), batch);
  add("evaluate", "evaluate trained 0", batches.front());
  add("predict", "predict trained 0", batches.front());
  return runs;
}

/// Reads the driver's output, with the names of `observe`.
static std::string readResults(StringRef text, ArrayRef<Run> runs, Values &values) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (auto [index, line] : llvm::enumerate(lines)) {
    llvm::Expected<json::Value> step = json::parse(line);
    if (!step)
      return "model-driver printed what is not JSON: " + llvm::toString(step.takeError());
    noteStep(values, *step->getAsObject(), index < runs.size() ? runs[index].name : "");
    if (index + 1 == lines.size())
      noteState(values, *step->getAsObject());
  }
  return "";
}

static std::string readFile(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// The environment, and the seed of the emulated device unless it has one: which thread, block or
/// operation goes first.
static std::vector<std::string> environmentOf(uint64_t seed) {
  std::vector<std::string> variables;
  for (char **variable = environ; *variable; ++variable)
    variables.push_back(*variable);
  if (!std::getenv(kDeviceSeed.data()))
    variables.push_back((kDeviceSeed + "=" + Twine(seed)).str());
  return variables;
}

/// Runs a binary on the batches in a file. Returns an error message or "".
static std::string runBinary(const std::string &path, StringRef batches, ArrayRef<Run> runs,
                             uint64_t seed, const CompiledOptions &options, World world,
                             Values &values) {
  std::string out = path + ".out", log = path + ".log";
  Remover remover{{out, log}};
  std::string modes =
      llvm::join(llvm::map_range(runs, [](const Run &run) { return run.mode; }), ",");
  std::string seedText = std::to_string(seed), threads = std::to_string(options.threads), problem;
  std::string ranks = std::to_string(world.ranks), portions = std::to_string(world.portions);
  SmallVector<StringRef> arguments{options.driver, path, batches, modes, seedText, threads};
  if (world.isMpi)
    arguments.insert(arguments.begin(),
                     {options.launcher, "--allow-run-as-root", "--oversubscribe", "-n", ranks});
  std::string replicated = llvm::join(world.replicated, ",");
  arguments.append({world.isMpi ? StringRef("mpi") : StringRef(ranks), portions, replicated});
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(out), StringRef(log)};
  std::vector<std::string> variables = environmentOf(seed);
  SmallVector<StringRef> environment(variables.begin(), variables.end());
  int code =
      llvm::sys::ExecuteAndWait(arguments.front(), arguments, ArrayRef<StringRef>(environment),
                                redirects, kMostSeconds, 0, &problem);
  if (code != 0)
    return "model-driver ended with status " + std::to_string(code) + " " + problem + "\n" +
           readFile(log);
  return readResults(readFile(out), runs, values);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

static std::string writeBatches(ProgramOp program, ArrayRef<Run> runs, StringRef path) {
  json::Array list;
  for (const Run &run : runs)
    list.push_back(batchToJson(program, *run.batch));
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  os << json::Value(std::move(list));
  return "";
}

/// Lowers `module` to the last level that the interpreter evaluates.
static std::string lowerForInterpreter(ModuleOp module) {
  PassManager pm(module.getContext());
  PipelineOptions graph;
  graph.opt = 0;
  buildGraphPipeline(pm, graph);
  return failed(pm.run(module)) ? "a pass failed" : "";
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// As many portions as ranks, at least two, or a few more.
static World chooseWorld(int64_t ranks, uint64_t seed, const Limits &limits) {
  if (!ranks || limits.isSingleRank)
    return {};
  return {ranks, std::max<int64_t>(ranks, 2) + static_cast<int64_t>(seed % 3)};
}

/// Another number of ranks for the same portions, `most` or fewer, on which no table is replicated;
/// 0 where there is none.
static int64_t chooseOtherRanks(World world, uint64_t seed, int64_t most) {
  if (world.portions == 1)
    return 0;
  auto others = static_cast<uint64_t>(std::min(world.portions, most) - 1);
  auto other = 1 + static_cast<int64_t>(seed / 3 % others);
  return other < world.ranks ? other : other + 1;
}

/// What two runs differ in, in whatever bit.
static std::string compareBits(const Values &first, const Values &second) {
  for (const auto &[name, list] : first) {
    auto place = second.find(name);
    if (place == second.end() || place->second.size() != list.size())
      return name + " is missing, or of another size";
    for (auto [index, value] : llvm::enumerate(list))
      if (double other = place->second[index];
          other != value && !(std::isnan(other) && std::isnan(value)))
        return llvm::formatv("{0} [{1}] is {2:e17} and {3:e17}", name, index, value, other);
  }
  return first.size() == second.size() ? "" : "one has more values";
}

llvm::Expected<RoundedObservations>
CompiledChecker::interpret(ModelOp model, ArrayRef<Batch> batches, uint64_t seed) const {
  Limits limits;
  noteLimits(model, limits);
  World world = chooseWorld(options.ranks, seed, limits);
  ObserveOptions observed;
  observed.run.ranks = world.ranks;
  observed.run.portions = observed.run.portionsInOne = world.portions;
  interpreter::State initial(model, seed);
  llvm::Expected<Observations> exact = observe(model, initial, batches, observed);
  if (!exact)
    return exact.takeError();
  return observeRounding(model, initial, batches, std::move(*exact), kManyRuns, world.portions);
}

std::string CompiledChecker::judge(const Binary &binary, const RoundedObservations &expected,
                                   StringRef batches, ArrayRef<Run> runs, uint64_t seed) {
  Values actual;
  std::string problem = binary.problem;
  World world = chooseWorld(options.ranks, seed, binary.limits);
  world.isMpi = world.ranks > 1 && !options.launcher.empty();
  world.replicated = binary.replicated;
  if (problem.empty())
    problem = runBinary(binary.path, batches, runs, seed, options, world, actual);
  if (problem.empty())
    if (auto difference = compareRounded(expected.forward, actual, kCompiledAllowance, &margin))
      problem = difference->name + " " + difference->text;
  if (problem.empty())
    if (auto difference = compareRounded(expected.trained, actual, kCompiledAllowance, &margin))
      problem = difference->name + " " + difference->text;
  ranked += world.ranks > 1;
  int64_t most = options.target->hasDevice ? kMostDevices : world.portions;
  if (int64_t ranks = chooseOtherRanks(world, seed, most); ranks && problem.empty()) {
    Values other;
    ++repeated;
    problem = runBinary(binary.path, batches, runs, seed, options, {ranks, world.portions}, other);
    if (problem.empty())
      problem = compareBits(actual, other);
    if (!problem.empty())
      problem = llvm::formatv("{0} and {1} ranks: {2}", world.ranks, ranks, problem);
  }
  if (!problem.empty() && options.ranks)
    problem = llvm::formatv("{0} ranks, {1} portions: {2}", world.ranks, world.portions, problem);
  return problem.empty() ? "" : "compiled at -O" + std::to_string(binary.level) + ": " + problem;
}

CompiledChecker::CompiledChecker(const CompiledOptions &options, const Toolchain &toolchain)
    : options(options), quick(toolchain), full(toolchain) {
  // Optimizing takes longer than what it saves; what it could break is seen by every fourth seed.
  quick.setOptimization("-O0");
  quick.setEmulatorOptimization("-O0");
}

CompiledChecker::~CompiledChecker() { Remover remover{{files.begin(), files.end()}}; }

llvm::Expected<std::unique_ptr<CompiledChecker>>
CompiledChecker::create(const CompiledOptions &options) {
  llvm::Expected<Toolchain> toolchain = Toolchain::load(options.toolchain);
  if (!toolchain)
    return toolchain.takeError();
  if (llvm::Error error = toolchain->setUnitCompiler(options.target->compiler))
    return std::move(error);
  auto checker = std::make_unique<CompiledChecker>(options, *toolchain);
  std::string problem = checker->precompile(checker->quick, "quick");
  // Units for the emulated device are compiled in one way.
  if (problem.empty() && options.target->hasDevice)
    checker->full = checker->quick;
  else if (problem.empty())
    problem = checker->precompile(checker->full, "full");
  if (!problem.empty())
    return llvm::createStringError(problem);
  return std::move(checker);
}

std::optional<std::string> CompiledChecker::check(ModuleOp module, uint64_t seed,
                                                  BoundWidths *widths) {
  ModelOp model = *module.getOps<ModelOp>().begin();
  std::vector<Batch> batches = makeBatches(model, seed, options.batches).batches;
  if (options.ranks)
    addUnevenBatches(model, seed, kUnevenBatches, batches);
  OwningOpRef<ModuleOp> lowered = module.clone();
  if (std::string problem = lowerForInterpreter(*lowered); !problem.empty())
    return problem;
  ModelOp reference = *lowered->getOps<ModelOp>().begin();
  llvm::Expected<RoundedObservations> expected = interpret(reference, batches, seed);
  if (!expected)
    return llvm::toString(expected.takeError());

  std::string stem = options.folder + "/seed" + std::to_string(seed), batchFile = stem + ".json";
  Remover remover{{batchFile}};
  auto replicated = chooseReplicated(model, seed);
  std::vector<Binary> binaries;
  for (unsigned level : options.levels) {
    binaries.push_back({level, stem + "-O" + std::to_string(level) + ".so", "", {}, replicated});
    remover.paths.push_back(binaries.back().path);
    remover.paths.push_back(binaries.back().path + ".cpp");
  }
  SmallVector<Run> runs = listRuns(reference, batches);
  if (std::string problem = writeBatches(*model.getOps<ProgramOp>().begin(), runs, batchFile);
      !problem.empty())
    return problem;
  compileAll(module, binaries, seed % 4 ? quick : full);
  for (const Binary &binary : binaries) {
    std::string problem = judge(binary, *expected, batchFile, runs, seed);
    if (!problem.empty())
      return problem;
  }
  if (widths) {
    widths->add(expected->forward, kCompiledAllowance);
    widths->add(expected->trained, kCompiledAllowance);
  }
  return std::nullopt;
}
