//===- segments_test.cpp - Gradients of distinct rows, by lanes -----------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "added_by_pieces.h"
#include "device_copy.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/segment_sums.h"
#include "genrec_rt/kernels/cuda/segments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

namespace genrec::rt::cuda::test {
namespace {

using Floats = std::vector<float>;

constexpr int kThreads = 64;

/// out[row] = the sum of row `row`, as an emitted kernel with L lanes a row has it.
template <int64_t D, int64_t L, int64_t V>
__global__ void sumRows(const SegmentSums *sums, int64_t rows, float *out) {
  for (int64_t row = kernels::firstRow<L>(); row < rows; row += kernels::rowStep<L>()) {
    float sum[kernels::kSlots<D, L, V>];
    kernels::segmentSum<D, L, V>(sums, row, sum);
    kernels::forElements<D, L, V>(
        [&](int64_t slot, int64_t element) { out[row * D + element] = sum[slot]; });
  }
}

/// The same where sums are shared memory: a lane reads what others have written.
template <int64_t D, int64_t L, int64_t V>
__global__ void sumRowsTogether(const SegmentSums *sums, int64_t rows, float *out) {
  __shared__ float all[kThreads / L][D];
  for (int64_t row = kernels::firstRow<L>(); row < rows; row += kernels::rowStep<L>()) {
    float *sum = all[threadIdx.x / L];
    kernels::segmentSum<D, L, V>(sums, row, sum);
    for (int64_t i = kernels::lane<L>(); i < D; i += L)
      out[row * D + D - 1 - i] = sum[D - 1 - i];
    kernels::meet<L>();
  }
}

/// The same by a warp, 64 columns at a time, for kernels that know D only when they run.
template <int64_t D>
__global__ void sumRowsByWarps(const SegmentSums *sums, int64_t rows, float *out) {
  constexpr int kEach = 2;
  for (int64_t row = kernels::firstRow<kWarp>(); row < rows; row += kernels::rowStep<kWarp>()) {
    for (int64_t base = laneOf(); base - laneOf() < D; base += kWarp * kEach) {
      float total[kEach] = {};
      addSegment(*sums, row, base, D, total);
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < D)
          out[row * D + base + c * kWarp] = total[c];
    }
  }
}

/// Adds up from the first item on.
Floats addedUp(const std::vector<Floats> &items, size_t size) {
  Floats total = items.empty() ? Floats(size) : items[0];
  for (size_t item = 1; item < items.size(); ++item)
    for (size_t i = 0; i < size; ++i)
      total[i] += items[item][i];
  return total;
}

using Kernel = void (*)(const SegmentSums *, int64_t, float *);

/// 0 to 40 terms, and about as many as are added up at once.
std::vector<int64_t> sizesOfRows() {
  std::vector<int64_t> sizes(41);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (int64_t size : {kMostSummed - 1, kMostSummed, kMostSummed + 1, 9 * kMostSummed + 3})
    sizes.push_back(size);
  return sizes;
}

/// Rows of so many terms; D floats, `ld` of them apart, as which they may or may not be aligned to
/// packs. Blocks have `threads`. Behind these rows come `unused`, whose offsets are nonsense.
void expectSums(Kernel kernel, int threads, int64_t D, int64_t ld,
                const std::vector<int64_t> &sizes = sizesOfRows(), int64_t unused = 0) {
  std::vector<int64_t> offsets = {0};
  for (int64_t size : sizes)
    offsets.push_back(offsets.back() + size);
  const int64_t all = offsets.back(), rows = static_cast<int64_t>(offsets.size()) - 1;
  std::mt19937 draw(7);
  Floats gradients(static_cast<size_t>(all * ld));
  for (float &value : gradients)
    value = draw() % 8 == 0 ? -0.0f : static_cast<float>(draw() % 20000) / 777 - 13;
  std::vector<uint32_t> order(static_cast<size_t>(all));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<uint32_t>(i);
  std::shuffle(order.begin(), order.end(), draw);

  Floats expected;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Floats> items;
    for (auto at = static_cast<size_t>(offsets[static_cast<size_t>(row)]);
         at < static_cast<size_t>(offsets[static_cast<size_t>(row) + 1]); ++at) {
      const float *from = gradients.data() + order[at] * ld;
      items.emplace_back(from, from + D);
    }
    const Floats sum = addedByPieces(items, [&](const std::vector<Floats> &some) {
      return addedUp(some, static_cast<size_t>(D));
    });
    expected.insert(expected.end(), sum.begin(), sum.end());
  }

  for (int64_t row = 0; row < unused; ++row)
    offsets.push_back((row + 2) * 1000 * all);
  Copy<float> onDevice(gradients), out(Floats(expected.size(), 5));
  Copy<uint32_t> used({static_cast<uint32_t>(rows)});
  Copy<uint32_t> orderThere(order);
  Copy<int64_t> offsetsThere(offsets);
  SegmentReduction reduction("test");
  Copy<SegmentSums> made{std::vector<SegmentSums>(1)};
  reduction.run(rows + unused, unused ? used.data() : nullptr, D,
                {onDevice.data(), ld, nullptr, nullptr, orderThere.data()}, offsetsThere.data(),
                all, made.data(), nullptr, testStream());
  const LaunchShape shape{dim3(3), dim3(static_cast<unsigned>(threads))};
  GENREC_CUDA_LAUNCH(testStream(), shape, kernel, made.data(), rows, out.data());
  const Floats found = out.fetch();
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(float)), 0)
      << D << " floats, " << ld << " apart";
}

TEST(SegmentSums, OfLanesAreInOrder) {
  expectSums(sumRows<1, 1, 1>, kThreads, 1, 1);
  expectSums(sumRows<7, 1, 1>, kThreads, 7, 7);
  expectSums(sumRows<16, 4, 4>, kThreads, 16, 16); // 4 floats of a lane: 8 terms at once
  expectSums(sumRows<50, 8, 2>, kThreads, 50, 50); // 8 floats: 4 terms
  expectSums(sumRows<50, 8, 2>, kThreads, 50, 51); // no packs
  expectSums(sumRows<64, 4, 4>, kThreads, 64, 68); // 16: 2 terms
  expectSums(sumRows<128, 8, 4>, kThreads, 128, 130);
  expectSums(sumRows<256, 32, 4>, kThreads, 256, 256);
  expectSums(sumRows<130, 64, 1>, kThreads, 130, 130); // two warps
  expectSums(sumRowsTogether<50, 8, 2>, kThreads, 50, 50);
  expectSums(sumRowsTogether<130, 64, 1>, kThreads, 130, 130);
}

TEST(SegmentSums, OfWarpsAreInOrder) {
  expectSums(sumRowsByWarps<5>, kThreads, 5, 5);
  expectSums(sumRowsByWarps<50>, kThreads, 50, 50);
  expectSums(sumRowsByWarps<130>, kThreads, 130, 131);
}

/// More rows than the warps of the emulator's four blocks look at, and giants that several of them
/// cut.
TEST(SegmentSums, OfGiantsAmongManyRows) {
  std::vector<int64_t> sizes(1300);
  for (size_t row = 0; row < sizes.size(); row += 60)
    sizes[row] = kMostSummed + 40;
  sizes[5] = 20 * kMostSummed; // more pieces than there are warps
  expectSums(sumRowsByWarps<5>, kThreads, 5, 5, sizes, 3);
}

} // namespace
} // namespace genrec::rt::cuda::test
