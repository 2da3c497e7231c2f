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

/// Copies of a launch, as its argument.
template <class To> struct PartCopies {
  int64_t count = 0;
  PartCopy<To> of[kMostPartCopies];
};

/// 2^`shift` threads share a row; blocks in z have a copy each, those in y share its units, those
/// in x the rows.
template <class To, int kUnit, int kLoad>
__global__ void __launch_bounds__(kUnitThreads)
    copy(__grid_constant__ const PartCopies<To> copies, int shift) {
  const PartCopy<To> &c = copies.of[blockIdx.z];
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

template <int kUnit, int kLoad, class To>
void launch(const PartCopies<To> &copies, cudaStream_t stream) {
  int64_t rows = 0, units = 0;
  for (int64_t i = 0; i < copies.count; ++i) {
    const PartCopy<To> &c = copies.of[i];
    rows = std::max(rows, c.capacity);
    units = std::max(units, c.parts * (c.toSize / kUnit));
  }
  UnitShape shape(rows, units, kCopiedRows);
  shape.launch.grid.z = static_cast<unsigned>(copies.count);
  GENREC_CUDA_LAUNCH(stream, shape.launch, (copy<To, kUnit, kLoad>), copies, shape.shift);
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

template <int kUnit, class To>
void launchUnits(const PartCopies<To> &copies, int64_t floats, cudaStream_t stream) {
  switch (floats) {
  case 4:
    return launch<kUnit, 4>(copies, stream);
  case 2:
    return launch<kUnit, 2>(copies, stream);
  default:
    return launch<kUnit, 1>(copies, stream);
  }
}

template <class To> void launchCopies(std::span<const PartCopy<To>> copies, cudaStream_t stream) {
  constexpr int kUnit = 16 / sizeof(To);
  PartCopies<To> some;
  bool haveUnits = true;
  int64_t floats = 0;
  for (const PartCopy<To> &c : copies) {
    if (c.capacity <= 0 || c.parts <= 0 || c.toSize <= 0)
      continue;
    haveUnits = haveUnits && hasUnits(c, kUnit);
    floats = std::gcd(floats, floatsAtOnce(c));
    some.of[some.count++] = c;
  }
  if (some.count == 0)
    return;
  if (haveUnits)
    launchUnits<kUnit>(some, floats, stream);
  else
    launch<1, 1>(some, stream);
}

} // namespace

void copyParts(std::span<const PartCopy<Bf16>> copies, cudaStream_t stream) {
  launchCopies(copies, stream);
}
void copyParts(std::span<const PartCopy<float>> copies, cudaStream_t stream) {
  launchCopies(copies, stream);
}

} // namespace genrec::rt::cuda
