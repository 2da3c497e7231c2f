//===- LossOps.cpp - losses, catalogues, metrics, outputs -----------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// Checks an optional operand, a value per row, with x's domain.
static LogicalResult expectBeside(Operation *op, Named x, StringRef name, Value value,
                                  unsigned element) {
  if (!value)
    return success();
  Named named{name, value.getType()};
  if (failed(expectSameDomain(op, {x, named})))
    return failure();
  return expect(op, named, Form::alike(x.type).scalar().element(element));
}

//===----------------------------------------------------------------------===//
// Per-row losses
//===----------------------------------------------------------------------===//

LogicalResult BceWithLogitsOp::verify() {
  Named logit{"logit", getLogit().getType()}, label{"label", getLabel().getType()};
  if (failed(expect(*this, logit, Form::rows().scalar().element(floats))) ||
      failed(expectSameDomain(*this, {logit, label})) ||
      failed(expectType(*this, label, logit.type, "the type of 'logit'")))
    return failure();
  return expectType(*this, {"result", getType()}, logit.type, "a loss per row");
}

/// Checks the logits and the label of softmax_cross_entropy and its gradient.
static LogicalResult verifyClasses(Operation *op, Named logits, Named label) {
  if (failed(expect(op, logits, Form::rows().vector().element(floats))) ||
      failed(expectSameDomain(op, {logits, label})))
    return failure();
  return expect(op, label, Form::alike(logits.type).scalar().element(i64), "a class per row");
}

LogicalResult SoftmaxCrossEntropyOp::verify() {
  Named logits{"logits", getLogits().getType()}, label{"label", getLabel().getType()};
  if (failed(verifyClasses(*this, logits, label)) ||
      failed(expectRate(*this, "label_smoothing", getLabelSmoothing().convertToDouble())))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(logits.type).scalar().elementOf(logits.type), "a loss per row");
}

LogicalResult SoftmaxCrossEntropyGradOp::verify() {
  Named logits{"logits", getLogits().getType()}, label{"label", getLabel().getType()};
  Named gradient{"gradient", getGradient().getType()};
  if (failed(verifyClasses(*this, logits, label)) ||
      failed(expectRate(*this, "label_smoothing", getLabelSmoothing().convertToDouble())) ||
      failed(expectSameDomain(*this, {logits, gradient})) ||
      failed(expect(*this, gradient, Form::alike(logits.type).scalar().elementOf(logits.type))))
    return failure();
  if (getLogSumExp() && failed(expectType(*this, {"log_sum_exp", getLogSumExp().getType()},
                                          gradient.type, "the type of 'gradient'")))
    return failure();
  if (getLogSumExp() && !getLabelSmoothing().isZero())
    return emitOpError("has a block of the classes ('log_sum_exp'), whose number of all classes "
                       "'label_smoothing' needs to know");
  if (!getLogSumExp() && getFirst() != 0)
    return emitOpError() << "has classes from 'first' = " << getFirst()
                         << " on, a block of all, and needs 'log_sum_exp'";
  return expectType(*this, {"result", getType()}, logits.type, "the type of 'logits'");
}

//===----------------------------------------------------------------------===//
// Catalogues
//===----------------------------------------------------------------------===//

/// Checks that `query` and `items` are vectors of one size, and of different domains.
static LogicalResult verifyQueryAndItems(Operation *op, Type query, Type items) {
  if (failed(expect(op, {"query", query}, Form::rows().vector().element(f32))))
    return failure();
  return expect(op, {"items", items}, Form::rows().shape(getRowShape(query)).element(f32),
                "vectors of the size of 'query'");
}

static LogicalResult expectCatalogue(Operation *op, StringRef name, Value rows) {
  return expectKind(op, name, getRowDomain(rows.getType()), {DomainKind::catalogue});
}

/// The type of items, with f32 for the bf16 of rows that were rounded before.
static Type unroundedItems(Type items) {
  auto type = cast<RankedTensorType>(items);
  return type.getElementType().isBF16() ? type.clone(Float32Type::get(type.getContext())) : type;
}

