//===- tensor_names.h - Names and shapes of a model's tensors ----*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_TENSOR_NAMES_H
#define GENREC_RT_CHECKPOINT_TENSOR_NAMES_H

#include "genrec_rt/abi.h"
#include "genrec_rt/row_rules.h"
#include "saved_tables.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// State `state` of an optimizer, of a parameter or table.
inline std::string stateName(const std::string &name, int32_t state) {
  return name + ".state" + std::to_string(state);
}

inline std::vector<int64_t> shapeOf(const genrec_parameter_desc &parameter) {
  return {parameter.shape, parameter.shape + parameter.rank};
}

/// The shape of a table's state, -1 for the number of rows.
inline std::vector<int64_t> stateShape(const genrec_table_desc &table) {
  if (table.optimizer.row_states)
    return {-1};
  return {-1, table.dim};
}

inline bool hasRules(const genrec_table_desc &table) {
  return table.bounded > 0 || table.ttl > 0 || table.ttl_seconds > 0 || table.admit_after > 0 ||
         table.hot_after > 0;
}

/// Numbers kept for the rules about rows, one per row of a store.
struct SightingTensor {
  const char *name;
  RowColumn::Kind kind;
  int64_t Sighting::*field;
};
inline constexpr SightingTensor kSightings[] = {
    {".last_step", RowColumn::Kind::lastStep, &Sighting::lastStep},
    {".steps", RowColumn::Kind::steps, &Sighting::steps}};

/// The ids that a store waits to admit, as a table of its own: "<table>.waiting".
inline std::string waitingName(const std::string &name) { return name + ".waiting"; }

/// What left a table since the save before, by its name or that of its waiting ids.
inline std::string removedName(const std::string &name) { return name + ".removed.ids"; }

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_TENSOR_NAMES_H
