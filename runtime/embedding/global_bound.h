//===- global_bound.h - Bounded tables on several ranks ----------*- C++ -*-===//
//
// The bound of a table (row_rules.h) is on the rows of all ranks together, each of which has those
// that it owns. The lowest of all leave, wherever they are: the rows that would leave on one rank.
// Which these are is found by a radix selection (Knuth, The Art of Computer Programming, volume 3,
// exercise 5.2.5): byte by byte of Sighting::rank, from the highest, each rank counts its rows by
// the byte, the counts are added up, and the rows whose byte is that of the last row that leaves
// are looked at further. Rows themselves do not travel.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_EMBEDDING_GLOBAL_BOUND_H
#define GENREC_RT_EMBEDDING_GLOBAL_BOUND_H

#include "genrec_rt/comm.h"
#include "genrec_rt/table_store.h"

#include <array>
#include <vector>

namespace genrec::rt {

class GlobalBound {
public:
  explicit GlobalBound(Communicator &comm) : comm(comm) {}

  /// The rules of a rank's store of a table with `rules`: the same but for the bound, which no rank
  /// can see exceeded alone.
  static RowRules rulesOfRank(RowRules rules) {
    if (rules.bound > 0)
      rules.bound = kNoBound;
    return rules;
  }

  /// Holds the tables of `store`, whose rules rulesOfRank has made of `rules`, and their waiting
  /// ids to the bound. The store must live longer.
  void add(TableStore &store, const RowRules &rules);

  /// The end of a step, after TableStore::evict: rows above a bound leave. Collective; one
  /// all-gather where no bound is exceeded, none where nothing is bounded. Voids addresses of rows.
  void evict(const StoreStream &on);

private:
  static constexpr int64_t kNoBound = INT64_MAX;
  /// The parts of Sighting::rank: steps, last step, id.
  static constexpr size_t kWords = 3;
  using Words = std::array<uint64_t, kWords>;

  /// The rows of one table, of which some leave.
  struct Table {
    TableStore *store = nullptr;
    int64_t member = 0; ///< of the store
    RowRules rules;
    // Of this step.
    int64_t wanted = 0;            ///< how many candidates, of those of all ranks, leave; 0: done
    std::vector<Words> candidates; ///< of this rank: equal in all bytes before `byte`
    std::vector<int64_t> leaving;  ///< keys
    size_t byte = 0;               ///< the next one, from the highest of the first word
    Words largest{};               ///< of each word of the rows of all ranks

    void list(const StoreStream &on);
    uint64_t getUpToByte(const Words &rank) const;
    uint64_t getByte(const Words &rank) const { return getUpToByte(rank) & 0xFF; }
    void skipZeros();
    void narrow(const int64_t *counts);
    int64_t getKey(const Words &rank) const;
    void removeLeaving(const StoreStream &on);
  };

  void gather();
  void findExcess(const StoreStream &on);
  void agreeOnLargest();
  void narrowAll();

  Communicator &comm;
  std::vector<Table> tables;
  std::vector<Table *> choosing; ///< those that are not done
  std::vector<int64_t> sent, received;
};

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_GLOBAL_BOUND_H
