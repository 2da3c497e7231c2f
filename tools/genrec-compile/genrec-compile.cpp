//===- genrec-compile.cpp - from a model to a binary ----------------------===//
//
// Reads a model file or MLIR, compiles it, and writes MLIR, C++, an object, a shared object or
// a program.
//
//===----------------------------------------------------------------------===//

#include "CompileCache.h"
#include "Compiler.h"

#include "genrec/InitAllDialects.h"
#include "genrec/Model/SourceDiagnostics.h"
#include "genrec/Plugins/PluginOption.h"
#include "genrec/ToolVersion.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Threading.h"

using namespace genrec;
namespace cl = llvm::cl;

static cl::OptionCategory category("genrec-compile options");

static cl::opt<std::string> input(cl::Positional, cl::cat(category),
                                  cl::desc("<model file or .mlir>"));
static cl::opt<std::string> output("o", cl::cat(category), cl::value_desc("file"),
                                   cl::desc("where to write; - is the standard output"));
static cl::opt<Emission>
    emission("emit", cl::cat(category), cl::init(Emission::binary), cl::desc("what to write:"),
             cl::values(clEnumValN(Emission::mlir, "mlir", "the model as row kernels"),
                        clEnumValN(Emission::cpp, "cpp", "the C++ source"),
                        clEnumValN(Emission::cudaKernels, "cuda-kernels",
                                   "the row kernels as CUDA C++, for comparison with the CPU's"),
                        clEnumValN(Emission::object, "object", "an object file"),
                        clEnumValN(Emission::shared, "shared", "a shared object, to be loaded"),
                        clEnumValN(Emission::binary, "binary", "a program (the default)")));
static cl::opt<unsigned> level("O", cl::Prefix, cl::cat(category), cl::init(2),
                               cl::desc("0: a kernel per op; 1: fuse; 2: fuse and recompute (the "
                                        "default)"));
static cl::opt<bool> roundsProducts("mixed-precision", cl::cat(category),
                                    cl::desc("round the factors of all products to bfloat16; sums, "
                                             "weights, norms and losses stay f32"));
static cl::opt<bool> prunesColumns("prune-columns", cl::cat(category), cl::init(true),
                                   cl::desc("drop columns that nothing needs"));
static cl::opt<bool> sinksFanout("sink-fanout", cl::cat(category), cl::init(true),
                                 cl::desc("work per request where impressions share a value"));
static cl::opt<bool> mergesTables("merge-tables", cl::cat(category), cl::init(true),
                                  cl::desc("merge tables of one spec"));
static cl::opt<bool> fusesTransforms("fuse-transforms", cl::cat(category), cl::init(true),
                                     cl::desc("compute the keys of merged tables in one launch"));
static cl::opt<bool>
    formsInteractions("form-interactions", cl::cat(category), cl::init(true),
                      cl::desc("compute the dot products of all pairs of vectors as one product"));
static cl::opt<bool>
    picksCatalogueRows("pick-catalogue-rows", cl::cat(category), cl::init(true),
                       cl::desc("compute the items that a step reads, where it does not read all"));
static cl::opt<unsigned>
    splitsClasses("split-classes", cl::cat(category), cl::init(512), cl::value_desc("n"),
                  cl::desc("columns of a softmax over many classes that are computed at a "
                           "time; 0: all of them"));
static cl::opt<bool> factorsLookups("factor-lookups", cl::cat(category), cl::init(true),
                                    cl::desc("multiply a looked-up row by a linear layer once, "
                                             "however often it was found"));
static cl::opt<bool>
    multipliesNegatives("multiply-negatives", cl::cat(category), cl::init(true),
                        cl::desc("multiply queries by negatives that all rows share as a matrix"));
static cl::opt<std::string> target(
    "target", cl::cat(category), cl::init("cpu"), cl::value_desc("cpu|cuda|cuda-emulated"),
    cl::desc("what to compile for; cuda-emulated: CUDA kernels that run on the host, each access "
             "checked, for tests"));
static cl::opt<std::string> march("march", cl::cat(category), cl::init("native"),
                                  cl::desc("instruction set, as the C++ compiler names it"));
static cl::opt<std::string> cxx("cxx", cl::cat(category), cl::value_desc("compiler"),
                                cl::desc("the C++ compiler, instead of the one of the build"));
static cl::opt<std::string> toolchain("toolchain", cl::cat(category), cl::value_desc("file"),
                                      cl::desc("description of the toolchain, instead of the one "
                                               "beside the tools"));
