//===- PassJudge.cpp - the interpreter judges what passes make ------------===//

#include "genrec/Fuzz/PassJudge.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

PassJudge::PassJudge(ModelOp model, std::vector<BatchSeries> series, uint64_t seed)
    : seed(seed), series(std::move(series)), expected(this->series.size()) {}

/// Whether updates are row kernels or what becomes row kernels.
static bool isExpanded(ModelOp model) {
  return model
      .walk([](Operation *op) {
        return isa<ParameterRowsOp, UniqueRowsOp>(op) ? WalkResult::interrupt()
                                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether the one program of the model is still that which was imported: constants are as the user
/// gave them.
static bool isImported(ModelOp model) {
  return llvm::all_of(model.getOps<ProgramOp>(),
                      [](ProgramOp program) { return program.getMode() == ProgramMode::all; });
}

std::optional<Difference> PassJudge::look(ModelOp model) {
  // update ops say nothing of clipping: for a model that clips, what is trained is fixed where they
  // are expanded into ops that do.
  bool clips = !model.getClipNorm().isZero() || !model.getClipValue().isZero();
  bool mayTrain = !clips || isExpanded(model);
  Allowance allowance = isImported(model) ? kDoubleAllowance : kConstantsAllowance;
  for (size_t number = 0; number < series.size(); ++number)
    if (std::optional<Difference> difference = look(model, number, mayTrain, allowance)) {
      if (series.size() > 1)
        difference->text += " on " + series[number].name;
      return difference;
    }
  return std::nullopt;
}

std::optional<Difference> PassJudge::look(ModelOp model, size_t number, bool mayTrain,
                                          Allowance allowance) {
  ArrayRef<interpreter::Batch> batches = series[number].batches;
  std::optional<RoundedObservations> &meaning = expected[number];
  auto fail = [](llvm::Error error) { return Difference{"", llvm::toString(std::move(error))}; };
  // A level that differs is run no further than where it does.
  auto watch = [&](const Observations &shown) {
    return meaning &&
           (compareShown(meaning->forward, shown.forward, allowance) ||
            (mayTrain && compareShown(meaning->trained, shown.trained, kConstantsAllowance)));
  };
  llvm::Expected<Observations> seen = observe(model, batches, seed, {}, watch);
  if (!seen)
    return fail(seen.takeError());
  if (!mayTrain)
    seen->trained.clear();
  bool trainsFirst = !seen->trained.empty() && (!meaning || meaning->trained.exact.empty());
  if (!meaning || trainsFirst) {
    llvm::Expected<RoundedObservations> rounded = observeRounding(model, batches, seed, kFewRuns);
    if (!rounded)
      return fail(rounded.takeError());
    if (!meaning)
      meaning = RoundedObservations{std::move(rounded->forward), {}};
    if (trainsFirst)
      meaning->trained = std::move(rounded->trained);
  }
  // What differs before what is missing, as it is behind a difference.
  std::optional<Difference> difference = compareShown(meaning->forward, seen->forward, allowance);
  if (!difference)
    difference = compareShown(meaning->trained, seen->trained, kConstantsAllowance);
  if (!difference)
    difference = compareRounded(meaning->forward, seen->forward, allowance);
  if (!difference && !seen->trained.empty())
    difference = compareRounded(meaning->trained, seen->trained, kConstantsAllowance);
  return difference;
}

bool PassJudge::showsFault(ModelOp model, Operation *op) const {
  interpreter::RunOptions options;
  options.faulty = op;
  for (auto [batches, meaning] : llvm::zip_equal(series, expected)) {
    bool isShown = false;
    auto watch = [&](const Observations &shown) {
      return isShown =
                 compareShown(meaning->forward, shown.forward, kCompiledAllowance).has_value();
    };
    llvm::Expected<Observations> seen = observe(model, batches.batches, seed, options, watch);
    isShown |= !seen; // the interpreter stops
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
