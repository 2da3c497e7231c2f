//===- access_costs_test.cpp - Kernels whose accesses cost what is known ---===//
//
// test_access_costs.py reads what GENREC_SIMT_ACCESSES makes of them.
//
//===----------------------------------------------------------------------===//

#include "simt_fixture.h"

namespace genrec::rt::cuda::test {
namespace {

class AccessCosts : public Simt {};
INSTANTIATE_TEST_SUITE_P(Seeds, AccessCosts, testing::Values(1));

__global__ void scaleApart(const int *from, int *to, int apart) {
  to[threadIdx.x] = 2 * from[static_cast<int>(threadIdx.x) * apart];
}

TEST_P(AccessCosts, OfDeviceMemory) {
  int *memory = device(64 * 9);
  EXPECT_EQ(accusation(64, scaleApart, memory, memory + 64 * 8, 8), "none");
}

/// Half of the lanes, a loop that lanes leave one after another, and one word for all.
__global__ void addUneven(const int *from, int *to) {
  int sum = from[0];
  for (int i = 0; i < static_cast<int>(threadIdx.x); i += 16)
    sum += from[8 * (i + static_cast<int>(threadIdx.x) % 16)];
  to[threadIdx.x] = sum;
}

TEST_P(AccessCosts, OfLanesThatPart) {
  int *memory = device(1024);
  EXPECT_EQ(accusation(32, addUneven, memory, memory + 512), "none");
}

__global__ void transpose(int *data, int apart) {
  __shared__ int tile[33 * 32];
  const int lane = laneOf();
  for (int row = 0; row < 32; ++row)
    tile[lane * apart + row] = data[row * 32 + lane];
  __syncwarp();
  for (int row = 0; row < 32; ++row)
    data[row * 32 + lane] = tile[row * apart + lane];
}

TEST_P(AccessCosts, OfSharedMemory) {
  int *memory = device(1024);
  EXPECT_EQ(accusation(32, transpose, memory, 32), "none");
}

__global__ void transposePadded(int *data) {
  __shared__ int tile[33 * 32];
  const int lane = laneOf();
  for (int row = 0; row < 32; ++row)
    tile[lane * 33 + row] = data[row * 32 + lane];
  __syncwarp();
  for (int row = 0; row < 32; ++row)
    data[row * 32 + lane] = tile[row * 33 + lane];
}

TEST_P(AccessCosts, OfPaddedSharedMemory) {
  int *memory = device(1024);
  EXPECT_EQ(accusation(32, transposePadded, memory), "none");
}

__global__ void copyWords(uint4 *data, int apart) {
  __shared__ uint4 words[32 * 4];
  const int at = laneOf() * apart;
  storeWhole(words + at, loadWhole<uint4>(data + laneOf()));
  __syncwarp();
  storeWhole(data + laneOf(), loadWhole<uint4>(words + at));
}

TEST_P(AccessCosts, OfWordsOf16Bytes) {
  int *memory = device(32 * 4);
  EXPECT_EQ(accusation(32, copyWords, reinterpret_cast<uint4 *>(memory), 1), "none");
  EXPECT_EQ(accusation(32, copyWords, reinterpret_cast<uint4 *>(memory), 4), "none");
}

/// Thread t adds every (t + 1)-th word.
__global__ void addEvery(const int *from, int *to, int count) {
  int sum = 0;
  for (int i = 0; i < count; i += static_cast<int>(threadIdx.x) + 1)
    sum += from[i];
  to[threadIdx.x] = sum;
}

TEST_P(AccessCosts, OfLongLoops) {
  int *memory = device(1024);
  for (int count : {300, 100, 200})
    EXPECT_EQ(accusation(64, addEvery, memory, memory + 512, count), "none");
}

} // namespace
} // namespace genrec::rt::cuda::test
