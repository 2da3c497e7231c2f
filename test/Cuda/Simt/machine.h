//===- machine.h - The simulated multiprocessor, inside ----------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_MACHINE_H
#define GENREC_TEST_CUDA_SIMT_MACHINE_H

#include "clocks.h"
#include "simt.h"

#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace simt {

constexpr int kWarp = 32;
constexpr int kMostThreads = 1024;
constexpr int kMostWarps = kMostThreads / kWarp;
constexpr int kNamedBarriers = 16;
constexpr size_t kMostStatic = 48 << 10, kMostShared = 227 << 10; ///< bytes of shared memory
/// Of a thread's stack: kernels of many columns, which are not optimised, have large frames. Not a
/// power of two: equal frames of all threads would be in one set of a cache.
constexpr size_t kStackBytes = 1028 << 10;

/// Actors of a block are its threads, then one per warp for products, then some for bulk copies.
constexpr size_t kBulkActors = 48;

enum class State : uint8_t {
  ready,
  atBarrier,
  atNamedBarrier,
  atMemoryBarrier,
  atWarpOp,
  atActiveMask,
  done
};

/// What a thread has started and not waited for, the oldest first; commit closes a group.
template <class T> struct Groups {
  std::vector<T> items;
  std::vector<size_t> sizes; ///< of closed groups
  size_t closed = 0;         ///< items in them

  void clear() {
    items.clear();
    sizes.clear();
    closed = 0;
  }
  void commit() {
    sizes.push_back(items.size() - closed);
    closed = items.size();
  }
  /// Hands items of the oldest groups to `complete`, until `left` groups are there.
  template <class Body> void completeUntil(size_t left, Body complete) {
    while (sizes.size() > left) {
      auto end = items.begin() + static_cast<ptrdiff_t>(sizes.front());
      std::for_each(items.begin(), end, complete);
      items.erase(items.begin(), end);
      closed -= sizes.front();
      sizes.erase(sizes.begin());
    }
  }
};

/// cp.async: 16 bytes, by the thread that waits for them.
struct SmallCopy {
  void *to;
  const void *from; ///< null: zeros
};

/// A matrix product that a warp has started: this lane's part of it.
struct Product {
  float (*d)[4];
  int columns;
  bool add, leftShared, leftColumns, rightColumns;
  uint64_t left, right;    ///< descriptors
  double registers[2][16]; ///< the left operand, unless leftShared
  Clock clock;
};

/// Sums in shared memory on their way to device memory.
struct Reduction {
  int *to;
  const int *from;
  int count;
  size_t reader, actor; ///< that reads shared memory, and that adds
  Clock readClock, clock;
  std::vector<int> terms = {}; ///< once they are read
  bool isRead = false;
};

/// A relaxed store that others do not see yet.
struct BufferedStore {
  void *to;
  size_t bytes;
  uint64_t value;
};

/// One CUDA thread.
struct Thread {
  State state = State::done;
  int number = 0; ///< in its block
  Extent index;
  Place place; ///< where it waits
  // A warp operation it waits in, or has just got the result of.
  WarpOp op = WarpOp::sync;
  uint32_t mask = 0;
  uint64_t value = 0;
  int source = 0;
  uint64_t result = 0;
  const void *waitsFor = nullptr; ///< an mbarrier
  bool isEarly = false;           ///< it has not waited for the launch before

  Handed knows;
  Clock clock = 1;                     ///< of what it does next
  BlocksPointer released;              ///< what its last fence hands to relaxed stores after it
  BlocksPointer learned;               ///< the last that it has learned: again is nothing new
  std::vector<BlocksPointer> unfenced; ///< what relaxed loads have seen: its own after a fence
  std::vector<BufferedStore> stores;

  // What it has started and not waited for.
  Groups<SmallCopy> copies;
  Groups<Product> products;
  Clock productClock = 0;
  bool productsFenced = false;
  std::vector<Reduction> reductions;
  size_t committedReductions = 0;

