//===- nccl_calls.h - What ranks have asked NCCL for --------------*- C++ -*-===//
//
// A rank's calls of one group and one stream are one operation (operations.h), as they are one
// kernel with NCCL itself. It runs when all ranks that it needs have made theirs.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_NCCL_CALLS_H
#define GENREC_TEST_CUDA_SIMT_NCCL_CALLS_H

#include "nccl_data.h"
#include "nccl_processes.h"
#include "operations.h"

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <thread>

namespace simt::nccl {

enum class Call { send, receive, allGather, allReduce, reduceScatter, broadcast };
const char *nameOf(Call call);

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
  uint64_t number = 0;                                                ///< in the process
  std::vector<ncclComm *> comms;                                      ///< that live
  std::map<std::tuple<int, int, uint64_t>, MeetingPointer> transfers; ///< from, to, which
  std::map<uint64_t, MeetingPointer> collectives;
};

struct Group;

/// What a communicator that does not block is not done with.
struct Progress {
  using Meeting = std::future<std::unique_ptr<ProcessRanks>>;

  uint64_t questions = 0; ///< that get no answer once all peers are there
  std::vector<std::pair<std::shared_ptr<Group>, cudaStream_t>> groups;
  std::atomic<bool> isCancelled = false;
  Meeting meeting; ///< of ranks that are processes; its destructor waits for it

  ~Progress() { isCancelled = true; }
};

} // namespace simt::nccl

struct ncclComm {
  std::shared_ptr<simt::nccl::Clique> clique;
  int rank = 0, device = 0;
  bool isAborted = false, isLeaving = false;
  bool blocks = true;                                  ///< its calls return when they are done
  std::unique_ptr<simt::nccl::Progress> progress = {}; ///< null: it is done
  std::set<std::pair<int, bool>> reaches; ///< peers that it connects to, and whether to send
  uint64_t draws = 0;
  bool readsPeers = false; ///< the memory of other devices of the process
  ncclResult_t asyncError = ncclSuccess;
  std::map<int, uint64_t> sends, receives; ///< by peer
  uint64_t collectives = 0;
  std::vector<simt::OperationPointer> operations;
  std::thread::id thread;
  bool isOfProcesses = false;                    ///< the ranks are processes
  std::unique_ptr<simt::ProcessRanks> processes; ///< null: they have not met
  std::string problem;                           ///< what ended them
};

namespace simt::nccl {

/// The calls of one rank in one group, for one stream: one kernel.
struct Group {
  ncclComm *comm;
  std::vector<PartPointer> parts;
  std::vector<MeetingPointer> meetings = {}; ///< of the parts
  uint64_t number = 0;                       ///< in the order of the device's calls
  bool isDone = false;
};

/// What there is of NCCL in this process.
struct Ranks {
  std::map<std::string, std::shared_ptr<Clique>> cliques;      ///< by id
  std::map<int, std::vector<std::shared_ptr<Group>>> ofDevice; ///< not done, in order
  std::map<std::thread::id, int> threads;                      ///< communicators of each
  std::set<ncclComm *> comms;                                  ///< neither destroyed nor aborted
  std::map<int, int> failing;                                  ///< by device: so many groups on
  uint64_t ids = 0, groups = 0;
};
Ranks &ranksHere();

//===-- nccl.cpp ----------------------------------------------------------===//

/// A call's failure: the code, and what ncclGetLastError says of it.
ncclResult_t refuse(ncclResult_t code, const std::string &text);
/// How deep in groups the thread is; its communicators that a group initialises.
extern thread_local int groupDepth;
extern thread_local std::vector<ncclComm *> initialising;

//===-- nccl_matching.cpp -------------------------------------------------===//

/// Where a rank's next call meets those of others; calls that do not match are machine.error.
MeetingPointer meet(ncclComm &comm, const PartPointer &part);
/// Its kernel runs when those of earlier calls on the device have ended; it ends when all sides are
/// there.
bool isReady(Group &group);

//===-- nccl_groups.cpp ---------------------------------------------------===//

/// Puts the calls of a group into a stream.
ncclResult_t enqueueGroup(const std::shared_ptr<Group> &group, cudaStream_t stream);
/// Other processes wait for this one's calls, whatever its host waits for next: they are made now.
ncclResult_t exchangeProcesses(const std::shared_ptr<Group> &group, cudaStream_t stream);

//===-- nccl_progress.cpp -------------------------------------------------===//

/// The communicator is being made, or its group is: it is done when goOn() says so.
void begin(ncclComm &comm);
void begin(ncclComm &comm, const std::shared_ptr<Group> &group, cudaStream_t stream);
/// ncclInProgress, or what it has come to.
ncclResult_t goOn(ncclComm &comm);
/// It does not go on.
void dropProgress(ncclComm &comm);
/// Whether a call is done when it returns, unless peers have to come, by the seed.
bool isAtOnce(ncclComm &comm);

//===-- nccl_communicators.cpp --------------------------------------------===//

/// Waits until all ranks have made the communicator.
ncclResult_t waitForRanks(ncclComm &comm);
/// ncclSuccess where `comm` is there; a program that goes on with one that is gone is accused.
ncclResult_t mayUse(ncclComm *comm, const char *call);
/// The same of calls that a communicator takes when it is done with those before.
ncclResult_t mayCall(ncclComm *comm, const char *call);

} // namespace simt::nccl

#endif // GENREC_TEST_CUDA_SIMT_NCCL_CALLS_H
