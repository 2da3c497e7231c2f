//===- nccl_communicators.cpp - Communicators of NCCL ---------------------===//

#include "nccl_calls.h"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace simt;
using namespace simt::nccl;

namespace {

void changeThreads(std::thread::id thread, int change) {
  int &count = ranksHere().threads[thread];
  const bool before = count > 0;
  count += change;
  addPeer((count > 0) - before);
}

} // namespace

int64_t simt::communicatorCount() {
  Lock lock;
  return static_cast<int64_t>(ranksHere().comms.size());
}

void simt::failGroup(int device, int which) {
  Lock lock;
  ranksHere().failing[device] = which;
}

void simt::failCommunicators() {
  Lock lock;
  for (ncclComm *comm : ranksHere().comms)
    comm->asyncError = ncclRemoteError;
}

ncclResult_t nccl::mayUse(ncclComm *comm, const char *call) {
  if (comm && ranksHere().comms.contains(comm))
    return ncclSuccess;
  if (comm && machine.error.empty())
    machine.error = std::string(call) + " of a communicator that was destroyed or aborted";
  return refuse(ncclInvalidArgument, comm ? "the communicator is gone" : "no communicator");
}

ncclResult_t nccl::mayCall(ncclComm *comm, const char *call) {
  if (ncclResult_t code = mayUse(comm, call); code != ncclSuccess || !comm->progress)
    return code;
  if (machine.error.empty())
    machine.error = std::string(call) + " of a communicator that is still in progress";
  return refuse(ncclInvalidArgument, "the communicator is in progress");
}

ncclResult_t nccl::waitForRanks(ncclComm &comm) {
  Clique &clique = *comm.clique;
  auto areThere = [&clique] { return clique.arrived == clique.ranks; };
  if (!waitUntil(areThere))
    return refuse(ncclSystemError, std::to_string(clique.arrived) + " of " +
                                       std::to_string(clique.ranks) +
                                       " ranks have called ncclCommInitRank");
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  Lock lock;
  *id = {};
  std::snprintf(id->internal, sizeof(id->internal), "simt %d %d", static_cast<int>(getpid()),
                static_cast<int>(++ranksHere().ids));
  return ncclSuccess;
}

/// What is wrong with a rank's place in a clique, or ncclSuccess.
static ncclResult_t checkPlace(const Clique &clique, int ranks, int rank) {
  if (clique.ranks && clique.ranks != ranks)
    return refuse(ncclInvalidArgument, "ranks do not agree on how many they are");
  for (const ncclComm *other : clique.comms)
    if (other->rank == rank || other->device == currentDevice())
      return refuse(ncclInvalidUsage,
                    other->rank == rank ? "two communicators are rank " + std::to_string(rank)
                                        : "two ranks have device " + std::to_string(other->device));
  return ncclSuccess;
}

/// Meets the other ranks, which are other processes.
static ncclResult_t meetProcesses(ncclComm &comm, const std::string &id) {
  const int ranks = comm.clique->ranks, rank = comm.rank;
  if (comm.blocks) {
    const std::atomic<bool> isCancelled = false;
    comm.processes = ProcessRanks::meet(id, ranks, rank, comm.problem, isCancelled);
    return comm.processes ? ncclSuccess : refuse(ncclSystemError, comm.problem);
  }
  begin(comm);
  Progress &progress = *comm.progress;
  progress.meeting = std::async(std::launch::async, [id, ranks, rank, &comm, &progress] {
    return ProcessRanks::meet(id, ranks, rank, comm.problem, progress.isCancelled);
  });
  return ncclInProgress;
}

