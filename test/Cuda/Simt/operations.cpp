//===- operations.cpp - Which operation runs next, and who knows of it ----===//

#include "operations.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace simt {

namespace {

/// Under way at once: a device's queues are bounded as well.
constexpr size_t kMostPending = 1024;
/// A host that asks whether an operation is done brings it on at one in so many questions.
constexpr uint64_t kRunOneInQuestions = 2;

struct Queues {
  std::vector<OperationPointer> pending; ///< in the order of the host's calls
  std::deque<OperationInfo> ran;         ///< by number - 1
  Clocks clocks;                         ///< the last of each timeline
  Knowledge host;
  uint64_t seed = 0, random = 1;

  uint64_t draw() {
    if (seed != options().seed || random == 1) {
      seed = options().seed;
      random = (seed + 0x51ED270B) * 0x9E3779B97F4A7C15ull | 2;
    }
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random * 0x2545F4914F6CDD1Dull >> 11;
  }
};
Queues &queues() {
  static Queues instance;
  return instance;
}

bool isReady(Operation &operation) {
  std::erase_if(operation.after, [](const OperationPointer &other) { return other->isDone; });
  return operation.after.empty() && (!operation.isReady || operation.isReady());
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void runNow(const OperationPointer &operation) {
  std::erase(queues().pending, operation);
  Operation *outer = machine.operation;
  startOperation(*operation);
  try {
    if (operation->run)
      operation->run();
  } catch (const EngineStop &) {
  }
  watchTouchedPages(*operation);
  machine.operation = outer;
  operation->isDone = true;
  operation->seconds = now();
  operation->run = {};
  operation->isReady = {};
  wakePeers();
}

/// Runs one of `among` that can run; false where none can.
bool runAny(const std::vector<OperationPointer> &among) {
  std::vector<OperationPointer> ready;
  for (const OperationPointer &operation : among)
    if (!operation->isDone && isReady(*operation))
      ready.push_back(operation);
  if (ready.empty() || !machine.error.empty())
    return false;
  runNow(ready[queues().draw() % ready.size()]);
  return true;
}

/// What has to run before these are done, themselves among them, in the order of enqueueing.
std::vector<OperationPointer> neededFor(const std::vector<OperationPointer> &operations) {
  std::vector<OperationPointer> needed, stack = operations;
  std::vector<const Operation *> seen;
  while (!stack.empty()) {
    OperationPointer operation = std::move(stack.back());
    stack.pop_back();
    if (operation->isDone)
      continue;
    auto at = std::lower_bound(seen.begin(), seen.end(), operation.get());
    if (at != seen.end() && *at == operation.get())
      continue;
    seen.insert(at, operation.get());
    stack.insert(stack.end(), operation->after.begin(), operation->after.end());
    needed.push_back(std::move(operation));
  }
  return needed;
}

Completion policy() {
  Options now = options();
  now.completion = now.queues;
  return completionOf(now);
}

/// Brings on one operation, one of `needed` where the rest runs as late as it may.
bool bringOn(const std::vector<OperationPointer> &needed) {
  if (policy() == Completion::late && runAny(needed))
    return true;
  return runAny(std::vector<OperationPointer>(queues().pending));
}

//===-- threads of the host -----------------------------------------------===//

class EngineMutex {
public:
  void lock() {
    if (depth++ == 0)
      mutex.lock();
  }
  void unlock() {
    if (depth == 1)
      closeMemory();
    if (--depth == 0)
      mutex.unlock();
  }
  /// Waits for another thread to bring something on.
  bool wait();
  /// The same, and nobody takes it for waiting for ever; false after a minute.
  bool waitUntil(const std::function<bool()> &isDone);
  void wake() {
    ++generation;
    waiting = 0;
    changed.notify_all();
  }
  bool isHeld() const { return depth > 0; }
  int peers = 0;

private:
  static thread_local int depth;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t generation = 0;
  int waiting = 0;
};
thread_local int EngineMutex::depth = 0;

std::chrono::seconds patience() { return std::chrono::seconds(patienceOr(60)); }

bool EngineMutex::waitUntil(const std::function<bool()> &isDone) {
  closeMemory();
  const int before = std::exchange(depth, 0);
  std::unique_lock<std::mutex> held(mutex, std::adopt_lock);
  const bool result = changed.wait_for(held, patience(), isDone);
  held.release();
  depth = before;
  return result;
}

bool EngineMutex::wait() {
  if (++waiting >= peers) {
    waiting = 0;
    return false;
  }
  closeMemory();
  const int before = std::exchange(depth, 0);
  const uint64_t seen = generation;
  std::unique_lock<std::mutex> held(mutex, std::adopt_lock);
  const bool isChanged = changed.wait_for(held, patience(), [&] { return generation != seen; });
  held.release();
  depth = before;
  return isChanged;
}

EngineMutex &theMutex() {
  static EngineMutex instance;
  return instance;
}

/// An error that nobody has asked for must not end in success.
void checkAtExit() {
  if (machine.error.empty() || machine.isErrorSeen)
    return;
  std::fprintf(stderr, "simt: %s\n", machine.error.c_str());
  std::fflush(nullptr);
  _exit(86);
}

} // namespace

void EngineLock::lock() { theMutex().lock(); }
void EngineLock::unlock() { theMutex().unlock(); }
bool isHostInside() { return theMutex().isHeld(); }
bool waitForPeers() { return theMutex().wait(); }
void wakePeers() { theMutex().wake(); }
bool waitUntil(const std::function<bool()> &isDone) { return theMutex().waitUntil(isDone); }
void addPeer(int change) { theMutex().peers += change; }

void learn(Knowledge &known, const Knowledge &other) {
  if (known.size() < other.size())
    known.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i)
    known[i] = std::max(known[i], other[i]);
}

