//===- ExplainWorld.cpp - what several ranks would need -------------------===//

#include "ExplainWorld.h"

#include "ExplainMemory.h"
#include "HostTables.h"
#include "Placement.h"
#include "World.h"
#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Report/Plan.h"
#include "genrec/Report/PlanJson.h"
#include "genrec_rt/footprint.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
namespace json = llvm::json;

/// With more ranks, per-rank numbers are told as mean and most only.
static constexpr int64_t kMostRanksTold = 64;

ProgramOp genrec::getStepProgram(ModelOp model) {
  for (ProgramOp program : model.getOps<ProgramOp>())
    if (program.getMode() == ProgramMode::train)
      return program;
  return {};
}

namespace {

/// Mean and most over ranks.
struct Spread {
  double mean = 0, most = 0;
  double imbalance() const { return mean > 0 ? most / mean : 1; }
};

class WorldDescriber {
public:
  WorldDescriber(ModelOp model, ModelOp apart, const ExplainOptions &options)
      : model(model), options(options), world(getStepProgram(apart), options),
        chosen(world, options.machine) {}

  json::Object describe();

private:
  Spread spread(llvm::function_ref<double(const RankTraffic &)> value) const;
  double seconds(llvm::function_ref<const RankTraffic::Bytes &(const RankTraffic &)> bytes) const;
  json::Array exchanges();
  json::Array tables();
  json::Object placement();
  json::Array memory();
  json::Array perRank() const;
  /// What one process of the ranks is to the report of memory.
  ExplainOptions getProcess();
  std::optional<double> computeSeconds();
  json::Object time();

  ModelOp model;
  const ExplainOptions &options;
  World world;
  WorldPlacement chosen;
  double memoryBytes = 0, networkSeconds = 0, latencySeconds = 0;
};

double positive(double value) { return std::max(value, 1e-300); }

} // namespace

Spread WorldDescriber::spread(llvm::function_ref<double(const RankTraffic &)> value) const {
  Spread result;
  for (const RankTraffic &rank : world.traffic) {
    result.mean += value(rank) / static_cast<double>(world.ranks());
    result.most = std::max(result.most, value(rank));
  }
  return result;
}

/// The bytes of an exchange at the rank that has most, without what its messages take besides.
double WorldDescriber::seconds(
    llvm::function_ref<const RankTraffic::Bytes &(const RankTraffic &)> bytes) const {
  double most = spread([&](const RankTraffic &rank) { return bytes(rank).most(); }).most;
  return most * 8 / options.machine.networkBitsPerSecond;
}

json::Array WorldDescriber::exchanges() {
  json::Array list;
  auto add = [&](StringRef name, Spread rows,
                 llvm::function_ref<const RankTraffic::Bytes &(const RankTraffic &)> bytes) {
    Spread received = spread([&](const RankTraffic &rank) { return bytes(rank).received; });
    networkSeconds += seconds(bytes);
    list.push_back(json::Object{{"exchange", name},
                                {"rows", rows.mean},
                                {"most_rows", rows.most},
                                {"bytes", received.mean},
                                {"most_bytes", received.most},
                                {"milliseconds", seconds(bytes) * 1e3}});
  };
  Spread asked = spread([](const RankTraffic &rank) { return rank.asked; }),
         served = spread([](const RankTraffic &rank) { return rank.served; });
  using Rank = const RankTraffic &;
  using Bytes = const RankTraffic::Bytes &;
  add("ids", served, [](Rank rank) -> Bytes { return rank.ids; });
  add("rows", asked, [](Rank rank) -> Bytes { return rank.rows; });
  add("gradients", served, [](Rank rank) -> Bytes { return rank.gradients; });
  add("dense gradients", Spread(), [](Rank rank) -> Bytes { return rank.dense; });
  return list;
}

