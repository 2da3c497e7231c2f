//===- wrong_kernels_test.cpp - The host execution catches wrong kernels --===//

#include "simt_fixture.h"

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda::test {
namespace {

using testing::HasSubstr;

__global__ void writeTo(int *data, int at) { data[at] = 1; }
__global__ void copyFrom(const int *from, int *to, int at) { to[0] = from[at]; }

TEST_P(Simt, AccessesOutsideOfAnAllocation) {
  int *data = std::max(device(10), device(10)); // so what is before it is the device's, too
  EXPECT_THAT(accusation(1, writeTo, data, 10),
              HasSubstr("out of bounds: write of 4 bytes by thread (0,0,0) of block ("));
  simt::clearError();
  EXPECT_THAT(accusation(1, copyFrom, data, data, -1), HasSubstr("out of bounds: read of 4 bytes"));
  simt::clearError();
  EXPECT_THAT(accusation(1, writeTo, data, 10),
              HasSubstr("at byte 40 of an allocation of 40 bytes"));
}

TEST_P(Simt, FreedUnwrittenAndHostMemory) {
  int *data = device(4), *fresh = device(4, false), *old = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&old, 16));
  GENREC_CUDA_CHECK(cudaFree(old));
  EXPECT_THAT(accusation(1, writeTo, old, 0), HasSubstr("freed memory: write"));
  simt::clearError();
  EXPECT_THAT(accusation(1, copyFrom, fresh, data, 0),
              HasSubstr("uninitialised device memory: read"));
  simt::clearError();
  std::vector<int> onHost(4);
  EXPECT_THAT(accusation(1, writeTo, onHost.data(), 0), HasSubstr("host memory: write"));
}

__device__ __attribute__((noinline)) int takeStack(int at) {
  volatile char large[size_t(2) << 20];
  large[at] = 1;
  return large[at];
}
__global__ void takeStackOfOne(int *out) {
  if (threadIdx.x == 40)
    out[0] = takeStack(static_cast<int>(threadIdx.x));
}

TEST_P(Simt, StacksThatAreTooSmall) {
  EXPECT_THAT(
      accusation(64, takeStackOfOne, device(1)),
      testing::AllOf(HasSubstr("another thread's stack: write of 1 bytes by thread (40,0,0)"),
                     HasSubstr("whose own has 1028 KiB and may be full")));
}

TEST(SimtDeathTest, TheHostTouchesDeviceMemory) {
  int *data = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&data, 16));
  EXPECT_DEATH(
      data[0] = 1,
      "the host touches device memory \\(4 bytes, at byte 0 of an allocation of 16 bytes\\)");
  cudaFree(data);
}

