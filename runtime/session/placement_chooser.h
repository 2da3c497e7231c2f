//===- placement_chooser.h - A run chooses where rows are --------*- C++ -*-===//
//
// While several ranks train, they look now and then at what steps exchange for each table, at what
// a round and a byte take between them, and at how large tables are; the cost model of
// genrec_rt/placement.h says which tables every rank should have all rows of. All ranks compute
// that from the same figures. Then rows move: results have the same bits wherever rows are.
//
// Ranks look after 64 training steps, and again whenever there have been twice as many. New ids of
// a table become rarer, so it has at most twice its rows at the next look: replicas are allowed
// for as many.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_PLACEMENT_CHOOSER_H
#define GENREC_RT_SESSION_PLACEMENT_CHOOSER_H

#include "genrec_rt/placement.h"
#include "ranks.h"
#include "runtime_state.h"

namespace genrec::rt {

/// Where rows are if nobody chooses; `why` is that of sharded tables.
PlacementReport describePlacement(const genrec_model_desc &model, std::span<const char> replicated,
                                  const std::string &why);

class PlacementChooser {
public:
  /// Training steps before the first look. The trial of early gradients (AheadTrial) is over then.
  static constexpr int64_t kFirstLook = 64;

  /// `hidesKeys`: keys of the first fetch, and early rows, travel beside the step before.
  /// `replicaBytes`: that replicas may take on each rank; 0: kReplicaShare of its memory.
  PlacementChooser(genrec_runtime &state, bool hidesKeys, int64_t replicaBytes);

  /// Whether ranks look once the next training step has ended: nothing of the step after it may be
  /// on its way then.
  bool looksAfterNext() const { return steps + 1 == nextLook; }
  /// A training step has ended. Collective where ranks look. Returns whether rows have moved.
  bool endStep(const RankStep &step, uint64_t number);

  const PlacementReport &report() const { return told; }

private:
  /// What a rank has to say at a look.
  struct Figures {
    char machine[40];            ///< whose memory it is: Cores::machine, or a device
    double memoryBytes;          ///< of it
    double freeBytes;            ///< of a device; else all
    double copiedBytesPerSecond; ///< within a device's memory
    double roundSeconds;         ///< of messages without bytes worth mentioning
    double largeRoundSeconds;    ///< of kProbeBytes
    double rowBytes, earlyRowBytes;
    RowExchange::Fetches fetches;
  };
  /// The same of a table.
  struct TableFigures {
    double asked; ///< distinct ids in the last step
    double sums;  ///< of gradients that it gave for them
    int64_t rows; ///< that it has
  };

  void look(const RankStep &step);
  Figures measure(const RankStep &step) const;
  std::vector<TableFigures> count(const RankStep &step) const;
  std::vector<PlacedTable> placeTables(std::span<const TableFigures> all,
                                       std::span<const Figures> ranks);
  PlacementMachine describeMachine(std::span<const Figures> ranks,
                                   std::span<const PlacedTable> placed) const;
  static double secondsOfRow(const StoreConfig &config, std::span<const Figures> ranks);
  PlacementRounds countRounds(const RowExchange::Fetches &fetches) const;
  PlacementRounds countRoundsOfDevices(const DeviceRanks &step) const;
  TableView view(int32_t table) const;
  bool move(uint64_t step);

  genrec_runtime &state;
  Communicator &comm;
  const bool hidesKeys;
  const int64_t replicaBytes;
  int64_t steps = 0, nextLook = kFirstLook;
  PlacementReport told;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_PLACEMENT_CHOOSER_H
