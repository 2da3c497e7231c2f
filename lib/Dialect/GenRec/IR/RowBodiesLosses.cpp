//===- RowBodiesLosses.cpp - bodies of the softmax losses -----------------===//
//
// Softmax over classes and over sampled items, with gradients. All subtract the largest logit
// before exp. Forward op and gradient build the same ops in the same order, so that CSE shares them
// in a body with both.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/RowBodies.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// softmax_cross_entropy
//===----------------------------------------------------------------------===//

namespace {
struct ClassSoftmax {
  Value isLabel;   // vector<Cxi1>
  Value isValid;   // i1: whether the label is a class
  Value exps;      // exp(logits - largest)
  Value sum;       // of exps
  Value logSumExp; // log of Σ exp(logits)
};
} // namespace

/// For each element of a block of columns from `first` on, whether it is column `index`.
static Value buildIsColumn(RowBodyBuilder &b, ArrayRef<int64_t> shape, Value index, int64_t first) {
  Type type = index.getType();
  Value columns = b.make<RowIotaOp>(VectorType::get(shape, type));
  if (first)
    index = b.sub(index, b.integer(type, first));
  return b.compare(CompareKind::eq, columns, b.fit(index, shape));
}

static ClassSoftmax buildClassSoftmax(RowBodyBuilder &b, Value logits, Value label) {
  ArrayRef<int64_t> shape = bodyShape(logits.getType());
  Type labelType = label.getType();
  ClassSoftmax s;
  s.isLabel = buildIsColumn(b, shape, label, 0);
  Value isLow = b.compare(CompareKind::ge, label, b.integer(labelType, 0));
  Value isHigh = b.compare(CompareKind::lt, label, b.integer(labelType, shape[0]));
  s.isValid = b.make<arith::AndIOp>(isLow, isHigh);
  Value largest = b.reduceMax(logits);
  s.exps = b.make<math::ExpOp>(b.sub(logits, b.fit(largest, shape)));
  s.sum = b.reduceAdd(s.exps);
  s.logSumExp = b.add(largest, b.make<math::LogOp>(s.sum));
  return s;
}

LogicalResult SoftmaxCrossEntropyOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                                  SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value logits = operands[0];
  ClassSoftmax s = buildClassSoftmax(b, logits, operands[1]);
  Value zeros = b.constant(logits.getType(), 0.0);
  Value picked = b.reduceAdd(b.select(s.isLabel, logits, zeros));
  double smoothing = getLabelSmoothing().convertToDouble();
  if (smoothing > 0.0) {
    Type type = picked.getType();
    double each = smoothing / static_cast<double>(bodyShape(logits.getType())[0]);
    picked = b.add(b.mul(picked, b.constant(type, 1.0 - smoothing)),
                   b.mul(b.reduceAdd(logits), b.constant(type, each)));
  }
  Value loss = b.sub(s.logSumExp, picked);
  results.push_back(b.select(s.isValid, loss, b.constant(loss.getType(), 0.0)));
  return success();
}

LogicalResult SoftmaxCrossEntropyGradOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                                      SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value logits = operands[0], gradient = operands[2];
  Type type = logits.getType();
  ArrayRef<int64_t> shape = bodyShape(type);
  if (getLogSumExp()) {
    Value softmax = b.make<math::ExpOp>(b.sub(logits, b.fit(operands[3], shape)));
    Value isLabel = buildIsColumn(b, shape, operands[1], getFirst());
    Value oneHot = b.select(isLabel, b.constant(type, 1.0), b.constant(type, 0.0));
    results.push_back(b.mul(b.sub(softmax, oneHot), b.fit(gradient, shape)));
    return success();
  }
  ClassSoftmax s = buildClassSoftmax(b, logits, operands[1]);
  Value softmax = b.make<arith::DivFOp>(s.exps, b.fit(s.sum, shape));
  double smoothing = getLabelSmoothing().convertToDouble();
  double each = smoothing / static_cast<double>(shape[0]);
  Value target =
      b.select(s.isLabel, b.constant(type, 1.0 - smoothing + each), b.constant(type, each));
  Value seed = b.select(s.isValid, gradient, b.constant(gradient.getType(), 0.0));
  results.push_back(b.mul(b.sub(softmax, target), b.fit(seed, shape)));
  return success();
}

