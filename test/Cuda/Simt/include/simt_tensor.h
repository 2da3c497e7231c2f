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

SIMT_CHECKED inline double bf16At(uint32_t packed, int half) {
  uint32_t bits = (half ? packed >> 16 : packed & 0xFFFF) << 16;
  return static_cast<double>(__builtin_bit_cast(float, bits));
}

struct MmaOperands {
  uint32_t a[4], b[2];
};

SIMT_CHECKED inline void multiplyAdd(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  MmaOperands mine{{a[0], a[1], a[2], a[3]}, {b0, b1}};
  float result[4];
  withWarp(mine, [&](const MmaOperands *(&all)[32]) SIMT_CHECKED {
    const int lane = laneIndex();
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      double sum = d[i];
      for (int k = 0; k < 16; ++k) {
        const uint32_t left = all[row % 8 * 4 + k % 8 / 2]->a[row / 8 + 2 * (k / 8)];
        const uint32_t right = all[column * 4 + k % 8 / 2]->b[k / 8];
        sum += bf16At(left, k % 2) * bf16At(right, k % 2);
      }
      result[i] = static_cast<float>(sum);
    }
  });
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
  withWarp<Row>(values, [&](const Row *(&all)[32]) SIMT_CHECKED {
    const int g = laneIndex() / 4, q = laneIndex() % 4;
    for (int m = 0; m < 4; ++m) {
      auto at = [&](int row, int column)
                    SIMT_CHECKED { return static_cast<uint32_t>((*all[8 * m + row])[column]); };
      result[m] = transposed ? at(2 * q, g) | at(2 * q + 1, g) << 16
                             : at(g, 2 * q) | at(g, 2 * q + 1) << 16;
    }
  });
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
