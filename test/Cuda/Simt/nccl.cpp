//===- nccl.cpp - NCCL between emulated devices ---------------------------===//

#include "arena.h"
#include "nccl_data.h"
#include "nccl_processes.h"

#include <map>
#include <set>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace simt;

namespace {

enum class Call { send, receive, allGather, allReduce, reduceScatter, broadcast };
const char *nameOf(Call call) {
  static const char *const names[] = {"ncclSend",      "ncclRecv",          "ncclAllGather",
                                      "ncclAllReduce", "ncclReduceScatter", "ncclBroadcast"};
  return names[static_cast<int>(call)];
}

/// One call of one rank.
struct Part {
  Call call;
  const void *from;
  void *to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;              ///< or root
  bool isActive = false; ///< its kernel runs, or has
  bool hasRun = false;
  std::vector<char> sent = {}; ///< when it has run

  size_t bytes() const { return count * bytesOf(type); }
};
using PartPointer = std::shared_ptr<Part>;

/// Where the two sides of a transfer, or all of a collective, find each other.
struct Meeting {
  std::map<int, PartPointer> parts; ///< by rank
};

using MeetingPointer = std::shared_ptr<Meeting>;

struct Clique {
  int ranks = 0, arrived = 0;
  std::vector<ncclComm *> comms;                                      ///< that live
  std::map<std::tuple<int, int, uint64_t>, MeetingPointer> transfers; ///< from, to, which
  std::map<uint64_t, MeetingPointer> collectives;
};

} // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank = 0, device = 0;
  bool isAborted = false;
  ncclResult_t asyncError = ncclSuccess;
  std::map<int, uint64_t> sends, receives; ///< by peer
  uint64_t collectives = 0;
  std::vector<OperationPointer> operations;
  std::thread::id thread;
  std::unique_ptr<ProcessRanks> processes; ///< of ranks that are processes
  std::string problem;                     ///< what ended them
};

