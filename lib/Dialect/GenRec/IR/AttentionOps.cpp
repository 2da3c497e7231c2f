//===- AttentionOps.cpp - verifiers of attention and HSTU blocks ----------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// Checks the attributes of attention, its gradient and blocks.
template <typename OpT> static LogicalResult verifyOptions(OpT op) {
  double fixedLength = op.getFixedLength().convertToDouble();
  if (failed(expectRange(op, "window", op.getWindow(), 0)) ||
      failed(expectRange(op, "contextual", op.getContextual(), 0)) ||
      failed(expectNotNegative(op, "fixed_length", fixedLength)) ||
      failed(expectFinite(op, "scale", op.getScale().convertToDouble())) ||
      failed(expectRate(op, "dropout", op.getDropout().convertToDouble())) ||
      failed(expectStream(op, op.getStream())))
    return failure();
  if (op.getScore() == ScoreKind::softmax && fixedLength != 0.0)
    return op.emitOpError() << "'fixed_length' divides silu scores; softmax scores sum to 1, so it "
                               "must be 0, but is "
                            << op.getFixedLengthAttr().getValueAsDouble();
  if (op.getNextEventTime() && !op.getTimeBias())
    return op.emitOpError() << "'next_event_time' says how times are compared, but there is no "
                               "'time_bias'";
  return success();
}

/// Checks `target`: an integer per row of the parent of the lists of `rows`.
template <typename OpT> static LogicalResult verifyTarget(OpT op, Named rows) {
  if (!op.getTarget())
    return success();
  Type target = op.getTarget().getType();
  if (failed(expect(op, {"target", target}, Form::rows().scalar().element(i64),
                    "how many rows at the end of a list are targets")))
    return failure();
  FlatSymbolRefAttr list = getRowDomain(rows.type), parent = parentOf(op, list);
  if (!isInProgram(op) || getRowDomain(target) == parent)
    return success();
  return op.emitOpError() << "'target' has a row per list of " << list << ", so it must be rows of "
                          << "its parent, but is " << describe(target);
}

/// Checks the bias tables and `time`, which has the domain of `rows`.
template <typename OpT> static LogicalResult verifyBiases(OpT op, Named rows) {
  constexpr int64_t kMaxTimeBuckets = 128;
  Form table = Form::shared().vector().elementOf(rows.type);
  if (Value bias = op.getPositionBias()) {
    if (failed(expect(op, {"position_bias", bias.getType()}, table)))
      return failure();
    if (int64_t size = getRowSize(bias.getType()); size % 2 == 0)
      return op.emitOpError() << "'position_bias' must have an odd size, one middle for distance "
                                 "0, but has "
                              << size;
  }
  if (!op.getTimeBias() != !op.getTime())
    return op.emitOpError() << "needs 'time_bias' and 'time' together, but has only '"
                            << (op.getTime() ? "time" : "time_bias") << "'";
  if (!op.getTime())
    return success();
  if (failed(expect(op, {"time_bias", op.getTimeBias().getType()}, table)))
    return failure();
  if (int64_t size = getRowSize(op.getTimeBias().getType()); size > kMaxTimeBuckets)
    return op.emitOpError() << "'time_bias' must have at most " << kMaxTimeBuckets
                            << " buckets, but has " << size;
  Named time{"time", op.getTime().getType()};
  if (failed(expectSameDomain(op, {rows, time})))
    return failure();
  return expect(op, time, Form::alike(rows.type).scalar().element(i64), "seconds");
}

/// Checks q, k and v, then the other operands.
template <typename OpT> static LogicalResult verifyAttention(OpT op) {
  Named q{"q", op.getQ().getType()}, k{"k", op.getK().getType()}, v{"v", op.getV().getType()};
  Named unrounded{"q", unroundedType(op, op.getQ())};
  if (failed(expect(op, unrounded, Form::rows().vector().element(floats))) ||
      failed(expectSameDomain(op, {q, k, v})) ||
      failed(expectType(op, k, q.type, "the type of 'q'")) ||
      failed(expect(op, v, Form::alike(q.type).vector().elementOf(q.type))))
    return failure();
  int64_t heads = op.getHeads();
  for (const Named &value : {q, v})
    if (getRowSize(value.type) % heads != 0)
      return op.emitOpError() << "splits '" << value.name << "' into " << heads
                              << " heads, but it is " << describe(value.type);
  if (failed(verifyOptions(op)) || failed(verifyTarget(op, q)))
    return failure();
  return verifyBiases(op, unrounded);
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  return expectType(*this, {"result", getType()}, unroundedType(*this, getV()), "the type of 'v'");
}

