//===- Options.cpp - genrec-run's command line ----------------------------===//

#include "Options.h"

#include "genrec/Plugins/PluginOption.h"

#include "llvm/Support/CommandLine.h"

using namespace genrec;
using namespace genrec::run;
using namespace genrec::interpreter;

namespace cl = llvm::cl;

static constexpr const char *kOverview =
    R"(interprets a model: evaluates its ops one by one on a small batch

  genrec-run model.genrec                            losses of a random batch
  genrec-run model.mlir --batch=b.json --mode=predict
  genrec-run model.mlir --random=7 --check-gradients gradients against central differences
  genrec-run model.mlir --pipeline='builtin.module(genrec.model(genrec-infer-domains))'

A model file or MLIR is run as it is; --pipeline runs passes first. A batch in JSON holds the
rows of the data as they nest, and those of catalogues:

  {"rows": [{"user": 5, "history": [{"movie": 3, "time": 100}, {"movie": 4, "time": 160}]},
            {"user": 6, "history": []}],
   "catalogues": {"movies": [{"id": 3}, {"id": 4}]},
   "positions": [0, 1]}

Names are those of the columns in the files; null is a null; "positions" (optional) are the rows'
places in the dataset, which random streams depend on. docs/interpreter.md says more.
)";

namespace {

/// The flags.
struct CommandLine {
  cl::OptionCategory category{"genrec-run options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<model file or MLIR>"), cl::init("-"),
                             cl::cat(category)};
  cl::list<std::string> batches{"batch", cl::cat(category), cl::CommaSeparated,
                                cl::desc("JSON files, a batch each; steps go through them in turn"),
                                cl::value_desc("file")};
  cl::opt<uint64_t> random{"random", cl::cat(category), cl::init(1),
                           cl::desc("seed of random batches, where no --batch is given")};
  cl::opt<int64_t> rows{"rows", cl::cat(category), cl::init(4),
                        cl::desc("root rows of a random batch")};
  cl::opt<int64_t> steps{"steps", cl::cat(category), cl::init(1),
                         cl::desc("runs, one batch each; training updates in between")};
  cl::opt<uint64_t> seed{"seed", cl::cat(category), cl::init(1),
                         cl::desc("seed of initial values and random streams")};
  cl::opt<Mode> mode{"mode", cl::cat(category), cl::init(Mode::train),
                     cl::desc("which program to run, or what to run an imported one for"),
                     cl::values(clEnumValN(Mode::train, "train", "losses, and updates"),
                                clEnumValN(Mode::evaluate, "evaluate", "losses and metrics"),
                                clEnumValN(Mode::predict, "predict", "outputs"),
                                clEnumValN(Mode::items, "items",
                                           "vectors of catalogue rows, of a specialised model"))};
  cl::opt<Precision> precision{
      "precision", cl::cat(category), cl::init(Precision::exact), cl::desc("how f32 is kept"),
      cl::values(clEnumValN(Precision::exact, "double", "as double"),
                 clEnumValN(Precision::rounded, "float", "rounded to float after each op"))};
  cl::opt<std::string> pipeline{"pipeline", cl::cat(category), cl::value_desc("passes"),
                                cl::desc("passes to run first, as text")};
  cl::list<Section> print{
      "print", cl::cat(category), cl::CommaSeparated,
      cl::desc("what to print (losses, metrics and outputs unless said)"),
      cl::values(clEnumValN(Section::losses, "losses", "of each task, and of the model"),
                 clEnumValN(Section::outputs, "outputs", "what predict writes"),
                 clEnumValN(Section::metrics, "metrics", "of this batch alone"),
                 clEnumValN(Section::gradients, "gradients", "as updates receive them"),
                 clEnumValN(Section::parameters, "parameters", "after the step"),
                 clEnumValN(Section::tables, "tables", "rows with their states after the step"),
                 clEnumValN(Section::values, "values", "of every op"))};
  cl::opt<bool> json{"json", cl::cat(category), cl::desc("print one line of JSON per run")};
  cl::opt<bool> printBatch{"print-batch", cl::cat(category), cl::desc("print each batch as JSON")};
  cl::opt<bool> split{"split-input-file", cl::cat(category),
                      cl::desc("run each part between lines // -----")};
  cl::opt<bool> check{"check-gradients", cl::cat(category),
                      cl::desc("compare the gradients of the train program (differentiated if it "
                               "is not) with central differences in double")};
  cl::opt<double> tolerance{"tolerance", cl::cat(category), cl::init(1e-6),
                            cl::desc("relative difference that --check-gradients allows")};
  cl::opt<bool> allowZero{"allow-zero", cl::cat(category),
                          cl::desc("let --check-gradients pass where all derivatives of a "
                                   "parameter or table are 0")};
  PluginOption plugins{category};

  Options getOptions() const;
};

} // namespace

Options CommandLine::getOptions() const {
  Options options;
  options.input = input;
  options.batches.assign(batches.begin(), batches.end());
  options.randomSeed = random;
  options.rows = rows;
  options.steps = steps;
  options.seed = seed;
  options.mode = mode;
  options.run.precision = precision;
  options.pipeline = pipeline;
  options.sections.assign(print.begin(), print.end());
  if (options.sections.empty())
    options.sections = {Section::losses, Section::outputs, Section::metrics};
  options.run.keepValues = llvm::is_contained(options.sections, Section::values);
  options.json = json;
  options.printBatch = printBatch;
  options.splitInput = split;
  options.checkGradients = check;
  options.check.tolerance = tolerance;
  options.allowZero = allowZero;
  return options;
}

Options run::parseCommandLine(int argc, char **argv, mlir::DialectRegistry &registry) {
  CommandLine flags;
  cl::HideUnrelatedOptions(flags.category);
  cl::ParseCommandLineOptions(argc, argv, kOverview);

  if (flags.rows < 0 || flags.steps < 1) {
    llvm::errs() << "genrec-run: error: "
                 << (flags.rows < 0 ? "--rows must be at least 0, but is "
                                    : "--steps must be at least 1, but is ")
                 << (flags.rows < 0 ? flags.rows : flags.steps) << "\n";
    std::exit(1);
  }
  flags.plugins.load(registry, "genrec-run");
  return flags.getOptions();
}
