//===- row_units.h - Rows moved in units of several floats --------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_UNITS_H
#define GENREC_RT_KERNELS_CUDA_ROW_UNITS_H

#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace genrec::rt::cuda {

constexpr int kUnitThreads = 256;
/// Enough to fill a device several times; their threads go on with other rows.
constexpr int64_t kMostUnitBlocks = std::min<int64_t>(kMostBlocks, 4096);

/// A launch for `rows` rows of `units` units each, of which a thread has `rowsAtOnce` rows: 2^shift
/// threads share a row; blocks in y share its units, those in x the rows.
struct UnitShape {
  int shift;
  LaunchShape launch;

  UnitShape(int64_t rows, int64_t units, int64_t rowsAtOnce) {
    constexpr int64_t kMostShift = std::countr_zero(unsigned(kUnitThreads));
    const int64_t fit = std::bit_width(static_cast<uint64_t>(units - 1));
    shift = static_cast<int>(std::min(fit, kMostShift));
    const int64_t across = std::min(blocksFor(units, int64_t(1) << shift), kMostUnitBlocks);
    const int64_t down = std::min(blocksFor(rows, int64_t(kUnitThreads >> shift) * rowsAtOnce),
                                  blocksFor(kMostUnitBlocks, across));
    launch = {dim3(static_cast<unsigned>(down), static_cast<unsigned>(across)), dim3(kUnitThreads)};
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ROW_UNITS_H
