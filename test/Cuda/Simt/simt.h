//===- simt.h - Runs CUDA kernels on the host, for tests ---------*- C++ -*-===//
//
// Kernels that need no tensor cores are compiled as C++ against the stand-in
// for <cuda_runtime.h> in include/, and every CUDA thread runs as a fibre. Which
// fibre runs next, and in which order blocks start, follows from a seed.
//
// What a kernel touches is seen through the callbacks that clang's
// -fsanitize=thread inserts; the ones here replace that sanitizer's runtime.
// So kernels are checked without being written differently. Caught are:
//
//   - accesses outside of what cudaMalloc gave out, of freed memory, of host
//     memory, of another thread's stack, beyond shared arrays; accesses that are
//     not aligned to their size
//   - reads of shared or device memory that nothing has written
//   - races: two accesses of a word of shared or device memory, one of them a
//     write, not both atomic, of which neither happens before the other. Barriers,
//     fences with atomics, acquire and release, and mbarriers order accesses;
//     shuffles and votes do not, and relaxed atomics alone do not (clocks.h)
//   - copies (cp.async, TMA, bulk reductions) and matrix products that are not
//     waited for, whose operands change under way, or that read what no proxy fence
//     has shown them: they complete as late as the rules allow, at once, or between,
//     as the seed has it
//   - stores that others see late: a relaxed store is held back until a fence, a
//     barrier, or later
//   - barriers that not every thread of a block reaches, or that threads reach
//     at different places of the program; warp intrinsics that a named lane does
//     not execute; waiting that never ends
//   - launches outside of the limits: threads, grid, shared memory (48 KiB without
//     the attribute, 227 KiB with it)
//   - shifts by as many bits as a word has and more, and floats that an integer cannot
//     hold: a device and the host do not make the same of them
//   - the host touching device memory; pinned memory that the host writes or reads while
//     something under way uses it (host_memory.cpp)
//   - kernels that begin early (programmatic dependent launch) and touch what the one before
//     touches, or end, without having waited for it
//   - operations (kernels, copies, fills) that touch the same memory and that neither streams,
//     events nor waiting of the host order (operations.h, history.cpp)
//
// Approximate functions have the error that the PTX ISA allows them. What is not modelled:
// registers that change under a product that reads them, clusters.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_H
#define GENREC_TEST_CUDA_SIMT_H

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

