//===- checkpoint.h - Saving and restoring training --------------*- C++ -*-===//
//
// A checkpoint folder holds `manifest.json` and the folder of tensors that it
// names. A save writes a new folder of tensors aside, flushes it to disk, renames
// it, and then replaces the manifest by a rename: that is the moment at which the
// new checkpoint counts. Whatever fails before, the old one is whole.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_H
#define GENREC_RT_CHECKPOINT_H

#include "genrec_rt/session.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// How far training came, beside the tensors.
struct TrainingState {
  uint64_t step = 0;                  ///< optimizer steps done
  int64_t epoch = 1;                  ///< 1-based, the one being trained
  int64_t rowsInEpoch = 0;            ///< root rows of it that were trained
  std::vector<LossValue> epochLosses; ///< sums so far, by loss index
  std::string history = "[]";         ///< JSON list of what was measured

  // What must be the same for a resumed run to continue with the same bits.
  uint64_t seed = 0;
  int64_t batch = 0;
  bool shuffle = false;
  int64_t dataRows = 0;
  int64_t windowRows = 0; ///< of the shuffle
};

/// Whether `folder` holds a checkpoint.
bool hasCheckpoint(const std::string &folder);

/// Saves parameters, tables, optimizer states and `state`. Error, naming the file
/// and the reason and saying what became of the previous checkpoint.
void saveCheckpoint(const std::string &folder, Session &session, const TrainingState &state);

/// What a checkpoint says of itself, without its tensors. Its seed is that of the
/// initial values of ids that it has not seen. Error as loadCheckpoint.
TrainingState readTrainingState(const std::string &folder);

/// Restores a fresh session. Error where there is no checkpoint, where it is of
/// another model (names and shapes of both are listed) or damaged.
TrainingState loadCheckpoint(const std::string &folder, Session &session);

/// The safetensors files of a checkpoint. Error as loadCheckpoint.
std::vector<std::string> checkpointTensorFiles(const std::string &folder);

class SafetensorsWriter;

/// Adds all parameters and tables, with `states` their optimizer states too.
void addModelTensors(SafetensorsWriter &writer, Session &session, bool states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_H
