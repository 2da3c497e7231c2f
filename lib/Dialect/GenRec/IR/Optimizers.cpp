//===- Optimizers.cpp - what each optimizer is ----------------------------===//
//
// An optimizer is its options, a function of `OptimizerStep` that builds its step, and an entry of
// `kRules`. The equations and the order of operations are those of torch.optim.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/Optimizers.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

using Option = OptimizerOption;

/// Options of all optimizers.
static constexpr Option kRate{"lr", OptionRange::notNegative, 1e-3};
static constexpr Option kFrozen{"frozen", OptionRange::flag, 0.0};

static constexpr Option kDecay{"weight_decay", OptionRange::notNegative, 0.0};
static constexpr Option kMomentum{"momentum", OptionRange::rate, 0.0, /*addsState=*/true};
static constexpr Option kBeta1{"beta1", OptionRange::rate, 0.9};
static constexpr Option kBeta2{"beta2", OptionRange::rate, 0.999};
static constexpr Option kRowSteps{"per_row_step", OptionRange::flag, 0.0, /*addsState=*/true,
                                  /*isForTables=*/true};

static constexpr Option kSgdOptions[] = {kMomentum, kDecay};
static constexpr Option kAdagradOptions[] = {
    kDecay,
    {"eps", OptionRange::positive, 1e-10},
    {"initial_accumulator", OptionRange::notNegative, 0.0}};
static constexpr Option kAdamOptions[] = {
    kDecay, {"eps", OptionRange::positive, 1e-8}, kBeta1, kBeta2, kRowSteps};
// Rows that are not in the batch do not decay, so for tables the default is no weight decay.
static constexpr Option kAdamwOptions[] = {
    {"weight_decay", OptionRange::notNegative, 1e-2, false, false, /*onTable=*/0.0},
    {"eps", OptionRange::positive, 1e-8},
    kBeta1,
    kBeta2,
    kRowSteps};
static constexpr Option kRmspropOptions[] = {
    kDecay, {"eps", OptionRange::positive, 1e-8}, {"alpha", OptionRange::rate, 0.99}, kMomentum};

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {
/// Builds the step of one row. `load` and `store` take the number of a slot: 0 is the weight, the
/// others are its states.
class OptimizerStep {
public:
  OptimizerStep(OpBuilder &builder, Location loc, OptimizerAttr optimizer, bool onTable, Value row,
                Value gradient, ValueRange stepValues)
      : b(builder, loc), optimizer(optimizer), onTable(onTable), row(row), gradient(gradient),
        rate(stepValues[0]), corrections(stepValues.drop_front()), type(gradient.getType()) {}

  void build(bool roundsStochastically) const;
  // Each returns the new weight and stores the new states.
  Value buildSgd(Value weight) const;
  Value buildAdagrad(Value weight) const;
  Value buildRowwiseAdagrad(Value weight) const;
  Value buildAdam(Value weight) const;
  Value buildRmsprop(Value weight) const;

private:
  double option(StringRef name) const { return optimizer.getOption(name, onTable); }
  Value scale(Value x, double factor) const { return b.mul(x, b.constant(x.getType(), factor)); }
  Value spread(Value scalar) const { return b.fit(scalar, bodyShape(type)); }
  Value divide(Value x, Value y) const { return b.make<arith::DivFOp>(x, y); }
  Value squareRoot(Value x) const { return b.make<math::SqrtOp>(x); }
  bool mayBeHot() const { return cast<RowType>(row.getType()).getHot(); }
  Value load(int64_t slot) const {
    return b.make<RowLoadOp>(type, row, slot, /*whole=*/slot == 0 && mayBeHot());
  }
  void store(Value value, int64_t slot) const {
    RowStoreOp::create(b.builder, b.loc, value, row, slot);
  }

  Value withDecay(Value weight) const;
  Value buildRowCorrection(Value count, double beta) const;

  RowBodyBuilder b;
  OptimizerAttr optimizer;
  bool onTable;
  Value row, gradient, rate;
  ValueRange corrections;
  Type type;
};
} // namespace