json::Array WorldDescriber::tables() {
  json::Array list;
  auto ranks = static_cast<double>(world.ranks());
  for (auto [number, table] : llvm::enumerate(world.tables)) {
    const rt::PlacementChoice &choice = chosen.tables[number];
    TableOp op = table.table;
    auto owned = static_cast<int64_t>(std::ceil(table.mostOwned));
    auto bytes = static_cast<double>(rt::storeValueBytes(owned, op.getRowType().getStateOffset(),
                                                         op.getStateFloats(), op.hasRowRules()) +
                                     rt::storeKeyBytes(owned));
    list.push_back(
        json::Object{{"name", table.table.getSymName()},
                     {"ids", table.ids},
                     {"ids_from", table.source},
                     {"most_owned", table.mostOwned},
                     {"owned_imbalance", table.ids > 0 ? table.mostOwned * ranks / table.ids : 1},
                     {"bytes", bytes},
                     {"looked_up", table.lookedUp / ranks},
                     {"asked", table.asked / ranks},
                     {"served", table.served / ranks},
                     {"found", table.found / ranks},
                     {"lookups_per_asked", table.lookedUp / positive(table.asked)},
                     {"served_per_found", table.served / positive(table.found)},
                     {"is_replicated", options.replicate.contains(table.table.getSymName())},
                     {"sharded_bytes", table.placement.shardedBytes},
                     {"replicated_bytes", table.placement.replicatedBytes},
                     {"replica_resident_bytes", chosen.residentBytes[number]},
                     {"cheaper", choice.isReplicated ? "replicate" : "shard"},
                     {"why", choice.why}});
  }
  return list;
}

/// What a run chooses unless its flag --replicate tells it, and what that saves.
json::Object WorldDescriber::placement() {
  json::Array names;
  for (auto [number, table] : llvm::enumerate(world.tables))
    if (chosen.tables[number].isReplicated)
      names.push_back(table.table.getSymName());
  return json::Object{{"replicate", std::move(names)},
                      {"milliseconds", chosen.seconds * 1e3},
                      {"sharded_milliseconds", chosen.shardedSeconds * 1e3},
                      {"replicated_milliseconds", chosen.replicatedSeconds
                                                      ? json::Value(*chosen.replicatedSeconds * 1e3)
                                                      : json::Value(nullptr)}};
}

ExplainOptions WorldDescriber::getProcess() {
  ExplainOptions process = getPortionOptions(model, options, world.portions());
  process.portionsPerProcess = world.portionsOf(0);
  for (TableTraffic &table : world.tables)
    process.ids[table.table.getSymName()] = static_cast<int64_t>(std::ceil(table.mostOwned));
  return process;
}

json::Array WorldDescriber::memory() {
  ModelIndex index(model);
  ExplainOptions process = getProcess();
  std::vector<MemoryPart> parts = listMemory(getStepProgram(model), index, process);
  parts.insert(parts.end() - 1,
               {"exchanges", static_cast<int64_t>(world.exchangeBytes()),
                "rows, keys and sums of a step, in messages and in the tree of sums"});
  parts.back().bytes += static_cast<int64_t>(world.exchangeBytes());
  parts.back().note = "of the rank that needs most";
  memoryBytes = static_cast<double>(parts.back().bytes);
  json::Array list;
  for (const MemoryPart &part : parts)
    list.push_back(json::Object{{"part", part.name}, {"bytes", part.bytes}, {"note", part.note}});
  return list;
}

json::Array WorldDescriber::perRank() const {
  json::Array list;
  if (world.ranks() > kMostRanksTold)
    return list;
  for (const auto &[number, rank] : llvm::enumerate(world.traffic))
    list.push_back(json::Object{{"rank", static_cast<int64_t>(number)},
                                {"looked_up", rank.lookedUp},
                                {"asked", rank.asked},
                                {"served", rank.served},
                                {"found", rank.found},
                                {"id_bytes", rank.ids.received},
                                {"row_bytes", rank.rows.received},
                                {"gradient_bytes", rank.gradients.received},
                                {"dense_bytes", rank.dense.received}});
  return list;
}

std::optional<double> WorldDescriber::computeSeconds() {
  if (options.machine.computeSeconds)
    return options.machine.computeSeconds;
  std::optional<rt::Roofline> roofline = loadRoofline(model);
  if (!roofline)
    return std::nullopt;
  ExplainOptions process = getProcess();
  ProgramOp program = getStepProgram(model);
  DomainSizes sizes(program, process);
  double seconds = 0;
  for (const PlannedOp &op :
       getPlannedOps(program, [&](FlatSymbolRefAttr domain) { return sizes.getRows(domain); }))
    seconds += roofline->seconds(op.work);
  return seconds * static_cast<double>(process.portionsPerProcess);
}

