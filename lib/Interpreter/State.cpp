//===- State.cpp - parameters, tables, learning rate ----------------------===//

#include "genrec/Interpreter/State.h"

#include "Random.h"

#include <cmath>

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
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      parameter.memory[row * columns + column] =
          initialValue(declaration.getInit(), seed, declaration.getSymName(), row, column,
                       static_cast<double>(rows), static_cast<double>(columns));
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
    table.states = optimizer.getStateCount();
    table.idBits = declaration.getIdBits();
    table.initialAccumulator = optimizer.getOption("initial_accumulator", /*onTable=*/true);
    table.init = declaration.getInit();
  }
}

std::vector<double> State::initialRow(const TableState &table, int64_t id) const {
  std::vector<double> row((1 + table.states) * table.dim, table.initialAccumulator);
  for (int64_t column = 0; column < table.dim; ++column)
    row[column] = initialValue(table.init, seed, table.name, static_cast<uint64_t>(id), column,
                               /*fanIn=*/1.0, static_cast<double>(table.dim));
  return row;
}

std::vector<double> &State::insertRow(TableState &table, int64_t id) const {
  auto [place, isNew] = table.rows.try_emplace(id);
  if (isNew)
    place->second = initialRow(table, id);
  return place->second;
}
