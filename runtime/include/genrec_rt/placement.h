//===- placement.h - Where several ranks keep the rows of tables -*- C++ -*-===//
//
// Rows of a table are sharded, each at its owner (owner.h), or every rank has all of them.
// `choosePlacement` is the one cost model of that choice: a run asks it with what it has counted
// and measured, `genrec-compile --explain --world` with what it predicts. Results have the same
// bits under any placement. Needs no more than the standard library.
//
// What exchanges of rows take in a step: the bytes that come to a rank over its bandwidth, the
// work on replicas that others have looked up, and the rounds. So
//
// - replicas of rows that do not learn are free but for memory;
// - replicas of rows that learn mostly move more bytes than shards, as gradients go to all ranks,
//   and all ranks update them. They pay for it only if no table is sharded: then values, and mostly
//   keys, make no round.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_PLACEMENT_H
#define GENREC_RT_PLACEMENT_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace genrec::rt {

/// Of a rank's memory, what all replicas that a cost model chooses may take together.
inline constexpr double kReplicaShare = 0.05;

/// Replicas of all tables come, and go, where that leaves at most this share of what exchanges of
/// rows take: figures of one machine and one step are no more certain, and rows do not move to and
/// fro.
inline constexpr double kWorthwhileShare = 0.9;

/// What a rank does for one id that another rank has looked up in a replica: finds its row, adds
/// its sum, updates it. Measured on hosts with benchmarks/rank_placement (docs/ranks.md).
inline double replicaRowSeconds(int64_t dim) { return 55e-9 + 1e-9 * static_cast<double>(dim); }

/// What a step has of one table, in the mean of ranks.
struct PlacedTable {
  int64_t dim = 0;
  bool learns = true;         ///< whether steps insert or change rows
  bool isReplicated = false;  ///< by now
  double asked = 0;           ///< distinct ids that a rank looks up
  double shardedBytes = 0;    ///< that come to a rank if rows are sharded
  double replicatedBytes = 0; ///< the same if every rank has all
  double residentBytes = 0;   ///< of a replica, on each rank
  std::string refusal{};      ///< why every rank cannot have all rows; empty: it can
  /// What a rank does for one id that another rank has looked up; none: replicaRowSeconds.
  std::optional<double> rowSeconds{};
};

struct PlacementMachine {
  int64_t ranks = 1;
  double bytesPerSecond = 0; ///< into a rank
  double roundSeconds = 0;   ///< that a round takes besides its bytes
  double replicaBytes = 0;   ///< that replicas may take on each rank
};

/// Rounds of a step that nothing hides, those of gradients left out.
struct PlacementRounds {
  int64_t sharded = 0;    ///< if any table is sharded
  int64_t replicated = 0; ///< if none is
};

struct PlacementChoice {
  bool isReplicated = false;
  std::string why;
};

struct Placement {
  std::vector<PlacementChoice> tables;
  double seconds = 0;        ///< that exchanges of rows take in a step
  double shardedSeconds = 0; ///< the same if all tables are sharded
  /// The same if all are replicated; none where that is refused.
  std::optional<double> replicatedSeconds;
};

/// Fills in a format of printf.
template <class... Values> std::string formatText(const char *format, Values... values) {
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, format, values...)), '\0');
  std::snprintf(text.data(), text.size() + 1, format, values...);
  return text;
}

/// Finds the placement whose exchanges take least; see choosePlacement.
class PlacementSearch {
public:
  PlacementSearch(std::span<const PlacedTable> tables, PlacementRounds rounds,
                  const PlacementMachine &machine)
      : tables(tables), rounds(rounds), machine(machine) {}

  Placement find() {
    found.tables.resize(tables.size());
    found.shardedSeconds = secondsOf([](size_t) { return false; });
    chooseEach();
    found.seconds = secondsOf([&](size_t i) { return found.tables[i].isReplicated; });
    chooseAll();
    return std::move(found);
  }

private:
  /// Of one table, without rounds.
  double secondsOf(const PlacedTable &table, bool isReplicated) const {
    if (!isReplicated)
      return table.shardedBytes / machine.bytesPerSecond;
    double others = table.learns ? static_cast<double>(machine.ranks - 1) * table.asked : 0;
    return table.replicatedBytes / machine.bytesPerSecond +
           others * table.rowSeconds.value_or(replicaRowSeconds(table.dim));
  }

