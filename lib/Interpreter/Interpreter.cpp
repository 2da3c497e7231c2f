//===- Interpreter.cpp - runs a program op by op --------------------------===//

#include "genrec/Interpreter/Interpreter.h"

#include "Random.h"
#include "genrec/Interpreter/Evaluator.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

char EvaluationError::ID = 0;

void EvaluationError::log(raw_ostream &os) const {
  location.print(os);
  os << ": " << message;
}

llvm::Error interpreter::fail(Operation *op, const Twine &message) {
  return llvm::make_error<EvaluationError>(
      op->getLoc(), ("'" + op->getName().getStringRef() + "' " + message).str());
}

void interpreter::emitErrors(llvm::Error error, Location location) {
  llvm::handleAllErrors(
      std::move(error),
      [](const EvaluationError &e) { emitError(e.getLocation()) << e.getMessage(); },
      [&](const llvm::ErrorInfoBase &e) { emitError(location) << e.message(); });
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

std::optional<double> Results::loss() const {
  std::optional<double> sum;
  for (const LossResult &loss : losses)
    if (std::optional<double> mean = loss.mean())
      sum = sum.value_or(0.0) + loss.scale * *mean;
  return sum;
}

Mode interpreter::modeOf(ProgramOp program) {
  switch (program.getMode()) {
  case ProgramMode::all:
  case ProgramMode::train:
    return Mode::train;
  case ProgramMode::evaluate:
    return Mode::evaluate;
  case ProgramMode::predict:
    return Mode::predict;
  case ProgramMode::items:
    return Mode::items;
  }
  llvm_unreachable("every mode is handled");
}

const HandlerMap &interpreter::getHandlers() {
  static const HandlerMap handlers = [] {
    HandlerMap map;
    addDomainOps(map);
    addElementwiseOps(map);
    addListOps(map);
    addRowOps(map);
    addRankingOps(map);
    addAttentionOps(map);
    addLossOps(map);
    addCatalogueOps(map);
    addUpdateOps(map);
    addDistinctOps(map);
    addPickOps(map);
    addRankOps(map);
    addKernelOps(map);
    addGroupOps(map);
    addArithOps(map);
    return map;
  }();
  return handlers;
}

/// The function that evaluates ops of that name; null where there is none.
static Handler findHandler(OperationName name) {
  if (Handler handler = getHandlers().lookup(name))
    return handler;
  Dialect *dialect = name.getDialect();
  auto *evaluation =
      dialect ? dialect->getRegisteredInterface<EvaluationDialectInterface>() : nullptr;
  return evaluation ? evaluation->lookup(name) : nullptr;
}

bool interpreter::canEvaluate(OperationName name) {
  TypeID id = name.getTypeID();
  bool isDeclaration = id == TypeID::get<ModelOp>() || id == TypeID::get<DomainOp>() ||
                       id == TypeID::get<TableOp>() || id == TypeID::get<ParameterOp>() ||
                       id == TypeID::get<ProgramOp>() || id == TypeID::get<RowYieldOp>();
  return isDeclaration || findHandler(name);
}

llvm::Expected<Results> interpreter::runProgram(ProgramOp program, const Batch &batch, State &state,
                                                Mode mode, const RunOptions &options) {
  if (program.getMode() != ProgramMode::all && modeOf(program) != mode)
    return llvm::make_error<EvaluationError>(
        program.getLoc(), ("a program of mode " + stringifyProgramMode(program.getMode()) +
                           " cannot be run in another mode")
                              .str());
  if (options.portions > 1 && !options.faulty && isDistributed(program) && mode == Mode::train &&
      !options.forwardOnly)
    return runOnRanks(program, batch, state, options);
  return Evaluator(program, batch, state, mode, options).run();
}

//===----------------------------------------------------------------------===//
// A run
//===----------------------------------------------------------------------===//

Evaluator::Evaluator(ProgramOp program, const Batch &batch, State &state, Mode mode,
                     const RunOptions &options, RowSource *rows)
    : batch(batch), state(state), mode(mode), options(options),
      step(state.stepsDone + (mode == Mode::train ? 1 : 0)), program(program), rowSource(rows) {}

bool Evaluator::isWanted(Operation &op) {
  if (options.forwardOnly)
    return op.hasTrait<IsLoss>();
  // A program for all modes has the sinks of each, and outputs of a catalogue's rows among those of
  // predict.
  if (auto sink = dyn_cast<SinkOpInterface>(op); sink && program.getMode() == ProgramMode::all)
    return mode == Mode::predict    ? isa<OutputOp>(op)
           : mode == Mode::train    ? sink.isNeededIn(ProgramMode::train)
           : mode == Mode::evaluate ? sink.isNeededIn(ProgramMode::evaluate)
                                    : false;
  // A feature that drops its padding id acts when the domain's rows are built, so an unused one is
  // not evaluated.
  return !isa<FeatureOp>(op) && !wouldOpBeTriviallyDead(&op);
}

void Evaluator::markNeeded() {
  for (Operation &op : llvm::reverse(program.getBody().front())) {
    bool isUsed =
        llvm::any_of(op.getResults(), [&](Value result) { return pendingUses.contains(result); });
    if (!isUsed && !isWanted(op))
      continue;
    needed.insert(&op);
    for (Value operand : op.getOperands())
      ++pendingUses[operand];
  }
}

/// Keeps those needed ops that the fault reaches, and those that make domains.
void Evaluator::keepReached() {
  llvm::DenseSet<Operation *> reached;
  for (Operation &op : program.getBody().front()) {
    bool reads = llvm::any_of(op.getOperands(), [&](Value operand) {
      return operand.getDefiningOp() && reached.contains(operand.getDefiningOp());
    });
    bool makesDomain = llvm::any_of(op.getResultTypes(), llvm::IsaPred<DomainType>);
    if (reads || &op == options.faulty)
      reached.insert(&op);
    else if (!makesDomain)
      needed.erase(&op);
  }
}

llvm::Error Evaluator::begin() {
  markNeeded();
  if (options.sound)
    keepReached();
  // Domains of the data first: types of any op may name them.
  for (Operation &op : program.getBody().front())
    if (needed.contains(&op))
      for (Type type : op.getResultTypes()) {
        auto domainType = dyn_cast<DomainType>(type);
        FlatSymbolRefAttr name = domainType ? domainType.getDomain() : getRowDomain(type);
        DomainOp declaration = lookupDomain(program, name);
        if (declaration && (declaration.getKind() == DomainKind::data ||
                            declaration.getKind() == DomainKind::catalogue))
          if (llvm::Error error = domain(&op, name).takeError())
            return error;
      }
  return llvm::Error::success();
}

Results Evaluator::finish() {
  if (options.keepValues)
    for (auto &[value, tensor] : values)
      results.values.try_emplace(value, std::move(*tensor));
  results.metrics = std::move(metrics.values);
  return std::move(results);
}

llvm::Expected<Results> Evaluator::run() {
  if (llvm::Error error = begin())
    return error;
  for (Operation &op : program.getBody().front()) {
    if (!needed.contains(&op))
      continue;
    if (llvm::Error error = evaluate(&op))
      return error;
    release(op);
  }
  if (program.getMode() == ProgramMode::train && !options.forwardOnly) {
    ++state.stepsDone;
    state.evict(state.stepsDone);
  }
  return finish();
}

llvm::Error Evaluator::evaluate(Operation *op) {
  if (Handler handler = findHandler(op->getName()))
    return handler(*this, op);
  return fail(op, "cannot be evaluated by the interpreter");
}

void Evaluator::release(Operation &op) {
  if (options.keepValues)
    return;
  for (Value operand : op.getOperands())
    if (auto uses = pendingUses.find(operand); --uses->second == 0)
      values.erase(operand);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const Tensor &Evaluator::get(Value value) const {
  auto place = values.find(value);
  if (place == values.end() && options.sound)
    return options.sound->find(value)->second;
  assert(place != values.end() && "an operand that was not evaluated");
  return *place->second;
}

/// Rounds to the nearest bf16, ties to even.
static double roundToBf16(double value) {
  float single = static_cast<float>(value);
  if (single != single)
    return single;
  uint32_t bits = llvm::bit_cast<uint32_t>(single);
  bits += 0x7FFF + ((bits >> 16) & 1);
  return llvm::bit_cast<float>(bits & 0xFFFF0000);
}

static void roundFloats(Type element, std::vector<double> &values) {
  if (element.isF32())
    for (double &value : values)
      value = static_cast<float>(value);
  else if (element.isBF16())
    for (double &value : values)
      value = roundToBf16(value);
}

/// Wraps integers to the width of their type; i1 is 0 or 1.
static void wrapIntegers(Type element, std::vector<int64_t> &values) {
  auto type = dyn_cast<IntegerType>(element);
  unsigned width = type ? type.getWidth() : 64;
  if (width == 1)
    for (int64_t &value : values)
      value &= 1;
  else if (width < 64)
    for (int64_t &value : values)
      value = llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

void Evaluator::set(Value value, Tensor tensor) {
  Type element = getElementTypeOrSelf(value.getType());
  if (tensor.isInteger())
    wrapIntegers(element, tensor.integers());
  else if (tensor.isFloat() && options.precision == Precision::rounded)
    roundFloats(element, tensor.floats());
  else if (tensor.isFloat() && element.isF32() && options.precision == Precision::perturbed)
    perturb(value.getDefiningOp(), tensor.floats());
  if (options.faulty && value.getDefiningOp() == options.faulty)
    makeFaulty(element, tensor);
  values[value] = std::make_unique<Tensor>(std::move(tensor));
}

Tensor interpreter::makeTensor(Type type, int64_t rows) {
  Type element = getElementTypeOrSelf(type);
  int64_t width = 1;
  bool shared = false;
  if (isa<RankedTensorType>(type)) {
    width = getRowSize(type);
    shared = !getRowDomain(type);
  } else if (auto vector = dyn_cast<VectorType>(type)) {
    width = vector.getNumElements();
  }
  if (shared)
    rows = 1;
  if (isa<FloatType>(element))
    return Tensor::make<double>(rows, width, shared);
  if (isa<StringType>(element))
    return Tensor::make<std::string>(rows, width, shared);
  if (isa<RowType>(element))
    return Tensor::make<RowHandle>(rows, width, shared);
  return Tensor::make<int64_t>(rows, width, shared);
}

void interpreter::copyRow(const Tensor &x, int64_t from, Tensor &result, int64_t to) {
  std::visit(
      [&](const auto &source) {
        using Values = std::decay_t<decltype(source)>;
        auto &target = result.as<typename Values::value_type>();
        auto begin = source.begin() + (x.shared ? 0 : from) * x.width;
        std::copy(begin, begin + x.width, target.begin() + to * result.width);
      },
      x.data);
}

Tensor interpreter::repeatRows(const Tensor &x, int64_t rows) {
  if (!x.shared)
    return x;
  return std::visit(
      [&](const auto &source) {
        using Values = std::decay_t<decltype(source)>;
        Tensor result = Tensor::make<typename Values::value_type>(rows, x.width);
        for (int64_t row = 0; row < rows; ++row)
          copyRow(x, 0, result, row);
        return result;
      },
      x.data);
}

//===----------------------------------------------------------------------===//
// Random words, parameters, tables
//===----------------------------------------------------------------------===//

uint32_t Evaluator::word(int64_t stream, uint64_t row, uint64_t element) const {
  return randomWord(state.seed, step, static_cast<uint32_t>(stream), row, element);
}

double Evaluator::uniform(int64_t stream, uint64_t row, uint64_t element) const {
  return static_cast<double>(word(stream, row, element) >> 8) / 16777216.0;
}

uint16_t Evaluator::half(int64_t stream, uint64_t row, uint64_t element) const {
  return randomHalf(state.seed, step, static_cast<uint32_t>(stream), row, element);
}

bool Evaluator::keeps(double rate, int64_t stream, uint64_t row, uint64_t element) const {
  return static_cast<double>(word(stream, row, element)) >= rate * 4294967296.0;
}

ParameterState &Evaluator::parameter(StringRef name) {
  auto place = state.parameters.find(name);
  assert(place != state.parameters.end() && "the verifier checks names of parameters");
  return place->second;
}

ArrayRef<double> Evaluator::parameterBefore(StringRef name) {
  if (auto saved = parametersBefore.find(name); saved != parametersBefore.end())
    return saved->second;
  return parameter(name).value();
}

void Evaluator::saveParameter(StringRef name) {
  if (parametersBefore.find(name) == parametersBefore.end())
    parametersBefore[name.str()] = parameter(name).value().vec();
}

RowRange Evaluator::getOwnRows(ParameterRowsOp op) {
  const ParameterState &of = parameter(op.getParameter());
  int64_t rows = of.size / of.width;
  return rowSource ? rowSource->getOwnRows(*this, rows) : RowRange{0, rows};
}

TableState &Evaluator::table(StringRef name) {
  auto place = state.tables.find(name);
  assert(place != state.tables.end() && "the verifier checks names of tables");
  return place->second;
}

llvm::Expected<RowHandle> Evaluator::findRow(Operation *op, TableState &table, int64_t id) {
  return rowSource ? rowSource->findRow(*this, op, table.name, id)
                   : findRowIn(op, state, table, id);
}

llvm::Expected<RowHandle> Evaluator::findRowIn(Operation *op, State &of, TableState &table,
                                               int64_t id) {
  if (id < 0 || (id >> table.idBits) != 0)
    return fail(op, "has id " + Twine(id) + ", beyond the " + Twine(table.idBits) +
                        " bits of table @" + table.name);
  auto handleOf = [&](std::vector<double> &row, bool isHot = false) {
    return RowHandle{row.data(), table.dim, tableRowIdentity(table.name, id), isHot};
  };
  auto place = table.rows.find(id);
  // A frozen table gets no new rows. Only an id without a row asks whether its table is frozen.
  auto isFrozen = [&] {
    auto name = FlatSymbolRefAttr::get(op->getContext(), table.name);
    return lookupTable(op, name).getOptimizer().getOption("frozen") != 0.0;
  };
  bool mayCome = isTraining() && !options.forwardOnly;
  if (mayCome && (place != table.rows.end() ? table.rules.any() : !isFrozen()) &&
      of.admits(table, id, step))
    return handleOf(of.insertRow(table, id), table.isHot(id));
  if (place != table.rows.end())
    return handleOf(place->second, table.isHot(id));
  // One temporary row per id and step, also for an id that is not admitted yet.
  auto [temporary, isNew] = temporaryRows.try_emplace({&table, id});
  if (isNew)
    temporary->second = of.initialRow(table, id);
  return handleOf(temporary->second);
}

llvm::Expected<std::pair<TableState *, int64_t>>
Evaluator::findLogical(Operation *op, StringRef name, int64_t id) {
  auto merged = state.merged.find(name);
  if (merged == state.merged.end())
    return std::pair(&table(name), id);
  if (id == -1)
    return std::pair<TableState *, int64_t>(nullptr, -1);
  StringRef member = id < 0 ? StringRef() : merged->second.memberOf(id);
  if (member.empty())
    return fail(op, "has key " + Twine(id) + ", which no member of table @" + name + " owns");
  return std::pair(&table(member), merged->second.idOf(id));
}

llvm::Expected<RowHandle> Evaluator::findRow(Operation *op, StringRef name, int64_t id) {
  auto found = findLogical(op, name, id);
  if (!found)
    return found.takeError();
  auto [logical, own] = *found;
  return logical ? findRow(op, *logical, own) : RowHandle();
}
