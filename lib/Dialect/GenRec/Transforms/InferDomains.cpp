//===- InferDomains.cpp - completes the batch, bounds ids -----------------===//

#include "Batch.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/Support/MathExtras.h"

namespace genrec {
#define GEN_PASS_DEF_INFERDOMAINS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The operands whose elements the op passes on unchanged; empty for other ops.
static OperandRange getPassedOperands(Operation *op) {
  if (auto concat = dyn_cast<ConcatRowsOp>(op))
    return concat.getParts();
  if (op->hasTrait<PassesRowsOn>())
    return op->getOperands().take_front(1);
  return op->getOperands().take_front(0);
}

/// The values that the elements of `ids` come from, before moves between domains.
static SmallVector<Value> findSources(Value ids) {
  SmallVector<Value> sources, pending{ids};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    OperandRange passed = op ? getPassedOperands(op) : OperandRange(nullptr, 0);
    if (passed.empty())
      sources.push_back(value);
    else
      pending.append(passed.begin(), passed.end());
  }
  return sources;
}

/// A number of bits that every result of a transform fits into; 0 if unknown.
static int64_t getResultBits(Operation *op) {
  if (auto hash = dyn_cast<HashOp>(op))
    return hash.getBits();
  if (auto mod = dyn_cast<ModOp>(op))
    return std::max<int64_t>(1, llvm::Log2_64_Ceil(mod.getDivisor()));
  return 0;
}

/// Reports ids with more bits than the table of `lookup` takes.
static LogicalResult verifyBits(LookupOp lookup, TableOp table, Operation *op) {
  int64_t bits = getResultBits(op), limit = table.getIdBits();
  if (bits <= limit)
    return success();
  InFlightDiagnostic diagnostic =
      lookup.emitOpError() << "reads table '" << table.getSymName()
                           << "' of id_bits = " << limit << " by ids of " << bits
                           << " bits; make fewer bits or raise id_bits";
  diagnostic.attachNote(op->getLoc()) << "the ids are made here";
  return failure();
}

namespace {
struct InferDomains : genrec::impl::InferDomainsBase<InferDomains> {
  void runOnOperation() override {
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      BatchChange change = completeBatch(program);
      countStatistic(*this, domainsAdded, "domains-added", change.added);
      countStatistic(*this, domainsDropped, "domains-dropped", change.dropped);
      if (failed(boundFeatures(program)))
        return signalPassFailure();
    }
  }

  /// Gives features the id_bits of the tables that their ids are looked up in.
  LogicalResult boundFeatures(ProgramOp program) {
    llvm::SmallSetVector<Operation *, 8> bounded;
    for (auto lookup : program.getBody().front().getOps<LookupOp>()) {
      TableOp table = lookupTable(lookup, lookup.getTableAttr());
      for (Value source : findSources(lookup.getIds())) {
        Operation *op = source.getDefiningOp();
        if (failed(verifyBits(lookup, table, op)))
          return failure();
        if (auto feature = dyn_cast<FeatureOp>(op))
          if (boundFeature(feature, table.getIdBits()))
            bounded.insert(feature);
      }
    }
    countStatistic(*this, featuresBounded, "features-bounded", bounded.size());
    return success();
  }

  /// True if `feature` got a smaller bound than before.
  static bool boundFeature(FeatureOp feature, int64_t bits) {
    int64_t current = feature.getIdBits();
    if (current > 0 && current <= bits)
      return false;
    feature.setIdBits(bits);
    return true;
  }
};
} // namespace
