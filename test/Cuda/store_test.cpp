//===- store_test.cpp - The embedding store on a device -------------------===//

#include "../Runtime/store_conformance.h"
#include "cuda_store.h"

#include "genrec_rt/cuda/memory.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <map>

namespace genrec::rt::test {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, StoreConformance, CudaStore);

namespace {

using Row = float *;

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

/// How many keys lie where their search begins: in the bucket, and in its sector.
struct KeyPlaces {
  int64_t inFirstBucket = 0, atHome = 0;

  explicit KeyPlaces(const cuda::KeyTable &table) {
    std::vector<uint8_t> digests(static_cast<size_t>(table.slots()));
    GENREC_CUDA_CHECK(
        cudaMemcpy(digests.data(), table.digests, digests.size(), cudaMemcpyDeviceToHost));
    for (size_t slot = 0; slot < digests.size(); ++slot) {
      if (digests[slot] < 2) // empty or erased
        continue;
      cuda::KeySlot held;
      GENREC_CUDA_CHECK(cudaMemcpy(&held, table.keys + slot, sizeof(held), cudaMemcpyDeviceToHost));
      const uint64_t hash = table.hashOf(held.key);
      const bool isFirst = table.firstBucket(hash) == slot / cuda::kBucketSlots;
      inFirstBucket += isFirst;
      atHome += isFirst && table.home(hash) == slot % cuda::kBucketSlots / cuda::kHomeSlots;
    }
  }
};

TEST(CudaStore, KeysAreAtHomeWhileItHasRoom) {
  std::vector<int64_t> ids(64);
  std::iota(ids.begin(), ids.end(), 1000);
  CudaStore store(configOf(1, 0));
  store.insert(ids);
  EXPECT_EQ(KeyPlaces(store.keyTable()).atHome, 64);
}

/// Up to 256 ids of one bucket, home and digest.
std::vector<int64_t> idsOfOneHome(int64_t count) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(idOfHash(uint64_t(0x5A) << 57 | uint64_t(2) << 54 | uint64_t(0x123) << 32 |
                           static_cast<uint64_t>(i) << 20 | 0x777));
  return ids;
}

TEST(CudaStore, ErasingFromAFullHomeHidesNobody) {
  const auto ids = idsOfOneHome(48); // 32 at home, 16 beside it, in a bucket that is not full
  CudaStore store(configOf(2, 0));
  const auto rows = store.insert(ids);
  EXPECT_EQ(KeyPlaces(store.keyTable()).atHome, 32);
  store.erase({ids.begin(), ids.begin() + 20});
  const std::vector<int64_t> kept(ids.begin() + 20, ids.end());
  EXPECT_EQ(store.find(kept), (std::vector<Row>(rows.begin() + 20, rows.end())));
  int64_t missing = 0;
  store.find({ids.begin(), ids.begin() + 20}, &missing);
  EXPECT_EQ(missing, 20);
  EXPECT_EQ(store.ids(), kept);
}

TEST(CudaStore, IdsMadeToCollideDoNot) {
  constexpr int64_t kIds = 1000;
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < kIds; ++i)
    ids.push_back(idOfHash(i << 20 | 0x777));
  StoreConfig config = configOf(1, 0);
  CudaStore unseeded(config);
  unseeded.insert(ids);
  EXPECT_LE(KeyPlaces(unseeded.keyTable()).inFirstBucket, cuda::kBucketSlots);
  config.hashSeed = StoreConfig().hashSeed; // as a session makes its stores
  EXPECT_EQ(config.hashSeed, processHashSeed());
  CudaStore seeded(config);
  seeded.insert(ids);
  EXPECT_GT(KeyPlaces(seeded.keyTable()).inFirstBucket, kIds * 9 / 10);
}

TEST(CudaStore, NothingIsAllocatedInTheSteadyState) {
  CudaStore store(configOf(8, 2));
  std::vector<int64_t> ids(500);
  std::iota(ids.begin(), ids.end(), 0);
  store.insert(ids);
  store.insert(ids);
  int64_t before = cuda::namedAllocations("movie");
  for (int round = 0; round < 3; ++round) {
    store.insert(ids);
    store.find(ids);
  }
  EXPECT_EQ(cuda::namedAllocations("movie"), before);
}

#if defined(GENREC_SIMT)
TEST(CudaStore, OutOfMemorySaysWhichBuffersHoldWhat) {
  CudaStore other(configOf(8, 2));
  void *elsewhere = cuda::allocateNamedHost("elsewhere", 16 << 20);
  simt::options().deviceBytes = simt::bytesInUse() + (1 << 20);
  std::string message;
  try {
    CudaStore store(configOf(64, 2));
  } catch (const Error &error) {
    EXPECT_THAT(error.help(), testing::HasSubstr("--host-tables"));
    message = error.what();
  }
  simt::options() = {};
  cuda::freeNamedHost(elsewhere);
  EXPECT_THAT(message,
              testing::MatchesRegex(
                  "out of device memory: [0-9]+\\.[0-9] MiB asked for 'movie.values', .* are free; "
                  "held by movie.values [0-9]+\\.[0-9] MiB, movie.chunks .*"));
}

/// None of them is read: so many have no memory here.
TEST(CudaStore, MoreIdsThanItHasRoomForAreRefused) {
  CudaStore store(configOf(1, 0));
  simt::options().deviceBytes = simt::bytesInUse() + (1 << 20); // where they are not refused
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  std::string message;
  try {
    store.storeOnDevice().insertAndEvict(cuda::test::onTestStream(), nullptr, nullptr, kMost + 1,
                                         nullptr, {});
  } catch (const Error &error) {
    message = error.what();
  }
  simt::options() = {};
  EXPECT_THAT(message, testing::HasSubstr("at most " + std::to_string(kMost) +
                                          " may be looked up at once in table 'movie'"));
}

/// The rows of chunks whose addresses ascend, or descend.
class StoreChunks : public testing::TestWithParam<simt::Addresses> {};
INSTANTIATE_TEST_SUITE_P(Addresses, StoreChunks,
                         testing::Values(simt::Addresses::ascending, simt::Addresses::descending));

TEST_P(StoreChunks, RowsHaveTheirIdentitiesWhereverChunksAre) {
  simt::options().addresses = GetParam();
  StoreConfig config = configOf(4, 250);
  config.element = RowElement::bf16;
  CudaStore store(config);
  std::vector<Row> rows;
  std::vector<uint64_t> expected;
  for (int64_t part = 0; part < 2; ++part) {
    std::vector<int64_t> ids(1500);
    std::iota(ids.begin(), ids.end(), part * 1500);
    const std::vector<Row> made = store.insert(ids);
    rows.insert(rows.end(), {made.front(), made[700], made.back()});
    for (int64_t id : {ids.front(), ids[700], ids.back()})
      expected.push_back(config.identityOf(id));
  }
  EXPECT_GE(store.valueBytes(), 2 * 2048 * 4 * 1002) << "two chunks";
  EXPECT_EQ(store.identities(rows), expected);
  simt::options() = {};
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
