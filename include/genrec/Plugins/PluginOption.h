//===- PluginOption.h - the option --plugin of tools ------------*- C++ -*-===//

#ifndef GENREC_PLUGINS_PLUGINOPTION_H
#define GENREC_PLUGINS_PLUGINOPTION_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace genrec {

/// Option `--plugin=<file.so>`, as often as there are plugins. A tool has one, made before the
/// command line is parsed.
class PluginOption {
public:
  explicit PluginOption(llvm::cl::OptionCategory &category = llvm::cl::getGeneralCategory());

  /// Adds the plugins' dialects to `registry`, after the command line was parsed and before a context
  /// is made. The first call loads the plugins. Where one cannot be loaded, `tool` says which and
  /// why, and ends.
  void load(mlir::DialectRegistry &registry, llvm::StringRef tool);
  /// Loads the plugins' dialects into a context before anything with their ops is read.
  void loadDialects(mlir::MLIRContext &context) const;
  std::vector<std::string> getFiles() const { return {files.begin(), files.end()}; }

private:
  llvm::Error loadFile(const std::string &file, const mlir::DialectRegistry &registry);

  llvm::cl::list<std::string> files;
  bool isLoaded = false;
  std::vector<mlir::DialectPlugin> loaded;
  std::vector<std::string> dialects;
};

} // namespace genrec

#endif // GENREC_PLUGINS_PLUGINOPTION_H
