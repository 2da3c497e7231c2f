//===- ranks.h - What the portions of a batch have in common -----*- C++ -*-===//
//
// A global batch is S portions (portions.h); this rank runs some of them, each in a slot of its own.
// Here is what they share with each other and with other ranks: rows that they look up, sums over
// portions, the rows that this rank updates. The calls of generated code that need it come through
// abi_ranks.cpp; with one portion on one rank there is no Ranks.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_RANKS_H
#define GENREC_RT_SESSION_RANKS_H

#include "../ranks/exact_sum.h"
#include "../ranks/row_exchange.h"
#include "genrec_rt/abi.h"
#include "genrec_rt/portions.h"
#include "genrec_rt/session.h"

#include <memory>
#include <span>
#include <vector>

namespace genrec::rt {

class Ranks {
public:
  Ranks(Communicator &comm, int32_t portions, const genrec_model_desc &model,
        std::span<const std::shared_ptr<TableStore>> tables);

  Communicator &comm() { return communicator; }
  int32_t portions() const { return count; }
  /// The portions of this rank.
  PortionRange own() const { return range; }

  /// Begins a step: `slots` are those of this rank's portions, in order.
  void begin(std::span<StepSlot *const> slots);

  //===-- table rows ------------------------------------------------------===//

  /// Notes a lookup of the dispatch stage; one of a later stage is done at once.
  void request(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
               int64_t count, float **rows);
  /// Fetches what the dispatch stages of all portions asked for. Collective.
  void fetch();

  //===-- sums over portions ----------------------------------------------===//

  void contribute(int32_t number, std::span<const float *const> partial,
                  std::span<const int64_t> floats);
  /// Collective in the first portion of a step, which adds up what all have contributed.
  void collect(int32_t number, std::span<const int64_t> floats, std::span<float *const> sums);

  void contributeRows(StepSlot &slot, int32_t table, std::span<float *const> rows,
                      const float *sums);
  /// Adds up the gradients of all tables' rows at their owners. Collective, before the update.
  void collectRows();
  const genrec_collected_rows &collected(int32_t table) const {
    return collectedRows[storeOf[table]];
  }
  int64_t countCollected(int32_t table) const {
    return static_cast<int64_t>(exchange.getUpdate(storeOf[table]).rows.size());
  }

  float sumExactly(std::span<const float> values);

  //===-- what a step reports ---------------------------------------------===//

  /// What all portions of the batch report, added up in the order of portions.
  struct Report {
    std::vector<LossValue> losses;
    int64_t rows = 0;   ///< root rows
    int32_t signal = 0; ///< the largest of all ranks
  };
  /// Collective, at the end of a step. `signal`: what this rank has caught.
  const Report &report(int32_t signal);

private:
  /// The sums of one number of contribute and collect.
  struct Sums {
    std::unique_ptr<PortionSums> portions;
    int64_t length = 0;
    std::vector<float> total;
    bool isReduced = false;
  };

  Communicator &communicator;
  const int32_t count;
  const PortionRange range;
  std::vector<int32_t> storeOf; ///< by table
  std::vector<int32_t> tableOf; ///< by store: its first table
  RowExchange exchange;
  std::span<StepSlot *const> slots;
  std::vector<RowRequest> requests;
  bool isDispatched = false;
  std::vector<Sums> sums; ///< by number
  std::vector<genrec_collected_rows> collectedRows; ///< by store
  std::vector<int64_t> numbers;                     ///< 0, 1, 2, …
  Report reported;
  std::vector<double> sent, received;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_RANKS_H