/// Checks `out`, the gradient and the biases' gradients.
template <typename OpT> static LogicalResult verifyGradients(OpT op) {
  Named dOut{"gradient", op.getGradient().getType()};
  if (failed(expectType(op, {"out", op.getOut().getType()}, unroundedType(op, op.getV()),
                        "the type of 'v'")) ||
      failed(expectType(op, dOut, op.getV().getType(), "the type of 'v'")))
    return failure();
  for (auto [name, bias, gradient] :
       {std::tuple<StringRef, Value, Value>{"position_bias", op.getPositionBias(),
                                            op.getDpositionBias()},
        {"time_bias", op.getTimeBias(), op.getDtimeBias()}}) {
    if (!bias != !gradient)
      return op.emitOpError() << "must give 'd" << name << "' where, and only where, '" << name
                              << "' is an operand";
    if (bias && failed(expectType(op, {("d" + name).str(), gradient.getType()}, bias.getType(),
                                  "the type of '" + name + "'")))
      return failure();
  }
  return success();
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)) || failed(verifyGradients(*this)))
    return failure();
  Type q = unroundedType(*this, getQ()), v = unroundedType(*this, getV());
  if (failed(expectType(*this, {"dq", getDq().getType()}, q, "the type of 'q'")) ||
      failed(expectType(*this, {"dk", getDk().getType()}, q, "the type of 'k'")))
    return failure();
  return expectType(*this, {"dv", getDv().getType()}, v, "the type of 'v'");
}

/// Checks that `rest`, and q, k and v from `columns` on, are the columns of x, each once.
static LogicalResult verifyColumns(FusedAttentionGradOp op) {
  ArrayRef<int64_t> columns = op.getColumns();
  if (columns.size() != 3)
    return op.emitOpError() << "needs 'columns' of q, k and v in 'x', but has " << columns.size();
  SmallVector<std::pair<int64_t, int64_t>> parts; // where each begins, and its size
  for (auto [column, part] : llvm::zip_equal(columns, ValueRange(op->getOperands().take_front(3))))
    parts.emplace_back(column, getRowSize(part.getType()));
  if (op.getRest())
    parts.emplace_back(0, getRowSize(op.getRest().getType()));
  llvm::sort(parts);
  int64_t end = 0, size = getRowSize(op.getX().getType());
  for (auto [begin, width] : parts) {
    if (begin != end)
      return op.emitOpError() << "must give each column of 'x' one gradient, but column " << end
                              << " is followed by a part at column " << begin;
    end += width;
  }
  if (end != size)
    return op.emitOpError() << "gives gradients of " << end << " columns, but 'x' has " << size;
  return success();
}

LogicalResult FusedAttentionGradOp::verify() {
  if (failed(verifyAttention(*this)) || failed(verifyGradients(*this)))
    return failure();
  Type bf16 = BFloat16Type::get(getContext());
  Named q{"q", getQ().getType()}, x{"x", getX().getType()}, dx{"dx", getDx().getType()};
  if (failed(expectType(*this, q, cast<RankedTensorType>(q.type).clone(bf16),
                        "rounded to bf16 before")) ||
      failed(
          expect(*this, x, Form::alike(q.type).vector().elementOf(unroundedType(*this, getQ())))) ||
      failed(expectType(*this, dx, cast<RankedTensorType>(x.type).clone(bf16),
                        "the shape of 'x' in bf16")))
    return failure();
  if (getRest() && failed(expect(*this, {"rest", getRest().getType()},
                                 Form::alike(dx.type).vector().elementOf(dx.type))))
    return failure();
  return verifyColumns(*this);
}

