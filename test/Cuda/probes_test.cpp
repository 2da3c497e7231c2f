//===- probes_test.cpp - What the kernels take for granted of a device ----===//
//
// The smallest kernel for each instruction that attention is built of, with results
// that are exact: where a larger test fails on a device, these say which instruction
// does not do what bulk.h, wgmma.h and mma.h say of it. On the host they hold the
// emulator to the same.
//
//===----------------------------------------------------------------------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/attention/attention.h"

#include <cmath>
#include <gtest/gtest.h>

// Other architectures compile the launches, and empty kernels.
#if defined(GENREC_SIMT) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define GENREC_HAS_HOPPER
#endif

namespace genrec::rt::cuda::test {
namespace {

class Probes : public testing::Test {
protected:
  void SetUp() override {
    int major = 0;
    GENREC_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    if (attentionLevelOf(major) != AttentionLevel::hopper)
      GTEST_SKIP() << "the device has compute capability " << major << ", not 9";
  }
};

/// An integer of -3 to 3 by its place: exact in bfloat16, and its products are in float.
__host__ __device__ inline int smallInteger(int matrix, int row, int column) {
  return (row * 31 + column * 17 + row * column * 7 + matrix * 5) % 7 - 3;
}

template <class Shared> constexpr LaunchShape shapeOf(unsigned threads) {
  return {1, threads, sizeof(Shared) + 1024};
}

//===----------------------------------------------------------------------===//
// Copies of boxes
//===----------------------------------------------------------------------===//

struct Box {
  static constexpr int kRows = 16, kSize = 80;
  using Tile = BulkTile<kRows, kSize>;
  static constexpr int kValues = Tile::kPanels * kRows * 64;
  Tile tile;
  Barrier full;
};

__global__ void dumpBox(__grid_constant__ const TensorMap map, int head, int row, uint16_t *dump) {
#if defined(GENREC_HAS_HOPPER)
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<Box *>(alignedShared(memory));
  if (threadIdx.x == 0) {
    initBarrier(&shared.full, 1);
    fenceBarrierInit();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arriveExpecting(&shared.full, Box::Tile::kBytes);
    copyTile(shared.tile, map, head, row, &shared.full);
  }
  waitForPhase(&shared.full, 0);
  for (int i = static_cast<int>(threadIdx.x); i < Box::kValues; i += static_cast<int>(blockDim.x))
    dump[i] = shared.tile.values[i];
#endif
}

/// The first rows of a panel as they lie in shared memory, a value per chunk of eight.
std::string dumped(const std::vector<uint16_t> &values) {
  std::string text;
  for (size_t row = 0; row < 8; ++row) {
    text.append("\n  row ").append(std::to_string(row)).append(":");
    for (size_t chunk = 0; chunk < 8; ++chunk)
      text.append(" ").append(std::to_string(values[row * 64 + chunk * 8]));
  }
  return text;
}

TEST_F(Probes, ABoxIsSwizzledAndFilledUpWithZeros) {
  constexpr int kRows = 20, kHeads = 2, kHead = 1, kFirst = 9, kLd = kHeads * Box::kSize + 8;
  std::vector<Bf16> values(static_cast<size_t>(kRows) * kLd);
  for (size_t i = 0; i < values.size(); ++i)
    values[i].bits = static_cast<uint16_t>(i + 1);
  Copy<Bf16> matrix(values);
  Copy<uint16_t> dump{std::vector<uint16_t>(Box::kValues)};
  const TensorMap map = makeTensorMap(matrix.data(), kRows, kHeads, Box::kSize, kLd, Box::kRows);
  GENREC_CUDA_LAUNCH(testStream(), shapeOf<Box>(128), dumpBox, map, kHead, kFirst, dump.data());
  // Chunk c of 16 bytes of row r lies at chunk c ^ (r % 8).
  std::vector<uint16_t> expected(Box::kValues);
  for (int row = 0; row < Box::kRows; ++row)
    for (int column = 0; column < Box::Tile::kPadded; ++column) {
      const int chunk = column % 64 / 8 ^ row % 8;
      const int at = (column / 64 * Box::kRows + row) * 64 + chunk * 8 + column % 8;
      if (kFirst + row < kRows && column < Box::kSize)
        expected[static_cast<size_t>(at)] =
            values[static_cast<size_t>((kFirst + row) * kLd + kHead * Box::kSize + column)].bits;
    }
  const std::vector<uint16_t> actual = dump.fetch();
  EXPECT_TRUE(actual == expected) << "the box:" << dumped(actual)
                                  << "\nexpected:" << dumped(expected);
}

//===----------------------------------------------------------------------===//
// Rings of stages
//===----------------------------------------------------------------------===//

struct RingOfBoxes {
  static constexpr int kStages = 2, kRows = 8, kConsumingWarps = 4;
  BulkTile<kRows, 64> tile[kStages];
  Barrier full[kStages], empty[kStages];
};

/// A warp copies `tiles` boxes, four others add up the values of each.
__global__ void sumTiles(__grid_constant__ const TensorMap map, int tiles, int *sums) {
#if defined(GENREC_HAS_HOPPER)
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<RingOfBoxes *>(alignedShared(memory));
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < RingOfBoxes::kStages; ++stage) {
      initBarrier(&shared.full[stage], 1);
      initBarrier(&shared.empty[stage], RingOfBoxes::kConsumingWarps);
    }
    fenceBarrierInit();
  }
  __syncthreads();
  Ring<RingOfBoxes::kStages> ring;
  for (int tile = 0; tile < tiles; ++tile, ring.advance()) {
    Barrier *full = &shared.full[ring.stage], *empty = &shared.empty[ring.stage];
    if (warpOf() == RingOfBoxes::kConsumingWarps) {
      waitForPhase(empty, ring.parity ^ 1);
      if (laneOf() == 0) {
        arriveExpecting(full, BulkTile<RingOfBoxes::kRows, 64>::kBytes);
        copyTile(shared.tile[ring.stage], map, 0, tile * RingOfBoxes::kRows, full);
      }
      __syncwarp(); // no lane waits for a phase that has passed twice
    } else {
      waitForPhase(full, ring.parity);
      int sum = 0;
      for (int i = static_cast<int>(threadIdx.x); i < RingOfBoxes::kRows * 64; i += 128)
        sum += shared.tile[ring.stage].values[i];
      __syncwarp();
      if (laneOf() == 0)
        arrive(empty);
      atomicAdd(&sums[tile], sum);
    }
  }
#endif
}

