//===- hot_rows_test.cpp - Rows that keep lower halves, on a device -------===//

#include "../Runtime/hot_rows_conformance.h"
#include "cuda_store.h"

#include "genrec_rt/cuda/cached_store.h"
#include "genrec_rt/cuda/memory.h"

namespace genrec::rt::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, HotRowsConformance, CudaStore);
namespace {

std::vector<int64_t> rangeOf(int64_t first, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

/// Where the rows of `ids` have their lower halves; 0 where they have none.
std::vector<uintptr_t> lowerOf(const CudaStore &store, const std::vector<int64_t> &ids) {
  std::vector<uintptr_t> result;
  for (float *row : store.find(ids)) {
    const std::vector<float> floats = store.values(row);
    std::memcpy(&result.emplace_back(), floats.data() + storeLowerOffset(store.dim()),
                sizeof(uintptr_t));
  }
  return result;
}

TEST(CudaHotRows, BlocksThatComeBackAreTakenAgainTheLastOneFirst) {
  CudaStore store(hotConfig(4, 1));
  store.train({1, 2, 3, 2, 4, 5}, 1);
  const std::vector<uintptr_t> first = lowerOf(store, rangeOf(1, 5));
  for (size_t i = 1; i < first.size(); ++i)
    EXPECT_EQ(first[i], first[0] + 64 * i) << "by the order in which their ids appear";
  store.erase({4, 2, 4});
  store.train({7, 8, 7, 9, 8}, 2);
  EXPECT_EQ(lowerOf(store, {7, 8, 9}), (std::vector<uintptr_t>{first[1], first[3], first[4] + 64}));
}

TEST(CudaHotRows, ChunksAreAddedAndBlocksStay) {
  CudaStore store(hotConfig(2, 1));
  const std::vector<int64_t> early = rangeOf(0, 40), late = rangeOf(1000, 300);
  auto rows = store.train(early, 1);
  std::vector<float> given;
  for (int i = 0; i < 80; ++i)
    given.push_back(fromBits(0x3F801234 + static_cast<uint32_t>(i)));
  store.writeHalves(rows, given);
  store.erase(rangeOf(30, 10));
  store.train(rangeOf(1000, 120), 2);
  for (int64_t step = 3; step < 6; ++step)
    store.train(rangeOf(1120 + (step - 3) * 60, 60), step);
  const std::vector<uintptr_t> blocks = lowerOf(store, late);
  EXPECT_EQ(std::set<uintptr_t>(blocks.begin(), blocks.end()).size(), 300U);
  EXPECT_EQ(store.hotRows(), 330);
  EXPECT_EQ(store.halves(store.find(rangeOf(0, 30))),
            std::vector<float>(given.begin(), given.begin() + 60));
}

TEST(CudaHotRows, LeaveNoMemoryBehind) {
  const int64_t before = cuda::namedBytes("movie");
  {
    CudaStore store(hotConfig(2, 1));
    store.train(rangeOf(0, 100), 1);
    EXPECT_EQ(store.hotRows(), 100);
    EXPECT_GT(cuda::namedBytes("movie.lower_halves"), 0);
  }
  EXPECT_EQ(cuda::namedBytes("movie"), before);
}

#if defined(GENREC_SIMT)
/// Nobody else has to wait for them.
TEST(CudaHotRows, HalvesAreWrittenWhenTheCallReturns) {
  CudaStore store(hotConfig(2, 1));
  cuda::test::Copy<float *> rows(store.train({7}, 1));
  const float given[] = {fromBits(0x3F801234), fromBits(0xBF805678)};
  store.storeOnDevice().writeHalves(cuda::test::onTestStream(), rows.data(), 1, given);
  cudaStream_t other = nullptr;
  GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  float values[2] = {};
  store.storeOnDevice().readHalves(StoreStream::ofDevice(other), rows.data(), 1, values);
  EXPECT_THAT(values, testing::ElementsAreArray(given));
  GENREC_CUDA_CHECK(cudaStreamDestroy(other));
}
#endif

TEST(CudaHotRows, NothingIsAllocatedInTheSteadyState) {
  CudaStore store(hotConfig(4, 2, {.bound = 50, .ttl = 9}));
  int64_t before = 0;
  for (int64_t step = 1; step <= 24; ++step) {
    std::vector<int64_t> ids = rangeOf(step / 3 * 20, 40);
    store.train(ids, step);
    store.evict(step);
    if (step == 18)
      before = cuda::namedAllocations("movie");
  }
  EXPECT_EQ(cuda::namedAllocations("movie"), before);
  EXPECT_GT(store.hotRows(), 20);
}

/// All tables of a session together; where that is too few it makes room for all ids of a batch.
TEST(CudaHotRows, AStepWaitsOnceAtMost) {
  cuda::StoreStep step;
  cuda::StoreOptions options;
  options.step = &step;
  CudaStore first(hotConfig(4, 2), options), second(hotConfig(70, 3), options);
  int64_t steady = 0;
  for (int64_t number = 1; number <= 15; ++number) {
    ++step.number;
    step.hasWaited = false;
    // Arrays of the tests' own are copied before and behind: their waits are not counted.
    const int64_t before = cuda::streamWaits();
    const auto ids = rangeOf(std::min<int64_t>(number, 8) / 4 * 40, 80);
    cuda::test::Copy<int64_t> onDevice(ids);
    cuda::test::Copy<float *> rows(std::vector<float *>(ids.size(), nullptr));
    for (CudaStore *store : {&first, &second})
      store->storeOnDevice().findOrAdmit(cuda::test::onTestStream(), onDevice.data(), nullptr, 80,
                                         number, rows.data(), nullptr);
    EXPECT_LE(cuda::streamWaits() - before, 1) << number;
    steady += number > 12 ? cuda::streamWaits() - before : 0;
  }
  EXPECT_EQ(first.hotRows(), 160);
  EXPECT_EQ(second.hotRows(), 160);
  EXPECT_EQ(steady, 0) << "there is room ahead";
}

TEST(CudaHotRows, ATableInHostMemoryHasNone) {
  const char *said = "table 'movie' has hot rows and its values in host memory";
  try {
    cuda::CachedStore store(hotConfig(4, 3), "movie", 8, nullptr);
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), said);
    EXPECT_EQ(error.help(), "keep its values on the device, or leave 'hot_after' out");
  }
}