static cl::opt<std::string> dumps("dump-after-each", cl::cat(category), cl::value_desc("folder"),
                                  cl::desc("write the IR after each pass into files there"));
static cl::opt<std::string> explanation(
    "explain", cl::cat(category), cl::ValueOptional, cl::value_desc("text|json|html"),
    cl::desc(
        "instead of a product, write what became of the model and why: tables, kernels and what "
        "each has to "
        "do, values kept, memory; as text (unless said), as data, or as one page with pictures"));
static cl::opt<bool>
    calibrates("calibrate", cl::cat(category),
               cl::desc("measure this machine's limits for two seconds, which --explain and "
                        "profiles predict times from; best when it is idle"));
static cl::opt<int64_t> batch("batch", cl::cat(category), cl::init(128),
                              cl::desc("root rows of a step, for --explain"));
static cl::list<std::string>
    longest("longest", cl::cat(category), cl::CommaSeparated, cl::value_desc("[list=]n"),
            cl::desc("entries of the longest list, of all lists (200) or of one, for --explain"));
static cl::list<std::string> rows(
    "rows", cl::cat(category), cl::CommaSeparated, cl::value_desc("domain=n"),
    cl::desc("rows that a domain has in the largest batch, where less than batch times longest, "
             "or that a catalogue has, for --explain"));
static cl::list<std::string> ids(
    "ids", cl::cat(category), cl::CommaSeparated, cl::value_desc("table=n[:s]|file"),
    cl::desc("distinct ids that a table will hold, for --explain; with --world, looked up by "
             "Zipf's law of exponent s (0: all alike), or as counted in a file: Parquet data of "
             "the model, or what `info --ids-out` of a binary wrote (.json)"));
static cl::opt<int64_t>
    worldSize("world", cl::cat(category), cl::init(0), cl::value_desc("ranks"),
              cl::desc("ranks that share a global batch of --batch rows, for --explain: what they "
                       "exchange and hold, and what runs out first"));
static cl::opt<int64_t> portions("portions", cl::cat(category), cl::init(0),
                                 cl::desc("of a global batch, for --world; 0: one per rank"));
static cl::list<std::string> replicated(
    "replicate", cl::cat(category), cl::CommaSeparated, cl::value_desc("table"),
    cl::desc("tables of which every rank has all rows, none, or auto (default: those that a run "
             "chooses), as the flag of a binary says, for --world"));
static cl::opt<bool>
    shardOptimizer("shard-optimizer", cl::cat(category),
                   cl::desc("ranks share the updates of dense parameters, for --world"));
static cl::opt<double> rankMemory("rank-memory", cl::cat(category), cl::init(64),
                                  cl::value_desc("GB"), cl::desc("of a rank, for --world"));
static cl::opt<double> deviceMemory("device-memory", cl::cat(category), cl::init(0),
                                    cl::value_desc("GB"),
                                    cl::desc("of a rank's device, for rows of tables: says which "
                                             "go to the host's memory, for --world"));
static cl::opt<double> bus("bus", cl::cat(category), cl::init(50), cl::value_desc("GB/s"),
                           cl::desc("between a device and the host, for --device-memory"));
static cl::opt<double> network("network", cl::cat(category), cl::init(200),
                               cl::value_desc("Gbit/s"),
                               cl::desc("into and out of a rank, for --world"));
static cl::opt<double> messageTime("message-us", cl::cat(category), cl::init(2),
                                   cl::value_desc("us"),
                                   cl::desc("that a message to one rank takes besides its bytes, "
                                            "for --world"));
static cl::opt<double> computeTime("compute-ms", cl::cat(category), cl::init(0),
                                   cl::value_desc("ms"),
                                   cl::desc("that a rank computes in a step, measured, for "
                                            "--world; else predicted after --calibrate"));
static cl::list<std::string> catalogues("catalogue", cl::cat(category), cl::value_desc("name=file"),
                                        cl::desc("of the data that --ids names"));
static cl::list<std::string> dataset(
    "dataset", cl::cat(category), cl::CommaSeparated, cl::value_desc("domain=n"),
    cl::desc("rows that a domain has in all of the data, for --explain: what is kept decoded"));
static cl::opt<int64_t> threads("worker-threads", cl::cat(category), cl::init(0),
                                cl::desc("threads that compute, for --explain; 0: the cores"));