TEST_F(Probes, StagesOfARingAreFilledAndReleasedInTurn) {
  constexpr int kTiles = 37, kRows = kTiles * RingOfBoxes::kRows;
  std::vector<Bf16> values(static_cast<size_t>(kRows) * 64);
  std::vector<int> expected(kTiles);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].bits = static_cast<uint16_t>(i * 7 % 1000);
    expected[i / (RingOfBoxes::kRows * 64)] += values[i].bits;
  }
  Copy<Bf16> matrix(values);
  Copy<int> sums{std::vector<int>(kTiles, 0)};
  const TensorMap map = makeTensorMap(matrix.data(), kRows, 1, 64, 64, RingOfBoxes::kRows);
  GENREC_CUDA_LAUNCH(testStream(), shapeOf<RingOfBoxes>(32 * (RingOfBoxes::kConsumingWarps + 1)),
                     sumTiles, map, kTiles, sums.data());
  EXPECT_EQ(sums.fetch(), expected);
}

//===----------------------------------------------------------------------===//
// Reductions of whole rows
//===----------------------------------------------------------------------===//

__global__ void addBlockNumbers(int *to) {
#if defined(GENREC_HAS_HOPPER)
  GENREC_DYNAMIC_SHARED(int, row);
  row[threadIdx.x] = static_cast<int>(blockIdx.x + threadIdx.x);
  fenceAsyncProxy();
  __syncthreads();
  if (threadIdx.x == 0)
    reduceBulk(to, row, 64 * 4);
  commitBulk();
  waitForBulk();
#endif
}