__global__ void sharedIndex(int *out, int at) {
  __shared__ int first[32];
  __shared__ int second[32];
  first[threadIdx.x] = second[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = first[at];
}

__global__ void dynamicIndex(int *out, int at) {
  GENREC_DYNAMIC_SHARED(int, tile);
  tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[at];
}

TEST_P(Simt, AccessesOutsideOfSharedArrays) {
  int *out = device(32);
  EXPECT_THAT(accusation(32, sharedIndex, out, 32),
              HasSubstr("out of bounds: index 32 at wrong_kernels_test.cpp:"));
  simt::clearError();
  EXPECT_EQ(accusation(1, 32, 128, dynamicIndex, out, 31), "none");
  EXPECT_THAT(accusation(1, 32, 128, dynamicIndex, out, 32),
              HasSubstr("at byte 128 of 128 bytes of dynamic shared memory"));
}

__global__ void shift(uint32_t *out, int by) { *out = 1u << by; }
__global__ void shiftWide(int64_t *out, int by) { *out >>= by; }
__global__ void toInteger(int *out, float value) { *out = static_cast<int>(value); }

/// What a device computes of these, this machine does not.
TEST_P(Simt, NumbersThatOnlyADeviceHas) {
  auto *out = reinterpret_cast<uint32_t *>(device(2));
  auto *wide = reinterpret_cast<int64_t *>(out);
  EXPECT_EQ(accusation(1, shift, out, 31), "none");
  EXPECT_THAT(accusation(1, shift, out, 32),
              HasSubstr("shift by 32 bits at wrong_kernels_test.cpp:"));
  simt::clearError();
  EXPECT_THAT(accusation(1, shift, out, -1), HasSubstr("shift by -1 bits"));
  simt::clearError();
  EXPECT_EQ(accusation(1, shiftWide, wide, 63), "none");
  EXPECT_THAT(accusation(1, shiftWide, wide, 64), HasSubstr("shift by 64 bits"));
  simt::clearError();
  auto *integer = reinterpret_cast<int *>(out);
  EXPECT_EQ(accusation(1, toInteger, integer, 2147483520.0f), "none");
  EXPECT_THAT(accusation(1, toInteger, integer, 2147483648.0f),
              HasSubstr("a float that the integer cannot hold at wrong_kernels_test.cpp:"));
  simt::clearError();
  EXPECT_THAT(accusation(1, toInteger, integer, NAN), HasSubstr("cannot hold"));
}

__global__ void readUnwritten(int *out) {
  __shared__ int tile[32];
  if (threadIdx.x != 7)
    tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

TEST_P(Simt, SharedMemoryThatNothingWrote) {
  int *out = device(32);
  EXPECT_THAT(accusation(1, 32, 0, readUnwritten, out),
              HasSubstr("uninitialised shared memory: read of 4 bytes by thread (7,0,0)"));
}

template <bool WarpBarrier> __global__ void reverseWithoutBarrier(int *out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = 1;
  __syncthreads();
  tile[threadIdx.x] = 2;
  if (WarpBarrier)
    __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ (WarpBarrier ? 1 : 33)];
}

__global__ void writeOneWord(int *out) {
  __shared__ int found;
  if (threadIdx.x % 32 == 0)
    found = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = found;
}

/// A warp's lanes read what others wrote, after an intrinsic that orders nothing.
template <bool Barrier> __global__ void exchangeByShuffle(int *out) {
  __shared__ int tile[32];
  tile[threadIdx.x] = static_cast<int>(threadIdx.x);
  int other = __shfl_xor_sync(kAllLanes, static_cast<int>(threadIdx.x), 1);
  if (Barrier)
    __syncwarp();
  out[threadIdx.x] = tile[other];
}

TEST_P(Simt, ShufflesOrderNoAccesses) {
  int *out = device(32);
  EXPECT_EQ(accusation(1, 32, 0, exchangeByShuffle<true>, out), "none");
  EXPECT_THAT(accusation(1, 32, 0, exchangeByShuffle<false>, out),
              HasSubstr("race in shared memory: read at wrong_kernels_test.cpp:"));
}

enum class Publish { relaxed, fences, release };
/// Block 0 writes and raises a flag, block 1 waits for it and reads.
template <Publish How> __global__ void publish(int *data, int *flag) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 7;
    __syncthreads();
    if (threadIdx.x == 0 && How == Publish::fences)
      __threadfence();
    if (threadIdx.x == 0)
      How == Publish::release ? storeRelease(flag, 1) : storeRelaxed(flag, 1);
  } else {
    while ((How == Publish::release ? loadAcquire(flag) : loadRelaxed(flag)) == 0) {
    }
    if (How == Publish::fences)
      __threadfence();
    data[64 + threadIdx.x] = data[63 - threadIdx.x];
  }
}

TEST_P(Simt, RacesInDeviceMemory) {
  EXPECT_EQ(accusation(2, 64, 0, publish<Publish::release>, device(128), device(1)), "none");
  EXPECT_EQ(accusation(2, 64, 0, publish<Publish::fences>, device(128), device(1)), "none");
  EXPECT_THAT(accusation(2, 64, 0, publish<Publish::relaxed>, device(128), device(1)),
              testing::ContainsRegex(
                  "race in device memory: read at wrong_kernels_test.cpp:[0-9]+ by thread "
                  "[0-9]+ of block \\(1,0,0\\).*written by thread [0-9]+ of "
                  "another block"));
}

/// Two relaxed stores, seen in the other order.
__global__ void storeTwice(int *first, int *second, int *sawOnlySecond) {
  if (threadIdx.x == 0) {
    storeRelaxed(first, 1);
    storeRelaxed(second, 1);
    for (int i = 0; i < 16; ++i) // it goes on: at its end everything is seen
      (void)loadRelaxed(sawOnlySecond);
  } else if (threadIdx.x == 32) {
    while (loadRelaxed(second) == 0) {
    }
    storeRelaxed(sawOnlySecond, loadRelaxed(first) == 0 ? 1 : 0);
  }
}

