//===- train_start.cpp - Whether a run begins, resumes or continues --------===//

#include "../checkpoint/generations.h"
#include "../comm/from_first_rank.h"
#include "../core/text.h"
#include "genrec_rt/size.h"
#include "training.h"

#include <filesystem>

namespace genrec::rt {

namespace fs = std::filesystem;

/// Whether --continue and --checkpoint name one folder.
bool Training::continuesInPlace() const {
  std::error_code ignored;
  auto placeOf = [&](const std::string &folder) {
    return fs::weakly_canonical(fs::absolute(folder + "/", ignored), ignored);
  };
  return !flags.continued.empty() && !flags.checkpoint.empty() &&
         placeOf(flags.continued) == placeOf(flags.checkpoint);
}

/// Collective.
void Training::listTurns() {
  bool isDescribed = flags.evalBeforeTrain || flags.resume || !flags.continued.empty();
  Json told = fromFirstRank(comm, [&] {
    Json list = Json::array();
    if (isDescribed)
      for (const DataFile &file : describeData("data", listFiles(flags.data)))
        list.push_back({file.path, file.bytes, file.checksum});
    return list;
  });
  std::vector<DataFile> files;
  for (const Json &file : told)
    files.push_back({"data", file.at(0), file.at(1), file.at(2)});
  if (!flags.evalBeforeTrain) {
    turns = {flags.data};
    turnFiles = {files};
    return;
  }
  // A resumed run finds its file by content.
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (files[i].isSame(files[j]))
        throw Error("--eval-before-train: " + files[j].path + " and " + files[i].path +
                        " have the same content",
                    "name each file once");
    turns.emplace_back(std::vector{files[i].path});
    turnFiles.push_back({files[i]});
  }
}

/// The turn whose data a saved run was trained on; none where it is of other data.
std::optional<size_t> Training::turnOf(const TrainingState &saved) const {
  std::vector<DataFile> was;
  for (const DataFile &file : saved.data)
    if (file.role == "data")
      was.push_back(file);
  for (size_t i = 0; i < turnFiles.size() && !was.empty(); ++i)
    if (std::equal(was.begin(), was.end(), turnFiles[i].begin(), turnFiles[i].end(),
                   [](const DataFile &a, const DataFile &b) { return a.isSame(b); }))
      return i;
  return std::nullopt;
}

/// Whether --resume begins a run anew that had saved the state of its best evaluation, and nothing
/// else: it saves the same one again.
bool Training::wasKilledBeforeFirstSave() const {
  if (!flags.resume || !hasCheckpoint(bestFolder()))
    return false;
  CheckpointReader saved(bestFolder());
  const TrainingState &of = saved.state();
  return saved.difference(model, RestoreFor::training).empty() && turnOf(of) &&
         flags.seed.value_or(of.seed) == of.seed;
}

/// Opens the checkpoint that the run begins from, if any: with --resume that of --checkpoint, with
/// --continue the one it names. Beside each other: a run that continued is resumed.
void Training::chooseStart() {
  bool isThere = !flags.checkpoint.empty() && hasCheckpoint(flags.checkpoint);
  bool isNamed = !flags.generation.empty() && flags.continued.empty();
  if (flags.resume && (isThere || isNamed)) {
    auto saved = std::make_unique<CheckpointReader>(flags.checkpoint, flags.generation);
    if (!continuesInPlace() || turnOf(saved->state())) {
      resumed = std::move(saved);
      checkpoint->continueFrom(*resumed);
      return;
    }
  }
  if (!flags.continued.empty()) {
    continued = std::make_unique<CheckpointReader>(flags.continued, flags.generation);
    if (continuesInPlace()) {
      if (flags.overwrite)
        throw Error("--overwrite would replace the checkpoint that --continue reads",
                    "leave --overwrite out: the newest states of both runs are kept then; or save "
                    "to another --checkpoint");
      checkpoint->continueFrom(*continued);
      return;
    }
  } else if (flags.resume) {
    // What a copy without the folder's manifest, or a kill within the first save, leaves.
    std::vector<std::string> left = listGenerations(flags.checkpoint);
    std::string unnamed = left.empty() ? ""
                                       : " (but " + left.front() +
                                             ", which no manifest.json names: "
                                             "--generation " +
                                             left.front() + " goes on from it)";
    progress.message("there is no checkpoint in " + flags.checkpoint + " yet" + unnamed +
                     ": the run begins");
  }
  if (flags.checkpoint.empty() || flags.overwrite)
    return;
  requireNoCheckpoint(flags.checkpoint, model);
  if (flags.patience > 0 && !wasKilledBeforeFirstSave())
    requireNoCheckpoint(bestFolder(), model);
}

