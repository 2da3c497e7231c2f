//===- RewriteCounter.h - how often each rewrite was applied ----*- C++ -*-===//
//
// Every rewrite pattern of genrec has a debug name, and what is rewritten
// without a pattern (fusions) reports under a name too. A counter that is in
// force adds up the applications, so that a fuzzer can tell which rewrites its
// models exercised. It also adds up the statistics of passes: release builds of
// LLVM leave those of `Pass::Statistic` out.
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

/// Counts applications of rewrites by name. One counter at a time is in force
/// in a process; it may be used from several threads.
class RewriteCounter : public mlir::RewriterBase::Listener {
public:
  /// Puts the counter in force until it is destroyed.
  RewriteCounter();
  ~RewriteCounter() override;
  RewriteCounter(const RewriteCounter &) = delete;
  RewriteCounter &operator=(const RewriteCounter &) = delete;

  /// The counter in force as a listener for a rewrite driver; null when there
  /// is none.
  static mlir::RewriterBase::Listener *getListener();
  /// Counts `times` applications of `rewrite`, if a counter is in force.
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

/// Adds `times` to a statistic of `pass`, and to that of the counter in force
/// under the name that the pass declares.
void countStatistic(mlir::Pass &pass, mlir::Pass::Statistic &statistic,
                    llvm::StringRef name, uint64_t times);

/// The names of every rewrite that genrec's passes may report, sorted.
llvm::ArrayRef<llvm::StringRef> getRewriteNames();

/// Adds the command line flags --genrec-count-rewrites and
/// --genrec-pass-statistics, which print the counts to stderr when the tool ends.
void registerRewriteCounterOptions();

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_TRANSFORMS_REWRITECOUNTER_H
