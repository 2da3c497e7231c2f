//===- operations.h - What streams run, and what orders it -------*- C++ -*-===//
//
// A kernel, a copy, a fill, a callback: every call of the host that puts something into a stream
// makes an operation. It runs when what it waits for has run, at the latest moment, at once, or
// between, as the seed has it. Operations run one after another on the machine of scheduler.cpp;
// what they may touch is judged by what orders them, not by when they ran.
//
// Order is kept by vector clocks: every stream is a timeline, and so is every chain of a graph. An
// operation knows what its stream, the events it waits for and the host knew. The host knows what
// it has waited for.
//
// Every function here and in the files of the same header wants the engine's lock (Lock): hosts may
// be several threads.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_OPERATIONS_H
#define GENREC_TEST_CUDA_SIMT_OPERATIONS_H

#include "cuda_runtime.h"
#include "machine.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace simt {

/// By timeline: everything up to this clock happened before.
using Knowledge = Clocks;
inline bool knows(const Knowledge &known, uint32_t timeline, Clock clock) {
  return timeline < known.size() && clock <= known[timeline];
}
void learn(Knowledge &known, const Knowledge &other);

/// Return addresses, the innermost first; 0 behind the last.
using Callers = std::array<void *, 8>;
Callers callers();
/// "cache.cu:12, cache_test.cpp:40", without the places of stand-ins and launch macros.
std::string placesOf(const Callers &callers);
/// "addTo (in rows.cu)": the function at an address.
std::string functionAt(const void *address);

/// Notes that the program has `thing` until it gives it back (held.cpp), or for good where it may
/// be kept: what is made once per shape.
void hold(const void *thing, std::string what, bool isKept = false);
/// What is held may be kept: it was a process's that an error has ended.
void keepHeld();
/// False where the program does not have it: it was never made, or is given back a second time.
bool giveBack(const void *thing);

/// What messages tell of an operation, and what orders it; kept for ever.
struct OperationInfo {
  const char *what = "";
  const void *kernel = nullptr;
  int stream = -1; ///< number of its stream
  uint32_t timeline = 0;
  Clock clock = 0;
  Callers callers = {};
};

/// Counts one that runs, where accesses are counted (access_costs.cpp).
void countOperation(const OperationInfo &operation);

struct Operation;
using OperationPointer = std::shared_ptr<Operation>;

struct Operation {
  OperationInfo info;
  int device = 0;
  std::vector<OperationPointer> after; ///< that have not run yet
  Knowledge known;                     ///< with itself
  std::function<void()> run;           ///< empty: only orders
  std::function<bool()> isReady;       ///< what else it waits for; empty: nothing
  Options options;
  uint32_t number = 0; ///< in the order in which operations ran, from 1
  bool isDone = false;
  double seconds = 0; ///< when it was done
};

//===-- operations.cpp -----------------------------------------------------===//

struct EngineLock {
  static void lock();
  static void unlock();
};
/// The engine's lock: one thread of the host at a time is in it, as deep as it likes.
class Lock {
public:
  Lock() { EngineLock::lock(); }
  ~Lock() { EngineLock::unlock(); }
  Lock(const Lock &) = delete;
};

/// What the host knows.
Knowledge &hostKnowledge();
uint32_t newTimeline();
/// The next clock of a timeline.
Clock tick(uint32_t timeline);
/// Puts an operation where its dependences, timeline and callers are known; runs some, by the seed.
void submit(const OperationPointer &operation);
/// Runs operations until these are done; false after an error. The host then knows of them.
bool hostWaitsFor(const std::vector<OperationPointer> &operations);
/// The same of one, of which the host does not know then.
bool complete(const OperationPointer &operation);
/// Whether the host finds it done, which it may not before some questions; it then knows of it.
bool hostFindsDone(const OperationPointer &operation);
/// What the number of an operation that has run stands for.
const OperationInfo &operationInfo(uint32_t number);
/// "kernel addTo in stream 2, enqueued at store.cu:212"
std::string describe(const OperationInfo &info);
/// What waits for others than operations that are enqueued.
std::string describeWaitingOperations();
/// Everything that is under way is dropped.
void dropOperations();
/// Numbers an operation that runs now: what it touches is noted under that number.
void startOperation(Operation &operation);
/// A thread of the host that waits for what another has to do (NCCL's peers) gives up the lock;
/// false where nobody can go on.
bool waitForPeers();
void wakePeers();
/// Waits for what another thread of the host has to do; false after a minute.
bool waitUntil(const std::function<bool()> &isDone);
/// Threads of the host that wait for each other: as many must wait as there are to be a deadlock.
void addPeer(int change);

//===-- streams.cpp ---------------------------------------------------------===//

struct GraphNode;
struct Capture;

/// A call's failure that is not sticky: the code, and what the emulated device says of it.
cudaError_t refuse(cudaError_t code, const std::string &text);
/// The sticky error, or success.
cudaError_t status();
/// Null and a refusal in `error` where the stream was destroyed.
simtStream *streamAt(cudaStream_t stream, cudaError_t &error);
simtStream &legacyStream(int device);
int currentDevice();
/// The host waits for these.
cudaError_t waitFor(const std::vector<OperationPointer> &operations);
/// Accuses work in the default stream where its name is null (Options::mayUseDefaultStream).
cudaError_t accuseDefaultStream(cudaStream_t stream, const char *what,
                                const void *kernel = nullptr);
