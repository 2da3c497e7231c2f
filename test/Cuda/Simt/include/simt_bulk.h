//===- simt_bulk.h - TMA copies and mbarriers on the host, for tests -*- C++ -*-===//
//
// What genrec_rt/kernels/cuda/tensor/bulk.h has as instructions. Copies happen at once and
// with the swizzle of the PTX ISA ("Swizzling Modes", 128 bytes): bits 4 to 6 of a
// shared address are exchanged by their exclusive or with bits 7 to 9.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_BULK_H
#define GENREC_TEST_CUDA_SIMT_BULK_H

#include "genrec_rt/kernels/cuda/bf16.h"

#include <cuda_runtime.h>

namespace simt {

/// Shared memory from the first multiple of 1,024 on; addresses are offsets from there, as on a
/// device.
SIMT_CHECKED inline unsigned char *sharedBase() {
  uintptr_t base = reinterpret_cast<uintptr_t>(dynamicShared());
  return reinterpret_cast<unsigned char *>((base + 1023) & ~uintptr_t(1023));
}
inline uint32_t sharedAddress(const void *at) {
  return static_cast<uint32_t>(static_cast<const unsigned char *>(at) - sharedBase());
}
/// Where byte `address` of a tile in the 128-byte swizzle lies.
SIMT_CHECKED inline unsigned char *swizzled(uint32_t address) {
  return sharedBase() + (address ^ (address >> 7 & 7) << 4);
}

//===----------------------------------------------------------------------===//
// mbarrier
//===----------------------------------------------------------------------===//

struct BarrierState {
  int16_t arrivals, pending;
  int32_t bytes : 31;
  uint32_t phase : 1;
};
static_assert(sizeof(BarrierState) == sizeof(uint64_t));

SIMT_CHECKED inline void changeBarrier(uint64_t *barrier, int arrivals, int bytes) {
  beforeAtomic(barrier, sizeof(uint64_t), true);
  auto *state = reinterpret_cast<BarrierState *>(barrier);
  if (arrivals > state->pending)
    fail("mbarrier: more arrivals than its phase expects");
  state->pending = static_cast<int16_t>(state->pending - arrivals);
  state->bytes += bytes;
  if (state->pending == 0 && state->bytes == 0) {
    state->pending = state->arrivals;
    state->phase ^= 1;
  }
}
SIMT_CHECKED inline void initBarrier(uint64_t *barrier, int arrivals) {
  *barrier = 0;
  beforeAtomic(barrier, sizeof(uint64_t), false);
  *reinterpret_cast<BarrierState *>(barrier) = {static_cast<int16_t>(arrivals),
                                                static_cast<int16_t>(arrivals), 0, 0};
}
inline void arrive(uint64_t *barrier) { changeBarrier(barrier, 1, 0); }
inline void arriveExpecting(uint64_t *barrier, int bytes) { changeBarrier(barrier, 1, bytes); }
SIMT_CHECKED inline void waitForPhase(uint64_t *barrier, int parity) {
  for (;;) {
    beforeAtomic(barrier, sizeof(uint64_t), true);
    if (static_cast<int>(reinterpret_cast<BarrierState *>(barrier)->phase) != parity)
      return;
    giveWay();
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

struct TensorMap {
  const genrec::rt::cuda::Bf16 *values;
  int64_t rows, heads, size, ld;
  int boxRows;
};
inline TensorMap makeTensorMap(const genrec::rt::cuda::Bf16 *values, int64_t rows, int64_t heads,
                               int64_t size, int64_t ld, int boxRows) {
  return {values, rows, heads, size, ld, boxRows};
}

inline void copyBox(void *to, const TensorMap &map, int column, int head, int row,
                    uint64_t *barrier) {
  const uint32_t address = sharedAddress(to);
  if (address % 1024)
    fail("TMA copy to a shared address that is not a multiple of 1024");
  if (reinterpret_cast<uintptr_t>(map.values) % 16 || map.ld * 2 % 16 || map.size * 2 % 16)
    fail("tensor map of a matrix that is not aligned to 16 bytes");
  for (int r = 0; r < map.boxRows; ++r)
    for (int c = 0; c < 64; ++c) {
      const int64_t atRow = row + r, atColumn = column + c;
      genrec::rt::cuda::Bf16 value{0};
      if (atRow < map.rows && atColumn < map.size)
        value = map.values[atRow * map.ld + head * map.size + atColumn];
      *reinterpret_cast<uint16_t *>(swizzled(address + static_cast<uint32_t>(r * 128 + c * 2))) =
          value.bits;
    }
  changeBarrier(barrier, 0, -map.boxRows * 128);
}

inline void reduceBulk(int *to, const int *from, int bytes) {
  if (bytes % 16 || reinterpret_cast<uintptr_t>(to) % 16 || sharedAddress(from) % 16)
    fail("bulk reduction that is not aligned to 16 bytes");
  for (int i = 0; i < bytes / 4; ++i)
    atomicAdd(to + i, from[i]);
}

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_BULK_H