template <typename OpT> static LogicalResult verifySampledSoftmax(OpT op) {
  Named query{"query", op.getQuery().getType()}, positive{"positive", op.getPositive().getType()};
  if (failed(verifyQueryAndItems(op, query.type, unroundedItems(op.getItems().getType()))) ||
      failed(expectSameDomain(op, {query, positive})) ||
      failed(expect(op, positive, Form::alike(query.type).scalar().element(i64),
                    "a catalogue row each")))
    return failure();
  if (failed(expectPositive(op, "temperature", op.getTemperature().convertToDouble())))
    return failure();
  if (Value drawn = op.getDrawn()) {
    Form form = op.getShared() ? Form::shared() : Form::alike(query.type);
    if (failed(expect(op, {"drawn", drawn.getType()},
                      form.shape({static_cast<int64_t>(op.getNegatives())}).element(i64),
                      op.getShared() ? "the negatives of all rows" : "the negatives of each row")))
      return failure();
  }
  return expectStream(op, op.getStream());
}

/// Negatives are drawn from a catalogue, unless they are given.
template <typename OpT> static LogicalResult verifyDrawnFrom(OpT op) {
  return op.getDrawn() ? success() : expectCatalogue(op, "items", op.getItems());
}

LogicalResult SampledSoftmaxOp::verify() {
  if (failed(verifySampledSoftmax(*this)))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(getQuery().getType()).scalar().element(f32), "a loss per row");
}

LogicalResult SampledSoftmaxOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyDrawnFrom(*this);
}

LogicalResult SampledSoftmaxGradOp::verify() {
  Named query{"query", getQuery().getType()}, gradient{"gradient", getGradient().getType()};
  if (failed(verifySampledSoftmax(*this)) || failed(expectSameDomain(*this, {query, gradient})) ||
      failed(expect(*this, gradient, Form::alike(query.type).scalar().element(f32))) ||
      failed(
          expectType(*this, {"dquery", getDquery().getType()}, query.type, "the type of 'query'")))
    return failure();
  return expectType(*this, {"ditems", getDitems().getType()}, unroundedItems(getItems().getType()),
                    "the type of 'items'");
}

LogicalResult SampledSoftmaxGradOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyDrawnFrom(*this);
}

//===----------------------------------------------------------------------===//
// In-batch softmax
//===----------------------------------------------------------------------===//

/// Checks what in_batch_softmax and its gradient have in common.
template <typename OpT> static LogicalResult verifyInBatch(OpT op) {
  Named query{"query", op.getQuery().getType()}, item{"item", op.getItem().getType()};
  Named id{"id", op.getId().getType()};
  if (failed(expect(op, query, Form::rows().vector().element(f32))) ||
      failed(expectSameDomain(op, {query, item})) ||
      failed(expectType(op, item, query.type, "the type of 'query'")) ||
      failed(expectSameDomain(op, {query, id})) ||
      failed(expect(op, id, Form::alike(query.type).scalar().element(i64), "an item's id each")) ||
      failed(expectBeside(op, query, "log_q", op.getLogQ(), f32)) ||
      failed(expectBeside(op, query, "valid", op.getValid(), i1)))
    return failure();
  return expectPositive(op, "temperature", op.getTemperature().convertToDouble());
}

/// The rows of a portion: a catalogue has the same ones in each.
template <typename OpT> static LogicalResult expectPortionRows(OpT op) {
  return expectKind(op, "query", getRowDomain(op.getQuery().getType()),
                    {DomainKind::data, DomainKind::derived});
}

/// Checks what the forward op keeps for its gradient.
template <typename OpT> static LogicalResult expectKept(OpT op) {
  return expect(op, {"kept", op.getKept().getType()},
                Form::alike(op.getQuery().getType()).shape({2}).element(f32),
                "log Σ exp and a share of it");
}

LogicalResult InBatchSoftmaxOp::verify() {
  if (failed(verifyInBatch(*this)) || failed(expectKept(*this)))
    return failure();
  return expect(*this, {"result", getResult().getType()},
                Form::alike(getQuery().getType()).scalar().element(f32), "a loss per row");
}

LogicalResult InBatchSoftmaxOp::verifySymbolUses(SymbolTableCollection &) {
  return expectPortionRows(*this);
}

