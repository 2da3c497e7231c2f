//===- cached_store_test.cpp - Rows of bfloat16, rows in host memory ------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "../Runtime/store_conformance.h"
#include "cuda_store.h"
#include "row_steps.h"

#include "genrec_rt/cuda/cached_store.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/rows.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>

namespace genrec::rt::test {
namespace {

using cuda::Bf16;
using cuda::CachedStore;
using cuda::CacheLimit;
using cuda::StoreOptions;
using cuda::ValueMemory;
using cuda::test::Copy;
using cuda::test::testStream;
using Row = float *;

/// CudaStore with values in host memory: the same suites as on the device.
class HostStore : public CudaStore {
public:
  explicit HostStore(const StoreConfig &config)
      : CudaStore(config, StoreOptions{{}, ValueMemory::host}) {}
};

/// CachedStore with the host's values. Without `step` all calls are of one step.
class Cached : public HostSide {
public:
  static constexpr int64_t kMany = 500; // each id is searched in two tables

  explicit Cached(const StoreConfig &config, int64_t cachedRows = 100,
                  cuda::StoreStep *step = nullptr)
      : HostSide(store, cuda::test::onTestStream()),
        store(config, "movie", cachedRows, cuda::test::testStream(), StoreOptions{.step = step}) {}

  int64_t slots() const { return store.slots(); }
  int64_t keyBytes() const { return store.keyBytes(); }
  int64_t valueBytes() const { return store.valueBytes(); }
  int64_t uncached() const { return store.uncached(cuda::test::testStream()); }

private:
  CachedStore store;
};

} // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(CudaHostValues, StoreConformance, HostStore);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaCached, StoreConformance, Cached);

namespace {

/// Columns of a row of bfloat16, as floats.
std::vector<float> bf16Values(const std::vector<float> &row, int64_t dim) {
  std::vector<float> values;
  for (int64_t c = 0; c < dim; ++c) {
    Bf16 element;
    std::memcpy(&element, reinterpret_cast<const char *>(row.data()) + 2 * c, 2);
    values.push_back(toFloat(element));
  }
  return values;
}

TEST(CudaBf16Store, InitialValuesAreThoseOfFloatsRounded) {
  for (int64_t dim : {4, 5, 50, 128, 511, 512}) {
    StoreConfig config = configOf(dim, 2);
    config.initialAccumulator = 0.25;
    config.element = RowElement::bf16;
    CudaStore store(config, StoreOptions{});
    const int64_t valueFloats = (dim + 1) / 2;
    EXPECT_EQ(store.rowStride(), (valueFloats + 2 * dim + 15) / 16 * 16);
    const auto rows = store.insert({7, 8, 7});
    EXPECT_EQ(rows[0], rows[2]);
    const std::vector<float> row = store.values(rows[1]);
    std::vector<float> expected(static_cast<size_t>(dim));
    config.initializer.fill(8, dim, expected.data());
    for (float &value : expected)
      value = toFloat(cuda::fromFloat<Bf16>(value));
    EXPECT_EQ(bf16Values(row, dim), expected) << dim;
    for (int64_t i = 0; i < 2 * dim; ++i)
      ASSERT_EQ(row[static_cast<size_t>(valueFloats + i)], i < dim ? 0.25f : 0.0f) << i;
  }
}

TEST(CudaBf16Store, RowsAreGatheredAndUpdated) {
  constexpr int64_t kDim = 6;
  StoreConfig config = configOf(kDim, 1);
  config.element = RowElement::bf16;
  CudaStore store(config, StoreOptions{});
  const auto rows = store.insert({3, 4});
  Copy<Bf16 *> places({reinterpret_cast<Bf16 *>(rows[0]), reinterpret_cast<Bf16 *>(rows[1])});
  Copy<uint32_t> order({0, 1, 2});
  Copy<int64_t> segments({0, 2, 3});
  Copy<float> gradients(std::vector<float>(3 * kDim, 0.5f));
  const std::vector<float> before = bf16Values(store.values(rows[0]), kDim);
  cuda::SegmentReduction reduction("test");
  Copy<cuda::SegmentSums> made{std::vector<cuda::SegmentSums>(1)};
  reduction.run(2, nullptr, kDim, {gradients.data(), kDim, nullptr, nullptr, order.data()},
                segments.data(), 3, made.data(), nullptr, testStream());
  cuda::test::launchStep<Bf16, kDim>(places.data(), 2, nullptr, made.data(),
                                     cuda::test::Accumulate{0.1f}, testStream());
  const std::vector<float> row = store.values(rows[0]);
  // The sum of gradients is 1, and so is the state behind the values: half a step of the rate.
  const std::vector<float> after = bf16Values(row, kDim);
  for (size_t c = 0; c < kDim; ++c) {
    EXPECT_NEAR(after[c], before[c] - 0.05f, 0.002f);
    EXPECT_EQ(row[kDim / 2 + c], 1.0f);
  }
  Copy<const Bf16 *> from(
      {reinterpret_cast<const Bf16 *>(rows[0]), static_cast<const Bf16 *>(nullptr)});
  Copy<Bf16> out{std::vector<Bf16>(2 * kDim)};
  cuda::gatherRows<Bf16>(from.data(), 2, kDim, out.data(), kDim, testStream());
  const std::vector<Bf16> gathered = out.fetch();
  for (size_t c = 0; c < kDim; ++c) {
    EXPECT_EQ(toFloat(gathered[c]), after[c]);
    EXPECT_EQ(toFloat(gathered[kDim + c]), 0.0f);
  }
}

/// Value and state in column 0 of every row, by id.
using Contents = std::map<int64_t, std::pair<float, float>>;

Contents contentsOf(const Cached &cached, int64_t dim) {
  Contents result;
  for (const auto &[id, row] : cached.exported()) {
    const std::vector<float> values = cached.values(row);
    result[id] = {values[0], values[static_cast<size_t>(dim)]};
  }
  return result;
}

TEST(CudaCachedStore, BytesAreThoseOfTableAndCache) {
  constexpr int64_t kSlots = 384; // of a cache of 300 rows
  const StoreConfig config = configOf(2, 0);
  const Cached store(config, 300);
  EXPECT_EQ(store.keyBytes(), HostStore(config).keyBytes() + kSlots * (1 + 8 + 1 + 8))
      << "a digest, a key, a mark, and where the row is in the host's memory";
  EXPECT_EQ(store.valueBytes(), HostStore(config).valueBytes() + kSlots * store.rowStride() * 4);
}

/// Steps of up to three lookups, whose rows are all written at its end.
TEST(CudaCachedStore, IsATableWhateverTheCacheHolds) {
  constexpr int64_t kDim = 5;
  for (int64_t cachedRows : {7, 130, 5000}) {
    const StoreConfig config = configOf(kDim, 1);
    cuda::StoreStep step;
    Cached cached(config, cachedRows, &step);
    Contents expected;
    std::mt19937_64 random(11);
    for (int round = 0; round < 10; ++round) {
      ++step.number;
      std::map<int64_t, Row> rowOf;
      std::vector<int64_t> ids;
      for (uint64_t call = 0, calls = random() % 3 + 1; call < calls; ++call) {
        ids.resize(random() % 40 + 1);
        for (int64_t &id : ids)
          id = static_cast<int64_t>(random() % 400);
        const auto rows = cached.insert(ids);
        for (size_t i = 0; i < ids.size(); ++i) {
          ASSERT_NE(rows[i], nullptr);
          ASSERT_EQ(rowOf.try_emplace(ids[i], rows[i]).first->second, rows[i])
              << "id " << ids[i] << " has moved within step " << round;
        }
      }
      for (const auto &[id, row] : rowOf) {
        if (!expected.count(id)) {
          float values[kDim];
          config.initializer.fill(static_cast<uint64_t>(id), kDim, values);
          expected[id] = {values[0], 0.0f};
        }
        auto &[value, state] = expected[id];
        const std::vector<float> now = cached.values(row);
        ASSERT_EQ(now[0], value) << "id " << id << " step " << round;
        ASSERT_EQ(now[kDim], state);
        cached.write(row, 0, value += 1);
        cached.write(row, kDim, state += 2);
      }
      if (round % 5 == 4) {
        cached.erase(ids);
        for (int64_t id : ids)
          expected.erase(id);
      }
      const auto found = cached.find(ids);
      for (size_t i = 0; i < ids.size(); ++i) {
        ASSERT_EQ(found[i] != nullptr, expected.count(ids[i]) == 1);
        if (found[i])
          ASSERT_EQ(cached.values(found[i])[0], expected[ids[i]].first);
      }
      if (round % 4 == 3)
        ASSERT_EQ(contentsOf(cached, kDim), expected);
    }
    EXPECT_EQ(contentsOf(cached, kDim), expected) << cachedRows;
    EXPECT_EQ(cached.uncached() > 0, cachedRows == 7);
    cached.clear();
    EXPECT_EQ(cached.size(), 0);
    EXPECT_EQ(cached.find({1, 2})[0], nullptr);
  }
}

TEST(CudaCachedStore, NothingIsAllocatedInTheSteadyState) {
  cuda::StoreStep step;
  Cached cached(configOf(4, 0), 256, &step);
  std::vector<int64_t> ids(300);
  std::iota(ids.begin(), ids.end(), 0);
  for (int round = 0; round < 2; ++round) {
    ++step.number;
    cached.insert(ids);
  }
  const int64_t before = cuda::namedAllocations("movie");
  for (int round = 0; round < 3; ++round) {
    for (int64_t &id : ids)
      id += 10;
    ++step.number;
    cached.insert(ids);
  }
  EXPECT_EQ(cuda::namedAllocations("movie"), before);
}

std::string refusalOf(const StoreConfig &config, int64_t cachedRows) {
  try {
    CachedStore store(config, "movie", cachedRows, testStream());
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(CudaCachedStore, WhatCannotBeCachedIsRefused) {
  StoreConfig config = configOf(4, 0);
  for (int64_t rows : {int64_t(-1), int64_t(0), int64_t(1) << 31})
    EXPECT_EQ(refusalOf(config, rows), "cache 'movie' of " + std::to_string(rows) +
                                           " rows: a cache has from 1 to 2147483647");
  config.rules.bound = 8;
  EXPECT_THAT(refusalOf(config, 128), testing::HasSubstr("table 'movie' has rules about rows"));
}

} // namespace
} // namespace genrec::rt::test
