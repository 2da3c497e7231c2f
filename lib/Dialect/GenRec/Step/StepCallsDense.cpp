//===- StepCallsDense.cpp - matrix products and attention as calls -------===//
//
// Lowers to genrec_rt/kernels/cpu/step_linear.h, step_attention.h and step_in_batch.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"
#include "genrec_rt/device_limits.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Appends the template argument Bf16, which is false unless it is given, for a product with
/// `bf16`.
static SmallVector<Attribute> withPrecision(SmallVector<Attribute> arguments, ProductOpInterface op,
                                            const EmitCBuilder &b) {
  if (op.getBf16())
    arguments.push_back(b.templateBool(true));
  return arguments;
}

LogicalResult genrec::lowerCall(LinearOp op, StageBuilder &stage) {
  Value x = op.getX(), weight = op.getWeight(), result = op.getResult();
  Value rows = stage.getRowsArgument(result),
        bias = stage.getOptionalPointer(op.getBias(), stage.at(op).f32());
  SmallVector<Value> operands = {stage.getStep(), rows, stage.getPointer(x), stage.getStride(x),
                                 stage.getPointer(weight), bias, stage.getPointer(result),
                                 stage.getStride(result)};
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::linear", operands,
             withPrecision({b.templateInteger(getRowSize(x.getType())),
                            b.templateInteger(getRowSize(result.getType())),
                            b.templateBool(op.getTransposed()),
                            b.templateBool(static_cast<bool>(op.getBias()))},
                           op, b));
  return success();
}

static StringRef getActivationName(Activation activation) {
  static constexpr StringLiteral names[] = {
      "kernels::Activation::none", "kernels::Activation::relu",    "kernels::Activation::silu",
      "kernels::Activation::gelu", "kernels::Activation::sigmoid", "kernels::Activation::tanh"};
  return names[static_cast<unsigned>(activation)];
}

LogicalResult genrec::lowerCall(FusedLinearOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Value x = op.getX(), weight = op.getWeight(), result = op.getResult(),
        rows = stage.getRowsArgument(result);
  auto getRows = [&](Value value) -> std::pair<Value, Value> {
    return {stage.getOptionalPointer(value, b.f32()), value ? stage.getStride(value) : b.integer(0)};
  };
  auto [residual, residualStride] = getRows(op.getResidual());
  auto [pre, preStride] = getRows(op.getPre());
  SmallVector<Value> operands = {stage.getStep(),
                                 rows,
                                 stage.getPointer(x),
                                 stage.getStride(x),
                                 stage.getPointer(weight),
                                 stage.getOptionalPointer(op.getBias(), b.f32()),
                                 residual,
                                 residualStride,
                                 stage.getPointer(result),
                                 stage.getStride(result),
                                 pre,
                                 preStride};
  b.callVoid("kernels::fusedLinear", operands,
             withPrecision({b.templateInteger(getRowSize(x.getType())),
                            b.templateInteger(getRowSize(result.getType())),
                            b.templateBool(op.getTransposed()),
                            b.templateName(getActivationName(op.getActivation())),
                            b.templateBool(static_cast<bool>(op.getBias())),
                            b.templateBool(static_cast<bool>(op.getResidual())),
                            b.templateBool(static_cast<bool>(op.getPre()))},
                           op, b));
  return success();
}

LogicalResult genrec::lowerCall(WeightGradientOp op, StageBuilder &stage) {
  Value x = op.getX(), y = op.getY();
  SmallVector<Value> operands = {stage.getStep(),
                                 stage.getRowsArgument(x),
                                 stage.getPointer(x),
                                 stage.getStride(x),
                                 stage.getPointer(y),
                                 stage.getStride(y),
                                 stage.getPointer(op.getResult())};
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::weightGradient", operands,
             withPrecision({b.templateInteger(getRowSize(x.getType())),
                            b.templateInteger(getRowSize(y.getType()))},
                           op, b));
  return success();
}

