//===- predict.cpp - The predict command ----------------------------------===//

#include "../core/aside_file.h"
#include "../core/text.h"
#include "commands.h"
#include "output_file.h"
#include "output_tables.h"

#include <filesystem>

namespace genrec::rt {

namespace {

/// Makes the folder of several tables.
void makeFolder(const genrec_model_desc &model, const std::vector<OutputTable> &tables,
                const std::string &out) {
  std::vector<std::string> names;
  for (const OutputTable &table : tables)
    names.emplace_back(model.domains[table.domain].name);
  if (std::filesystem::path(out).extension() == ".parquet" ||
      std::filesystem::is_regular_file(out))
    throw Error("--out " + out + " is one file, but the outputs are rows of " + listNames(names) +
                    ", each a file of its own",
                "name a folder: it gets " + names[0] + ".parquet and the others");
  requireFolder("--out", out);
}

/// Checks the file of a single table before the run.
void checkFile(const std::string &out) {
  std::filesystem::path path(out);
  for (const char *other : {".csv", ".tsv", ".json", ".jsonl", ".txt", ".safetensors"})
    if (path.extension() == other)
      throw Error("--out " + out + ": predict writes Parquet",
                  "name it " + path.replace_extension(".parquet").string());
  requireWritable("--out", out);
}

} // namespace

int runPredict(const genrec_model_desc &model, const Flags &flags, Communicator *comm) {
  Progress progress(flags.progress, flags.logEvery, "predict");
  std::vector<OutputTable> tables = outputTables(model, flags.out);
  if (tables.empty())
    throw Error(std::string("model '") + model.name + "' has no output to predict",
                "give the model an output (gr.output) and compile it again");
  runTogether(comm, [&] {
    if (!isFirstRank(comm))
      return;
    if (tables.size() > 1)
      makeFolder(model, tables, flags.out);
    else
      checkFile(flags.out);
  });
  auto session = restoredSession(model, flags, comm, progress);
  const genrec_program_desc &program = session->program(Mode::predict);
  std::vector<int32_t> domains;
  for (const OutputTable &table : tables)
    domains.push_back(table.domain);
  ExtendedModel extended(model, program, domains, flags.keys, flags.data, comm);
  Dataset data(extended.description(), {&extended.program()}, flags.data,
               datasetOptions(flags, session->threads(), comm));
  loadCatalogues(*session, flags, {Mode::predict}, progress);
  std::vector<std::unique_ptr<OutputFile>> files;
  for (const OutputTable &table : tables)
    files.push_back(std::make_unique<OutputFile>(table.path, model, table.outputs,
                                                 extended.keysOf(table.domain, data), comm));
  for (const std::string &note : data.notes())
    progress.message(note);
  watchSignals();
  auto source = data.epoch(epochOptions(*session, flags.batch));
  int64_t rows = 0;
  int32_t signal = 0;
  session->run(Mode::predict, *source, [&](const StepReport &report) {
    for (auto &file : files)
      file->append(*session, report);
    rows += report.rows;
    StepNews news;
    news.phase = "predict";
    news.step = report.step;
    news.rows = rows;
    news.totalRows = data.rows();
    progress.step(news);
    signal = report.signal;
    return signal == 0;
  });
  if (signal != 0)
    return 128 + signal;
  Json written = Json::object();
  int64_t total = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    int64_t count = files[i]->close();
    total += count;
    progress.message("wrote " + std::to_string(count) + " rows to " + tables[i].path);
    written[model.domains[tables[i].domain].name] = {{"rows", count}, {"file", tables[i].path}};
  }
  progress.done({{"rows", total}, {"out", flags.out}, {"tables", written}});
  return 0;
}

} // namespace genrec::rt
