//===- order.cpp - What hands knowledge from one thread to another --------===//
//
// Fences and atomics as the C++ memory model has them, at the scope of the device: a relaxed store
// hands on what its thread knew at its last fence, a relaxed load learns at the thread's next
// fence.
//
//===----------------------------------------------------------------------===//

#include "machine.h"

#include <cstring>

namespace simt {

namespace {

/// A store is seen by others at one in so many atomics of its thread, unless something orders it.
constexpr uint32_t kShowOneIn = 4;

/// What a thread knows, for others of any block.
BlocksPointer knowledgeOf(const Thread &thread) {
  auto result = thread.knows.known.elsewhere
                    ? std::make_shared<Blocks>(*thread.knows.known.elsewhere)
                    : std::make_shared<Blocks>();
  auto here = std::make_shared<BlockClocks>(thread.knows.known.here);
  here->learn(static_cast<size_t>(thread.number), thread.clock);
  (*result)[machine.block->number] = std::move(here);
  return result;
}

/// Later accesses are not part of what was handed on.
void tick(Thread &thread) { ++thread.clock; }

void learnBlocks(Thread &thread, const BlocksPointer &from) {
  if (!from || from == thread.learned)
    return;
  thread.learned = from;
  if (auto own = from->find(machine.block->number); own != from->end())
    thread.knows.known.here.learn(*own->second);
  thread.knows.known.elsewhere = join(thread.knows.known.elsewhere, from);
}

std::unordered_map<const void *, BlocksPointer> &releasedIn(const void *memory) {
  return isShared(memory) ? machine.block->released : machine.released;
}
BlocksPointer releasedAt(const void *memory) {
  auto &words = releasedIn(memory);
  auto found = words.find(memory);
  return found == words.end() ? nullptr : found->second;
}
void releaseAt(const void *memory, BlocksPointer what) {
  auto &words = releasedIn(memory);
  if (what)
    words[memory] = std::move(what);
  else
    words.erase(memory);
}

void learnLater(Thread &thread, const BlocksPointer &seen) {
  if (seen && (thread.unfenced.empty() || thread.unfenced.back() != seen))
    thread.unfenced.push_back(seen);
}

void show(Thread &thread, size_t index) {
  BufferedStore store = thread.stores[index];
  thread.stores.erase(thread.stores.begin() + static_cast<ptrdiff_t>(index));
  std::memcpy(store.to, &store.value, store.bytes);
}

/// The oldest store to an address goes first; others in any order.
void showAny(Thread &thread) {
  size_t pick = machine.draw() % thread.stores.size();
  for (size_t i = 0; i < pick; ++i)
    if (thread.stores[i].to == thread.stores[pick].to)
      pick = i;
  show(thread, pick);
}

void maybeGiveWay() {
  if (machine.options.preemptOneIn && machine.draw() % 4 == 0)
    pollAgain();
  Thread &thread = *machine.thread;
  if (!thread.stores.empty() && machine.draw() % kShowOneIn == 0)
    showAny(thread);
}

} // namespace

void startClocks(Block &block) {
  block.bulkClocks.assign(kBulkActors, 0);
  block.released.clear();
}

void handTo(Handed &to, Thread &thread) {
  showStores(thread);
  to.learn(thread.knows);
  to.known.here.learn(static_cast<size_t>(thread.number), thread.clock);
  tick(thread);
}

void learnFrom(Thread &thread, const Handed &from) { thread.knows.learn(from); }

void meet(Block &, const std::vector<Thread *> &group) {
  Handed sum;
  for (Thread *thread : group)
    handTo(sum, *thread);
  for (Thread *thread : group)
    thread->knows = sum;
}

// As meet, for all threads: one number stands for what all know of each other.
void meetAll(Block &block) {
  Clock latest = 0;
  BlockClocks fenced;
  BlocksPointer elsewhere;
  const size_t threads = block.threads.size();
  Clocks others; // what is known of actors beside the threads, if anything
  for (Thread &thread : block.threads) {
    showStores(thread);
    latest = std::max(latest, thread.clock);
    const Clocks &clocks = thread.knows.known.here.clocks;
    if (clocks.size() > threads + others.size())
      others.resize(clocks.size() - threads);
    for (size_t actor = threads; actor < clocks.size(); ++actor)
      others[actor - threads] = std::max(others[actor - threads], clocks[actor]);
    if (thread.knows.fenced.floor || !thread.knows.fenced.clocks.empty())
      fenced.learn(thread.knows.fenced);
    elsewhere = join(elsewhere, thread.knows.known.elsewhere);
  }
  for (Thread &thread : block.threads) {
    Known &known = thread.knows.known;
    known.here.floor = latest;
    known.elsewhere = elsewhere;
    known.here.clocks.clear(); // of threads, `floor` says more
    if (!others.empty()) {
      known.here.clocks.resize(threads);
      known.here.clocks.insert(known.here.clocks.end(), others.begin(), others.end());
    }
    thread.knows.fenced = fenced;
    thread.clock = latest + 1;
  }
}

void showStores(Thread &thread) {
  while (!thread.stores.empty())
    show(thread, 0);
}

void showStoresAt(Thread &thread, const void *memory, size_t bytes) {
  const char *at = static_cast<const char *>(memory);
  for (size_t i = 0; i < thread.stores.size();) {
    const char *to = static_cast<const char *>(thread.stores[i].to);
    if (to < at + bytes && at < to + thread.stores[i].bytes)
      show(thread, i);
    else
      ++i;
  }
}

void fence() {
  Inside inside;
  Thread &thread = *machine.thread;
  showStores(thread);
  for (const BlocksPointer &seen : thread.unfenced)
    learnBlocks(thread, seen);
  thread.unfenced.clear();
  thread.released = knowledgeOf(thread);
  tick(thread);
}

void beforeUpdate(const void *memory, size_t bytes) {
  Inside inside;
  maybeGiveWay();
  machine.accessedFrom = __builtin_return_address(0);
  Thread &thread = *machine.thread;
  showStoresAt(thread, memory, bytes);
  checkAlignment(memory, bytes);
  Accessor who = accessorOf(thread, true);
  access(who, memory, bytes, false);
  access(who, memory, bytes, true);
  BlocksPointer released = releasedAt(memory);
  learnLater(thread, released);
  // A read-modify-write continues what others have released.
  if (thread.released && thread.released != released)
    releaseAt(memory, join(released, thread.released));
}

uint64_t atomicLoadWord(const void *memory, size_t bytes, Order order) {
  Inside inside;
  maybeGiveWay();
  machine.accessedFrom = __builtin_return_address(0);
  Thread &thread = *machine.thread;
  showStoresAt(thread, memory, bytes);
  access(accessorOf(thread, true), memory, bytes, false);
  BlocksPointer released = releasedAt(memory);
  if (order == Order::acquire)
    learnBlocks(thread, released);
  else
    learnLater(thread, released);
  uint64_t value = 0;
  std::memcpy(&value, memory, bytes);
  return value;
}

void atomicStoreWord(void *memory, size_t bytes, uint64_t value, Order order) {
  Inside inside;
  maybeGiveWay();
  machine.accessedFrom = __builtin_return_address(0);
  Thread &thread = *machine.thread;
  access(accessorOf(thread, true), memory, bytes, true);
  if (order == Order::release) {
    showStores(thread);
    releaseAt(memory, knowledgeOf(thread));
    tick(thread);
    std::memcpy(memory, &value, bytes);
    return;
  }
  releaseAt(memory, thread.released);
  thread.stores.push_back({memory, bytes, value});
}

} // namespace simt