namespace simt {

using Place = std::source_location;

/// Which thread runs next.
enum class Schedule {
  bySeed,
  byTurns,    ///< any that can
  priorities, ///< one of the first warp that can, in an order that changes now and then: some run
              ///< far ahead
};
/// When asynchronous copies and products complete.
enum class Completion {
  bySeed,
  atOnce,
  late, ///< where they are waited for, or when nobody else can go on
  anyTime,
};

/// Where a device's next allocation is: behind those there are or before them. By seed: with every
/// second seed half of them are before, as nothing may depend on the order of addresses.
enum class Addresses { bySeed, ascending, descending };

/// The seed unless a test says another: 1, or what GENREC_SIMT_SEED says.
uint64_t defaultSeed();
/// How long ranks wait for others that do not come: so many seconds, or what GENREC_SIMT_PATIENCE
/// says.
int64_t patienceOr(int64_t seconds);
/// The number of devices unless a test says another: 1, or what GENREC_SIMT_DEVICES says. Those
/// belong to the machine: processes that see them see the same ones.
int defaultDevices();
bool areDevicesShared();
/// Compute capability, times 10, that kernels are compiled for; and the device's unless a test says
/// another: that, or what GENREC_SIMT_CAPABILITY says.
constexpr int kCapability = 90;
int defaultCapability();

/// How launches run from now on; `options()` may be changed between launches.
struct Options {
  uint64_t seed = defaultSeed();
  Schedule schedule = Schedule::bySeed;
  Completion completion = Completion::bySeed;
  /// When what is enqueued into streams runs.
  Completion queues = Completion::bySeed;
  Addresses addresses = Addresses::bySeed;
  /// Blocks in flight at once, as on one multiprocessor.
  int residentBlocks = 3;
  /// A thread gives way at one in so many accesses of device memory, and at one
  /// in four atomics. 0: only where it must wait.
  uint32_t preemptOneIn = 64;
  /// Devices there are: at most 4.
  int devices = defaultDevices();
  /// Of the devices: compute capability, times 10.
  int capability = defaultCapability();
  /// Blocks that a grid may have in y and in z: fewer show whether they grow with the data.
  uint32_t mostBlocksAcross = 65535;
  /// Whether work may be queued in stream null, the default one: whoever means that one says
  /// cudaStreamLegacy. Copies that the host waits for always may.
  bool mayUseDefaultStream = false;
  /// Bytes of each device's memory; of a program's devices what GENREC_SIMT_DEVICE_BYTES says.
  int64_t deviceBytes = int64_t(8) << 30;
  /// Bytes of shared memory that a block may have with its kernel's consent.
  int64_t mostSharedBytes = 227 << 10;
  /// Bytes that one allocation of pinned memory may have.
  int64_t mostPinnedBytes = INT64_MAX;
  /// Switches between threads after which a launch counts as waiting for ever.
  int64_t mostSwitches = int64_t(1) << 28;
};
Options &options();

/// Which of the planted defects a kernel has (planted_defects.py): 0, or what GENREC_SIMT_DEFECT
/// says.
extern const int defect;

/// What the last failed launch (or use of device memory by the host) did wrong;
/// empty where nothing did. Launches run later: ask after waiting.
const std::string &errorMessage();
/// Launches again after an error, as a new process would on a device.
void clearError();

/// How often memory was allocated on the device, and bytes that are in use.
int64_t allocationCount();
int64_t bytesInUse();
/// How many things that are given back one day were made: memory, streams, events, graphs, what
/// cuBLAS and NCCL make. describeHeld(n): those from the n-th on that are still there and may not be
/// kept (held.cpp), a line each; of a program's end, appended to the file that GENREC_SIMT_HELD names.
int64_t heldCount();
std::string describeHeld(int64_t from);
/// The next allocation on the current device begins there, behind all that it has given out, and
/// addresses ascend: rows may lie farther apart than a 32-bit number says, without memory between
/// them.
void placeNext(const void *address);
/// How many kernels ran.
int64_t launchCount();
/// How often the host waited for a stream, an event or a device.
int64_t waitCount();
/// Whether this thread of the host is in a call of the emulated device: what it allocates there is
/// not the program's.
bool isHostInside();

//===----------------------------------------------------------------------===//
// What the stand-ins in include/ are made of
//===----------------------------------------------------------------------===//

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};

/// A launch; `run` calls the kernel on a copy of the `argumentBytes` at `arguments`, once per
/// thread.
struct Launch {
  Extent grid, block;
  size_t dynamicBytes = 0;
  size_t mostDynamicBytes = 48 << 10; ///< that the kernel has been allowed
  void (*run)(void *arguments) = nullptr;
  void *arguments = nullptr;
  size_t argumentBytes = 0;
  bool beginsEarly = false; ///< programmatic dependent launch
};

enum class MemoryKind { device, host };

/// The current thread's block's dynamic shared memory.
void *dynamicShared();

/// The static shared memory of an object, the program or a library, known while it is loaded.
class SharedSection {
public:
  SharedSection(char *from, char *to);
  ~SharedSection();
  SharedSection(const SharedSection &) = delete;
  SharedSection &operator=(const SharedSection &) = delete;

private:
  char *from;
};

void blockBarrier(const Place &place);
/// A block barrier that hands every thread the number of threads with `vote`.
int blockVote(bool vote, const Place &place);
void namedBarrier(int id, int threads, bool wait, const Place &place);

enum class WarpOp {
  sync,
  meet, ///< like sync, for instructions of a whole warp: orders no accesses
  shuffle,
  ballot,
  matchAny,
  matchAll,
  add,
  least,
  most,
  leastSigned,
  mostSigned,
  bitAnd,
  bitOr,
  bitXor,
};
/// What `lane` gets when all lanes of `mask` execute `op` with their values;
/// `source` is the lane a shuffle reads.
uint64_t warpExchange(WarpOp op, uint32_t mask, uint64_t value, int source, const Place &place);
uint32_t activeMask(const Place &place);
int laneIndex();

