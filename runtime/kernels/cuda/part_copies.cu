//===- part_copies.cu - Rows copied part by part, rounded or padded -------===//
//
// A thread moves units of a row: 16 bytes of the copy where addresses, leading dimensions and sizes
// are multiples of them, else an element; kCopiedRows rows at a time, so that as many loads are
// under way. Its columns stay the same from row to row: what lies where is found once.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cuda/part_copies.h"

#include "row_units.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/factors.h"

#include <numeric>

namespace genrec::rt::cuda {

namespace {

constexpr int kCopiedRows = 4;

template <int N> __device__ void storeUnit(float *to, const float (&x)[N]) {
  Floats<N> all;
#pragma unroll
  for (int i = 0; i < N; ++i)
    all.x[i] = x[i];
  storeWhole(to, all);
}
__device__ void storeUnit(Bf16 *to, const float (&x)[1]) { *to = bf16Factor(x[0]); }
__device__ void storeUnit(Bf16 *to, const float (&x)[8]) {
  storeWhole(to, uint4{packFactors(x[0], x[1]), packFactors(x[2], x[3]), packFactors(x[4], x[5]),
                       packFactors(x[6], x[7])});
}

/// `unit`[i] = from[i] for i < `floats`, 0 behind them; kLoad floats lie together.
template <int kLoad, int kUnit>
__device__ void loadUnit(const float *from, int floats, float (&unit)[kUnit]) {
#pragma unroll
  for (int i = 0; i < kUnit; i += kLoad) {
    Floats<kLoad> loaded{};
    if (i < floats)
      loaded = loadWhole<Floats<kLoad>>(from + i);
#pragma unroll
    for (int j = 0; j < kLoad; ++j)
      unit[i + j] = loaded.x[j];
  }
}

/// 2^`shift` threads share a row; blocks in y share its units, those in x the rows.
template <class To, int kUnit, int kLoad>
__global__ void __launch_bounds__(kUnitThreads) copy(const PartCopy<To> c, int shift) {
  const int64_t left = c.rows ? c.rows->count - c.firstRow : c.capacity;
  const int64_t rows = left < 0 ? 0 : left < c.capacity ? left : c.capacity;
  const int64_t end = c.clearsRest ? c.capacity : rows;
  const auto unitsOfPart = static_cast<unsigned>(c.toSize / kUnit);
  const unsigned units = static_cast<unsigned>(c.parts) * unitsOfPart;
  const unsigned side = kUnitThreads >> shift; // rows of a block's threads
  const int64_t step = static_cast<int64_t>(gridDim.x) * side * kCopiedRows;
  const int64_t begin =
      static_cast<int64_t>(blockIdx.x) * side * kCopiedRows + (threadIdx.x >> shift);
  for (unsigned unit = (blockIdx.y << shift) + (threadIdx.x & ((1u << shift) - 1)); unit < units;
       unit += gridDim.y << shift) {
    const int64_t part = unit / unitsOfPart, at = unit % unitsOfPart * kUnit;
    const float *from = c.from + c.firstRow * c.ldFrom + part * c.fromSize + at;
    To *const to = c.to + part * c.toSize + at;
    const int floats = static_cast<int>(max(min(c.fromSize - at, int64_t(kUnit)), int64_t(0)));
    for (int64_t first = begin; first < end; first += step) {
      float x[kCopiedRows][kUnit];
#pragma unroll
      for (int r = 0; r < kCopiedRows; ++r) {
        const int64_t row = first + r * side;
        loadUnit<kLoad>(from + row * c.ldFrom, row < rows ? floats : 0, x[r]);
      }
#pragma unroll
      for (int r = 0; r < kCopiedRows; ++r) {
        const int64_t row = first + r * side;
        if (row < end)
          storeUnit(to + row * c.ldTo, x[r]);
      }
    }
  }
}

template <int kUnit, int kLoad, class To> void launch(const PartCopy<To> &c, cudaStream_t stream) {
  const UnitShape shape(c.capacity, c.parts * (c.toSize / kUnit), kCopiedRows);
  GENREC_CUDA_LAUNCH(stream, shape.launch, (copy<To, kUnit, kLoad>), c, shape.shift);
}

/// Floats, up to 4, that can be loaded at once wherever a unit begins: where parts begin, and
/// across the end of none.
template <class To> int64_t floatsAtOnce(const PartCopy<To> &c) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(c.from) / sizeof(float));
  return std::gcd(std::gcd(address, c.ldFrom), std::gcd(c.fromSize, int64_t(4)));
}

/// Whether units of `unit` elements are aligned and fill parts of the copy.
template <class To> bool hasUnits(const PartCopy<To> &c, int64_t unit) {
  const auto bytes = static_cast<uintptr_t>(unit) * sizeof(To);
  return reinterpret_cast<uintptr_t>(c.to) % bytes == 0 && c.ldTo % unit == 0 &&
         c.toSize % unit == 0;
}

template <int kUnit, class To> void launchUnits(const PartCopy<To> &c, cudaStream_t stream) {
  switch (floatsAtOnce(c)) {
  case 4:
    return launch<kUnit, 4>(c, stream);
  case 2:
    return launch<kUnit, 2>(c, stream);
  default:
    return launch<kUnit, 1>(c, stream);
  }
}

template <class To> void launchCopy(const PartCopy<To> &c, cudaStream_t stream) {
  constexpr int kUnit = 16 / sizeof(To);
  if (c.capacity <= 0 || c.parts <= 0 || c.toSize <= 0)
    return;
  if (hasUnits(c, kUnit))
    launchUnits<kUnit>(c, stream);
  else
    launch<1, 1>(c, stream);
}

__global__ void __launch_bounds__(kUnitThreads)
    clearFactors(const genrec_domain *rows, int64_t capacity, uint4 *values, int64_t perRow) {
  const int64_t first = rows->count * perRow, end = capacity * perRow;
  for (int64_t i = first + threadInGrid(); i < end; i += threadsInGrid())
    storeWhole(values + i, uint4{0, 0, 0, 0});
}

} // namespace

void copyParts(const PartCopy<Bf16> &copy, cudaStream_t stream) { launchCopy(copy, stream); }
void copyParts(const PartCopy<float> &copy, cudaStream_t stream) { launchCopy(copy, stream); }

void clearRowsBehind(const genrec_domain *rows, int64_t capacity, Bf16 *values, int64_t width,
                     cudaStream_t stream) {
  constexpr int64_t kEach = sizeof(uint4) / sizeof(Bf16);
  const int64_t perRow = width / kEach;
  if (capacity <= 0)
    return;
  // Mostly an eighth is padding.
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads((capacity / 8 + 1) * perRow, kUnitThreads),
                     clearFactors, rows, capacity, reinterpret_cast<uint4 *>(values), perRow);
}

} // namespace genrec::rt::cuda