/// The gradient with L2 weight decay added.
Value OptimizerStep::withDecay(Value weight) const {
  double decay = option("weight_decay");
  return decay == 0.0 ? gradient : b.add(gradient, scale(weight, decay));
}

/// Slot 1: momentum.
Value OptimizerStep::buildSgd(Value weight) const {
  Value step = withDecay(weight);
  // The buffer is initially 0, so the first step sets it to the gradient, as in torch.optim.
  if (double momentum = option("momentum"); momentum != 0.0) {
    step = b.add(scale(load(1), momentum), step);
    store(step, 1);
  }
  return b.sub(weight, b.mul(spread(rate), step));
}

/// Slot 1: the sum of squared gradients.
Value OptimizerStep::buildAdagrad(Value weight) const {
  Value g = withDecay(weight);
  Value sum = b.add(load(1), b.mul(g, g));
  store(sum, 1);
  Value divisor = b.add(squareRoot(sum), b.constant(type, option("eps")));
  return b.sub(weight, b.mul(spread(rate), divide(g, divisor)));
}

/// FBGEMM's EXACT_ROWWISE_ADAGRAD: one factor for the whole row, from the mean of its squared
/// gradients. Slot 1: the sum of these means.
Value OptimizerStep::buildRowwiseAdagrad(Value weight) const {
  Value g = withDecay(weight);
  Value mean = scale(b.reduceAdd(b.mul(g, g)), 1.0 / static_cast<double>(bodyShape(type).front()));
  auto once = VectorType::get({1}, bodyElement(type));
  Value sum = b.add(b.make<RowLoadOp>(once, row, 1, /*whole=*/false), b.fit(mean, once.getShape()));
  store(sum, 1);
  Value root = squareRoot(b.make<vector::ExtractOp>(sum, ArrayRef<int64_t>{0}));
  Value factor = divide(rate, b.add(root, b.constant(root.getType(), option("eps"))));
  return b.sub(weight, b.mul(spread(factor), g));
}

/// 1 - beta^count with the row's step count: -expm1(count * log beta). 1 - exp(…) would lose
/// precision in f32: 1 - 0.999 has a relative error of 6e-5.
Value OptimizerStep::buildRowCorrection(Value count, double beta) const {
  Value power = b.make<math::ExpM1Op>(scale(count, std::log(beta)));
  return b.make<arith::NegFOp>(power);
}

/// Slots 1 and 2: first and second moment; 3: the number of the row's steps.
Value OptimizerStep::buildAdam(Value weight) const {
  bool isDecoupled = optimizer.getKind() == OptimizerKind::adamw;
  double beta1 = option("beta1"), beta2 = option("beta2");
  double decay = option("weight_decay");
  bool countsPerRow = option("per_row_step") != 0.0;
  Value g = isDecoupled ? gradient : withDecay(weight);
  if (isDecoupled && decay != 0.0) {
    Value kept = b.sub(b.constant(rate.getType(), 1.0), scale(rate, decay));
    weight = b.mul(weight, spread(kept));
  }
  Value first = load(1), second = load(2);
  first = b.add(first, scale(b.sub(g, first), 1.0 - beta1));
  second = b.add(scale(second, beta2), scale(b.mul(g, g), 1.0 - beta2));
  store(first, 1);
  store(second, 2);

  Value correction1, correction2;
  if (countsPerRow) {
    Value count = b.add(load(3), b.constant(type, 1.0));
    store(count, 3);
    correction1 = buildRowCorrection(count, beta1);
    correction2 = buildRowCorrection(count, beta2);
  } else {
    correction1 = corrections[0];
    correction2 = corrections[1];
  }
  // Step size and root have the shape of the corrections, so scalars are computed once per row.
  Value like = countsPerRow ? spread(rate) : rate;
  Value size = spread(divide(like, correction1));
  Value root = spread(squareRoot(correction2));
  Value divisor = b.add(divide(squareRoot(second), root), b.constant(type, option("eps")));
  return b.sub(weight, b.mul(size, divide(first, divisor)));
}