namespace {

/// The calls of one rank in one group, for one stream: one kernel.
struct Group {
  ncclComm *comm;
  std::vector<PartPointer> parts;
  std::vector<MeetingPointer> meetings = {}; ///< of the parts
  uint64_t number = 0;                       ///< in the order of the device's calls
  bool isDone = false;
};

struct State {
  std::map<std::string, std::shared_ptr<Clique>> cliques;      ///< by id
  std::map<int, std::vector<std::shared_ptr<Group>>> ofDevice; ///< not done, in order
  std::map<std::thread::id, int> threads;                      ///< communicators of each
  uint64_t ids = 0, groups = 0;
};
State &state() {
  static State instance;
  return instance;
}

struct Grouped {
  ncclComm *comm;
  PartPointer part;
  cudaStream_t stream;
};
thread_local int groupDepth = 0;
thread_local std::vector<Grouped> grouped;
thread_local std::vector<ncclComm *> initialising;
thread_local std::string lastError;

ncclResult_t refuse(ncclResult_t code, const std::string &text) {
  lastError = text;
  return code;
}

void changeThreads(std::thread::id thread, int change) {
  int &count = state().threads[thread];
  const bool before = count > 0;
  count += change;
  addPeer((count > 0) - before);
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

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

/// Where a rank's next call meets those of others.
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

/// Its kernel runs when those of earlier calls on the device have ended; it ends when all sides are
/// there.
bool isReady(Group &group) {
  if (group.comm->isAborted)
    return true;
  for (const std::shared_ptr<Group> &other : state().ofDevice[group.comm->device])
    if (other->number < group.number && !other->isDone)
      return false;
  for (const PartPointer &part : group.parts)
    part->isActive = true;
  return isComplete(group);
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

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
  HostMemoryOpen open;
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
  }
  group.isDone = true;
  std::erase_if(state().ofDevice[group.comm->device],
                [&](const std::shared_ptr<Group> &other) { return other.get() == &group; });
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

ncclResult_t enqueueGroup(const std::shared_ptr<Group> &group, cudaStream_t stream) {
  ncclComm &comm = *group->comm;
  cudaError_t error;
  const simtStream *in = streamAt(stream, error);
  if (!in || in->capture || in->device != comm.device)
    return refuse(ncclInvalidUsage, !in ? "the stream was destroyed"
                                    : in->capture
                                        ? "NCCL calls in a captured stream are not emulated"
                                        : "the stream is of another device");
  group->number = state().groups;
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
  state().ofDevice[comm.device].push_back(group);
  OperationPointer operation;
  if (enqueue(stream, std::move(request), &operation) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, cudaGetErrorString(cudaGetLastError()));
  std::erase_if(comm.operations, [](const OperationPointer &other) { return other->isDone; });
  comm.operations.push_back(operation);
  return ncclSuccess;
}

/// The calls of a group between processes, which the operation makes itself.
void runBetweenProcesses(Group &group) {
  HostMemoryOpen open;
  std::vector<Transfer> transfers;
  for (const PartPointer &part : group.parts) {
    const bool isSend = part->call == Call::send;
    char *memory = isSend ? static_cast<char *>(const_cast<void *>(part->from))
                          : static_cast<char *>(part->to);
    if (part->bytes())
      accessRows(memory, part->bytes(), 1, 0, !isSend);
    transfers.push_back({part->peer, isSend, memory, part->bytes()});
  }
  ncclComm &comm = *group.comm;
  comm.problem = comm.processes->exchange(transfers);
  if (!comm.problem.empty())
    comm.asyncError = ncclRemoteError;
}

/// Other processes wait for this one's calls, whatever its host waits for next: they are made now.
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

ncclResult_t waitForRanks(ncclComm &comm) {
  Clique &clique = *comm.clique;
  auto areThere = [&clique] { return clique.arrived == clique.ranks; };
  if (!waitUntil(areThere))
    return refuse(ncclSystemError, std::to_string(clique.arrived) + " of " +
                                       std::to_string(clique.ranks) +
                                       " ranks have called ncclCommInitRank");
  return ncclSuccess;
}

ncclResult_t issueGrouped() {
  std::vector<Grouped> calls = std::exchange(grouped, {});
  std::vector<ncclComm *> made = std::exchange(initialising, {});
  ncclResult_t result = ncclSuccess;
  for (ncclComm *comm : made)
    if (ncclResult_t code = waitForRanks(*comm); code != ncclSuccess)
      result = code;
  ++state().groups;
  std::vector<std::pair<std::pair<ncclComm *, cudaStream_t>, std::shared_ptr<Group>>> groups;
  for (const Grouped &call : calls) {
    const std::pair key(call.comm, call.stream);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto &entry) { return entry.first == key; });
    if (found == groups.end())
      found = groups.insert(groups.end(), {key, std::make_shared<Group>(Group{call.comm, {}})});
    found->second->parts.push_back(call.part);
  }
  for (const auto &[key, group] : groups) {
    ncclResult_t code = key.first->processes ? exchangeProcesses(group, key.second)
                                             : enqueueGroup(group, key.second);
    if (code != ncclSuccess)
      result = code;
  }
  return result;
}

ncclResult_t issue(ncclComm *comm, cudaStream_t stream, Part part) {
  Lock lock;
  if (!comm || comm->isAborted)
    return refuse(ncclInvalidArgument, comm ? "the communicator was aborted" : "no communicator");
  const int ranks = comm->clique->ranks;
  const bool hasPeer =
      part.call == Call::send || part.call == Call::receive || part.call == Call::broadcast;
  if (hasPeer && (part.peer < 0 || part.peer >= ranks))
    return refuse(ncclInvalidArgument,
                  "rank " + std::to_string(part.peer) + " of " + std::to_string(ranks));
  if (part.count &&
      ((part.call != Call::receive && !part.from) || (part.call != Call::send && !part.to)))
    return refuse(ncclInvalidArgument, std::string(nameOf(part.call)) + " of a null pointer");
  if (part.call == Call::broadcast && part.peer != comm->rank)
    part.from = nullptr;
  // The default stream is that of the communicator's device.
  if (!stream || stream == cudaStreamLegacy)
    stream = &legacyStream(comm->device);
  grouped.push_back({comm, std::make_shared<Part>(std::move(part)), stream});
  return groupDepth ? ncclSuccess : issueGrouped();
}

} // namespace

void simt::dropCalls() { state().ofDevice.clear(); }