/// Locks the checkpoint folder, and refuses to replace a checkpoint without --overwrite.
void Training::openCheckpoint() {
  if (!flags.checkpoint.empty())
    checkpoint = std::make_unique<CheckpointWriter>(
        flags.checkpoint, CheckpointOptions{.keep = flags.keep,
                                            .fullEvery = flags.checkpointFullEvery,
                                            .allowNonFinite = flags.allowNonFinite,
                                            .comm = comm});
  listTurns();
  runTogether(comm, [&] {
    chooseStart();
    if (!resumed || turns.size() == 1)
      return;
    std::optional<size_t> reached = turnOf(resumed->state());
    if (!reached)
      throw Error("the checkpoint was trained on other data: none of the " +
                      std::to_string(turns.size()) +
                      " files of --data is the one it was trained on",
                  "resume with the data it was trained on, or go on with other data by --continue");
    turn = *reached;
  });
}

/// The optimizer steps of the run, those of the checkpoint that it continues included.
int64_t Training::countSteps() const {
  Size steps = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    int64_t batches = batchesPerEpoch;
    if (i != turn) {
      Dataset other(model, std::vector{&session->program(Mode::train)}, turns[i],
                    datasetOptions(flags, session->threads(), comm));
      if (other.rows() == 0)
        throw Error(turns[i].text() + ": the training data has no rows");
      batches = other.batches(orderOf(other));
    }
    steps = steps + Size(batches) * flags.epochs;
  }
  return (steps + static_cast<int64_t>(state.firstStep)).saturated();
}

/// Tables, optimizer states and steps of `continued`; all else begins.
void Training::continueRun() {
  continued->restore(*session, RestoreFor::training);
  const TrainingState &saved = continued->state();
  if (std::string note = continued->note(model); !note.empty())
    progress.message(note);
  std::string step = withThousands(static_cast<int64_t>(saved.step));
  if (flags.maxSteps > 0 && static_cast<uint64_t>(flags.maxSteps) <= saved.step)
    throw Error("--max-steps " + std::to_string(flags.maxSteps) + ": the checkpoint in '" +
                    flags.continued + "' has " + step + " steps already, which count",
                "give the number of steps in all, those before included");
  progress.message("continuing at step " + step + " of " + flags.continued + "/" +
                   continued->generation());
  if (turnOf(saved))
    progress.message(
        "the data is what the checkpoint was trained on: its rows are trained on again "
        "(--resume goes on with an interrupted run)");
  if (session->learningRate() == 0)
    progress.message(
        "warning: the learning rate is 0: the schedule has ended; --schedule-steps sets "
        "a later end");
  if (!state.clockSource.empty() && !saved.clockSource.empty() &&
      saved.clockSource != state.clockSource)
    progress.message("the clock was " + saved.clockSource + ", now it is " + state.clockSource +
                     ": it goes on from the time that it had");
  state.step = saved.step;
  continuedFrom = {
      {"folder", flags.continued}, {"generation", continued->generation()}, {"step", saved.step}};
  progress.event("continue", continuedFrom);
  continued.reset();
}

/// Measures the model on data that it has not been trained on yet; false where a signal came.
bool Training::evaluateBefore() {
  const std::string &file = data->files().front();
  progress.message("before training on " + file + ":");
  Dataset unseen(model, std::vector{&session->program(Mode::evaluate)}, turns[turn],
                 datasetOptions(flags, session->threads(), comm));
  int64_t batch = flags.evaluationBatch > 0 ? flags.evaluationBatch : flags.batch;
  Json evaluation = evaluateOn(*session, unseen, batch, progress, &signal);
  if (evaluation.is_null())
    return false;
  evaluation["before"] = file;
  evaluation["step"] = state.step;
  progress.evaluationDone(evaluation);
  before.push_back(evaluation);
  return true;
}

} // namespace genrec::rt
