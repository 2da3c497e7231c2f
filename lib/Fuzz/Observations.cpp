//===- Observations.cpp - the observable values of a model ----------------===//

#include "genrec/Fuzz/Observations.h"

#include "genrec/Fuzz/LevelHash.h"

#include "llvm/ADT/Hashing.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;
using interpreter::Batch;
using interpreter::Mode;
using interpreter::Results;
using interpreter::State;

namespace {
/// The specialised program of a mode, or the imported program.
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
  // Named such that it sorts after the single losses, which are more specific.
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

/// The initial values of everything that exists after training, new table rows included.
Values getInitialState(State initial, const State &trained) {
  for (auto &[name, table] : initial.tables)
    for (const auto &[id, row] : trained.tables.find(name)->second.rows)
      initial.insertRow(table, id);
  Values values;
  noteState(values, initial);
  return values;
}
} // namespace

/// Whether a program updates what it trains. Before differentiation only the first step can be
/// compared.
static bool isDifferentiated(ProgramOp program) {
  return program
      .walk([](Operation *op) {
        bool isUpdate = op->hasTrait<UpdatesWeights>() || op->hasTrait<MakesUniqueRows>();
        return isUpdate || isa<RowKernelOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
/// Runs a model on batches with one state.
class Observer {
public:
  Observer(ModelOp model, const State &initial, const ObserveOptions &options)
      : model(model), initial(initial), options(options), state(initial),
        declarations(options.before ? hashDeclarations(model) : 0) {}

  llvm::Error observe(ArrayRef<Batch> batches);
  Observations observations;

private:
  using Kind = Values Observations::*;
  llvm::Error run(Mode mode, const Batch &batch, const std::string &prefix, Kind kind);
  llvm::Expected<Observations> show(ProgramOp program, Mode mode, const Batch &batch,
                                    const std::string &prefix, Kind kind);
  llvm::Error look(ArrayRef<Batch> batches, const std::string &when, Kind kind);
  llvm::Error train(ArrayRef<Batch> batches);
  void add(Observations shown);

  ModelOp model;
  const State &initial;
  const ObserveOptions &options;
  State state;
  uint64_t declarations; ///< their hash
  size_t runs = 0;
  bool isEnough = false;
};
} // namespace

void Observer::add(Observations shown) {
  isEnough = options.watch && options.watch(shown);
  observations.forward.merge(shown.forward);
  observations.trained.merge(shown.trained);
}

static ProgramMode getProgramMode(Mode mode) {
  return mode == Mode::train      ? ProgramMode::train
         : mode == Mode::evaluate ? ProgramMode::evaluate
                                  : ProgramMode::predict;
}

llvm::Expected<Observations> Observer::show(ProgramOp program, Mode mode, const Batch &batch,
                                            const std::string &prefix, Kind kind) {
  interpreter::RunOptions runOptions = options.run;
  if (options.values && runOptions.faulty)
    runOptions.sound = &(*options.values)[runs++];
  else if (options.values)
    runOptions.keepValues = true;
  llvm::Expected<Results> results = runProgram(program, batch, state, mode, runOptions);
  if (!results)
    return results.takeError();
  if (runOptions.keepValues)
    options.values->push_back(std::move(results->values));
  Observations shown;
  note(shown.*kind, prefix, *results);
  if (runOptions.sound) // a sum of some of the losses
    (shown.*kind).erase(prefix + " total");
  for (const auto &[name, gradient] : results->parameterGradients)
    shown.trained[prefix + " gradient " + name] = gradient;
  return std::move(shown);
}

llvm::Error Observer::run(Mode mode, const Batch &batch, const std::string &prefix, Kind kind) {
  ProgramOp program = findProgram(model, getProgramMode(mode));
  if (!program || isEnough)
    return llvm::Error::success();
  bool mayRepeat = options.before && mode != Mode::train && kind == &Observations::forward;
  // The prefix names the batch, and the mode that a program of all modes is run in.
  uint64_t key = 0;
  if (mayRepeat)
    key = static_cast<size_t>(llvm::hash_combine(declarations, hashOp(program), prefix));
  if (mayRepeat)
    if (auto place = options.before->find(key); place != options.before->end()) {
      add({place->second, {}, {}});
      return llvm::Error::success();
    }
  llvm::Expected<Observations> shown = show(program, mode, batch, prefix, kind);
  if (!shown)
    return shown.takeError();
  if (mayRepeat)
    options.before->emplace(key, shown->forward);
  add(std::move(*shown));
  return llvm::Error::success();
}

llvm::Error Observer::look(ArrayRef<Batch> batches, const std::string &when, Kind kind) {
  for (auto [index, batch] : llvm::enumerate(batches)) {
    std::string suffix = when + " " + std::to_string(index);
    if (llvm::Error error = run(Mode::evaluate, batch, "evaluate" + suffix, kind))
      return error;
    if (llvm::Error error = run(Mode::predict, batch, "predict" + suffix, kind))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Observer::train(ArrayRef<Batch> batches) {
  for (auto [step, batch] : llvm::enumerate(batches)) {
    if (llvm::Error error = run(Mode::train, batch, "step " + std::to_string(step),
                                step == 0 ? &Observations::forward : &Observations::trained))
      return error;
    Values after;
    noteState(after, state);
    growSizes(observations.sizes, after);
  }
  return llvm::Error::success();
}

llvm::Error Observer::observe(ArrayRef<Batch> batches) {
  if (llvm::Error error = look(batches, "", &Observations::forward))
    return error;
  ProgramOp program = findProgram(model, ProgramMode::train);
  if (!program || isEnough)
    return llvm::Error::success();
  if (!isDifferentiated(program))
    return train(batches.take_front(1));
  if (llvm::Error error = train(batches))
    return error;
  // Evaluates the trained state on the first batch again, whose ids now have trained rows.
  if (llvm::Error error = look(batches.take_front(1), " trained", &Observations::trained))
    return error;
  if (isEnough)
    return llvm::Error::success();
  growSizes(observations.sizes, getInitialState(initial, state));
  Observations left;
  noteState(left.trained, state);
  add(std::move(left));
  return llvm::Error::success();
}

llvm::Expected<Observations> fuzz::observe(ModelOp model, const State &initial,
                                           ArrayRef<Batch> batches,
                                           const ObserveOptions &options) {
  Observer observer(model, initial, options);
  if (llvm::Error error = observer.observe(batches))
    return std::move(error);
  return std::move(observer.observations);
}

Operation *fuzz::findObserved(ModelOp model, StringRef name) {
  // Names: "step 0 loss NAME", "evaluate metric NAME", "parameter NAME", "table NAME id 7", …
  SmallVector<StringRef> words;
  name.split(words, ' ');
  auto isNamed = [&](StringRef candidate) {
    return !candidate.empty() && llvm::is_contained(words, candidate);
  };
  Operation *found = nullptr;
  model.walk([&](Operation *op) {
    auto sink = op->getAttrOfType<StringAttr>("name");
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    bool isDeclared = op->hasTrait<DeclaresWeights>() && isNamed(symbol.getName());
    if (!found && (isDeclared || (sink && isNamed(sink))))
      found = op;
  });
  return found ? found : model.getOperation();
}
