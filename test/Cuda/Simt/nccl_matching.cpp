//===- nccl_matching.cpp - Which calls of NCCL belong together ------------===//

#include "nccl_calls.h"

namespace simt::nccl {

namespace {

std::string textOf(const Part &part, int rank) {
  return std::string(nameOf(part.call)) + " of " + std::to_string(part.count) + " values of type " +
         std::to_string(static_cast<int>(part.type)) + " on rank " + std::to_string(rank);
}

bool match(const Part &a, const Part &b) {
  const bool isPair = a.call == Call::send || a.call == Call::receive;
  if (isPair)
    return a.call != b.call && a.bytes() == b.bytes();
  const bool hasRoot = a.call == Call::broadcast;
  const bool hasOp = a.call == Call::allReduce || a.call == Call::reduceScatter;
  return a.call == b.call && a.count == b.count && a.type == b.type &&
         (!hasRoot || a.peer == b.peer) && (!hasOp || a.op == b.op);
}

bool isComplete(const Group &group) {
  for (size_t i = 0; i < group.parts.size(); ++i) {
    const Call call = group.parts[i]->call;
    const bool isPair = call == Call::send || call == Call::receive;
    const auto &parts = group.meetings[i]->parts;
    if (parts.size() < (isPair ? 2u : static_cast<size_t>(group.comm->clique->ranks)))
      return false;
    for (const auto &[rank, part] : parts)
      if (!part->isActive)
        return false;
  }
  return true;
}

} // namespace

MeetingPointer meet(ncclComm &comm, const PartPointer &part) {
  Clique &clique = *comm.clique;
  auto join = [&](auto &meetings, auto key, size_t sides) {
    MeetingPointer &place = meetings[key];
    if (!place)
      place = std::make_shared<Meeting>();
    MeetingPointer meeting = place;
    // A rank may send to itself: the two sides have places of their own.
    const int side = part->call == Call::receive ? ~comm.rank : comm.rank;
    for (const auto &[other, theirs] : meeting->parts)
      if (!match(*part, *theirs) && machine.error.empty())
        machine.error = "NCCL calls do not match: " + textOf(*part, comm.rank) + " and " +
                        textOf(*theirs, other < 0 ? ~other : other);
    meeting->parts[side] = part;
    if (meeting->parts.size() == sides)
      meetings.erase(key);
    return meeting;
  };
  using Transfer = std::tuple<int, int, uint64_t>;
  if (part->call == Call::send)
    return join(clique.transfers, Transfer(comm.rank, part->peer, comm.sends[part->peer]++), 2);
  if (part->call == Call::receive)
    return join(clique.transfers, Transfer(part->peer, comm.rank, comm.receives[part->peer]++), 2);
  return join(clique.collectives, comm.collectives++, static_cast<size_t>(clique.ranks));
}

bool isReady(Group &group) {
  if (group.comm->isAborted)
    return true;
  for (const std::shared_ptr<Group> &other : ranksHere().ofDevice[group.comm->device])
    if (other->number < group.number && !other->isDone)
      return false;
  for (const PartPointer &part : group.parts)
    part->isActive = true;
  return isComplete(group);
}

} // namespace simt::nccl
