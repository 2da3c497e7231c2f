//===- Toolchain.h - the C++ compiler behind genrec-compile -----*- C++ -*-===//
//
// The build of genrec writes share/genrec/toolchain.json, next to the folder of its tools. The file
// says how to compile and link a compiled model.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_CPP_TOOLCHAIN_H
#define GENREC_TARGET_CPP_TOOLCHAIN_H

#include "genrec/Dialect/GenRec/Step/Target.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace genrec {

/// What to make of a C++ source. `header` is a precompiled header for shared objects. A shared
/// object of a unit for the emulator needs a program with the emulated device.
enum class Product { object, shared, binary, header };

class Toolchain {
public:
  /// Reads the description in `path`. The error names the file and the problem.
  static llvm::Expected<Toolchain> load(llvm::StringRef path);
  /// The path of the description for the tool at `executable`.
  static std::string getDefaultPath(llvm::StringRef executable);

  /// The C++ compiler: a path, or a name that is looked up on PATH.
  const std::string &getCompiler() const { return compiler; }
  std::string nvcc;

  /// Sources are CUDA C++ from now on, compiled by nvcc or for the emulator. An error where the
  /// build of genrec found no nvcc, or has no emulator.
  llvm::Error setUnitCompiler(UnitCompiler compiler);
  /// Another C++ compiler, which then has no precompiled header of the description.
  void setCompiler(llvm::StringRef name);
  /// Replaces the argument of -march.
  void setMarch(llvm::StringRef march);
  /// Replaces the optimisation level.
  void setOptimization(llvm::StringRef flag);
  /// That of units that the emulator runs.
  void setEmulatorOptimization(llvm::StringRef flag);
  /// Adds a folder of headers.
  void addIncludeFolder(llvm::StringRef folder) { include.push_back(folder.str()); }
  /// A precompiled header for shared objects, made with the same flags.
  void setPrecompiledHeader(llvm::StringRef path) { precompiledHeader = path.str(); }

  /// Compiles `source` to `output`. The error names a missing compiler, or carries the compiler's
  /// messages: these mean a defect of genrec, which generated the code.
  llvm::Error make(Product product, llvm::StringRef source, llvm::StringRef output,
                   bool isVerbose) const;

  /// Visits everything besides the source that a product depends on: flags and names as text, files
  /// (compiler, libraries), folders of headers.
  void visitInputs(llvm::function_ref<void(llvm::StringRef)> text,
                   llvm::function_ref<void(llvm::StringRef)> file,
                   llvm::function_ref<void(llvm::StringRef)> folder) const;

private:
  using Strings = llvm::SmallVector<std::string>;
  /// How a unit of CUDA C++ is compiled, and the libraries that it needs besides.
  struct CudaUnit {
    std::string compiler; ///< empty: the C++ compiler
    Strings compile, include, libraries;
    std::string precompiled; ///< as that of the toolchain
  };
  llvm::Expected<std::string> findCompiler() const;
  static llvm::Error readUnit(llvm::StringRef path, const llvm::json::Object &units,
                              llvm::StringRef name, CudaUnit &unit);
  /// Compiles a unit of CUDA C++ to an object, or a header of such units.
  llvm::Error compileUnit(Product product, llvm::StringRef source, llvm::StringRef output,
                          bool isVerbose) const;

  std::string compiler;
  Strings compile, include, link, libraries, rpath;
  /// A precompiled header of the description, for objects and binaries: for just these flags, which
  /// is why whatever changes one drops it. Empty: none.
  std::string precompiled;
  /// How sources are compiled that are CUDA C++; null for C++ for the host.
  const CudaUnit *getUnit() const;

  CudaUnit nvccUnit, emulatorUnit;
  UnitCompiler unitCompiler = UnitCompiler::host;
  std::string precompiledHeader;
};

} // namespace genrec

#endif // GENREC_TARGET_CPP_TOOLCHAIN_H
