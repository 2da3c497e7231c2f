//===- genrec-run.cpp - interprets a model --------------------------------===//
//
// Runs a model on a batch with the reference interpreter and prints what comes
// out, or compares its gradients with central differences.
//
//===----------------------------------------------------------------------===//

#include "Loader.h"
#include "Options.h"
#include "Printer.h"

#include "genrec/InitAllDialects.h"
#include "genrec/InitAllPasses.h"
#include "genrec/Model/SourceDiagnostics.h"
#include "genrec/ToolVersion.h"

#include "mlir/Support/ToolUtilities.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

/// The batch of training step `step`, counted from 0.
static llvm::Expected<Batch> makeBatch(ProgramOp program, const run::Options &options,
                                       int64_t step) {
  if (!options.batches.empty())
    return run::loadBatch(program, options.batches[step % options.batches.size()]);
  RandomBatchOptions random;
  random.rows = options.rows;
  random.firstPosition = step * options.rows;
  return randomBatch(program, options.randomSeed + step, random);
}

/// Runs the steps asked for. Errors go to `context` as diagnostics.
static llvm::Error runSteps(ProgramOp program, const run::Options &options, raw_ostream &os) {
  State state(getModel(program), options.seed);
  for (int64_t step = 0; step < options.steps; ++step) {
    llvm::Expected<Batch> batch = makeBatch(program, options, step);
    if (!batch)
      return batch.takeError();
    if (options.printBatch)
      os << llvm::formatv("{0:2}", batchToJson(program, *batch)) << '\n';
    if (options.checkGradients) {
      llvm::Expected<GradientCheck> check = checkGradients(program, *batch, state, options.check);
      if (!check)
        return check.takeError();
      if (!run::printCheck(*check, options.allowZero, os))
        return llvm::createStringError("the gradients of step " + Twine(step + 1) +
                                       " are not right");
    }
    llvm::Expected<Results> results = runProgram(program, *batch, state, options.mode, options.run);
    if (!results)
      return results.takeError();
    llvm::json::Object printed = run::toJson(program, *results, state, options.sections);
    if (options.json)
      os << llvm::json::Value(std::move(printed)) << '\n';
    else
      run::printText(printed, os);
  }
  return llvm::Error::success();
}

/// Interprets the model in `buffer`, one of those that --split-input-file cuts.
static LogicalResult runBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer,
                               const run::Options &options, DialectRegistry &registry,
                               raw_ostream &os) {
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  SourceDiagnosticHandler diagnostics(&context, llvm::errs());
  OwningOpRef<ModuleOp> module = run::loadModule(std::move(buffer), &context);
  if (!module || failed(run::runPipeline(*module, options.pipeline)))
    return failure();
  ProgramMode mode = static_cast<ProgramMode>(static_cast<unsigned>(options.mode) + 1);
  ProgramOp program = run::findProgram(*module, mode);
  if (program && options.checkGradients && program.getMode() == ProgramMode::all) {
    if (failed(run::differentiateModel(*module)))
      return failure();
    program = run::findProgram(*module, mode);
  }
  if (!program)
    return failure();
  llvm::Error error = runSteps(program, options, os);
  if (!error)
    return success();
  emitErrors(std::move(error), program.getLoc());
  return failure();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  printVersionAs("genrec-run");
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllPasses();
  run::Options options = run::parseCommandLine(argc, argv, registry);
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.input);
  if (!buffer) {
    llvm::errs() << "genrec-run: cannot open '" << options.input
                 << "': " << buffer.getError().message() << '\n';
    return EXIT_FAILURE;
  }
  auto process = [&](std::unique_ptr<llvm::MemoryBuffer> chunk, raw_ostream &os) {
    return runBuffer(std::move(chunk), options, registry, os);
  };
  StringRef marker = options.splitInput ? kDefaultSplitMarker : StringRef();
  return failed(splitAndProcessBuffer(std::move(*buffer), process, llvm::outs(), marker, marker));
}
