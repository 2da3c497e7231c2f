//===- KernelPlanner.h - assigns row ops to row kernels ---------*- C++ -*-===//
//
// Fusion is a partition of a program's row ops. An op is a *root* if its result must be stored: it
// is an operand of a library op, of a kernel over other rows, or of a report. The *level* of an op
// increases where one kernel must store a value before another can read it. Roots of one domain,
// stage and level can share a kernel, but for roots that reduce rows differently: a kernel pools
// into one domain, and one that pools adds up no sums over all rows. For a kernel that pools has
// threads for pieces of a long list, and one that adds up all rows for chunks of them. The body of
// a kernel has the ops that its roots depend on: ops of its own level, ops of lower levels that no
// kernel has computed yet, and ops that are cheaper to recompute than to load.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELPLANNER_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELPLANNER_H

#include "KernelEmitter.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace genrec {

/// Plans the row kernels of one program.
class KernelPlanner {
public:
  /// `recompute`: recompute cheap values instead of storing them. `wideJoins`: these have kernels of
  /// their own.
  KernelPlanner(ProgramOp program, bool recompute, bool wideJoins);

  /// The kernels, each after those that it depends on. Their `ops` are in program order.
  std::vector<KernelPlan> run();

  /// A value that one kernel stores for another of the same domain and stage.
  struct Kept {
    mlir::Value value;
    std::string maker, reader, reason;
  };
  llvm::ArrayRef<Kept> getKept() const { return kept; }
  /// The number of ops that more than one kernel computes.
  unsigned getRecomputed() const { return recomputed; }
  /// The position of an op in the program before fusion.
  unsigned getPosition(mlir::Operation *op) const { return positions.lookup(op); }

private:
  /// The common properties of a kernel's ops; sorted by level.
  struct GroupKey {
    unsigned level, iteration;
    bool stores;
    /// 0: roots that any kernel can have, and the first pools; else the other reductions, then wide
    /// joins.
    unsigned part = 0;
    auto operator<=>(const GroupKey &) const = default;
  };
  using Iteration = std::pair<std::pair<mlir::Attribute, int64_t>, mlir::Attribute>;
  struct Group {
    llvm::SmallSetVector<mlir::Operation *, 8> roots, body;
    llvm::DenseSet<mlir::Value> loaded;
    llvm::DenseMap<mlir::Operation *, double> costs;
  };

  unsigned getIteration(mlir::Operation *op);
  bool flows(mlir::OpOperand &use);
  void endLongChains();
  void endWideScalars();
  void endTruncations();
  void endRoundedParts();
  void endWideJoins();
  void computeLevels();
  void collectRoots();
  void addRoot(mlir::Value value);
  void addRootOp(mlir::Operation *op);
  void separateRoots();
  void formGroup(const GroupKey &key, Group &group);
  bool isInMemory(mlir::Value value) const;
  bool mustInclude(mlir::Operation *op);
  bool shouldRecompute(mlir::Operation *op, Group &group, double &recompute);
  double getCost(mlir::Operation *op, Group &group);
  double getOperandCost(mlir::OpOperand &use, Group &group);
  void include(mlir::Operation *op, Group &group);
  void includeWithNeeds(mlir::Operation *op, Group &group,
                        std::map<unsigned, mlir::Value> &choices);
  void keep(mlir::Value value, double recomputeCost, Group &group);
  void splitGroup(const GroupKey &key, Group &group);
  void addScalarMath(llvm::SmallVectorImpl<mlir::Operation *> &ops);
  void addPlan(const GroupKey &key, llvm::ArrayRef<mlir::Operation *> ops, const Group &group);
  void noteKept();
  std::string describeKept(mlir::Value value);

  ProgramOp program;
  bool recompute, wideJoins;
  llvm::MapVector<Iteration, unsigned> iterations;
  llvm::DenseMap<mlir::Operation *, unsigned> positions, levels;
  /// Ops at the end of a chain of fusible ops of the largest allowed length: their results are
  /// stored.
  llvm::DenseSet<mlir::Operation *> ends;
  std::map<GroupKey, Group> groups;
  /// Values that a kernel stores. keepReasons: why, for those that only fused ops read.
  llvm::DenseSet<mlir::Value> materialised;
  llvm::DenseMap<mlir::Value, std::string> keepReasons;
  /// The first kernel that computes an op.
  llvm::DenseMap<mlir::Operation *, unsigned> owners;
  std::vector<KernelPlan> plans;
  std::vector<Kept> kept;
  unsigned recomputed = 0;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_KERNELPLANNER_H
