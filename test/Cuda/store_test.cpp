//===- store_test.cpp - The embedding store on a device -------------------===//

#include "../Runtime/store_conformance.h"
#include "device_copy.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/cuda/store.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <map>

namespace genrec::rt::test {
namespace {

using Row = float *;
using cuda::test::Copy;

/// cuda::EmbeddingStore as the conformance suite sees a store.
class CudaStore {
public:
#if defined(GENREC_SIMT)
  static constexpr int64_t kMany = 1500;
#else
  static constexpr int64_t kMany = 200000;
#endif

  explicit CudaStore(const StoreConfig &config) : store(config, "movie", nullptr) {}

  std::vector<Row> insert(const std::vector<int64_t> &ids, const std::vector<uint8_t> &valid = {},
                          Row untouched = nullptr) {
    Copy<int64_t> onDevice(ids);
    Copy<uint8_t> mask(valid);
    Copy<Row> rows(std::vector<Row>(ids.size(), untouched));
    store.findOrInsert(onDevice.data(), valid.empty() ? nullptr : mask.data(),
                       static_cast<int64_t>(ids.size()), rows.data(), nullptr);
    return rows.fetch();
  }
  std::vector<Row> find(const std::vector<int64_t> &ids, int64_t *missing = nullptr) const {
    Copy<int64_t> onDevice(ids);
    Copy<Row> rows(std::vector<Row>(ids.size(), nullptr));
    Copy<uint32_t> count({0});
    store.find(onDevice.data(), nullptr, static_cast<int64_t>(ids.size()), rows.data(),
               count.data(), nullptr);
    if (missing)
      *missing = count.fetch()[0];
    return rows.fetch();
  }
  void erase(const std::vector<int64_t> &ids) {
    Copy<int64_t> onDevice(ids);
    store.erase(onDevice.data(), static_cast<int64_t>(ids.size()), nullptr);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::vector<float> values(Row row) const {
    std::vector<float> result(static_cast<size_t>(store.rowStride()));
    GENREC_CUDA_CHECK(cudaMemcpy(result.data(), row, result.size() * 4, cudaMemcpyDeviceToHost));
    return result;
  }
  void write(Row row, int64_t column, float value) {
    GENREC_CUDA_CHECK(cudaMemcpy(row + column, &value, 4, cudaMemcpyHostToDevice));
  }
  std::vector<std::pair<int64_t, Row>> exported() {
    const auto numbers = static_cast<size_t>(store.numbersInUse(nullptr));
    Copy<int64_t> ids(std::vector<int64_t>(numbers, 0));
    Copy<Row> rows(std::vector<Row>(numbers, nullptr));
    int64_t count = store.exportRows(ids.data(), rows.data(), nullptr);
    std::vector<int64_t> all = ids.fetch();
    std::vector<Row> places = rows.fetch();
    std::vector<std::pair<int64_t, Row>> result;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      result.push_back({all[i], places[i]});
    return result;
  }
  std::vector<int64_t> ids() {
    std::vector<int64_t> result;
    for (auto &[id, row] : exported())
      result.push_back(id);
    return result;
  }
  int64_t size() { return store.size(nullptr); }
  int64_t slots() const { return store.slots(); }
  int64_t rowStride() const { return store.rowStride(); }
  void clear() { store.clear(nullptr); }

private:
  cuda::EmbeddingStore store;
};

} // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StoreConformance, CudaStore);

namespace {

TEST(CudaStore, ErasedIdsAreGoneAndTheirRowsComeBack) {
  CudaStore store(configOf(4, 1));
  auto rows = store.insert({10, 11, 12, 13, 14});
  store.erase({13, 99, 11, 13});
  EXPECT_EQ(store.size(), 3);
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{10, 12, 14}));
  EXPECT_EQ(store.find({10, 11, 12, 13, 14}),
            (std::vector<Row>{rows[0], nullptr, rows[2], nullptr, rows[4]}));
  // 13 was erased before 11: 11's row comes back first, with new initial values.
  store.write(rows[1], 0, 99);
  auto again = store.insert({20, 10, 21, 22});
  EXPECT_EQ(again[0], rows[1]);
  EXPECT_EQ(again[2], rows[3]);
  EXPECT_NE(store.values(again[0])[0], 99.0f);
  EXPECT_EQ(store.ids(), (std::vector<int64_t>{10, 20, 12, 21, 14, 22}));
  store.erase({});
  EXPECT_EQ(store.size(), 6);
}

TEST(CudaStore, ErasingFromFullBucketsHidesNobody) {
  // 300 ids of one bucket: two full buckets and a part of a third.
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < 300; ++i)
    ids.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(0x123) << 32 | i << 20 | 0x777));
  CudaStore store(configOf(2, 0));
  auto rows = store.insert(ids);
  std::vector<int64_t> erased, kept;
  std::vector<Row> keptRows;
  for (size_t i = 0; i < ids.size(); ++i) {
    (i % 3 == 0 ? erased : kept).push_back(ids[i]);
    if (i % 3)
      keptRows.push_back(rows[i]);
  }
  store.erase(erased);
  EXPECT_EQ(store.find(kept), keptRows);
  int64_t missing = 0;
  store.find(erased, &missing);
  EXPECT_EQ(missing, 100);
  EXPECT_EQ(store.ids(), kept);
}

