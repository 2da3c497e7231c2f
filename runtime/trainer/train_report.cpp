//===- train_report.cpp - What a run of training tells --------------------===//

#include "../core/aside_file.h"
#include "../core/text.h"
#include "../session/calibrate.h"
#include "genrec_rt/placement.h"
#include "overwriting.h"
#include "patience.h"
#include "profile_report.h"
#include "training.h"

namespace genrec::rt {

/// Steps between points of TensorBoard's curves.
static constexpr int64_t kTensorboardSteps = 10;

void Training::drawStep(const StepReport &report) {
  int64_t every = flags.logEvery > 0 ? flags.logEvery : kTensorboardSteps;
  if (report.step % static_cast<uint64_t>(every) != 0)
    return;
  EventFile::Scalars scalars = {{"train/learning_rate", report.learningRate}};
  auto add = [&](const std::string &name, std::optional<double> value) {
    if (value)
      scalars.emplace_back(name, *value);
  };
  add("train/loss", report.loss);
  if (model.loss_count > 1)
    for (int32_t i = 0; i < model.loss_count; ++i)
      add(std::string("train/loss/") + model.losses[i].name, report.losses[i].mean());
  events->add(static_cast<int64_t>(report.step), scalars);
}

void Training::drawEvaluation(const Json &evaluation) {
  EventFile::Scalars scalars;
  auto add = [&](const std::string &name, const Json &value) {
    if (value.is_number())
      scalars.emplace_back("evaluate/" + name, value.get<double>());
  };
  if (evaluation.contains("loss"))
    add("loss", evaluation["loss"]);
  if (evaluation.contains("metrics"))
    for (const auto &[name, value] : evaluation["metrics"].items())
      add(name, value);
  events->add(static_cast<int64_t>(state.step), scalars);
  events->flush();
}

void Training::tellPlacement() {
  const PlacementReport report = session->placement();
  std::string tables;
  for (const std::string &table : report.moves.back().replicated)
    tables += (tables.empty() ? "'" : ", '") + table + "'";
  progress.message("from step " + withThousands(static_cast<int64_t>(state.step) + 1) + " on, " +
                   (tables.empty() ? "no rank keeps all rows of a table any more"
                                   : "every rank keeps all rows of " + tables) +
                   " (--replicate auto); results are the same");
}

void Training::reportProfile() {
  const Profile &profile = *session->profile();
  std::optional<DeviceUse> device = session->deviceUse();
  std::optional<Roofline> roofline =
      loadRoofline(rooflinePath(device.has_value()), device ? device->name : processorName());
  Json json = profileToJson(model, profile, Mode::train, roofline);
  if (comm && comm->getSize() > 1)
    json["by_rank"] =
        profileOfRanks(profile, session->portions(), work->idleSeconds(), stepsHere, *comm);
  if (flags.profile.empty()) // the first rank writes
    return;
  if (device)
    for (const std::string &why : device->refusals)
      progress.message("steps are not captured: " + why);
  writeFile(flags.profile + "/" + kProfileFile, toText(json, 1) + "\n");
  writeFile(flags.profile + "/" + kTraceFile, profileTrace(model, profile, roofline));
  progress.table(profileTable(json));
  progress.message("wrote " + flags.profile +
                   "/profile.json and trace.json (open it in ui.perfetto.dev)");
  progress.event("profile", {{"folder", flags.profile}});
}

void Training::warnOnce() {
  if (warned)
    return;
  warned = true;
  for (const std::string &warning : data->warnings())
    progress.message("warning: " + warning);
  if (timeColumn && !session->clock().seconds)
    progress.message(
        "warning: column '" + clockSource.column +
        "', the clock, had no time in any row: no row of a table with a ttl in seconds leaves");
}

Json Training::configuration() const {
  Json json = {{"data", data->files()},
               {"rows", data->rows()},
               {"validation", validation ? Json(validation->files()) : Json(nullptr)},
               {"epochs", flags.epochs},
               {"batch", flags.batch},
               {"seed", state.seed},
               {"shuffle", flags.shuffle},
               {"shuffle_window_rows", state.windowRows},
               {"batch_tokens", flags.batchTokens > 0
                                    ? Json{{"list", flags.tokenList}, {"tokens", flags.batchTokens}}
                                    : Json(nullptr)},
               {"ranks", comm ? comm->getSize() : 1},
               {"portions", session->portions()},
               {"threads", session->threads()}};
  if (!state.clockSource.empty())
    json["clock"] = state.clockSource;
  bool hasRanks = comm && comm->getSize() > 1;
  if (hasRanks || !flags.choosesReplicas())
    json["replicate"] = flags.replicate;
  if (!flags.hostTables.empty())
    json["host_tables"] = flags.hostTables;
  if (flags.replicaMemoryMegabytes > 0)
    json["replica_memory_megabytes"] = flags.replicaMemoryMegabytes;
  if (hasRanks)
    json["overlap"] = // as the session has it: on a device rows are found in the order of steps
        session->deviceUse() && flags.overlap == "rows" ? "keys" : flags.overlap;
  if (flags.shardOptimizer)
    json["shard_optimizer"] = true;
  if (flags.learningRate)
    json["learning_rate"] = *flags.learningRate;
  if (flags.maxSteps > 0)
    json["max_steps"] = flags.maxSteps;
  if (!warmStarted.is_null())
    json["init"] = warmStarted;
  if (!continuedFrom.is_null())
    json["continued"] = continuedFrom;
  SessionOptions options = sessionOptions(flags, model);
  json["schedule"] = {{"kind", options.schedule->kind},
                      {"warmup", options.schedule->warmup},
                      {"steps", options.schedule->steps},
                      {"final", options.schedule->final}};
  json["clip_norm"] = flags.clipNorm.value_or(model.clip_norm);
  json["clip_value"] = flags.clipValue.value_or(model.clip_value);
  return json;
}

Json Training::timings() const {
  Json json = {{"start_to_first_step_seconds", firstStepSeconds},
               {"total_seconds", secondsSince(start)},
               {"steps", stepsHere},
               {"rows", rowsHere}};
  if (timedSteps > 0) {
    json["milliseconds_per_step"] = timedSeconds * 1000 / static_cast<double>(timedSteps);
    json["rows_per_second"] = static_cast<double>(timedRows) / timedSeconds;
  }
  return json;
}

static Json exchangesToJson(const ExchangeCounts &counts) {
  return {{"rounds", counts.rounds},
          {"looked_up", counts.lookedUp},
          {"asked", counts.asked},
          {"served", counts.served},
          {"found", counts.found},
          {"id_bytes", counts.idBytes},
          {"row_bytes", counts.rowBytes},
          {"early_row_bytes", counts.earlyRowBytes},
          {"gradient_bytes", counts.gradientBytes},
          {"dense_bytes", counts.denseBytes}};
}

/// Where rows of tables are; of a run that chooses, also what it has counted and measured.
static Json placementToJson(const PlacementReport &report) {
  Json tables = Json::array(), moves = Json::array();
  for (const PlacementReport::Table &table : report.tables) {
    Json json = {{"table", table.name},
                 {"placement", table.isReplicated ? "replicated" : "sharded"},
                 {"why", table.why}};
    if (report.looks > 0) {
      json["rows"] = table.rows;
      json["asked"] = table.needs.asked;
      json["sharded_bytes"] = table.needs.shardedBytes;
      json["replicated_bytes"] = table.needs.replicatedBytes;
      json["replica_resident_bytes"] = table.needs.residentBytes;
    }
    tables.push_back(std::move(json));
  }
  for (const PlacementReport::Move &move : report.moves)
    moves.push_back({{"after_step", move.step}, {"replicated", move.replicated}});
  Json json = {{"tables", std::move(tables)}, {"moves", std::move(moves)}};
  if (report.looks == 0)
    return json;
  json["looks"] = report.looks;
  json["round_microseconds"] = report.machine.roundSeconds * 1e6;
  json["network_bits_per_second"] = report.machine.bytesPerSecond * 8;
  json["replica_memory_bytes"] = report.machine.replicaBytes;
  json["rounds"] = {{"sharded", report.rounds.sharded}, {"replicated", report.rounds.replicated}};
  json["milliseconds"] = report.seconds * 1e3;
  json["sharded_milliseconds"] = report.shardedSeconds * 1e3;
  json["replicated_milliseconds"] =
      report.replicatedSeconds ? Json(*report.replicatedSeconds * 1e3) : Json(nullptr);
  return json;
}

static Json hostToJson(const HostSeconds &host) {
  return {{"steps", host.steps},
          {"data_ms", host.data * 1e3},
          {"batch_ms", host.batch * 1e3},
          {"dispatch_ms", host.dispatch * 1e3},
          {"stages_ms", host.stages * 1e3},
          {"wait_ms", host.wait * 1e3},
          {"end_ms", host.end * 1e3}};
}

static Json deviceToJson(const DeviceUse &use) {
  return {{"waits", use.waits},
          {"allocations", use.allocations},
          {"steps_captured", use.captures},
          {"captured_steps_launched", use.launches},
          {"updates_captured", use.updateCaptures},
          {"captured_updates_launched", use.updateLaunches},
          {"steps_dispatched_ahead", use.dispatchedAhead},
          {"not_captured", use.refusals},
          {"host", hostToJson(use.host)}};
}

/// What this rank has exchanged, and under "ranks" what each has. Collective.
static Json exchangesToJson(const Session &session, Communicator &comm) {
  ExchangeCounts own = session.exchanges();
  std::vector<ExchangeCounts> all(comm.getSize());
  comm.allGather(&own, all.data(), sizeof own);
  Json json = exchangesToJson(own), ranks = Json::array();
  for (const ExchangeCounts &counts : all)
    ranks.push_back(exchangesToJson(counts));
  json["ranks"] = std::move(ranks);
  return json;
}

Json Training::summary(const Json &work) const {
  Json final = Json::object();
  if (!history.empty()) {
    final["loss"] = history.back()["loss"];
    final["epoch"] = history.back()["epoch"];
  }
  final["step"] = state.step;
  if (std::optional<int64_t> seconds = session->clock().seconds)
    final["clock_seconds"] = *seconds;
  if (!lastEvaluation.is_null())
    final["evaluation"] = lastEvaluation;
  if (flags.patience > 0) {
    Patience patience = patienceOf(history, flags.monitor);
    final["stopped_early"] = isOutOfPatience();
    if (patience.hasBest())
      final["best"] = {{"epoch", patience.bestEpoch},
                       {"step", patience.bestStep},
                       {flags.monitor, patience.best}};
  }
  Json memory = memoryToJson(session->memoryUse());
  memory["data"] = data->heldBytes() + (validation ? validation->heldBytes() : 0);
  memory["resident_at_start"] = residentAtStart;
  memory["resident_before_training"] = residentBefore;
  memory["resident_after"] = residentBytes();
  memory["resident_peak"] = peakResidentBytes();
  Json json = {{"model", model.name},
               {"compiler", model.compiler ? model.compiler : ""},
               {"config", configuration()},
               {"hardware", hardware()},
               {"history", history},
               {"final", final},
               {"metric_notes", metricNotes(model)},
               {"timings", timings()},
               {"memory_bytes", memory},
               {"work", work},
               {"arena_allocations", session->arenaAllocations()},
               {"warnings", data->warnings()}};
  if (comm && comm->getSize() > 1) {
    json["exchanges"] = exchangesToJson(*session, *comm);
    json["placement"] = placementToJson(session->placement());
  }
  if (std::optional<DeviceUse> use = session->deviceUse())
    json["device"] = deviceToJson(*use);
  if (!before.empty())
    json["before"] = before;
  if (!stepLosses.empty())
    json["step_losses"] = stepLosses;
  return json;
}

} // namespace genrec::rt