static cl::opt<std::string>
    cache("cache", cl::cat(category), cl::value_desc("folder"), cl::init(getDefaultCacheFolder()),
          cl::desc("where products are kept, so that an unchanged model is not compiled "
                   "twice (default: $GENREC_CACHE, else in ~/.cache); none: keep nothing"));
static cl::opt<bool> keepsSource("save-temps", cl::cat(category),
                                 cl::desc("keep the C++ source, beside the output"));
static PluginOption plugins(category);
static cl::opt<bool> isVerbose("v", cl::cat(category), cl::desc("show commands and times"));

/// Splits "name=number"s; a number alone goes to `*all` where that is given.
static llvm::Error parseSizes(const cl::list<std::string> &flag, llvm::StringMap<int64_t> &sizes,
                              int64_t *all = nullptr) {
  for (llvm::StringRef text : flag) {
    auto [name, number] = text.split('=');
    bool isNamed = text.contains('=');
    int64_t value = 0;
    if ((!isNamed && !all) || (isNamed && name.empty()) ||
        (isNamed ? number : name).getAsInteger(10, value) || value < 0)
      return llvm::createStringError("--" + flag.ArgStr + " takes " + flag.ValueStr +
                                     ", n a number of at least 0, but got '" + text + "'");
    (isNamed ? sizes[name] : *all) = value;
  }
  return llvm::Error::success();
}

/// Splits what --ids names: "table=n" and "table=n:s" go to `options`, a file to `file`.
static llvm::Error parseIds(ExplainOptions &options, std::string &file) {
  for (llvm::StringRef text : ids) {
    auto [table, value] = text.split('=');
    if (!text.contains('=')) {
      if (!file.empty())
        return llvm::createStringError("--ids names two files, " + file + " and " + text);
      file = text.str();
      continue;
    }
    auto [count, exponent] = value.split(':');
    int64_t number = 0;
    double power = 0;
    if (table.empty() || count.getAsInteger(10, number) || number < 0 ||
        (value.contains(':') && (exponent.getAsDouble(power) || power < 0)))
      return llvm::createStringError("--ids takes " + ids.ValueStr +
                                     ", n a number of at least 0 and s an exponent, but got '" +
                                     text + "'");
    constexpr int64_t kMostIds = 200'000'000; // World follows them one by one
    if (worldSize > 0 && number > kMostIds)
      return llvm::createStringError("--ids " + text + ": with --world, a table has at most " +
                                     llvm::Twine(kMostIds) + " ids");
    options.ids[table] = number;
    if (power > 0)
      options.zipf[table] = power;
  }
  return llvm::Error::success();
}

/// What --world and the flags beside it say.
static llvm::Error parseWorld(ExplainOptions &options) {
  constexpr int64_t kMostRanks = 4096; // slices of a table's rows
  if (worldSize < 0 || worldSize > kMostRanks)
    return llvm::createStringError("--world must be 1 to 4096 ranks, but is " +
                                   llvm::Twine(worldSize));
  if (portions < 0 || (portions > 0 && portions < worldSize))
    return llvm::createStringError(llvm::Twine(portions) + " --portions are too few for " +
                                   llvm::Twine(worldSize) + " ranks");
  if (!(rankMemory > 0 && network > 0 && bus > 0 && messageTime >= 0 && computeTime >= 0 &&
        deviceMemory >= 0))
    return llvm::createStringError("--rank-memory, --bus and --network must be above 0, "
                                   "--message-us, --compute-ms and --device-memory not below");
  options.ranks = worldSize;
  options.portions = portions;
  auto isWord = [](llvm::StringRef word) {
    return replicated.size() == 1 && replicated.front() == word;
  };
  options.choosesReplicas = replicated.empty() || isWord("auto");
  if (!options.choosesReplicas && !isWord("none"))
    options.replicate.insert(replicated.begin(), replicated.end());
  options.shardOptimizer = shardOptimizer;
  options.machine.memoryBytes = rankMemory * 1e9;
  options.machine.networkBitsPerSecond = network * 1e9;
  options.machine.messageSeconds = messageTime * 1e-6;
  if (computeTime > 0)
    options.machine.computeSeconds = computeTime * 1e-3;
  if (deviceMemory > 0)
    options.machine.deviceBytes = deviceMemory * 1e9;
  options.machine.busBytesPerSecond = bus * 1e9;
  return llvm::Error::success();
}

