//===- simt_test.cpp - The host execution of kernels is that of a device ----===//

#include "simt_fixture.h"

#include <numeric>
#include <set>
#include <vector>

namespace genrec::rt::cuda::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Seeds, Simt, testing::Range<uint64_t>(1, 9));

__global__ void reverseBlocks(int *data, int count) {
  __shared__ int tile[64];
  int at = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
  tile[threadIdx.x] = at < count ? data[at] : -1;
  __syncthreads();
  if (at < count)
    data[at] = tile[63 - threadIdx.x];
}

TEST_P(Simt, BlocksKeepTheirSharedMemoryApart) {
  int *data = device(256);
  std::vector<int> values(256);
  std::iota(values.begin(), values.end(), 0);
  GENREC_CUDA_CHECK(cudaMemcpy(data, values.data(), 1024, cudaMemcpyHostToDevice));
  EXPECT_EQ(accusation(4, 64, 0, reverseBlocks, data, 256), "none");
  std::vector<int> result = host(data, 256);
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(result[i], i / 64 * 64 + 63 - i % 64);
}

__global__ void warpIntrinsics(int *out) {
  int lane = laneOf(), self = static_cast<int>(threadIdx.x);
  int *mine = out + self * 12;
  mine[0] = __shfl_sync(kAllLanes, self, 5);
  mine[1] = __shfl_xor_sync(kAllLanes, self, 3);
  mine[2] = __shfl_up_sync(kAllLanes, self, 1);
  mine[3] = __shfl_down_sync(kAllLanes, self, 2, 8);
  mine[4] = static_cast<int>(__ballot_sync(kAllLanes, lane % 3 == 0));
  mine[5] = static_cast<int>(__match_any_sync(kAllLanes, lane / 4));
  mine[6] = __reduce_add_sync(kAllLanes, self);
  mine[7] = __reduce_min_sync(kAllLanes, lane - 7);
  mine[8] = __any_sync(kAllLanes, lane == 31);
  mine[9] = __all_sync(kAllLanes, lane < 31);
  // Two halves of a warp, each on its own way.
  mine[10] = lane < 16 ? __shfl_sync(0x0000FFFFu, self, 1) : __shfl_sync(0xFFFF0000u, self, 17);
  uint32_t active = __activemask();
  mine[11] =
      (active >> lane & 1) && __shfl_sync(active, lane, __ffs(static_cast<int>(active)) - 1) ==
                                  __ffs(static_cast<int>(active)) - 1;
}

TEST_P(Simt, WarpIntrinsicsAreThoseOfTheProgrammingGuide) {
  int *out = device(64 * 12);
  EXPECT_EQ(accusation(1, 64, 0, warpIntrinsics, out), "none");
  std::vector<int> got = host(out, 64 * 12);
  for (int self = 0; self < 64; ++self) {
    int lane = self % 32, warp = self / 32 * 32;
    const int *mine = got.data() + self * 12;
    EXPECT_EQ(mine[0], warp + 5);
    EXPECT_EQ(mine[1], warp + (lane ^ 3));
    EXPECT_EQ(mine[2], lane ? self - 1 : self);
    EXPECT_EQ(mine[3], lane % 8 < 6 ? self + 2 : self);
    EXPECT_EQ(mine[4], 0x49249249);
    EXPECT_EQ(mine[5], static_cast<int>(0xFu << lane / 4 * 4));
    EXPECT_EQ(mine[6], 32 * warp + 31 * 16);
    EXPECT_EQ(mine[7], -7);
    EXPECT_EQ(mine[8], 1);
    EXPECT_EQ(mine[9], 0);
    EXPECT_EQ(mine[10], warp + (lane < 16 ? 1 : 17));
    EXPECT_EQ(mine[11], 1);
  }
}

__global__ void takeTickets(int *next, int *order) {
  order[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

TEST_P(Simt, AtomicsLoseNothing) {
  int *next = device(1), *order = device(320);
  EXPECT_EQ(accusation(5, 64, 0, takeTickets, next, order), "none");
  std::vector<int> got = host(order, 320);
  EXPECT_EQ(std::set<int>(got.begin(), got.end()).size(), 320u);
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()))
      << "threads should run in an order of their own";
}

TEST(SimtOrder, FollowsFromTheSeed) {
  auto run = [](uint64_t seed) {
    simt::options() = {.seed = seed - static_cast<uint64_t>(simt::launchCount()),
                       .schedule = simt::Schedule::byTurns,
                       .mayUseDefaultStream = true};
    int *memory;
    GENREC_CUDA_CHECK(cudaMalloc(&memory, 4 * 129));
    GENREC_CUDA_CHECK(cudaMemset(memory, 0, 4 * 129));
    GENREC_CUDA_LAUNCH(nullptr, (LaunchShape{2, 64}), takeTickets, memory, memory + 1);
    std::vector<int> order(128);
    GENREC_CUDA_CHECK(cudaMemcpy(order.data(), memory + 1, 512, cudaMemcpyDeviceToHost));
    cudaFree(memory);
    simt::options() = {};
    return order;
  };
  EXPECT_EQ(run(100), run(100));
  EXPECT_NE(run(100), run(101));
}

/// One warp fills, the other empties: two named barriers, as in attention.
__global__ void produceAndConsume(int *out, int rounds) {
  __shared__ int slot[32];
  for (int round = 0; round < rounds; ++round) {
    if (warpOf() == 0) {
      if (round > 0)
        namedBarrierSync(2, 64);
      slot[laneOf()] = round * 32 + laneOf();
      namedBarrierArrive(1, 64);
    } else {
      namedBarrierSync(1, 64);
      out[round * 32 + laneOf()] = slot[31 - laneOf()];
      if (round + 1 < rounds)
        namedBarrierArrive(2, 64);
    }
  }
}

TEST_P(Simt, NamedBarriersOrderProducerAndConsumer) {
  int *out = device(4 * 32);
  EXPECT_EQ(accusation(1, 64, 0, produceAndConsume, out, 4), "none");
  std::vector<int> got = host(out, 128);
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(got[i], i / 32 * 32 + 31 - i % 32);
}

/// Blocks wait for each other: all that are resident must run.
__global__ void passBaton(int *flags) {
  if (threadIdx.x == 0) {
    while (blockIdx.x > 0 && loadAcquire(flags + blockIdx.x - 1) == 0) {
    }
    storeRelease(flags + blockIdx.x, 1);
  }
}

TEST_P(Simt, ResidentBlocksRunAtTheSameTime) {
  simt::options().residentBlocks = 4;
  EXPECT_EQ(accusation(4, 32, 0, passBaton, device(4)), "none");
}

} // namespace
} // namespace genrec::rt::cuda::test