ncclResult_t ncclGroupStart() {
  ++groupDepth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (groupDepth == 0)
    return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  Lock lock;
  return --groupDepth ? ncclSuccess : issueGrouped();
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Call::send, from, nullptr, count, type, ncclSum, peer});
}
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue(comm, stream, {Call::receive, nullptr, to, count, type, ncclSum, peer});
}
ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Call::allGather, from, to, count, type, ncclSum, 0});
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Call::allReduce, from, to, count, type, op, 0});
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Call::reduceScatter, from, to, count, type, op, 0});
}
ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, {Call::broadcast, from, to, count, type, ncclSum, root});
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error",
                                      "NCCL operation in progress"};
  return texts[std::min<size_t>(result, std::size(texts) - 1)];
}
const char *ncclGetLastError(ncclComm_t) { return lastError.c_str(); }

ncclResult_t ncclGetVersion(int *version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  Lock lock;
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "simt %d %d", static_cast<int>(getpid()),
                static_cast<int>(++state().ids));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  Lock lock;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  std::shared_ptr<Clique> &clique = state().cliques[id.internal];
  if (!clique)
    clique = std::make_shared<Clique>();
  if (clique->ranks && clique->ranks != ranks)
    return refuse(ncclInvalidArgument, "ranks do not agree on how many they are");
  clique->ranks = ranks;
  for (const ncclComm *other : clique->comms)
    if (other->rank == rank || other->device == currentDevice())
      return refuse(ncclInvalidUsage,
                    other->rank == rank ? "two communicators are rank " + std::to_string(rank)
                                        : "two ranks have device " + std::to_string(other->device));
  auto made = std::make_unique<ncclComm>();
  made->clique = clique;
  made->rank = rank;
  made->device = currentDevice();
  made->thread = std::this_thread::get_id();
  if (ranks > 1 && options().devices == 1) { // of this process: the other ranks have others
    std::string problem;
    made->processes = ProcessRanks::meet(id.internal, ranks, rank, problem);
    if (!made->processes)
      return refuse(ncclSystemError, problem);
    *comm = made.release();
    return ncclSuccess;
  }
  clique->comms.push_back(made.get());
  ++clique->arrived;
  changeThreads(made->thread, 1);
  wakePeers();
  *comm = made.release();
  if (groupDepth) {
    initialising.push_back(*comm);
    return ncclSuccess;
  }
  return waitForRanks(**comm);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *) {
  return ncclCommInitRank(comm, ranks, id, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int devices, const int *list) {
  Lock lock;
  ncclUniqueId id;
  (void)ncclGetUniqueId(&id);
  const int before = currentDevice();
  ncclResult_t result = ncclGroupStart();
  for (int rank = 0; rank < devices && result == ncclSuccess; ++rank) {
    if (cudaSetDevice(list ? list[rank] : rank) != cudaSuccess)
      result = refuse(ncclInvalidArgument, "no such device");
    else
      result = ncclCommInitRank(comms + rank, devices, id, rank);
  }
  (void)cudaSetDevice(before);
  const ncclResult_t end = ncclGroupEnd();
  return result == ncclSuccess ? end : result;
}

static void leave(ncclComm *comm) {
  if (comm->processes) {
    delete comm;
    return;
  }
  std::erase(comm->clique->comms, comm);
  changeThreads(comm->thread, -1);
  wakePeers();
  delete comm;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  Lock lock;
  if (!comm)
    return refuse(ncclInvalidArgument, "no communicator");
  return hostWaitsFor(comm->operations) ? ncclSuccess
                                        : refuse(ncclUnhandledCudaError, errorMessage());
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock;
  const ncclResult_t result = ncclCommFinalize(comm);
  if (comm)
    leave(comm);
  return result;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock;
  if (!comm)
    return refuse(ncclInvalidArgument, "no communicator");
  comm->isAborted = true;
  for (ncclComm *other : comm->clique->comms)
    if (other != comm)
      other->asyncError = ncclRemoteError;
  (void)hostWaitsFor(comm->operations);
  leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  Lock lock;
  if (!comm)
    return refuse(ncclInvalidArgument, "no communicator");
  *error = machine.error.empty() ? comm->asyncError : ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm->clique->ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  *device = comm->device;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
