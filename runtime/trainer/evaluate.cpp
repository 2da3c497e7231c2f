//===- evaluate.cpp - The evaluate command --------------------------------===//

#include "../core/aside_file.h"
#include "commands.h"

namespace genrec::rt {

int runEvaluate(const genrec_model_desc &model, const Flags &flags, Communicator *comm) {
  if (!flags.metricsJson.empty())
    requireWritable("--metrics-json", flags.metricsJson);
  Progress progress(flags.progress, flags.logEvery, "eval");
  auto session = restoredSession(model, flags, comm, progress);
  Dataset data(model, {&session->program(Mode::evaluate)}, flags.data,
               datasetOptions(flags, session->threads(), comm));
  if (data.rows() == 0)
    throw Error(flags.data.text() + ": the data has no rows");
  loadCatalogues(*session, flags, {Mode::evaluate}, progress);
  for (const std::string &note : data.notes())
    progress.message(note);
  watchSignals();
  int32_t signal = 0;
  Json record = evaluateOn(*session, data, flags.batch, progress, &signal);
  if (record.is_null())
    return 128 + signal;
  record["step"] = session->stepsDone();
  progress.evaluationDone(record);
  for (const std::string &warning : data.warnings())
    progress.message("warning: " + warning);
  if (!flags.metricsJson.empty()) {
    Json json = {
        {"model", model.name},    {"data", data.files()}, {"checkpoint", flags.checkpoint},
        {"hardware", hardware()}, {"evaluation", record}, {"metric_notes", metricNotes(model)}};
    writeFile(flags.metricsJson, toText(json, 1) + "\n");
  }
  progress.done({{"evaluation", record}});
  return 0;
}

} // namespace genrec::rt
