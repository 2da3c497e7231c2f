//===- Distribute.cpp - adds up what the portions of a batch compute ------===//

#include "Decisions.h"
#include "Shares.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_DISTRIBUTE
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// Distributes one program.
class Distribution {
public:
  explicit Distribution(ProgramOp program)
      : program(program), model(getModel(program)), shares(program) {}

  void run();

  unsigned sums = 0, tables = 0, exactSums = 0;
  /// Why the program cannot run on several ranks; empty if it can.
  std::string obstacle;

private:
  void bringRowsToOwners();
  void bringToOwners(UniqueRowsOp unique, SegmentSumOp sum, TableOp table);
  void meet(Operation *op, const ShareNeeds &needs);
  void countOnce(OpOperand &operand);
  void collectWanted();
  void collect(ArrayRef<Value> values);
  void sumOwned();
  void sumExactly(ArrayRef<ReduceRowsOp> reductions);

  ProgramOp program;
  ModelOp model;
  Shares shares;
  /// The uses of partial values that need the sum.
  llvm::MapVector<Value, SmallVector<OpOperand *>> wanted;
  /// Those of rows that ranks own, in order.
  SmallVector<ReduceRowsOp> ofOwned;
  /// Replicated values, and the products that count them once.
  DenseMap<Value, Value> counted;
  int64_t nextNumber = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// Gradients of table rows
//===----------------------------------------------------------------------===//

/// The table whose rows `unique` has.
static TableOp findTable(UniqueRowsOp unique) {
  for (Value rows : unique.getRows()) {
    while (auto part = rows.getDefiningOp<UnstackRowsOp>())
      rows = part.getX();
    if (auto read = rows.getDefiningOp<TableRowsOp>())
      return lookupTable(unique, read.getTableAttr());
  }
  return {};
}

/// The rows and their gradients get a domain of their own, so that the ops that clip and apply the
/// gradients keep theirs.
void Distribution::bringToOwners(UniqueRowsOp unique, SegmentSumOp sum, TableOp table) {
  DomainType ownedType = unique.getDomain().getType();
  Type rowsType = unique.getResult().getType(), sumsType = sum.getType();
  FlatSymbolRefAttr portion =
      declareStepDomain(model, "portion_" + ownedType.getDomain().getValue().str());
  auto move = [&](Type type) {
    return getRowsType(portion, getRowShape(type), getElementTypeOrSelf(type));
  };
  unique.getDomain().setType(DomainType::get(model.getContext(), portion));
  unique.getResult().setType(cast<RankedTensorType>(move(rowsType)));
  sum.getResult().setType(cast<RankedTensorType>(move(sumsType)));

  OpBuilder builder(sum->getContext());
  builder.setInsertionPointAfter(sum);
  auto name = FlatSymbolRefAttr::get(table.getSymNameAttr());
  auto given = ContributeRowsOp::create(builder, sum.getLoc(), sum.getType(), unique.getDomain(),
                                        unique.getResult(), sum.getResult(), name);
  auto owned = CollectRowsOp::create(builder, sum.getLoc(), ownedType, rowsType, sumsType,
                                     unique.getDomain(), unique.getResult(), given, name);
  unique.getDomain().replaceUsesWithIf(owned.getOwned(), [&](OpOperand &use) {
    return !use.getOwner()->hasTrait<OfTouchedRows>();
  });
  unique.getResult().replaceUsesWithIf(owned.getOwnedRows(), [&](OpOperand &use) {
    return !use.getOwner()->hasTrait<OfTouchedRows>();
  });
  sum.getResult().replaceAllUsesExcept(owned.getOwnedSums(), given);
  ++tables;
  RewriteCounter::count("collect-rows");
}

void Distribution::bringRowsToOwners() {
  SmallVector<SegmentSumOp> found(program.getBody().front().getOps<SegmentSumOp>());
  for (SegmentSumOp sum : found)
    if (auto unique = sum.getDomain().getDefiningOp<UniqueRowsOp>())
      if (TableOp table = findTable(unique))
        bringToOwners(unique, sum, table);
}

//===----------------------------------------------------------------------===//
// What an op needs
//===----------------------------------------------------------------------===//

/// Replaces a replicated operand by itself in the first portion and 0 in the others, whose sum it is.
void Distribution::countOnce(OpOperand &operand) {
  Value value = operand.get();
  Value &product = counted[value];
  if (!product) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto scalar = RankedTensorType::get({}, builder.getF32Type());
    Value once = StepValueOp::create(builder, value.getLoc(), scalar,
                                     builder.getStringAttr("first_portion"),
                                     builder.getF64FloatAttr(0.0));
    product = MulOp::create(builder, value.getLoc(), value.getType(), value, once);
    shares.visit(once.getDefiningOp());
    shares.visit(product.getDefiningOp());
  }
  operand.set(product);
}

void Distribution::meet(Operation *op, const ShareNeeds &needs) {
  if (!needs.obstacle.empty() && obstacle.empty())
    obstacle = nameForUser(op) + placeForUser(op) + " " + needs.obstacle;
  for (unsigned index : needs.sums)
    wanted[op->getOperand(index)].push_back(&op->getOpOperand(index));
  for (unsigned index : needs.once)
    countOnce(op->getOpOperand(index));
  if (needs.sumsOwned)
    ofOwned.push_back(cast<ReduceRowsOp>(op));
}

