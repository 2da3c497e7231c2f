//===- Translations.cpp - --import-model and --export-model ---------------===//

#include "genrec/Model/Model.h"
#include "genrec/Model/SourceDiagnostics.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace genrec;

static OwningOpRef<Operation *> importFile(llvm::SourceMgr &sources, MLIRContext *context) {
  SourceDiagnosticHandler diagnostics(context, llvm::errs());
  context->loadAllAvailableDialects(); // an op is found by its name
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  OwningOpRef<ModuleOp> module = importModel(buffer->getBufferStart(), buffer->getBufferSize(),
                                             buffer->getBufferIdentifier(), context);
  return OwningOpRef<Operation *>(module ? module.release().getOperation() : nullptr);
}

static LogicalResult exportFile(Operation *op, llvm::raw_ostream &os) {
  SmallVector<ModelOp> models;
  op->walk<WalkOrder::PreOrder>([&](ModelOp model) {
    models.push_back(model);
    return WalkResult::skip();
  });
  if (models.size() != 1)
    return op->emitError() << "a model file holds one model, the module has " << models.size();
  return exportModel(models.front(), os);
}

void genrec::registerModelTranslations(std::function<void(DialectRegistry &)> registerDialects) {
  TranslateToMLIRRegistration import(
      "import-model", "reads a model file (.genrec) and prints it as MLIR", importFile, registerDialects);
  TranslateFromMLIRRegistration exportRegistration(
      "export-model", "writes a model in MLIR as a model file (.genrec)", exportFile, registerDialects);
}