/// What a step takes, and what runs out first: memory that there is not, else what takes the most
/// time.
json::Object WorldDescriber::time() {
  const RankMachine &machine = options.machine;
  latencySeconds = machine.messageSeconds * static_cast<double>(world.ranks() - 1) *
                   static_cast<double>(world.countRounds());
  std::optional<double> compute = computeSeconds();
  double network = world.ranks() > 1 ? networkSeconds : 0;
  std::string first, why;
  if (memoryBytes > machine.memoryBytes) {
    first = "memory";
    why = llvm::formatv("a rank needs {0:f1} GB of {1:f1} GB", memoryBytes / 1e9,
                        machine.memoryBytes / 1e9);
  } else if (!compute) {
    first = latencySeconds > network ? "messages" : "network";
    why =
        ("of what is known; times of compute need --compute-ms, or " + getCalibration(model)).str();
  } else {
    std::pair<double, StringRef> uses[] = {
        {*compute, "compute"}, {network, "network"}, {latencySeconds, "messages"}};
    auto most = *std::max_element(std::begin(uses), std::end(uses));
    first = most.second.str();
    why = llvm::formatv("{0:f0} % of a step whose parts follow each other",
                        100 * most.first / (*compute + network + latencySeconds));
  }
  json::Object result{{"network_milliseconds", network * 1e3},
                      {"message_milliseconds", latencySeconds * 1e3},
                      {"first", first},
                      {"why", why},
                      {"compute_from", machine.computeSeconds ? "--compute-ms"
                                       : compute              ? "at least, by --calibrate"
                                                              : "not known"}};
  if (compute) {
    double all = *compute + network + latencySeconds;
    result["compute_milliseconds"] = *compute * 1e3;
    result["rows_per_second"] = static_cast<double>(options.batch) / positive(all);
    result["efficiency"] = *compute / positive(all);
    // Exchanges of the next step may run beside compute.
    result["rows_per_second_overlapped"] =
        static_cast<double>(options.batch) / positive(std::max(*compute, all - *compute));
  }
  return result;
}

json::Object WorldDescriber::describe() {
  const RankMachine &machine = options.machine;
  json::Object result{
      {"ranks", world.ranks()},
      {"portions", world.portions()},
      {"batch", options.batch},
      {"rounds", world.countRounds()},
      {"machine", json::Object{{"memory_bytes", machine.memoryBytes},
                               {"network_bits_per_second", machine.networkBitsPerSecond},
                               {"message_microseconds", machine.messageSeconds * 1e6}}}};
  result["exchanges"] = exchanges();
  result["tables"] = tables();
  result["placement"] = placement();
  if (machine.deviceBytes)
    result["host_tables"] = describeHostTables(model, world, options);
  result["memory"] = memory();
  result["time"] = time();
  result["per_rank"] = perRank();
  auto bytes = spread([](const RankTraffic &rank) { return rank.received(); });
  auto served = spread([](const RankTraffic &rank) { return rank.served; });
  result["imbalance"] = json::Object{{"bytes", bytes.imbalance()}, {"served", served.imbalance()}};
  return result;
}