TEST(SimtStores, AreSeenInAnyOrder) {
  int seen = 0;
  for (uint64_t seed = 1; seed <= 256; ++seed) {
    simt::options() = {.seed = seed, .mayUseDefaultStream = true};
    int *flags;
    GENREC_CUDA_CHECK(cudaMalloc(&flags, 12));
    GENREC_CUDA_CHECK(cudaMemset(flags, 0, 12));
    GENREC_CUDA_LAUNCH(nullptr, (LaunchShape{1, 64}), storeTwice, flags, flags + 1, flags + 2);
    int got[3];
    GENREC_CUDA_CHECK(cudaMemcpy(got, flags, 12, cudaMemcpyDeviceToHost));
    seen += got[2];
    cudaFree(flags);
  }
  simt::options() = {};
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, 256);
}

__global__ void readAt(const unsigned char *from, int *to, int at) {
  *to = *reinterpret_cast<const int *>(from + at);
}

/// The host may load and store the four one by one.
__global__ void copyPack(const int *from, int *to) { storeWhole(to, loadWhole<uint4>(from)); }

TEST_P(Simt, MisalignedAccesses) {
  int *data = device(4);
  const auto *bytes = reinterpret_cast<const unsigned char *>(data);
  EXPECT_EQ(accusation(1, readAt, bytes, data, 4), "none");
  EXPECT_THAT(accusation(1, readAt, bytes, data, 5),
              HasSubstr("misaligned address: not a multiple of 4"));
  simt::clearError();
  int *pack = device(12);
  EXPECT_EQ(accusation(1, copyPack, pack + 4, pack + 8), "none");
  EXPECT_THAT(accusation(1, copyPack, pack + 2, pack + 8),
              AllOf(HasSubstr("misaligned address: not a multiple of 16 at device.h"),
                    HasSubstr("thread (0,0,0)")));
  simt::clearError();
  EXPECT_THAT(accusation(1, copyPack, pack, pack + 6),
              AllOf(HasSubstr("misaligned address: not a multiple of 16 at device.h"),
                    HasSubstr("thread (0,0,0)")));
}

TEST_P(Simt, RacesInSharedMemory) {
  int *out = device(64);
  EXPECT_EQ(accusation(1, 64, 0, reverseWithoutBarrier<true>, out), "none");
  EXPECT_THAT(accusation(1, 64, 0, reverseWithoutBarrier<false>, out),
              HasSubstr("race in shared memory"));
  simt::clearError();
  EXPECT_THAT(accusation(1, 64, 0, writeOneWord, out), HasSubstr("race in shared memory: write"));
}

