//===- non_finite.h - NaNs and infinities in what is saved -------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_NON_FINITE_H
#define GENREC_RT_CHECKPOINT_NON_FINITE_H

#include "genrec_rt/safetensors.h"

namespace genrec::rt {

/// Where bytes of a tensor of floats lie in it.
struct FloatPlace {
  const std::string &name;
  int64_t rowElements;  ///< of a row of the tensor
  int64_t begin;        ///< bytes before them
  int64_t elementBytes; ///< 4 of F32, 2 of BF16
};

/// Notes the first NaN or infinity among floats in the digest, unless there was one before. Error
/// where there is one and `finiteOnly`.
void noteNonFinite(TensorDigest &digest, const FloatPlace &place, const char *data, int64_t bytes,
                   bool finiteOnly);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_NON_FINITE_H
