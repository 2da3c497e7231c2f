//===- shared.cpp - What several commands do ------------------------------===//

#include "../core/model_queries.h"
#include "../core/threads.h"
#include "../session/calibrate.h"
#include "commands.h"
#include "genrec_rt/checkpoint.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace genrec::rt {

DatasetOptions datasetOptions(const Flags &flags, int32_t threads, Communicator *comm) {
  DatasetOptions options;
  options.comm = comm;
  options.decodeThreads = std::clamp(threads, 1, 8);
  options.memoryBudget = (Size(flags.dataMemoryMegabytes) * (1 << 20)).saturated();
  return options;
}

std::string catalogueFile(const genrec_model_desc &model, const Flags &flags, int32_t domain) {
  const genrec_domain_desc &desc = model.domains[domain];
  auto given = flags.catalogues.find(desc.name);
  if (given != flags.catalogues.end())
    return given->second;
  return desc.source ? desc.source : "";
}

std::string requireCatalogueFile(const genrec_model_desc &model, const Flags &flags,
                                 int32_t domain) {
  std::string name = model.domains[domain].name;
  std::string file = catalogueFile(model, flags, domain);
  std::string help =
      "pass --catalogue " + name + "=<file>; in Python, catalogues={\"" + name + "\": <file>}";
  if (file.empty())
    throw Error("the model needs catalogue '" + name + "' and names no file for it", help);
  std::error_code ignored;
  if (!flags.catalogues.count(name) && !std::filesystem::exists(file, ignored)) {
    bool isRelative = std::filesystem::path(file).is_relative();
    throw Error("catalogue '" + name + "': there is no file '" + file + "'" +
                    (isRelative ? " in this folder; the model names it by this relative path" : ""),
                help);
  }
  return file;
}

std::vector<int32_t> neededCatalogues(const Session &session, const std::vector<Mode> &modes) {
  const genrec_model_desc &model = session.model();
  std::vector<char> needed(model.domain_count);
  for (Mode mode : modes) {
    if (!session.hasProgram(mode))
      continue;
    const genrec_program_desc &program = session.program(mode);
    for (int32_t i = 0; i < program.domain_count; ++i)
      needed[rootDomain(model, program.domains[i])] = 1;
    for (int32_t i = 0; i < program.feature_count; ++i)
      needed[rootDomain(model, model.features[program.features[i]].domain)] = 1;
  }
  std::vector<int32_t> domains;
  for (int32_t i = 0; i < model.domain_count; ++i)
    if (needed[i] && model.domains[i].kind == GENREC_DOMAIN_CATALOGUE)
      domains.push_back(i);
  return domains;
}

std::map<std::string, std::vector<DataFile>> loadCatalogues(Session &session, const Flags &flags,
                                                            const std::vector<Mode> &modes,
                                                            Progress &progress) {
  const genrec_model_desc &model = session.model();
  Communicator *comm = session.comm();
  std::vector<int32_t> domains = neededCatalogues(session, modes);
  std::vector<std::string> files(domains.size()); // rank 0's are read
  runTogether(comm, [&] {
    for (size_t i = 0; isFirstRank(comm) && i < domains.size(); ++i)
      files[i] = requireCatalogueFile(model, flags, domains[i]);
  });
  std::map<std::string, std::vector<DataFile>> read;
  for (size_t i = 0; i < domains.size(); ++i) {
    Catalogue catalogue = readCatalogue(model, domains[i], files[i], comm);
    session.setCatalogue(domains[i], std::move(catalogue.rows));
    for (const std::string &note : catalogue.notes)
      progress.message(note);
    read[model.domains[domains[i]].name] = std::move(catalogue.files);
  }
  return read;
}