#if defined(GENREC_SIMT)
/// Threads in many orders, giving way often: many positions of an id, of rows that become hot.
class HotRowOrders : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, HotRowOrders, testing::Range<uint64_t>(1, 4));

TEST_P(HotRowOrders, GiveTheSameBlocks) {
  std::mt19937_64 random(2);
  std::vector<std::vector<int64_t>> steps(5, std::vector<int64_t>(400));
  for (std::vector<int64_t> &ids : steps)
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 60);
  auto train = [&](uint64_t seed, uint32_t preemptOneIn) {
    simt::options() = {.seed = seed, .residentBlocks = 4, .preemptOneIn = preemptOneIn};
    CudaStore store(hotConfig(2, 2));
    for (size_t step = 0; step < steps.size(); ++step) {
      store.train(steps[step], static_cast<int64_t>(step) + 1);
      if (step == 2)
        store.erase(rangeOf(10, 30));
    }
    simt::options() = {};
    // Blocks of one chunk, from that of id 40 on.
    std::vector<uintptr_t> blocks = lowerOf(store, rangeOf(0, 60));
    const uintptr_t begin = blocks[40];
    for (uintptr_t &block : blocks)
      block = block ? block - begin : 1;
    return blocks;
  };
  EXPECT_EQ(train(GetParam(), 3), train(100, 64));
}
#endif

} // namespace
} // namespace genrec::rt::test
