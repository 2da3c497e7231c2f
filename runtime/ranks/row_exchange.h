//===- row_exchange.h - Rows of sharded tables, among ranks -----*- C++ -*-===//
//
// What one step moves: keys to the ranks that own their rows (owner.h), copies of the rows' values
// back, and after the backward pass the sums of gradients to the owners. Every distinct key travels
// once per rank and step; all tables and dimensions share a message. Sums of portions are added in
// the tree of portions.h, so that their bits do not depend on the number of ranks.
//
// A step: begin, fetch once or several times, contribute for portions, collect, getUpdate. It
// knows no store: rows are found by a callback, and the caller updates them. A fetch is one round
// of keys and one of values; collect is one round. Messages say how large they are
// (bucketed_round.h).
//
// Of a replicated table every rank has all rows. It finds those that it asks for itself; keys and
// sums of what its portions asked for go to all ranks with the other sums, so that each adds the
// same sums in the same order and makes the same updates.
//
// The first fetch of a step may be done in parts, beside the step before it: `ask` needs no values,
// `bringEarly` brings those rows that the running step does not update, and once that step has
// updated its own, `find` and `bring` do the rest.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_RANKS_ROW_EXCHANGE_H
#define GENREC_RT_RANKS_ROW_EXCHANGE_H

#include "../comm/bucketed_round.h"
#include "genrec_rt/comm.h"
#include "genrec_rt/exchange_counts.h"
#include "genrec_rt/row_travel.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace genrec::rt {

/// The keys that one lookup of one portion asks for. `rows[i]` becomes the address of a copy of the
/// row's value: the same one for equal keys of one step, `valueFloats()` floats, not to be written
/// to, there until `begin`. Entries with valid[i] == 0 (`valid` may be null) and those whose key is
/// -1 become `zeroRow`.
struct RowRequest {
  int32_t store = 0;
  const int64_t *keys = nullptr;
  const uint8_t *valid = nullptr;
  int64_t count = 0;
  float **rows = nullptr;
  float *zeroRow = nullptr;
};

/// What this rank asks of others, and what it owns that others ask for. Calls are not safe beside
/// each other. What a collective call throws on one rank, the callback's exceptions included, ends
/// the calls of all others with its text (Communicator::abort). Buffers grow and are kept: a step
/// like those before it allocates nothing.
class RowExchange {
public:
  /// `portions` are those of all ranks; this rank's are getPortions(portions, rank, ranks).
  RowExchange(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions,
              RowTravel travel = {});
  ~RowExchange();

  /// Writes the addresses of the rows of distinct keys that this rank owns: in its store in
  /// training, which inserts what is missing; of temporary rows otherwise. Addresses stay valid
  /// until `begin`. Called once per fetch and store that has keys not found before in this step: in
  /// the order of the ranks that ask, and for each in the order in which it asked first.
  using FindRows = std::function<void(int32_t store, std::span<const int64_t> keys, float **rows)>;

  /// Begins a step: forgets the rows and sums of the one before.
  void begin();
  /// Forgets the sizes of messages before; all ranks at the same time.
  void reset();
  /// Between two steps, all ranks at the same time: which tables have replicas from now on, by
  /// store as ExchangedStore::replicated. Begins a step.
  void setReplicated(std::span<const std::vector<char>> ofStores);

  /// Fetches rows for all requests. Keys already here are not fetched again. Collective: one round
  /// of keys, one of values, whatever the requests are.
  void fetch(std::span<const RowRequest> requests, const FindRows &find, Rider *rider = nullptr);

  //===-- a fetch in parts --------------------------------------------------===//

  /// Sends keys to their owners. Collective on `on`, a communicator of these ranks. The requests'
  /// `rows` are written to by bringEarly or bring.
  void ask(Communicator &on, std::span<const RowRequest> requests, Rider *rider = nullptr);

  /// Writes the addresses of the rows that a store has, null for those that it has not; nothing may
  /// move them before this step's `bring`. False: of this store, none are early.
  using FindEarly = std::function<bool(int32_t store, std::span<const int64_t> keys, float **rows)>;
  /// Brings the rows that are found and that `running`, the step which goes on meanwhile, does not
  /// ask for: it updates no others; null: no step goes on. Collective on `on`, one round. In the
  /// first fetch of a step, or never. Stores with replicas have no early rows: the running step
  /// updates rows that this rank does not know yet, and inserts others.
  void bringEarly(Communicator &on, const RowExchange *running, const FindEarly &find);

  /// Finds the rows that were not found early. What it throws ends calls on `on`.
  void find(Communicator &on, const FindRows &find);
  /// Brings what bringEarly has not brought. Collective on `on`, one round.
  void bring(Communicator &on);

  //===-- after the backward pass ---------------------------------------------===//

  /// Sums of gradients of the distinct rows that one portion touches: `rows` are addresses that
  /// `fetch` gave, each once. Returns where the caller writes the sum of each row, `dim` floats,
  /// before its next call for this store; the addresses stay until then. A row with a sum of 0 is
  /// touched too. Once per store and portion, in the order of portions; those without a call touch
  /// nothing. Not collective.
  std::span<float *const> contribute(int32_t store, int32_t portion, std::span<float *const> rows);
  /// The same; copies the sums from `sums`, one behind another.
  void contribute(int32_t store, int32_t portion, std::span<float *const> rows, const float *sums);

  /// Adds the sums of all portions at the owners: per key those of the portions that touched it, in
  /// the tree of portions.h; one that did not contributes nothing (x, not x + 0). `find` finds or
  /// inserts what other ranks asked for in replicas; without replicas it may be empty. Collective,
  /// one round. Once per step.
  void collect(Rider *rider = nullptr, const FindRows &find = {});

  /// What an owner updates: each touched row once, at the address that the callback gave, and its
  /// sum, `dim` floats for each.
  struct Update {
    std::span<float *const> rows;
    const float *sums = nullptr;
    /// Of each row, whether this rank owns it; rows of replicas are updated by those that do not,
    /// too. Empty: it owns all.
    std::span<const char> isOwned;
  };
  /// After `collect`, until `begin`.
  Update getUpdate(int32_t store) const;

  /// What this rank had of a store's tables in the step that `collect` ended.
  struct Use {
    std::vector<int64_t> asked; ///< by member: distinct ids
    int64_t sums = 0;           ///< of gradients, that it gave: of all members
  };
  Use getUse(int32_t store) const;
  /// Fetches of that step, and those among them whose keys something rode with.
  struct Fetches {
    int64_t all = 0, ridden = 0;
  };
  Fetches getFetches() const;

  /// Since this was made, but for rounds and what rode.
  const ExchangeCounts &getTraffic() const;

private:
  class Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_EXCHANGE_H
