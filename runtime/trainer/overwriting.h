//===- overwriting.h - Outputs that are inputs -------------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_OVERWRITING_H
#define GENREC_RT_TRAINER_OVERWRITING_H

#include "../checkpoint/warm_values.h"
#include "flags.h"

namespace genrec::rt {

/// Throws Error if an output of a command is one of its inputs (data, a catalogue, a checkpoint,
/// weights, the program itself), also through other paths and links, or if two of its outputs are
/// one file or folder. Called before anything is read or written. Missing inputs are reported when
/// they are read.
void refuseOverwriting(const genrec_model_desc &model, const Flags &flags);

/// The files that `export` writes into its folder beside those of warm_values.h, and training into
/// that of --profile.
inline constexpr const char *kItemFile = "items.safetensors";
inline constexpr const char *kProfileFile = "profile.json";
inline constexpr const char *kTraceFile = "trace.json";

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_OVERWRITING_H
