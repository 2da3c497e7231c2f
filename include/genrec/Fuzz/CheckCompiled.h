//===- CheckCompiled.h - the interpreter judges binaries --------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKCOMPILED_H
#define GENREC_FUZZ_CHECKCOMPILED_H

#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/Fuzz/RoundingBound.h"
#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/Toolchain.h"

#include <memory>

namespace genrec::fuzz {

struct CompiledOptions {
  std::string toolchain; ///< description of the C++ toolchain
  std::string driver;    ///< model-driver, which runs a shared object on batches in JSON
  std::string folder;    ///< existing folder for what is made; emptied of it again
  int64_t batches = 2;
  int64_t threads = 2; ///< of the compiled model
  /// Levels of `form-row-kernels` to compile.
  llvm::ArrayRef<unsigned> levels = CheckOptions::defaultLevels;
  /// Sees the models that are compiled after every pass, and may damage them.
  PipelineHook hook;
};

/// Compares binaries with the interpreter. Models of even seeds are compiled with the flags that
/// users get, of odd ones with -O1, which takes less time.
class CompiledChecker {
public:
  /// The error says what is wrong with the toolchain.
  static llvm::Expected<std::unique_ptr<CompiledChecker>> create(const CompiledOptions &options);
  CompiledChecker(const CompiledOptions &options, const Toolchain &toolchain);
  ~CompiledChecker();

  /// Compiles a copy of `module` at every level, runs evaluation, prediction and `batches` training
  /// steps on random batches, and compares losses, metrics, outputs, parameters and table rows with
  /// the interpreter in double. Returns what is wrong, with the level at which it is; nothing when
  /// all agree, and then `widths` counts their bounds.
  std::optional<std::string> check(mlir::ModuleOp module, uint64_t seed,
                                   BoundWidths *widths = nullptr);

  /// How close binaries have come to what they are allowed.
  const Margin &getMargin() const { return margin; }

  struct Run;

private:
  struct Binary;
  std::string precompile(Toolchain &flags, llvm::StringRef stem);
  void compileAll(mlir::ModuleOp module, std::vector<Binary> &binaries, const Toolchain &flags);
  std::string judge(const Binary &binary, const RoundedObservations &expected,
                    llvm::StringRef batches, llvm::ArrayRef<Run> runs, uint64_t seed);

  CompiledOptions options;
  Toolchain quick, full;
  llvm::SmallVector<std::string> files; ///< precompiled headers
  Margin margin;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKCOMPILED_H