/// All streams of a device that are not destroyed.
std::vector<simtStream *> streamsOf(int device);
/// Operations that are the last of their streams.
std::vector<OperationPointer> lastOf(const std::vector<simtStream *> &streams);

/// Pinned memory that an operation uses.
struct HostRange {
  const char *begin;
  size_t bytes;
  bool isWrite;
};
/// What a stream is asked to do: enqueued, or a node of a graph where the stream is captured.
struct Request {
  const char *what;
  std::function<void()> run = {};
  const void *kernel = nullptr;
  std::function<bool()> isReady = {};
  /// Pinned memory that is read and written, known beforehand.
  std::vector<HostRange> host = {};
  Callers callers = {};
  /// The host waits for it, so that it may be in the default stream.
  bool isSynchronous = false;
};
/// `made` becomes the operation, null in a capture.
cudaError_t enqueue(cudaStream_t stream, Request request, OperationPointer *made = nullptr);
/// Appends to a stream that is not captured, after others besides.
OperationPointer append(simtStream &stream, const Request &request,
                        std::vector<OperationPointer> after = {});
/// The same on a timeline of its own (a node of a graph).
OperationPointer make(const Request &request, const simtStream &stream, uint32_t timeline,
                      const std::vector<OperationPointer> &after);

//===-- graphs.cpp -----------------------------------------------------------===//

/// Refusals of a capture are those of the CUDA Runtime API.
cudaError_t addNode(simtStream &stream, Request request);
cudaError_t captureRecord(simtStream &stream, simtEvent &event);
cudaError_t captureWait(simtStream &stream, simtEvent &event);
/// Calls that no capture may be under way for (allocation, waiting): refused, and the capture is
/// invalid.
cudaError_t refuseInCapture(const char *call, simtStream *stream = nullptr);
cudaError_t refusePageableInCapture(simtStream &stream);
/// Refuses where a stream that the legacy stream waits for is captured on that device.
cudaError_t refuseLegacyInCapture(int device, const char *what);
/// The same of a call that is about all streams of a device.
cudaError_t refuseDeviceInCapture(int device, const char *call);

//===-- nccl.cpp --------------------------------------------------------------===//

/// Calls under way are dropped.
void dropCalls();

//===-- host_memory.cpp -------------------------------------------------------===//

/// From now on until the host knows of the operation, the host's access of these is a race.
void watchHost(const OperationInfo &user, const std::vector<HostRange> &ranges);
/// The host has learned: what it knows of now it may touch.
void unwatchKnown();
/// The host may touch everything (after an error).
void unwatchAll();
/// An operation runs: memory of devices and pinned memory are open to it where it touches them.
void openMemory();
/// Its calls of the system touch this, which they find open or fail.
void openDeviceRange(const void *memory, size_t bytes);
/// A callback runs: pinned memory is open to it, for calls of the system as well.
void openPinnedMemory();
/// The host goes on: both are closed to it. (Its instrumented code is checked at each access; this
/// finds the rest.)
void closeMemory();
/// A callback runs, whose use of pinned memory is not watched.
void closeDeviceMemory();
/// Pages of pinned memory that the running kernel has touched: called for each access.
void noteHostPage(const void *memory, size_t bytes, bool isWrite);
void watchTouchedPages(const Operation &operation);
bool isPinned(const void *memory);
/// The text of a use of [memory, memory + bytes) that the host does not know to be over, or empty.
std::string hostUseOf(const void *memory, size_t bytes);
void forbidFreedPages(void *memory, size_t bytes);
/// False where some of it is pinned already.
bool registerPinned(void *memory, size_t bytes);
size_t registeredBytes(void *memory);
void unregisterPinned(void *memory);

//===-- history.cpp -----------------------------------------------------------===//

/// The running operation reads or writes device memory, or pinned memory, as a whole.
void accessRange(const void *memory, size_t bytes, bool isWrite);
/// Marks what is written as initialised.
void accessRows(const void *memory, size_t rowBytes, int64_t rows, int64_t strideBytes,
                bool isWrite);
/// Frees it as the running operation: a race with all that still uses it.
void accessAllocation(void *memory);

} // namespace simt

struct simtStream {
  int number = 0, device = 0;
  unsigned flags = 0;
  bool isLegacy = false, isDestroyed = false;
  uint32_t timeline = 0;
  simt::OperationPointer last;
  std::shared_ptr<simt::Capture> capture;
  std::vector<int> captured; ///< nodes that the next one of a capture waits for
  int callsToCome = 0;       ///< that NCCL has been given, and has not queued yet
};

struct simtEvent {
  unsigned flags = 0;
  int device = 0;
  bool isDestroyed = false;
  simt::OperationPointer recorded;
  std::shared_ptr<simt::Capture> capture;
  std::vector<int> captured; ///< nodes that were recorded in it
};

#endif // GENREC_TEST_CUDA_SIMT_OPERATIONS_H
