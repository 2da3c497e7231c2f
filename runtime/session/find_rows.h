//===- find_rows.h - The rows of a table that a step sees --------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_FIND_ROWS_H
#define GENREC_RT_SESSION_FIND_ROWS_H

#include "step_slot.h"

namespace genrec::rt {

/// rows[i] = the row of keys[i] in the store of `table`: found, or in training inserted if the
/// table's rules admit it; else a temporary row with initial values. Entries with valid[i] == 0 are
/// left as they are; `valid` may be null. Returns whether some rows are temporary: those go with
/// the step.
bool findRows(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
              int64_t count, float **rows);

/// The identities of rows of a table in random streams, there until the next call for it; null
/// where no step draws numbers for its rows. With `areKeys` the memory for them, of `count`, holds
/// the rows' keys.
const uint64_t *identifyRows(StepSlot &slot, int32_t table, float *const *rows, int64_t count,
                             bool areKeys = false);

/// Memory for the keys of `capacity` rows, which identifyRows takes; null where no step draws
/// numbers for rows of the table.
int64_t *keysOfRows(StepSlot &slot, int32_t table, int64_t capacity);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_FIND_ROWS_H