template <typename OpT>
static SmallVector<Attribute> getInteractionTemplate(OpT op, const EmitCBuilder &b) {
  int64_t count = op.getCount();
  return withPrecision({b.templateInteger(count),
                        b.templateInteger(getRowSize(op.getX().getType()) / count),
                        b.templateBool(op.getSelf())},
                       op, b);
}

LogicalResult genrec::lowerCall(DotInteractionOp op, StageBuilder &stage) {
  Value x = op.getX();
  SmallVector<Value> operands = {stage.getStep(), stage.getRowsArgument(x), stage.getPointer(x),
                                 stage.getStride(x), stage.getPointer(op.getResult())};
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::dotInteraction", operands, getInteractionTemplate(op, b));
  return success();
}

LogicalResult genrec::lowerCall(DotInteractionGradOp op, StageBuilder &stage) {
  Value x = op.getX(), gradient = op.getGradient();
  SmallVector<Value> operands = {stage.getStep(),
                                 stage.getRowsArgument(x),
                                 stage.getPointer(x),
                                 stage.getStride(x),
                                 stage.getPointer(gradient),
                                 stage.getStride(gradient),
                                 stage.getPointer(op.getResult())};
  EmitCBuilder b = stage.at(op);
  b.callVoid("kernels::dotInteractionGradient", operands, getInteractionTemplate(op, b));
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// A local struct whose fields are assigned one by one.
struct Record {
  const EmitCBuilder &b;
  Value place;

  Record(const EmitCBuilder &b, StringRef type)
      : b(b), place(b.variable(b.opaque(type), b.templateName("{}"))) {}
  void set(StringRef field, Value value) const {
    b.assign(b.member(place, field, value.getType()), value);
  }
};
} // namespace

/// Whether q, k and v, and with them the gradient of the result, were rounded before.
template <typename OpT> static bool hasRoundedFactors(OpT op) {
  return getElementTypeOrSelf(op.getQ().getType()).isBF16();
}

/// The record of factors that were rounded before, which calls on a device take last.
template <typename OpT>
static Record makeRoundedFactors(OpT op, StageBuilder &stage, const EmitCBuilder &b) {
  Record rounded(b, "kernels::RoundedFactors");
  for (auto [name, value] :
       {std::tuple("q", op.getQ()), std::tuple("k", op.getK()), std::tuple("v", op.getV())})
    rounded.set(name, stage.getPointer(value));
  return rounded;
}

/// What kernels of a device have in shared memory of a head.
template <typename OpT>
static LogicalResult checkHeadColumns(OpT op, StageBuilder &stage, int64_t most) {
  int64_t columns = (getRowSize(op.getQ().getType()) + getRowSize(op.getV().getType())) /
                    static_cast<int64_t>(op.getHeads());
  if (!stage.target.hasDevice || columns <= most)
    return success();
  return op.emitOpError() << "has heads of " << columns
                          << " columns, of keys and of values together, but a device has room for "
                          << most << "; use more heads, or --target=cpu";
}

