//===- loaded_model.cpp - A compiled model in a shared library ------------===//

#include "genrec_rt/session.h"

#include "model_check.h"

#include <dlfcn.h>
#include <filesystem>

namespace genrec::rt {

static const char *kHelp = "name the library that is made of the model file: genrec-compile "
                           "model.genrec --emit=shared -o model.so";

LoadedModel::LoadedModel(const std::string &path) {
  // A name without a slash would be looked for where the system has its libraries.
  handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(path + ": cannot be loaded as a compiled model: " + dlerror(), kHelp);
  auto entry = reinterpret_cast<decltype(&genrec_model)>(dlsym(handle, "genrec_model"));
  if (!entry) {
    dlclose(handle);
    throw Error(path + ": holds no compiled model (no symbol genrec_model)", kHelp);
  }
  description = entry();
  checkModel(*description);
}

LoadedModel::~LoadedModel() {
  if (handle)
    dlclose(handle);
}

} // namespace genrec::rt
