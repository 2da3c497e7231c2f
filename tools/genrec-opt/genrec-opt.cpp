//===- genrec-opt.cpp - runs passes on a model ----------------------------===//
//
// Reads MLIR, runs the passes and pipelines named on the command line, writes MLIR: what tests of
// passes use, and what shows a pass at work.
//
//===----------------------------------------------------------------------===//

#include "genrec/InitAllDialects.h"
#include "genrec/InitAllPasses.h"
#include "genrec/ToolVersion.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  genrec::printVersionAs("genrec-opt");
  genrec::hideLibraryOptions();
  mlir::DialectRegistry registry;
  genrec::registerAllDialects(registry);
  genrec::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
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
      "docs/reference/passes.md describes the passes.\n",
      registry));
}
