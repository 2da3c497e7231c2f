//===- ModelBuilder.cpp - builds random models ----------------------------===//

#include "genrec/Fuzz/ModelBuilder.h"

#include "llvm/ADT/ScopeExit.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

ModelBuilder::ModelBuilder(MLIRContext *context, uint64_t seed, const RandomModelOptions &options)
    : random(seed), declarationRandom(~seed), builder(context), options(options) {
  context->getOrLoadDialect<GenRecDialect>();
  Location loc = builder.getUnknownLoc();
  module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  auto withBody = [&](StringRef name, ArrayRef<NamedAttribute> attributes) {
    OperationState state(loc, name);
    state.addAttributes(attributes);
    state.addRegion()->push_back(new Block());
    return builder.create(state);
  };
  SmallVector<NamedAttribute> attributes{text("sym_name", "random")};
  if (chance(30))
    attributes.push_back(f64("clip_norm", real(0.05, 2.0)));
  if (chance(20))
    attributes.push_back(f64("clip_value", real(0.05, 1.0)));
  if (chance(25)) {
    static constexpr StringLiteral kinds[] = {"constant", "linear", "cosine"};
    attributes.push_back(named(
        "schedule",
        builder.getDictionaryAttr({text("kind", pick(kinds)), i64("warmup", integer(0, 2)),
                                   i64("steps", integer(2, 6)), f64("final", real(0.0, 0.5))})));
  }
  model = cast<ModelOp>(withBody("genrec.model", attributes));
  builder.setInsertionPointToEnd(&model.getBody().front());
  program = cast<ProgramOp>(withBody("genrec.program", text("sym_name", "main")));
  builder.setInsertionPointToEnd(&program.getBody().front());
}

FlatSymbolRefAttr ModelBuilder::declareDomain(StringRef name, FlatSymbolRefAttr parent,
                                              DomainKind kind, StringRef column) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(program);
  SmallVector<NamedAttribute> attributes{
      text("sym_name", name), named("kind", DomainKindAttr::get(builder.getContext(), kind))};
  if (parent)
    attributes.push_back(named("parent", parent));
  if (!column.empty())
    attributes.push_back(text("column", column));
  make("domain", {}, {}, attributes);
  auto symbol = FlatSymbolRefAttr::get(builder.getContext(), name);
  domains.push_back({symbol, parent, kind, {}, {}});
  return symbol;
}

/// A value of `option`; nothing for its default.
std::optional<double> ModelBuilder::randomOption(const OptimizerOption &option, bool onTable) {
  switch (option.range) {
  case OptionRange::notNegative:
    return chance(40) ? std::optional(real(0.001, 0.1)) : std::nullopt;
  case OptionRange::positive:
    // Optimizers divide by a root plus `eps`. With one as small as the defaults, a rounding error
    // of a gradient near 0 would become a whole step.
    return real(1e-3, 1e-2);
  case OptionRange::rate:
    return chance(50) ? std::optional(real(0.5, 0.95)) : std::nullopt;
  case OptionRange::flag:
    return onTable && chance(30) ? std::optional(1.0) : std::nullopt;
  }
  llvm_unreachable("every range is handled");
}

Attribute ModelBuilder::randomOptimizer(bool onTable) {
  std::swap(random, declarationRandom);
  auto back = llvm::scope_exit([&] { std::swap(random, declarationRandom); });
  SmallVector<OptimizerKind> kinds = getOptimizerKinds();
  llvm::erase_if(kinds, [&](OptimizerKind kind) { return !onTable && hasRowStates(kind); });
  OptimizerKind kind = pick(kinds);
  SmallVector<NamedAttribute> options{f64("lr", real(0.01, 0.2))};
  for (const OptimizerOption &option : getOptimizerOptions(kind))
    if (std::optional<double> value = randomOption(option, onTable))
      options.push_back(f64(option.name, *value));
  // Only tables may be frozen: a loss that depends on nothing trained is an error.
  if (onTable && chance(5))
    options.push_back(f64("frozen", 1.0));
  return OptimizerAttr::get(builder.getContext(), kind, builder.getDictionaryAttr(options));
}

/// Sometimes adds rules for rows: bounds below and above the number of ids, and a ttl that expires
/// within the two steps of a run.
void ModelBuilder::addRowRules(SmallVectorImpl<NamedAttribute> &attributes, bool isFrozen) {
  std::swap(random, declarationRandom);
  auto back = llvm::scope_exit([&] { std::swap(random, declarationRandom); });
  if (isFrozen || !chance(20))
    return;
  // the rules of an earlier table, so that the two can be merged
  if (!lastRules.empty() && chance(50)) {
    llvm::append_range(attributes, lastRules);
    return;
  }
  size_t first = attributes.size();
  if (chance(60)) {
    attributes.push_back(i64("bounded", chance(70) ? integer(1, 5) : integer(16, 200)));
    if (chance(50))
      attributes.push_back(
          named("evict",
                EvictKindAttr::get(builder.getContext(), static_cast<EvictKind>(integer(0, 1)))));
  }
  if (chance(40)) {
    attributes.push_back(i64("ttl", integer(1, 2)));
    if (nextName % 2) // a step takes a second
      attributes.push_back(named("ttl_in_seconds", builder.getUnitAttr()));
  }
  if (chance(40))
    attributes.push_back(i64("admit_after", integer(1, 2)));
  lastRules.assign(attributes.begin() + first, attributes.end());
}

