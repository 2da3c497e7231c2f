//===- checkpoint.h - Saving and restoring training --------------*- C++ -*-===//
//
// A checkpoint folder holds the newest states of one run, its generations:
//
//   manifest.json                 names them, the oldest first; replaced by a rename, which is the
//                                 moment at which a save counts
//   step-1200/manifest.json       how far training came, of which model, on which data, and the
//                                 checksums of
//   step-1200/model.safetensors   parameters, tables, optimizer states; in an incremental generation, of
//                                 tables what changed since the one before, its base
//   checkpoint.lock               held by the process that trains; says which
//
// docs/checkpoints.md has the format and what each failure leaves behind.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_H
#define GENREC_RT_CHECKPOINT_H

#include "genrec_rt/data_file.h"
#include "genrec_rt/session.h"

#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

class SafetensorsReader;
class SafetensorsWriter;
struct TensorDigest;
class RowChanges;

/// How far training came, beside the tensors.
struct TrainingState {
  uint64_t step = 0;                  ///< optimizer steps done
  int64_t epoch = 1;                  ///< 1-based, the one being trained
  int64_t rowsInEpoch = 0;            ///< root rows of it that were trained
  int64_t batchesInEpoch = 0;         ///< batches of it that were: the position of every portion
  std::vector<LossValue> epochLosses; ///< sums so far, by loss index
  std::string history = "[]";         ///< JSON list of what was measured
  std::string before = "[]";          ///< the same, on files before they were trained on
  StepClock::State clock;             ///< of the steps done; saving takes the session's
  uint64_t firstStep = 0;             ///< steps done when the run began: of the checkpoint it continued

  // What must be the same for a resumed run to continue with the same bits.
  uint64_t seed = 0;
  int64_t batch = 0;
  std::string tokenList;   ///< whose entries a batch has `batchTokens` of; "": batches by rows
  int64_t batchTokens = 0;
  int32_t portions = 1; ///< of a batch; others give other bits, and the same training
  bool shuffle = false;
  int32_t order = 0;          ///< kEpochOrder of the version that trained
  int64_t dataRows = 0;
  int64_t windowRows = 0;     ///< that are shuffled together; 0: none
  std::string clockSource;    ///< what gives steps their times, as --clock; "": nothing asks for times
  std::vector<DataFile> data; ///< none: not known
};

/// What a checkpoint is read for.
enum class RestoreFor {
  inference, ///< parameters and tables only: of a model with the same structure
  training   ///< with optimizer states: of a model with the same optimizers too
};

/// One generation of a checkpoint folder, opened for reading. What was opened stays readable and
/// whole while a run goes on saving into the folder.
class CheckpointReader {
public:
  /// The newest generation, or the one called `generation` ("step-1200"). Error, naming the file
  /// and what can still be used, where there is none or it is damaged.
  explicit CheckpointReader(const std::string &folder, const std::string &generation = {});
  ~CheckpointReader();

  const TrainingState &state() const;
  const std::string &generation() const;
  /// Words on what is unlike this model, but no reason to refuse: its name.
  std::string note(const genrec_model_desc &model) const;
  /// What of the checkpoint's model is unlike this one, by the strictness of `purpose`; "" where
  /// it can be restored.
  std::string difference(const genrec_model_desc &model, RestoreFor purpose) const;
  /// The tensors, held to their checksums as they are read. For warm starts.
  /// Of an incremental generation, what it changes of those that it is built on.
  const SafetensorsReader &tensors() const;
  /// The tensors of the generations that make the state, the full one first, this one last.
  std::vector<const SafetensorsReader *> links() const;
  /// Restores a fresh session; on several ranks, each takes the rows that it owns, and all call
  /// this. Error where the checkpoint is of another model (what differs is
  /// listed) or a checksum is not met.
  void restore(Session &session, RestoreFor purpose);
  /// Reads all of it and holds it to its checksums. Error at the first that is not met.
  void verify() const;

private:
  friend class CheckpointWriter;
  struct Impl;
  std::unique_ptr<Impl> impl;
};

struct CheckpointOptions {
  int64_t keep = 2;          ///< generations, beside those that they are built on
  /// Of so many saves in a row the first is full, the others are incremental: they hold the rows that changed
  /// since the save before, and what left. 1: all are full.
  int64_t fullEvery = 1;
  bool allowNonFinite = false; ///< save NaNs and infinities, too
  /// Of the ranks that train together: rank 0 holds the folder and commits, all write what they have, and
  /// all calls of a writer are collective. Null: this process alone.
  Communicator *comm = nullptr;
};

/// A checkpoint folder that this process trains into: nobody else does while this lives.
class CheckpointWriter {
public:
  /// Makes the folder where it is missing. Error, saying who has it, where another process trains
  /// into it.
  CheckpointWriter(const std::string &folder, const CheckpointOptions &options);
  ~CheckpointWriter();

  /// Goes on from a generation of this folder: it is kept, those after it are replaced.
  void continueFrom(const CheckpointReader &reader);
  /// The same with the newest, where there is one.
  void continueFromNewest();
  /// Saves parameters, tables, optimizer states and `state`. Error, naming the file and the reason
  /// and saying what became of the previous one, which is never touched before the new one is
  /// whole on disk. Unless this goes on from a generation, the first save replaces what was there.
  void save(Session &session, const TrainingState &state);

private:
  struct Impl;
  TensorDigest write(const std::string &path, Session &session, bool isFull) const;

  std::string folder;
  CheckpointOptions options;
  std::unique_ptr<Impl> impl; ///< on rank 0
  std::unique_ptr<RowChanges> changes; ///< since the last save; with incremental ones
  int64_t savesSinceFull = 0;
};

/// Whether `folder` holds a checkpoint, whole or damaged.
bool hasCheckpoint(const std::string &folder);
/// Error, with the user's next step, where `folder` holds a checkpoint: training would replace it.
void requireNoCheckpoint(const std::string &folder, const genrec_model_desc &model);

//===-- in one call ---------------------------------------------------------===//

/// Adds a generation to a folder, from all ranks of the session; those that are there and readable are kept up to two.
void saveCheckpoint(const std::string &folder, Session &session, const TrainingState &state);
/// Error as CheckpointReader.
TrainingState readTrainingState(const std::string &folder);
/// Restores a fresh session for training.
TrainingState loadCheckpoint(const std::string &folder, Session &session);

/// Adds all parameters and tables, with `states` their optimizer states too, of a session that
/// shares its tables with nobody.
void addModelTensors(SafetensorsWriter &writer, Session &session, bool states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_H
