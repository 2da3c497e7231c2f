//===- scheduler.cpp - Fibres, and which of them runs next ----------------===//

#include "operations.h"

#include <algorithm>
#include <alloca.h>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sys/mman.h>

// A section of their own tells them from other variables of the program (memory.cpp).
[[gnu::section("simt_indices")]] simt::Extent threadIdx, blockIdx, blockDim, gridDim;

// Saves what the calling convention asks a callee to keep, and swaps stacks.
extern "C" void simtSwitch(void **save, void *load);
asm(R"(
.text
.globl simtSwitch
.type simtSwitch, @function
simtSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simtSwitch, .-simtSwitch
)");

namespace simt {

Machine machine;
constinit thread_local bool onDevice = false;
constinit thread_local bool insideEngine = false;
constinit char *ownStack = nullptr;
constinit uintptr_t arenaBase = -kArenaBytes;

int64_t numberOf(const char *variable, int64_t otherwise) {
  const char *text = std::getenv(variable);
  return text ? std::strtoll(text, nullptr, 10) : otherwise;
}
const int defect = static_cast<int>(numberOf("GENREC_SIMT_DEFECT", 0));
int64_t patienceOr(int64_t seconds) { return numberOf("GENREC_SIMT_PATIENCE", seconds); }
uint64_t defaultSeed() { return static_cast<uint64_t>(numberOf("GENREC_SIMT_SEED", 1)); }

namespace {

constexpr size_t kGuardBytes = 4 << 10;
/// Stacks begin at different places of their pages, for the caches' sake.
constexpr size_t kStackColours = 7, kColourBytes = 320;
constexpr size_t kMostArgumentBytes = 32764; // from CUDA 12.1 and sm_70 on

[[noreturn]] void threadMain() {
  insideEngine = false;
  // No more than there is: threads then touch few pages of their stacks.
  constexpr uintptr_t kAligned = 64;
  auto room = reinterpret_cast<uintptr_t>(alloca(machine.launch.argumentBytes + kAligned));
  auto *arguments = reinterpret_cast<char *>((room + kAligned - 1) & ~(kAligned - 1));
  std::memcpy(arguments, machine.launch.arguments, machine.launch.argumentBytes);
  machine.launch.run(arguments);
  Inside inside;
  Block &block = *machine.block;
  Thread &thread = *machine.thread;
  if (block.waiting > 0)
    fail("divergent barrier: " + whoIs(block, thread) + " ended while " +
         std::to_string(block.waiting) + " threads wait at " + placeText(block.barrierPlace));
  if (thread.isEarly)
    fail(whoIs(block, thread) + " ended without waiting for the launch before");
  endThread(block, thread);
  thread.state = State::done;
  block.warps[thread.number / kWarp].ended |= 1u << thread.number % kWarp;
  ++block.done;
  --block.live;
  leave();
  __builtin_unreachable();
}

void startThread(Block &block, int number) {
  Thread &thread = block.threads[static_cast<size_t>(number)];
  const Extent &size = machine.launch.block;
  unsigned n = static_cast<unsigned>(number);
  thread.restart(block.threads.size());
  thread.number = number;
  thread.isEarly = machine.launch.beginsEarly;
  thread.index = {n % size.x, n / size.x % size.y, n / size.x / size.y};
  char *top = block.stacks + (static_cast<size_t>(number) + 1) * kStackBytes -
              static_cast<size_t>(number) % kStackColours * kColourBytes;
  // Six registers, the address to return to; the stack is aligned as after a call.
  void **frame = reinterpret_cast<void **>(top) - 8;
  std::fill(frame, frame + 8, nullptr);
  frame[6] = reinterpret_cast<void *>(&threadMain);
  block.stackPointers[number] = frame;
  makeReady(block, thread);
}

void allocateBlock(Block &block, int threads) {
  if (!block.stacks) {
    size_t bytes = kMostThreads * kStackBytes;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block.stacks = static_cast<char *>(memory);
    block.dynamic = zeros<char>(kMostShared + 16);
    block.dynamicNotes = zeros<Note>(kMostShared / 4 + 1);
  }
  for (; block.guarded < threads; ++block.guarded)
    mprotect(block.stacks + static_cast<size_t>(block.guarded) * kStackBytes, kGuardBytes,
             PROT_NONE);
  if (block.made.size() < static_cast<size_t>(threads))
    block.made.resize(static_cast<size_t>(threads));
  block.threads = {block.made.data(), static_cast<size_t>(threads)};
}

void startBlock(Block &block, int64_t number) {
  const Extent &grid = machine.launch.grid;
  allocateBlock(block, machine.threadsPerBlock);
  block.active = true;
  block.number = ++machine.blocksStarted;
  block.stamp = ++machine.stamps;
  block.index = {static_cast<unsigned>(number % grid.x),
                 static_cast<unsigned>(number / grid.x % grid.y),
                 static_cast<unsigned>(number / grid.x / grid.y)};
  block.done = block.waiting = block.votes = 0;
  block.live = machine.threadsPerBlock;
  std::fill(block.named, block.named + kNamedBarriers, NamedBarrier{});
  startStaticShared(block);
  block.memoryBarriers.clear();
  block.boxes.clear();
  for (Warp &warp : block.warps)
    warp.waiting = warp.ended = warp.same = 0;
  std::fill(block.readyIn, block.readyIn + kMostWarps, uint8_t(0));
  block.readyCount = 0;
  block.priorities.resize(static_cast<size_t>((machine.threadsPerBlock + kWarp - 1) / kWarp));
  std::iota(block.priorities.begin(), block.priorities.end(), uint8_t(0));
  for (size_t i = block.priorities.size(); i > 1; --i)
    std::swap(block.priorities[i - 1], block.priorities[machine.draw() % i]);
  for (int i = 0; i < machine.threadsPerBlock; ++i)
    startThread(block, i);
  startClocks(block);
}

/// Brings the static shared memory of `block` into place.
void enter(Block &block) {
  if (machine.block == &block)
    return;
  if (Block *old = machine.block; old && old->active)
    saveStaticShared(*old);
  restoreStaticShared(block);
  machine.block = &block;
}

/// In how many picks the order of warps changes once.
constexpr uint32_t kReorderOneIn = 128;

/// The warp whose thread runs next.
size_t pickWarp(Block &block) {
  if (scheduleOf(machine.options) == Schedule::priorities) {
    if (machine.draw() % kReorderOneIn == 0)
      std::swap(block.priorities.front(),
                block.priorities[machine.draw() % block.priorities.size()]);
    for (uint8_t warp : block.priorities)
      if (block.readyIn[warp])
        return warp;
  }
  size_t pick = machine.draw() % static_cast<size_t>(block.readyCount), warp = 0;
  for (; pick >= block.readyIn[warp]; ++warp)
    pick -= block.readyIn[warp];
  return warp;
}

/// Takes one of the threads that can go on.
Thread &takeReady(Block &block) {
  const size_t number = pickWarp(block);
  uint8_t *ready = block.warps[number].ready;
  uint8_t &count = block.readyIn[number];
  const size_t pick = machine.draw() % count--;
  const uint8_t lane = ready[pick];
  ready[pick] = ready[count];
  --block.readyCount;
  __builtin_prefetch(block.stackPointers[number * kWarp + lane]);
  return block.threads[number * kWarp + lane];
}

std::string describeWaiting(const Block &block) {
  static const char *const kinds[] = {"ready",          "at a block barrier",  "at a named barrier",
                                      "at an mbarrier", "in a warp intrinsic", "in __activemask",
                                      "ended"};
  std::string text = "waiting for ever in block (" + std::to_string(block.index.x) + "," +
                     std::to_string(block.index.y) + "," + std::to_string(block.index.z) + "):";
  for (State state : {State::atBarrier, State::atNamedBarrier, State::atMemoryBarrier,
                      State::atWarpOp, State::done}) {
    int count = 0;
    const Thread *first = nullptr;
    for (const Thread &thread : block.threads)
      if (thread.state == state) {
        ++count;
        first = first ? first : &thread;
      }
    if (!count)
      continue;
    text += " " + std::to_string(count) + " threads " + kinds[static_cast<int>(state)];
    if (state != State::done)
      text += " (" + whoIs(block, *first) + " at " + placeText(first->place) + ")";
    text += ";";
  }
  text.pop_back();
  return text;
}

//===-- what runs next ----------------------------------------------------===//

/// The blocks of the launch.
struct Resident {
  std::vector<int64_t> order; ///< in which they start
  size_t next = 0;            ///< of `order`
  std::vector<Block *> running;
  size_t at = 0; ///< of `running`: the one that runs
};
Resident blocks;

void startNextIn(Block &block) { startBlock(block, blocks.order[blocks.next++]); }

void startBlocks() {
  const Extent &grid = machine.launch.grid;
  std::vector<int64_t> &order = blocks.order;
  order.resize(static_cast<size_t>(int64_t(grid.x) * grid.y * grid.z));
  std::iota(order.begin(), order.end(), int64_t(0));
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[machine.draw() % i]);