/// Sometimes stores rows in bf16, rounded in one of the ways, some with hot rows.
void ModelBuilder::addRowElement(SmallVectorImpl<NamedAttribute> &attributes, bool isFrozen) {
  std::swap(random, declarationRandom);
  auto back = llvm::scope_exit([&] { std::swap(random, declarationRandom); });
  if (!chance(15))
    return;
  attributes.push_back(
      named("element", RowElementAttr::get(builder.getContext(), RowElement::bf16)));
  if (chance(60))
    attributes.push_back(
        named("rounding",
              RowRoundingAttr::get(builder.getContext(), static_cast<RowRounding>(integer(0, 1)))));
  if (!isFrozen && nextName % 5 < 2) // draws nothing, so that later tables stay what they were
    attributes.push_back(i64("hot_after", 1 + nextName % 3));
}

FlatSymbolRefAttr ModelBuilder::declareTable(int64_t dim, int64_t idBits, bool distinctRows) {
  std::string name = "table" + std::to_string(nextName++);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(program);
  // Rarely constant: before training, constant rows cannot be told apart.
  bool isConstant = !distinctRows && chance(1);
  auto kind = isConstant ? InitKind::constant : static_cast<InitKind>(integer(2, 6));
  Attribute init =
      InitAttr::get(builder.getContext(), kind, builder.getF64FloatAttr(real(0.4, 1.0)));
  SmallVector<NamedAttribute> attributes{text("sym_name", name), i64("dim", dim),
                                         i64("id_bits", idBits), named("init", init),
                                         named("optimizer", randomOptimizer(/*onTable=*/true))};
  const bool isFrozen =
      cast<OptimizerAttr>(attributes.back().getValue()).getOption("frozen") != 0.0;
  addRowRules(attributes, isFrozen);
  addRowElement(attributes, isFrozen);
  make("table", {}, {}, attributes);
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

Value ModelBuilder::parameter(ArrayRef<int64_t> shape) {
  std::string name = "weight" + std::to_string(nextName++);
  auto type = RankedTensorType::get(shape, f32());
  auto kind = static_cast<InitKind>(integer(shape.size() == 2 ? 2 : 1, shape.size() == 2 ? 6 : 4));
  // Initial values that preserve the norm of rows through a layer.
  double scale = shape.size() == 2 ? real(0.8, 1.5) : real(0.4, 1.0);
  if (shape.size() == 2 && kind < InitKind::xavier_uniform)
    scale *= std::sqrt(2.0 / static_cast<double>(shape[0] + shape[1]));
  if (kind == InitKind::uniform)
    scale *= std::sqrt(3.0);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(program);
    Attribute init = InitAttr::get(builder.getContext(), kind, builder.getF64FloatAttr(scale));
    make("parameter", {}, {},
         {text("sym_name", name), named("type", TypeAttr::get(type)), named("init", init),
          named("optimizer", randomOptimizer(/*onTable=*/false))});
  }
  return value("param", type, {},
               named("parameter", FlatSymbolRefAttr::get(builder.getContext(), name)));
}

Operation *ModelBuilder::make(StringRef name, TypeRange results, ValueRange operands,
                              ArrayRef<NamedAttribute> attributes, ArrayRef<int32_t> segments) {
  // A distinct name per op, so that the ops fused in a kernel can be counted.
  Location loc = NameLoc::get(builder.getStringAttr("op" + std::to_string(nextOp++)));
  OperationState state(loc, name.contains('.') ? name.str() : ("genrec." + name).str());
  state.addTypes(results);
  state.addOperands(operands);
  state.addAttributes(attributes);
  if (!segments.empty())
    state.addAttribute("operandSegmentSizes", builder.getDenseI32ArrayAttr(segments));
  return builder.create(state);
}

Value ModelBuilder::feature(const DomainEntry &domain, StringRef column, Type element,
                            ArrayRef<NamedAttribute> attributes) {
  SmallVector<NamedAttribute> all(attributes);
  all.push_back(text("column", column));
  return value("feature", rows(domain.name, {}, element), domain.value, all);
}

