//===- expected_tensors.h - Whether a file fits a model ----------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_EXPECTED_TENSORS_H
#define GENREC_RT_CHECKPOINT_EXPECTED_TENSORS_H

#include "model_tensors.h"

namespace genrec::rt {

/// Error where the tensors of `file` are not those of `model`, by name or shape; an incremental one
/// also has what left tables. All differences at once, so that one run tells everything.
void checkTensors(const SafetensorsReader &file, const genrec_model_desc &model, States states,
                  bool isIncremental);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_EXPECTED_TENSORS_H
