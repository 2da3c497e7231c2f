//===- flag_rules.h - Flags that cannot act are mistakes ---------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_FLAG_RULES_H
#define GENREC_RT_TRAINER_FLAG_RULES_H

#include "flags.h"

#include <CLI/App.hpp>

namespace genrec::rt {

/// Throws CLI::ValidationError, which says why and what to do, where a flag was given to
/// `command` that would change nothing: who gives a flag relies on it.
void requireActingFlags(const CLI::App &command, const Flags &flags,
                        const genrec_model_desc &model);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_FLAG_RULES_H
