//===- genrec-compile.cpp - from a model to a binary ----------------------===//
//
// Reads a model file or MLIR, compiles it, and writes MLIR, C++, an object, a shared object or
// a program.
//
//===----------------------------------------------------------------------===//

#include "Compiler.h"

#include "genrec/InitAllDialects.h"
#include "genrec/Model/SourceDiagnostics.h"
#include "genrec/ToolVersion.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"

using namespace genrec;
namespace cl = llvm::cl;

static cl::OptionCategory category("genrec-compile options");

static cl::opt<std::string> input(cl::Positional, cl::Required, cl::cat(category),
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
static cl::opt<std::string> target("target", cl::cat(category), cl::init("cpu"),
                                   cl::desc("what to compile for: cpu"));
static cl::opt<std::string> march("march", cl::cat(category), cl::init("native"),
                                  cl::desc("instruction set, as the C++ compiler names it"));
static cl::opt<std::string> cxx("cxx", cl::cat(category), cl::value_desc("compiler"),
                                cl::desc("the C++ compiler, instead of the one of the build"));
static cl::opt<std::string> toolchain("toolchain", cl::cat(category), cl::value_desc("file"),
                                      cl::desc("description of the toolchain, instead of the one "
                                               "beside the tools"));
static cl::opt<std::string> dumps("dump-after-each", cl::cat(category), cl::value_desc("folder"),
                                  cl::desc("write the IR after each pass into files there"));
static cl::opt<bool>
    explains("explain", cl::cat(category),
             cl::desc("print what became of the model and why, instead of a product: tables, "
                      "kernels, values kept, memory"));
static cl::opt<int64_t> batch("batch", cl::cat(category), cl::init(128),
                              cl::desc("root rows of a step, for --explain"));
static cl::opt<int64_t> longest("longest", cl::cat(category), cl::init(200),
                                cl::desc("entries of the longest list, for --explain"));
static cl::opt<bool> keepsSource("save-temps", cl::cat(category),
                                 cl::desc("keep the C++ source, beside the output"));
static cl::opt<bool> isVerbose("v", cl::cat(category), cl::desc("show commands and times"));

/// A symbol's address tells where the program lies.
static int anchor;

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

  CompilerOptions options;
  options.input = input;
  options.output = output;
  options.emission = emission;
  options.level = level;
  options.target = target;
  options.march = march;
  options.compiler = cxx;
  options.toolchain = toolchain;
  options.dumpFolder = dumps;
  options.explains = explains;
  options.explain = {batch, longest};
  options.keepsSource = keepsSource;
  options.isVerbose = isVerbose;
  options.executable = llvm::sys::fs::getMainExecutable(argv[0], &anchor);

  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry);
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
