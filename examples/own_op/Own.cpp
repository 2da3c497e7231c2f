//===- Own.cpp - the op: what is allowed, and its gradient ----------------===//

#include "Own.h"

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"
#include "genrec/Dialect/GenRec/IR/VerifierRules.h"
#include "genrec/Plugins/Plugin.h"

using namespace mlir;
using namespace genrec;
using namespace own;

#include "OwnDialect.cpp.inc"
#define GET_OP_CLASSES
#include "OwnOps.cpp.inc"

extern "C" LLVM_ATTRIBUTE_WEAK DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return describePlugin<OwnDialect>("own");
}

void OwnDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "OwnOps.cpp.inc"
      >();
  addInterfaces<ModelDialectInterface>();
  addEvaluation(*this);
  addGenerator(*this);
  addStep(*this);
}

LogicalResult GatedCrossOp::verify() {
  using namespace rules;
  Form rows = Form::rows().vector().element(f32);
  if (failed(expect(*this, {"x0", getX0().getType()}, rows)))
    return failure();
  Type type = getX0().getType();
  int64_t size = getRowSize(type);
  Form square = Form::shared().shape({size, size}).element(f32);
  if (failed(expectType(*this, {"x", getX().getType()}, type, "as 'x0'")) ||
      failed(expect(*this, {"weight", getWeight().getType()}, square)) ||
      failed(expect(*this, {"bias", getBias().getType()},
                    Form::shared().shape({size}).element(f32))) ||
      failed(expect(*this, {"gate", getGate().getType()}, square)))
    return failure();
  return expectType(*this, {"result", getResult().getType()}, type, "as 'x0'");
}

// With u = x · weight + bias, s = σ(x · gate) and result x0 ∘ u ∘ s + x. u and s are computed
// again: two products cost less than keeping two buffers from the forward pass.
LogicalResult GatedCrossOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                          SmallVectorImpl<Value> &operandGradients) {
  GradientBuilder b(builder, getLoc());
  Value g = resultGradients[0], x = getX();
  auto multiply = [&](Value rows, Value weight, Value bias, bool transposed) -> Value {
    return LinearOp::create(builder, getLoc(), x.getType(), rows, weight, bias, transposed);
  };
  auto contract = [&](Value rows) -> Value {
    return WeightGradientOp::create(builder, getLoc(), getWeight().getType(), x, rows);
  };
  Value u = multiply(x, getWeight(), getBias(), /*transposed=*/false);
  Value s = b.unary<SigmoidOp>(multiply(x, getGate(), Value(), /*transposed=*/false));
  Value gs = b.mul(g, s);
  Value du = b.mul(gs, getX0());
  // σ' = σ (1 - σ), and du holds one σ
  Value dz = b.mul(b.mul(du, u), b.sub(b.constant(1.0, x.getType()), s));
  Value dx = b.add(g, b.add(multiply(du, getWeight(), Value(), /*transposed=*/true),
                            multiply(dz, getGate(), Value(), /*transposed=*/true)));
  operandGradients.append({b.mul(gs, u), dx, contract(du), b.reduceRows(du), contract(dz)});
  return success();
}
