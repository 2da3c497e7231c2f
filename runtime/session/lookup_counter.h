//===- lookup_counter.h - Counts the ids that data look up -------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_LOOKUP_COUNTER_H
#define GENREC_RT_SESSION_LOOKUP_COUNTER_H

#include "step_slot.h"

#include <unordered_set>

namespace genrec::rt {

/// While a runtime has one, its lookups find rows of zeros, and are counted here: those of a step
/// on a device once it has ended.
class LookupCounter {
public:
  LookupCounter(const genrec_model_desc &model, LookupCounts &counts)
      : model(model), counts(counts), seen(model.table_count) {}

  /// All of the host.
  void add(const StepSlot &slot, int32_t table, const genrec_domain *domain, const int64_t *ids,
           const uint8_t *valid);
  /// Ends a batch of so many root rows.
  void endBatch(int64_t rows);

private:
  /// An id and a root row of the batch that looks it up.
  struct Lookup {
    int64_t id, row;
    bool operator==(const Lookup &) const = default;
  };
  struct LookupHash {
    size_t operator()(const Lookup &lookup) const;
  };

  const genrec_model_desc &model;
  LookupCounts &counts;
  std::vector<std::unordered_set<Lookup, LookupHash>> seen; ///< by table, of this batch
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_LOOKUP_COUNTER_H