TEST(CudaStore, SlotsOfErasedIdsAreUsedAgain) {
  CudaStore store(configOf(1, 0));
  int64_t slots = store.slots();
  for (int64_t round = 0; round < 12; ++round) {
    std::vector<int64_t> ids(100);
    std::iota(ids.begin(), ids.end(), round * 1000);
    store.insert(ids);
    store.erase(ids);
    EXPECT_EQ(store.size(), 0);
  }
  EXPECT_EQ(store.slots(), slots) << "1,200 ids came and went: the table need not grow";
}

/// Erasing and inserting at random, beside a map.
TEST(CudaStore, AgreesWithAMap) {
  CudaStore store(configOf(2, 0));
  std::map<int64_t, Row> expected;
  std::mt19937_64 random(5);
  for (int round = 0; round < 8; ++round) {
    std::vector<int64_t> ids(100);
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 400);
    if (round % 2) {
      store.erase(ids);
      for (int64_t id : ids)
        expected.erase(id);
    } else {
      auto rows = store.insert(ids);
      for (size_t i = 0; i < ids.size(); ++i) {
        auto [entry, isNew] = expected.try_emplace(ids[i], rows[i]);
        EXPECT_EQ(entry->second, rows[i]);
      }
    }
    auto exported = store.exported();
    EXPECT_EQ((std::map<int64_t, Row>(exported.begin(), exported.end())), expected);
    std::set<Row> rows;
    for (auto &[id, row] : exported)
      rows.insert(row);
    EXPECT_EQ(rows.size(), expected.size()) << "no two ids share a row";
  }
}

TEST(CudaStore, NothingIsAllocatedInTheSteadyState) {
  CudaStore store(configOf(8, 2));
  std::vector<int64_t> ids(500);
  std::iota(ids.begin(), ids.end(), 0);
  store.insert(ids);
  store.insert(ids);
  int64_t before = cuda::namedAllocations();
  for (int round = 0; round < 3; ++round) {
    store.insert(ids);
    store.find(ids);
  }
  EXPECT_EQ(cuda::namedAllocations(), before);
}

#if defined(GENREC_SIMT)
TEST(CudaStore, OutOfMemorySaysWhichBuffersHoldWhat) {
  CudaStore other(configOf(8, 2));
  simt::options().deviceBytes = simt::bytesInUse() + (1 << 20);
  std::string message;
  try {
    CudaStore store(configOf(64, 2));
  } catch (const cuda::CudaError &error) {
    EXPECT_EQ(error.status, cudaErrorMemoryAllocation);
    message = error.what();
  }
  simt::options() = {};
  EXPECT_THAT(message,
              testing::MatchesRegex(
                  "out of device memory: [0-9.]+ MiB asked for 'movie.values', .* are free; "
                  "held by movie.values [0-9.]+ MiB, movie.chunks .*"));
}

/// Threads in many orders, giving way often: concurrent inserts of the same ids into few buckets.
class StoreOrders : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StoreOrders, testing::Range<uint64_t>(1, 7));

TEST_P(StoreOrders, GiveTheSameRows) {
  std::vector<int64_t> ids(400);
  std::mt19937_64 random(2);
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % 150) * 3;
  auto insertAll = [&](uint64_t seed, uint32_t preemptOneIn) {
    simt::options() = {.seed = seed, .residentBlocks = 4, .preemptOneIn = preemptOneIn};
    CudaStore store(configOf(2, 0));
    store.insert(ids);
    simt::options() = {};
    return store.ids();
  };
  EXPECT_EQ(insertAll(GetParam(), 3), insertAll(100, 64));
}
#endif

} // namespace
} // namespace genrec::rt::test