template <typename OpT>
static LogicalResult setAttentionInputs(OpT op, StageBuilder &stage, const EmitCBuilder &b,
                                        const Record &args) {
  FlatSymbolRefAttr symbol = getRowDomain(op.getQ().getType());
  if (!lookupDomain(op, symbol).getParentAttr())
    return op.emitOpError() << "needs rows of lists, but @" << symbol.getValue() << " is a root";
  if (failed(checkHeadColumns(op, stage, rt::kMostHeadColumns)))
    return failure();
  Value domain = stage.getDomain(symbol);
  Type genrecDomain = b.opaque("const genrec_domain");
  if (stage.target.hasDevice) // which counts lists there
    args.set("domain", b.cast(domain, b.pointer(genrecDomain)));
  Value parent = b.load(b.memberOf(domain, "parent_domain", b.pointer(genrecDomain)));
  args.set("parents", b.load(b.memberOf(parent, "count", b.i64())));
  args.set("offsets", b.load(b.memberOf(domain, "offsets", b.pointer(b.i64()))));
  args.set("maxLength", b.load(b.memberOf(domain, "max_length", b.i64())));
  for (auto [name, stride, value] :
       {std::tuple("q", "ldQ", op.getQ()), std::tuple("k", "ldK", op.getK()),
        std::tuple("v", "ldV", op.getV())}) {
    if (!hasRoundedFactors(op))
      args.set(name, stage.getPointer(value));
    args.set(stride, stage.getStride(value));
  }
  args.set("scale", b.floating(op.getScale().convertToDouble()));
  if (op.getScore() == ScoreKind::silu)
    args.set("fixedLength", b.floating(op.getFixedLength().convertToDouble()));
  if (op.getWindow() > 0)
    args.set("window", b.integer(op.getWindow()));
  if (op.getContextual() > 0)
    args.set("contextual", b.integer(op.getContextual()));
  if (op.getTarget())
    args.set("targets", stage.getPointer(op.getTarget()));
  for (auto [name, count, bias] :
       {std::tuple("positionBias", "positionBuckets", op.getPositionBias()),
        std::tuple("timeBias", "timeBuckets", op.getTimeBias())})
    if (bias) {
      args.set(name, stage.getPointer(bias));
      args.set(count, b.integer(getRowSize(bias.getType())));
    }
  if (op.getTimeBias()) {
    args.set("timestamps", stage.getPointer(op.getTime()));
    args.set("nextEventTime", b.literal(op.getNextEventTime() ? "true" : "false", b.i1()));
  }
  if (double rate = op.getDropout().convertToDouble()) {
    args.set("identity", b.load(b.memberOf(domain, "identity", b.pointer(b.u64()))));
    args.set("random", b.call("kernels::randomStream", b.opaque("kernels::RandomStream"),
                              {stage.getStep(), b.integer(op.getStream(), b.u32())}));
    args.set("dropProbability", b.floating(rate, b.f64()));
  }
  return success();
}

template <typename OpT>
static SmallVector<Attribute> getAttentionTemplate(OpT op, const EmitCBuilder &b) {
  int64_t heads = op.getHeads();
  bool isSilu = op.getScore() == ScoreKind::silu;
  return withPrecision(
      {b.templateInteger(heads), b.templateInteger(getRowSize(op.getQ().getType()) / heads),
       b.templateInteger(getRowSize(op.getV().getType()) / heads),
       b.templateName(isSilu ? "kernels::ScoreKind::silu" : "kernels::ScoreKind::softmax"),
       b.templateBool(op.getCausal()), b.templateBool(op.getWindow() > 0),
       b.templateBool(static_cast<bool>(op.getPositionBias())),
       b.templateBool(static_cast<bool>(op.getTimeBias())),
       b.templateBool(op.getDropout().convertToDouble() > 0),
       b.templateBool(op.getContextual() > 0 || op.getTarget())},
      op, b);
}

/// Passes the buffer of log Σ exp that the forward op `op` keeps for its gradient.
static void setLogSumExp(Operation *op, StageBuilder &stage, const EmitCBuilder &b,
                         const Record &args) {
  if (int64_t number = getOwnBuffer(op, kLogSumExpSlot); number >= 0)
    args.set("logSumExp", stage.getBuffer(number, b.f32(), "log_sum_exp"));
}

LogicalResult genrec::lowerCall(AttentionOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  EmitCBuilder named = b.named("attention");
  Record args(named, "kernels::AttentionArgs");
  if (failed(setAttentionInputs(op, stage, b, args)))
    return failure();
  args.set("out", stage.getPointer(op.getResult()));
  args.set("ldOut", stage.getStride(op.getResult()));
  setLogSumExp(op, stage, b, args);
  SmallVector<Value> operands = {stage.getStep(), b.addressOf(args.place)};
  if (hasRoundedFactors(op)) {
    EmitCBuilder namedRounded = b.named("rounded");
    operands.push_back(b.addressOf(makeRoundedFactors(op, stage, namedRounded).place));
  }
  b.callVoid("kernels::attention", operands, getAttentionTemplate(op, b));
  return success();
}

