//===- flags.h - What a compiled model is asked to do ------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_FLAGS_H
#define GENREC_RT_TRAINER_FLAGS_H

#include "genrec_rt/dataset.h"
#include "genrec_rt/session.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace genrec::rt {

struct Flags {
  enum class Command { none, train, evaluate, predict, exportTensors, info, calibrate };
  Command command = Command::none;

  // Data.
  FileSpec data, validation;
  std::map<std::string, std::string> catalogues; ///< by domain name
  int64_t dataMemoryMegabytes = 4096;
  int64_t batch = 128;
  std::string tokenList;       ///< of batches by tokens
  int64_t batchTokens = 0;     ///< 0: batches by rows
  int64_t evaluationBatch = 0; ///< 0: as `batch`
  bool shuffle = true;
  int64_t shuffleWindow = 0; ///< rows; 0: Dataset::defaultWindow
  std::string clock; ///< of tables with a ttl in seconds, see ClockSource; "": the checkpoint's, or
                     ///< the machine's

  // Training.
  int64_t epochs = 1;
  int64_t maxSteps = 0; ///< 0: no limit
  std::optional<uint64_t> seed;
  std::optional<double> learningRate, clipNorm, clipValue;
  std::optional<std::string> schedule;
  std::optional<int64_t> warmup, scheduleSteps;
  std::optional<double> scheduleFinal;
  bool checkFinite = false;
  std::vector<std::string> init; ///< entries as warm_start.h has them
  int64_t patience = 0;          ///< evaluations without improvement; 0: no early stop
  std::string monitor = "loss";
  int64_t evalEvery = 1; ///< epochs; 0: at the end only
  std::vector<int64_t> evalEpochs;
  bool evalBeforeTrain = false; ///< files one after another, each evaluated first

  // Checkpoints.
  std::string checkpoint;
  int64_t checkpointEvery = 0; ///< steps; 0: at the end of each epoch
  bool resume = false, overwrite = false;
  std::string continued; ///< folder of the checkpoint that goes on with other data; "": none
  int64_t keep = 2;      ///< generations
  int64_t checkpointFullEvery = 1; ///< saves; the others are incremental
  std::string generation;          ///< "": the newest
  bool allowNonFinite = false;

  // Output.
  std::string out;
  std::vector<std::string> keys;
  std::string metricsJson;
  std::string idsOut; ///< of info
  std::string progress = "auto";
  std::string tensorboard, profile; ///< folders
  bool isProfiled = false;          ///< also where the first rank writes the profile
  int64_t logEvery = 0;             ///< steps; 0: by time
  bool json = false;                ///< info

  // Where it runs.
  bool choosesReplicas() const { return replicate.size() == 1 && replicate.front() == "auto"; }
  bool namesReplicas() const {
    return !choosesReplicas() && !(replicate.size() == 1 && replicate.front() == "none");
  }
  int32_t threads = 0;
  std::string comm = "auto";                         ///< what connects ranks: auto, mpi, none
  std::string rowWire = "f32", gradientWire = "f32"; ///< f32, bf16
  std::vector<std::string> replicate;                ///< tables, or `auto` or `none` alone
  int64_t replicaMemoryMegabytes = 0;                ///< for those that a run chooses; 0: a share
  std::string deduplicate = "both";                  ///< both, requester, owner, none
  int64_t commPatience = 300;                        ///< seconds that a rank waits for another one
  std::string overlap = "auto";                      ///< none, keys, rows (Overlap), or auto
  int32_t portions = 0;                              ///< of a batch; 0: as many as ranks
  bool shardOptimizer = false;
  std::string earlyGradients = "off"; ///< on, off, or auto
  std::string capture = "on";         ///< on or off: steps on a device
  std::map<std::string, int64_t> hostTables; ///< of a device: rows that are cached there, by table
};

/// What parsing ended with: flags, or an exit status where there is nothing to do
/// (help was printed, or an error).
struct ParsedFlags {
  Flags flags;
  std::optional<int> exitStatus;
};

/// `tells`: whether help and errors are printed.
ParsedFlags parseFlags(const genrec_model_desc &model, int argc, const char *const *argv,
                       bool tells = true);
/// The same without what is printed or written for the user: of ranks other than the first.
Flags withoutReports(Flags flags);

/// The session's options from flags; the model's own schedule is the default.
SessionOptions sessionOptions(const Flags &flags, const genrec_model_desc &model);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_FLAGS_H
