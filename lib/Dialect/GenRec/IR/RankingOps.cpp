//===- RankingOps.cpp - verifiers of ranking layers -----------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// The number of pairs of `count` vectors; with `self` including each vector with itself.
static int64_t countPairs(int64_t count, bool self) {
  return count * (self ? count + 1 : count - 1) / 2;
}

/// Checks that x consists of `count` vectors and that `products` has a dot product per pair of
/// them.
template <typename OpT> static LogicalResult verifyInteraction(OpT op, Named products) {
  Type x = op.getX().getType();
  if (failed(expect(op, {"x", x}, Form::rows().vector().element(f32))))
    return failure();
  int64_t count = op.getCount();
  if (getRowSize(x) % count != 0)
    return op.emitOpError() << "needs " << count << " vectors end to end, but 'x' has "
                            << getRowSize(x) << " columns";
  int64_t pairs = countPairs(count, op.getSelf());
  if (pairs == 0)
    return op.emitOpError() << "needs at least 2 vectors, or 'self', but 'count' is " << count;
  return expect(op, products, Form::alike(x).shape({pairs}).elementOf(x),
                "a product per pair of " + Twine(count) + " vectors");
}

LogicalResult DotInteractionOp::verify() { return verifyInteraction(*this, {"result", getType()}); }

LogicalResult DotInteractionGradOp::verify() {
  if (failed(verifyInteraction(*this, {"gradient", getGradient().getType()})))
    return failure();
  return expectType(*this, {"result", getType()}, getX().getType(), "the type of 'x'");
}

LogicalResult CrossLayerOp::verify() {
  Type x0 = getX0().getType(), weight = getWeight().getType();
  if (failed(expect(*this, {"x0", x0}, Form::rows().vector().element(floats))) ||
      failed(expectType(*this, {"x", getX().getType()}, x0, "the type of 'x0'")))
    return failure();
  int64_t size = getRowSize(x0);
  Type reduce = getReduce() ? getReduce().getType() : Type();
  if (reduce &&
      failed(expect(*this, {"reduce", reduce}, Form::shared().shape({size, kFree}).elementOf(x0),
                    "a row per column of 'x'")))
    return failure();
  int64_t rank = reduce ? getRowShape(reduce)[1] : size;
  if (failed(expect(*this, {"weight", weight}, Form::shared().shape({rank, size}).elementOf(x0),
                    reduce ? "a row per column of 'reduce'" : "square, a row per column of 'x'")) ||
      failed(expect(*this, {"bias", getBias().getType()},
                    Form::shared().shape({size}).elementOf(x0), "an element per column of 'x'")))
    return failure();
  return expectType(*this, {"result", getType()}, x0, "the type of 'x0'");
}

LogicalResult MixtureOp::verify() {
  Named experts{"experts", getExperts().getType()}, logits{"logits", getLogits().getType()};
  if (failed(expect(*this, experts, Form::rows().vector().element(floats))) ||
      failed(expectSameDomain(*this, {experts, logits})) ||
      failed(expect(*this, logits, Form::alike(experts.type).vector().elementOf(experts.type))))
    return failure();
  int64_t size = getRowSize(experts.type), count = getRowSize(logits.type);
  if (size % count != 0)
    return emitOpError() << "has " << count << " 'logits', but 'experts' are " << size
                         << " columns, which is no multiple of that";
  if (failed(expectRange(*this, "top_k", getTopK(), 0, count)))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(experts.type).shape({size / count}).elementOf(experts.type),
                "one expert's row");
}