//===----------------------------------------------------------------------===//
// Classes in blocks
//===----------------------------------------------------------------------===//

LogicalResult LogSumExpOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                        SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Value largest = b.reduceMax(x);
  if (getBefore())
    largest = b.max(largest, operands[1]);
  Value sum = b.reduceAdd(b.make<math::ExpOp>(b.sub(x, b.fit(largest, bodyShape(x.getType())))));
  if (getBefore())
    sum = b.add(sum, b.make<math::ExpOp>(b.sub(operands[1], largest)));
  results.push_back(b.add(largest, b.make<math::LogOp>(sum)));
  return success();
}

LogicalResult PickColumnOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                         SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  Value x = operands[0];
  Value isColumn = buildIsColumn(b, bodyShape(x.getType()), operands[1], getFirst());
  results.push_back(b.reduceAdd(b.select(isColumn, x, b.constant(x.getType(), 0.0))));
  return success();
}

//===----------------------------------------------------------------------===//
// sampled_softmax
//===----------------------------------------------------------------------===//

namespace {
/// Of logits, of a positive and of negatives.
struct SampledLogits {
  Value isValid; // i1: whether there is a positive
  Value logit;   // of the positive
  Value largest; // of all logits
  Value exps;    // exp(negative logits - largest)
  Value others;  // sum of exps
  Value sum;     // of others and the positive's exp
};

struct SampledSoftmax : SampledLogits {
  Value index;    // vector<mxi64>: rows of the negatives
  Value positive; // vector<dxf32>: the positive item, 0 if there is none
};

/// Gradients of the dot products.
struct SampledGradients {
  Value positive;  // f32
  Value negatives; // vector<mxf32>
};

/// The logit of a negative that equals the positive: its exp is 0 compared with any other.
constexpr double maskedLogit = -1e30;
} // namespace

static Value buildLogits(RowBodyBuilder &b, Value dots, Value index, Value positive,
                         double temperature) {
  ArrayRef<int64_t> shape = bodyShape(dots.getType());
  Value scale = b.constant(bodyElement(dots.getType()), 1.0 / temperature);
  Value scaled = b.mul(dots, b.fit(scale, shape));
  Value isHit = b.compare(CompareKind::eq, index, b.fit(positive, shape));
  return b.select(isHit, b.constant(dots.getType(), maskedLogit), scaled);
}

/// `dot`: of the positive, `logits`: of the negatives.
static SampledLogits buildSampledLogits(RowBodyBuilder &b, Value dot, Value logits, Value positive,
                                        double temperature) {
  SampledLogits s;
  s.isValid = b.compare(CompareKind::ge, positive, b.integer(positive.getType(), 0));
  s.logit = b.mul(dot, b.constant(dot.getType(), 1.0 / temperature));
  s.largest = b.max(b.reduceMax(logits), s.logit);
  s.exps = b.make<math::ExpOp>(b.sub(logits, b.fit(s.largest, bodyShape(logits.getType()))));
  s.others = b.reduceAdd(s.exps);
  s.sum = b.add(s.others, b.make<math::ExpOp>(b.sub(s.logit, s.largest)));
  return s;
}

static Value buildSampledLoss(RowBodyBuilder &b, const SampledLogits &s) {
  Value logSumExp = b.add(s.largest, b.make<math::LogOp>(s.sum));
  Value loss = b.sub(logSumExp, s.logit);
  return b.select(s.isValid, loss, b.constant(loss.getType(), 0.0));
}

static SampledGradients buildSampledGradients(RowBodyBuilder &b, const SampledLogits &s,
                                              Value gradient, double temperature) {
  Type type = gradient.getType();
  ArrayRef<int64_t> shape = bodyShape(s.exps.getType());
  Value zero = b.constant(type, 0.0);
  Value seed = b.select(s.isValid, gradient, zero);
  Value scaled = b.mul(seed, b.constant(type, 1.0 / temperature));
  Value perExp = b.make<arith::DivFOp>(scaled, s.sum);
  // Rows without a positive are masked by a select, as the product of a NaN and a gradient of 0
  // would be NaN.
  Value negative = b.mul(s.exps, b.fit(perExp, shape));
  Value zeros = b.constant(negative.getType(), 0.0);
  Value isValid = b.fit(s.isValid, shape);
  Value coefficients = b.select(isValid, negative, zeros);
  // Minus what the negatives get. Its probability minus 1 would be rounding alone where the
  // probability is near 1.
  Value onPositive = b.make<arith::NegFOp>(b.mul(s.others, perExp));
  onPositive = b.select(s.isValid, onPositive, zero);
  return {onPositive, coefficients};
}

