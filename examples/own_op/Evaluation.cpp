//===- Evaluation.cpp - what the op means, for the interpreter ------------===//
//
// Written from the definition and sharing nothing with gradient and kernel, which it judges.
//
//===----------------------------------------------------------------------===//

#include "Own.h"

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>

using namespace genrec::interpreter;

static llvm::Error evaluateGatedCross(Evaluator &e, own::GatedCrossOp op) {
  const Tensor &x0 = e.get(op.getX0()), &x = e.get(op.getX());
  const Tensor &weight = e.get(op.getWeight()), &bias = e.get(op.getBias());
  const Tensor &gate = e.get(op.getGate());
  Tensor result = makeTensor(op.getType(), x.rows);
  forEachElement(result, [&](int64_t row, int64_t column) {
    double u = bias.floats()[column], z = 0.0;
    for (int64_t i = 0; i < x.width; ++i) {
      u += x.row(row)[i] * weight.floats()[i * x.width + column];
      z += x.row(row)[i] * gate.floats()[i * x.width + column];
    }
    result.row(row)[column] = x0.row(row)[column] * u / (1.0 + std::exp(-z)) + x.row(row)[column];
  });
  e.set(op.getResult(), std::move(result));
  return llvm::Error::success();
}

namespace {
struct Evaluation : EvaluationDialectInterface {
  explicit Evaluation(mlir::Dialect *dialect) : EvaluationDialectInterface(dialect) {
    handlers.add<own::GatedCrossOp, evaluateGatedCross>();
  }
};
} // namespace

void own::addEvaluation(OwnDialect &dialect) { dialect.addInterfaces<Evaluation>(); }