  const auto resident =
      std::min<size_t>(order.size(), static_cast<size_t>(machine.options.residentBlocks));
  while (machine.blocks.size() < resident)
    machine.blocks.push_back(std::make_unique<Block>());
  blocks.next = blocks.at = 0;
  blocks.running.clear();
  for (size_t i = 0; i < resident; ++i) {
    startNextIn(*machine.blocks[i]);
    blocks.running.push_back(machine.blocks[i].get());
  }
}

/// Whether a thread of `block`, which then is in place, can go on.
bool canGoOn(Block &block) {
  enter(block);
  completeOne(block, false);
  while (block.readyCount == 0 && !releaseActiveMask(block))
    if (!completeOne(block, true) || !machine.error.empty())
      return false;
  return true;
}

/// The thread that runs next; null where something is wrong.
Thread *pickThread() {
  machine.thread = nullptr;
  const std::vector<Block *> &running = blocks.running;
  size_t &at = blocks.at;
  // Blocks change rarely: it costs a copy of their shared memory.
  if (machine.draw() % 16 == 0)
    at = machine.draw() % running.size();
  size_t tried = 0;
  while (machine.error.empty() && !canGoOn(*running[at])) {
    if (++tried > running.size()) {
      machine.error = describeWaiting(*running[at]);
      return nullptr;
    }
    at = (at + 1) % running.size();
  }
  if (!machine.error.empty())
    return nullptr;
  Block &block = *running[at];
  Thread &thread = takeReady(block);
  machine.thread = &thread;
  threadIdx = thread.index;
  blockIdx = block.index;
  ownStack = block.stacks + static_cast<size_t>(thread.number) * kStackBytes;
  return &thread;
}

/// Runs threads, one after another (leave), until one of a block that has ended or something is
/// wrong.
void runFrom(Thread &thread) {
  onDevice = true;
  insideEngine = false;
  simtSwitch(&machine.scheduler, machine.block->stackPointers[thread.number]);
  insideEngine = false;
  onDevice = false;
  ownStack = nullptr;
  machine.thread = nullptr;
}

/// Runs until every block of the launch has ended or something is wrong.
void runBlocks() {
  startBlocks();
  while (!blocks.running.empty()) {
    Thread *thread = pickThread();
    if (!thread)
      return;
    runFrom(*thread);
    if (!machine.error.empty())
      return;
    if (machine.switches > machine.options.mostSwitches) {
      machine.error = "no end after " + std::to_string(machine.switches) +
                      " switches between threads: raise mostSwitches if the kernel is that long";
      return;
    }
    Block &block = *blocks.running[blocks.at]; // it has ended
    endBlock(block);
    if (!machine.error.empty())
      return;
    endAccesses(block);
    block.active = false;
    if (blocks.next < blocks.order.size()) {
      startNextIn(block);
    } else {
      blocks.running.erase(blocks.running.begin() + static_cast<ptrdiff_t>(blocks.at));
      blocks.at = blocks.at < blocks.running.size() ? blocks.at : 0;
    }
  }
}

} // namespace

