//===- CheckCompiled.h - compares binaries with the interpreter -*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKCOMPILED_H
#define GENREC_FUZZ_CHECKCOMPILED_H

#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Fuzz/CheckPasses.h"
#include "genrec/Fuzz/RoundingBound.h"
#include "genrec/Pipelines/Pipelines.h"
#include "genrec/Target/Cpp/Toolchain.h"

#include <map>
#include <memory>

namespace genrec::fuzz {

struct CompiledOptions {
  const Target *target = &Target::get(TargetKind::cpu); ///< whose units can be shared objects
  std::string toolchain;                                ///< path of the C++ toolchain's description
  std::string driver; ///< path of model-driver, which runs a shared object on batches in JSON
  std::string folder; ///< an existing folder for temporary files, which the check removes
  int64_t batches = 2;
  int64_t threads = 2; ///< that the compiled model uses
  /// Ranks that a binary runs on, threads of one process, with as many portions or a few more; 0:
  /// one process without portions. A model whose steps cannot be cut so is run with fewer of both.
  int64_t ranks = 0;
  /// mpirun, which starts the ranks as processes; empty: threads of one process. The run on another
  /// number of ranks is on threads always.
  std::string launcher;
  /// Levels of the option `opt` to compile at.
  llvm::ArrayRef<unsigned> levels = CheckOptions::defaultLevels;
  /// Called after every pass for the models that are compiled; may change them.
  PipelineHook hook;
};

/// Compares binaries with the interpreter. Models of even seeds are compiled with the flags of a
/// release, models of odd seeds with -O1, which is faster.
class CompiledChecker {
public:
  /// Fails if the toolchain cannot be used.
  static llvm::Expected<std::unique_ptr<CompiledChecker>> create(const CompiledOptions &options);
  CompiledChecker(const CompiledOptions &options, const Toolchain &toolchain);
  ~CompiledChecker();

  /// Compiles a copy of `module` at every level, runs evaluation, prediction and `batches` training
  /// steps on random batches, and compares losses, metrics, outputs, parameters and table rows with
  /// the interpreter in double: with `ranks`, on as many ranks and portions. A run of the same
  /// portions on another number of ranks must give the same bits. Returns the first difference and
  /// its level, or nothing if all agree; `widths` then counts the bounds of the compared values.
  std::optional<std::string> check(mlir::ModuleOp module, uint64_t seed,
                                   BoundWidths *widths = nullptr);

  /// Whether all that `module` calls has a form for the target. True for what a pass refuses for
  /// any other reason, which `check` tells.
  bool hasForm(mlir::ModuleOp module);
  /// What models that had no form lacked, and how many of them lacked it.
  std::map<std::string, int64_t> missingForms;

  /// Binaries that ran on several ranks, and those whose bits were compared between two numbers of
  /// them.
  int64_t ranked = 0, repeated = 0;

  /// How much of the allowed differences was used so far.
  const Margin &getMargin() const { return margin; }

  struct Run;

private:
  struct Binary;
  std::string precompile(Toolchain &flags, llvm::StringRef stem);
  void compileAll(mlir::ModuleOp module, std::vector<Binary> &binaries, Toolchain flags);
  llvm::Expected<RoundedObservations>
  interpret(ModelOp model, llvm::ArrayRef<interpreter::Batch> batches, uint64_t seed) const;
  std::string judge(const Binary &binary, const RoundedObservations &expected,
                    llvm::StringRef batches, llvm::ArrayRef<Run> runs, uint64_t seed);

  CompiledOptions options;
  Toolchain quick, full;
  llvm::SmallVector<std::string> files; ///< precompiled headers
  Margin margin;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKCOMPILED_H
