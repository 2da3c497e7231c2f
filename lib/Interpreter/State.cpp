//===- State.cpp - parameters, tables, learning rate ----------------------===//

#include "genrec/Interpreter/State.h"

#include "Random.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <tuple>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

double Schedule::factor(uint64_t step) const {
  double t = static_cast<double>(step), begin = static_cast<double>(warmup);
  if (t < begin)
    return t / begin;
  if (kind == "constant" || steps <= warmup)
    return 1.0;
  double progress = std::min(1.0, (t - begin) / static_cast<double>(steps - warmup));
  if (kind == "linear")
    return 1.0 + (final - 1.0) * progress;
  return final + (1.0 - final) * (1.0 + std::cos(M_PI * progress)) / 2.0;
}

static Schedule readSchedule(DictionaryAttr attributes) {
  Schedule schedule;
  if (!attributes)
    return schedule;
  if (auto kind = attributes.getAs<StringAttr>("kind"))
    schedule.kind = kind.str();
  if (auto warmup = attributes.getAs<IntegerAttr>("warmup"))
    schedule.warmup = warmup.getInt();
  if (auto steps = attributes.getAs<IntegerAttr>("steps"))
    schedule.steps = steps.getInt();
  if (auto final = attributes.getAs<FloatAttr>("final"))
    schedule.final = final.getValueAsDouble();
  return schedule;
}

static ParameterState makeParameter(ParameterOp declaration, uint64_t seed) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(declaration.getType()).getShape();
  int64_t columns = shape.empty() ? 1 : shape.back();
  int64_t rows = shape.size() == 2 ? shape.front() : 1;
  OptimizerAttr optimizer = declaration.getOptimizer();
  ParameterState parameter;
  parameter.size = rows * columns;
  parameter.width = columns;
  parameter.states = optimizer.getStateCount();
  parameter.memory.assign((1 + parameter.states) * parameter.size,
                          optimizer.getOption("initial_accumulator"));
  llvm::MutableArrayRef<double> value = parameter.value();
  for (int64_t row = 0; row < rows; ++row)
    fillInitialRow(declaration.getInit(), seed, declaration.getSymName(), row,
                   static_cast<double>(rows), static_cast<double>(columns),
                   value.slice(row * columns, columns));
  return parameter;
}

State::State(ModelOp model, uint64_t seed)
    : seed(seed), schedule(readSchedule(model.getScheduleAttr())) {
  for (Operation &op : model.getBody().front()) {
    if (auto declaration = dyn_cast<ParameterOp>(op))
      parameters.emplace(declaration.getSymName().str(), makeParameter(declaration, seed));
    auto declaration = dyn_cast<TableOp>(op);
    if (!declaration)
      continue;
    if (ArrayAttr members = declaration.getMembersAttr()) {
      MergedTable &table = merged[declaration.getSymName().str()];
      table.keyBits = declaration.getKeyBits();
      for (auto member : members.getAsRange<FlatSymbolRefAttr>())
        table.members.push_back(member.getValue().str());
      continue;
    }
    OptimizerAttr optimizer = declaration.getOptimizer();
    TableState &table = tables[declaration.getSymName().str()];
    table.name = declaration.getSymName().str();
    table.dim = declaration.getDim();
    table.stateFloats = optimizer.getStateFloats(table.dim);
    table.rules = {static_cast<int64_t>(declaration.getBounded().value_or(0)),
                   declaration.getEvict() == EvictKind::lfu,
                   declaration.getTtlSteps().value_or(0),
                   declaration.getTtlSeconds().value_or(0),
                   static_cast<int64_t>(declaration.getAdmitAfter().value_or(0)),
                   static_cast<int64_t>(declaration.getHotAfter().value_or(0))};
    table.idBits = declaration.getIdBits();
    table.element = declaration.getElement();
    table.roundsStochastically = declaration.roundsStochastically();
    table.initialAccumulator = optimizer.getOption("initial_accumulator", /*onTable=*/true);
    table.init = declaration.getInit();
  }
}

