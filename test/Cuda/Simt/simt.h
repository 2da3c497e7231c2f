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
//     memory, of another thread's stack, beyond shared arrays
//   - reads of shared or device memory that nothing has written
//   - shared memory that two threads touch, one of them writing, without a
//     barrier between (memory that only barriers order; atomics order it too)
//   - barriers that not every thread of a block reaches, or that threads reach
//     at different places of the program; warp intrinsics that a named lane does
//     not execute; waiting that never ends
//   - the host touching device memory
//
// What is not modelled: weak memory ordering (a fence has no effect, stores are
// seen at once), alignment of accesses, tensor cores, clusters.
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

/// How launches run from now on; `options()` may be changed between launches.
struct Options {
  uint64_t seed = 1;
  /// Blocks in flight at once, as on one multiprocessor.
  int residentBlocks = 3;
  /// A thread gives way at one in so many accesses of device memory, and at one
  /// in four atomics. 0: only where it must wait.
  uint32_t preemptOneIn = 64;
  /// Bytes that cudaMalloc has to give before it fails.
  int64_t deviceBytes = int64_t(8) << 30;
  /// Switches between threads after which a launch counts as waiting for ever.
  int64_t mostSwitches = int64_t(1) << 28;
};
Options &options();

/// What the last failed launch (or use of device memory by the host) did wrong;
/// empty where nothing did.
const std::string &errorMessage();
/// Launches again after an error, as a new process would on a device.
void clearError();

/// How often memory was allocated on the device, and bytes that are in use.
int64_t allocationCount();
int64_t bytesInUse();
/// How many kernels ran.
int64_t launchCount();

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
  void (*run)(void *arguments) = nullptr;
  void *arguments = nullptr;
  size_t argumentBytes = 0;
};
/// False where the kernel did something wrong: see errorMessage().
bool launch(const Launch &launch);

enum class MemoryKind { device, host };
/// Null where options().deviceBytes do not suffice.
void *allocate(size_t bytes, MemoryKind kind);
/// False where nothing was allocated at `memory`.
bool release(void *memory);
/// Copies and fills as the host asks for them; false for what cannot be.
bool copy(void *to, const void *from, size_t bytes);
bool fill(void *to, int value, size_t bytes);

/// The current thread's block's dynamic shared memory.
void *dynamicShared();

void blockBarrier(const Place &place);
/// A block barrier that hands every thread the number of threads with `vote`.
int blockVote(bool vote, const Place &place);
void namedBarrier(int id, int threads, bool wait, const Place &place);

enum class WarpOp {
  sync,
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

/// Called before an atomic operation on `bytes` at `memory`.
void beforeAtomic(const void *memory, size_t bytes, bool reads);
/// Lets other threads run.
void giveWay();
/// Ends the launch with a message.
[[noreturn]] void fail(const std::string &message);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_H
