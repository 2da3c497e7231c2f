//===- identity.h - Is a checkpoint one of this model ------------*- C++ -*-===//
//
// The compiler notes of a model what its losses are computed by (genrec_model_desc.identity, as
// include/genrec/Analysis/Identity.h of the compiler says); a checkpoint keeps that of the model
// that wrote it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_IDENTITY_H
#define GENREC_RT_CHECKPOINT_IDENTITY_H

#include "genrec_rt/checkpoint.h"

#include <string>

namespace genrec::rt {

/// What differs between two identities, in words: "" where nothing does that matters for
/// `purpose`, or where either is not known. `is` is this binary's, `was` the checkpoint's.
std::string identityDifference(const std::string &was, const std::string &is, RestoreFor purpose);

/// What differs between the files that a run was trained on and those given now; "" where nothing
/// does, or where either is not known.
std::string dataDifference(const std::vector<DataFile> &was, const std::vector<DataFile> &is);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_IDENTITY_H
