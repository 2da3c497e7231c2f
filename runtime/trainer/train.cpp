//===- train.cpp - The train command --------------------------------------===//

#include "../checkpoint/identity.h"
#include "../core/aside_file.h"
#include "../core/model_queries.h"
#include "../core/text.h"
#include "../session/calibrate.h"
#include "commands.h"
#include "event_file.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/size.h"
#include "genrec_rt/warm_start.h"
#include "overwriting.h"
#include "patience.h"
#include "profile_report.h"

#include <algorithm>
#include <cmath>

namespace genrec::rt {

namespace {

/// Steps that timings leave out: memory is taken and caches are cold there.
constexpr int64_t kWarmSteps = 5;
/// Steps between points of TensorBoard's curves.
constexpr int64_t kTensorboardSteps = 10;

class Training {
public:
  Training(const genrec_model_desc &model, const Flags &flags, Clock::time_point start)
      : model(model), flags(flags), start(start), progress(flags.progress, flags.logEvery),
        residentAtStart(residentBytes()) {}

  int run();

private:
  void checkOutputs() const;
  void openCheckpoint();
  void open();
  void begin();
  void describeTrainingData();
  void resume();
  void reportWarmStart(const WarmStart &result);
  bool trainEpoch();
  bool onStep(const StepReport &report);
  bool isEvaluated(int64_t epoch) const;
  bool finishEpoch();
  bool reachedMaxSteps() const {
    return flags.maxSteps > 0 && session->stepsDone() >= static_cast<uint64_t>(flags.maxSteps);
  }
  void requireFinite(const StepReport &report) const;
  void save();
  void checkMonitor() const;
  void warnOfUndefined(const Json &evaluation);
  bool isOutOfPatience() const;
  void keepBest();
  std::string bestFolder() const { return flags.checkpoint + "/best"; }
  void drawStep(const StepReport &report);
  void drawEvaluation(const Json &evaluation);
  void reportProfile();
  void warnOnce();
  Json configuration() const;
  Json timings() const;
  Json summary() const;

  const genrec_model_desc &model;
  const Flags &flags;
  Clock::time_point start;
  Progress progress;
  std::unique_ptr<Session> session;
  std::unique_ptr<Dataset> data, validation;

  std::unique_ptr<CheckpointWriter> checkpoint, best; ///< with --checkpoint
  std::unique_ptr<CheckpointReader> resumed;          ///< until the session holds it
  std::unique_ptr<EventFile> events; ///< with --tensorboard

  TrainingState state;
  Json history = Json::array();
  Json lastEvaluation;
  Json stepLosses = Json::array();
  Json warmStarted; ///< with --init

