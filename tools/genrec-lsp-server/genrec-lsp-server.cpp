//===- genrec-lsp-server.cpp - models in MLIR in an editor ----------------===//
//
// A language server for .mlir files that hold genrec models: errors of the parser and the
// verifiers as one types, definitions and uses of values and symbols, documentation on hover.
//
//===----------------------------------------------------------------------===//

#include "genrec/InitAllDialects.h"
#include "genrec/Plugins/PluginOption.h"
#include "genrec/ToolVersion.h"

#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

static genrec::PluginOption plugins;

int main(int argc, char **argv) {
  genrec::printVersionAs("genrec-lsp-server");
  genrec::hideLibraryOptions();
  mlir::DialectRegistry registry;
  genrec::registerAllDialects(registry);
  // Called for each file, after the command line was parsed.
  auto withPlugins = [&](const auto &) -> mlir::DialectRegistry & {
    plugins.load(registry, "genrec-lsp-server");
    return registry;
  };
  return failed(mlir::MlirLspServerMain(argc, argv, withPlugins));
}
