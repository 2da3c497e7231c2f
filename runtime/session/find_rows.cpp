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
  return missing > 0;
}

const uint64_t *identifyRows(StepSlot &slot, int32_t table, float *const *rows, int64_t count) {
  genrec_runtime &shared = slot.state();
  if (shared.model.tables[table].rounding != GENREC_ROW_STOCHASTIC)
    return nullptr;
  slot.rowIdentities.resize(static_cast<size_t>(shared.model.table_count));
  uint64_t *identities = slot.rowIdentities[table].ensure(std::max<int64_t>(count, 1));
  shared.tables[table]->identify(slot.pool, rows, count, nullptr, identities);
  return identities;
}

} // namespace genrec::rt
