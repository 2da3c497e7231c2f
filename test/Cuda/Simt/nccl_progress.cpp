//===- nccl_progress.cpp - Calls of NCCL that go on behind their return ---===//
//
// A communicator that does not block is made, and connects to peers, on a thread of NCCL's own,
// which then queues what a group is to do. Here that happens where somebody asks for it: as late as
// the seed says, and never before the peers have come.
//
//===----------------------------------------------------------------------===//

#include "nccl_calls.h"

using namespace simt;

namespace simt::nccl {

namespace {

/// Questions that are answered by ncclInProgress although all peers are there.
constexpr uint64_t kMostQuestions = 4;

uint64_t draw(ncclComm &comm) {
  uint64_t random = options().seed;
  for (uint64_t with : {comm.clique->number, static_cast<uint64_t>(comm.rank), ++comm.draws}) {
    random = (random ^ with) * 0x9E3779B97F4A7C15;
    random ^= random >> 29;
  }
  return random >> 8;
}

bool hasAnswered(const ncclComm &comm, int peer, bool sends) {
  for (const ncclComm *other : comm.clique->comms)
    if (other->rank == peer)
      return other->reaches.contains({comm.rank, !sends});
  return false;
}

/// Whether all that it connects to connect to it.
bool arePeersThere(const ncclComm &comm) {
  if (comm.clique->arrived < comm.clique->ranks)
    return false;
  for (const auto &[peer, sends] : comm.reaches)
    if (peer != comm.rank && !hasAnswered(comm, peer, sends))
      return false;
  return true;
}

/// Of ranks that are processes: whether they have met.
ncclResult_t findMet(ncclComm &comm) {
  Progress::Meeting &meeting = comm.progress->meeting;
  if (meeting.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    return ncclInProgress;
  try {
    comm.processes = meeting.get();
  } catch (const std::exception &error) { // there is no memory
    comm.problem = error.what();
  }
  comm.progress.reset();
  if (!comm.processes)
    comm.asyncError = ncclSystemError;
  return comm.processes ? ncclSuccess : refuse(ncclSystemError, comm.problem);
}

} // namespace

void begin(ncclComm &comm) {
  comm.progress = std::make_unique<Progress>();
  comm.progress->questions = draw(comm) % kMostQuestions;
  wakePeers();
}

void begin(ncclComm &comm, const std::shared_ptr<Group> &group, cudaStream_t stream) {
  if (!comm.progress)
    begin(comm);
  for (const PartPointer &part : group->parts) {
    const bool isPair = part->call == Call::send || part->call == Call::receive;
    for (int peer = 0; peer < comm.clique->ranks; ++peer)
      for (const bool sends : {false, true})
        if (!isPair || (peer == part->peer && sends == (part->call == Call::send)))
          comm.reaches.insert({peer, sends});
  }
  cudaError_t error;
  if (simtStream *in = streamAt(stream, error))
    ++in->callsToCome;
  comm.progress->groups.emplace_back(group, stream);
}

void dropProgress(ncclComm &comm) {
  if (!comm.progress)
    return;
  cudaError_t error;
  for (const auto &[group, stream] : comm.progress->groups)
    if (simtStream *in = streamAt(stream, error))
      --in->callsToCome;
  comm.progress.reset();
}

ncclResult_t goOn(ncclComm &comm) {
  if (!comm.progress)
    return comm.asyncError;
  if (comm.progress->meeting.valid())
    return findMet(comm);
  if (!arePeersThere(comm) || comm.progress->questions-- > 0)
    return ncclInProgress;
  const auto groups = comm.progress->groups;
  dropProgress(comm);
  for (const auto &[group, stream] : groups)
    if (ncclResult_t code = enqueueGroup(group, stream); code != ncclSuccess)
      comm.asyncError = code;
  return comm.asyncError;
}

bool isAtOnce(ncclComm &comm) {
  const bool result = draw(comm) % 4 == 0;
  if (result && comm.progress)
    comm.progress->questions = 0;
  return result;
}

} // namespace simt::nccl