std::vector<double> State::initialRow(const TableState &table, int64_t id) const {
  std::vector<double> row(table.dim + table.stateFloats, table.initialAccumulator);
  fillInitialRow(table.init, seed, table.name, static_cast<uint64_t>(id), /*fanIn=*/1.0,
                 static_cast<double>(table.dim),
                 llvm::MutableArrayRef<double>(row).take_front(table.dim));
  if (table.element == RowElement::bf16)
    for (double &value : llvm::MutableArrayRef<double>(row).take_front(table.dim))
      value = nearestBf16(value);
  return row;
}

std::vector<double> &State::insertRow(TableState &table, int64_t id) const {
  auto [place, isNew] = table.rows.try_emplace(id);
  if (isNew)
    place->second = initialRow(table, id);
  return place->second;
}

//===----------------------------------------------------------------------===//
// Admission and eviction of rows
//===----------------------------------------------------------------------===//

bool State::admits(TableState &table, int64_t id, uint64_t step) const {
  if (!table.rules.any())
    return true;
  bool hasRow = table.rows.count(id);
  Sighting &sighting = hasRow ? table.seen[id] : table.waiting[id];
  if (sighting.lastStep != step)
    sighting = {step, sighting.steps + 1};
  if (hasRow)
    return true;
  if (sighting.steps < table.rules.admitAfter)
    return false;
  table.waiting.erase(id);
  table.seen[id] = {step, 1};
  return true;
}

/// Whether a row last seen in `lastStep` is evicted after `step` because of a ttl in seconds. A
/// step takes one second here.
static bool isTooOld(const RowRules &rules, uint64_t lastStep, uint64_t step) {
  if (!rules.ttlSeconds)
    return false;
  int64_t length = std::max<int64_t>(1, rules.ttlSeconds / 16);
  auto periodOf = [&](uint64_t of) { return static_cast<int64_t>(of) / length; };
  // What was never seen counts as seen in the first step.
  int64_t now = periodOf(step), seen = periodOf(std::max<uint64_t>(1, lastStep));
  bool isFirstOfPeriod = step > 1 && periodOf(step - 1) != now;
  return isFirstOfPeriod && (now - seen - 1) * length + 1 >= rules.ttlSeconds;
}

/// The ids to evict after `step`.
static std::vector<int64_t> chooseLeaving(const RowRules &rules, const Sightings &sightings,
                                          uint64_t step) {
  std::vector<int64_t> leaving;
  std::vector<std::tuple<int64_t, uint64_t, int64_t>> staying;
  int64_t period = std::max<int64_t>(1, rules.ttl / 16), time = static_cast<int64_t>(step);
  bool isTime = rules.ttl && time % period == 0;
  for (const auto &[id, sighting] : sightings) {
    bool isLate = isTime && static_cast<int64_t>(sighting.lastStep) <= time - rules.ttl;
    if (isLate || isTooOld(rules, sighting.lastStep, step))
      leaving.push_back(id);
    else
      staying.emplace_back(rules.isLfu ? sighting.steps : 0, sighting.lastStep, id);
  }
  auto count = static_cast<int64_t>(staying.size());
  if (!rules.bounded || count <= rules.bounded)
    return leaving;
  llvm::sort(staying);
  staying.resize(count - (rules.bounded - rules.bounded / 16));
  for (const auto &[steps, last, id] : staying)
    leaving.push_back(id);
  return leaving;
}

void State::evict(uint64_t step) {
  for (auto &[name, table] : tables) {
    if (!table.rules.any())
      continue;
    // A row that was loaded and never seen counts as last seen before the first step.
    for (const auto &[id, row] : table.rows)
      table.seen.try_emplace(id);
    for (int64_t id : chooseLeaving(table.rules, table.seen, step)) {
      table.rows.erase(id);
      table.seen.erase(id);
    }
    for (int64_t id : chooseLeaving(table.rules, table.waiting, step))
      table.waiting.erase(id);
  }
}
