//===- flag_entries.h - Flags of the form name=value -------------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_FLAG_ENTRIES_H
#define GENREC_RT_TRAINER_FLAG_ENTRIES_H

#include "flags.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// What is given as name=value, not split yet.
struct FlagEntries {
  std::vector<std::string> catalogues, hostTables;
  std::string batchTokens;
};

/// Splits them into `flags`. Throws CLI::ValidationError where one is of another form, names no
/// catalogue of the model, or names a table twice.
void takeEntries(const FlagEntries &entries, const genrec_model_desc &model, Flags &flags);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_FLAG_ENTRIES_H