  template <class IsReplicated> double secondsOf(const IsReplicated &isReplicated) const {
    double seconds = 0;
    bool all = true;
    for (size_t i = 0; i < tables.size(); ++i) {
      seconds += secondsOf(tables[i], isReplicated(i));
      all &= isReplicated(i);
    }
    return seconds +
           static_cast<double>(all ? rounds.replicated : rounds.sharded) * machine.roundSeconds;
  }

  bool isCheaperAlone(const PlacedTable &table) const {
    return secondsOf(table, true) < secondsOf(table, false);
  }

  /// Replicates tables that gain by themselves, those of the smallest replicas first.
  void chooseEach() {
    std::vector<size_t> order(tables.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      double bytes = tables[a].residentBytes, others = tables[b].residentBytes;
      return bytes != others ? bytes < others : a < b;
    });
    double left = machine.replicaBytes;
    for (size_t i : order) {
      const PlacedTable &table = tables[i];
      PlacementChoice &choice = found.tables[i];
      if (!table.refusal.empty()) {
        choice.why = table.refusal;
      } else if (!isCheaperAlone(table)) {
        choice.why = table.asked == 0                             ? "nothing looks it up"
                     : table.replicatedBytes > table.shardedBytes ? "would move more bytes"
                                                                  : "all ranks would update it";
      } else if (table.residentBytes > left) {
        choice.why = formatText("a replica takes %.1f MB, of %.1f MB that replicas may take",
                                table.residentBytes * 1e-6, machine.replicaBytes * 1e-6);
      } else {
        choice = {true, "moves fewer bytes"};
        left -= table.residentBytes;
      }
    }
  }

  /// Replicates all tables where rounds that this saves are worth it.
  void chooseAll() {
    auto refused = std::find_if(tables.begin(), tables.end(),
                                [](const PlacedTable &table) { return !table.refusal.empty(); });
    if (refused != tables.end())
      return explainRest("; as a table must be sharded, it would save no round");
    double all = secondsOf([](size_t) { return true; });
    found.replicatedSeconds = all;
    double resident = 0;
    for (const PlacedTable &table : tables)
      resident += table.residentBytes;
    if (resident > machine.replicaBytes)
      return explainRest(
          formatText("; replicas of all tables take %.1f MB, of %.1f MB that replicas may take",
                     resident * 1e-6, machine.replicaBytes * 1e-6));
    bool areReplicated = std::all_of(tables.begin(), tables.end(),
                                     [](const PlacedTable &table) { return table.isReplicated; });
    double share = areReplicated ? 1 / kWorthwhileShare : kWorthwhileShare;
    if (all >= share * found.seconds)
      return explainRest(
          formatText("; with replicas of all tables, exchanges take %.3f ms instead of %.3f ms",
                     all * 1e3, found.seconds * 1e3));
    for (PlacementChoice &choice : found.tables)
      if (!choice.isReplicated)
        choice = {true, formatText("with all tables replicated, a step has %lld rounds of keys and "
                                   "values instead of %lld",
                                   static_cast<long long>(rounds.replicated),
                                   static_cast<long long>(rounds.sharded))};
    found.seconds = all;
  }

  /// Why tables that may have replicas have none with all others either.
  void explainRest(const std::string &why) {
    for (size_t i = 0; i < tables.size(); ++i)
      if (!found.tables[i].isReplicated && tables[i].refusal.empty())
        found.tables[i].why += why;
  }

  const std::span<const PlacedTable> tables;
  const PlacementRounds rounds;
  const PlacementMachine machine;
  Placement found;
};

/// The tables to replicate so that exchanges of rows take least, and why, table by table.
inline Placement choosePlacement(std::span<const PlacedTable> tables, PlacementRounds rounds,
                                 const PlacementMachine &machine) {
  return PlacementSearch(tables, rounds, machine).find();
}

/// Where the rows of a run's tables are.
struct PlacementReport {
  struct Table {
    std::string name;
    bool isReplicated = false;
    std::string why;
    int64_t rows = 0; ///< of all ranks together, at the last look
    PlacedTable needs{};
  };
  /// From the step after this one on.
  struct Move {
    uint64_t step = 0;
    std::vector<std::string> replicated; ///< tables of which every rank has all rows
  };

  std::vector<Table> tables; ///< by index
  std::vector<Move> moves;
  // Where the run chooses, as of the last look.
  int64_t looks = 0;
  PlacementMachine machine;
  PlacementRounds rounds;
  double seconds = 0, shardedSeconds = 0; ///< as those of Placement
  std::optional<double> replicatedSeconds;
};

} // namespace genrec::rt

#endif // GENREC_RT_PLACEMENT_H
