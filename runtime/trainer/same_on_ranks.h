//===- same_on_ranks.h - What must not differ among ranks ---------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_SAME_ON_RANKS_H
#define GENREC_RT_TRAINER_SAME_ON_RANKS_H

#include "genrec_rt/comm.h"

#include <string>
#include <vector>

namespace genrec::rt {

/// Throws Error, naming the rank and the first line that differs, unless all ranks give the same
/// lines. `what`: "flags". Collective; null: this process alone.
void requireSame(Communicator *comm, const std::string &what,
                 const std::vector<std::string> &lines);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_SAME_ON_RANKS_H
