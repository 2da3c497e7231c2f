//===- model_check.h - Is a model's description sound ------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_MODEL_CHECK_H
#define GENREC_RT_SESSION_MODEL_CHECK_H

#include "genrec_rt/abi.h"

namespace genrec::rt {

/// Throws Error where the model was compiled for another version of the
/// interface, or where an index or a kind of its description is out of range.
void checkModel(const genrec_model_desc &model);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_MODEL_CHECK_H
