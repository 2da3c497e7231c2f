//===- async.cpp - Copies and reductions under way, and mbarriers ---------===//
//
// What a thread starts is checked and noted as the access of an actor of its own when it starts, as
// it may happen from then on, and moves its bytes when it completes.
//
//===----------------------------------------------------------------------===//

#include "machine.h"

#include <cstring>

namespace simt {

namespace {

constexpr size_t kRowBytes = 128, kChunkBytes = 16; // of 64 columns
/// With Completion::anyTime, something completes at one in so many switches between threads.
constexpr uint32_t kCompleteOneIn = 16;

Thread &current() { return *machine.thread; }

/// A new actor for a bulk operation.
std::pair<size_t, Clock> newBulkActor(Block &block) {
  size_t which = 0;
  for (size_t i = 1; i < kBulkActors; ++i)
    if (block.bulkClocks[i] < block.bulkClocks[which])
      which = i;
  return {block.threads.size() + kMostWarps + which, ++block.bulkClocks[which]};
}

MemoryBarrier &barrierAt(uint64_t *at, const Place &place) {
  auto found = machine.block->memoryBarriers.find(at);
  if (found == machine.block->memoryBarriers.end())
    fail("mbarrier at " + placeText(place) + " of " + self() + " has not been initialised");
  return found->second;
}

/// The phase ends when all arrivals and all bytes are there.
void endPhase(Block &block, const uint64_t *at, MemoryBarrier &barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0)
    return;
  barrier.pending = barrier.arrivals;
  barrier.phase ^= 1;
  barrier.handed = std::move(barrier.gathering);
  barrier.gathering = {};
  for (Thread &thread : block.threads)
    if (thread.state == State::atMemoryBarrier && thread.waitsFor == at)
      makeReady(block, thread);
}

//===-- boxes -------------------------------------------------------------===//

/// Calls body(address in shared memory, element of the source or null) for every 16 bytes.
template <class Body> void forChunks(const BoxCopy &copy, Body body) {
  const BoxSource &from = copy.source;
  const auto base = static_cast<uint32_t>(static_cast<unsigned char *>(copy.to) - sharedBase());
  for (int r = 0; r < from.boxRows; ++r)
    for (size_t chunk = 0; chunk < kRowBytes / kChunkBytes; ++chunk) {
      int64_t row = copy.row + r, column = copy.column + static_cast<int64_t>(chunk) * 8;
      bool inside = row >= 0 && row < from.rows && column < from.size;
      const auto *values = static_cast<const uint16_t *>(from.values);
      body(swizzled(base + static_cast<uint32_t>(static_cast<size_t>(r) * kRowBytes +
                                                 chunk * kChunkBytes)),
           inside ? values + row * from.ld + copy.head * from.size + column : nullptr);
    }
}

Accessor accessorOf(const BoxCopy &copy) {
  return {copy.knows.known, &copy.knows.fenced, copy.actor, copy.clock};
}

void completeBox(Block &block, size_t index) {
  BoxCopy copy = std::move(block.boxes[index]);
  block.boxes.erase(block.boxes.begin() + static_cast<ptrdiff_t>(index));
  Accessor who = accessorOf(copy);
  forChunks(copy, [&](unsigned char *to, const uint16_t *from) {
    access(who, to, kChunkBytes, true);
    if (from)
      std::memcpy(to, from, kChunkBytes);
    else
      std::memset(to, 0, kChunkBytes);
  });
  MemoryBarrier &barrier = block.memoryBarriers[copy.barrier];
  barrier.bytes -= copy.source.boxRows * static_cast<int>(kRowBytes);
  Known &gathering = barrier.gathering.known;
  gathering.here.threads = block.threads.size();
  gathering.here.learn(copy.actor, copy.clock);
  endPhase(block, copy.barrier, barrier);
}

//===-- small copies ------------------------------------------------------===//

void completeCopy(Thread &thread, const SmallCopy &copy) {
  access(accessorOf(thread), copy.to, kChunkBytes, true);
  if (copy.from)
    std::memcpy(copy.to, copy.from, kChunkBytes);
  else
    std::memset(copy.to, 0, kChunkBytes);
}

//===-- reductions --------------------------------------------------------===//

void readTerms(Thread &thread, Reduction &reduction) {
  if (reduction.isRead)
    return;
  reduction.isRead = true;
  reduction.terms.assign(reduction.from, reduction.from + reduction.count);
  thread.knows.known.here.learn(reduction.reader, reduction.readClock);
}

void completeReduction(Thread &thread, Reduction &reduction) {
  readTerms(thread, reduction);
  for (int i = 0; i < reduction.count; ++i)
    reduction.to[i] += reduction.terms[static_cast<size_t>(i)];
  thread.knows.known.here.learn(reduction.actor, reduction.clock);
}

} // namespace