  /// As a new one, in the memory that its lists have.
  void restart(size_t threads) {
    knows.reset(threads);
    clock = 1;
    released.reset();
    learned.reset();
    unfenced.clear();
    stores.clear();
    copies.clear();
    products.clear();
    productClock = 0;
    productsFenced = false;
    reductions.clear();
    committedReductions = 0;
  }
};

/// Who last touched a word of memory.
struct Note {
  /// Whose notes these are: the number of an operation that ran, or of a block that had this shared
  /// memory (Block::stamp). Those of others count as none, so that nobody has to clear them.
  uint32_t operation = 0;
  uint32_t writer = 0, readers[2] = {}; ///< block << kActorBits | actor
  Clock written = 0, read[2] = {};
  uint8_t writeMask : 4, initialised : 4; ///< bytes of the word
  uint8_t readMasks[2];
  uint8_t writeAtomic : 1, writeAsync : 1, readAtomic : 2;
};
static_assert(sizeof(Note) == 32);
constexpr uint32_t kActorBits = 12;

/// The operations before the one that a Note is of: who last wrote a word, and who has read it
/// since (two of those that nothing orders).
struct History {
  uint32_t writer = 0, readers[2] = {};
  uint8_t writeMask : 4, readMask0 : 4, readMask1 : 4, writeAtomic : 1;
};
static_assert(sizeof(History) == 16);

/// Who accesses memory, and what they know.
struct Accessor {
  const Known &known;
  const BlockClocks *fenced; ///< of the asynchronous proxy: what lies before a fence of proxies
  size_t actor;
  Clock clock;
  bool isAtomic = false;
};

/// A copy of a box that a thread has started.
struct BoxCopy {
  BoxSource source;
  int column, head, row;
  void *to;
  uint64_t *barrier;
  Handed knows;
  size_t actor;
  Clock clock;
};

struct MemoryBarrier {
  int arrivals = 0, pending = 0, bytes = 0, phase = 0;
  bool fenced = false; ///< asynchronous copies see that it was initialised
  int initialiser = -1;
  Handed gathering, handed; ///< by this phase, by the one before
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  Handed gathered;
};

/// Zeros of which pages are there once they are touched.
struct Freed {
  void operator()(void *memory) const { std::free(memory); }
};
template <class T> using Zeros = std::unique_ptr<T[], Freed>;
template <class T> Zeros<T> zeros(size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  return Zeros<T>(static_cast<T *>(std::calloc(count, sizeof(T))));
}

/// A block's static shared memory of one object.
struct StaticShared {
  Zeros<char> saved; ///< while another block runs
  Zeros<Note> notes; ///< by word
  size_t touchedFrom = 0, touchedTo = 0;
};

/// Lanes of a warp, a bit each.
struct Warp {
  uint32_t waiting = 0; ///< in a warp operation
  uint32_t ended = 0;
  /// Of those that wait, lanes that execute the same operation with the same mask: those of the
  /// last one that came.
  uint32_t same = 0, mask = 0;
  WarpOp op = WarpOp::sync;
  uint8_t ready[kWarp]; ///< lanes that can go on: the first Block::readyIn of the warp
};

/// One resident block: its threads and its copy of shared memory.
struct Block {
  bool active = false;
  uint32_t number = 0; ///< in the launch
  uint32_t stamp = 0;  ///< of all blocks of all launches
  Extent index;
  int live = 0, done = 0, waiting = 0;
  int votes = 0, voteResult = 0;
  Place barrierPlace;
  NamedBarrier named[kNamedBarriers];
  std::unordered_map<const void *, MemoryBarrier> memoryBarriers;
  std::vector<Thread> made;  ///< as many as a launch had, to be used again
  std::span<Thread> threads; ///< of this launch
  /// Of each thread while another one runs. They lie together, so that its stack is on its way to
  /// the caches while the rest of it is read.
  void *stackPointers[kMostThreads];
  Clocks bulkClocks;
  std::vector<BoxCopy> boxes; ///< under way
  Warp warps[kMostWarps];
  uint8_t readyIn[kMostWarps] = {};
  int readyCount = 0;              ///< of all warps
  std::vector<uint8_t> priorities; ///< warps, the first runs first
  char *stacks = nullptr;
  int guarded = 0;                   ///< stacks with a page before them that nobody may touch
  std::vector<StaticShared> statics; ///< by section, as of sectionsVersion: static_shared.cpp
  uint64_t sectionsVersion = 0;
  // Dynamic shared memory has an address of its own in every block.
  Zeros<char> dynamic;
  Zeros<Note> dynamicNotes;
  /// What stores handed on to those who load a word of shared memory.
  std::unordered_map<const void *, BlocksPointer> released;

