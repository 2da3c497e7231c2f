//===- ToolVersion.h - what the tools answer to --version -------*- C++ -*-===//
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

namespace genrec {

/// Makes `--version` print genrec's version and the versions of what it was built with. To be called
/// before the command line is parsed. `tool` must outlive the program.
inline void printVersionAs(const char *tool) {
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &os) {
    os << tool << " (genrec " GENREC_VERSION ", " GENREC_BUILD_TYPE " build)\n"
       << "built with " GENREC_BUILT_WITH "\n";
  });
}

} // namespace genrec

#endif // GENREC_TOOLVERSION_H
