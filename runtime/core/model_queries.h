//===- model_queries.h - What a model's description says ---------*- C++ -*-===//

#ifndef GENREC_RT_CORE_MODEL_QUERIES_H
#define GENREC_RT_CORE_MODEL_QUERIES_H

#include "genrec_rt/abi.h"

#include <string>
#include <vector>

namespace genrec::rt {

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

#endif // GENREC_RT_CORE_MODEL_QUERIES_H
