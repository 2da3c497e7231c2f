//===- Plugin.h - what a plugin says of itself ------------------*- C++ -*-===//
//
// A plugin is a shared object with ops of its own, which the tools load with --plugin. It is one of
// MLIR's dialect plugins: its entry point registers dialects, and what the compiler needs to know
// of their ops the dialects' interfaces say. examples/own_op is one; docs/adding-an-op.md walks
// through it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_PLUGINS_PLUGIN_H
#define GENREC_PLUGINS_PLUGIN_H

#include "genrec/Version.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"

/// A plugin uses classes of genrec and of MLIR, so that both must be those it was built with.
#define GENREC_PLUGIN_VERSION "genrec " GENREC_VERSION ", " GENREC_BUILT_WITH

namespace genrec {

/// What a plugin's entry point returns:
///
///     extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
///       return genrec::describePlugin<OwnDialect>("own");
///     }
template <typename... DialectT> mlir::DialectPluginLibraryInfo describePlugin(const char *name) {
  return {MLIR_PLUGIN_API_VERSION, name, GENREC_PLUGIN_VERSION,
          [](mlir::DialectRegistry *registry) { registry->insert<DialectT...>(); }};
}

} // namespace genrec

#endif // GENREC_PLUGINS_PLUGIN_H
