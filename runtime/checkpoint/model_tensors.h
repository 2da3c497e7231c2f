//===- model_tensors.h - A session's state as named tensors ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
#define GENREC_RT_CHECKPOINT_MODEL_TENSORS_H

#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"
#include "saved_tables.h"

#include <memory>

namespace genrec::rt {

/// Optimizer states of a file: it must have them, or they are left alone, whatever optimizer they
/// are of.
enum class States { required, ignored };

/// addModelTensors of checkpoint.h, for rank 0: rows come from all ranks, through `tables`.
void addModelTensors(SafetensorsWriter &writer, Session &session,
                     const std::shared_ptr<SavedTables> &tables, bool states);

/// Sets all parameters of a fresh session, and of its tables the rows that this rank owns. Error where names or shapes differ.
void readModelTensors(const SafetensorsReader &file, Session &session, States states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
