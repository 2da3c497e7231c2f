//===- predict.cpp - The predict command ----------------------------------===//

#include "commands.h"
#include "output_file.h"

namespace genrec::rt {

namespace {

/// The outputs that belong to the data; Error where they belong to several
/// domains.
std::vector<int32_t> dataOutputs(const genrec_model_desc &model) {
  std::vector<int32_t> outputs;
  for (int32_t i = 0; i < model.output_count; ++i) {
    int32_t root = rootDomain(model, model.outputs[i].domain);
    if (model.domains[root].kind == GENREC_DOMAIN_CATALOGUE)
      continue; // item vectors are for export
    if (!outputs.empty() && model.outputs[i].domain != model.outputs[outputs[0]].domain)
      throw Error(std::string("outputs '") + model.outputs[outputs[0]].name + "' and '" +
                      model.outputs[i].name + "' belong to different domains",
                  "give all outputs of a model the same domain");
    outputs.push_back(i);
  }
  if (outputs.empty())
    throw Error(std::string("model '") + model.name + "' has no output to predict",
                "give the model an output (gr.output) and compile it again");
  return outputs;
}

} // namespace

int runPredict(const genrec_model_desc &model, const Flags &flags) {
  Progress progress(flags.progress, flags.logEvery, "predict");
  auto session = restoredSession(model, flags);
  const genrec_program_desc &program = session->program(Mode::predict);
  std::vector<int32_t> outputs = dataOutputs(model);
  ExtendedModel extended(model, program, model.outputs[outputs[0]].domain, flags.keys,
                         listFiles(flags.data)[0]);
  Dataset data(extended.description(), {&extended.program()}, flags.data,
               datasetOptions(flags, session->threads()));
  loadCatalogues(*session, flags, {Mode::predict});
  OutputFile file(flags.out, model, outputs, extended.keys());
  for (const std::string &note : data.notes())
    progress.message(note);
  watchSignals();
  EpochOptions options;
  options.batch = flags.batch;
  auto source = data.epoch(options);
  int64_t rows = 0;
  session->run(Mode::predict, *source, [&](const StepReport &report) {
    file.append(*session, *report.batch);
    rows += report.batch->rows;
    StepNews news;
    news.phase = "predict";
    news.step = report.step;
    news.rows = rows;
    news.totalRows = data.rows();
    progress.step(news);
    return caughtSignal() == 0;
  });
  if (caughtSignal() != 0)
    return 128 + caughtSignal();
  int64_t written = file.close();
  progress.message("wrote " + std::to_string(written) + " rows to " + flags.out);
  progress.done({{"rows", written}, {"out", flags.out}});
  return 0;
}

} // namespace genrec::rt
