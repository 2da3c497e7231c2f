//===- genrec-translate.cpp - between MLIR and what is outside ------------===//
//
// Model files to MLIR and back, MLIR to C++.
//
//===----------------------------------------------------------------------===//

#include "genrec/InitAllDialects.h"
#include "genrec/InitAllTranslations.h"
#include "genrec/Plugins/PluginOption.h"
#include "genrec/ToolVersion.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

static genrec::PluginOption plugins;

int main(int argc, char **argv) {
  genrec::printVersionAs("genrec-translate");
  genrec::hideLibraryOptions();
  genrec::registerAllTranslations([](mlir::DialectRegistry &registry) {
    genrec::registerAllDialects(registry);
    plugins.load(registry, "genrec-translate");
  });
  return failed(mlir::mlirTranslateMain(
      argc, argv,
      "translates between model files, MLIR and C++\n\n"
      "  genrec-translate --import-model model.genrec            a model file as MLIR\n"
      "  genrec-translate --import-model --mlir-print-debuginfo model.genrec\n"
      "                                                          with the user's source locations\n"
      "  genrec-translate --export-model model.mlir -o m.genrec  back into a model file\n"));
}