TEST_F(Probes, ReductionsOfManyBlocksAddUp) {
  constexpr int kBlocks = 200;
  Copy<int> sums{std::vector<int>(64, 3)};
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{kBlocks, 64, 64 * 4}), addBlockNumbers,
                     sums.data());
  std::vector<int> expected;
  for (int i = 0; i < 64; ++i)
    expected.push_back(3 + kBlocks * (kBlocks - 1) / 2 + kBlocks * i);
  EXPECT_EQ(sums.fetch(), expected);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

enum class Form { rows64, rows128, weights, columns };

template <int Size> struct Operands {
  static constexpr int kRows = 128;
  BulkTile<kRows, Size> left, right;
};
constexpr int kLeft = 0, kRight = 1, kInRegisters = 2; // matrices of smallInteger

template <int N> __device__ void storeProduct(const Fragment<N> &d, float *out) {
  const int row = warpOf() * 16 + fragmentRow();
  for (int n = 0; n < N / 8; ++n)
    for (int i = 0; i < 4; ++i)
      out[(row + i / 2 * 8) * N + 8 * n + fragmentColumn() + i % 2] = d.d[n][i];
}

/// One product of a warpgroup: 64 rows, the sum over the rows' length or over 128 rows.
template <Form F, int Size, int N> __global__ void multiply(float *out) {
#if defined(GENREC_HAS_HOPPER)
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  auto &shared = *reinterpret_cast<Operands<Size> *>(alignedShared(memory));
  auto bits = [](int matrix, int row, int column) {
    return packBf16(static_cast<float>(smallInteger(matrix, row, column)),
                    static_cast<float>(smallInteger(matrix, row, column + 1)));
  };
  for (int i = static_cast<int>(threadIdx.x); i < Operands<Size>::kRows * Size / 2;
       i += kWarpgroup) {
    const int row = i / (Size / 2), column = i % (Size / 2) * 2;
    *shared.left.pair(row, column) = bits(kLeft, row, column);
    *shared.right.pair(row, column) = bits(kRight, row, column);
  }
  fenceAsyncProxy();
  __syncthreads();
  Fragment<N> d;
  d.clear();
  LeftOperand<128> weights;
  if constexpr (F == Form::weights) {
    Fragment<128> values;
    for (int n = 0; n < 16; ++n)
      for (int i = 0; i < 4; ++i)
        values.d[n][i] =
            static_cast<float>(smallInteger(kInRegisters, warpOf() * 16 + fragmentRow() + i / 2 * 8,
                                            8 * n + fragmentColumn() + i % 2));
    weights.set(values);
  }
  keepInRegisters(d);
  startProducts();
  if constexpr (F == Form::rows64 || F == Form::rows128)
    startRows(d, shared.left, 64, shared.right);
  else if constexpr (F == Form::weights)
    startWeights(d, weights, shared.right);
  else
    startColumns<128>(d, shared.left, Size / 64 - 1, shared.right, 0);
  commitProducts();
  waitForProducts<0>();
  keepInRegisters(d);
  storeProduct(d, out);
#endif
}

template <Form F, int Size, int N> void expectProduct() {
  SCOPED_TRACE("rows of " + std::to_string(Size) + ", " + std::to_string(N) + " columns");
  Copy<float> out{std::vector<float>(64 * N, -1)};
  GENREC_CUDA_LAUNCH(testStream(), shapeOf<Operands<Size>>(kWarpgroup), (multiply<F, Size, N>),
                     out.data());
  std::vector<float> expected;
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < N; ++column) {
      int sum = 0;
      if (F == Form::rows64 || F == Form::rows128)
        for (int k = 0; k < Size; ++k)
          sum += smallInteger(kLeft, 64 + row, k) * smallInteger(kRight, column, k);
      else
        for (int k = 0; k < 128; ++k)
          sum += (F == Form::weights ? smallInteger(kInRegisters, row, k)
                                     : smallInteger(kLeft, k, Size - 64 + row)) *
                 smallInteger(kRight, k, column);
      expected.push_back(static_cast<float>(sum));
    }
  EXPECT_EQ(out.fetch(), expected);
}