  size_t productActor(const Thread &thread) const {
    return threads.size() + static_cast<size_t>(thread.number / kWarp);
  }
};

struct Operation;

struct Machine {
  Options options;
  Launch launch;
  int threadsPerBlock = 0;
  uint32_t blocksStarted = 0;
  uint32_t stamps = 0; ///< blocks of all launches that started
  std::vector<std::unique_ptr<Block>> blocks;
  Block *block = nullptr;       ///< whose shared memory is in place
  Thread *thread = nullptr;     ///< null while the host runs
  void *accessedFrom = nullptr; ///< where in the program the last access was
  void *scheduler = nullptr;
  uint64_t random = 1;
  int64_t switches = 0;
  std::string error;
  bool isErrorSeen = false; ///< somebody has been told
  int64_t launches = 0;
  Operation *operation = nullptr; ///< that runs: operations.h
  /// The same of device memory.
  std::unordered_map<const void *, BlocksPointer> released;

  uint64_t draw() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random * 0x2545F4914F6CDD1Dull >> 11;
  }
};
extern Machine machine;

/// Of this thread of the host: it runs a kernel's thread.
extern constinit thread_local bool onDevice;
/// The engine's own code runs on the thread's stack: its accesses are not the kernel's.
/// (Templates of the standard library exist once in a program, and the linker may take those with
/// callbacks.)
extern constinit thread_local bool insideEngine;

/// Thrown by `fail` where no thread runs.
struct EngineStop {};

/// The lowest byte of the stack of the thread that runs; null while the host does.
extern constinit char *ownStack;
inline bool isOwnStack(const void *at) {
  return static_cast<size_t>(static_cast<const char *>(at) - ownStack) < kStackBytes;
}

// Memory of devices and pinned memory (arena.h). Addresses are never given out twice, so that a
// freed one is always known as such. Every device has a region, the last one is pinned memory.
// Nothing is of it before it is made.
constexpr size_t kRegionBytes = size_t(512) << 30;
constexpr int kMostDevices = 4;
constexpr size_t kArenaBytes = kRegionBytes * (kMostDevices + 1);
extern constinit uintptr_t arenaBase;
inline bool isOfArena(const void *at) {
  return reinterpret_cast<uintptr_t>(at) - arenaBase < kArenaBytes;
}

/// Until the end of the scope the engine runs.
class Inside {
public:
  Inside() : before(insideEngine) { insideEngine = true; }
  ~Inside() { insideEngine = before; }

private:
  bool before;
};

//===-- scheduler.cpp -----------------------------------------------------===//

/// What a variable of the environment says.
int64_t numberOf(const char *variable, int64_t otherwise);
/// Runs a kernel as the running operation; what it does wrong is machine.error.
void runLaunch(const Launch &launch, const Options &options);
/// What a launch has against the limits of a device; empty: nothing.
std::string checkLaunch(const Launch &launch);
/// Gives control back to the scheduler; returns when the thread goes on.
void leave();
void waitAs(State state, const Place &place);
void makeReady(Block &block, Thread &thread);
/// A thread that polls lets others go first.
void pollAgain();
/// "thread (3,0,0) of block (1,0,0)".
std::string whoIs(const Block &block, const Thread &thread);
std::string placeText(const Place &place);
std::string self();
/// " at store.cu:12" of the last access that compiled code made; empty where addr2line does not
/// know.
std::string accessPlace();
/// "scale at rows.h:12, called at unit.cu:30" of an access that compiled code makes at `place`.
std::string describeAccess(const void *place);
/// The way that options leave to the seed.
Schedule scheduleOf(const Options &options);
Completion completionOf(const Options &options);