Knowledge &hostKnowledge() { return queues().host; }

uint32_t newTimeline() {
  queues().clocks.push_back(0);
  return static_cast<uint32_t>(queues().clocks.size() - 1);
}

Clock tick(uint32_t timeline) { return ++queues().clocks[timeline]; }

void startOperation(Operation &operation) {
  queues().ran.push_back(operation.info);
  operation.number = static_cast<uint32_t>(queues().ran.size());
  machine.operation = &operation;
  machine.accessedFrom = nullptr;
  if (countsAccesses())
    countOperation(operation.info);
}

const OperationInfo &operationInfo(uint32_t number) { return queues().ran[number - 1]; }

void submit(const OperationPointer &operation) {
  [[maybe_unused]] static const bool isHooked = std::atexit(checkAtExit) == 0;
  Queues &all = queues();
  all.pending.push_back(operation);
  wakePeers();
  switch (policy()) {
  case Completion::atOnce:
    while (runAny(std::vector<OperationPointer>(all.pending))) {
    }
    break;
  case Completion::anyTime:
    while (all.draw() % 2 && runAny(std::vector<OperationPointer>(all.pending))) {
    }
    break;
  default:
    break;
  }
  while (all.pending.size() > kMostPending && runAny(std::vector<OperationPointer>(all.pending))) {
  }
}

static bool runAll(const std::vector<OperationPointer> &operations) {
  const std::vector<OperationPointer> needed = neededFor(operations);
  auto isDone = [](const OperationPointer &operation) { return operation->isDone; };
  while (machine.error.empty() && !std::all_of(needed.begin(), needed.end(), isDone)) {
    if (bringOn(needed) || waitForPeers())
      continue;
    if (machine.error.empty())
      machine.error = "waiting for ever: " + describeWaitingOperations();
    wakePeers();
  }
  return machine.error.empty();
}

bool complete(const OperationPointer &operation) { return runAll({operation}); }

bool hostWaitsFor(const std::vector<OperationPointer> &operations) {
  if (!runAll(operations))
    return false;
  for (const OperationPointer &operation : operations)
    learn(queues().host, operation->known);
  unwatchKnown();
  return true;
}

bool hostFindsDone(const OperationPointer &operation) {
  if (!operation->isDone && queues().draw() % kRunOneInQuestions == 0)
    bringOn(neededFor({operation}));
  if (!operation->isDone || !machine.error.empty())
    return false;
  learn(queues().host, operation->known);
  unwatchKnown();
  return true;
}

std::string describeWaitingOperations() {
  constexpr size_t kMostShown = 8;
  std::string text;
  size_t shown = 0;
  for (const OperationPointer &operation : queues().pending) {
    std::erase_if(operation->after, [](const OperationPointer &other) { return other->isDone; });
    if (operation->after.empty() && shown++ < kMostShown)
      text += (text.empty() ? "" : "; ") + describe(operation->info) + " on device " +
              std::to_string(operation->device);
  }
  return text.empty() ? "nothing is enqueued" : text;
}

void dropOperations() {
  for (OperationPointer &operation : queues().pending) {
    operation->isDone = true;
    operation->after.clear();
    operation->run = {};
    operation->isReady = {};
  }
  queues().pending.clear();
  queues().host = queues().clocks;
  unwatchAll();
  dropCalls();
  wakePeers();
}

} // namespace simt
