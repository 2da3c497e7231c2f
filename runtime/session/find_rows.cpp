//===- find_rows.cpp - The rows of a table that a step sees ---------------===//

#include "find_rows.h"

#include <algorithm>

namespace genrec::rt {

namespace {

/// Whether ids that have no row get one: in training, unless the table is frozen.
bool insertsRows(const StepSlot &slot, const genrec_table_desc &table) {
  return slot.mode == static_cast<int32_t>(Mode::train) &&
         table.optimizer.kind != GENREC_OPTIMIZER_FROZEN;
}

constexpr int64_t kIdentityGrain = 4096;

/// Whether updates draw random numbers for rows.
bool drawsForRows(const genrec_table_desc &table) {
  return table.rounding == GENREC_ROW_STOCHASTIC;
}

void findTemporary(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
                   int64_t count, float **rows) {
  uint8_t *mask = slot.missing.ensure(count);
  for (int64_t row = 0; row < count; ++row)
    mask[row] = (!valid || valid[row]) && !rows[row];
  slot.temporaryTable(table).findOrInsert(slot.pool, keys, mask, count, rows);
}

} // namespace

bool findRows(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
              int64_t count, float **rows) {
  genrec_runtime &shared = slot.state();
  TableStore &store = *shared.tables[table];
  int64_t missing = 0;
  if (!insertsRows(slot, shared.model.tables[table]))
    store.find(slot.pool, keys, valid, count, rows, &missing);
  else if (store.configuration().rules.any())
    store.findOrAdmit(slot.pool, keys, valid, count, static_cast<int64_t>(slot.step), rows,
                      &missing);
  else
    store.findOrInsert(slot.pool, keys, valid, count, rows);
  if (missing > 0)
    findTemporary(slot, table, keys, valid, count, rows);
  // Rows of other portions come from elsewhere. A temporary row has no identity.
  if (!slot.rankStep && insertsRows(slot, shared.model.tables[table]) &&
      drawsForRows(shared.model.tables[table]) && missing == 0)
    slot.foundKeys.note(rows, keys, count);
  else
    slot.foundKeys.forget(rows, count);
  return missing > 0;
}

int64_t *keysOfRows(StepSlot &slot, int32_t table, int64_t capacity) {
  const genrec_model_desc &model = slot.state().model;
  if (!drawsForRows(model.tables[table]))
    return nullptr;
  slot.rowIdentities.resize(static_cast<size_t>(model.table_count));
  return reinterpret_cast<int64_t *>(
      slot.rowIdentities[table].ensure(std::max<int64_t>(capacity, 1)));
}

const uint64_t *identifyRows(StepSlot &slot, int32_t table, float *const *rows, int64_t count,
                             bool areKeys) {
  auto *identities = reinterpret_cast<uint64_t *>(keysOfRows(slot, table, count));
  if (!identities)
    return nullptr;
  const TableStore &store = *slot.state().tables[table];
  if (!areKeys) {
    store.identify(slot.pool, rows, count, nullptr, identities);
    return identities;
  }
  const StoreConfig &config = store.configuration();
  parallelFor(slot.pool, count, kIdentityGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i)
      identities[i] = config.identityOf(static_cast<int64_t>(identities[i]));
  });
  return identities;
}

} // namespace genrec::rt
