//===- nccl_groups.cpp - What the calls of a group do ---------------------===//

#include "arena.h"
#include "nccl_calls.h"

#include <cstring>

namespace simt::nccl {

namespace {

/// What a rank sends, whether or not its operation has run.
const char *sentBy(const Part &part) {
  return part.hasRun ? part.sent.data() : static_cast<const char *>(part.from);
}

size_t sentBytes(const Part &part, int ranks) {
  return part.bytes() * (part.call == Call::reduceScatter ? static_cast<size_t>(ranks) : 1);
}

/// What this rank receives; empty where it receives nothing.
std::vector<char> receivedBy(const Part &part, const Meeting &meeting, int rank) {
  std::vector<char> result;
  auto append = [&](const Part &from, size_t offset, size_t bytes) {
    result.insert(result.end(), sentBy(from) + offset, sentBy(from) + offset + bytes);
  };
  switch (part.call) {
  case Call::send:
    break;
  case Call::receive:
    append(*meeting.parts.at(part.peer), 0, part.bytes());
    break;
  case Call::broadcast:
    append(*meeting.parts.at(part.peer), 0, part.bytes());
    break;
  case Call::allGather:
    for (const auto &[from, theirs] : meeting.parts)
      append(*theirs, 0, part.bytes());
    break;
  case Call::allReduce:
  case Call::reduceScatter: {
    const size_t offset =
        part.call == Call::allReduce ? 0 : static_cast<size_t>(rank) * part.bytes();
    int ranks = 0;
    for (const auto &[from, theirs] : meeting.parts)
      if (ranks++ == 0)
        append(*theirs, offset, part.bytes());
      else
        reduceInto(result.data(), sentBy(*theirs) + offset, part.count, part.type, part.op);
    if (part.op == ncclAvg)
      divide(result.data(), part.count, part.type, ranks);
    break;
  }
  }
  return result;
}

void runGroup(Group &group) {
  const int rank = group.comm->rank, ranks = group.comm->clique->ranks;
  openMemory();
  if (!group.comm->isAborted) {
    for (const PartPointer &part : group.parts)
      if (part->from) {
        const size_t bytes = sentBytes(*part, ranks);
        accessRows(part->from, bytes, bytes ? 1 : 0, 0, false);
        const char *begin = static_cast<const char *>(part->from);
        part->sent.assign(begin, begin + bytes);
      }
    for (size_t i = 0; i < group.parts.size(); ++i)
      group.parts[i]->hasRun = true;
    for (size_t i = 0; i < group.parts.size(); ++i) {
      const std::vector<char> received = receivedBy(*group.parts[i], *group.meetings[i], rank);
      if (received.empty())
        continue;
      accessRows(group.parts[i]->to, received.size(), 1, 0, true);
      std::memcpy(group.parts[i]->to, received.data(), received.size());
    }
  } else {
    // It may have received anything: what is queued behind it runs before the host knows.
    for (const PartPointer &part : group.parts)
      if (part->to && part->bytes())
        accessRows(part->to, part->bytes() * (part->call == Call::allGather ? ranks : 1), 1, 0,
                   true);
  }
  group.isDone = true;
  std::erase_if(ranksHere().ofDevice[group.comm->device],
                [&](const std::shared_ptr<Group> &other) { return other.get() == &group; });
}

/// The calls of a group between processes, which the operation makes itself.
void runBetweenProcesses(Group &group) {
  openMemory();
  openPinnedMemory();
  std::vector<Transfer> transfers;
  for (const PartPointer &part : group.parts) {
    const bool isSend = part->call == Call::send;
    char *memory = isSend ? static_cast<char *>(const_cast<void *>(part->from))
                          : static_cast<char *>(part->to);
    if (part->bytes())
      accessRows(memory, part->bytes(), 1, 0, !isSend);
    if (!isPinned(memory))
      openDeviceRange(memory, part->bytes());
    transfers.push_back({part->peer, isSend, memory, part->bytes()});
  }
  ncclComm &comm = *group.comm;
  comm.problem = comm.processes->exchange(transfers);
  if (!comm.problem.empty())
    comm.asyncError = ncclRemoteError;
}

/// Empty where other devices of the process may reach the memory of a call: that of cudaMallocAsync
/// is open to its own device alone.
std::string checkReach(const ncclComm &comm, const Part &part) {
  const bool isPair = part.call == Call::send || part.call == Call::receive;
  if (!comm.readsPeers || comm.clique->ranks == 1 || (isPair && part.peer == comm.rank))
    return {};
  for (const void *memory : {part.from, static_cast<const void *>(part.to)}) {
    if (!memory || part.bytes() == 0 || !arena().holds(memory) || isPinned(memory))
      continue;
    const auto found = arena().nearest(memory);
    if (found != arena().allocations.end() && found->second.made.what[0])
      return std::string(nameOf(part.call)) +
             " of memory of cudaMallocAsync, which the other devices of the process cannot reach";
  }
  return {};
}

} // namespace

ncclResult_t enqueueGroup(const std::shared_ptr<Group> &group, cudaStream_t stream) {
  ncclComm &comm = *group->comm;
  cudaError_t error;
  const simtStream *in = streamAt(stream, error);
  if (!in || in->capture || in->device != comm.device)
    return refuse(ncclInvalidUsage, !in ? "the stream was destroyed"
                                    : in->capture
                                        ? "NCCL calls in a captured stream are not emulated"
                                        : "the stream is of another device");
  for (const PartPointer &part : group->parts)
    if (std::string text = checkReach(comm, *part); !text.empty() && machine.error.empty())
      machine.error = std::move(text);
  const Part &first = *group->parts.front();
  Request request{group->parts.size() > 1 ? "NCCL group" : nameOf(first.call),
                  [group] { runGroup(*group); }};
  request.isReady = [group] { return isReady(*group); };
  for (const PartPointer &part : group->parts) {
    const auto ranks = static_cast<size_t>(comm.clique->ranks);
    if (part->from && isPinned(part->from))
      request.host.push_back(
          {static_cast<const char *>(part->from), sentBytes(*part, comm.clique->ranks), false});
    if (part->to && isPinned(part->to))
      request.host.push_back({static_cast<const char *>(part->to),
                              part->bytes() * (part->call == Call::allGather ? ranks : 1), true});
  }
  for (const PartPointer &part : group->parts)
    group->meetings.push_back(meet(comm, part));
  ranksHere().ofDevice[comm.device].push_back(group);
  OperationPointer operation;
  if (enqueue(stream, std::move(request), &operation) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, cudaGetErrorString(cudaGetLastError()));
  std::erase_if(comm.operations, [](const OperationPointer &other) { return other->isDone; });
  comm.operations.push_back(operation);
  return ncclSuccess;
}

ncclResult_t exchangeProcesses(const std::shared_ptr<Group> &group, cudaStream_t stream) {
  ncclComm &comm = *group->comm;
  for (const PartPointer &part : group->parts)
    if (part->call != Call::send && part->call != Call::receive)
      return refuse(ncclInvalidUsage,
                    std::string(nameOf(part->call)) + " is not emulated between processes");
  if (comm.asyncError != ncclSuccess)
    return refuse(comm.asyncError, comm.problem);
  cudaError_t error;
  const simtStream *in = streamAt(stream, error);
  if (!in || in->capture)
    return refuse(ncclInvalidUsage, in ? "NCCL calls in a captured stream are not emulated"
                                       : "the stream was destroyed");
  Request request{"NCCL group", [group] { runBetweenProcesses(*group); }};
  OperationPointer operation;
  if (enqueue(stream, std::move(request), &operation) != cudaSuccess || !complete(operation))
    return refuse(ncclUnhandledCudaError, cudaGetErrorString(cudaGetLastError()));
  return comm.asyncError == ncclSuccess ? ncclSuccess : refuse(comm.asyncError, comm.problem);
}

} // namespace simt::nccl
