//===- genrec-opt.cpp - runs passes on a model ----------------------------===//
//
// Reads MLIR, runs the passes and pipelines named on the command line, writes MLIR: what tests of
// passes use, and what shows a pass at work.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/VerifyEach.h"
#include "genrec/InitAllDialects.h"
#include "genrec/InitAllPasses.h"
#include "genrec/Model/Model.h"
#include "genrec/Plugins/PluginOption.h"
#include "genrec/ToolVersion.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::opt<bool>
    verifyEach("genrec-verify-each",
               llvm::cl::desc("Compare the model after every pass with the model before the first, "
                              "by the interpreter on random "
                              "and adversarial batches (up to form-row-kernels)"));

static genrec::PluginOption plugins;

/// What is wrong with a file that is not MLIR, with a remedy; empty where nothing is.
static std::string describeForeign(StringRef data, StringRef input) {
  if (genrec::isModelFile(data))
    return (input + ": error: is a model file, not MLIR\n  help: genrec-translate --import-model " +
            input + " | genrec-opt")
        .str();
  std::optional<genrec::ForeignFile> foreign = genrec::findForeignFile(data, input);
  if (!foreign)
    return "";
  return (input + ": error: not a model, but " + foreign->kind + "\n  help: " + foreign->help)
      .str();
}

/// Runs what the command line says on the file; with --genrec-verify-each watched by the
/// interpreter.
static LogicalResult runPasses(StringRef input, StringRef output, DialectRegistry &registry) {
  std::string problem;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &problem);
  if (file)
    problem = describeForeign(file->getBuffer(), input);
  std::unique_ptr<llvm::ToolOutputFile> out =
      problem.empty() ? openOutputFile(output, &problem) : nullptr;
  if (!out) {
    llvm::errs() << problem << "\n";
    return failure();
  }
  MlirOptMainConfig plain = MlirOptMainConfig::createFromCLOptions(), watched = plain;
  bool hasFailed = false;
  watched.setPassPipelineSetupFn([&](PassManager &pm) {
    if (verifyEach)
      pm.addInstrumentation(std::make_unique<genrec::fuzz::VerifyEach>([&] { hasFailed = true; }));
    return plain.setupPassPipeline(pm);
  });
  if (failed(MlirOptMain(out->os(), std::move(file), registry, watched)) || hasFailed)
    return failure();
  out->keep();
  return success();
}

int main(int argc, char **argv) {
  genrec::printVersionAs("genrec-opt");
  genrec::hideLibraryOptions();
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  genrec::registerAllDialects(registry);
  genrec::registerAllPasses();
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv,
      "runs genrec's passes on a model in MLIR\n\n"
      "  genrec-opt model.mlir                              parses, verifies, prints\n"
      "  genrec-opt model.mlir --genrec-graph-pipeline      what the compiler makes of it, as row "
      "kernels\n"
      "  genrec-opt model.mlir "
      "--pass-pipeline='builtin.module(genrec.model(genrec-infer-domains))'\n"
      "                                                     one pass\n"
      "  genrec-translate --import-model m.genrec | genrec-opt --genrec-graph-pipeline\n"
      "                                                     a model file\n\n"
      "  genrec-opt model.mlir --genrec-graph-pipeline --genrec-verify-each\n"
      "                                                     checked by the interpreter after every "
      "pass\n\n"
      "docs/reference/passes.md describes the passes.\n",
      registry);
  plugins.load(registry, "genrec-opt");
  return asMainReturnCode(runPasses(input, output, registry));
}
