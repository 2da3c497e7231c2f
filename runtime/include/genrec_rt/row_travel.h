//===- row_travel.h - How table rows travel between ranks -------*- C++ -*-===//

#ifndef GENREC_RT_ROW_TRAVEL_H
#define GENREC_RT_ROW_TRAVEL_H

#include "genrec_rt/footprint.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace genrec::rt {

/// A store: a table, or several that are merged. A key is member << keyBits | id; with one
/// member, the id itself.
struct ExchangedStore {
  int64_t dim = 0;                    ///< elements of a row's value, floats of its gradient
  std::vector<uint64_t> members = {}; ///< hashTableName (owner.h) of each member's logical name
  int64_t keyBits = 63;
  /// By member: whether every rank has all of its rows. Empty: of none.
  std::vector<char> replicated = {};
  /// No step inserts or changes rows: nothing of replicas travels.
  bool isFrozen = false;
  /// Values are bfloat16, as a store has them (TableStore): they travel as they are.
  bool isBf16 = false;

  /// Floats that a row's value takes.
  int64_t valueFloats() const { return storeValueFloats(dim, isBf16); }
  bool hasReplicas() const { return std::ranges::find(replicated, true) != replicated.end(); }
  bool hasShards() const {
    return replicated.empty() || std::ranges::find(replicated, false) != replicated.end();
  }
};

/// What differs between ways of moving the rows of sharded tables. Other ways than the default one
/// cost time, to measure what is saved, or exactness, to save bytes.
struct RowTravel {
  /// A key travels once per rank and step. Else once per entry, and so do its row and gradients:
  /// the owner adds those that the requester would have added, in another order.
  bool requestersDeduplicate = true;
  /// A key that several ranks ask for is found once. Else once for each; results are the same.
  bool ownersDeduplicate = true;
  /// Values, and sums of gradients, travel as bf16, rounded to the nearest, ties to even. Those
  /// that stay on a rank are not rounded.
  bool bf16Values = false, bf16Sums = false;

  /// Whether the number of ranks changes no bits.
  bool keepsBits() const { return requestersDeduplicate && !bf16Values && !bf16Sums; }
};

} // namespace genrec::rt

#endif // GENREC_RT_ROW_TRAVEL_H