LogicalResult SampledCrossEntropyOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                                  SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  const double temperature = getTemperature().convertToDouble();
  Value logits = buildLogits(b, operands[1], operands[3], operands[2], temperature);
  results.push_back(
      buildSampledLoss(b, buildSampledLogits(b, operands[0], logits, operands[2], temperature)));
  return success();
}

LogicalResult SampledCrossEntropyGradOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                                      SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  const double temperature = getTemperature().convertToDouble();
  Value logits = buildLogits(b, operands[1], operands[3], operands[2], temperature);
  SampledLogits s = buildSampledLogits(b, operands[0], logits, operands[2], temperature);
  SampledGradients gradients = buildSampledGradients(b, s, operands[4], temperature);
  results.append({gradients.positive, gradients.negatives});
  return success();
}

static SampledSoftmax buildSampledSoftmax(RowBodyBuilder &b, Value query, Value positive,
                                          Value items, const SampledSoftmaxDraw &draw) {
  Type element = bodyElement(query.getType());
  auto indexType = VectorType::get({draw.negatives}, b.builder.getI64Type());
  auto logitType = VectorType::get({draw.negatives}, element);
  SampledSoftmax s;
  s.index =
      draw.drawn ? draw.drawn : b.make<RandomIndexOp>(indexType, items, draw.stream, draw.shared);
  Value dots = b.make<GatherDotOp>(logitType, items, s.index, query);
  Value logits = buildLogits(b, dots, s.index, positive, draw.temperature);
  Type stored = getElementTypeOrSelf(items.getType());
  s.positive = b.make<RowGatherOp>(bodyTypeLike(query.getType(), stored), items, positive,
                                   /*clamp=*/false);
  if (stored.isBF16())
    s.positive = b.widen(s.positive);
  static_cast<SampledLogits &>(s) = buildSampledLogits(b, b.reduceAdd(b.mul(s.positive, query)),
                                                       logits, positive, draw.temperature);
  return s;
}

bool SampledSoftmaxOp::isGatherSource(unsigned index) { return index == 2; }

LogicalResult SampledSoftmaxOp::buildRowBody(OpBuilder &builder, ValueRange operands,
                                             SmallVectorImpl<Value> &results) {
  RowBodyBuilder b(builder, getLoc());
  SampledSoftmaxDraw draw{getDrawn() ? operands[3] : Value(), static_cast<int64_t>(getNegatives()),
                          static_cast<int64_t>(getStream()), getShared(),
                          getTemperature().convertToDouble()};
  SampledSoftmax s = buildSampledSoftmax(b, operands[0], operands[1], operands[2], draw);
  results.push_back(buildSampledLoss(b, s));
  return success();
}

Value genrec::buildSampledSoftmaxGradient(OpBuilder &builder, Location loc, Value query,
                                          Value positive, Value items, Value gradient,
                                          const SampledSoftmaxDraw &draw, Value accumulator) {
  RowBodyBuilder b(builder, loc);
  SampledSoftmax s = buildSampledSoftmax(b, query, positive, items, draw);
  auto [onPositive, coefficients] = buildSampledGradients(b, s, gradient, draw.temperature);
  // Before the accumulation, which evicts the drawn rows from the first-level cache; the
  // computation of the logits has just loaded them.
  Value sum = b.make<GatherSumOp>(query.getType(), items, s.index, coefficients);
  if (accumulator) {
    Value share = b.mul(query, b.fit(onPositive, bodyShape(query.getType())));
    AccumulateOp::create(builder, loc, accumulator, query, s.index, coefficients, /*clamp=*/false);
    AccumulateOp::create(builder, loc, accumulator, share, positive, Value(),
                         /*clamp=*/false);
  }
  Value own = b.mul(s.positive, b.fit(onPositive, bodyShape(query.getType())));
  return b.add(sum, own);
}