__global__ void divergentBarrier(int *out) {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = 1;
}
__global__ void earlyReturn(int *out, int count) {
  if (static_cast<int>(threadIdx.x) >= count)
    return;
  __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void missedNamedBarrier() {
  if (warpOf() == 0)
    namedBarrierSync(3, 64);
}

TEST_P(Simt, DivergentBarriers) {
  int *out = device(64);
  EXPECT_THAT(accusation(64, divergentBarrier, out), HasSubstr("divergent barrier: thread"));
  simt::clearError();
  EXPECT_EQ(accusation(64, earlyReturn, out, 64), "none");
  EXPECT_THAT(accusation(64, earlyReturn, out, 50), HasSubstr("divergent barrier: thread"));
  simt::clearError();
  // Of two threads the one that returns is the first or the last, by the seed.
  EXPECT_THAT(accusation(2, earlyReturn, out, 1), HasSubstr("divergent barrier: thread"));
  simt::clearError();
  EXPECT_THAT(accusation(1, 64, 0, missedNamedBarrier),
              HasSubstr("waiting for ever in block (0,0,0): 32 threads at a named barrier"));
}

__global__ void shuffleAfterReturn(int *out, int count) {
  if (static_cast<int>(threadIdx.x) >= count)
    return;
  out[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1, 1);
}
__global__ void unequalMasks(int *out) {
  out[threadIdx.x] = static_cast<int>(__ballot_sync(threadIdx.x ? kAllLanes : 1u, 1));
}
__global__ void foreignMask(int *out) { out[threadIdx.x] = static_cast<int>(__ballot_sync(2u, 1)); }
__global__ void shuffleFromUnnamed(int *out) {
  if (threadIdx.x < 16)
    out[threadIdx.x] = __shfl_sync(0xFFFFu, 1, 20);
}

TEST_P(Simt, WarpIntrinsicsThatALaneMisses) {
  int *out = device(32);
  EXPECT_THAT(accusation(1, 32, 0, shuffleAfterReturn, out, 20),
              testing::AnyOf(HasSubstr("has ended"), HasSubstr("waiting for ever")));
  simt::clearError();
  EXPECT_NE(accusation(1, 32, 0, unequalMasks, out), "none");
  simt::clearError();
  EXPECT_THAT(accusation(1, 1, 0, foreignMask, out), HasSubstr("does not name its own lane"));
  simt::clearError();
  EXPECT_THAT(accusation(1, 32, 0, shuffleFromUnnamed, out),
              HasSubstr("which the mask does not name"));
}

__global__ void waitForNobody(int *flag) {
  while (loadAcquire(flag) == 0) {
  }
}

TEST_P(Simt, LoopsThatNeverEnd) {
  simt::options().mostSwitches = 10000;
  EXPECT_THAT(accusation(1, 32, 0, waitForNobody, device(1)),
              HasSubstr("no end after 10001 switches"));
}

__global__ void fillStatic(int *out) {
  __shared__ int tile[13 << 10]; // 52 KiB
  for (int i = static_cast<int>(threadIdx.x); i < 13 << 10; i += 32)
    tile[i] = i;
  out[threadIdx.x] = tile[threadIdx.x];
}

/// `Number`: a kernel has consented once and for all.
template <int Number> __global__ void fillBoth(int *out) {
  __shared__ int tile[11 << 10]; // 44 KiB
  GENREC_DYNAMIC_SHARED(int, more);
  for (int i = static_cast<int>(threadIdx.x); i < 11 << 10; i += 32)
    tile[i] = i;
  more[threadIdx.x] = 1;
  out[threadIdx.x] = tile[threadIdx.x] + more[threadIdx.x];
}

TEST_P(Simt, SharedMemoryThatWasNotAllowed) {
  int *out = device(32);
  // Of both together there are 48 KiB unless the kernel has consented to more.
  EXPECT_THAT(accusation(1, 32, 6 << 10, fillBoth<1>, out),
              HasSubstr("45056 bytes static and 6144 dynamic"));
  simt::clearError();
  EXPECT_EQ(accusation(1, 32, 4 << 10, fillBoth<1>, out), "none");
  EXPECT_EQ(accusation(1, 32, 49 << 10, fillBoth<2>, out), "none");
  EXPECT_THAT(accusation(1, 32, 0, fillStatic, out), HasSubstr("53248 bytes static"));
  simt::clearError();
  // launchKernel asks for what it needs; this launch does not.
  cudaLaunchConfig_t config;
  config.gridDim = 1;
  config.blockDim = 32;
  config.dynamicSmemBytes = 50 << 10;
  EXPECT_NE(cudaLaunchKernelEx(&config, readUnwritten, out), cudaSuccess);
  EXPECT_THAT(simt::errorMessage(), HasSubstr("the kernel has been allowed 49152"));
}

__global__ void writeEarly(int *out) { out[threadIdx.x] = 1; }
__global__ void readEarly(const int *in, int *out) {
  const int value = in[threadIdx.x];
  awaitLaunchBefore();
  out[threadIdx.x] = value;
}
__global__ void awaitFirst(const int *in, int *out) {
  awaitLaunchBefore();
  out[threadIdx.x] = in[threadIdx.x];
}
__global__ void writeTooEarly(int *out) {
  out[threadIdx.x] = 2;
  awaitLaunchBefore();
}

// What a launch that begins early touches before it waits is not what the one before does; that
// which is one further back is done.
TEST_P(Simt, LaunchesThatBeginEarly) {
  int *a = device(32), *b = device(32), *c = device(32);
  const LaunchShape shape{dim3(1), dim3(32)};
  const auto messageOf = [&](auto... launch) {
    EXPECT_EQ(detail::launchKernel(nullptr, shape, writeEarly, a), cudaSuccess);
    (void)detail::launchKernel(nullptr, early(shape), launch...); // it may run at once
    (void)cudaDeviceSynchronize();
    const std::string message = simt::errorMessage();
    simt::clearError();
    return message;
  };
  EXPECT_EQ(messageOf(awaitFirst, a, b), "");
  EXPECT_THAT(messageOf(readEarly, a, b),
              HasSubstr("before it waits for kernel genrec::rt::cuda::test::writeEarly"));
  EXPECT_THAT(messageOf(writeTooEarly, a),
              HasSubstr("before it waits for kernel genrec::rt::cuda::test::writeEarly"));
  EXPECT_THAT(messageOf(writeEarly, c), HasSubstr("ended without waiting for the launch before"));
  EXPECT_EQ(messageOf(awaitFirst, a, b), "");
  EXPECT_EQ(detail::launchKernel(nullptr, early(shape), readEarly, a, c), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << simt::errorMessage();
}

/// Finds an empty place and takes it, in two atomics instead of one.
__global__ void unprotectedTake(int *places, int count) {
  for (int i = 0; i < count; ++i)
    if (loadRelaxed(places + i) == 0) {
      storeRelaxed(places + i, static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x + 1));
      return;
    }
}

TEST(SimtPreemption, ShowsWhatAMissingAtomicLoses) {
  int lost = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    simt::options() = {.seed = seed, .preemptOneIn = 8, .mayUseDefaultStream = true};
    int *places;
    GENREC_CUDA_CHECK(cudaMalloc(&places, 512));
    GENREC_CUDA_CHECK(cudaMemset(places, 0, 512));
    GENREC_CUDA_LAUNCH(nullptr, (LaunchShape{2, 64}), unprotectedTake, places, 128);
    std::vector<int> got(128);
    GENREC_CUDA_CHECK(cudaMemcpy(got.data(), places, 512, cudaMemcpyDeviceToHost));
    lost += std::count(got.begin(), got.end(), 0) > 0;
    cudaFree(places);
  }
  simt::options() = {};
  EXPECT_EQ(lost, 8);
}

