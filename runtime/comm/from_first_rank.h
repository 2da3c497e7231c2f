//===- from_first_rank.h - What rank 0 finds out, on all ranks ---*- C++ -*-===//

#ifndef GENREC_RT_COMM_FROM_FIRST_RANK_H
#define GENREC_RT_COMM_FROM_FIRST_RANK_H

#include "../core/json.h"
#include "genrec_rt/comm.h"

#include <functional>

namespace genrec::rt {

/// What `make` returns on rank 0, on all ranks; the others do not call it. What it throws there,
/// all throw. Strings need not be UTF-8. Collective; null: this process alone.
Json fromFirstRank(Communicator *comm, const std::function<Json()> &make);

} // namespace genrec::rt

#endif // GENREC_RT_COMM_FROM_FIRST_RANK_H
