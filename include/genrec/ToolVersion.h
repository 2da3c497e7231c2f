//===- ToolVersion.h - what tools answer to --version and --help -*- C++ -*-===//
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

// Where the program begins and ends in memory; the linker defines them.
extern "C" const char __executable_start, _end;

namespace genrec {

/// Makes `--version` print genrec's version and the versions of what it was built with. To be
/// called before the command line is parsed. `tool` must outlive the program.
inline void printVersionAs(const char *tool) {
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &os) {
    os << tool << " (genrec " GENREC_VERSION ", " GENREC_BUILD_TYPE " build)\n"
       << "built with " GENREC_BUILT_WITH "\n";
  });
}

/// Leaves what libMLIR and libLLVM register for their own code generators to --help-hidden, so that
/// --help shows what the tool is for: options that lie outside of the program itself, but those of
/// llvm::cl. To be called before the command line is parsed; what is registered later stays.
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
