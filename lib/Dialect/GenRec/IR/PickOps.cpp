//===- PickOps.cpp - gathered rows, and ops that pick them ----------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

LogicalResult DrawRowsOp::verify() {
  if (failed(expectStream(*this, getStream())))
    return failure();
  Form form = getDomain() ? Form::rows(domainOf(getDomain())) : Form::shared();
  return expect(*this, {"result", getType()},
                form.shape({static_cast<int64_t>(getCount())}).element(i64),
                getDomain() ? "'count' draws per row of 'domain'" : "'count' draws per step");
}

LogicalResult PickRowsOp::verify() {
  if (getNumbers().empty())
    return emitOpError() << "needs the numbers of rows to pick";
  if (getPicked().size() != getNumbers().size())
    return emitOpError() << "needs a result of 'picked' per operand of 'numbers', "
                         << getNumbers().size() << ", but has " << getPicked().size();
  for (auto [index, numbers, picked] : llvm::enumerate(getNumbers(), getPicked())) {
    std::string place = " " + std::to_string(index);
    std::string name = "numbers" + place, result = "picked" + place;
    if (failed(expect(*this, {name, numbers.getType()}, Form::any().element(i64))) ||
        failed(expectType(*this, {result, picked.getType()}, numbers.getType(),
                          "a number each, as '" + name + "'")))
      return failure();
  }
  return expect(*this, {"rows", getRows().getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i64),
                "a row number of 'source' per picked row");
}

LogicalResult PickListsOp::verify() {
  if (failed(expect(*this, {"parents", getParents().getType()}, Form::rows().scalar().element(i64),
                    "row numbers of the parent of 'source'")))
    return failure();
  return expect(*this, {"rows", getRows().getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i64),
                "a row number of 'source' per picked row");
}

LogicalResult PickListsOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr source = domainOf(getSource()), domain = domainOf(getDomain());
  if (!parentOf(*this, source))
    return emitOpError() << "picks lists, but 'source' " << source << " is a root";
  FlatSymbolRefAttr parents = getRowDomain(getParents().getType());
  if (parentOf(*this, domain) == parents)
    return success();
  return emitOpError() << "'domain' " << domain << " must be a child of " << parents
                       << ", the domain of 'parents'";
}

//===----------------------------------------------------------------------===//
// Ops that gather rows
//===----------------------------------------------------------------------===//

Value GatherRowsOp::getGatherSource() { return getSource(); }

GatheredRows GatherRowsOp::countGatheredRows() { return {getRowSize(getIndex().getType()), 0}; }

void GatherRowsOp::buildRowNumbers(OpBuilder &, SmallVectorImpl<Value> &numbers) {
  numbers.push_back(getIndex());
}

Operation *GatherRowsOp::buildGatherFrom(OpBuilder &builder, Value source, ValueRange numbers) {
  return GatherRowsOp::create(builder, getLoc(), getType(), source, numbers[0]);
}

Value SampledSoftmaxOp::getGatherSource() { return getItems(); }

GatheredRows SampledSoftmaxOp::countGatheredRows() {
  auto negatives = static_cast<int64_t>(getNegatives());
  return getShared() ? GatheredRows{1, negatives} : GatheredRows{1 + negatives, 0};
}

template <typename OpT> static Value buildDrawnBy(OpBuilder &builder, OpT op) {
  if (op.getDrawn())
    return op.getDrawn();
  auto program = op->template getParentOfType<ProgramOp>();
  auto domainOfRows = [&](Value rows) {
    return lookupDomainValue(program, getRowDomain(rows.getType()));
  };
  Value each = op.getShared() ? Value() : domainOfRows(op.getQuery());
  auto negatives = static_cast<int64_t>(op.getNegatives());
  Type type =
      each ? getRowsType(getRowDomain(op.getQuery().getType()), {negatives}, builder.getI64Type())
           : RankedTensorType::get({negatives}, builder.getI64Type());
  return DrawRowsOp::create(builder, op.getLoc(), type, domainOfRows(op.getItems()), each,
                            op.getNegativesAttr(), op.getStreamAttr());
}

Value SampledSoftmaxOp::buildDrawn(OpBuilder &builder) { return buildDrawnBy(builder, *this); }
Value SampledSoftmaxGradOp::buildDrawn(OpBuilder &builder) { return buildDrawnBy(builder, *this); }

void SampledSoftmaxOp::buildRowNumbers(OpBuilder &builder, SmallVectorImpl<Value> &numbers) {
  numbers.append({getPositive(), buildDrawn(builder)});
}

Operation *SampledSoftmaxOp::buildGatherFrom(OpBuilder &builder, Value source, ValueRange numbers) {
  return SampledSoftmaxOp::create(builder, getLoc(), getType(), getQuery(), numbers[0], source,
                                  numbers[1], getNegativesAttr(), getSharedAttr(),
                                  getTemperatureAttr(), getStreamAttr(), getBf16Attr());
}

//===----------------------------------------------------------------------===//
// Factors that were rounded before
//===----------------------------------------------------------------------===//

SmallVector<unsigned> SampledSoftmaxOp::getFactorsRoundedByOps() { return {0, 2}; }

bool SampledSoftmaxOp::takesRoundedRows(unsigned index) { return index == 2; }
bool SampledSoftmaxGradOp::takesRoundedRows(unsigned index) { return index == 2; }
