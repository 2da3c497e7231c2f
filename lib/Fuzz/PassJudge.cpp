//===- PassJudge.cpp - compares a model before and after passes -----------===//

#include "genrec/Fuzz/PassJudge.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

PassJudge::PassJudge(ModelOp model, std::vector<BatchSeries> series, uint64_t seed)
    : seed(seed), series(std::move(series)), expected(this->series.size()),
      before(this->series.size()) {
  run.portions = run.portionsInOne = 2 + static_cast<int64_t>(seed % 4);
  run.ranks = 1 + static_cast<int64_t>(seed / 4 % static_cast<uint64_t>(run.portions));
  run.replicated = chooseReplicated(model, seed);
}

void PassJudge::setRanks(int64_t ranks) {
  run.ranks = ranks;
  run.portions = run.portionsInOne = ranks + static_cast<int64_t>(seed % 3);
}

/// Whether updates have been expanded into row kernels or ops that form them.
static bool isExpanded(ModelOp model) {
  return model
      .walk([](Operation *op) {
        return op->hasTrait<MakesUniqueRows>() ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether the model still has its one imported program, whose constants are not yet rounded to
/// f32.
static bool isImported(ModelOp model) {
  return llvm::all_of(model.getOps<ProgramOp>(),
                      [](ProgramOp program) { return program.getMode() == ProgramMode::all; });
}

std::optional<Difference> PassJudge::look(ModelOp model) {
  // The update ops do not express clipping. If the model clips, the reference for trained values is
  // therefore the first level after expand-updates.
  bool clips = !model.getClipNorm().isZero() || !model.getClipValue().isZero();
  bool mayTrain = !clips || isExpanded(model);
  Allowance allowance = isImported(model) ? kDoubleAllowance : kConstantsAllowance;
  interpreter::State initial(model, seed);
  for (size_t number = 0; number < series.size(); ++number)
    if (std::optional<Difference> difference = look(model, initial, number, mayTrain, allowance)) {
      if (series.size() > 1)
        difference->text += " on " + series[number].name;
      return difference;
    }
  return std::nullopt;
}

std::optional<Difference> PassJudge::look(ModelOp model, const interpreter::State &initial,
                                          size_t number, bool mayTrain, Allowance allowance) {
  ArrayRef<interpreter::Batch> batches = series[number].batches;
  std::optional<RoundedObservations> &meaning = expected[number];
  auto fail = [](llvm::Error error) { return Difference{"", llvm::toString(std::move(error))}; };
  // Stops at the first difference.
  auto watch = [&](const Observations &shown) {
    return meaning &&
           (compareShown(meaning->forward, shown.forward, allowance) ||
            (mayTrain && compareShown(meaning->trained, shown.trained, kConstantsAllowance)));
  };
  llvm::Expected<Observations> seen =
      observe(model, initial, batches, {run, watch, /*values=*/nullptr, &before[number]});
  if (!seen)
    return fail(seen.takeError());
  if (!mayTrain)
    seen->trained.clear();
  bool trainsFirst = !seen->trained.empty() && (!meaning || meaning->trained.exact.empty());
  if (!meaning || trainsFirst) {
    llvm::Expected<RoundedObservations> rounded =
        observeRounding(model, initial, batches, *seen, kFewRuns, run.portionsInOne);
    if (!rounded)
      return fail(rounded.takeError());
    if (!meaning)
      meaning = RoundedObservations{std::move(rounded->forward), {}};
    if (trainsFirst)
      meaning->trained = std::move(rounded->trained);
  }
  // Differences before missing values, as a run stops at its first difference.
  std::optional<Difference> difference = compareShown(meaning->forward, seen->forward, allowance);
  if (!difference)
    difference = compareShown(meaning->trained, seen->trained, kConstantsAllowance);
  if (!difference)
    difference = compareRounded(meaning->forward, seen->forward, allowance);
  if (!difference && !seen->trained.empty())
    difference = compareRounded(meaning->trained, seen->trained, kConstantsAllowance);
  return difference;
}

void PassJudge::keepValues(ModelOp model) {
  interpreter::RunOptions options;
  options.portionsInOne = run.portionsInOne;
  sound = {interpreter::State(model, seed), {}};
  for (const BatchSeries &batches : series)
    llvm::consumeError(observe(model, sound->initial, batches.batches,
                               {options, nullptr, &sound->values.emplace_back()})
                           .takeError()); // `look` has told it
}

bool PassJudge::showsFault(ModelOp model, Operation *op) {
  interpreter::RunOptions options;
  options.faulty = op;
  options.portionsInOne = run.portionsInOne;
  if (!sound)
    keepValues(model);
  for (auto [batches, meaning, values] : llvm::zip_equal(series, expected, sound->values)) {
    bool isShown = false;
    auto watch = [&](const Observations &shown) {
      return isShown =
                 compareShown(meaning->forward, shown.forward, kCompiledAllowance).has_value();
    };
    llvm::Expected<Observations> seen =
        observe(model, sound->initial, batches.batches, {options, watch, &values});
    isShown |= !seen; // the interpreter fails: visible too
    llvm::consumeError(seen.takeError());
    if (isShown)
      return true;
  }
  return false;
}

void PassJudge::addWidths(BoundWidths &widths) const {
  for (const std::optional<RoundedObservations> &meaning : expected) {
    if (!meaning)
      continue;
    widths.add(meaning->forward, kCompiledAllowance);
    widths.add(meaning->trained, kCompiledAllowance);
  }
}