//===----------------------------------------------------------------------===//
// mbarriers
//===----------------------------------------------------------------------===//

unsigned char *sharedBase() {
  uintptr_t base = reinterpret_cast<uintptr_t>(dynamicShared());
  return reinterpret_cast<unsigned char *>((base + 1023) & ~uintptr_t(1023));
}
unsigned char *swizzled(uint32_t address) {
  return sharedBase() + (address ^ (address >> 7 & 7) << 4);
}

void initBarrier(uint64_t *at, int arrivals) {
  Inside inside;
  access(accessorOf(current()), at, sizeof(*at), true);
  MemoryBarrier &barrier = machine.block->memoryBarriers[at];
  barrier = MemoryBarrier{};
  barrier.arrivals = barrier.pending = arrivals;
  barrier.initialiser = current().number;
}

void fenceBarrierInit() {
  Inside inside;
  for (auto &[at, barrier] : machine.block->memoryBarriers)
    if (barrier.initialiser == current().number)
      barrier.fenced = true;
}

void arriveAt(uint64_t *at, int bytes, const Place &place) {
  Inside inside;
  Block &block = *machine.block;
  MemoryBarrier &barrier = barrierAt(at, place);
  access(accessorOf(current(), true), at, sizeof(*at), true);
  if (barrier.pending == 0)
    fail("mbarrier at " + placeText(place) + ": more arrivals than its phase expects, by " +
         self());
  barrier.bytes += bytes;
  --barrier.pending;
  handTo(barrier.gathering, current());
  endPhase(block, at, barrier);
  if (machine.draw() % 4 == 0)
    giveWay();
}

void waitForPhase(uint64_t *at, int parity, Place place) {
  Inside inside;
  barrierAt(at, place);
  access(accessorOf(current(), true), at, sizeof(*at), false);
  if (machine.draw() % 4 == 0)
    giveWay();
  while (barrierAt(at, place).phase == parity) {
    current().waitsFor = at;
    waitAs(State::atMemoryBarrier, place);
  }
  learnFrom(current(), barrierAt(at, place).handed);
}

void fenceAsyncProxy() {
  Inside inside;
  Thread &thread = current();
  showStores(thread);
  BlockClocks now = thread.knows.known.here;
  now.learn(static_cast<size_t>(thread.number), thread.clock);
  thread.knows.fenced.learn(now);
  ++thread.clock;
}

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

void startBox(void *to, const BoxSource &source, int column, int head, int row, uint64_t *at,
              const Place &place) {
  Inside inside;
  Block &block = *machine.block;
  if ((static_cast<unsigned char *>(to) - sharedBase()) % 1024)
    fail("TMA copy to a shared address that is not a multiple of 1024, at " + placeText(place));
  if (reinterpret_cast<uintptr_t>(source.values) % 16 || source.ld % 8 || source.size % 8)
    fail("tensor map of a matrix that is not aligned to 16 bytes, at " + placeText(place));
  MemoryBarrier &barrier = barrierAt(at, place);
  if (!barrier.fenced)
    fail("TMA copy at " + placeText(place) + " by " + self() +
         " to an mbarrier with no fence.mbarrier_init since it was initialised");
  access(accessorOf(current(), true), at, sizeof(*at), true);
  auto [actor, clock] = newBulkActor(block);
  BoxCopy copy{source, column, head, row, to, at, current().knows, actor, clock};
  // What the thread itself did before, it knows.
  copy.knows.known.here.learn(static_cast<size_t>(current().number), current().clock);
  Accessor who = accessorOf(copy);
  forChunks(copy, [&](unsigned char *chunk, const uint16_t *from) {
    checkWrite(who, chunk, kChunkBytes);
    if (from)
      access({who.known, nullptr, actor, clock}, from, kChunkBytes, false);
  });
  block.boxes.push_back(std::move(copy));
  if (completionOf(machine.options) == Completion::atOnce)
    completeBox(block, block.boxes.size() - 1);
}

