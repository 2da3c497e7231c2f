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
  llvm::Expected<Observations> seen = observe(model, batches, seed);
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
  if (std::optional<Difference> difference =
          compareRounded(meaning->forward, seen->forward, allowance))
    return difference;
  return seen->trained.empty()
             ? std::nullopt
             : compareRounded(meaning->trained, seen->trained, kConstantsAllowance);
}
