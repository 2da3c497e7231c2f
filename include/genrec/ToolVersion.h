//===- ToolVersion.h - --version and --help of the tools --------*- C++ -*-===//
//
// Header-only, for tools that parse their command line with llvm::cl. The runtime prints the same
// macros of genrec/Version.h on its own.
//
//===----------------------------------------------------------------------===//
#ifndef GENREC_TOOLVERSION_H
#define GENREC_TOOLVERSION_H

#include "genrec/Version.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

// The start and end of the program in memory, defined by the linker.
extern "C" const char __executable_start, _end;

namespace genrec {

/// Makes `--version` print the versions of genrec and of the libraries it was built with. Call it
/// before parsing the command line. `tool` must outlive the program.
inline void printVersionAs(const char *tool) {
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &os) {
    os << tool << " (genrec " GENREC_VERSION ", " GENREC_BUILD_TYPE " build)\n"
       << "built with " GENREC_BUILT_WITH "\n";
  });
}

/// Hides options registered by libMLIR and libLLVM from --help, so that it lists the tool's own;
/// --help-hidden still shows them. An option is hidden if it lies outside of the program's own
/// memory, unless llvm::cl itself defines it. Call it before parsing the command line and after
/// registering what must be hidden.
inline void hideLibraryOptions() {
  auto isOurs = [](const llvm::cl::Option *option) {
    const char *place = reinterpret_cast<const char *>(option);
    return place >= &__executable_start && place < &_end;
  };
  for (auto &[name, option] : llvm::cl::getRegisteredOptions()) {
    bool isGeneric = llvm::any_of(option->Categories, [](llvm::cl::OptionCategory *category) {
      return category->getName() == "Generic Options";
    });
    if (!isGeneric && !isOurs(option))
      option->setHiddenFlag(llvm::cl::Hidden);
  }
}

} // namespace genrec

#endif // GENREC_TOOLVERSION_H