bool completeOne(Block &block, bool nobodyCanGoOn) {
  if (block.boxes.empty())
    return false;
  if (!nobodyCanGoOn && (completionOf(machine.options) != Completion::anyTime ||
                         machine.draw() % kCompleteOneIn != 0))
    return false;
  Inside inside;
  try {
    completeBox(block, machine.draw() % block.boxes.size());
  } catch (const EngineStop &) { // the launch has an error
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Small copies
//===----------------------------------------------------------------------===//

void startCopy(void *to, const void *from) {
  Inside inside;
  Thread &thread = current();
  if (reinterpret_cast<uintptr_t>(to) % kChunkBytes ||
      reinterpret_cast<uintptr_t>(from) % kChunkBytes)
    fail("misaligned address: cp.async of 16 bytes by " + self());
  if (from)
    access(accessorOf(thread), from, kChunkBytes, false);
  checkWrite(accessorOf(thread), to, kChunkBytes);
  SmallCopy copy{to, from};
  Completion when = completionOf(machine.options);
  if (when == Completion::atOnce || (when == Completion::anyTime && machine.draw() % 2))
    completeCopy(thread, copy);
  else
    thread.copies.items.push_back(copy);
}

void commitCopies() {
  Inside inside;
  current().copies.commit();
}

void waitForCopies(size_t left) {
  Inside inside;
  Thread &thread = current();
  thread.copies.completeUntil(left, [&](const SmallCopy &copy) { completeCopy(thread, copy); });
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

void startReduction(int *to, const int *from, int bytes, const Place &place) {
  Inside inside;
  Thread &thread = current();
  if (bytes % 16 || reinterpret_cast<uintptr_t>(to) % 16 || reinterpret_cast<uintptr_t>(from) % 16)
    fail("bulk reduction that is not aligned to 16 bytes, at " + placeText(place));
  auto [reader, readClock] = newBulkActor(*machine.block);
  auto [actor, clock] = newBulkActor(*machine.block);
  Handed knows = thread.knows;
  knows.known.here.learn(static_cast<size_t>(thread.number), thread.clock);
  access({knows.known, &knows.fenced, reader, readClock}, from, static_cast<size_t>(bytes), false);
  Accessor adds{knows.known, nullptr, actor, clock, true};
  access(adds, to, static_cast<size_t>(bytes), false);
  access(adds, to, static_cast<size_t>(bytes), true);
  thread.reductions.push_back({to, from, bytes / 4, reader, actor, readClock, clock});
}

void commitReductions() {
  Inside inside;
  current().committedReductions = current().reductions.size();
}

// They add late: what has been read may still be on its way.
void waitForReductionReads() {
  Inside inside;
  Thread &thread = current();
  for (size_t i = 0; i < thread.committedReductions; ++i)
    readTerms(thread, thread.reductions[i]);
}

void waitForReductions() {
  Inside inside;
  Thread &thread = current();
  for (size_t i = 0; i < thread.committedReductions; ++i)
    completeReduction(thread, thread.reductions[i]);
  thread.reductions.erase(thread.reductions.begin(),
                          thread.reductions.begin() +
                              static_cast<ptrdiff_t>(thread.committedReductions));
  thread.committedReductions = 0;
}

//===----------------------------------------------------------------------===//
// Ends
//===----------------------------------------------------------------------===//

void endThread(Block &block, Thread &thread) {
  showStores(thread);
  if (!thread.products.items.empty())
    fail(whoIs(block, thread) + " ends while products that it started are under way");
  if (!thread.reductions.empty())
    fail(whoIs(block, thread) + " ends while bulk reductions that it started read shared memory");
  for (const SmallCopy &copy : thread.copies.items)
    completeCopy(thread, copy);
  thread.copies = {};
}

void endBlock(Block &block) {
  if (!block.boxes.empty() && machine.error.empty())
    machine.error = "block (" + std::to_string(block.index.x) + "," +
                    std::to_string(block.index.y) + "," + std::to_string(block.index.z) +
                    ") ends while copies into its shared memory are under way";
  block.boxes.clear();
  size_t statics = staticSharedBytes(block), dynamic = machine.launch.dynamicBytes;
  // Without the kernel's consent that is all there is, static and dynamic.
  const size_t most = machine.launch.mostDynamicBytes > kMostStatic ? kMostShared : kMostStatic;
  if (machine.error.empty() && (statics > kMostStatic || statics + dynamic > most))
    machine.error = "shared memory: " + std::to_string(statics) + " bytes static and " +
                    std::to_string(dynamic) + " dynamic; at most " + std::to_string(kMostStatic) +
                    " static and " + std::to_string(most) + " together are allowed";
}

} // namespace simt