LogicalResult InBatchSoftmaxGradOp::verify() {
  Type query = getQuery().getType();
  if (failed(verifyInBatch(*this)) || failed(expectKept(*this)) ||
      failed(expect(*this, {"gradient", getGradient().getType()},
                    Form::alike(query).scalar().element(f32), "of the loss per row")) ||
      failed(expectType(*this, {"dquery", getDquery().getType()}, query, "the type of 'query'")))
    return failure();
  return expectType(*this, {"ditem", getDitem().getType()}, query, "the type of 'item'");
}

LogicalResult InBatchSoftmaxGradOp::verifySymbolUses(SymbolTableCollection &) {
  return expectPortionRows(*this);
}

//===----------------------------------------------------------------------===//
// Ids, scores, ranking
//===----------------------------------------------------------------------===//

LogicalResult ResolveOp::verify() {
  if (failed(expectIds(*this, getIds(), getValid())) ||
      failed(expect(*this, {"catalogue", getCatalogue().getType()},
                    Form::rows().scalar().element(i64), "the ids of a catalogue")))
    return failure();
  return expectType(*this, {"result", getType()}, getIds().getType(), "a catalogue row per id");
}

LogicalResult ResolveOp::verifySymbolUses(SymbolTableCollection &) {
  return expectCatalogue(*this, "catalogue", getCatalogue());
}

LogicalResult ScoresOp::verify() {
  Type query = getQuery().getType();
  if (failed(verifyQueryAndItems(*this, query, getItems().getType())))
    return failure();
  return expect(*this, {"result", getType()}, Form::alike(query).vector().element(f32),
                "a score per catalogue row");
}

LogicalResult ScoresOp::verifySymbolUses(SymbolTableCollection &) {
  return expectCatalogue(*this, "items", getItems());
}

LogicalResult ScoresGradOp::verify() {
  Named query{"query", getQuery().getType()}, gradient{"gradient", getGradient().getType()};
  if (failed(verifyQueryAndItems(*this, query.type, getItems().getType())) ||
      failed(expectSameDomain(*this, {query, gradient})) ||
      failed(expect(*this, gradient, Form::alike(query.type).vector().element(f32))) ||
      failed(
          expectType(*this, {"dquery", getDquery().getType()}, query.type, "the type of 'query'")))
    return failure();
  if (!getOnto().empty() && getOnto().size() != 2)
    return emitOpError() << "adds 'onto' a dquery and a ditems, but has " << getOnto().size()
                         << " values";
  if (!getOnto().empty() && (failed(expectType(*this, {"onto 0", getOnto()[0].getType()},
                                               query.type, "the type of 'query'")) ||
                             failed(expectType(*this, {"onto 1", getOnto()[1].getType()},
                                               getItems().getType(), "the type of 'items'"))))
    return failure();
  return expectType(*this, {"ditems", getDitems().getType()}, getItems().getType(),
                    "the type of 'items'");
}

LogicalResult ScoresGradOp::verifySymbolUses(SymbolTableCollection &) {
  return expectCatalogue(*this, "items", getItems());
}

/// Checks `exclude` of top_k and rank: catalogue rows in a list below each query row.
template <typename OpT> static LogicalResult verifyExclude(OpT op) {
  if (!op.getExclude())
    return success();
  return expect(op, {"exclude", op.getExclude().getType()}, Form::rows().scalar().element(i64),
                "catalogue rows");
}

template <typename OpT> static LogicalResult verifyExcludeDomain(OpT op) {
  if (failed(expectCatalogue(op, "items", op.getItems())))
    return failure();
  if (!op.getExclude() || !isInProgram(op))
    return success();
  FlatSymbolRefAttr query = getRowDomain(op.getQuery().getType());
  FlatSymbolRefAttr exclude = getRowDomain(op.getExclude().getType());
  if (parentOf(op, exclude) == query)
    return success();
  return op.emitOpError() << "'exclude' must have rows of a child of " << query
                          << ", the domain of 'query', but has rows of " << exclude;
}