/// Sets what gradients of attention read, and those of biases.
template <typename OpT>
static LogicalResult setGradientInputs(OpT op, StageBuilder &stage, const EmitCBuilder &b,
                                       const Record &args, const Record &gradients) {
  if (failed(setAttentionInputs(op, stage, b, args)))
    return failure();
  args.set("out", stage.getPointer(op.getOut()));
  args.set("ldOut", stage.getStride(op.getOut()));
  if (op.getScore() == ScoreKind::softmax) {
    auto forward = op.getOut().template getDefiningOp<AttentionOp>();
    if (!forward)
      return op.emitOpError("needs 'out' to be the result of genrec.attention");
    setLogSumExp(forward, stage, b, args);
  }
  if (!hasRoundedFactors(op))
    gradients.set("dOut", stage.getPointer(op.getGradient()));
  gradients.set("ldDOut", stage.getStride(op.getGradient()));
  if (Value bias = op.getDpositionBias())
    gradients.set("dPositionBias", stage.getPointer(bias));
  if (Value bias = op.getDtimeBias())
    gradients.set("dTimeBias", stage.getPointer(bias));
  return success();
}

/// The record of all factors of gradients that were rounded before.
template <typename OpT>
static Value makeRoundedGradientFactors(OpT op, StageBuilder &stage, const EmitCBuilder &b) {
  EmitCBuilder named = b.named("rounded");
  Record rounded = makeRoundedFactors(op, stage, named);
  rounded.set("dOut", stage.getPointer(op.getGradient()));
  return b.addressOf(rounded.place);
}

LogicalResult genrec::lowerCall(AttentionGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  EmitCBuilder named = b.named("attention"), namedGradients = b.named("gradients");
  Record args(named, "kernels::AttentionArgs");
  Record gradients(namedGradients, "kernels::AttentionGradients");
  if (failed(setGradientInputs(op, stage, b, args, gradients)))
    return failure();
  for (auto [name, stride, value] :
       {std::tuple("dQ", "ldDQ", op.getDq()), std::tuple("dK", "ldDK", op.getDk()),
        std::tuple("dV", "ldDV", op.getDv())}) {
    gradients.set(name, stage.getPointer(value));
    gradients.set(stride, stage.getStride(value));
  }
  SmallVector<Value> operands = {stage.getStep(), b.addressOf(args.place),
                                 b.addressOf(gradients.place)};
  if (hasRoundedFactors(op))
    operands.push_back(makeRoundedGradientFactors(op, stage, b));
  b.callVoid("kernels::attentionGradient", operands, getAttentionTemplate(op, b));
  return success();
}

LogicalResult genrec::lowerCall(FusedAttentionGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  EmitCBuilder named = b.named("attention"), namedGradients = b.named("gradients"),
               namedJoined = b.named("joined");
  Record args(named, "kernels::AttentionArgs");
  Record gradients(namedGradients, "kernels::AttentionGradients");
  if (failed(setGradientInputs(op, stage, b, args, gradients)))
    return failure();
  Value rounded = makeRoundedGradientFactors(op, stage, b);
  Record joined(namedJoined, "kernels::JoinedGradients");
  joined.set("x", stage.getPointer(op.getX()));
  joined.set("ldX", stage.getStride(op.getX()));
  joined.set("dx", stage.getPointer(op.getDx()));
  joined.set("width", b.integer(getRowSize(op.getDx().getType())));
  static constexpr StringLiteral names[] = {"q", "k", "v"};
  for (auto [name, column] : llvm::zip_equal(names, op.getColumns()))
    joined.set(name, b.integer(column));
  if (Value rest = op.getRest()) {
    joined.set("rest", stage.getPointer(rest));
    joined.set("ldRest", stage.getStride(rest));
    joined.set("restWidth", b.integer(getRowSize(rest.getType())));
  }
  b.callVoid("kernels::joinedAttentionGradient",
             {stage.getStep(), b.addressOf(args.place), b.addressOf(gradients.place), rounded,
              b.addressOf(joined.place)},
             getAttentionTemplate(op, b));
  return success();
}

template <typename OpT>
static SmallVector<Attribute> getCrossTemplate(OpT op, const EmitCBuilder &b) {
  int64_t heads = op.getHeads();
  return withPrecision({b.templateInteger(heads),
                        b.templateInteger(getRowSize(op.getQ().getType()) / heads),
                        b.templateInteger(getRowSize(op.getV().getType()) / heads)},
                       op, b);
}

