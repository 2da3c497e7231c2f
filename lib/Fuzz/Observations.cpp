//===- Observations.cpp - what a model shows to its user ------------------===//

#include "genrec/Fuzz/CheckPasses.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::Mode;
using interpreter::Results;
using interpreter::State;

namespace {
using Values = std::map<std::string, std::vector<double>>;

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
    values[prefix + " loss " + loss.name] = {loss.mean(), loss.weight};
  for (const auto &[name, value] : results.metrics)
    values[prefix + " metric " + name] = {value};
  for (const auto &[name, tensor] : results.outputs) {
    std::vector<double> &list = values[prefix + " output " + name];
    if (tensor.isFloat())
      list = tensor.floats();
    else if (tensor.isInteger())
      list.assign(tensor.integers().begin(), tensor.integers().end());
  }
}

void noteState(Values &values, const State &state) {
  for (const auto &[name, parameter] : state.parameters)
    values["parameter " + name] = parameter.memory;
  for (const auto &[name, table] : state.tables)
    for (const auto &[id, row] : table.rows)
      values["table " + name + " id " + std::to_string(id)] = row;
}
} // namespace

llvm::Expected<Observations> fuzz::observe(ModelOp model, ArrayRef<Batch> batches, uint64_t seed,
                                           interpreter::Precision precision) {
  Observations observations;
  State state(model, seed);
  interpreter::RunOptions options;
  options.precision = precision;
  auto run = [&](ProgramMode programMode, Mode mode, const Batch &batch,
                 const std::string &prefix) -> llvm::Error {
    ProgramOp program = findProgram(model, programMode);
    if (!program)
      return llvm::Error::success();
    llvm::Expected<Results> results = runProgram(program, batch, state, mode, options);
    if (!results)
      return results.takeError();
    note(observations.forward, prefix, *results);
    for (const auto &[name, gradient] : results->parameterGradients)
      observations.trained[prefix + " gradient " + name] = gradient;
    return llvm::Error::success();
  };
  if (llvm::Error error = run(ProgramMode::evaluate, Mode::evaluate, batches.front(), "evaluate"))
    return std::move(error);
  if (llvm::Error error = run(ProgramMode::predict, Mode::predict, batches.front(), "predict"))
    return std::move(error);
  ProgramOp train = findProgram(model, ProgramMode::train);
  if (!train)
    return observations;
  // Only a differentiated program trains; before that, only the first step is comparable.
  bool trains = false;
  train.walk([&](Operation *op) {
    trains |= isa<UpdateParameterOp, UpdateTableOp, RowKernelOp, ParameterRowsOp, UniqueRowsOp>(op);
  });
  for (auto [step, batch] : llvm::enumerate(trains ? batches : batches.take_front(1)))
    if (llvm::Error error = run(ProgramMode::train, Mode::train, batch, "step " + std::to_string(step)))
      return std::move(error);
  if (trains)
    noteState(observations.trained, state);
  return observations;
}

std::string fuzz::compare(const Values &expected, const Values &actual, double tolerance) {
  for (const auto &[name, wanted] : expected) {
    auto found = actual.find(name);
    if (found == actual.end())
      return name + " is missing";
    const std::vector<double> &got = found->second;
    if (got.size() != wanted.size())
      return llvm::formatv("{0} has {1} values, expected {2}", name, got.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      double a = wanted[i], b = got[i];
      bool equal = (std::isnan(a) && std::isnan(b)) || a == b ||
                   std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(a));
      if (!equal)
        return llvm::formatv("{0} [{1}] is {2:e12}, expected {3:e12} (tolerance {4:e2})", name, i, b, a, tolerance);
    }
  }
  return {};
}
