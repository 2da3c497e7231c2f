//===- Loader.cpp - models and batches from files -------------------------===//

#include "Loader.h"

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Model/Model.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::run;

OwningOpRef<ModuleOp> run::loadModule(std::unique_ptr<llvm::MemoryBuffer> buffer,
                                      MLIRContext *context) {
  StringRef data = buffer->getBuffer();
  if (isModelFile(data))
    return importModel(data.data(), data.size(), buffer->getBufferIdentifier(), context);
  if (failed(requireNoForeignFile(data, buffer->getBufferIdentifier(), context)))
    return nullptr;
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), SMLoc());
  return parseSourceFile<ModuleOp>(sources, context);
}

LogicalResult run::runPipeline(ModuleOp module, StringRef pipeline) {
  if (pipeline.empty())
    return success();
  std::string problem;
  llvm::raw_string_ostream os(problem);
  FailureOr<OpPassManager> parsed = parsePassPipeline(pipeline, os);
  if (failed(parsed))
    return module.emitError() << "cannot read the pipeline '" << pipeline << "': " << problem;
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  // Nested into passes over modules, it would run on modules in the module: on nothing.
  if (parsed->getOpAnchorName() != passes.getOpAnchorName())
    return module.emitError() << "the pipeline '" << pipeline
                              << "' must be one of modules: 'builtin.module(...)'";
  static_cast<OpPassManager &>(passes) = std::move(*parsed);
  return passes.run(module);
}

LogicalResult run::differentiateModel(ModuleOp module) {
  PassManager passes(module.getContext());
  OpPassManager &models = passes.nest<ModelOp>();
  models.addPass(createInferDomains());
  models.addPass(createSpecializeModes());
  models.addPass(createDecomposeBlocks());
  models.addPass(createDifferentiate());
  return passes.run(module);
}

ProgramOp run::findProgram(ModuleOp module, ProgramMode mode) {
  ProgramOp found;
  for (auto model : module.getOps<ModelOp>())
    for (auto program : model.getBody().front().getOps<ProgramOp>())
      if (program.getMode() == mode ||
          (program.getMode() == ProgramMode::all && mode != ProgramMode::items && !found))
        found = program;
  // Passes say what the vectors of items are: an imported program has none.
  if (!found)
    module.emitError() << "there is no program of mode " << stringifyProgramMode(mode)
                       << (mode == ProgramMode::items ? "; run genrec-specialize-modes first"
                                                      : " or all to run");
  return found;
}

llvm::Expected<interpreter::Batch> run::loadBatch(ProgramOp program, StringRef file) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(file, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError("cannot open '" + file + "': " + buffer.getError().message());
  llvm::Expected<llvm::json::Value> value = llvm::json::parse((*buffer)->getBuffer());
  if (!value)
    return llvm::createStringError("'" + file +
                                   "' is not JSON: " + llvm::toString(value.takeError()));
  return interpreter::batchFromJson(program, *value);
}
