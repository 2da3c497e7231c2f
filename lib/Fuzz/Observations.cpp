//===- Observations.cpp - what a model shows to its user ------------------===//

#include "genrec/Fuzz/Observations.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::Mode;
using interpreter::Results;
using interpreter::State;

namespace {
/// The program to run for a mode: the specialised one, or the imported one.
ProgramOp findProgram(ModelOp model, ProgramMode mode) {
  ProgramOp imported;
  for (ProgramOp program : model.getOps<ProgramOp>()) {
    if (program.getMode() == mode)
      return program;
    if (program.getMode() == ProgramMode::all)
      imported = program;
  }
  return imported;
}

void note(Values &values, const std::string &prefix, const Results &results) {
  for (const interpreter::LossResult &loss : results.losses)
    values[prefix + " loss " + loss.name] = {loss.mean().value_or(NAN), loss.weight};
  // Sorted behind the losses by name, which say more where they differ.
  if (!results.losses.empty())
    values[prefix + " total"] = {results.loss().value_or(NAN)};
  for (const auto &[name, value] : results.metrics)
    values[prefix + " metric " + name] = {value};
  for (const interpreter::OutputResult &output : results.outputs) {
    std::vector<double> &list = values[prefix + " output " + output.name];
    if (output.value.isFloat())
      list = output.value.floats();
    else if (output.value.isInteger())
      list.assign(output.value.integers().begin(), output.value.integers().end());
    for (auto [value, isNull] : llvm::zip(list, output.isNull))
      if (isNull)
        value = NAN;
  }
}

void noteState(Values &values, const State &state) {
  for (const auto &[name, parameter] : state.parameters)
    values["parameter " + name] = parameter.memory;
  for (const auto &[name, table] : state.tables)
    for (const auto &[id, row] : table.rows) {
      std::vector<double> &list = values["table " + name + " id " + std::to_string(id)] = row;
      if (!table.rules.any())
        continue;
      auto sighting = table.seen.find(id);
      bool isSeen = sighting != table.seen.end();
      list.push_back(isSeen ? static_cast<double>(sighting->second.lastStep) : 0.0);
      list.push_back(isSeen ? static_cast<double>(sighting->second.steps) : 0.0);
    }
}

void growSizes(Values &sizes, const Values &state) {
  for (const auto &[name, list] : state) {
    std::vector<double> &size = sizes[name];
    size.resize(list.size());
    for (auto [index, value] : llvm::enumerate(list))
      size[index] = std::fmax(size[index], std::fabs(value));
  }
}

/// What everything that is there after training was before: rows have their initial values.
Values getInitialState(ModelOp model, uint64_t seed, const State &trained) {
  State initial(model, seed);
  for (auto &[name, table] : initial.tables)
    for (const auto &[id, row] : trained.tables.find(name)->second.rows)
      initial.insertRow(table, id);
  Values values;
  noteState(values, initial);
  return values;
}
} // namespace

llvm::Expected<Observations> fuzz::observe(ModelOp model, ArrayRef<Batch> batches, uint64_t seed,
                                           const interpreter::RunOptions &options) {
  Observations observations;
  State state(model, seed);
  auto run = [&](ProgramMode programMode, Mode mode, const Batch &batch, const std::string &prefix,
                 Values &values) -> llvm::Error {
    ProgramOp program = findProgram(model, programMode);
    if (!program)
      return llvm::Error::success();
    llvm::Expected<Results> results = runProgram(program, batch, state, mode, options);
    if (!results)
      return results.takeError();
    note(values, prefix, *results);
    for (const auto &[name, gradient] : results->parameterGradients)
      observations.trained[prefix + " gradient " + name] = gradient;
    return llvm::Error::success();
  };
  if (llvm::Error error = run(ProgramMode::evaluate, Mode::evaluate, batches.front(), "evaluate",
                              observations.forward))
    return std::move(error);
  if (llvm::Error error = run(ProgramMode::predict, Mode::predict, batches.front(), "predict",
                              observations.forward))
    return std::move(error);
  ProgramOp train = findProgram(model, ProgramMode::train);
  if (!train)
    return observations;
  // Only a differentiated program trains; before that, only the first step is comparable.
  bool trains = false;
  train.walk([&](Operation *op) {
    trains |= isa<UpdateParameterOp, UpdateTableOp, RowKernelOp, ParameterRowsOp, UniqueRowsOp>(op);
  });
  for (auto [step, batch] : llvm::enumerate(trains ? batches : batches.take_front(1))) {
    if (llvm::Error error =
            run(ProgramMode::train, Mode::train, batch, "step " + std::to_string(step),
                step == 0 ? observations.forward : observations.trained))
      return std::move(error);
    Values after;
    noteState(after, state);
    growSizes(observations.sizes, after);
  }
  if (!trains)
    return observations;
  growSizes(observations.sizes, getInitialState(model, seed, state));
  noteState(observations.trained, state);
  return observations;
}

Operation *fuzz::findObserved(ModelOp model, StringRef name) {
  // "step 0 loss NAME", "evaluate metric NAME", "parameter NAME", "table NAME id 7", …
  SmallVector<StringRef> words;
  name.split(words, ' ');
  auto isNamed = [&](StringRef candidate) {
    return !candidate.empty() && llvm::is_contained(words, candidate);
  };
  Operation *found = nullptr;
  model.walk([&](Operation *op) {
    auto sink = op->getAttrOfType<StringAttr>("name");
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    bool isDeclared = isa<TableOp, ParameterOp>(op) && isNamed(symbol.getName());
    if (!found && (isDeclared || (sink && isNamed(sink))))
      found = op;
  });
  return found ? found : model.getOperation();
}