static ncclResult_t makeRank(ncclComm_t *comm, int ranks, const ncclUniqueId &id, int rank,
                             bool blocks) {
  Lock lock;
  if (ranks < 1 || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument,
                  "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  std::shared_ptr<Clique> &clique = ranksHere().cliques[id.internal];
  if (!clique) {
    clique = std::make_shared<Clique>();
    clique->number = ranksHere().cliques.size();
  }
  if (ncclResult_t code = checkPlace(*clique, ranks, rank); code != ncclSuccess)
    return code;
  clique->ranks = ranks;
  auto made = std::make_unique<ncclComm>();
  made->clique = clique;
  made->rank = rank;
  made->device = currentDevice();
  made->thread = std::this_thread::get_id();
  made->blocks = blocks;
  const char *direct = std::getenv("NCCL_P2P_DIRECT_DISABLE");
  made->readsPeers = !direct || std::strcmp(direct, "1") != 0;
  // One of this process, or of the machine: the other ranks are other processes.
  if (ranks > 1 && (options().devices == 1 || areDevicesShared())) {
    made->isOfProcesses = true;
    const ncclResult_t code = meetProcesses(*made, id.internal);
    if (code != ncclSuccess && code != ncclInProgress)
      return code;
    ranksHere().comms.insert(made.get());
    *comm = made.release();
    hold(*comm, "a communicator of NCCL");
    return code;
  }
  ranksHere().comms.insert(made.get());
  clique->comms.push_back(made.get());
  ++clique->arrived;
  changeThreads(made->thread, 1);
  wakePeers();
  *comm = made.release();
  hold(*comm, "a communicator of NCCL");
  if (!blocks) {
    begin(**comm);
    return isAtOnce(**comm) ? goOn(**comm) : ncclInProgress;
  }
  if (groupDepth) {
    initialising.push_back(*comm);
    return ncclSuccess;
  }
  return waitForRanks(**comm);
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return makeRank(comm, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
  const char *given = std::getenv("NCCL_COMM_BLOCKING");
  const bool isToBlock = given && std::strcmp(given, "1") == 0;
  return makeRank(comm, ranks, id, rank, isToBlock || !config || config->blocking != 0);
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
  giveBack(comm);
  ranksHere().comms.erase(comm);
  dropProgress(*comm);
  if (comm->isOfProcesses) {
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
  if (ncclResult_t code = mayCall(comm, "ncclCommFinalize"); code != ncclSuccess)
    return code;
  return hostWaitsFor(comm->operations) ? ncclSuccess
                                        : refuse(ncclUnhandledCudaError, errorMessage());
}

/// Between processes, which threads stand for, destroying is collective: the ranks of other threads
/// have come to it, too, or have aborted. False after an error, also where nobody can go on.
static bool waitUntilOthersLeave(ncclComm &comm) {
  comm.isLeaving = true;
  wakePeers();
  auto findOther = [&comm] {
    return std::ranges::find_if(comm.clique->comms, [&comm](const ncclComm *other) {
      return !other->isLeaving && other->thread != comm.thread;
    });
  };
  for (auto other = findOther(); other != comm.clique->comms.end(); other = findOther()) {
    if (machine.error.empty() && !waitForPeers() && machine.error.empty())
      machine.error = "waiting for ever: ncclCommDestroy of rank " + std::to_string(comm.rank) +
                      ", to which rank " + std::to_string((*other)->rank) + " does not come";
    if (!machine.error.empty())
      return false;
  }
  return true;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Lock lock;
  if (ncclResult_t code = mayCall(comm, "ncclCommDestroy"); code != ncclSuccess)
    return code;
  ncclResult_t result = ncclCommFinalize(comm);
  if (!waitUntilOthersLeave(*comm) && result == ncclSuccess)
    result = refuse(ncclSystemError, errorMessage());
  leave(comm);
  return result;
}

/// A communicator may be aborted by a thread that calls nothing else: it may wait for others, too.
class CallingThread {
public:
  explicit CallingThread(const ncclComm &comm)
      : isFurther(comm.thread != std::this_thread::get_id()) {
    addPeer(isFurther);
  }
  ~CallingThread() {
    addPeer(-isFurther);
    wakePeers();
  }
  CallingThread(const CallingThread &) = delete;

private:
  const int isFurther;
};

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Lock lock;
  if (ncclResult_t code = mayUse(comm, "ncclCommAbort"); code != ncclSuccess)
    return code;
  comm->isAborted = true;
  const CallingThread caller(*comm);
  for (ncclComm *other : comm->clique->comms)
    if (other != comm)
      other->asyncError = ncclRemoteError;
  (void)hostWaitsFor(comm->operations);
  leave(comm);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  Lock lock;
  if (ncclResult_t code = mayUse(comm, "ncclCommGetAsyncError"); code != ncclSuccess)
    return code;
  *error = machine.error.empty() ? comm->asyncError : ncclUnhandledCudaError;
  if (*error == ncclSuccess)
    *error = goOn(*comm);
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
