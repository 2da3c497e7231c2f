//===- training.h - A run of the train command -------------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_TRAINING_H
#define GENREC_RT_TRAINER_TRAINING_H

#include "clock_source.h"
#include "commands.h"
#include "event_file.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/warm_start.h"
#include "rank_work.h"

#include <map>
#include <optional>

namespace genrec::rt {

/// What one process does of a training, the same on all ranks but for what is told (flags of the
/// others ask for no reports) and for the rows: train_open.cpp finds out what there is to do,
/// train.cpp trains and saves, train_report.cpp tells of it.
class Training {
public:
  Training(const genrec_model_desc &model, const Flags &flags, Communicator *comm,
           Clock::time_point start)
      : model(model), flags(flags), comm(comm), start(start),
        progress(flags.progress, flags.logEvery), residentAtStart(residentBytes()) {}

  int run();

private:
  void checkOutputs() const;
  void openCheckpoint();
  void chooseStart();
  bool continuesInPlace() const;
  void listTurns();
  std::optional<size_t> turnOf(const TrainingState &saved) const;
  bool wasKilledBeforeFirstSave() const;
  int64_t countSteps() const;
  void open();
  void openData();
  void chooseClock(SessionOptions &options);
  void tellClock();
  void begin();
  void describeTrainingData();
  void beginTurn();
  EpochOptions orderOf(Dataset &of) const;
  void planEpochs();
  void requireSameOrder(const TrainingState &saved);
  void resume();
  void continueRun();
  bool trainTurn();
  bool evaluateBefore();
  void reportWarmStart(const WarmStart &result);
  bool trainEpoch();
  bool onStep(const StepReport &report);
  bool isEvaluated(int64_t epoch) const;
  bool finishEpoch();
  /// Whether a checkpoint is saved when a step has ended.
  bool savesAfter(uint64_t step) const {
    return flags.checkpointEvery > 0 && step % static_cast<uint64_t>(flags.checkpointEvery) == 0 &&
           !flags.checkpoint.empty();
  }
  bool savesSoon() const;
  bool endsAfter(uint64_t step) const {
    return flags.maxSteps > 0 && step >= static_cast<uint64_t>(flags.maxSteps);
  }
  bool reachedMaxSteps() const { return endsAfter(session->stepsDone()); }
  bool lacksRecord() const;
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
  void tellPlacement();
  void warnOnce();
  Json configuration() const;
  Json timings() const;
  Json summary(const Json &work) const;

  const genrec_model_desc &model;
  const Flags &flags;
  Communicator *comm; ///< null alone
  Clock::time_point start;
  Progress progress;
  std::unique_ptr<Session> session;
  ClockSource clockSource;                ///< of tables with a ttl in seconds
  std::unique_ptr<TimeColumn> timeColumn; ///< of the data of this turn, where it is the clock
  std::unique_ptr<Dataset> data, validation;
  /// What is trained on, one after another: all of --data, or with --eval-before-train each file.
  std::vector<FileSpec> turns;
  /// Their files, where it matters which of them a checkpoint was trained on.
  std::vector<std::vector<DataFile>> turnFiles;
  size_t turn = 0;
  std::map<std::string, std::vector<DataFile>> catalogues; ///< that were read, by name
  std::unique_ptr<RankWork> work;
  DecodedData decodedBefore; ///< in earlier turns

  std::unique_ptr<CheckpointWriter> checkpoint, best; ///< with --checkpoint
  /// Until the session holds them: of this run, or of one that goes on with other data.
  std::unique_ptr<CheckpointReader> resumed, continued;
  std::unique_ptr<EventFile> events; ///< with --tensorboard

  EpochOptions order; ///< of the training data; epoch and position apart
  int64_t batchesPerEpoch = 0;
  TrainingState state;
  Json history = Json::array(), before = Json::array();
  Json lastEvaluation;
  Json stepLosses = Json::array();
  Json warmStarted;   ///< with --init
  Json continuedFrom; ///< with --continue

  // Timings of this process.
  double firstStepSeconds = 0, epochSeconds = 0;
  int64_t stepsHere = 0, rowsHere = 0, timedSteps = 0, timedRows = 0;
  double timedSeconds = 0;
  Clock::time_point stepBegin;
  int64_t residentAtStart, residentBefore = 0;
  bool warned = false;
  int32_t signal = 0; ///< that ended the run, on all ranks
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_TRAINING_H