/// Slot 1: the mean of squared gradients; 2: momentum.
Value OptimizerStep::buildRmsprop(Value weight) const {
  double alpha = option("alpha");
  Value g = withDecay(weight);
  Value mean = b.add(scale(load(1), alpha), scale(b.mul(g, g), 1.0 - alpha));
  store(mean, 1);
  Value step = divide(g, b.add(squareRoot(mean), b.constant(type, option("eps"))));
  if (double momentum = option("momentum"); momentum != 0.0) {
    step = b.add(scale(load(2), momentum), step);
    store(step, 2);
  }
  return b.sub(weight, b.mul(spread(rate), step));
}

//===----------------------------------------------------------------------===//
// The optimizers
//===----------------------------------------------------------------------===//

namespace {
struct OptimizerRule {
  OptimizerKind kind;
  ArrayRef<Option> options;
  Value (OptimizerStep::*build)(Value weight) const;
  int64_t states = 0;              ///< besides those that options add
  bool hasRowStates = false;       ///< one value of a state per row, not per weight
  bool decaysStates = false;       ///< states change with gradient 0
  bool hasBiasCorrections = false; ///< Adam's, of the two moments
};
} // namespace

static const OptimizerRule kRules[] = {
    {OptimizerKind::sgd, kSgdOptions, &OptimizerStep::buildSgd},
    {OptimizerKind::adagrad, kAdagradOptions, &OptimizerStep::buildAdagrad, /*states=*/1},
    {OptimizerKind::rowwise_adagrad, kAdagradOptions, &OptimizerStep::buildRowwiseAdagrad,
     /*states=*/1, /*hasRowStates=*/true},
    {OptimizerKind::adam, kAdamOptions, &OptimizerStep::buildAdam, /*states=*/2,
     /*hasRowStates=*/false, /*decaysStates=*/true, /*hasBiasCorrections=*/true},
    {OptimizerKind::adamw, kAdamwOptions, &OptimizerStep::buildAdam, /*states=*/2,
     /*hasRowStates=*/false, /*decaysStates=*/true, /*hasBiasCorrections=*/true},
    {OptimizerKind::rmsprop, kRmspropOptions, &OptimizerStep::buildRmsprop, /*states=*/1,
     /*hasRowStates=*/false, /*decaysStates=*/true},
};

static const OptimizerRule &getRule(OptimizerKind kind) {
  const auto *found =
      llvm::find_if(kRules, [&](const OptimizerRule &rule) { return rule.kind == kind; });
  assert(found != std::end(kRules) && "every kind has a rule");
  return *found;
}

SmallVector<OptimizerKind> genrec::getOptimizerKinds() {
  return llvm::map_to_vector(kRules, [](const OptimizerRule &rule) { return rule.kind; });
}

ArrayRef<OptimizerOption> genrec::getOptimizerOptions(OptimizerKind kind) {
  return getRule(kind).options;
}

bool genrec::hasRowStates(OptimizerKind kind) { return getRule(kind).hasRowStates; }

SmallVector<OptimizerStepValue> genrec::getStepValues(OptimizerAttr optimizer) {
  SmallVector<OptimizerStepValue> values{{"learning_rate", optimizer.getOption("lr")}};
  if (getRule(optimizer.getKind()).hasBiasCorrections &&
      optimizer.getOption("per_row_step") == 0.0) {
    values.push_back({"bias_correction", optimizer.getOption("beta1")});
    values.push_back({"bias_correction", optimizer.getOption("beta2")});
  }
  return values;
}

bool genrec::changesWithoutGradient(OptimizerAttr optimizer, bool onTable) {
  const OptimizerRule &rule = getRule(optimizer.getKind());
  return rule.decaysStates || optimizer.getOption("weight_decay", onTable) != 0.0 ||
         llvm::any_of(rule.options, [&](const Option &option) {
           return option.addsState && optimizer.getOption(option.name, onTable) != 0.0;
         });
}