LogicalResult HstuBlockOp::verify() {
  Named x{"x", getX().getType()};
  if (failed(expect(*this, x, Form::rows().vector().element(floats))))
    return failure();
  int64_t size = getRowSize(x.type);
  int64_t values = getHeads() * getDv(), keys = getHeads() * getQk();
  if (failed(expect(*this, {"uvqk", getUvqk().getType()},
                    Form::shared().shape({size, 2 * values + 2 * keys}).elementOf(x.type),
                    "d by 2 * heads * dv + 2 * heads * qk")) ||
      failed(expect(*this, {"out_weight", getOutWeight().getType()},
                    Form::shared().shape({values, size}).elementOf(x.type), "heads * dv by d")) ||
      failed(expect(*this, {"out_bias", getOutBias().getType()},
                    Form::shared().shape({size}).elementOf(x.type), "an element per column")))
    return failure();
  if (getScore() != ScoreKind::silu)
    return emitOpError() << "is defined with silu scores, but has "
                         << stringifyScoreKind(getScore());
  if (failed(verifyOptions(*this)) || failed(verifyTarget(*this, x)) ||
      failed(verifyBiases(*this, x)) ||
      failed(expectNotNegative(*this, "eps", getEps().convertToDouble())) ||
      failed(expectRate(*this, "linear_dropout", getLinearDropout().convertToDouble())))
    return failure();
  return expectType(*this, {"result", getType()}, x.type, "the type of 'x'");
}

//===----------------------------------------------------------------------===//
// Cross attention
//===----------------------------------------------------------------------===//

/// Checks the operands of cross attention and its gradient.
template <typename OpT> static LogicalResult verifyCrossInputs(OpT op) {
  Named q{"q", op.getQ().getType()}, k{"k", op.getK().getType()}, v{"v", op.getV().getType()};
  if (failed(expect(op, q, Form::rows().vector().element(f32))) ||
      failed(
          expect(op, k, Form::rows().shape(getRowShape(q.type)).element(f32), "as wide as 'q'")) ||
      failed(expect(op, v, Form::alike(k.type).vector().element(f32))))
    return failure();
  int64_t heads = op.getHeads();
  for (const Named &value : {q, v})
    if (getRowSize(value.type) % heads != 0)
      return op.emitOpError() << "splits '" << value.name << "' into " << heads
                              << " heads, but it is " << describe(value.type);
  return expectFinite(op, "scale", op.getScale().convertToDouble());
}

/// The list of the keys must be a child of the queries' domain or of its parent.
template <typename OpT> static LogicalResult verifyCrossLists(OpT op) {
  FlatSymbolRefAttr queries = getRowDomain(op.getQ().getType()),
                    keys = getRowDomain(op.getK().getType());
  FlatSymbolRefAttr above = lookupDomain(op, keys).getParentAttr();
  if (above && (above == queries || above == lookupDomain(op, queries).getParentAttr()))
    return success();
  return op.emitOpError() << "takes keys of a list below the queries or below their parent, but "
                          << keys << " is no such list of " << queries;
}

LogicalResult CrossAttentionOp::verify() {
  if (failed(verifyCrossInputs(*this)))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(getQ().getType()).shape(getRowShape(getV().getType())).element(f32),
                "a row of 'v' per row of 'q'");
}

LogicalResult CrossAttentionOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCrossLists(*this);
}

LogicalResult CrossAttentionGradOp::verify() {
  Type q = getQ().getType(), v = getV().getType();
  if (failed(verifyCrossInputs(*this)) ||
      failed(expect(*this, {"gradient", getGradient().getType()},
                    Form::alike(q).shape(getRowShape(v)).element(f32),
                    "a row of 'v' per row of 'q'")) ||
      failed(expectType(*this, {"dq", getDq().getType()}, q, "the type of 'q'")) ||
      failed(expectType(*this, {"dk", getDk().getType()}, getK().getType(), "the type of 'k'")))
    return failure();
  return expectType(*this, {"dv", getDv().getType()}, v, "the type of 'v'");
}

LogicalResult CrossAttentionGradOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyCrossLists(*this);
}
