//===- commands.h - The commands of a compiled model -------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_COMMANDS_H
#define GENREC_RT_TRAINER_COMMANDS_H

#include "flags.h"
#include "progress.h"

#include "genrec_rt/dataset.h"
#include "genrec_rt/session.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point begin);

// Each returns the exit status and throws Error on the user's mistakes.
// `comm`: of the ranks that run it together, or of several portions; null alone.
int runTrain(const genrec_model_desc &model, const Flags &flags, Communicator *comm,
             Clock::time_point start);
int runEvaluate(const genrec_model_desc &model, const Flags &flags, Communicator *comm);
int runPredict(const genrec_model_desc &model, const Flags &flags, Communicator *comm);
int runExport(const genrec_model_desc &model, const Flags &flags, Communicator *comm);
int runInfo(const genrec_model_desc &model, const Flags &flags);
/// Measures the limits of the model's device or, without one, of this machine (roofline.h).
int runCalibrate(const genrec_model_desc &model, const Flags &flags);

//===-- shared by the commands --------------------------------------------===//

/// `comm`: of the ranks that read together; null alone.
DatasetOptions datasetOptions(const Flags &flags, int32_t threads, Communicator *comm = nullptr);

/// The file of a catalogue: the flags', or the one that the model names; "" where there is neither.
std::string catalogueFile(const genrec_model_desc &model, const Flags &flags, int32_t domain);
/// The same; throws Error, naming the flag, if there is no file, or the model's does not exist.
std::string requireCatalogueFile(const genrec_model_desc &model, const Flags &flags,
                                 int32_t domain);

/// The domains of the catalogues that the programs of `modes` need.
std::vector<int32_t> neededCatalogues(const Session &session, const std::vector<Mode> &modes);
/// Reads them, from the flags' files or those that the model names; `progress` is told which files
/// of their folders were skipped. What was read, by name. Collective.
std::map<std::string, std::vector<DataFile>> loadCatalogues(Session &session, const Flags &flags,
                                                            const std::vector<Mode> &modes,
                                                            Progress &progress);

/// A session with the state and seed of the flags' checkpoint; a message tells if its model has
/// another name. Collective where there is `comm`.
std::unique_ptr<Session> restoredSession(const genrec_model_desc &model, const Flags &flags,
                                         Communicator *comm, Progress &progress);

/// Options of an epoch of which this rank reads the session's portions.
EpochOptions epochOptions(const Session &session, int64_t batch);

/// Runs the evaluation program over all rows. The record has rows, loss, losses,
/// metrics, seconds; what no row was counted for is null, and its name in no_rows. Empty when a
/// signal came in between, on this rank or another; `caught`, if given, says which.
Json evaluateOn(Session &session, Dataset &data, int64_t batch, Progress &progress,
                int32_t *caught = nullptr);

/// The losses' means by name, null where no row was counted.
Json lossesToJson(const genrec_model_desc &model, const std::vector<LossValue> &losses);
/// Names of losses without rows; "loss" among them, first, where no loss has any.
std::vector<std::string> lossesWithoutRows(const genrec_model_desc &model,
                                           const std::vector<LossValue> &losses);
/// A number, or null where there is none.
Json toJson(std::optional<double> value);

/// What the metrics leave out, by metric name, as the model says.
Json metricNotes(const genrec_model_desc &model);

/// Cores, processor and memory of this machine.
Json hardware();
/// Resident memory of this process now and at most, in bytes.
int64_t residentBytes();
int64_t peakResidentBytes();
Json memoryToJson(const MemoryUse &use);
/// Of `info --data`: per domain the rows in all of the data and in the largest batch of it,
/// taken in the order of the files, and the longest list; distinct ids per table; and, under
/// "explain", all of that as flags of genrec-compile.
Json dataJson(const genrec_model_desc &model, const Flags &flags);

//===-- signals -----------------------------------------------------------===//

/// From here on the first SIGINT, SIGTERM, SIGHUP (unless it is ignored) or SIGUSR1 (which
/// launchers hand to ranks, and batch systems send before a job's end) is only noted. A second one
/// of its kind ends the process, but for SIGHUP.
void watchSignals();
/// The signal noted, 0 for none.
int caughtSignal();

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_COMMANDS_H
