//===- model_tensors.h - A session's state as named tensors ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
#define GENREC_RT_CHECKPOINT_MODEL_TENSORS_H

#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"

namespace genrec::rt {

/// Optimizer states of a file: it must have them, or they are left alone, whatever optimizer they
/// are of.
enum class States { required, ignored };

/// Sets all parameters and tables of a fresh session. Error where names or shapes differ.
void readModelTensors(const SafetensorsReader &file, Session &session, States states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
