//===- model_check.h - Is a model's description sound ------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_MODEL_CHECK_H
#define GENREC_RT_CORE_MODEL_CHECK_H

#include "genrec_rt/abi.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// Throws Error where the model was compiled for another version of the
/// interface, or where an index or a kind of its description is out of range.
void checkModel(const genrec_model_desc &model);

/// The one root of the data domains, -1 where a model reads no data.
int32_t dataRoot(const genrec_model_desc &model);

/// What a program needs decoded: its data domains with all their ancestors, and
/// its features plus those that drop padding from these domains, both by index.
struct ReadSet {
  std::vector<char> domains;
  std::vector<char> features;
};
ReadSet readSet(const genrec_model_desc &model, const genrec_program_desc &program);

/// "retrieval.py:41", or "" where the model does not say.
std::string describe(const genrec_location &location);

} // namespace genrec::rt

#endif // GENREC_RT_CORE_MODEL_CHECK_H
