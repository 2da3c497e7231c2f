//===- flag_rules.h - Flags that cannot act are mistakes ---------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_FLAG_RULES_H
#define GENREC_RT_TRAINER_FLAG_RULES_H

#include "flags.h"

#include <CLI/App.hpp>

namespace genrec::rt {

/// Throws CLI::ValidationError, with reason and remedy, for a given flag of `command` that would
/// have no effect.
void requireActingFlags(const CLI::App &command, const Flags &flags,
                        const genrec_model_desc &model);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_FLAG_RULES_H