//===-- memory.cpp --------------------------------------------------------===//

/// Called for accesses that compiled code makes while a kernel's thread runs, but for those of its
/// own stack.
void checkAccess(const void *memory, size_t bytes, bool isWrite);
/// Called for the host's accesses of memory of devices.
void checkHost(const void *memory, size_t bytes);
/// One that must be aligned to its size on a device.
void checkAlignment(const void *memory, size_t bytes);
/// The access of somebody to shared or device memory: bounds, initialisation, races.
void access(const Accessor &who, const void *memory, size_t bytes, bool isWrite);
/// Whether somebody's write would race, without noting it.
void checkWrite(const Accessor &who, const void *memory, size_t bytes);
bool isShared(const void *memory);
/// "byte 4 of an allocation of 40 bytes", for an offset in the arena of device memory.
std::string describeDevice(size_t offset);
/// "write of 4 bytes".
std::string accessText(size_t bytes, bool isWrite);

//===-- static_shared.cpp -------------------------------------------------===//

bool isStaticShared(const void *memory);
/// False, and nothing done, where that is no static shared memory.
bool checkStaticShared(const Accessor &who, const char *at, size_t bytes, bool isWrite,
                       bool notesIt);
/// A block that starts has written none.
void startStaticShared(Block &block);
/// Keep what a block has while another one runs, and bring it back.
void saveStaticShared(Block &block);
void restoreStaticShared(const Block &block);
/// Bytes of static shared memory that the block has written.
size_t staticSharedBytes(const Block &block);

//===-- access_costs.cpp --------------------------------------------------===//

/// Whether what accesses cost is counted: GENREC_SIMT_ACCESSES names a file for it.
bool countsAccesses();
/// One of shared or device memory that compiled code makes.
void countAccess(const Thread &thread, const void *memory, size_t bytes, bool isWrite);
/// No thread of the block makes another one.
void endAccesses(const Block &block);

//===-- races.cpp ---------------------------------------------------------===//

/// Checks and notes an access of `bytes` from `offset` of what `notes` describe by word. `history`:
/// of memory of devices, which outlives a kernel; null for shared memory.
void checkNotes(Note *notes, History *history, size_t offset, size_t bytes, bool isWrite,
                bool notesIt, const Accessor &who);

//===-- history.cpp -------------------------------------------------------===//

/// The running operation touches a word for the first time: what others did becomes its history.
void foldNote(Note &note, History &history, size_t offset);
/// Fails where an access of bytes of a word by the running operation is not ordered with another's.
void checkHistory(const History &history, uint32_t mask, bool isWrite, bool isAtomic,
                  size_t offset);
/// Fails where a thread that is early touches a word that the launch before does.
void checkEarly(const Note &note, const History &history, bool isWrite, size_t offset);

//===-- order.cpp ---------------------------------------------------------===//

inline Accessor accessorOf(const Thread &thread, bool isAtomic = false) {
  return {thread.knows.known, nullptr, static_cast<size_t>(thread.number), thread.clock, isAtomic};
}
void startClocks(Block &block);
/// All of a group know what each knew. Their stores are seen.
void meet(Block &block, const std::vector<Thread *> &group);
void meetAll(Block &block);
/// Hands what a thread knows to `to`; what it does next is not part of it.
void handTo(Handed &to, Thread &thread);
void learnFrom(Thread &thread, const Handed &from);
/// Others see what the thread has stored.
void showStores(Thread &thread);
void showStoresAt(Thread &thread, const void *memory, size_t bytes);

//===-- async.cpp ---------------------------------------------------------===//

/// Completes something that is under way where the seed has it so, or where nobody else can go on.
bool completeOne(Block &block, bool nobodyCanGoOn);
void endThread(Block &block, Thread &thread);
void endBlock(Block &block);

//===-- barriers.cpp ------------------------------------------------------===//

/// Finishes activemask operations of one warp of a block that cannot go on otherwise.
bool releaseActiveMask(Block &block);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_MACHINE_H
