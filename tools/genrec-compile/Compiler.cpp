//===- Compiler.cpp - the steps of genrec-compile -------------------------===//

#include "Compiler.h"
#include "CompileCache.h"
#include "DumpAfterEach.h"
#include "IdCounts.h"

#include "genrec/Analysis/Identity.h"
#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Model/Model.h"
#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/CppPrinter.h"
#include "genrec/Target/Cpp/Toolchain.h"
#include "genrec/Target/EmitC/Callees.h"
#include "genrec/Version.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/TargetParser/Host.h"

#include <chrono>

using namespace mlir;
using namespace genrec;
using llvm::Error;

/// What a diagnostic has said already.
static Error reported() { return llvm::createStringError(""); }

namespace {
/// Says, with -v, how long a step took.
class StepTimer {
public:
  StepTimer(const CompilerOptions &options, StringRef what)
      : isVerbose(options.isVerbose), what(what) {}
  ~StepTimer() {
    if (!isVerbose)
      return;
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    llvm::errs() << llvm::format("%s: %.2f s\n", what.c_str(), time.count());
  }

private:
  bool isVerbose;
  std::string what;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};
} // namespace

//===----------------------------------------------------------------------===//
// Input
//===----------------------------------------------------------------------===//

static llvm::Expected<OwningOpRef<ModuleOp>> read(const CompilerOptions &options,
                                                  MLIRContext &context) {
  auto file = llvm::MemoryBuffer::getFileOrSTDIN(options.input);
  if (!file)
    return llvm::createStringError("cannot read '" + options.input +
                                   "': " + file.getError().message());
  StringRef data = (*file)->getBuffer();
  if (data.empty())
    return llvm::createStringError("'" + options.input + "' is empty");
  if (failed(requireNoForeignFile(data, options.input, &context)))
    return reported();
  OwningOpRef<ModuleOp> module;
  if (isModelFile(data)) {
    module = importModel(data.data(), data.size(), options.input, &context);
  } else {
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
    module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  }
  if (!module)
    return reported();
  if (module->getOps<ModelOp>().empty())
    return llvm::createStringError("'" + options.input + "' holds no genrec.model");
  return module;
}

