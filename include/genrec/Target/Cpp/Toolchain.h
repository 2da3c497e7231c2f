//===- Toolchain.h - the C++ compiler behind genrec-compile -----*- C++ -*-===//
//
// A build of genrec writes down how a compiled model is made into a program:
// share/genrec/toolchain.json beside the folder of its tools.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_CPP_TOOLCHAIN_H
#define GENREC_TARGET_CPP_TOOLCHAIN_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace genrec {

/// What becomes of the C++ source. A `header` is one precompiled for sources of shared objects.
enum class Product { object, shared, binary, header };

class Toolchain {
public:
  /// Reads the description in `path`. The error names the file and what is wrong with it.
  static llvm::Expected<Toolchain> load(llvm::StringRef path);
  /// The description that belongs to the tool at `executable`.
  static std::string getDefaultPath(llvm::StringRef executable);

  /// The C++ compiler: a path, or a name to be found on PATH.
  std::string compiler;
  std::string nvcc;

  /// Replaces what -march says.
  void setMarch(llvm::StringRef march);
  /// Replaces the optimisation level.
  void setOptimization(llvm::StringRef flag);
  /// Shared objects start with a header precompiled with the same flags.
  void setPrecompiledHeader(llvm::StringRef path) { precompiledHeader = path.str(); }

  /// Makes `output` from the C++ source `source`. The error names the compiler that is missing, or
  /// carries what it said: that is a defect of genrec, whose code it is.
  llvm::Error make(Product product, llvm::StringRef source, llvm::StringRef output,
                   bool isVerbose) const;

  /// Hands over all that a product follows from but its source: flags and names as text, files
  /// (the compiler, libraries), folders of headers.
  void visitInputs(llvm::function_ref<void(llvm::StringRef)> text,
                   llvm::function_ref<void(llvm::StringRef)> file,
                   llvm::function_ref<void(llvm::StringRef)> folder) const;

private:
  using Strings = llvm::SmallVector<std::string>;
  llvm::Expected<std::string> findCompiler() const;

  Strings compile, include, link, libraries, rpath;
  std::string precompiledHeader;
};

} // namespace genrec

#endif // GENREC_TARGET_CPP_TOOLCHAIN_H
