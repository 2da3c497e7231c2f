//===- model_tensors.h - A session's state as named tensors ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
#define GENREC_RT_CHECKPOINT_MODEL_TENSORS_H

#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"

namespace genrec::rt {

/// Sets all parameters and tables of a fresh session; with `states` the file must
/// hold the optimizer states too, else it may. Error where names or shapes differ.
void readModelTensors(const SafetensorsReader &file, Session &session, bool states);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_MODEL_TENSORS_H
