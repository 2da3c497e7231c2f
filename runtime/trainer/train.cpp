//===- train.cpp - The train command --------------------------------------===//

#include "../core/aside_file.h"
#include "../core/model_queries.h"
#include "../core/text.h"
#include "../session/profile.h"
#include "patience.h"
#include "training.h"

#include <algorithm>
#include <cmath>

namespace genrec::rt {

/// Steps that timings leave out: memory is taken and caches are cold there.
static constexpr int64_t kWarmSteps = 5;

/// Ends the run before weights with NaNs replace a saved generation.
void Training::requireFinite(const StepReport &report) const {
  auto isFinite = [](std::optional<double> loss) { return !loss || std::isfinite(*loss); };
  if (isFinite(report.loss) || flags.allowNonFinite)
    return;
  int32_t index = 0;
  while (index + 1 < model.loss_count && isFinite(report.losses[index].mean()))
    ++index;
  std::string line = describe(model.losses[index].location);
  std::string kept = flags.checkpoint.empty() ? "" : "; what was saved before is as it was";
  std::string input = report.describeNonFiniteInput();
  const std::string &origin = report.nonFiniteOrigin();
  // Empty of a step that found no memory to run once more.
  const char *checkFinite = origin.empty() ? "--check-finite names the op that made it first"
                                           : "--check-finite looks at gradients too";
  throw Error("loss '" + std::string(model.losses[index].name) + "'" +
                  (line.empty() ? "" : " (" + line + ")") + " is " +
                  (std::isnan(report.losses[index].mean().value_or(0)) ? "a NaN" : "infinite") +
                  " in step " + withThousands(static_cast<int64_t>(report.step)) + ", epoch " +
                  std::to_string(state.epoch) + (origin.empty() ? "" : ": " + origin) +
                  (input.empty() ? "" : (origin.empty() ? ": " : "; ") + input) + kept,
              input.empty() ? "a smaller --lr often helps, and so does clipping (--clip-norm); " +
                                  std::string(checkFinite) + "; --allow-nonfinite goes on"
                            : "mend or drop the row of the data; --allow-nonfinite goes on");
}

bool Training::onStep(const StepReport &report) {
  requireFinite(report);
  if (stepsHere++ == 0)
    firstStepSeconds = secondsSince(start);
  rowsHere += report.rows;
  work->add(report.batches);
  if (stepsHere > kWarmSteps) {
    timedSeconds += secondsSince(stepBegin);
    timedRows += report.rows;
    ++timedSteps;
  }
  for (size_t i = 0; i < state.epochLosses.size(); ++i)
    state.epochLosses[i].add(report.losses[i]);
  state.rowsInEpoch += report.rows;
  ++state.batchesInEpoch;
  state.step = report.step;
  if (flags.logEvery > 0 && report.step % static_cast<uint64_t>(flags.logEvery) == 0)
    stepLosses.push_back({{"step", report.step}, {"loss", toJson(report.loss)}});
  if (events)
    drawStep(report);
  if (session->profile() && stepsHere == kWarmSteps)
    session->profile()->clear();
  StepNews news;
  news.epoch = state.epoch;
  news.epochs = flags.epochs;
  news.step = report.step;
  news.rows = state.rowsInEpoch;
  news.totalRows = data->rows();
  news.loss = report.loss;
  news.meanLoss = totalLoss(model, state.epochLosses);
  news.learningRate = report.learningRate;
  progress.step(news);
  if (report.hasMovedRows)
    tellPlacement();
  if (savesAfter(report.step) && !savesSoon())
    save();
  stepBegin = Clock::now();
  work->beginStep();
  signal = report.signal;
  return signal == 0 && !reachedMaxSteps();
}

/// Trains what is left of the current epoch; false where a signal came.
bool Training::trainEpoch() {
  EpochOptions options = order;
  options.epoch = static_cast<uint64_t>(state.epoch);
  options.skipBatches = state.batchesInEpoch;
  progress.begin();
  Clock::time_point begin = stepBegin = Clock::now();
  work->beginStep();
  int64_t rowsBefore = rowsHere;
  auto source = data->epoch(options);
  if (timeColumn)
    source = timeColumn->timed(std::move(source));
  session->run(
      Mode::train, *source, [&](const StepReport &report) { return onStep(report); },
      [&](uint64_t step) { return savesAfter(step) || endsAfter(step); });
  epochSeconds = secondsSince(begin);
  warnOnce();
  if (signal != 0)
    return false;
  if (rowsHere == rowsBefore) // a resumed run had only the evaluation left
    epochSeconds = 0;
  return true;
}

bool Training::isEvaluated(int64_t epoch) const {
  if (!validation)
    return false;
  if (!flags.evalEpochs.empty())
    return std::find(flags.evalEpochs.begin(), flags.evalEpochs.end(), epoch) !=
           flags.evalEpochs.end();
  bool isLast = epoch == flags.epochs || reachedMaxSteps();
  return isLast || (flags.evalEvery > 0 && epoch % flags.evalEvery == 0);
}

/// Whether the end of the epoch saves this step, and nothing takes its time before.
bool Training::savesSoon() const {
  const bool ends = state.batchesInEpoch == batchesPerEpoch || endsAfter(state.step);
  return ends && !isEvaluated(state.epoch);
}

/// Records and evaluates; false where a signal came, which leaves the epoch
/// unfinished: a resumed run evaluates again.
bool Training::finishEpoch() {
  bool isWhole = state.batchesInEpoch == batchesPerEpoch;
  Json record = {{"epoch", state.epoch},
                 {"step", state.step},
                 {"rows", state.rowsInEpoch},
                 {"loss", toJson(totalLoss(model, state.epochLosses))},
                 {"losses", lossesToJson(model, state.epochLosses)},
                 {"seconds", epochSeconds}};
  if (turns.size() > 1)
    record["file"] = data->files().front();
  if (auto empty = lossesWithoutRows(model, state.epochLosses); !empty.empty())
    record["no_rows"] = empty;
  double speed = epochSeconds > 0 ? static_cast<double>(state.rowsInEpoch) / epochSeconds : 0;
  record["rows_per_second"] = speed;
  progress.epochDone(state.epoch, flags.epochs, record);
  if (isEvaluated(state.epoch)) {
    int64_t batch = flags.evaluationBatch > 0 ? flags.evaluationBatch : flags.batch;
    Json evaluation = evaluateOn(*session, *validation, batch, progress, &signal);
    if (evaluation.is_null())
      return false;
    evaluation["epoch"] = state.epoch;
    evaluation["step"] = state.step;
    progress.evaluationDone(evaluation);
    warnOfUndefined(evaluation);
    record["evaluation"] = lastEvaluation = evaluation;
    if (events)
      drawEvaluation(evaluation);
  }
  history.push_back(record);
  if (isWhole) {
    ++state.epoch;
    state.rowsInEpoch = state.batchesInEpoch = 0;
    state.epochLosses.assign(model.loss_count, {});
  }
  return true;
}

void Training::save() {
  if (flags.checkpoint.empty())
    return;
  state.history = toText(history);
  state.before = toText(before);
  checkpoint->save(*session, state);
  progress.event("checkpoint", {{"step", state.step}, {"folder", flags.checkpoint}});
}

/// Warns that the value which --patience watches is undefined or not finite.
void Training::warnOfUndefined(const Json &evaluation) {
  double value = monitoredValue(evaluation, flags.monitor);
  if (flags.patience == 0 || std::isfinite(value))
    return;
  const Json empty = evaluation.value("no_rows", Json::array());
  bool hasNoRows = std::find(empty.begin(), empty.end(), flags.monitor) != empty.end();
  std::string what = hasNoRows           ? " has no rows"
                     : std::isinf(value) ? " is infinite"
                                         : " is not a number";
  progress.message("warning: " + flags.monitor + " of epoch " + std::to_string(state.epoch) + what +
                   ": an evaluation without improvement");
}

bool Training::isOutOfPatience() const {
  return flags.patience > 0 && patienceOf(history, flags.monitor).since >= flags.patience;
}

/// The state of the best evaluation is a checkpoint of its own.
void Training::keepBest() {
  if (flags.patience == 0 || flags.checkpoint.empty() || history.empty() ||
      !history.back().contains("evaluation") || !patienceOf(history, flags.monitor).isBest())
    return;
  if (!best)
    best = std::make_unique<CheckpointWriter>(
        bestFolder(),
        CheckpointOptions{.keep = 1, .allowNonFinite = flags.allowNonFinite, .comm = comm});
  state.history = toText(history);
  best->save(*session, state);
  progress.event("checkpoint", {{"step", state.step}, {"folder", bestFolder()}});
}

/// Whether --max-steps are done and saved, and the run ended before it recorded and evaluated them.
bool Training::lacksRecord() const {
  return reachedMaxSteps() && state.batchesInEpoch > 0 &&
         (history.empty() || history.back()["step"] != state.step);
}

/// The epochs over one turn's data; false where a signal came.
bool Training::trainTurn() {
  if (flags.evalBeforeTrain && state.epoch == 1 && state.rowsInEpoch == 0 && !reachedMaxSteps() &&
      !evaluateBefore())
    return false;
  while (state.epoch <= flags.epochs && (!reachedMaxSteps() || lacksRecord()) &&
         !isOutOfPatience()) {
    if ((!reachedMaxSteps() && !trainEpoch()) || !finishEpoch())
      return false;
    keepBest();
    save();
  }
  return true;
}

int Training::run() {
  open();
  begin();
  watchSignals();
  residentBefore = residentBytes();
  const uint64_t stepBefore = state.step;
  bool interrupted = !trainTurn();
  while (!interrupted && turn + 1 < turns.size() && !reachedMaxSteps()) {
    decodedBefore += data->decoded();
    data.reset();
    ++turn;
    openData();
    planEpochs();
    beginTurn();
    interrupted = !trainTurn();
  }
  if (!interrupted && isOutOfPatience()) {
    Patience patience = patienceOf(history, flags.monitor);
    std::string best = patience.hasBest() ? "best " + flags.monitor + " in epoch " +
                                                std::to_string(patience.bestEpoch)
                                          : flags.monitor + " was never defined";
    progress.message("stopped early: " + std::to_string(patience.since) +
                     (patience.since == 1 ? " evaluation" : " evaluations") +
                     " without improvement, " + best);
  }
  if (!interrupted && !isOutOfPatience() && state.step == stepBefore)
    progress.message("nothing is left to train: " +
                     (reachedMaxSteps() ? "--max-steps " + withThousands(flags.maxSteps)
                                        : "--epochs " + withThousands(flags.epochs)) +
                     " are done");
  if (interrupted) {
    save();
    std::string kept = flags.checkpoint.empty()
                           ? "nothing was saved (no --checkpoint)"
                           : "saved step " + std::to_string(state.step) + " to " + flags.checkpoint;
    progress.message("stopped by a signal: " + kept);
  }
  if (session->profile())
    reportProfile();
  Json result = summary(work->toJson(decodedBefore += data->decoded(), *session));
  if (!flags.metricsJson.empty())
    writeFile(flags.metricsJson, toText(result, 1) + "\n");
  progress.done(
      {{"final", result["final"]}, {"timings", result["timings"]}, {"interrupted", interrupted}});
  return interrupted ? 128 + signal : 0;
}

int runTrain(const genrec_model_desc &model, const Flags &flags, Communicator *comm,
             Clock::time_point start) {
  return Training(model, flags, comm, start).run();
}

} // namespace genrec::rt
