//===- RewriteCounter.h - how often each rewrite was applied ----*- C++ -*-===//
//
// Every rewrite pattern of genrec has a debug name; rewrites without a pattern (fusions) report a
// name as well. An active counter counts how often each is applied, so that a fuzzer can tell which
// rewrites its models exercise. It also adds up the statistics of passes, as release builds of LLVM
// compile `Pass::Statistic` out.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_TRANSFORMS_REWRITECOUNTER_H
#define GENREC_DIALECT_GENREC_TRANSFORMS_REWRITECOUNTER_H

#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

#include <map>
#include <mutex>
#include <string>

namespace genrec {

/// Counts applications of rewrites by name. A process has at most one active counter; several
/// threads may use it.
class RewriteCounter : public mlir::RewriterBase::Listener {
public:
  /// Activates the counter until it is destroyed.
  RewriteCounter();
  ~RewriteCounter() override;
  RewriteCounter(const RewriteCounter &) = delete;
  RewriteCounter &operator=(const RewriteCounter &) = delete;

  /// The active counter as a listener for a rewrite driver, or null.
  static mlir::RewriterBase::Listener *getListener();
  /// Counts `times` applications of `rewrite`, if a counter is active.
  static void count(llvm::StringRef rewrite, uint64_t times = 1);

  /// The applications so far, by name.
  std::map<std::string, uint64_t> getCounts() const;
  /// The statistics so far, by "<flag of the pass> <name of the statistic>".
  std::map<std::string, uint64_t> getStatistics() const;

  void notifyPatternEnd(const mlir::Pattern &pattern,
                        llvm::LogicalResult status) override;

private:
  friend void countStatistic(mlir::Pass &, mlir::Pass::Statistic &,
                             llvm::StringRef, uint64_t);
  void add(llvm::StringRef rewrite, uint64_t times);

  mutable std::mutex mutex;
  std::map<std::string, uint64_t> counts, statistics;
};

/// Adds `times` to a statistic of `pass`, and to that of the active counter under the name that the
/// pass declares.
void countStatistic(mlir::Pass &pass, mlir::Pass::Statistic &statistic,
                    llvm::StringRef name, uint64_t times);

/// The names of all rewrites that genrec's passes may report, sorted.
llvm::ArrayRef<llvm::StringRef> getRewriteNames();

/// Registers the command line flags --genrec-count-rewrites and --genrec-pass-statistics, which
/// print the counts to stderr when the tool exits.
void registerRewriteCounterOptions();

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_TRANSFORMS_REWRITECOUNTER_H
