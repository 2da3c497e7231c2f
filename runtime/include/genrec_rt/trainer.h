//===- trainer.h - The command line of a compiled model ----------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_H
#define GENREC_RT_TRAINER_H

#include "genrec_rt/abi.h"

namespace genrec::rt {

/// Runs one command of a compiled model: train, evaluate, predict, export, info (see
/// --help and docs/runtime-abi.md). Returns the exit status: 0; 1 after an error
/// (one on standard error, with what to do); 2 where flags are wrong; 128 + n
/// after signal n, once the checkpoint is written.
int trainerMain(const genrec_model_desc &model, int argc, const char *const *argv);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_H
