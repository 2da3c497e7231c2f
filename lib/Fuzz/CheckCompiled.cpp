//===- CheckCompiled.cpp - the interpreter judges binaries ----------------===//
//
// The binaries are shared objects that model-driver of test/EndToEnd runs in a
// process of its own: a crash is a finding like any other.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/CheckCompiled.h"

#include "genrec/Conversion/Passes.h"
#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/CppPrinter.h"
#include "genrec/Target/Cpp/Toolchain.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <cmath>
#include <thread>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::Precision;
namespace json = llvm::json;

namespace {
using Values = std::map<std::string, std::vector<double>>;

/// One level's binary on its way from model to results.
struct Binary {
  unsigned level;
  std::string path;
  std::string problem;
};

/// Files that go when the check ends.
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

/// Makes the C++ source of `module` at a level; says what is wrong.
static std::string writeSource(ModuleOp module, unsigned level, StringRef path) {
  OwningOpRef<ModuleOp> copy = module.clone();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    diagnostics += diagnostic.str() + "\n";
    return success();
  });
  PassManager pm(module.getContext());
  PipelineOptions graph;
  graph.opt = level;
  buildGraphPipeline(pm, graph);
  buildLoweringPipeline(pm, "cpu", "genrec-fuzz");
  if (failed(pm.run(*copy)))
    return "a pass failed: " + diagnostics;
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  return failed(printCpp(*copy, os)) ? "the printer failed: " + diagnostics : "";
}