//===----------------------------------------------------------------------===//
// Sums over portions
//===----------------------------------------------------------------------===//

void Distribution::collect(ArrayRef<Value> values) {
  OpBuilder builder(program.getContext());
  builder.setInsertionPointAfter(values.back().getDefiningOp());
  Location loc = values.back().getLoc();
  auto given = ContributeOp::create(builder, loc, nextNumber, values);
  auto total = CollectOp::create(builder, loc, nextNumber, given.getResults());
  ++nextNumber;
  for (auto [value, sum] : llvm::zip_equal(values, total.getResults()))
    for (OpOperand *use : wanted[value])
      use->set(sum);
  sums += values.size();
  RewriteCounter::count("collect", values.size());
}

/// What a bucket of sums has at least, unless no more is to come: 256 KiB.
static constexpr int64_t kBucketFloats = 65536;

/// The floats of a shared value; of rows, those of one.
static int64_t countFloats(Value value) {
  int64_t floats = 1;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    floats *= ShapedType::isDynamic(size) ? 1 : size;
  return floats;
}

/// Values that are all there before the sum of any is read are added up together, in buckets: each
/// is complete as soon as the backward pass has its last value.
void Distribution::collectWanted() {
  auto isBefore = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
  SmallVector<Value> values = llvm::to_vector(llvm::make_first_range(wanted));
  llvm::sort(values, [&](Value a, Value b) {
    return a.getDefiningOp() != b.getDefiningOp()
               ? isBefore(a.getDefiningOp(), b.getDefiningOp())
               : cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber();
  });
  SmallVector<Value> group;
  Operation *firstReader = nullptr;
  int64_t floats = 0;
  for (Value value : values) {
    if (!group.empty() &&
        (!isBefore(value.getDefiningOp(), firstReader) || floats >= kBucketFloats)) {
      collect(group);
      group.clear();
    }
    if (group.empty()) {
      firstReader = nullptr;
      floats = 0;
    }
    group.push_back(value);
    floats += countFloats(value);
    for (OpOperand *use : wanted[value])
      if (!firstReader || isBefore(use->getOwner(), firstReader))
        firstReader = use->getOwner();
  }
  if (!group.empty())
    collect(group);
}

//===----------------------------------------------------------------------===//
// Sums over rows that ranks own
//===----------------------------------------------------------------------===//

void Distribution::sumExactly(ArrayRef<ReduceRowsOp> reductions) {
  SmallVector<Value> rows;
  SmallVector<Type> types;
  for (ReduceRowsOp op : reductions) {
    rows.push_back(op.getX());
    types.push_back(op.getType());
  }
  ReduceRowsOp last = reductions.back();
  OpBuilder builder(last);
  auto sums = ExactSumOp::create(builder, last.getLoc(), types, rows);
  for (auto [reduction, sum] : llvm::zip_equal(reductions, sums.getResults())) {
    ReduceRowsOp op = reduction;
    op.getResult().replaceAllUsesWith(sum);
    op.erase();
  }
  exactSums += reductions.size();
  RewriteCounter::count("exact-sum", reductions.size());
}

/// As collectWanted: sums that are all there before any is read take one exchange.
void Distribution::sumOwned() {
  SmallVector<ReduceRowsOp> group;
  Operation *firstReader = nullptr;
  for (ReduceRowsOp op : ofOwned) {
    if (firstReader && !op->isBeforeInBlock(firstReader)) {
      sumExactly(group);
      group.clear();
      firstReader = nullptr;
    }
    group.push_back(op);
    for (Operation *user : op->getUsers())
      if (!firstReader || user->isBeforeInBlock(firstReader))
        firstReader = user;
  }
  if (!group.empty())
    sumExactly(group);
}

void Distribution::run() {
  bringRowsToOwners();
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    meet(&op, shares.visit(&op));
  collectWanted();
  sumOwned();
}

namespace {
struct Distribute : genrec::impl::DistributeBase<Distribute> {
  void runOnOperation() override {
    Decisions decisions("distribute");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      Distribution distribution(program);
      distribution.run();
      if (!distribution.obstacle.empty())
        program->setAttr(GenRecDialect::SingleRankAttrHelper::getNameStr(),
                         StringAttr::get(&getContext(), distribution.obstacle));
      note(program, distribution, decisions);
      countStatistic(*this, sums, "sums", distribution.sums);
      countStatistic(*this, tables, "tables", distribution.tables);
      countStatistic(*this, exactSums, "exact-sums", distribution.exactSums);
    }
    decisions.attachTo(getOperation());
  }

  static void note(ProgramOp program, const Distribution &made, Decisions &decisions) {
    std::string name = "@" + program.getSymName().str();
    if (!made.obstacle.empty())
      decisions.add(name + " runs on one rank only: " + made.obstacle);
    else if (made.sums + made.tables != 0)
      decisions.add(name + " adds up " + Twine(made.sums) +
                    " sums over the portions of a batch, and brings the gradients of " +
                    Twine(made.tables) + " tables to the owners of the rows");
  }
};
} // namespace