json::Object genrec::describeWorld(ModelOp model, ModelOp apart, const ExplainOptions &options) {
  if (!options.choosesReplicas)
    return WorldDescriber(model, apart, options).describe();
  ExplainOptions asChosen = options;
  World world(getStepProgram(apart), options);
  WorldPlacement placement(world, options.machine);
  for (auto [table, choice] : llvm::zip_equal(world.tables, placement.tables))
    if (choice.isReplicated)
      asChosen.replicate.insert(table.table.getSymName());
  return WorldDescriber(model, apart, asChosen).describe();
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

static double number(const json::Object &object, StringRef key) {
  return object.getNumber(key).value_or(0);
}

static void printTables(const json::Object &world, raw_ostream &os) {
  os << "  ids of a step, per rank\n    " << llvm::left_justify("table", 22)
     << "       ids   most owned  looked up     asked  per ask    served     found per find\n";
  for (const json::Object *table : getObjects(world, "tables"))
    os << "    " << llvm::left_justify(table->getString("name").value_or("").take_front(22), 22)
       << llvm::format("%10.0f %12.0f %10.0f %9.0f %8.2f %9.0f %9.0f %8.2f  ",
                       number(*table, "ids"), number(*table, "most_owned"),
                       number(*table, "looked_up"), number(*table, "asked"),
                       number(*table, "lookups_per_asked"), number(*table, "served"),
                       number(*table, "found"), number(*table, "served_per_found"))
       << table->getString("ids_from").value_or("") << "\n";
}

static void printExchanges(const json::Object &world, raw_ostream &os) {
  os << "  what comes to a rank in a step, in " << static_cast<int64_t>(number(world, "rounds"))
     << " rounds\n    " << llvm::left_justify("exchange", 18)
     << "      rows      most        KB      most    ms\n";
  for (const json::Object *exchange : getObjects(world, "exchanges"))
    os << "    " << llvm::left_justify(exchange->getString("exchange").value_or(""), 18)
       << llvm::format("%10.0f %9.0f %9.1f %9.1f %7.3f\n", number(*exchange, "rows"),
                       number(*exchange, "most_rows"), number(*exchange, "bytes") * 1e-3,
                       number(*exchange, "most_bytes") * 1e-3, number(*exchange, "milliseconds"));
  if (const json::Object *imbalance = world.getObject("imbalance"))
    os << llvm::formatv("    most over mean: {0:f3} of bytes, {1:f3} of rows served\n",
                        number(*imbalance, "bytes"), number(*imbalance, "served"));
}

static void printTime(const json::Object &world, raw_ostream &os) {
  const json::Object &time = *world.getObject("time"), &machine = *world.getObject("machine");
  os << "  time of a step\n";
  if (time.get("compute_milliseconds"))
    os << llvm::formatv("    compute {0:f3} ms ({1}), ", number(time, "compute_milliseconds"),
                        time.getString("compute_from").value_or(""));
  else
    os << "    compute not known (--compute-ms), ";
  os << llvm::formatv(
      "bytes {0:f3} ms at {1:f0} Gbit/s, messages {2:f3} ms at {3:f1} us each\n",
      number(time, "network_milliseconds"), number(machine, "network_bits_per_second") * 1e-9,
      number(time, "message_milliseconds"), number(machine, "message_microseconds"));
  if (time.get("rows_per_second"))
    os << llvm::formatv("    {0:f0} rows per second, {1:f0} where exchanges are hidden; compute is "
                        "{2:f0} % of a step\n",
                        number(time, "rows_per_second"), number(time, "rows_per_second_overlapped"),
                        100 * number(time, "efficiency"));
  os << "    runs out first: " << time.getString("first").value_or("") << " ("
     << time.getString("why").value_or("") << ")\n";
}

static void printPlacement(const json::Object &world, raw_ostream &os) {
  os << "  placement: KB that come to a rank in a step\n    " << llvm::left_justify("table", 22)
     << "   sharded replicated  MB per replica  cheaper\n";
  for (const json::Object *table : getObjects(world, "tables"))
    os << "    " << llvm::left_justify(table->getString("name").value_or("").take_front(22), 22)
       << llvm::format("%10.1f %10.1f %15.1f  ", number(*table, "sharded_bytes") * 1e-3,
                       number(*table, "replicated_bytes") * 1e-3,
                       number(*table, "replica_resident_bytes") * 1e-6)
       << table->getString("cheaper").value_or("") << ": " << table->getString("why").value_or("")
       << (table->getBoolean("is_replicated").value_or(false) ? "; replicated here" : "") << "\n";
  const json::Object &chosen = *world.getObject("placement");
  os << llvm::formatv("    exchanges of rows take {0:f3} ms sharded",
                      number(chosen, "sharded_milliseconds"));
  if (const json::Array &names = *chosen.getArray("replicate"); !names.empty()) {
    os << llvm::formatv(", {0:f3} ms as a run chooses: --replicate ",
                        number(chosen, "milliseconds"));
    llvm::interleave(names, os, [&](const json::Value &name) { os << *name.getAsString(); }, ",");
  } else {
    os << ", as a run chooses";
  }
  os << "\n";
}

void genrec::printWorld(const json::Object &world, raw_ostream &os) {
  os << llvm::formatv("on {0} ranks, a global batch of {1} root rows in {2} portions\n",
                      static_cast<int64_t>(number(world, "ranks")),
                      static_cast<int64_t>(number(world, "batch")),
                      static_cast<int64_t>(number(world, "portions")));
  printTables(world, os);
  printExchanges(world, os);
  printPlacement(world, os);
  if (const json::Object *hostTables = world.getObject("host_tables"))
    printHostTables(*hostTables, os);
  os << "  memory of a rank\n";
  for (const json::Object *part : getObjects(world, "memory"))
    os << llvm::formatv("    {0,-26}{1,9:f1} MB   {2}\n", part->getString("part").value_or(""),
                        number(*part, "bytes") / 1e6, part->getString("note").value_or(""));
  printTime(world, os);
}
