//===- pipeline_test.cpp - A host as training has it, on the emulated device ===//
//
// Batches come through pinned slots, are copied in one stream and computed on in another, some of
// it by a graph with two branches; losses are read late from a pinned ring; two ranks exchange
// rows. planted_defects.py plants what is easily forgotten here.
//
//===----------------------------------------------------------------------===//

#include "streams_testing.h"

#include <cublasLt.h>
#include <nccl.h>

#include <thread>

namespace genrec::rt::cuda::test {
namespace {

constexpr int kValues = 600, kSteps = 6, kSlots = 2, kRing = 3, kSize = 4;

__global__ void fillWith(float *values, int count, float value) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    values[i] = value;
}

cudaStream_t makeStream() {
  cudaStream_t stream;
  GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
cudaEvent_t makeEvent() {
  cudaEvent_t event;
  GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}
void record(cudaEvent_t event, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaEventRecord(event, stream));
}
void wait(cudaStream_t stream, cudaEvent_t event) {
  GENREC_CUDA_CHECK(cudaStreamWaitEvent(stream, event));
}

/// Products of 4 x 4 matrices of ones times `k`.
class Products {
public:
  Products() {
    cublasLtCreate(&handle);
    cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, kSize, kSize, kSize);
  }
  ~Products() {
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
  }
  void multiply(const float *a, float *d, void *workspace, cudaStream_t stream) {
    const float one = 1, zero = 0;
    EXPECT_EQ(cublasLtMatmul(handle, desc, &one, a, layout, a, layout, &zero, d, layout, d, layout,
                             nullptr, workspace, 256, stream),
              CUBLAS_STATUS_SUCCESS);
  }

private:
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
};

class Pipeline {
public:
  Pipeline()
      : slots(kSlots * kValues), ring(kRing), state(std::vector<int>(kValues, 0)),
        copy(std::vector<int>(kValues, 0)), sum(host({0})), matrix(std::vector<int>(96, 0)),
        spaces(std::vector<int>(128, 0)) {
    for (int i = 0; i < kSlots; ++i)
      batches.push_back(std::make_unique<Ints>(std::vector<int>(kValues, 0)));
    captureStep();
  }
  ~Pipeline() {
    (void)cudaDeviceSynchronize(); // slots may still be read
    (void)cudaGraphExecDestroy(exec);
    for (cudaStream_t stream : {copies, computes, sides})
      (void)cudaStreamDestroy(stream);
    for (cudaEvent_t *events : {read, copied, consumed})
      for (int slot = 0; slot < kSlots; ++slot)
        (void)cudaEventDestroy(events[slot]);
    for (cudaEvent_t event : {reported[0], reported[1], reported[2], forked, joined})
      (void)cudaEventDestroy(event);
  }

  /// The loss of each step.
  std::vector<int> run() {
    std::vector<int> losses;
    for (int step = 0; step < kSteps; ++step) {
      const int slot = step % kSlots;
      fillSlot(step, slot);
      copySlot(slot);
      compute(slot);
      report(step % kRing);
      if (step >= kRing - 1)
        losses.push_back(lossOf((step - kRing + 1) % kRing));
    }
    for (int step = kSteps - kRing + 1; step < kSteps; ++step)
      losses.push_back(lossOf(step % kRing));
    return losses;
  }

  /// A first batch is on its way, and nobody waits for it.
  void prefetch() {
    fillSlot(0, 0);
    copySlot(0);
  }

private:
  void fillSlot(int step, int slot) {
    GENREC_CUDA_CHECK(cudaEventSynchronize(read[slot]));
    for (int i = 0; i < kValues; ++i)
      slots.data[slot * kValues + i] = step + 1;
  }

  void copySlot(int slot) {
    wait(copies, consumed[slot]);
    GENREC_CUDA_CHECK(cudaMemcpyAsync(batches[slot]->data, slots.data + slot * kValues, kValues * 4,
                                      cudaMemcpyHostToDevice, copies));
    record(read[slot], copies);
    record(copied[slot], copies);
  }

  void compute(int slot) {
    wait(computes, copied[slot]);
    int *scratch = nullptr;
    GENREC_CUDA_CHECK(cudaMallocAsync(&scratch, kValues * 4, computes));
    launch(computes, copyInts, batches[slot]->data, scratch, kValues);
    record(consumed[slot], computes);
    launch(computes, accumulate, scratch, state.data, kValues);
    GENREC_CUDA_CHECK(cudaFreeAsync(scratch, computes));
    GENREC_CUDA_CHECK(cudaGraphLaunch(exec, computes));
    multiplyTwice();
  }