LogicalResult TopKOp::verify() {
  Type query = getQuery().getType(), index = getIndex().getType();
  if (failed(verifyQueryAndItems(*this, query, getItems().getType())) ||
      failed(verifyExclude(*this)) ||
      failed(expect(*this, {"index", index}, Form::alike(query).vector().element(i64),
                    "the k best catalogue rows")))
    return failure();
  return expect(*this, {"score", getScore().getType()},
                Form::alike(query).shape(getRowShape(index)).element(f32), "a score per 'index'");
}

LogicalResult TopKOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyExcludeDomain(*this);
}

LogicalResult RankOp::verify() {
  Type target = getTarget().getType();
  if (failed(verifyQueryAndItems(*this, getQuery().getType(), getItems().getType())) ||
      failed(expect(*this, {"target", target}, Form::rows().scalar().element(i64),
                    "a catalogue row each")) ||
      failed(verifyExclude(*this)))
    return failure();
  return expectType(*this, {"result", getType()}, target, "a rank per target");
}

LogicalResult RankOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyExcludeDomain(*this)))
    return failure();
  FlatSymbolRefAttr query = getRowDomain(getQuery().getType());
  FlatSymbolRefAttr target = getRowDomain(getTarget().getType());
  if (target == query || !isInProgram(*this) || parentOf(*this, target) == query)
    return success();
  return emitOpError() << "'target' must have rows of " << query
                       << ", the domain of 'query', or of a child of it, but has rows of "
                       << target;
}

/// Checks that `rows` are rows of a domain with a parent. `what` names the lists in messages.
static LogicalResult expectLists(Operation *op, StringRef name, Value rows) {
  FlatSymbolRefAttr domain = getRowDomain(rows.getType());
  if (!isInProgram(op) || parentOf(op, domain))
    return success();
  return op->emitOpError() << "'" << name << "' must have rows of lists, but " << domain
                           << " has no parent";
}

LogicalResult RankInListOp::verify() {
  Named score{"score", getScore().getType()}, label{"label", getLabel().getType()};
  if (failed(expect(*this, score, Form::rows().scalar().element(f32), "a score per row")) ||
      failed(expectSameDomain(*this, {score, label})) ||
      failed(expectType(*this, label, score.type, "the type of 'score'")))
    return failure();
  if (getValid()) {
    Named valid{"valid", getValid().getType()};
    if (failed(expectSameDomain(*this, {score, valid})) ||
        failed(expect(*this, valid, Form::alike(score.type).scalar().element(i1))))
      return failure();
  }
  return expect(*this, {"result", getType()}, Form::alike(score.type).scalar().element(i64),
                "a rank per row");
}

LogicalResult RankInListOp::verifySymbolUses(SymbolTableCollection &) {
  return expectLists(*this, "score", getScore());
}

//===----------------------------------------------------------------------===//
// Losses, metrics, outputs
//===----------------------------------------------------------------------===//

LogicalResult LossOp::verify() {
  Named x{"x", getX().getType()};
  if (failed(expectNotEmpty(*this, "name", getName())) ||
      failed(expect(*this, x, Form::rows().scalar().element(f32), "a loss per row")) ||
      failed(expectBeside(*this, x, "weight", getWeight(), f32)) ||
      failed(expectBeside(*this, x, "valid", getValid(), i1)))
    return failure();
  return expectFinite(*this, "scale", getScale().convertToDouble());
}

LogicalResult ReportLossOp::verify() {
  Form scalar = Form::shared().scalar().element(f32);
  if (failed(expectNotEmpty(*this, "name", getName())) ||
      failed(expect(*this, {"sum", getSum().getType()}, scalar)) ||
      failed(expect(*this, {"weight", getWeight().getType()}, scalar)))
    return failure();
  return expectFinite(*this, "scale", getScale().convertToDouble());
}

LogicalResult RequireRangeOp::verify() {
  Named x{"x", getX().getType()};
  if (failed(expectNotEmpty(*this, "what", getWhat())) ||
      failed(expect(*this, x, Form::rows().scalar().element(i32 | i64 | f32 | f64),
                    "a number per row")) ||
      failed(expectBeside(*this, x, "weight", getWeight(), f32)) ||
      failed(expectBeside(*this, x, "valid", getValid(), i1)) ||
      failed(expectFinite(*this, "min", getMin().convertToDouble())))
    return failure();
  if (!getMax())
    return success();
  double min = getMin().convertToDouble(), max = getMax()->convertToDouble();
  if (failed(expectFinite(*this, "max", max)))
    return failure();
  if (min > max)
    return emitOpError() << "'min' must not be above 'max', but they are " << min << " and " << max;
  return success();
}

