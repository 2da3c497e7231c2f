//===- row_sums_test.cpp - Sums of the chunks of a row kernel -------------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/row_sums.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"

#include <gtest/gtest.h>

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

TEST(RowSums, ChunksAreAddedInTheTreeOfTheCpu) {
  std::mt19937 draw(5);
  const int64_t sizes[] = {1, 50, 17}; // results side by side, each in whole lines
  int64_t floats = 0;
  for (int64_t size : sizes)
    floats += wholeLines(size);
  for (int64_t rows : {0, 1, 32, 33, 96, 255, 256, 257, 300, 2049, 40000}) {
    const int64_t chunks = cutRows(rows, floats).count;
    std::vector<float> sums(static_cast<size_t>(std::max<int64_t>(chunks, 1) * floats));
    for (float &sum : sums)
      sum = rows ? static_cast<float>(draw() % 20000) / 777 - 13 : 0;
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
        cudaMemsetAsync(results, 0, static_cast<size_t>(floats) * 4, cuda::test::testStream()));
    SumResults where{};
    int64_t at = 0;
    for (int64_t size : sizes) {
      where.to[where.count] = results + at;
      where.size[where.count++] = size;
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
      at += wholeLines(size);
    }
    GENREC_CUDA_CHECK(cudaFree(onDevice));
    GENREC_CUDA_CHECK(cudaFree(results));
    GENREC_CUDA_CHECK(cudaFreeHost(domain));
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