std::string checkLaunch(const Launch &launch) {
  uint64_t threads = uint64_t(launch.block.x) * launch.block.y * launch.block.z;
  uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
  if (threads == 0 || threads > kMostThreads)
    return "a block of " + std::to_string(threads) + " threads: 1 to 1024 are allowed";
  const uint32_t most = options().mostBlocksAcross;
  if (blocks == 0 || launch.grid.x > 0x7FFFFFFFu || launch.grid.y > most || launch.grid.z > most)
    return "a grid of (" + std::to_string(launch.grid.x) + "," + std::to_string(launch.grid.y) +
           "," + std::to_string(launch.grid.z) + ") blocks: 1 to (2147483647," +
           std::to_string(most) + "," + std::to_string(most) + ") are allowed";
  if (launch.dynamicBytes > kMostShared)
    return std::to_string(launch.dynamicBytes) + " bytes of dynamic shared memory: at most " +
           std::to_string(kMostShared) + " are allowed";
  if (launch.dynamicBytes > launch.mostDynamicBytes)
    return std::to_string(launch.dynamicBytes) +
           " bytes of dynamic shared memory: the kernel has been allowed " +
           std::to_string(launch.mostDynamicBytes) +
           " (cudaFuncAttributeMaxDynamicSharedMemorySize)";
  if (launch.argumentBytes > kMostArgumentBytes)
    return std::to_string(launch.argumentBytes) + " bytes of arguments: at most " +
           std::to_string(kMostArgumentBytes) + " are allowed";
  return {};
}

