//===- RewriteCounter.cpp - how often each rewrite was applied ------------===//

#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>

using namespace mlir;
using namespace genrec;

static std::atomic<RewriteCounter *> counterInForce = nullptr;

RewriteCounter::RewriteCounter() {
  [[maybe_unused]] RewriteCounter *before = counterInForce.exchange(this);
  assert(!before && "one rewrite counter at a time");
}

RewriteCounter::~RewriteCounter() { counterInForce = nullptr; }

RewriterBase::Listener *RewriteCounter::getListener() { return counterInForce; }

void RewriteCounter::count(StringRef rewrite, uint64_t times) {
  if (RewriteCounter *counter = counterInForce)
    counter->add(rewrite, times);
}

void RewriteCounter::add(StringRef rewrite, uint64_t times) {
  assert(llvm::is_contained(getRewriteNames(), rewrite) &&
         "a rewrite is listed in getRewriteNames");
  std::lock_guard lock(mutex);
  counts[rewrite.str()] += times;
}

std::map<std::string, uint64_t> RewriteCounter::getCounts() const {
  std::lock_guard lock(mutex);
  return counts;
}

std::map<std::string, uint64_t> RewriteCounter::getStatistics() const {
  std::lock_guard lock(mutex);
  return statistics;
}

void genrec::countStatistic(Pass &pass, Pass::Statistic &statistic,
                            StringRef name, uint64_t times) {
  statistic += times;
  RewriteCounter *counter = counterInForce;
  if (!counter)
    return;
  std::lock_guard lock(counter->mutex);
  counter->statistics[(pass.getArgument() + " " + name).str()] += times;
}

// Patterns of other dialects (canonicalizations) have names of other forms and are not counted.
void RewriteCounter::notifyPatternEnd(const Pattern &pattern,
                                      LogicalResult status) {
  if (succeeded(status) &&
      llvm::is_contained(getRewriteNames(), pattern.getDebugName()))
    add(pattern.getDebugName(), 1);
}

ArrayRef<StringRef> genrec::getRewriteNames() {
  static const StringRef names[] = {
      "collect", "collect-rows", "decompose-composite",
      "exact-sum", "expand-lookup", "expand-parameter-update",
      "expand-table-update", "factor-lookup", "fold-activation",
      "fold-residual", "form-interaction", "fuse-columns", "fuse-row-kernels",
      "gradient-of-parent", "group-lookups", "hoist-pool",
      "join-padded-columns", "merge-tables", "multiply-negatives", "pick-rows",
      "pool-weight-gradient",
      "prune-column", "recompute-row-op", "round-factors-of-rows", "round-product",
      "share-column-program",
      "single-concat", "sink-fanout", "slice-of-concat",
      "split-classes", "split-linear", "sum-of-negated", "whole-slice",
      "wrap-row-kernel",
  };
  return names;
}

//===----------------------------------------------------------------------===//
// The flags
//===----------------------------------------------------------------------===//

namespace {
/// A counter that prints its counts when the process exits.
struct PrintedCounter {
  RewriteCounter counter;
  bool printsRewrites = false, printsStatistics = false;

  ~PrintedCounter() {
    if (printsRewrites) {
      std::map<std::string, uint64_t> counts = counter.getCounts();
      llvm::errs() << "rewrites applied:\n";
      for (StringRef name : getRewriteNames())
        llvm::errs() << "  " << name << ": " << counts[name.str()] << "\n";
    }
    if (printsStatistics) {
      llvm::errs() << "statistics of passes:\n";
      for (const auto &[name, value] : counter.getStatistics())
        llvm::errs() << "  " << name << ": " << value << "\n";
    }
  }

  static PrintedCounter &get() {
    static PrintedCounter printed;
    return printed;
  }
};
} // namespace

void genrec::registerRewriteCounterOptions() {
  static llvm::cl::opt<bool> rewrites(
      "genrec-count-rewrites",
      llvm::cl::desc("Print how often each of genrec's rewrites was applied"),
      llvm::cl::callback(
          [](const bool &isOn) { PrintedCounter::get().printsRewrites = isOn; }));
  static llvm::cl::opt<bool> statistics(
      "genrec-pass-statistics",
      llvm::cl::desc("Print the statistics of genrec's passes"),
      llvm::cl::callback([](const bool &isOn) {
        PrintedCounter::get().printsStatistics = isOn;
      }));
}