  /// state += 1; sum = state[0] beside copy = state; then copy[0] += sum.
  void captureStep() {
    cudaGraph_t graph = nullptr;
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(computes, cudaStreamCaptureModeGlobal));
    launch(computes, addTo, state.data, kValues, 1);
    record(forked, computes);
    wait(sides, forked);
    launch(sides, copyInts, state.data, sum.data, 1);
    launch(computes, copyInts, state.data, copy.data, kValues);
    record(joined, sides);
    wait(computes, joined); // before the last kernel
    launch(computes, accumulate, sum.data, copy.data, 1);
    GENREC_CUDA_CHECK(cudaStreamEndCapture(computes, &graph));
    GENREC_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    GENREC_CUDA_CHECK(cudaGraphDestroy(graph));
  }

  /// Two products at the same time, each with a workspace of its own.
  void multiplyTwice() {
    float *a = reinterpret_cast<float *>(matrix.data), *first = a + 32, *second = a + 64;
    char *space = reinterpret_cast<char *>(spaces.data), *otherSpace = space + 256;
    launch(computes, fillWith, a, kSize * kSize, 1.0f);
    record(forked, computes);
    wait(sides, forked); // the matrix is there
    products.multiply(a, first, space, computes);
    products.multiply(a, second, otherSpace, sides);
    record(joined, sides);
    wait(computes, joined); // before the next step
  }

  void copyLoss(int entry) {
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(ring.data + entry, copy.data, 4, cudaMemcpyDeviceToHost, computes));
  }
  void report(int entry) {
    copyLoss(entry);
    record(reported[entry], computes);
  }
  int lossOf(int entry) {
    GENREC_CUDA_CHECK(cudaEventSynchronize(reported[entry]));
    return *const_cast<volatile int *>(ring.data + entry);
  }

  Pinned slots, ring;
  Ints state, copy, sum, matrix, spaces;
  std::vector<std::unique_ptr<Ints>> batches;
  Products products;
  cudaStream_t copies = makeStream(), computes = makeStream(), sides = makeStream();
  cudaEvent_t read[kSlots] = {makeEvent(), makeEvent()},
              copied[kSlots] = {makeEvent(), makeEvent()},
              consumed[kSlots] = {makeEvent(), makeEvent()},
              reported[kRing] = {makeEvent(), makeEvent(), makeEvent()}, forked = makeEvent(),
              joined = makeEvent();
  cudaGraphExec_t exec = nullptr;
};

class HostPipeline : public testing::Test {
protected:
  void SetUp() override { simt::options() = {.devices = kRanks}; }
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
    simt::options() = {};
  }
  static constexpr int kRanks = 2;
};

TEST_F(HostPipeline, GivesTheLossesOfTheSteps) {
  std::vector<int> expected;
  for (int step = 0, state = 0; step < kSteps; ++step) {
    state += step + 1 + 1;
    expected.push_back(2 * state);
  }
  Pipeline pipeline;
  EXPECT_EQ(pipeline.run(), expected);
}

TEST_F(HostPipeline, MayEndWhileItRuns) { std::make_unique<Pipeline>()->run(); }

/// What a rank of two does: its rows go to the other, then both add up counts.
void runRank(int rank, const ncclUniqueId *ids, std::vector<int> &result) {
  GENREC_CUDA_CHECK(cudaSetDevice(rank));
  ncclComm_t rowComm = nullptr, countComm = nullptr;
  EXPECT_EQ(ncclCommInitRank(&rowComm, 2, ids[0], rank), ncclSuccess);
  EXPECT_EQ(ncclCommInitRank(&countComm, 2, ids[1], rank), ncclSuccess);
  cudaStream_t computes = makeStream(), comms = makeStream();
  cudaEvent_t ready = makeEvent(), received = makeEvent();
  try {
    Ints rows(std::vector<int>(100, rank)), theirs(std::vector<int>(100, 0)),
        count(host({rank + 1}));
    auto swap = [&] {
      (void)ncclSend(rows.data, 100, ncclInt32, 1 - rank, rowComm, comms);
      (void)ncclRecv(theirs.data, 100, ncclInt32, 1 - rank, rowComm, comms);
    };
    auto swapRows = [&] {
      ncclGroupStart();
      swap();
      ncclGroupEnd();
    };
    auto addUp = [&] {
      (void)ncclAllReduce(count.data, count.data, 1, ncclInt32, ncclSum, countComm, comms);
    };
    launch(computes, addTo, rows.data, 100, 10);
    record(ready, computes);
    wait(comms, ready);
    swapRows();
    addUp();
    record(received, comms);
    wait(computes, received);
    launch(computes, accumulate, theirs.data, rows.data, 100);
    launch(computes, accumulate, count.data, rows.data, 1);
    GENREC_CUDA_CHECK(cudaStreamSynchronize(computes));
    result = rows.fetch();
  } catch (const CudaError &) { // TearDown says which
  }
  (void)ncclCommDestroy(rowComm);
  (void)ncclCommDestroy(countComm);
  for (cudaStream_t stream : {computes, comms})
    (void)cudaStreamDestroy(stream);
  for (cudaEvent_t event : {ready, received})
    (void)cudaEventDestroy(event);
}

TEST_F(HostPipeline, RanksExchangeRows) {
  ncclUniqueId ids[2];
  ASSERT_EQ(ncclGetUniqueId(&ids[0]), ncclSuccess);
  ASSERT_EQ(ncclGetUniqueId(&ids[1]), ncclSuccess);
  std::vector<int> results[kRanks];
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] { runRank(rank, ids, results[rank]); });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<int> expected(100, 21);
  expected[0] += 3;
  for (const std::vector<int> &result : results)
    EXPECT_EQ(result, expected);
}

} // namespace
} // namespace genrec::rt::cuda::test