/// Sets the inputs of cross attention, for the forward op or its gradient.
template <typename OpT>
static LogicalResult setCrossInputs(OpT op, StageBuilder &stage, const EmitCBuilder &b,
                                    const Record &args) {
  if (failed(checkHeadColumns(op, stage, rt::kMostCrossHeadColumns)))
    return failure();
  args.set("queries", stage.getDomainOf(op.getQ()));
  args.set("keys", stage.getDomainOf(op.getK()));
  for (auto [name, stride, value] :
       {std::tuple("q", "ldQ", op.getQ()), std::tuple("k", "ldK", op.getK()),
        std::tuple("v", "ldV", op.getV())}) {
    args.set(name, stage.getPointer(value));
    args.set(stride, stage.getStride(value));
  }
  args.set("scale", b.floating(op.getScale().convertToDouble(), b.f32()));
  return success();
}

LogicalResult genrec::lowerCall(CrossAttentionOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op), named = b.named("attention");
  Record args(named, "kernels::CrossAttentionArgs");
  if (failed(setCrossInputs(op, stage, b, args)))
    return failure();
  b.callVoid("kernels::crossAttention",
             {stage.getStep(), b.addressOf(args.place), stage.getPointer(op.getResult())},
             getCrossTemplate(op, b));
  return success();
}

LogicalResult genrec::lowerCall(CrossAttentionGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op), named = b.named("attention");
  Record args(named, "kernels::CrossAttentionArgs");
  if (failed(setCrossInputs(op, stage, b, args)))
    return failure();
  b.callVoid("kernels::crossAttentionGradient",
             {stage.getStep(), b.addressOf(args.place), stage.getPointer(op.getGradient()),
              stage.getStride(op.getGradient()), stage.getPointer(op.getDq()),
              stage.getPointer(op.getDk()), stage.getPointer(op.getDv())},
             getCrossTemplate(op, b));
  return success();
}

//===----------------------------------------------------------------------===//
// In-batch softmax
//===----------------------------------------------------------------------===//

/// The record of the inputs of in_batch_softmax, for the forward op or its gradient.
template <typename OpT>
static Record makeInBatchInputs(OpT op, StageBuilder &stage, const EmitCBuilder &b) {
  Record args(b, "kernels::InBatchArgs");
  args.set("rows", stage.getDomainOf(op.getQuery()));
  args.set("size", b.integer(getRowSize(op.getQuery().getType())));
  for (auto [name, stride, value] : {std::tuple("query", "ldQuery", op.getQuery()),
                                     std::tuple("item", "ldItem", op.getItem())}) {
    args.set(name, stage.getPointer(value));
    args.set(stride, stage.getStride(value));
  }
  args.set("id", stage.getPointer(op.getId()));
  if (op.getLogQ())
    args.set("logQ", stage.getPointer(op.getLogQ()));
  if (op.getValid()) // i1 buffers hold a byte per row
    args.set("valid", b.cast(stage.getPointer(op.getValid()), b.pointer(b.u8())));
  args.set("temperature", b.floating(op.getTemperature().convertToDouble(), b.f32()));
  return args;
}

LogicalResult genrec::lowerCall(InBatchSoftmaxOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op), named = b.named("in_batch");
  Record args = makeInBatchInputs(op, stage, named);
  b.callVoid("kernels::inBatchSoftmax",
             {stage.getStep(), b.addressOf(args.place), stage.getPointer(op.getResult()),
              stage.getPointer(op.getKept())});
  return success();
}

LogicalResult genrec::lowerCall(InBatchSoftmaxGradOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op), named = b.named("in_batch");
  Record args = makeInBatchInputs(op, stage, named);
  b.callVoid("kernels::inBatchSoftmaxGradient",
             {stage.getStep(), b.addressOf(args.place), stage.getPointer(op.getKept()),
              stage.getPointer(op.getGradient()), stage.getPointer(op.getDquery()),
              stage.getPointer(op.getDitem())});
  return success();
}
