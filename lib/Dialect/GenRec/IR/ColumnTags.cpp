//===- ColumnTags.cpp - table tags in keys of fused columns ---------------===//

#include "genrec/Dialect/GenRec/IR/ColumnTags.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace genrec;

/// The constant value of a body value for one column; none if it is computed.
static std::optional<int64_t> getConstant(Value value, const TransformColumnsOp::Column &column) {
  IntegerAttr number;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto constant = column.inputs[argument.getArgNumber()].getDefiningOp<ConstantOp>();
    auto values =
        constant ? dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
    if (values && values.isSplat())
      return values.getSplatValue<APInt>().getSExtValue();
    return std::nullopt;
  }
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    number = dyn_cast<IntegerAttr>(constant.getValue());
  return number ? std::optional<int64_t>(number.getInt()) : std::nullopt;
}

std::optional<ColumnTag> genrec::getColumnTag(TransformColumnsOp op,
                                              const TransformColumnsOp::Column &column) {
  Value key = op.getBodies()[column.program].front().getTerminator()->getOperand(0);
  if (auto select = key.getDefiningOp<arith::SelectOp>())
    key = select.getTrueValue();
  auto tagged = key.getDefiningOp<arith::OrIOp>();
  std::optional<int64_t> value = tagged ? getConstant(tagged.getRhs(), column) : std::nullopt;
  if (!value)
    return std::nullopt;
  auto ids = dyn_cast<BlockArgument>(tagged.getLhs());
  return ColumnTag{*value, ids ? column.inputs[ids.getArgNumber()] : Value()};
}
