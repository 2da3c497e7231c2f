//===- nccl.cpp - NCCL between emulated devices ---------------------------===//

#include "nccl_calls.h"

#include <utility>

using namespace simt;
using namespace simt::nccl;

namespace simt::nccl {

thread_local int groupDepth = 0;
thread_local std::vector<ncclComm *> initialising;

namespace {

struct Grouped {
  ncclComm *comm;
  PartPointer part;
  cudaStream_t stream;
};
thread_local std::vector<Grouped> grouped;
thread_local std::string lastError;

} // namespace

const char *nameOf(Call call) {
  static const char *const names[] = {"ncclSend",      "ncclRecv",          "ncclAllGather",
                                      "ncclAllReduce", "ncclReduceScatter", "ncclBroadcast"};
  return names[static_cast<int>(call)];
}

Ranks &ranksHere() {
  static Ranks instance;
  return instance;
}

ncclResult_t refuse(ncclResult_t code, const std::string &text) {
  lastError = text;
  return code;
}

} // namespace simt::nccl

namespace {

bool isToFail(int device) {
  const auto found = ranksHere().failing.find(device);
  return found != ranksHere().failing.end() && --found->second == 0;
}

/// A group that fails: the call says so, or does not block.
ncclResult_t failGrouped(ncclComm &comm) {
  const ncclResult_t code = refuse(ncclSystemError, "a group that is to fail");
  if (comm.blocks || isAtOnce(comm))
    return code;
  comm.asyncError = code;
  return ncclInProgress;
}

ncclResult_t startGroup(const std::shared_ptr<Group> &group, cudaStream_t stream) {
  ncclComm &comm = *group->comm;
  if (isToFail(comm.device))
    return failGrouped(comm);
  if (comm.processes)
    return exchangeProcesses(group, stream);
  if (comm.blocks)
    return enqueueGroup(group, stream);
  begin(comm, group, stream);
  return ncclInProgress;
}

ncclResult_t issueGrouped() {
  std::vector<Grouped> calls = std::exchange(grouped, {});
  std::vector<ncclComm *> made = std::exchange(initialising, {});
  ncclResult_t result = ncclSuccess;
  for (ncclComm *comm : made)
    if (ncclResult_t code = waitForRanks(*comm); code != ncclSuccess)
      result = code;
  ++ranksHere().groups;
  std::vector<std::pair<std::pair<ncclComm *, cudaStream_t>, std::shared_ptr<Group>>> groups;
  for (const Grouped &call : calls) {
    const std::pair key(call.comm, call.stream);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto &entry) { return entry.first == key; });
    if (found == groups.end())
      found = groups.insert(groups.end(), {key, std::make_shared<Group>(Group{call.comm, {}})});
    found->second->parts.push_back(call.part);
  }
  std::set<ncclComm *> going;
  for (const auto &[key, group] : groups) {
    group->number = ranksHere().groups;
    const ncclResult_t code = startGroup(group, key.second);
    if (code == ncclInProgress)
      going.insert(key.first);
    else if (code != ncclSuccess)
      result = code;
  }
  for (ncclComm *comm : going) {
    const ncclResult_t code = isAtOnce(*comm) ? goOn(*comm) : ncclInProgress;
    if (code != ncclSuccess && (result == ncclSuccess || result == ncclInProgress))
      result = code;
  }
  return result;
}

ncclResult_t issue(ncclComm *comm, cudaStream_t stream, Part part) {
  Lock lock;
  if (ncclResult_t code = mayCall(comm, nameOf(part.call)); code != ncclSuccess)
    return code;
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
  if (accuseDefaultStream(stream, nameOf(part.call)) != cudaSuccess)
    return refuse(ncclUnhandledCudaError, errorMessage());
  // The default stream is that of the communicator's device.
  if (!stream || stream == cudaStreamLegacy)
    stream = &legacyStream(comm->device);
  grouped.push_back({comm, std::make_shared<Part>(std::move(part)), stream});
  return groupDepth ? ncclSuccess : issueGrouped();
}

} // namespace

void simt::dropCalls() {
  ranksHere().ofDevice.clear();
  ranksHere().failing.clear();
  for (ncclComm *comm : ranksHere().comms)
    dropProgress(*comm);
}

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