/// GENREC_SIMT_DEVICE_BYTES bounds the memory of a program's devices.
Options &options() {
  static Options current{.deviceBytes =
                             numberOf("GENREC_SIMT_DEVICE_BYTES", Options().deviceBytes)};
  return current;
}

const std::string &errorMessage() {
  machine.isErrorSeen = true;
  return machine.error;
}
void clearError() {
  Lock lock;
  if (!machine.error.empty())
    keepHeld();
  machine.error.clear();
  dropOperations();
}
int64_t launchCount() { return machine.launches; }

void makeReady(Block &block, Thread &thread) {
  thread.state = State::ready;
  const int warp = thread.number / kWarp;
  block.warps[warp].ready[block.readyIn[warp]++] = static_cast<uint8_t>(thread.number % kWarp);
  ++block.readyCount;
}

Schedule scheduleOf(const Options &options) {
  if (options.schedule != Schedule::bySeed)
    return options.schedule;
  return options.seed / 4 % 2 ? Schedule::priorities : Schedule::byTurns;
}

Completion completionOf(const Options &options) {
  if (options.completion != Completion::bySeed)
    return options.completion;
  constexpr Completion kBySeed[] = {Completion::atOnce, Completion::late, Completion::anyTime,
                                    Completion::late};
  return kBySeed[options.seed % 4];
}

void leave() {
  const bool inside = insideEngine;
  insideEngine = true;
  const Thread &self = *machine.thread;
  void **kept = &machine.block->stackPointers[self.number];
  // The next thread is picked here, which saves a switch to the scheduler. That one ends blocks and
  // launches.
  Thread *next = nullptr;
  if (++machine.switches <= machine.options.mostSwitches && machine.error.empty() &&
      machine.block->live > 0)
    next = pickThread();
  if (next != &self)
    simtSwitch(kept, next ? machine.block->stackPointers[next->number] : machine.scheduler);
  insideEngine = inside;
}

void waitAs(State state, const Place &place) {
  machine.thread->state = state;
  machine.thread->place = place;
  leave();
}

void pollAgain() {
  // With priorities, a warp that polls for what another has to do must not keep it from that.
  Block &block = *machine.block;
  auto warp = static_cast<uint8_t>(machine.thread->number / kWarp);
  if (machine.draw() % 8 == 0) {
    auto at = std::find(block.priorities.begin(), block.priorities.end(), warp);
    std::rotate(at, at + 1, block.priorities.end());
  }
  giveWay();
}

void giveWay() {
  makeReady(*machine.block, *machine.thread);
  leave();
}

void fail(const std::string &message) {
  Inside inside;
  if (machine.error.empty())
    machine.error = message;
  if (!machine.thread) // something completes beside all threads
    throw EngineStop();
  machine.thread->state = State::done;
  leave();
  __builtin_unreachable();
}

std::string whoIs(const Block &block, const Thread &thread) {
  auto text = [](const Extent &e) {
    return "(" + std::to_string(e.x) + "," + std::to_string(e.y) + "," + std::to_string(e.z) + ")";
  };
  return "thread " + text(thread.index) + " of block " + text(block.index);
}

std::string self() {
  if (machine.thread)
    return whoIs(*machine.block, *machine.thread);
  return machine.block || !machine.operation ? "an asynchronous copy"
                                             : describe(machine.operation->info);
}

std::string placeText(const Place &place) {
  std::string file = place.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}

void runLaunch(const Launch &launch, const Options &options) {
  machine.options = options;
  machine.launch = launch;
  machine.threadsPerBlock = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  machine.random =
      (options.seed + static_cast<uint64_t>(machine.launches)) * 0x9E3779B97F4A7C15ull | 1;
  machine.switches = 0;
  machine.block = nullptr;
  machine.blocksStarted = 0;
  machine.released.clear();
  ++machine.launches;
  blockDim = launch.block;
  gridDim = launch.grid;
  runBlocks();
  for (std::unique_ptr<Block> &block : machine.blocks)
    block->active = false;
  machine.block = nullptr;
}

void *dynamicShared() {
  uintptr_t address = reinterpret_cast<uintptr_t>(machine.block->dynamic.get());
  return reinterpret_cast<void *>((address + 15) & ~uintptr_t(15));
}

} // namespace simt
