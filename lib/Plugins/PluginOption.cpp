//===- PluginOption.cpp - loads plugins -----------------------------------===//

#include "genrec/Plugins/PluginOption.h"
#include "genrec/Plugins/Plugin.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace genrec;
using llvm::Error;

PluginOption::PluginOption(llvm::cl::OptionCategory &category)
    : files("plugin", llvm::cl::cat(category), llvm::cl::value_desc("file.so"),
            llvm::cl::desc("load ops from a shared object; docs/adding-an-op.md")) {}

Error PluginOption::loadFile(const std::string &file, const DialectRegistry &registry) {
  auto fail = [&](const Twine &problem) {
    return llvm::createStringError("cannot load plugin '" + file + "': " + problem);
  };
  if (!llvm::sys::fs::is_regular_file(file))
    return fail(llvm::sys::fs::exists(file) ? "it is no file" : "there is no such file");
  // By its whole path: a name without a folder would be sought among the system's libraries.
  SmallString<128> path(file);
  llvm::sys::fs::make_absolute(path);
  llvm::Expected<DialectPlugin> plugin = DialectPlugin::load(std::string(path));
  if (!plugin)
    return fail("it is no plugin of genrec: " + llvm::toString(plugin.takeError()));
  if (plugin->getPluginVersion() != GENREC_PLUGIN_VERSION)
    return fail("it was built with '" + plugin->getPluginVersion() + "', but this is '" +
                GENREC_PLUGIN_VERSION + "'; build the plugin again");
  DialectRegistry own;
  plugin->registerDialectRegistryCallbacks(own);
  for (StringRef name : own.getDialectNames()) {
    if (llvm::is_contained(dialects, name))
      return fail("another plugin has brought the dialect '" + name + "'");
    // A plugin may also register dialects of MLIR that it needs.
    if (!registry.getDialectAllocator(name))
      dialects.push_back(name.str());
  }
  loaded.push_back(*plugin);
  return Error::success();
}

void PluginOption::load(DialectRegistry &registry, StringRef tool) {
  for (const std::string &file : isLoaded ? std::vector<std::string>() : getFiles())
    if (Error error = loadFile(file, registry)) {
      llvm::errs() << tool << ": error: " << llvm::toString(std::move(error)) << "\n";
      std::exit(1);
    }
  isLoaded = true;
  for (const DialectPlugin &plugin : loaded)
    plugin.registerDialectRegistryCallbacks(registry);
}

void PluginOption::loadDialects(MLIRContext &context) const {
  for (const std::string &name : dialects)
    context.getOrLoadDialect(name);
}