/// Row kernels are there: the input is an optimised model, not one to differentiate.
static bool isLowered(ModuleOp module) {
  return module.walk([](RowKernelOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

static std::string describeCompiler(const CompilerOptions &options) {
  std::string text = "genrec " GENREC_VERSION " -O" + std::to_string(options.level) +
                     " --target=" + options.target + " --march=" + options.march;
  std::pair<bool, StringRef> passes[] = {{options.prunesColumns, "prune-columns"},
                                         {options.sinksFanout, "sink-fanout"},
                                         {options.mergesTables, "merge-tables"},
                                         {options.fusesTransforms, "fuse-transforms"},
                                         {options.formsInteractions, "form-interactions"},
                                         {options.picksCatalogueRows, "pick-catalogue-rows"},
                                         {options.factorsLookups, "factor-lookups"},
                                         {options.multipliesNegatives, "multiply-negatives"}};
  for (auto [isOn, name] : passes)
    if (!isOn)
      text += (" --" + name + "=false").str();
  if (options.roundsProducts)
    text += " --mixed-precision";
  if (unsigned columns = options.splitsClasses; columns != CompilerOptions().splitsClasses)
    text += " --split-classes=" + std::to_string(columns);
  return text;
}

/// Leaves the kernels, as EmitC, of what was outlined: nothing on the device calls them yet.
static Error keepKernelsAlone(ModuleOp module) {
  for (auto model : llvm::make_early_inc_range(module.getOps<ModelOp>()))
    model.erase();
  PassManager pm(module.getContext());
  pm.addPass(createLowerToEmitC());
  return failed(pm.run(module)) ? reported() : Error::success();
}

static Error runPasses(ModuleOp module, const CompilerOptions &options) {
  StepTimer timer(options, "passes");
  PassManager pm(module.getContext());
  if (!isLowered(module)) {
    recordIdentity(module);
    PipelineOptions graph;
    graph.target = Target::find(options.target)->kind;
    graph.opt = options.level;
    graph.mixedPrecision = options.roundsProducts;
    graph.pruneColumns = options.prunesColumns;
    graph.sinkFanout = options.sinksFanout;
    graph.mergeTables = options.mergesTables;
    graph.fuseTransforms = options.fusesTransforms;
    graph.formInteractions = options.formsInteractions;
    graph.pickCatalogueRows = options.picksCatalogueRows;
    graph.splitClasses = options.splitsClasses;
    graph.factorLookups = options.factorsLookups;
    graph.multiplyNegatives = options.multipliesNegatives;
    buildGraphPipeline(pm, graph);
  }
  if (!options.explanation.empty()) {
    buildMemoryPipeline(pm, Target::find(options.target)->kind);
  } else if (options.emission == Emission::cudaKernels) {
    buildKernelPipeline(pm, TargetKind::cuda);
  } else if (options.emission != Emission::mlir) {
    buildLoweringPipeline(pm, Target::find(options.target)->kind, describeCompiler(options));
  }
  if (!options.dumpFolder.empty()) {
    if (std::error_code error = llvm::sys::fs::create_directories(options.dumpFolder))
      return llvm::createStringError("cannot make folder '" + options.dumpFolder +
                                     "': " + error.message());
    pm.addInstrumentation(std::make_unique<DumpAfterEach>(options.dumpFolder));
  }
  if (failed(pm.run(module)))
    return reported();
  return options.emission == Emission::cudaKernels ? keepKernelsAlone(module) : Error::success();
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

static std::string getOutput(const CompilerOptions &options) {
  if (!options.output.empty())
    return options.output;
  if (!options.explanation.empty() || options.emission == Emission::mlir ||
      options.emission == Emission::cpp || options.emission == Emission::cudaKernels)
    return "-";
  SmallString<128> path(llvm::sys::path::filename(options.input));
  StringRef extension = options.emission == Emission::object   ? "o"
                        : options.emission == Emission::shared ? "so"
                                                               : "";
  llvm::sys::path::replace_extension(path, extension);
  return std::string(path);
}

static Error writeText(StringRef path, llvm::function_ref<LogicalResult(raw_ostream &)> write) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, llvm::sys::fs::OF_Text);
  if (error)
    return llvm::createStringError("cannot write '" + path + "': " + error.message());
  if (failed(write(file.os())))
    return reported();
  file.os().flush();
  if (std::error_code failure = file.os().error()) {
    file.os().clear_error(); // which would end the program
    return llvm::createStringError("cannot write '" + path + "': " + failure.message());
  }
  file.keep();
  return Error::success();
}

static Error writeCpp(ModuleOp module, StringRef path, const CompilerOptions &options) {
  return writeText(path, [&](raw_ostream &os) {
    return printCpp(module, os, "Made by " + describeCompiler(options));
  });
}

static bool isProduct(const CompilerOptions &options) {
  return options.emission == Emission::object || options.emission == Emission::shared ||
         options.emission == Emission::binary;
}

/// What a product follows from: the model, this compiler, the toolchain with the runtime, the
/// options.
static std::string getCacheKey(const CompilerOptions &options, const Toolchain &toolchain) {
  CacheKey key;
  key.addFile(options.input);
  // Locations of MLIR, which comments show, name the file.
  key.add(options.input);
  key.addFile(options.executable);
  for (const std::string &plugin : options.plugins)
    key.addFile(plugin);
  toolchain.visitInputs([&](StringRef text) { key.add(text); },
                        [&](StringRef file) { key.addFile(file); },
                        [&](StringRef folder) { key.addFolder(folder); });
  key.add(describeCompiler(options));
  key.add(std::to_string(static_cast<int>(options.emission)));
  key.add(llvm::sys::getHostCPUName());
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    key.add((feature.getKey() + (feature.getValue() ? "+" : "-")).str());
  return key.get();
}

static llvm::Expected<Toolchain> getToolchain(const CompilerOptions &options,
                                              MLIRContext &context) {
  std::string path =
      options.toolchain.empty() ? Toolchain::getDefaultPath(options.executable) : options.toolchain;
  llvm::Expected<Toolchain> toolchain = Toolchain::load(path);
  if (!toolchain)
    return toolchain.takeError();
  if (!options.compiler.empty())
    toolchain->setCompiler(options.compiler);
  if (Error error = toolchain->setUnitCompiler(Target::find(options.target)->compiler))
    return error;
  toolchain->setMarch(options.march);
  if (options.level == 0)
    toolchain->setOptimization("-O1");
  for (const std::string &folder : getKernelIncludeFolders(&context))
    toolchain->addIncludeFolder(folder);
  return toolchain;
}

/// Makes the product through a C++ source, which stays where something goes wrong with it.
static Error build(ModuleOp module, const CompilerOptions &options, const Toolchain &toolchain,
                   StringRef key) {
  bool isCuda = Target::find(options.target)->compiler != UnitCompiler::host;
  std::string output = getOutput(options), source = output + (isCuda ? ".cu" : ".cpp");
  if (Error error = writeCpp(module, source, options))
    return error;
  CompileCache cache(options.cacheFolder);
  if (options.keepsSource && cache.fetch(key, output))
    return Error::success();
  StepTimer timer(options, "C++ compiler");
  Product product = options.emission == Emission::object   ? Product::object
                    : options.emission == Emission::shared ? Product::shared
                                                           : Product::binary;
  if (Error error = toolchain.make(product, source, output, options.isVerbose))
    return error;
  if (!options.keepsSource)
    llvm::sys::fs::remove(source);
  cache.keep(key, output);
  return Error::success();
}

/// A product of this very model that was kept, where nothing else is wanted than that.
static bool reuse(const CompilerOptions &options, StringRef key) {
  if (options.keepsSource || !options.dumpFolder.empty() || options.input == "-")
    return false;
  if (!CompileCache(options.cacheFolder).fetch(key, getOutput(options)))
    return false;
  if (options.isVerbose)
    llvm::errs() << "reused from " << options.cacheFolder << "\n";
  return true;
}

/// The model with no tables merged, as far as ranks are to be explained.
static llvm::Expected<OwningOpRef<ModuleOp>> readApart(const CompilerOptions &options,
                                                       MLIRContext &context) {
  if (options.explain.ranks == 0)
    return OwningOpRef<ModuleOp>();
  CompilerOptions apart = options;
  apart.mergesTables = false;
  apart.dumpFolder.clear();
  llvm::Expected<OwningOpRef<ModuleOp>> module = read(apart, context);
  if (!module)
    return module.takeError();
  if (isLowered(**module))
    return llvm::createStringError("--world needs the model as it was recorded, and '" +
                                   options.input + "' has row kernels already");
  if (Error error = runPasses(**module, apart))
    return error;
  return module;
}

static Error writeExplanation(ModuleOp module, CompilerOptions options, llvm::json::Object graphs,
                              MLIRContext &context) {
  llvm::Expected<OwningOpRef<ModuleOp>> apartModule = readApart(options, context);
  if (!apartModule)
    return apartModule.takeError();
  ModelOp apart = *apartModule ? *(**apartModule).getOps<ModelOp>().begin() : ModelOp();
  if (!options.idsOf.empty()) {
    llvm::Expected<IdStatistics> statistics = readIdStatistics(options, context);
    if (!statistics)
      return statistics.takeError();
    options.explain.statistics = std::move(*statistics);
  }
  for (ModelOp model : module.getOps<ModelOp>())
    adoptSizes(model, options.explain);
  std::string text;
  llvm::json::Object plan;
  for (ModelOp model : module.getOps<ModelOp>()) {
    if (options.explanation == "text") {
      llvm::raw_string_ostream os(text);
      if (Error error = explain(model, apart, options.explain, os))
        return error;
      continue;
    }
    llvm::Expected<llvm::json::Object> made =
        explainAsData(model, apart, options.explain, std::move(graphs));
    if (!made)
      return made.takeError();
    plan = std::move(*made);
    plan["compiler"] = describeCompiler(options);
  }
  return writeText(options.output.empty() ? "-" : options.output, [&](raw_ostream &os) {
    os << text;
    if (!text.empty())
      return success();
    if (options.explanation == "html")
      printPlanAsHtml(plan, os);
    else
      os << llvm::formatv("{0:2}\n", llvm::json::Value(std::move(plan)));
    return success();
  });
}

Error genrec::compile(const CompilerOptions &options, MLIRContext &context) {
  if (!Target::find(options.target))
    return llvm::createStringError("target must be " + Target::getNames() + ", but is '" +
                                   options.target + "'");
  if (options.level > 2)
    return llvm::createStringError("the level must be -O0, -O1 or -O2, but is -O" +
                                   Twine(options.level));
  if (llvm::sys::fs::is_directory(options.input))
    return llvm::createStringError("'" + options.input +
                                   "' is a folder, not a model; name the model file in it");
  std::string output = getOutput(options);
  if (output != "-" && llvm::sys::fs::is_directory(output))
    return llvm::createStringError("-o " + output + " is a folder; name the file: -o " + output +
                                   "/" + llvm::sys::path::stem(options.input));
  if (output != "-" && llvm::sys::fs::equivalent(output, options.input))
    return llvm::createStringError("-o " + output + " would overwrite the model " + options.input +
                                   "; name another file");
  std::optional<Toolchain> toolchain;
  std::string key;
  if (isProduct(options) && options.explanation.empty()) {
    llvm::Expected<Toolchain> loaded = getToolchain(options, context);
    if (!loaded)
      return loaded.takeError();
    toolchain = std::move(*loaded);
    key = getCacheKey(options, *toolchain);
    if (reuse(options, key))
      return Error::success();
  }
  llvm::Expected<OwningOpRef<ModuleOp>> module = read(options, context);
  if (!module)
    return module.takeError();
  llvm::json::Object graphs;
  if (options.explanation == "json" || options.explanation == "html")
    for (ModelOp model : (*module)->getOps<ModelOp>())
      graphs = describeGraphs(model);
  if (Error error = runPasses(**module, options))
    return error;
  if (!options.explanation.empty())
    return writeExplanation(**module, options, std::move(graphs), context);
  switch (options.emission) {
  case Emission::mlir:
    return writeText(getOutput(options), [&](raw_ostream &os) {
      (*module)->print(os, OpPrintingFlags().enableDebugInfo(options.keepsSource));
      return success();
    });
  case Emission::cpp:
  case Emission::cudaKernels:
    return writeCpp(**module, getOutput(options), options);
  case Emission::object:
  case Emission::shared:
  case Emission::binary:
    return build(**module, options, *toolchain, key);
  }
  llvm_unreachable("every emission is handled");
}