  // Timings of this process.
  double firstStepSeconds = 0, epochSeconds = 0;
  int64_t stepsHere = 0, rowsHere = 0, timedSteps = 0, timedRows = 0;
  double timedSeconds = 0;
  Clock::time_point stepBegin;
  int64_t residentAtStart, residentBefore = 0;
  bool warned = false;
};

/// Checks before the run that its outputs can be written.
void Training::checkOutputs() const {
  for (const auto &[flag, folder] :
       {std::pair("--checkpoint", &flags.checkpoint), std::pair("--profile", &flags.profile),
        std::pair("--tensorboard", &flags.tensorboard)})
    if (!folder->empty())
      requireFolder(flag, *folder);
  if (!flags.metricsJson.empty())
    requireWritable("--metrics-json", flags.metricsJson);
}

/// Locks the checkpoint folder, and refuses to replace a checkpoint without --overwrite.
void Training::openCheckpoint() {
  if (flags.checkpoint.empty())
    return;
  checkpoint = std::make_unique<CheckpointWriter>(
      flags.checkpoint, CheckpointOptions{flags.keep, flags.allowNonFinite});
  if (flags.resume && (hasCheckpoint(flags.checkpoint) || !flags.generation.empty())) {
    resumed = std::make_unique<CheckpointReader>(flags.checkpoint, flags.generation);
    checkpoint->continueFrom(*resumed);
    return;
  }
  if (flags.resume)
    progress.message("there is no checkpoint in " + flags.checkpoint + " yet: the run begins");
  if (flags.overwrite)
    return;
  requireNoCheckpoint(flags.checkpoint, model);
  if (flags.patience > 0)
    requireNoCheckpoint(bestFolder(), model);
}

void Training::open() {
  checkOutputs();
  openCheckpoint();
  SessionOptions options = sessionOptions(flags, model);
  if (resumed && !flags.seed)
    options.seed = resumed->state().seed;
  state.seed = options.seed;
  session = std::make_unique<Session>(model, options);
  std::vector<Mode> modes = {Mode::train};
  if (!flags.validation.empty())
    modes.push_back(Mode::evaluate);
  DatasetOptions dataOptions = datasetOptions(flags, session->threads());
  data = std::make_unique<Dataset>(model, std::vector{&session->program(Mode::train)}, flags.data,
                                   dataOptions);
  if (data->rows() == 0)
    throw Error(flags.data.text() + ": the training data has no rows");
  if (!flags.validation.empty())
    validation = std::make_unique<Dataset>(model, std::vector{&session->program(Mode::evaluate)},
                                           flags.validation, dataOptions);
  for (const Dataset *dataset : {data.get(), validation.get()})
    for (size_t i = 0; dataset && i < dataset->notes().size(); ++i)
      progress.message(dataset->notes()[i]);
  loadCatalogues(*session, flags, modes, progress);
  checkMonitor();
  int64_t perEpoch = (data->rows() - 1) / flags.batch + 1;
  int64_t steps = (Size(perEpoch) * flags.epochs).saturated();
  session->setScheduleSteps(flags.maxSteps > 0 ? std::min(steps, flags.maxSteps) : steps);
  if (flags.shuffle && !data->inMemory())
    progress.message("the data does not fit in " + std::to_string(flags.dataMemoryMegabytes) +
                     " MB: shuffling within windows of at most " +
                     withThousands(data->windowRows()) + " of " + withThousands(data->rows()) +
                     " rows");
}

void Training::begin() {
  state.batch = flags.batch;
  state.shuffle = flags.shuffle;
  state.dataRows = data->rows();
  state.windowRows = flags.shuffle ? data->windowRows() : 0;
  state.epochLosses.assign(model.loss_count, {});
  if (checkpoint)
    describeTrainingData();
  if (resumed) {
    resume();
    if (!flags.init.empty())
      progress.message("--init is not read: the run goes on from its checkpoint");
  } else if (!flags.init.empty()) {
    reportWarmStart(warmStart(flags.init, *session));
  }
  if (!flags.tensorboard.empty())
    events = std::make_unique<EventFile>(flags.tensorboard, static_cast<int64_t>(state.step));
}

/// Checks the name given to --monitor now, not after the first epoch.
void Training::checkMonitor() const {
  if (flags.patience == 0)
    return;
  std::vector<std::string> names;
  if (model.loss_count > 0)
    names.push_back("loss");
  for (const auto &[name, value] : session->metrics().values())
    names.push_back(name);
  if (std::find(names.begin(), names.end(), flags.monitor) != names.end())
    return;
  std::string near = suggestion(flags.monitor, names);
  throw Error("--monitor " + flags.monitor + ": evaluations do not measure that",
              near + (near.empty() ? "" : " ") + "they measure " + listNames(names));
}

void Training::reportWarmStart(const WarmStart &result) {
  Json filled = Json::array();
  std::vector<std::string> names;
  for (const WarmStart::Filled &one : result.filled) {
    filled.push_back({{"name", one.name}, {"kind", one.isTable ? "table" : "parameter"}});
    if (one.rows > 0)
      filled.back()["rows"] = one.rows;
    filled.back()["from"] = one.source;
    names.push_back(one.name + (one.rows > 0 ? " (" + withThousands(one.rows) + " rows)" : ""));
  }
  warmStarted = {{"entries", flags.init},
                 {"filled", filled},
                 {"not_filled", result.notFilled},
                 {"unused", result.unused}};
  progress.event("init", warmStarted);
  progress.message("starting from given values: " + listNames(names));
  if (!result.notFilled.empty())
    progress.message("not given, so as they start: " + listNames(result.notFilled));
  if (!result.unused.empty())
    progress.message("not used: " + listNames(result.unused));
}

/// Records the identity of the training data and of the catalogues that training reads.
void Training::describeTrainingData() {
  state.data = describeData("data", data->files());
  for (const auto &[name, spec] : catalogueFiles(*session, flags, {Mode::train}))
    for (DataFile &file : describeData("catalogue '" + name + "'", listFiles(spec)))
      state.data.push_back(std::move(file));
}

void Training::resume() {
  resumed->restore(*session, RestoreFor::training);
  TrainingState saved = resumed->state();
  if (std::string note = resumed->note(model); !note.empty())
    progress.message(note);
  auto mustBe = [](const std::string &what, const std::string &was, const std::string &is) {
    if (was != is)
      throw Error("the checkpoint was trained with " + what + " " + was + ", now it is " + is,
                  "resume with what it was trained with, or start anew with --overwrite");
  };
  if (std::string differs = dataDifference(saved.data, state.data); !differs.empty())
    throw Error("the checkpoint was trained on other data: " + differs,
                "resume with the data it was trained on, or start anew with --overwrite");
  mustBe("--seed", std::to_string(saved.seed), std::to_string(state.seed));
  mustBe("--batch", std::to_string(saved.batch), std::to_string(state.batch));
  mustBe("shuffling", saved.shuffle ? "on" : "off", state.shuffle ? "on" : "off");
  mustBe("data of rows:", std::to_string(saved.dataRows), std::to_string(state.dataRows));
  mustBe("shuffle windows of rows:", std::to_string(saved.windowRows),
         std::to_string(state.windowRows));
  std::vector<DataFile> files = std::move(state.data);
  state = saved;
  state.data = std::move(files); // at the paths of today
  resumed.reset();
  history = Json::parse(saved.history);
  for (const Json &record : history)
    if (record.contains("evaluation"))
      lastEvaluation = record["evaluation"];
  progress.message("resuming at step " + withThousands(static_cast<int64_t>(state.step)) +
                   ", epoch " + std::to_string(state.epoch) + ", row " +
                   withThousands(state.rowsInEpoch));
}

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
  throw Error("loss '" + std::string(model.losses[index].name) + "'" +
                  (line.empty() ? "" : " (" + line + ")") + " is " +
                  (std::isnan(report.losses[index].mean().value_or(0)) ? "a NaN" : "infinite") + " in step " +
                  withThousands(static_cast<int64_t>(report.step)) + ", epoch " +
                  std::to_string(state.epoch) + (origin.empty() ? "" : ": " + origin) +
                  (input.empty() ? "" : (origin.empty() ? ": " : "; ") + input) + kept,
              input.empty() ? "a smaller --lr often helps, and so does clipping (--clip-norm); "
                              "--check-finite looks at gradients too; --allow-nonfinite goes on"
                            : "mend or drop the row of the data; --allow-nonfinite goes on");
}

bool Training::onStep(const StepReport &report) {
  requireFinite(report);
  if (stepsHere++ == 0)
    firstStepSeconds = secondsSince(start);
  rowsHere += report.batch->rows;
  if (stepsHere > kWarmSteps) {
    timedSeconds += secondsSince(stepBegin);
    timedRows += report.batch->rows;
    ++timedSteps;
  }
  for (size_t i = 0; i < state.epochLosses.size(); ++i)
    state.epochLosses[i].add(report.losses[i]);
  state.rowsInEpoch += report.batch->rows;
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
  if (flags.checkpointEvery > 0 &&
      report.step % static_cast<uint64_t>(flags.checkpointEvery) == 0 && !flags.checkpoint.empty())
    save();
  stepBegin = Clock::now();
  return caughtSignal() == 0 && !reachedMaxSteps();
}

/// Trains what is left of the current epoch; false where a signal came.
bool Training::trainEpoch() {
  EpochOptions options;
  options.batch = flags.batch;
  options.shuffle = flags.shuffle;
  options.seed = state.seed;
  options.epoch = static_cast<uint64_t>(state.epoch);
  options.skipRows = state.rowsInEpoch;
  progress.begin();
  Clock::time_point begin = stepBegin = Clock::now();
  int64_t rowsBefore = rowsHere;
  auto source = data->epoch(options);
  session->run(Mode::train, *source, [&](const StepReport &report) { return onStep(report); });
  epochSeconds = secondsSince(begin);
  warnOnce();
  if (caughtSignal() != 0)
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

/// Records and evaluates; false where a signal came, which leaves the epoch
/// unfinished: a resumed run evaluates again.
bool Training::finishEpoch() {
  bool isWhole = state.rowsInEpoch == data->rows();
  Json record = {{"epoch", state.epoch},
                 {"step", state.step},
                 {"rows", state.rowsInEpoch},
                 {"loss", toJson(totalLoss(model, state.epochLosses))},
                 {"losses", lossesToJson(model, state.epochLosses)},
                 {"seconds", epochSeconds}};
  if (auto empty = lossesWithoutRows(model, state.epochLosses); !empty.empty())
    record["no_rows"] = empty;
  double speed = epochSeconds > 0 ? static_cast<double>(state.rowsInEpoch) / epochSeconds : 0;
  record["rows_per_second"] = speed;
  progress.epochDone(state.epoch, flags.epochs, record);
  if (isEvaluated(state.epoch)) {
    int64_t batch = flags.evaluationBatch > 0 ? flags.evaluationBatch : flags.batch;
    Json evaluation = evaluateOn(*session, *validation, batch, progress);
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
    state.rowsInEpoch = 0;
    state.epochLosses.assign(model.loss_count, {});
  }
  return true;
}

void Training::save() {
  if (flags.checkpoint.empty())
    return;
  state.history = toText(history);
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
  std::string what = hasNoRows ? " has no rows" : std::isinf(value) ? " is infinite" : " is not a number";
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
    best = std::make_unique<CheckpointWriter>(bestFolder(),
                                              CheckpointOptions{1, flags.allowNonFinite});
  state.history = toText(history);
  best->save(*session, state);
  progress.event("checkpoint", {{"step", state.step}, {"folder", bestFolder()}});
}

void Training::drawStep(const StepReport &report) {
  int64_t every = flags.logEvery > 0 ? flags.logEvery : kTensorboardSteps;
  if (report.step % static_cast<uint64_t>(every) != 0)
    return;
  EventFile::Scalars scalars = {{"train/learning_rate", report.learningRate}};
  auto add = [&](const std::string &name, std::optional<double> value) {
    if (value)
      scalars.emplace_back(name, *value);
  };
  add("train/loss", report.loss);
  if (model.loss_count > 1)
    for (int32_t i = 0; i < model.loss_count; ++i)
      add(std::string("train/loss/") + model.losses[i].name, report.losses[i].mean());
  events->add(static_cast<int64_t>(report.step), scalars);
}

void Training::drawEvaluation(const Json &evaluation) {
  EventFile::Scalars scalars;
  auto add = [&](const std::string &name, const Json &value) {
    if (value.is_number())
      scalars.emplace_back("evaluate/" + name, value.get<double>());
  };
  if (evaluation.contains("loss"))
    add("loss", evaluation["loss"]);
  if (evaluation.contains("metrics"))
    for (const auto &[name, value] : evaluation["metrics"].items())
      add(name, value);
  events->add(static_cast<int64_t>(state.step), scalars);
  events->flush();
}

void Training::reportProfile() {
  const Profile &profile = *session->profile();
  std::optional<Roofline> roofline = loadRoofline(rooflinePath());
  Json json = profileToJson(model, profile, Mode::train, roofline);
  writeFile(flags.profile + "/" + kProfileFile, toText(json, 1) + "\n");
  writeFile(flags.profile + "/" + kTraceFile,
            toText(profileTrace(model, profile, roofline)) + "\n");
  progress.table(profileTable(json));
  progress.message("wrote " + flags.profile +
                   "/profile.json and trace.json (open it in ui.perfetto.dev)");
  progress.event("profile", {{"folder", flags.profile}});
}

void Training::warnOnce() {
  if (warned)
    return;
  warned = true;
  for (const std::string &warning : data->warnings())
    progress.message("warning: " + warning);
}

Json Training::configuration() const {
  Json json = {{"data", data->files()},
               {"rows", data->rows()},
               {"validation", validation ? Json(validation->files()) : Json(nullptr)},
               {"epochs", flags.epochs},
               {"batch", flags.batch},
               {"seed", state.seed},
               {"shuffle", flags.shuffle},
               {"shuffle_window_rows", state.windowRows},
               {"threads", session->threads()}};
  if (flags.learningRate)
    json["learning_rate"] = *flags.learningRate;
  if (flags.maxSteps > 0)
    json["max_steps"] = flags.maxSteps;
  if (!warmStarted.is_null())
    json["init"] = warmStarted;
  SessionOptions options = sessionOptions(flags, model);
  json["schedule"] = {{"kind", options.schedule->kind},
                      {"warmup", options.schedule->warmup},
                      {"steps", options.schedule->steps},
                      {"final", options.schedule->final}};
  json["clip_norm"] = flags.clipNorm.value_or(model.clip_norm);
  json["clip_value"] = flags.clipValue.value_or(model.clip_value);
  return json;
}

Json Training::timings() const {
  Json json = {{"start_to_first_step_seconds", firstStepSeconds},
               {"total_seconds", secondsSince(start)},
               {"steps", stepsHere},
               {"rows", rowsHere}};
  if (timedSteps > 0) {
    json["milliseconds_per_step"] = timedSeconds * 1000 / static_cast<double>(timedSteps);
    json["rows_per_second"] = static_cast<double>(timedRows) / timedSeconds;
  }
  return json;
}

Json Training::summary() const {
  Json final = Json::object();
  if (!history.empty()) {
    final["loss"] = history.back()["loss"];
    final["epoch"] = history.back()["epoch"];
  }
  final["step"] = state.step;
  if (!lastEvaluation.is_null())
    final["evaluation"] = lastEvaluation;
  if (flags.patience > 0) {
    Patience patience = patienceOf(history, flags.monitor);
    final["stopped_early"] = isOutOfPatience();
    if (patience.hasBest())
      final["best"] = {{"epoch", patience.bestEpoch},
                       {"step", patience.bestStep},
                       {flags.monitor, patience.best}};
  }
  Json memory = memoryToJson(session->memoryUse());
  memory["data"] = data->decodedBytes() + (validation ? validation->decodedBytes() : 0);
  memory["resident_at_start"] = residentAtStart;
  memory["resident_before_training"] = residentBefore;
  memory["resident_after"] = residentBytes();
  memory["resident_peak"] = peakResidentBytes();
  Json json = {{"model", model.name},
               {"compiler", model.compiler ? model.compiler : ""},
               {"config", configuration()},
               {"hardware", hardware()},
               {"history", history},
               {"final", final},
               {"metric_notes", metricNotes(model)},
               {"timings", timings()},
               {"memory_bytes", memory},
               {"arena_allocations", session->arenaAllocations()},
               {"warnings", data->warnings()}};
  if (!stepLosses.empty())
    json["step_losses"] = stepLosses;
  return json;
}

int Training::run() {
  open();
  begin();
  watchSignals();
  residentBefore = residentBytes();
  bool interrupted = false;
  while (state.epoch <= flags.epochs && !reachedMaxSteps() && !isOutOfPatience() && !interrupted) {
    interrupted = !trainEpoch() || !finishEpoch();
    if (!interrupted) {
      keepBest();
      save();
    }
  }
  if (!interrupted && isOutOfPatience()) {
    Patience patience = patienceOf(history, flags.monitor);
    std::string best = patience.hasBest() ? "best " + flags.monitor + " in epoch " +
                                                std::to_string(patience.bestEpoch)
                                          : flags.monitor + " was never defined";
    progress.message("stopped early: " + std::to_string(patience.since) +
                     " evaluations without improvement, " + best);
  }
  if (interrupted) {
    save();
    std::string kept = flags.checkpoint.empty()
                           ? "nothing was saved (no --checkpoint)"
                           : "saved step " + std::to_string(state.step) + " to " + flags.checkpoint;
    progress.message("stopped by a signal: " + kept);
  }
  if (session->profile())
    reportProfile();
  Json result = summary();
  if (!flags.metricsJson.empty())
    writeFile(flags.metricsJson, toText(result, 1) + "\n");
  progress.done(
      {{"final", result["final"]}, {"timings", result["timings"]}, {"interrupted", interrupted}});
  return interrupted ? 128 + caughtSignal() : 0;
}

} // namespace

int runTrain(const genrec_model_desc &model, const Flags &flags, Clock::time_point start) {
  return Training(model, flags, start).run();
}

} // namespace genrec::rt