void OptimizerStep::build(bool roundsStochastically) const {
  Value weight = (this->*getRule(optimizer.getKind()).build)(load(0));
  if (roundsStochastically) {
    Value rounded = b.make<RowRoundOp>(
        weight, RowBitsOp::create(b.builder, b.loc,
                                  cast<VectorType>(type).clone(b.builder.getIntegerType(16)),
                                  b.builder.getI64IntegerAttr(kRowRoundingStream)));
    weight = mayBeHot() ? b.select(b.make<RowHotOp>(row), weight, rounded) : rounded;
  }
  store(weight, 0);
}

void genrec::buildOptimizerBody(OpBuilder &builder, Location loc, OptimizerAttr optimizer,
                                bool onTable, bool roundsStochastically, Value row, Value gradient,
                                ValueRange stepValues) {
  OptimizerStep(builder, loc, optimizer, onTable, row, gradient, stepValues)
      .build(roundsStochastically);
}

//===----------------------------------------------------------------------===//
// #genrec.optimizer
//===----------------------------------------------------------------------===//

static StringRef getRangeText(OptionRange range) {
  switch (range) {
  case OptionRange::notNegative:
    return "at least 0";
  case OptionRange::positive:
    return "greater than 0";
  case OptionRange::rate:
    return "in [0, 1)";
  case OptionRange::flag:
    return "0 or 1";
  }
  llvm_unreachable("every range is handled");
}

static bool isIn(OptionRange range, double value) {
  switch (range) {
  case OptionRange::notNegative:
    return value >= 0.0;
  case OptionRange::positive:
    return value > 0.0;
  case OptionRange::rate:
    return value >= 0.0 && value < 1.0;
  case OptionRange::flag:
    return value == 0.0 || value == 1.0;
  }
  llvm_unreachable("every range is handled");
}

/// All options of an optimizer, in the order in which messages list them.
static SmallVector<Option> getAllOptions(OptimizerKind kind) {
  SmallVector<Option> options{kRate};
  llvm::append_range(options, getOptimizerOptions(kind));
  options.push_back(kFrozen);
  return options;
}

LogicalResult OptimizerAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                    OptimizerKind kind, DictionaryAttr given) {
  StringRef kindName = stringifyOptimizerKind(kind);
  SmallVector<Option> options = getAllOptions(kind);
  for (NamedAttribute entry : given) {
    const Option *option = llvm::find_if(
        options, [&](const Option &candidate) { return candidate.name == entry.getName(); });
    if (option == options.end())
      return emitError() << "optimizer " << kindName << " has no option '"
                         << entry.getName().getValue() << "'; it has "
                         << llvm::join(llvm::map_range(
                                           options, [](const Option &each) { return each.name; }),
                                       ", ");
    auto value = dyn_cast<FloatAttr>(entry.getValue());
    if (!value || !value.getType().isF64() || !std::isfinite(value.getValueAsDouble()) ||
        !isIn(option->range, value.getValueAsDouble()))
      return emitError() << "option '" << option->name << "' of optimizer " << kindName
                         << " must be an f64, " << getRangeText(option->range) << ", but is "
                         << entry.getValue();
  }
  return success();
}

double OptimizerAttr::getOption(StringRef name, bool onTable) const {
  if (auto value = getOptions().getAs<FloatAttr>(name))
    return value.getValueAsDouble();
  for (const Option &option : getOptimizerOptions(getKind()))
    if (option.name == name)
      return onTable ? option.onTable : option.value;
  return name == kRate.name ? kRate.value : 0.0;
}

int64_t OptimizerAttr::getStateCount() const {
  if (getOption("frozen") != 0.0) // frozen values need no states
    return 0;
  const OptimizerRule &rule = getRule(getKind());
  return rule.states + llvm::count_if(rule.options, [&](const Option &option) {
           return option.addsState && getOption(option.name) != 0.0;
         });
}

bool OptimizerAttr::hasRowStates() const { return genrec::hasRowStates(getKind()); }
