//===- KernelPlanner.h - which row ops share a row kernel -------*- C++ -*-===//
//
// Fusion as a partition of a program's row ops. What must exist in memory (an
// operand of a library op, of a kernel over other rows, of a report) is a root.
// Every op has a level, which rises where a value must leave one kernel before
// another reads it; roots of one domain, stage and level can share a kernel. A
// kernel's body is what its roots need: ops of its own level, ops of lower
// levels that no kernel has computed yet, and ops that are cheaper to compute
// again than to keep.
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
  /// `recompute`: compute what is cheap again instead of keeping it.
  KernelPlanner(ProgramOp program, bool recompute);

  /// The kernels, each after those it depends on. Their `ops` are in the order
  /// of the program.
  std::vector<KernelPlan> run();

  /// A value that one kernel keeps for another of the same domain and stage.
  struct Kept {
    mlir::Value value;
    std::string maker, reader, reason;
  };
  llvm::ArrayRef<Kept> getKept() const { return kept; }
  /// How many ops are computed in more than one kernel.
  unsigned getRecomputed() const { return recomputed; }
  /// The position of an op in the program before.
  unsigned getPosition(mlir::Operation *op) const { return positions.lookup(op); }

private:
  /// What the ops of one kernel have in common; sorted by level.
  struct GroupKey {
    unsigned level, place;
    bool stores;
    auto operator<=>(const GroupKey &) const = default;
  };
  using Place = std::pair<std::pair<mlir::Attribute, int64_t>, mlir::Attribute>;
  struct Group {
    llvm::SmallSetVector<mlir::Operation *, 8> roots, body;
    llvm::DenseSet<mlir::Value> loaded;
    llvm::DenseMap<mlir::Operation *, double> costs;
  };

  unsigned getPlace(mlir::Operation *op);
  bool flows(mlir::OpOperand &use);
  void endLongChains();
  void computeLevels();
  void collectRoots();
  void addRoot(mlir::Value value);
  void addRootOp(mlir::Operation *op);
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
  void addPlan(const GroupKey &key, llvm::ArrayRef<mlir::Operation *> ops,
               const Group &group);
  void noteKept();
  std::string describeKept(mlir::Value value);

  ProgramOp program;
  bool recompute;
  llvm::MapVector<Place, unsigned> places;
  llvm::DenseMap<mlir::Operation *, unsigned> positions, levels;
  /// Ops whose chain of ops that could share a body is long enough: all read their
  /// results from memory.
  llvm::DenseSet<mlir::Operation *> ends;
  std::map<GroupKey, Group> groups;
  /// Values that some kernel writes, and why those that no other op needs.
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