std::unique_ptr<Session> restoredSession(const genrec_model_desc &model, const Flags &flags,
                                         Communicator *comm, Progress &progress) {
  SessionOptions options = sessionOptions(flags, model);
  options.comm = comm;
  if (flags.checkpoint.empty()) // of a model without parameters and tables
    return std::make_unique<Session>(model, options);
  std::unique_ptr<CheckpointReader> reader;
  runTogether(comm, [&] {
    reader = std::make_unique<CheckpointReader>(flags.checkpoint, flags.generation);
  });
  options.seed = reader->state().seed;
  auto session = std::make_unique<Session>(model, options);
  reader->restore(*session, RestoreFor::inference);
  if (std::string note = reader->note(model); !note.empty())
    progress.message(note);
  return session;
}

EpochOptions epochOptions(const Session &session, int64_t batch) {
  EpochOptions options;
  options.batch = batch;
  options.portions = session.portions();
  if (Communicator *comm = session.comm())
    options.own = getPortions(options.portions, comm->getRank(), comm->getSize());
  return options;
}

Json evaluateOn(Session &session, Dataset &data, int64_t batch, Progress &progress,
                int32_t *caught) {
  Clock::time_point begin = Clock::now();
  const genrec_model_desc &model = session.model();
  std::vector<LossValue> losses(model.loss_count);
  session.metrics().reset();
  progress.begin();
  int64_t rows = 0;
  int32_t signal = 0;
  auto source = data.epoch(epochOptions(session, batch));
  session.run(Mode::evaluate, *source, [&](const StepReport &report) {
    for (size_t i = 0; i < losses.size(); ++i)
      losses[i].add(report.losses[i]);
    rows += report.rows;
    StepNews news;
    news.phase = "evaluate";
    news.step = report.step;
    news.rows = rows;
    news.totalRows = data.rows();
    news.loss = report.loss;
    news.meanLoss = totalLoss(model, losses);
    progress.step(news);
    signal = report.signal;
    return signal == 0;
  });
  if (caught)
    *caught = signal;
  if (signal != 0)
    return {};
  if (Communicator *comm = session.comm())
    session.metrics().gather(*comm);
  Json record = {{"rows", rows}};
  if (model.loss_count > 0) {
    record["loss"] = toJson(totalLoss(model, losses));
    record["losses"] = lossesToJson(model, losses);
  }
  record["metrics"] = toJson(session.metrics().values());
  std::vector<std::string> empty = lossesWithoutRows(model, losses);
  for (std::string &name : session.metrics().namesWithoutRows())
    empty.push_back(std::move(name));
  if (!empty.empty())
    record["no_rows"] = empty;
  record["seconds"] = secondsSince(begin);
  return record;
}

Json toJson(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json lossesToJson(const genrec_model_desc &model, const std::vector<LossValue> &losses) {
  Json json = Json::object();
  for (size_t i = 0; i < losses.size(); ++i)
    json[model.losses[i].name] = toJson(losses[i].mean());
  return json;
}

std::vector<std::string> lossesWithoutRows(const genrec_model_desc &model,
                                           const std::vector<LossValue> &losses) {
  std::vector<std::string> names;
  for (size_t i = 0; i < losses.size(); ++i)
    if (!losses[i].mean() && std::string(model.losses[i].name) != "loss")
      names.emplace_back(model.losses[i].name);
  if (!losses.empty() && !totalLoss(model, losses))
    names.insert(names.begin(), "loss");
  return names;
}

Json metricNotes(const genrec_model_desc &model) {
  Json notes = Json::object();
  for (int32_t i = 0; i < model.metric_count; ++i)
    if (model.metrics[i].note && *model.metrics[i].note)
      notes[model.metrics[i].name] = model.metrics[i].note;
  return notes;
}

Json hardware() {
  double gigabytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
  return {{"cores", availableCores()},
          {"processor", processorName()},
          {"memory_gigabytes", std::round(gigabytes * 10) / 10}};
}

int64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t peakResidentBytes() {
  // getrusage includes the peak of the program that started this one.
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("VmHWM:", 0) == 0)
      return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

Json memoryToJson(const MemoryUse &use) {
  return {{"arenas", use.arenas},           {"batches", use.batches},
          {"scratch", use.scratch},         {"parameters", use.parameters},
          {"optimizer", use.optimizer},     {"table_keys", use.tableKeys},
          {"table_values", use.tableValues}};
}

} // namespace genrec::rt
