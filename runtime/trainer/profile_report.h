//===- profile_report.h - A profile as a table and as a trace ----*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_PROFILE_REPORT_H
#define GENREC_RT_TRAINER_PROFILE_REPORT_H

#include "../session/profile.h"
#include "genrec_rt/session.h"
#include "progress.h"

#include <optional>
#include <string>

namespace genrec::rt {

/// Time per phase and per op of one mode's program, with the work of each and, given a `roofline`,
/// the lower bound of its time.
Json profileToJson(const genrec_model_desc &model, const Profile &profile, Mode mode,
                   const std::optional<Roofline> &roofline);

/// Of each rank: floating-point operations of a training step of all its portions, the milliseconds
/// of its phases, and those that it waited for others, `idleSeconds` over all steps. Collective.
Json profileOfRanks(const Profile &profile, int32_t portions,
                    const std::vector<double> &idleSeconds, int64_t steps, Communicator &comm);

/// The same as text: phases, then the ops that take most of the time, slowest first.
std::string profileTable(const Json &profile);

/// The kept steps in Chrome's trace event format, which Perfetto opens: a track
/// for each of the two threads that drive steps. Given a `roofline`, ops have the lower bound of a
/// call. Text, of an event per line: the library's destructor of a long JSON array takes memory,
/// and ends the process where there is none.
std::string profileTrace(const genrec_model_desc &model, const Profile &profile,
                         const std::optional<Roofline> &roofline);

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_PROFILE_REPORT_H