enum class Order { relaxed, acquire, release };
/// Called before a read-modify-write (relaxed) of `bytes` at `memory`.
void beforeUpdate(const void *memory, size_t bytes);
uint64_t atomicLoadWord(const void *memory, size_t bytes, Order order);
void atomicStoreWord(void *memory, size_t bytes, uint64_t value, Order order);
/// __threadfence.
void fence();

//===-- mbarriers, copies and products under way ---------------------------===//

/// Shared memory from the first multiple of 1,024 on; addresses are offsets from there, as on a
/// device.
unsigned char *sharedBase();
/// Where byte `address` of a tile in the 128-byte swizzle lies (PTX ISA, "Swizzling Modes"): bits 4
/// to 6 of an address are exchanged by their exclusive or with bits 7 to 9.
unsigned char *swizzled(uint32_t address);

void initBarrier(uint64_t *barrier, int arrivals);
void fenceBarrierInit();
/// Arrives, and lets the phase wait for `bytes` more.
void arriveAt(uint64_t *barrier, int bytes, const Place &place);
void waitForPhase(uint64_t *barrier, int parity, Place place = Place::current());
/// Writes of this thread, and what it knows of, are seen by asynchronous accesses after a barrier.
void fenceAsyncProxy();

/// A matrix of 16-bit values [rows, heads, size], `ld` values from row to row.
struct BoxSource {
  const void *values;
  int64_t rows, heads, size, ld;
  int boxRows;
};
/// Starts copying 64 columns of boxRows rows; zeros outside of the matrix.
void startBox(void *to, const BoxSource &source, int column, int head, int row, uint64_t *barrier,
              const Place &place);

/// 16 bytes to shared memory, by groups (cp.async); zeros for null.
void startCopy(void *to, const void *from);
void commitCopies();
void waitForCopies(size_t left);

/// Adds integers in shared memory to device memory, by groups (cp.reduce.async.bulk).
void startReduction(int *to, const int *from, int bytes, const Place &place);
void commitReductions();
/// Until they have read shared memory, and until they are done.
void waitForReductionReads();
void waitForReductions();

/// wgmma.fence, commit_group and wait_group.
void fenceProducts();
void commitProducts();
void waitForProducts(size_t left);
/// Starts d (+)= left * right for 64 rows of a warpgroup and `columns` columns, sums in double:
/// this lane's part. Operands are found from their descriptors as the PTX ISA lays them out for the
/// 128-byte swizzle ("Asynchronous Warpgroup Level Matrix Shared Memory Layout").
void startProduct(float (*d)[4], int columns, uint64_t left, bool leftColumns, uint64_t right,
                  bool rightColumns, bool add, Place place = Place::current());
/// The same with the left operand in registers, in fragments (tensor/mma.h).
void startProduct(float (*d)[4], int columns, const uint32_t (&left)[4], uint64_t right,
                  bool rightColumns, bool add, Place place = Place::current());

/// What a lane brings to mma.m16n8k16.
struct MmaOperands {
  uint32_t a[4], b[2];
};
/// This lane's part of what that adds, sums in double; `all` are of the lanes of its warp. Here, as
/// code of kernels is not optimised everywhere.
void addProduct(float (&d)[4], const MmaOperands *const (&all)[32]);
/// This lane's part of what ldmatrix makes of the rows that lanes have read.
void takeMatrices(uint32_t (&r)[4], const uint16_t (*const (&all)[32])[8], bool transposed);

/// griddepcontrol.wait: until then a launch that begins early touches nothing that the one before
/// it in the stream writes, and writes nothing that that one reads.
void awaitLaunchBefore();

/// Lets other threads run.
void giveWay();
/// Ends the launch with a message.
[[noreturn]] void fail(const std::string &message);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_H