TEST_F(Probes, ProductsOfRowsWith64Columns) {
  expectProduct<Form::rows64, 64, 64>();
  expectProduct<Form::rows64, 128, 64>();
}
TEST_F(Probes, ProductsOfRowsWith128Columns) {
  expectProduct<Form::rows128, 64, 128>();
  expectProduct<Form::rows128, 128, 128>();
}
TEST_F(Probes, ProductsOfRegistersReadAcrossRows) {
  expectProduct<Form::weights, 64, 64>();
  expectProduct<Form::weights, 128, 128>();
}
TEST_F(Probes, ProductsThatReadBothAcrossRows) {
  expectProduct<Form::columns, 64, 64>();
  expectProduct<Form::columns, 128, 64>();
}

//===----------------------------------------------------------------------===//
// Registers and shared memory
//===----------------------------------------------------------------------===//

/// Consumers hold more values than a block of as many threads starts with registers for.
__global__ void __launch_bounds__(kHopperThreads, 1) moveRegisters(const float *in, float *out) {
#if defined(GENREC_HAS_HOPPER)
  constexpr int kHeld = 180;
  takeRoles<MostForConsumers>(
      [](int) {},
      [&] {
        const int thread = static_cast<int>(threadIdx.x) - kWarpgroup;
        float held[kHeld], sum = 0;
#pragma unroll
        for (int i = 0; i < kHeld; ++i)
          held[i] = in[(thread + i) % 64];
        for (int round = 0; round < 3; ++round)
#pragma unroll
          for (int i = 0; i < kHeld; ++i)
            held[i] += held[(i + 1) % kHeld];
#pragma unroll
        for (int i = 0; i < kHeld; ++i)
          sum += held[i];
        out[blockIdx.x * (kConsumers * kWarpgroup) + static_cast<unsigned>(thread)] = sum;
      });
#endif
}

TEST_F(Probes, RegistersMoveToTheConsumers) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i)
    values.push_back(static_cast<float>(smallInteger(0, i, 1)));
  constexpr int kHeld = 180, kBlocks = 3, kThreads = kBlocks * kConsumers * kWarpgroup;
  Copy<float> in(values), out{std::vector<float>(kThreads, -1)};
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{kBlocks, kHopperThreads}), moveRegisters, in.data(),
                     out.data());
  std::vector<float> expected;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::vector<float> held;
    for (int i = 0; i < kHeld; ++i)
      held.push_back(values[static_cast<size_t>((thread % (kConsumers * kWarpgroup) + i) % 64)]);
    for (int round = 0; round < 3; ++round)
      for (size_t i = 0; i < kHeld; ++i)
        held[i] += held[(i + 1) % kHeld];
    float sum = 0;
    for (float value : held)
      sum += value;
    expected.push_back(sum);
  }
  EXPECT_EQ(out.fetch(), expected);
}

constexpr int kMostSharedWords = (227 << 10) / 4;

__global__ void reverseShared(uint32_t *out) {
  GENREC_DYNAMIC_SHARED(uint32_t, words);
  for (int i = static_cast<int>(threadIdx.x); i < kMostSharedWords;
       i += static_cast<int>(blockDim.x))
    words[i] = static_cast<uint32_t>(i) * 2654435761u;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kMostSharedWords;
       i += static_cast<int>(blockDim.x))
    out[i] = words[kMostSharedWords - 1 - i];
}

TEST_F(Probes, ABlockHas227KiBOfSharedMemory) {
  Copy<uint32_t> out{std::vector<uint32_t>(kMostSharedWords, 0)};
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{1, 256, kMostSharedWords * 4}), reverseShared,
                     out.data());
  std::vector<uint32_t> expected;
  for (int i = kMostSharedWords; i-- > 0;)
    expected.push_back(static_cast<uint32_t>(i) * 2654435761u);
  EXPECT_TRUE(out.fetch() == expected);
}

//===----------------------------------------------------------------------===//
// Approximations
//===----------------------------------------------------------------------===//

