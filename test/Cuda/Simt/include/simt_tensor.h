//===- simt_tensor.h - Tensor core instructions on the host, for tests -*- C++ -*-===//
//
// What genrec_rt/cuda/tensor/ has as instructions, from the PTX ISA's description
// of where lanes hold the elements of operands; sums in double. All lanes of a warp
// take part, as the instructions ask for.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_TENSOR_H
#define GENREC_TEST_CUDA_SIMT_TENSOR_H

#include <cuda_runtime.h>

namespace simt {

/// Hands every lane a pointer to what each lane of its warp brought; `body` computes from that, and
/// nobody goes on before all have done so.
template <class T, class Body>
SIMT_CHECKED void withWarp(const T &mine, Body body, Place place = Place::current()) {
  constexpr uint32_t kAll = 0xFFFFFFFFu;
  const T *own[32];
  // Lane 0 lends its table.
  auto *all = reinterpret_cast<const T *(*)[32]>(
      warpExchange(WarpOp::shuffle, kAll, reinterpret_cast<uint64_t>(&own), 0, place));
  (*all)[laneIndex()] = &mine;
  warpExchange(WarpOp::meet, kAll, 0, 0, place);
  body(*all);
  warpExchange(WarpOp::meet, kAll, 0, 0, place);
}

SIMT_CHECKED inline void multiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  MmaOperands mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  float result[4] = {d[0], d[1], d[2], d[3]};
  withWarp(mine, [&](const MmaOperands *(&all)[32]) SIMT_CHECKED { addProduct(result, all); });
  for (int i = 0; i < 4; ++i)
    d[i] = result[i];
}

inline void readMatrices(uint32_t (&r)[4], const void *row, bool transposed) {
  // Every lane reads its row, as the access checks see it.
  uint16_t values[8];
  for (int i = 0; i < 8; ++i)
    values[i] = static_cast<const uint16_t *>(row)[i];
  using Row = uint16_t[8];
  uint32_t result[4];
  withWarp<Row>(values,
                [&](const Row *(&all)[32]) SIMT_CHECKED { takeMatrices(result, all, transposed); });
  for (int m = 0; m < 4; ++m)
    r[m] = result[m];
}
inline void loadMatrices(uint32_t (&r)[4], const void *row) { readMatrices(r, row, false); }
inline void loadMatricesTransposed(uint32_t (&r)[4], const void *row) {
  readMatrices(r, row, true);
}

inline void copyAsync16(void *to, const void *from, bool inside) {
  startCopy(to, inside ? from : nullptr);
}

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_TENSOR_H
