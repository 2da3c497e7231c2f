//===- HostTables.cpp - tables whose rows a device has a part of ----------===//

#include "HostTables.h"

#include "genrec/Report/PlanJson.h"
#include "genrec_rt/footprint.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace genrec;
namespace json = llvm::json;

namespace {

/// The rows of a table by falling probability that a step looks them up.
struct Ranking {
  HostTableChoice *choice;
  std::vector<double> probability;

  /// Those that are looked up more than `least` times per byte.
  double countAbove(double least) const {
    auto end = std::ranges::partition_point(
        probability, [&](double each) { return each > least * choice->rowBytes; });
    return static_cast<double>(end - probability.begin());
  }
};

} // namespace

/// Finds how often a row is looked up, per byte, that just has room in so many bytes.
static void divide(std::vector<Ranking> &rankings, double bytes) {
  auto bytesAbove = [&](double least) {
    double sum = 0;
    for (const Ranking &ranking : rankings)
      sum += ranking.countAbove(least) * ranking.choice->rowBytes;
    return sum;
  };
  double low = 0, high = 1; // a row has more than a byte
  for (int step = 0; step < 100; ++step) {
    double middle = (low + high) / 2;
    (bytesAbove(middle) > bytes ? low : high) = middle;
  }
  double left = bytes - bytesAbove(high);
  for (Ranking &ranking : rankings) {
    HostTableChoice &choice = *ranking.choice;
    choice.cachedRows = ranking.countAbove(high);
    // Rows that are looked up equally often are taken as long as there is room.
    double more =
        std::min(ranking.countAbove(low) - choice.cachedRows, std::floor(left / choice.rowBytes));
    choice.cachedRows += more;
    left -= more * choice.rowBytes;
  }
}

HostTables::HostTables(const World &world, const ExplainOptions &options)
    : choices(world.tables.size()) {
  auto ranks = static_cast<double>(world.ranks());
  double room = *options.machine.deviceBytes * ranks;
  SmallVector<std::pair<HostTableChoice *, const IdModel *>> movable;
  for (auto [table, choice] : llvm::zip_equal(world.tables, choices)) {
    TableOp op = table.table;
    choice.rows = choice.cachedRows = std::ceil(table.ids);
    choice.rowBytes = static_cast<double>(rt::storeValueBytes(
        1, op.getRowType().getStateOffset(), op.getStateFloats(), op.hasRowRules()));
    allBytes += choice.rows * choice.rowBytes / ranks;
    choice.why = op.hasRowRules()             ? "has rules, which read every row"
                 : !table.ids || !table.model ? "nothing tells its ids"
                                              : "";
    if (!choice.why.empty()) {
      room -= choice.rows * choice.rowBytes;
    } else {
      choice.why = "has room";
      movable.push_back({&choice, table.model.get()});
    }
  }
  if (allBytes <= *options.machine.deviceBytes)
    return;
  std::vector<Ranking> rankings;
  for (auto [choice, model] : movable)
    rankings.push_back({choice, model->listProbabilities(static_cast<double>(options.batch))});
  divide(rankings, std::max(room, 0.0));
  for (const Ranking &ranking : rankings) {
    HostTableChoice &choice = *ranking.choice;
    choice.isOnHost = choice.cachedRows < choice.rows;
    if (!choice.isOnHost)
      continue;
    choice.why = "its rows are looked up least often by bytes";
    auto first =
        std::min<size_t>(static_cast<size_t>(choice.cachedRows), ranking.probability.size());
    choice.missedRows = std::accumulate(ranking.probability.begin() + static_cast<ptrdiff_t>(first),
                                        ranking.probability.end(), 0.0);
    busBytes += 2 * choice.missedRows * choice.rowBytes / ranks;
  }
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

/// Tables that are in host memory, and those that share a store with one.
static llvm::StringSet<> listOnHost(ModelOp model, const World &world,
                                    const HostTables &hostTables) {
  llvm::StringSet<> names;
  for (auto [table, choice] : llvm::zip_equal(world.tables, hostTables.choices))
    if (choice.isOnHost)
      names.insert(TableOp(table.table).getSymName());
  for (TableOp merged : model.getBody().front().getOps<TableOp>()) {
    SmallVector<StringRef> members;
    if (ArrayAttr list = merged.getMembersAttr())
      for (auto member : list.getAsRange<FlatSymbolRefAttr>())
        members.push_back(member.getValue());
    if (llvm::any_of(members, [&](StringRef name) { return names.contains(name); }))
      names.insert(members.begin(), members.end());
  }
  return names;
}

json::Object genrec::describeHostTables(ModelOp model, const World &world,
                                        const ExplainOptions &options) {
  HostTables hostTables(world, options);
  llvm::StringSet<> onHost = listOnHost(model, world, hostTables);
  auto ranks = static_cast<double>(world.ranks());
  json::Array tables;
  std::string flag;
  for (auto [table, choice] : llvm::zip_equal(world.tables, hostTables.choices)) {
    // A cache of no rows is none; the first row costs no more than another one.
    auto cached = static_cast<int64_t>(std::max(1.0, std::floor(choice.cachedRows / ranks)));
    StringRef name = TableOp(table.table).getSymName();
    bool isOnHost = onHost.contains(name);
    std::string why = isOnHost && !choice.isOnHost
                          ? "shares a store with one that has no room, all of its rows are cached"
                          : choice.why;
    tables.push_back(json::Object{{"name", name},
                                  {"bytes", choice.rows * choice.rowBytes / ranks},
                                  {"is_on_host", isOnHost},
                                  {"cached_rows", isOnHost ? cached : 0},
                                  {"missed_rows", choice.missedRows / ranks},
                                  {"why", why}});
    if (isOnHost)
      flag += (flag.empty() ? "" : ",") + name.str() + "=" + std::to_string(cached);
  }
  return json::Object{
      {"tables", std::move(tables)},
      {"host_tables", flag},
      {"row_bytes", hostTables.allBytes},
      {"device_bytes", *options.machine.deviceBytes},
      {"bus_bytes", hostTables.busBytes},
      {"milliseconds", hostTables.busBytes / options.machine.busBytesPerSecond * 1e3}};
}

void genrec::printHostTables(const json::Object &hostTables, raw_ostream &os) {
  auto number = [](const json::Object &object, StringRef key) {
    return object.getNumber(key).value_or(0);
  };
  os << llvm::formatv("  rows of tables take {0:f1} MB of a device's {1:f1} MB\n    ",
                      number(hostTables, "row_bytes") * 1e-6,
                      number(hostTables, "device_bytes") * 1e-6)
     << llvm::left_justify("table", 22) << "       MB  cached rows  copied in a step\n";
  for (const json::Object *table : getObjects(hostTables, "tables"))
    os << "    " << llvm::left_justify(table->getString("name").value_or("").take_front(22), 22)
       << llvm::format("%9.1f %12.0f %17.1f  ", number(*table, "bytes") * 1e-6,
                       number(*table, "cached_rows"), number(*table, "missed_rows"))
       << (table->getBoolean("is_on_host").value_or(false) ? "host: " : "device: ")
       << table->getString("why").value_or("") << "\n";
  if (StringRef flag = hostTables.getString("host_tables").value_or(""); !flag.empty())
    os << llvm::formatv("    a step copies {0:f1} KB, {1:f3} ms, with --host-tables {2}\n",
                        number(hostTables, "bus_bytes") * 1e-3, number(hostTables, "milliseconds"),
                        flag);
}
