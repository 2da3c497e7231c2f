//===- model_tensors.h - A session's state as named tensors ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
#define GENREC_RT_CHECKPOINT_MODEL_TENSORS_H

#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"
#include "saved_tables.h"
#include "shared_tensors.h"

namespace genrec::rt {

/// Optimizer states of a file: it must have them, or they are left alone, whatever optimizer they
/// are of.
enum class States { required, ignored };

/// All parameters and tables, with `states` their optimizer states too, of all ranks of a session,
/// which must live as long as the tensors, unchanged. Collective.
///
/// With `changes`, of tables only the rows that changed, and "<table>.removed.ids": the ids that
/// left.
std::vector<SharedTensor> modelTensors(Session &session, bool states,
                                       const RowChanges *changes = nullptr);

/// Sets all parameters of a fresh session, and of its tables the rows that this rank has. Where the
/// file's rows are sorted as SavedTables has them, others are not read. Error where names or shapes
/// differ.
void readModelTensors(const SafetensorsReader &file, Session &session, States states,
                      bool isSorted);

/// Makes of the state that a session has the next one: of a file with what changed, as modelTensors
/// writes it. Error as above.
void replayModelTensors(const SafetensorsReader &file, Session &session, States states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