TEST_P(Simt, LaunchesOutsideOfTheLimits) {
  EXPECT_THAT(accusation(1, 1025, 0, writeTo, device(1), 0), HasSubstr("a block of 1025 threads"));
  simt::clearError();
  EXPECT_THAT(accusation(0, 1, 0, writeTo, device(1), 0), HasSubstr("a grid of (0,1,1) blocks"));
  simt::clearError();
  cudaLaunchConfig_t config = {};
  config.gridDim = config.blockDim = dim3(1);
  config.dynamicSmemBytes = 300 << 10; // without the kernel's consent, which would be refused
  try {
    GENREC_CUDA_CHECK(cudaLaunchKernelEx(&config, writeTo, device(1), 0));
    FAIL();
  } catch (const CudaError &error) {
    EXPECT_THAT(error.what(), HasSubstr("bytes of dynamic shared memory"));
  }
}

TEST_P(Simt, NothingRunsAfterAnError) {
  int *data = device(1);
  EXPECT_NE(accusation(1, writeTo, data, 1), "none");
  EXPECT_NE(accusation(1, writeTo, data, 0), "none");
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  simt::clearError();
  EXPECT_EQ(accusation(1, writeTo, data, 0), "none");
}

TEST(CudaCheck, NamesCallAndCaller) {
  simt::options().deviceBytes = 1000;
  try {
    int *memory;
    GENREC_CUDA_CHECK(cudaMalloc(&memory, 2000));
    FAIL();
  } catch (const CudaError &error) {
    EXPECT_EQ(error.status, cudaErrorMemoryAllocation);
    EXPECT_THAT(
        error.what(),
        testing::MatchesRegex(
            "cudaMalloc\\(&memory, 2000\\) failed in TestBody "
            "\\(wrong_kernels_test.cpp:[0-9]+\\): cudaErrorMemoryAllocation, out of memory"));
  }
  simt::options() = {};
}

__global__ void useSharedMemory() {}
TEST(CudaCheck, TellsOfSharedMemoryThatTheDeviceHasNot) {
  simt::options().mostSharedBytes = 99 << 10;
  try {
    GENREC_CUDA_LAUNCH(cudaStreamLegacy, (LaunchShape{1, 32, 100 << 10}), useSharedMemory);
    FAIL();
  } catch (const Error &error) {
    EXPECT_THAT(error.what(), testing::MatchesRegex("a block of a kernel needs 102400 bytes of "
                                                    "shared memory, and the GPU '.*' gives a "
                                                    "block 101376"));
  }
  GENREC_CUDA_LAUNCH(cudaStreamLegacy, (LaunchShape{1, 32, 99 << 10}), useSharedMemory);
  simt::options() = {};
}

} // namespace
} // namespace genrec::rt::cuda::test
