//===- FuseTransforms.cpp - keys of all columns in one launch -------------===//

#include "Batch.h"
#include "ColumnBodies.h"
#include "Decisions.h"
#include "IdBits.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/Analysis/TopologicalSortUtils.h"

#include <map>

namespace genrec {
#define GEN_PASS_DEF_FUSETRANSFORMS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// Fuses the columns of one program.
class Fuser {
public:
  Fuser(ProgramOp program, Decisions &decisions) : program(program), decisions(decisions) {
    for (auto table : getModel(program).getBody().front().getOps<TableOp>())
      tables[FlatSymbolRefAttr::get(table.getSymNameAttr())] = table;
  }

  LogicalResult run();

  unsigned columns = 0, programs = 0, transforms = 0, launches = 0;

private:
  void collectKeys();
  bool isBounded(MergedKeysOp keys);
  DenseMap<Attribute, int64_t> getTags(TableOp merged);
  LogicalResult addColumns(MergedKeysOp keys, ColumnPrograms &programs,
                           SmallVectorImpl<int64_t> &numbers);
  LogicalResult fuse(ArrayRef<MergedKeysOp> keys);

  ProgramOp program;
  Decisions &decisions;
  DenseMap<Attribute, TableOp> tables;
  /// By depth: the length of the longest chain of lookups that the keys depend on.
  std::map<unsigned, SmallVector<MergedKeysOp>> byDepth;
  llvm::DenseSet<Operation *> fused;
};
} // namespace

/// Whether every id is known to fit its table; otherwise merged_keys has to check.
bool Fuser::isBounded(MergedKeysOp keys) {
  for (auto [ids, name] : llvm::zip_equal(keys.getIds(), keys.getTables())) {
    int64_t bits = getIdBits(ids), limit = tables.lookup(name).getIdBits();
    if (bits <= limit)
      continue;
    decisions.add("keys of '" + keys.getTable() + "' are made and checked apart: the ids of '" +
                  cast<FlatSymbolRefAttr>(name).getValue() + "' made by " +
                  nameForUser(ids.getDefiningOp()) + " are not known to have " + Twine(limit) +
                  " bits");
    return false;
  }
  return true;
}

void Fuser::collectKeys() {
  DenseMap<Value, unsigned> depths;
  for (Operation &op : program.getBody().front()) {
    unsigned depth = 0;
    for (Value operand : op.getOperands())
      depth = std::max(depth, depths.lookup(operand));
    if (auto keys = dyn_cast<MergedKeysOp>(op); keys && isBounded(keys))
      byDepth[depth].push_back(keys);
    depth += isa<TableReadOpInterface>(op);
    if (depth > 0)
      for (Value result : op.getResults())
        depths[result] = depth;
  }
}

DenseMap<Attribute, int64_t> Fuser::getTags(TableOp merged) {
  DenseMap<Attribute, int64_t> tags;
  for (auto [number, member] : llvm::enumerate(merged.getMembersAttr()))
    tags[member] = static_cast<int64_t>(number) << merged.getKeyBits();
  return tags;
}

LogicalResult Fuser::addColumns(MergedKeysOp keys, ColumnPrograms &shared,
                                SmallVectorImpl<int64_t> &numbers) {
  DenseMap<Attribute, int64_t> tags = getTags(tables.lookup(keys.getTableAttr()));
  DenseMap<int64_t, Value> validOf;
  for (auto [part, valid] : llvm::zip_equal(keys.getValidOf(), keys.getValid()))
    validOf[part] = valid;
  for (auto [part, ids, name] : llvm::enumerate(keys.getIds(), keys.getTables())) {
    ColumnSpec spec{ids, validOf.lookup(part), tags.lookup(name)};
    FailureOr<ColumnBody> body = buildColumnBody(program.getContext(), spec);
    if (failed(body))
      return keys.emitOpError("has ids whose transforms have no form inside a kernel");
    fused.insert(body->transforms.begin(), body->transforms.end());
    numbers.push_back(shared.add(std::move(*body)));
  }
  return success();
}

LogicalResult Fuser::fuse(ArrayRef<MergedKeysOp> keys) {
  ColumnPrograms shared;
  SmallVector<int64_t> numbers;
  SmallVector<Value> domains;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (MergedKeysOp op : keys) {
    if (failed(addColumns(op, shared, numbers)))
      return failure();
    domains.push_back(op.getDomain());
    types.push_back(op.getType());
    locations.push_back(op.getLoc());
  }
  OpBuilder builder(MergedKeysOp(keys.back()));
  Location loc = FusedLoc::get(program.getContext(), locations);
  SmallVector<Value> inputs;
  for (ArrayRef<Value> ofColumn : shared.makeInputs(builder, loc))
    llvm::append_range(inputs, ofColumn);
  auto name = builder.getStringAttr("keys");
  auto op = TransformColumnsOp::create(builder, loc, types, inputs, domains, numbers, name,
                                       shared.size());
  for (unsigned number = 0; number < shared.size(); ++number)
    shared.fill(number, op.getBodies()[number]);
  for (auto [old, result] : llvm::zip_equal(keys, op.getResults())) {
    MergedKeysOp(old).getResult().replaceAllUsesWith(result);
    MergedKeysOp(old).erase();
  }
  ++launches;
  columns += numbers.size();
  programs += shared.size();
  decisions.add("@" + program.getSymName() + " computes the keys of " + Twine(numbers.size()) +
                " columns by " + Twine(shared.size()) +
                (shared.size() == 1 ? " program" : " programs") + " in one launch");
  RewriteCounter::count("fuse-columns", numbers.size());
  RewriteCounter::count("share-column-program", numbers.size() - shared.size());
  return success();
}

LogicalResult Fuser::run() {
  collectKeys();
  for (auto &[depth, keys] : byDepth)
    if (failed(fuse(keys)))
      return failure();
  if (byDepth.empty())
    return success();
  transforms = fused.size();
  // Operands of the last merged_keys may come after the lookup of the first.
  sortTopologically(&program.getBody().front());
  eraseDeadOps(program);
  return success();
}

namespace {
struct FuseTransforms : genrec::impl::FuseTransformsBase<FuseTransforms> {
  void runOnOperation() override {
    Decisions decisions("fuse-transforms");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      Fuser fuser(program, decisions);
      if (failed(fuser.run()))
        return signalPassFailure();
      countStatistic(*this, columns, "columns", fuser.columns);
      countStatistic(*this, programs, "programs", fuser.programs);
      countStatistic(*this, transforms, "transforms", fuser.transforms);
      countStatistic(*this, launches, "launches", fuser.launches);
    }
    decisions.attachTo(getOperation());
  }
};
} // namespace
