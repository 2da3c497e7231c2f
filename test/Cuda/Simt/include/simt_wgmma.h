//===- simt_wgmma.h - wgmma on the host, for tests ------------------*- C++ -*-===//
//
// Operands are found from their descriptors as the PTX ISA lays them out for the
// 128-byte swizzle ("Asynchronous Warpgroup Level Matrix Shared Memory Layout");
// what each lane gets is computed by that lane, at once, with sums in double.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_WGMMA_H
#define GENREC_TEST_CUDA_SIMT_WGMMA_H

#include "simt_bulk.h"
#include "simt_tensor.h"

namespace simt::detail {

/// Element (x, k) of a described matrix: x counts rows of the left or columns of the right operand.
SIMT_CHECKED inline double describedAt(uint64_t descriptor, bool across, int x, int k) {
  const uint32_t start = static_cast<uint32_t>(descriptor & 0x3FFF) << 4;
  const uint32_t leading = static_cast<uint32_t>(descriptor >> 16 & 0x3FFF) << 4;
  const uint32_t stride = static_cast<uint32_t>(descriptor >> 32 & 0x3FFF) << 4;
  if (descriptor >> 62 != 1)
    fail("wgmma: a descriptor without the 128-byte swizzle");
  const auto ux = static_cast<uint32_t>(x), uk = static_cast<uint32_t>(k);
  const uint32_t address =
      across ? start + ux / 64 * leading + ux % 64 * 2 + uk / 8 * stride + uk % 8 * 128
             : start + ux / 8 * stride + ux % 8 * 128 + uk * 2;
  uint16_t bits;
  __builtin_memcpy(&bits, swizzled(address), 2);
  return bf16At(bits, 0);
}

template <int N, class Left>
SIMT_CHECKED void multiply(float (*d)[4], Left left, uint64_t right, bool rightColumns, int add) {
  const int lane = laneIndex();
  for (int n = 0; n < N / 8; ++n)
    for (int x = 0; x < 2; ++x) {
      const int column = 8 * n + lane % 4 * 2 + x;
      double b[16];
      for (int k = 0; k < 16; ++k)
        b[k] = describedAt(right, rightColumns, column, k);
      for (int h = 0; h < 2; ++h) {
        double sum = add ? d[n][2 * h + x] : 0;
        for (int k = 0; k < 16; ++k)
          sum += left(lane / 4 + 8 * h, k) * b[k];
        d[n][2 * h + x] = static_cast<float>(sum);
      }
    }
}

template <int N>
SIMT_CHECKED void wgmmaShared(float (*d)[4], uint64_t left, uint64_t right, bool leftColumns,
                              bool rightColumns, int add) {
  const int warp = static_cast<int>(simtThreadIdx.x / 32 % 4);
  double rows[2][16];
  for (int h = 0; h < 2; ++h)
    for (int k = 0; k < 16; ++k)
      rows[h][k] = describedAt(left, leftColumns, 16 * warp + laneIndex() / 4 + 8 * h, k);
  multiply<N>(
      d, [&](int row, int k) SIMT_CHECKED { return rows[row / 8][k]; }, right, rightColumns, add);
}

template <int N>
SIMT_CHECKED void wgmmaRegisters(float (*d)[4], const uint32_t (&a)[4], uint64_t right,
                                 bool rightColumns, int add) {
  MmaOperands mine{{a[0], a[1], a[2], a[3]}, {0, 0}};
  withWarp(mine, [&](const MmaOperands *(&all)[32]) SIMT_CHECKED {
    auto left = [&](int row, int k) SIMT_CHECKED {
      return bf16At(all[row % 8 * 4 + k % 8 / 2]->a[row / 8 + 2 * (k / 8)], k % 2);
    };
    multiply<N>(d, left, right, rightColumns, add);
  });
}

template <bool LeftColumns, bool RightColumns>
void wgmma64(float (*d)[4], uint64_t left, uint64_t right, int add) {
  wgmmaShared<64>(d, left, right, LeftColumns, RightColumns, add);
}
template <bool LeftColumns, bool RightColumns>
void wgmma128(float (*d)[4], uint64_t left, uint64_t right, int add) {
  wgmmaShared<128>(d, left, right, LeftColumns, RightColumns, add);
}
template <bool RightColumns>
void wgmma64(float (*d)[4], const uint32_t (&a)[4], uint64_t right, int add) {
  wgmmaRegisters<64>(d, a, right, RightColumns, add);
}
template <bool RightColumns>
void wgmma128(float (*d)[4], const uint32_t (&a)[4], uint64_t right, int add) {
  wgmmaRegisters<128>(d, a, right, RightColumns, add);
}

} // namespace simt::detail

#endif // GENREC_TEST_CUDA_SIMT_WGMMA_H
