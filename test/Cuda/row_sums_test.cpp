//===- row_sums_test.cpp - Sums of the chunks of a row kernel -------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/row_sums.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"
#include "genrec_rt/kernels/cuda/rowbody.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

namespace genrec::rt::kernels {
namespace {

int64_t wholeLines(int64_t floats) { return (floats + 15) / 16 * 16; }

/// Adds chunks i and i + 1, then i and i + 2, and so on.
std::vector<float> addedInTree(std::vector<float> sums, int64_t chunks, int64_t floats) {
  for (int64_t stride = 1; stride < chunks; stride *= 2)
    for (int64_t i = 0; i + stride < chunks; i += 2 * stride)
      for (int64_t k = 0; k < floats; ++k)
        sums[static_cast<size_t>(i * floats + k)] +=
            sums[static_cast<size_t>((i + stride) * floats + k)];
  sums.resize(static_cast<size_t>(floats));
  return sums;
}

/// Of results of `sizes` side by side, each in whole lines.
void expectTreeOfChunks(const std::vector<int64_t> &sizes) {
  std::mt19937 draw(5);
  int64_t floats = 0;
  for (int64_t size : sizes)
    floats += wholeLines(size);
  for (int64_t rows : {0, 1, 32, 33, 96, 511, 512, 513, 2049, 40000, 262144}) {
    const int64_t chunks = cutRows(rows, floats).count;
    std::vector<float> sums(static_cast<size_t>(std::max<int64_t>(chunks, 1) * floats));
    for (float &sum : sums)
      sum = rows ? static_cast<float>(draw() % 20000) / 777 - 13 : 0;
    for (size_t chunk = 0; rows && chunk * static_cast<size_t>(floats) < sums.size(); ++chunk)
      sums[chunk * static_cast<size_t>(floats)] = -0.0f; // which no 0 is added to
    const std::vector<float> expected = addedInTree(sums, chunks, floats);
    float *onDevice = nullptr, *results = nullptr;
    genrec_domain *domain = nullptr;
    GENREC_CUDA_CHECK(cudaMalloc(&onDevice, sums.size() * 4));
    GENREC_CUDA_CHECK(cudaMalloc(&results, static_cast<size_t>(floats) * 4));
    GENREC_CUDA_CHECK(cudaMallocHost(&domain, sizeof(genrec_domain)));
    *domain = {};
    domain->count = rows;
    GENREC_CUDA_CHECK(cudaMemcpy(onDevice, sums.data(), sums.size() * 4, cudaMemcpyHostToDevice));
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(results, 0x77, static_cast<size_t>(floats) * 4, cuda::test::testStream()));
    std::vector<SumResult> where;
    int64_t at = 0;
    for (int64_t size : sizes) {
      where.push_back({results + at, size});
      at += wholeLines(size);
    }
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    addChunks(cuda::test::testStream(), domain, onDevice, floats, where);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<float> found(static_cast<size_t>(floats));
    GENREC_CUDA_CHECK(cudaMemcpy(found.data(), results, found.size() * 4, cudaMemcpyDeviceToHost));
    at = 0;
    for (int64_t size : sizes) {
      EXPECT_EQ(std::memcmp(found.data() + at, expected.data() + at, static_cast<size_t>(size) * 4),
                0)
          << rows << " rows";
      for (int64_t behind = at + size; behind < at + wholeLines(size); ++behind)
        EXPECT_EQ(std::bit_cast<uint32_t>(found[static_cast<size_t>(behind)]), 0x77777777u);
      at += wholeLines(size);
    }
    GENREC_CUDA_CHECK(cudaFree(onDevice));
    GENREC_CUDA_CHECK(cudaFree(results));
    GENREC_CUDA_CHECK(cudaFreeHost(domain));
  }
}

TEST(RowSums, ChunksAreAddedInTheTreeOfTheCpu) {
  expectTreeOfChunks({1});
  expectTreeOfChunks({1, 50, 17});
  expectTreeOfChunks({16, 3});
  // More results than a launch adds up.
  std::vector<int64_t> sizes(131, 1);
  sizes[63] = 20, sizes[64] = 33, sizes[130] = 17;
  expectTreeOfChunks(sizes);
}

/// A kernel as it is emitted where rows of a chunk are spread: row i adds x[i N …], N floats.
template <int64_t N, int64_t L>
__global__ void addSpreadRows(const float *x, int64_t rows, int64_t floats, float *sums) {
  constexpr int64_t kBytes = (N * 4 + 15) / 16 * 16;
  const int64_t chunk = chunkOfTeam<L>();
  const int64_t begin = chunkBegin(chunk, rows, floats), end = chunkEnd(chunk, rows, floats);
  if (begin >= end)
    return;
  float *addends = sharedArray<float, L, kBytes, 0>();
  for (int64_t first = begin; first < end; first += teamRows<L>()) {
    const int64_t row = first + rowOfTeam<L>();
    if (row < end)
      for (int64_t i = lane<L>(); i < N; i += L)
        addends[i] = x[row * N + i];
    meetTeam<L>();
    addRows<N, L, kBytes>(sums + chunk * N, addends, first, begin, end);
    meetTeam<L>();
  }
}

/// `floats` decides how rows are cut.
template <int64_t N, int64_t L> void expectOrderOfRows(int64_t rows, int64_t floats) {
  SCOPED_TRACE(std::to_string(rows) + " rows of " + std::to_string(N) + " sums, " +
               std::to_string(L) + " lanes");
  const RowChunks cut = cutRows(rows, floats);
  std::mt19937 draw(7);
  std::vector<float> x(static_cast<size_t>(rows * N)), expected(static_cast<size_t>(cut.count * N));
  for (float &value : x)
    value = static_cast<float>(draw() % 20000) / 777 - 13;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < N; ++i)
      expected[static_cast<size_t>(row / cut.grain * N + i)] += x[static_cast<size_t>(row * N + i)];
  float *values = nullptr, *sums = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&values, x.size() * 4));
  GENREC_CUDA_CHECK(cudaMalloc(&sums, expected.size() * 4));
  GENREC_CUDA_CHECK(cudaMemcpy(values, x.data(), x.size() * 4, cudaMemcpyHostToDevice));
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  const RowMapping mapping{L, (N * 4 + 15) / 16 * 16, true};
  GENREC_CUDA_LAUNCH(cuda::test::testStream(), detail::shapeOf(mapping, cut.count, cut.count),
                     (addSpreadRows<N, L>), values, rows, floats, sums);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<float> found(expected.size());
  GENREC_CUDA_CHECK(cudaMemcpy(found.data(), sums, found.size() * 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * 4), 0);
  GENREC_CUDA_CHECK(cudaFree(values));
  GENREC_CUDA_CHECK(cudaFree(sums));
}

