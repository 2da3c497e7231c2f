//===- RowBodyCalls.cpp - ops of a body that are calls on whole rows ------===//

#include "RowBodyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

Value RowBodyEmitter::getReductionMemory(Type element) {
  if (!element.isF32())
    return {};
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(arrayAnchor);
  return target.createReductionMemory(EmitCBuilder(builder, schedule.getKernel().getLoc()));
}

void RowBodyEmitter::emitReduction(Operation *op) {
  auto reduction = cast<vector::ReductionOp>(op);
  EmitCBuilder b = at(op);
  Value x = reduction.getVector();
  Type type = reduction.getType();
  if (getExtent(x) == 1 && !reduction.getAcc()) {
    bindings.scalars[op->getResult(0)] = target.extractElement(b, bindings.pointers.lookup(x), 0);
    return;
  }
  StringRef callee;
  switch (reduction.getKind()) {
  case vector::CombiningKind::ADD:
    callee = "kernels::rowSum";
    break;
  case vector::CombiningKind::MAXIMUMF:
  case vector::CombiningKind::MAXNUMF:
  case vector::CombiningKind::MAXSI:
    callee = "kernels::rowMax";
    break;
  case vector::CombiningKind::MINIMUMF:
  case vector::CombiningKind::MINNUMF:
  case vector::CombiningKind::MINSI:
    callee = "kernels::rowMin";
    break;
  default:
    llvm_unreachable("row kernels are verified to reduce by sum, maximum and minimum");
  }
  SmallVector<Value> operands{getPointer(x)};
  if (Value memory = getReductionMemory(type))
    operands.push_back(memory);
  Value result = target.callOnRow(b, callee, type, operands, getExtent(x));
  if (Value start = reduction.getAcc())
    result = arith::AddFOp::create(builder, op->getLoc(), result, getScalar(start));
  bindings.scalars[op->getResult(0)] = result;
}

void RowBodyEmitter::emitAccumulate(AccumulateOp op) {
  EmitCBuilder b = at(op);
  TensorAddress to = bindings.accumulators.lookup(op.getAccumulator());
  Value stride = b.integer(to.stride), pointer = to.pointer;
  if (to.terms) {
    int64_t number = to.terms->getNumber(op);
    SmallVector<Attribute> arguments = to.terms->getTemplate(b);
    arguments.push_back(b.templateInteger(to.terms->firstTerms[number]));
    arguments.push_back(b.templateInteger(to.terms->getVector(op)));
    const bool isRounded = to.terms->isRounded;
    Type type = b.opaque(isRounded ? "kernels::RoundedTerms" : "kernels::RowTerms");
    pointer = b.named("terms").call("kernels::rowTerms", type, {pointer, to.row}, arguments);
    if (Value scale = to.terms->getScale(op)) {
      target.callOnRow(b, "kernels::addMultiple", {},
                       {pointer, getScalar(op.getIndex()), getScalar(scale)});
      return;
    }
  }
  if (op.getCoefficient()) {
    Value index = getPointer(op.getIndex());
    Value count = b.integer(getExtent(op.getIndex()));
    target.callOnRow(
        b, "kernels::scatterAddOuter", {},
        {pointer, stride, index, getPointer(op.getCoefficient()), count, getPointer(op.getValue())},
        getExtent(op.getValue()));
    return;
  }
  Value index = getScalar(op.getIndex());
  if (op.getClamp())
    index = b.call("kernels::clampIndex", b.i64(), {index, to.rows});
  if (isa<VectorType>(op.getValue().getType()))
    target.callOnRow(b, "kernels::addRow", {}, {pointer, stride, index, getPointer(op.getValue())},
                     getExtent(op.getValue()));
  else
    target.callOnRow(b, "kernels::addElement", {}, {pointer, index, getScalar(op.getValue())});
}

void RowBodyEmitter::emitSoftmax(const GatheredSoftmax &softmax) {
  GatherDotOp dots = softmax.dots;
  EmitCBuilder b = at(dots);
  TensorAddress source = bindings.sources.lookup(dots.getSource());
  makeArray(dots.getResult());
  Value mix;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(arrayAnchor);
    mix = target.createArray(b, b.f32(), getExtent(dots.getRow()), /*isShared=*/false);
    ++arrayCount;
  }
  mixes[softmax.sum] = mix;
  target.callOnRow(b, "kernels::gatherSoftmax", {},
                   {source.pointer, b.integer(source.stride), getPointer(dots.getIndex()),
                    b.integer(getExtent(dots.getIndex())), getPointer(dots.getRow()),
                    getScalar(softmax.hit), b.floating(softmax.scale), b.floating(softmax.masked),
                    getPointer(dots.getResult()), b.decay(mix)},
                   getExtent(dots.getRow()));
}

void RowBodyEmitter::emitSoftmaxSum(const GatheredSoftmax &softmax) {
  Value sum = GatherSumOp(softmax.sum).getResult();
  EmitCBuilder b = at(softmax.sum);
  makeArray(sum);
  Value valid = softmax.valid ? getScalar(softmax.valid) : b.literal("true", b.i1());
  target.callOnRow(b, "kernels::softmaxSum", {},
                   {b.decay(mixes.lookup(softmax.sum)), getScalar(softmax.factor),
                    getScalar(softmax.most), getScalar(softmax.largest), valid, getPointer(sum)},
                   getExtent(sum));
}

void RowBodyEmitter::emitCall(Operation *op) {
  EmitCBuilder b = at(op);
  if (isa<vector::ReductionOp>(op))
    return emitReduction(op);
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return emitAccumulate(accumulate);
  for (const GatheredSoftmax &softmax : softmaxes) {
    if (op == softmax.dots)
      return emitSoftmax(softmax);
    if (op == softmax.sum)
      return emitSoftmaxSum(softmax);
  }
  Value result = op->getResult(0);
  Value extent = b.integer(getExtent(result));
  makeArray(result);
  Value to = getPointer(result);
  if (auto dot = dyn_cast<GatherDotOp>(op)) {
    TensorAddress source = bindings.sources.lookup(dot.getSource());
    target.callOnRow(b, "kernels::gatherDot", {},
                     {source.pointer, b.integer(source.stride), getPointer(dot.getIndex()), extent,
                      getPointer(dot.getRow()), to},
                     getExtent(dot.getRow()));
  } else {
    auto sum = cast<GatherSumOp>(op);
    TensorAddress source = bindings.sources.lookup(sum.getSource());
    target.callOnRow(b, "kernels::gatherSum", {},
                     {source.pointer, b.integer(source.stride), getPointer(sum.getIndex()),
                      getPointer(sum.getCoefficient()), b.integer(getExtent(sum.getIndex())), to},
                     getExtent(result));
  }
}
