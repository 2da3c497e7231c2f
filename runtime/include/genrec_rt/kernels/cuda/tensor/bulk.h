//===- bulk.h - Copies of whole tiles, and barriers that count bytes (sm_90) -===//
//
// A tensor map describes a matrix in device memory; one thread starts the copy of a
// box of it (TMA), and an mbarrier in shared memory flips its phase when all bytes
// and all arrivals it expects are there.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_TENSOR_BULK_H
#define GENREC_RT_KERNELS_CUDA_TENSOR_BULK_H

#include "genrec_rt/cuda/check.h"
#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/bf16.h"

#if defined(GENREC_SIMT)
#include <simt_bulk.h>
#else
#include <cassert> // __assert_fail
#include <cuda.h>
#endif

namespace genrec::rt::cuda {

/// Rows x Size values as panels of 64 columns; rows of a panel are 128 bytes, chunk
/// c of 16 bytes of row r lies at chunk c ^ (r % 8). Columns behind Size are zeros.
template <int Rows, int Size> struct BulkTile {
  static constexpr int kPanels = (Size + 63) / 64;
  static constexpr int kPadded = kPanels * 64;
  static constexpr int kSteps = kPadded / 16;
  static constexpr int kBytes = kPanels * Rows * 128;
  alignas(1024) uint16_t values[kPanels * Rows * 64];

  /// Two neighbouring values.
  __device__ uint32_t *pair(int row, int column) {
    const int panel = column / 64, chunk = column % 64 / 8;
    return reinterpret_cast<uint32_t *>(values + (panel * Rows + row) * 64 +
                                        (chunk ^ (row & 7)) * 8 + column % 8);
  }
};

/// Arrivals of a warp that releases a barrier. One lane is enough, as __syncwarp orders what the
/// others did before it; but a race checker may follow only what the thread that arrives did, so
/// all lanes arrive in the programs that check waits.
#if defined(GENREC_WATCHDOG)
constexpr int kReleases = kWarp;
#else
constexpr int kReleases = 1;
#endif

#if defined(GENREC_SIMT)

using simt::arrive;
using simt::arriveExpecting;
using simt::copyBox;
using simt::fenceAsyncProxy;
using simt::fenceBarrierInit;
using simt::initBarrier;
using simt::makeTensorMap;
using simt::reduceBulk;
using simt::sharedAddress;
using simt::TensorMap;
using simt::waitForPhase;
using Barrier = uint64_t;
inline void prefetchMap(const TensorMap &) {}
inline void commitBulk() { simt::commitReductions(); }
inline void waitForBulkReads() { simt::waitForReductionReads(); }
inline void waitForBulk() { simt::waitForReductions(); }
template <int Registers> void giveRegisters() {}
template <int Registers> void takeRegisters() {}
inline unsigned char *alignedShared(unsigned char *memory) {
  return memory + (1024 - reinterpret_cast<uintptr_t>(memory) % 1024) % 1024;
}

#else

using Barrier = uint64_t;

struct TensorMap {
  CUtensorMap map;
};

__device__ __forceinline__ uint32_t sharedAddress(const void *at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}
/// The first address in dynamic shared memory that swizzled tiles can start at.
__device__ __forceinline__ unsigned char *alignedShared(unsigned char *memory) {
  return memory + (1024 - sharedAddress(memory) % 1024) % 1024;
}

__device__ __forceinline__ void initBarrier(Barrier *barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(barrier)),
               "r"(arrivals)
               : "memory");
}
/// Makes initialised barriers visible to copies; a barrier of the block follows.
__device__ __forceinline__ void fenceBarrierInit() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void arrive(Barrier *barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(barrier))
               : "memory");
}
/// Arrives, and lets the phase wait for `bytes` more.
__device__ __forceinline__ void arriveExpecting(Barrier *barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                   sharedAddress(barrier)),
               "r"(bytes)
               : "memory");
}
#if defined(GENREC_WATCHDOG)
/// Waits for the end of the phase of that parity; gives up after two seconds. The driver then
/// prints who waited where, as it does of assert(), and the launch fails. For tests that hang,
/// which are built so a second time.
__device__ inline void waitForPhase(Barrier *barrier, int parity,
                                    const char *file = __builtin_FILE(),
                                    int line = __builtin_LINE(),
                                    const char *function = __builtin_FUNCTION()) {
  constexpr uint64_t kNanoseconds = 2000000000;
  uint64_t begin = 0, now = 0;
  for (uint32_t ended = 0; !ended;) {
    asm volatile("{\n.reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(ended)
                 : "r"(sharedAddress(barrier)), "r"(parity)
                 : "memory");
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    begin = begin ? begin : now;
    if (!ended && now - begin > kNanoseconds)
      __assert_fail(parity ? "phase 1 ends" : "phase 0 ends", file, static_cast<unsigned>(line),
                    function);
  }
}
#else
/// Waits for the end of the phase of that parity.
__device__ __forceinline__ void waitForPhase(Barrier *barrier, int parity) {
  asm volatile("{\n.reg .pred p;\nWAIT:\n"
               "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%0], %1;\n"
               "@!p bra WAIT;\n}" ::"r"(sharedAddress(barrier)),
               "r"(parity)
               : "memory");
}
#endif