TEST(RowSums, RowsAtTheSameTimeAreAddedInTheirOrder) {
  // As many floats as let 1,000 rows be 16 chunks of 63, in two rounds or more.
  for (int64_t floats : {int64_t(16), int64_t(1) << 20})
    for (int64_t rows : {1, 31, 33, 1000}) {
      expectOrderOfRows<1, 1>(rows, floats);
      expectOrderOfRows<2, 1>(rows, floats);
      expectOrderOfRows<50, 4>(rows, floats);
      expectOrderOfRows<50, 8>(rows, floats);
      expectOrderOfRows<1, 16>(rows, floats);
      expectOrderOfRows<421, 32>(rows, floats);
    }
}

TEST(RowSums, ChunksTakeAtMost64MiBAndCoverAllRows) {
  for (int64_t floats : {16, 2048, 1 << 20, 1 << 25})
    for (int64_t rows : {0, 1, 31, 32, 33, 5000, 1 << 20, 1 << 28}) {
      const RowChunks chunks = cutRows(rows, floats);
      EXPECT_GE(chunks.grain * chunks.count, rows);
      EXPECT_LT(chunks.grain * (chunks.count - 1), std::max<int64_t>(rows, 1));
      EXPECT_LE(chunks.count, mostChunks(rows, floats));
      if (chunks.count > 1) {
        EXPECT_LE(chunks.count * floats * 4, int64_t(64) << 20);
      }
    }
}

} // namespace
} // namespace genrec::rt::kernels