std::string ModelBuilder::columnOf(FlatSymbolRefAttr domain, StringRef name) {
  std::optional<StringRef> lists = lookupDomain(model, domain).getColumn();
  return (lists ? lists->str() + "." : "") + name.str();
}

Value ModelBuilder::pool(Value x, PoolKind kind, const DomainEntry &to) {
  return value("pool", rows(to.name, getRowShape(x.getType()), f32()), {x, to.value},
               named("kind", PoolKindAttr::get(builder.getContext(), kind)));
}

Value ModelBuilder::concat(ArrayRef<Value> parts, FlatSymbolRefAttr domain) {
  int64_t size = 0;
  for (Value part : parts)
    size += getRowSize(part.getType());
  return value("concat_columns", rows(domain, {size}, f32()), parts);
}

Value ModelBuilder::resize(Value x, int64_t size) {
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  ArrayRef<int64_t> shape = getRowShape(x.getType());
  if (size == 0 ? shape.empty() : shape == ArrayRef<int64_t>(size))
    return x;
  if (shape.empty()) // [] to [size]: multiply with a parameter of that shape
    return value("mul", rows(domain, {size}, f32()), {x, parameter({size})});
  if (size == 0)
    return value("row_reduce", rows(domain, {}, f32()), x,
                 named("kind", ReduceKindAttr::get(builder.getContext(), ReduceKind::mean)));
  return value("linear", rows(domain, {size}, f32()), {x, parameter({shape[0], size})});
}

/// The value of `x` on a random batch; nothing if the interpreter fails.
std::optional<interpreter::Tensor> ModelBuilder::evaluate(Value x) {
  Operation *sink = make("output", {}, x, text("name", "looked at"));
  --nextOp;
  interpreter::RandomBatchOptions batch;
  batch.rows = 8;
  interpreter::State state(model, /*seed=*/1);
  llvm::Expected<interpreter::Results> results =
      interpreter::runProgram(program, interpreter::randomBatch(program, /*seed=*/1, batch), state,
                              interpreter::Mode::predict);
  sink->erase();
  if (results)
    return std::move(results->outputs.front().value);
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

/// Whether all rows equal the first, within a thousandth of the largest number.
template <class T> static bool hasEqualRows(const interpreter::Tensor &tensor) {
  const std::vector<T> &values = tensor.as<T>();
  double greatest = 0.0, apart = 0.0;
  for (auto [index, value] : llvm::enumerate(values)) {
    greatest = std::fmax(greatest, std::fabs(static_cast<double>(value)));
    apart = std::fmax(apart, std::fabs(static_cast<double>(value - values[index % tensor.width])));
  }
  return apart <= 1e-3 * greatest;
}

bool ModelBuilder::offer(Value x, bool mayBeEqual) {
  std::optional<interpreter::Tensor> tensor = evaluate(x);
  if (!tensor || !(tensor->isFloat() || tensor->isInteger()))
    return false;
  if (!mayBeEqual &&
      (tensor->isFloat() ? hasEqualRows<double>(*tensor) : hasEqualRows<int64_t>(*tensor)))
    return false;
  double squares = 0.0;
  if (tensor->isFloat())
    for (double value : tensor->floats())
      squares += value * value;
  double size = std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, tensor->size())));
  if (!std::isfinite(size))
    return false;
  if (size > 0.0 && (size < 0.25 || size > 4.0)) {
    // A power of 2 causes no rounding.
    auto scalar = RankedTensorType::get({}, f32());
    auto factor = static_cast<float>(std::exp2(-std::round(std::log2(size))));
    Value scale =
        value("constant", scalar, {}, named("value", DenseElementsAttr::get(scalar, factor)));
    x = value("mul", x.getType(), {x, scale});
  }
  values.push_back(x);
  return true;
}

Value ModelBuilder::find(Type element, FlatSymbolRefAttr domain, int rank) {
  SmallVector<Value> found;
  for (Value candidate : values) {
    auto type = cast<RankedTensorType>(candidate.getType());
    if (type.getElementType() == element && getRowDomain(type) &&
        (!domain || getRowDomain(type) == domain) &&
        (rank < 0 || static_cast<int>(getRowShape(type).size()) == rank))
      found.push_back(candidate);
  }
  return found.empty() ? Value() : pick(found);
}

DomainEntry &ModelBuilder::entry(FlatSymbolRefAttr name) {
  for (DomainEntry &domain : domains)
    if (domain.name == name)
      return domain;
  llvm_unreachable("every domain of a random model is declared");
}

DomainEntry *ModelBuilder::findDomain(llvm::function_ref<bool(const DomainEntry &)> accept) {
  SmallVector<DomainEntry *> found;
  for (DomainEntry &domain : domains)
    if (domain.value && accept(domain))
      found.push_back(&domain);
  return found.empty() ? nullptr : pick(found);
}
