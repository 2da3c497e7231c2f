//===- machine.h - The simulated multiprocessor, inside ----------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_MACHINE_H
#define GENREC_TEST_CUDA_SIMT_MACHINE_H

#include "simt.h"

#include <memory>
#include <vector>

namespace simt {

constexpr int kWarp = 32;
constexpr int kNamedBarriers = 16;
constexpr size_t kStackBytes = 128 << 10; ///< of a thread

enum class State : uint8_t { ready, atBarrier, atNamedBarrier, atWarpOp, atActiveMask, done };

/// One CUDA thread.
struct Thread {
  void *stackPointer = nullptr;
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
};

/// Who last touched a byte of shared memory, and between which barriers.
struct SharedByte {
  uint32_t writeEpoch = 0, writeWarpEpoch = 0, readEpoch = 0, readWarpEpoch = 0;
  uint16_t writer = 0, reader = 0;
  bool written = false;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
};

/// One resident block: its threads and its copy of shared memory.
struct Block {
  bool active = false;
  Extent index;
  int live = 0, done = 0, waiting = 0;
  int votes = 0, voteResult = 0;
  Place barrierPlace;
  NamedBarrier named[kNamedBarriers];
  std::vector<Thread> threads;
  std::vector<int> ready;
  std::vector<uint32_t> warpEpochs;
  uint32_t epoch = 0; ///< counts barriers
  char *stacks = nullptr;
  // Static shared memory lives at one address for all blocks: it is moved in and out.
  std::unique_ptr<char[]> savedShared;
  std::unique_ptr<SharedByte[]> sharedNotes;
  size_t touchedFrom = 0, touchedTo = 0;
  // Dynamic shared memory has an address of its own in every block.
  std::unique_ptr<char[]> dynamic;
  std::unique_ptr<SharedByte[]> dynamicNotes;
};

struct Machine {
  Options options;
  Launch launch;
  int threadsPerBlock = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  Block *block = nullptr;   ///< whose shared memory is in place
  Thread *thread = nullptr; ///< null while the host runs
  /// The engine's own code runs on the thread's stack: its accesses are not the kernel's. (Templates of the
  /// standard library exist once in a program, and the linker may take those with callbacks.)
  bool inside = false;
  void *scheduler = nullptr;
  uint64_t random = 1;
  int64_t switches = 0;
  std::string error;
  int64_t launches = 0;

  uint64_t draw() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random * 0x2545F4914F6CDD1Dull >> 11;
  }
};
extern Machine machine;

/// Until the end of the scope the engine runs.
class Inside {
public:
  Inside() : before(machine.inside) { machine.inside = true; }
  ~Inside() { machine.inside = before; }

private:
  bool before;
};

/// Gives control back to the scheduler; returns when the thread goes on.
void leave();
void makeReady(Block &block, Thread &thread);
/// "thread (3,0,0) of block (1,0,0)".
std::string whoIs(const Block &block, const Thread &thread);
std::string placeText(const Place &place);
/// Called for every access that compiled code makes.
void checkAccess(const void *memory, size_t bytes, bool isWrite);
/// Finishes activemask operations of one warp of a block that cannot go on otherwise.
bool releaseActiveMask(Block &block);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_MACHINE_H
