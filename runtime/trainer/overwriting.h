//===- overwriting.h - Outputs that are inputs -------------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_OVERWRITING_H
#define GENREC_RT_TRAINER_OVERWRITING_H

#include "flags.h"

namespace genrec::rt {

/// Throws Error where what a command writes is a file that it reads (its data, a catalogue, a
/// checkpoint, weights, the program itself), by whatever path, through links too; and where two of
/// its outputs are one file. Called before anything is read or written. Files that are not there are
/// told of by whoever reads them.
void refuseOverwriting(const genrec_model_desc &model, const Flags &flags);

/// What `export` writes into its folder, and training with --profile.
inline constexpr const char *kParameterFile = "parameters.safetensors";
inline constexpr const char *kTableFile = "tables.safetensors";
inline constexpr const char *kItemFile = "items.safetensors";
inline constexpr const char *kProfileFile = "profile.json";
inline constexpr const char *kTraceFile = "trace.json";

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_OVERWRITING_H
