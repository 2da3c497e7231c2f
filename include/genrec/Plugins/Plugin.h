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

#include "genrec/Plugins/HeadersHash.h"
#include "genrec/Version.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/Config/llvm-config.h"

/// A plugin uses classes of genrec and of MLIR, so that their headers must be those it was built
/// with. The hash is of genrec's headers and TableGen files (cmake/GenRecPlugin.cmake).
#define GENREC_PLUGIN_VERSION                                                                      \
  "genrec " GENREC_VERSION ", headers " GENREC_HEADERS_HASH ", LLVM " LLVM_VERSION_STRING         \
  ", " __VERSION__

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