/// What the flags for --explain say; `idsOf`: a file that --ids names.
static llvm::Expected<ExplainOptions> parseExplainOptions(std::string &idsOf) {
  ExplainOptions options;
  options.batch = batch;
  options.threads = threads > 0 ? threads : llvm::hardware_concurrency().compute_thread_count();
  if (batch < 1)
    return llvm::createStringError("--batch must be at least 1, but is " + llvm::Twine(batch));
  if (llvm::Error error = parseSizes(longest, options.longestOf, &options.longest))
    return error;
  if (llvm::Error error = parseSizes(rows, options.rows))
    return error;
  if (llvm::Error error = parseIds(options, idsOf))
    return error;
  if (llvm::Error error = parseWorld(options))
    return error;
  if (!idsOf.empty() && worldSize == 0)
    return llvm::createStringError("--ids takes table=n, n a number of at least 0, but got '" +
                                   idsOf + "'; a file of counted ids is read with --world only");
  if (llvm::Error error = parseSizes(dataset, options.dataset))
    return error;
  return options;
}

/// A symbol's address tells where the program lies.
static int anchor;

static int fail(const llvm::Twine &message) {
  llvm::errs() << "genrec-compile: error: " << message << "\n";
  return 1;
}

/// What the flags say, but those for --explain.
static CompilerOptions getOptions(const char *program) {
  CompilerOptions options;
  options.input = input;
  options.output = output;
  options.emission = emission;
  options.level = level;
  options.roundsProducts = roundsProducts;
  options.prunesColumns = prunesColumns;
  options.sinksFanout = sinksFanout;
  options.factorsLookups = factorsLookups;
  options.multipliesNegatives = multipliesNegatives;
  options.mergesTables = mergesTables;
  options.fusesTransforms = fusesTransforms;
  options.formsInteractions = formsInteractions;
  options.picksCatalogueRows = picksCatalogueRows;
  options.splitsClasses = splitsClasses;
  options.target = target;
  options.march = march;
  options.compiler = cxx;
  options.toolchain = toolchain;
  options.dumpFolder = dumps;
  options.cacheFolder = cache == "none" ? "" : cache.getValue();
  options.explanation =
      explanation.getNumOccurrences() && explanation.empty() ? "text" : explanation.getValue();
  options.keepsSource = keepsSource;
  options.isVerbose = isVerbose;
  options.plugins = plugins.getFiles();
  options.executable = llvm::sys::fs::getMainExecutable(program, &anchor);
  options.catalogues.assign(catalogues.begin(), catalogues.end());
  return options;
}

/// Runs the tool beside this one that links the runtime, whose kernels are measured.
static int calibrate(llvm::StringRef executable) {
  std::string tool = (llvm::sys::path::parent_path(executable) + "/genrec-calibrate").str();
  std::string message;
  int status = llvm::sys::ExecuteAndWait(tool, {tool}, std::nullopt, {}, 0, 0, &message);
  return message.empty() ? status : fail("cannot run " + tool + ": " + message);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-compile");
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "compiles a model to a program that trains, evaluates, predicts and exports\n\n"
      "  genrec-compile model.genrec -o model             then ./model train --data train.parquet\n"
      "  genrec-compile model.mlir --emit=cpp -o -        the C++ that it is made of\n"
      "  genrec-compile model.genrec --explain            what became of tables, ops and memory, "
      "and why\n\n"
      "The model is a model file, as Python writes it, or MLIR; - reads from standard input. "
      "Models that\n"
      "are row kernels already (--emit=mlir) are compiled from there on.\n");

  CompilerOptions options = getOptions(argv[0]);
  llvm::Expected<ExplainOptions> explain = parseExplainOptions(options.idsOf);
  if (!explain)
    return fail(llvm::toString(explain.takeError()));
  options.explain = std::move(*explain);
  if (calibrates)
    return calibrate(options.executable);
  if (options.input.empty())
    return fail("no model was given: genrec-compile <model file or .mlir>; --help says more");
  if (!options.explanation.empty() &&
      !llvm::is_contained({"text", "json", "html"}, options.explanation))
    return fail("--explain must be text, json or html, but is '" + options.explanation + "'");

  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  plugins.load(registry, "genrec-compile");
  mlir::MLIRContext context(registry);
  plugins.loadDialects(context);
  SourceDiagnosticHandler diagnostics(&context, llvm::errs());
  if (llvm::Error error = compile(options, context)) {
    // An empty message: diagnostics said it all.
    std::string message = llvm::toString(std::move(error));
    if (!message.empty())
      llvm::errs() << "genrec-compile: error: " << message << "\n";
    return 1;
  }
  return 0;
}