__global__ void approximateAll(const float *x, int64_t count, float *tanhs, float *powers) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    tanhs[i] = tanhApprox(x[i]);
    powers[i] = exp2Approx(x[i]);
  }
}

/// A hidden score of silu has weight 0 only where tanh is -1, one of softmax only where 2^x is 0.
TEST_F(Probes, ApproximationsOfHiddenScoresAreExact) {
  std::vector<float> x = {-20, -200, -1e30f, -INFINITY};
  const size_t hidden = x.size();
  for (int i = -4000; i <= 4000; ++i)
    x.push_back(static_cast<float>(i) / 400);
  Copy<float> in(x), tanhs{std::vector<float>(x.size(), -9)}, powers(tanhs.fetch());
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{16, 256}), approximateAll, in.data(),
                     static_cast<int64_t>(x.size()), tanhs.data(), powers.data());
  const std::vector<float> t = tanhs.fetch(), p = powers.fetch();
  for (size_t i = 0; i < hidden; ++i)
    EXPECT_EQ(t[i], -1) << x[i];
  for (size_t i = 1; i < hidden; ++i)
    EXPECT_EQ(p[i], 0) << x[i];
  for (size_t i = hidden; i < x.size(); ++i) {
    EXPECT_NEAR(t[i], std::tanh(x[i]), 0x1p-10f * std::fabs(std::tanh(x[i]))) << x[i];
    EXPECT_LE(std::fabs(t[i]), 1) << x[i];
    EXPECT_NEAR(p[i], std::exp2(x[i]), 0x1p-21f * std::exp2(x[i])) << x[i];
  }
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

__global__ void scaleAndAdd(const float *from, float *to, float factor) {
  to[threadIdx.x] = to[threadIdx.x] * factor + from[threadIdx.x];
}

TEST_F(Probes, ACapturedForkOfTwoStreamsRunsAgainAndAgain) {
  cudaStream_t first, second;
  cudaEvent_t forked, joined;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  for (cudaStream_t *stream : {&first, &second})
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  for (cudaEvent_t *event : {&forked, &joined})
    GENREC_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  Copy<float> in{std::vector<float>(32, 2)}, a{std::vector<float>(32, 0)}, b(a.fetch());
  const LaunchShape shape{1, 32};
  GENREC_CUDA_CHECK(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  GENREC_CUDA_LAUNCH(first, shape, scaleAndAdd, in.data(), a.data(), 2.0f);
  GENREC_CUDA_CHECK(cudaEventRecord(forked, first));
  GENREC_CUDA_CHECK(cudaStreamWaitEvent(second, forked));
  GENREC_CUDA_LAUNCH(second, shape, scaleAndAdd, a.data(), b.data(), 1.0f);
  GENREC_CUDA_CHECK(cudaEventRecord(joined, second));
  GENREC_CUDA_CHECK(cudaStreamWaitEvent(first, joined));
  GENREC_CUDA_LAUNCH(first, shape, scaleAndAdd, b.data(), a.data(), 1.0f);
  GENREC_CUDA_CHECK(cudaStreamEndCapture(first, &graph));
  GENREC_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
  float expectedA = 0, expectedB = 0;
  for (int launch = 0; launch < 4; ++launch) {
    GENREC_CUDA_CHECK(cudaGraphLaunch(exec, first));
    expectedA = expectedA * 2 + 2;
    expectedB += expectedA;
    expectedA += expectedB;
  }
  GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
  EXPECT_EQ(a.fetch(), std::vector<float>(32, expectedA));
  EXPECT_EQ(b.fetch(), std::vector<float>(32, expectedB));
  GENREC_CUDA_CHECK(cudaGraphExecDestroy(exec));
  GENREC_CUDA_CHECK(cudaGraphDestroy(graph));
  for (cudaEvent_t event : {forked, joined})
    GENREC_CUDA_CHECK(cudaEventDestroy(event));
  for (cudaStream_t stream : {first, second})
    GENREC_CUDA_CHECK(cudaStreamDestroy(stream));
}

} // namespace
} // namespace genrec::rt::cuda::test