LogicalResult RequireRangeOp::verifySymbolUses(SymbolTableCollection &) {
  return getItems() ? expectCatalogue(*this, "items", getItems()) : success();
}

/// Cut-offs must be positive and ascending.
static LogicalResult verifyCutoffs(MetricOp op, ArrayRef<int64_t> at) {
  int64_t last = 0;
  for (int64_t cutoff : at) {
    if (cutoff <= last)
      return op.emitOpError() << "'at' must be positive and ascend, but has " << cutoff << " after "
                              << last;
    last = cutoff;
  }
  return success();
}

/// The content of a metric's `x`, for messages.
static StringRef describeMeasured(MetricKind kind) {
  switch (kind) {
  case MetricKind::ranking:
    return "a rank per row";
  case MetricKind::rmse:
  case MetricKind::mae:
    return "a prediction per row";
  default:
    return "a score per row";
  }
}

LogicalResult MetricOp::verify() {
  Named x{"x", getX().getType()};
  bool isRanking = getKind() == MetricKind::ranking;
  StringRef kind = stringifyMetricKind(getKind());
  if (failed(expectNotEmpty(*this, "name", getName())) ||
      failed(expect(*this, x, Form::rows().scalar().element(isRanking ? i64 : f32),
                    describeMeasured(getKind()))))
    return failure();
  if (isRanking == static_cast<bool>(getLabel()))
    return emitOpError() << "of kind " << kind
                         << (isRanking ? " takes no 'label'" : " needs 'label'");
  if (!isRanking && getAtAttr())
    return emitOpError() << "of kind " << kind << " has no cut-offs, but has 'at'";
  if (!isRanking && getPerList())
    return emitOpError() << "of kind " << kind << " measures rows, but has 'per_list'";
  bool isGrouped = getKind() == MetricKind::gauc;
  if (isGrouped != static_cast<bool>(getKey()))
    return emitOpError() << "of kind " << kind
                         << (isGrouped ? " needs 'key', whose rows form a group"
                                       : " takes no 'key', which is for gauc");
  if (getAt() && failed(verifyCutoffs(*this, *getAt())))
    return failure();
  if (failed(expectBeside(*this, x, "label", getLabel(), f32)) ||
      failed(expectBeside(*this, x, "key", getKey(), i64)) ||
      failed(expectBeside(*this, x, "valid", getValid(), i1)))
    return failure();
  if (!getPerList())
    return expectBeside(*this, x, "weight", getWeight(), f32);
  return getWeight() ? expect(*this, {"weight", getWeight().getType()},
                              Form::rows().scalar().element(f32), "a weight per list")
                     : success();
}

LogicalResult MetricOp::verifySymbolUses(SymbolTableCollection &) {
  if (!getPerList())
    return success();
  if (failed(expectLists(*this, "x", getX())))
    return failure();
  if (!getWeight() || !isInProgram(*this))
    return success();
  FlatSymbolRefAttr parent = parentOf(*this, getRowDomain(getX().getType()));
  FlatSymbolRefAttr weight = getRowDomain(getWeight().getType());
  if (parent == weight)
    return success();
  return emitOpError() << "'weight' must have rows of " << parent
                       << ", whose lists are measured, but has rows of " << weight;
}

LogicalResult OutputOp::verify() {
  Named x{"x", getX().getType()};
  if (failed(expectNotEmpty(*this, "name", getName())) || failed(expect(*this, x, Form::rows())))
    return failure();
  if (!getValid())
    return success();
  Named valid{"valid", getValid().getType()};
  if (failed(expectSameDomain(*this, {x, valid})))
    return failure();
  bool isPerRow = getRowShape(valid.type).empty();
  ArrayRef<int64_t> none;
  return expect(*this, valid,
                Form::alike(x.type).shape(isPerRow ? none : getRowShape(x.type)).element(i1),
                "a flag per row or per element of 'x'");
}