/// Writes by this thread are seen by copies and products that start after a barrier.
__device__ __forceinline__ void fenceAsyncProxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void prefetchMap(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}
/// Starts copying the box at (column, head, row) of the map.
__device__ __forceinline__ void copyBox(void *to, const TensorMap &map, int column, int head,
                                        int row, Barrier *barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(sharedAddress(to)),
               "l"(&map), "r"(sharedAddress(barrier)), "r"(column), "r"(head), "r"(row)
               : "memory");
}

/// Adds `bytes` (a multiple of 16) of integers in shared memory to device memory.
__device__ __forceinline__ void reduceBulk(int *to, const int *from, int bytes) {
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(to),
      "r"(sharedAddress(from)), "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void commitBulk() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until this thread's bulk reductions have read shared memory.
__device__ __forceinline__ void waitForBulkReads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Waits until they are done.
__device__ __forceinline__ void waitForBulk() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/// Moves registers between the warpgroups of a block.
template <int Registers> __device__ __forceinline__ void giveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> __device__ __forceinline__ void takeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// Describes values [rows, heads, size] with `ld` values from row to row, for boxes of 64 columns
/// of one head and `boxRows` rows, in the layout of BulkTile. Throws CudaError where the driver
/// refuses.
inline TensorMap makeTensorMap(const Bf16 *values, int64_t rows, int64_t heads, int64_t size,
                               int64_t ld, int boxRows) {
  using Encode = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
  static const Encode encode = [] {
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    GENREC_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                       cudaEnableDefault, &found));
    return reinterpret_cast<Encode>(function);
  }();
  TensorMap result;
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(size), static_cast<cuuint64_t>(heads),
                               static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(size) * 2,
                                 static_cast<cuuint64_t>(ld) * 2};
  const cuuint32_t box[3] = {64, 1, static_cast<cuuint32_t>(boxRows)}, steps[3] = {1, 1, 1};
  if (!encode ||
      encode(&result.map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<Bf16 *>(values), sizes,
             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    throw Error("cuTensorMapEncodeTiled refuses " + std::to_string(rows) + " rows of " +
                    std::to_string(heads) + " heads of " + std::to_string(size) +
                    " values, leading dimension " + std::to_string(ld),
                "the address and the leading dimension in bytes have to be multiples of 16");
  return result;
}

#endif

/// Starts copying rows [row, row + Rows) of a head into a tile; Bytes are expected by whoever
/// waits.
template <int Rows, int Size>
__device__ __forceinline__ void copyTile(BulkTile<Rows, Size> &tile, const TensorMap &map, int head,
                                         int64_t row, Barrier *barrier) {
#pragma unroll
  for (int panel = 0; panel < BulkTile<Rows, Size>::kPanels; ++panel)
    copyBox(tile.values + panel * Rows * 64, map, panel * 64, head, static_cast<int>(row), barrier);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_TENSOR_BULK_H
