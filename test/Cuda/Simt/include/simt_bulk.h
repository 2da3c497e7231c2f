//===- simt_bulk.h - TMA copies and mbarriers on the host, for tests -*- C++ -*-===//
//
// What genrec_rt/kernels/cuda/tensor/bulk.h has as instructions, over simt.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_BULK_H
#define GENREC_TEST_CUDA_SIMT_BULK_H

#include "genrec_rt/kernels/cuda/bf16.h"

#include <cuda_runtime.h>
#include <stdexcept>

namespace simt {

inline uint32_t sharedAddress(const void *at) {
  return static_cast<uint32_t>(static_cast<const unsigned char *>(at) - sharedBase());
}

inline void arrive(uint64_t *barrier, Place place = Place::current()) {
  arriveAt(barrier, 0, place);
}
inline void arriveExpecting(uint64_t *barrier, int bytes, Place place = Place::current()) {
  arriveAt(barrier, bytes, place);
}

using TensorMap = BoxSource;
inline TensorMap makeTensorMap(const genrec::rt::cuda::Bf16 *values, int64_t rows, int64_t heads,
                               int64_t size, int64_t ld, int boxRows) {
  // What the driver demands of an address, sizes, strides in bytes and a box.
  auto isStride = [](int64_t bytes) {
    return bytes > 0 && bytes % 16 == 0 && bytes < int64_t(1) << 40;
  };
  auto isSize = [](int64_t of) { return of > 0 && of <= int64_t(1) << 32; };
  if (reinterpret_cast<uintptr_t>(values) % 16 != 0 || !isSize(size) || !isSize(heads) ||
      !isSize(rows) || !isStride(size * 2) || !isStride(ld * 2) || boxRows < 1 || boxRows > 256)
    throw std::invalid_argument("a tensor map of " + std::to_string(rows) + " rows of " +
                                std::to_string(heads) + " heads of " + std::to_string(size) +
                                " values, leading dimension " + std::to_string(ld));
  return {values, rows, heads, size, ld, boxRows};
}
inline void copyBox(void *to, const TensorMap &map, int column, int head, int row,
                    uint64_t *barrier, Place place = Place::current()) {
  startBox(to, map, column, head, row, barrier, place);
}

inline void reduceBulk(int *to, const int *from, int bytes, Place place = Place::current()) {
  startReduction(to, from, bytes, place);
}

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_BULK_H