/// Compiles all levels, side by side.
static void compileAll(ModuleOp module, std::vector<Binary> &binaries, const Toolchain &toolchain) {
  std::vector<std::thread> compilers;
  for (Binary &binary : binaries) {
    binary.problem = writeSource(module, binary.level, binary.path + ".cpp");
    if (!binary.problem.empty())
      continue;
    compilers.emplace_back([&binary, &toolchain] {
      if (llvm::Error error = toolchain.make(Product::shared, binary.path + ".cpp", binary.path, false))
        binary.problem = llvm::toString(std::move(error));
    });
  }
  for (std::thread &compiler : compilers)
    compiler.join();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// JSON has no infinity and no NaN: they come as strings.
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

/// The members of a section as lists of numbers, each named `prefix` and its key.
static void note(Values &values, const json::Object &step, StringRef section, const std::string &prefix) {
  if (const json::Object *members = step.getObject(section))
    for (const auto &[key, value] : *members)
      append(values[prefix + key.str()], value);
}

static void noteStep(Values &values, const json::Object &step, const std::string &prefix) {
  if (const json::Object *losses = step.getObject("losses"))
    for (const auto &[key, value] : *losses)
      values[prefix + " loss " + key.str()] = {toNumber(*value.getAsObject()->get("mean")),
                                               toNumber(*value.getAsObject()->get("weight"))};
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

/// What the driver printed, under the names of `observe`.
static std::string readResults(StringRef text, Values &values) {
  SmallVector<StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (auto [index, line] : llvm::enumerate(lines)) {
    llvm::Expected<json::Value> step = json::parse(line);
    if (!step)
      return "model-driver printed what is not JSON: " + llvm::toString(step.takeError());
    noteStep(values, *step->getAsObject(),
             index == 0   ? "evaluate"
             : index == 1 ? "predict"
                          : "step " + std::to_string(index - 2));
    if (index + 1 == lines.size())
      noteState(values, *step->getAsObject());
  }
  return "";
}

static std::string readFile(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

/// Runs a binary on the batches of a file; says what is wrong.
static std::string runBinary(const Binary &binary, StringRef batches, StringRef modes, uint64_t seed,
                             const CompiledOptions &options, Values &values) {
  std::string out = binary.path + ".out", log = binary.path + ".log";
  Remover remover{{out, log}};
  std::string seedText = std::to_string(seed), threads = std::to_string(options.threads), problem;
  StringRef arguments[] = {options.driver, binary.path, batches, modes, seedText, threads};
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(out), StringRef(log)};
  int code = llvm::sys::ExecuteAndWait(options.driver, arguments, std::nullopt, redirects,
                                       /*SecondsToWait=*/60, 0, &problem);
  if (code != 0)
    return "model-driver ended with status " + std::to_string(code) + " " + problem + "\n" + readFile(log);
  return readResults(readFile(out), values);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

/// The interpreter's view of the model, as differentiated and lowered to row kernels.
static llvm::Expected<Values> interpret(ModuleOp module, ArrayRef<Batch> batches, uint64_t seed,
                                        Precision precision) {
  llvm::Expected<Observations> seen =
      observe(*module.getOps<ModelOp>().begin(), batches, seed, precision);
  if (!seen)
    return seen.takeError();
  Values values = std::move(seen->forward);
  for (auto &[name, list] : seen->trained)
    if (name.find(" gradient ") == std::string::npos)
      values[name] = std::move(list);
  return values;
}

/// By how much, relative to max(1, |exact|), a list differs when the interpreter rounds to float.
static double getConditioning(const std::vector<double> &exact, const std::vector<double> &rounded) {
  if (exact.size() != rounded.size())
    return 0;
  double worst = 0;
  for (auto [a, b] : llvm::zip_equal(exact, rounded))
    worst = std::fmax(worst, std::fabs(a - b) / std::max(1.0, std::fabs(a)));
  return worst;
}

static std::string compareLists(const Values &exact, const Values &rounded, const Values &actual,
                                double tolerance) {
  for (const auto &[name, list] : exact) {
    auto other = rounded.find(name);
    double conditioning = other == rounded.end() ? 0 : getConditioning(list, other->second);
    std::string difference = compare({{name, list}}, actual, tolerance + 8 * conditioning);
    if (!difference.empty())
      return difference;
  }
  return "";
}

static std::string writeBatches(ProgramOp program, ArrayRef<Batch> batches, StringRef path) {
  json::Array list;
  // Evaluation and prediction of the first batch, then a training step per batch.
  for (int i = 0; i < 2; ++i)
    list.push_back(batchToJson(program, batches.front()));
  for (const Batch &batch : batches)
    list.push_back(batchToJson(program, batch));
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return "cannot write '" + path.str() + "': " + error.message();
  os << json::Value(std::move(list));
  return "";
}

double fuzz::getCompiledTolerance(ModelOp model) {
  int64_t ops = 0;
  model.walk([&](Operation *) { ++ops; });
  return 0x1.0p-24 * static_cast<double>(4 * ops) * 100;
}

/// Lowers `module` as far as the interpreter goes, op by op.
static std::string lowerForInterpreter(ModuleOp module) {
  PassManager pm(module.getContext());
  PipelineOptions graph;
  graph.opt = 0;
  buildGraphPipeline(pm, graph);
  return failed(pm.run(module)) ? "a pass failed" : "";
}

static std::string judge(const Binary &binary, const Values &exact, const Values &rounded, double tolerance,
                         StringRef batches, StringRef modes, uint64_t seed, const CompiledOptions &options) {
  Values actual;
  std::string problem = binary.problem;
  if (problem.empty())
    problem = runBinary(binary, batches, modes, seed, options, actual);
  if (problem.empty())
    problem = compareLists(exact, rounded, actual, tolerance);
  return problem.empty() ? "" : "compiled at -O" + std::to_string(binary.level) + ": " + problem;
}

std::optional<std::string> fuzz::checkCompiled(ModuleOp module, uint64_t seed, const CompiledOptions &options) {
  llvm::Expected<Toolchain> toolchain = Toolchain::load(options.toolchain);
  if (!toolchain)
    return llvm::toString(toolchain.takeError());
  // Vectorisation by the C++ compiler is not what is tried here, and takes most of its time.
  toolchain->setOptimization("-O1");

  ModelOp model = *module.getOps<ModelOp>().begin();
  std::vector<Batch> batches = makeBatches(model, seed, options.batches);
  OwningOpRef<ModuleOp> lowered = module.clone();
  if (std::string problem = lowerForInterpreter(*lowered); !problem.empty())
    return problem;
  llvm::Expected<Values> exact = interpret(*lowered, batches, seed, Precision::exact);
  if (!exact)
    return llvm::toString(exact.takeError());
  llvm::Expected<Values> rounded = interpret(*lowered, batches, seed, Precision::rounded);
  if (!rounded)
    return llvm::toString(rounded.takeError());

  std::string stem = options.folder + "/seed" + std::to_string(seed), batchFile = stem + ".json";
  Remover remover{{batchFile}};
  std::vector<Binary> binaries;
  for (unsigned level : options.levels) {
    binaries.push_back({level, stem + "-O" + std::to_string(level) + ".so", ""});
    remover.paths.push_back(binaries.back().path);
    remover.paths.push_back(binaries.back().path + ".cpp");
  }
  if (std::string problem = writeBatches(*model.getOps<ProgramOp>().begin(), batches, batchFile); !problem.empty())
    return problem;
  compileAll(module, binaries, *toolchain);
  std::string modes = "evaluate,predict";
  for (size_t i = 0; i < batches.size(); ++i)
    modes += ",train";
  for (const Binary &binary : binaries) {
    std::string problem = judge(binary, *exact, *rounded, getCompiledTolerance(model), batchFile, modes, seed, options);
    if (!problem.empty())
      return problem;
  }
  return std::nullopt;
}
