//===- hot_rows_test.cpp - Hot rows of the host's store -------------------===//
//
// What hot_rows_conformance.h does not say, as it is of this store alone: bytes, and threads.
//
//===----------------------------------------------------------------------===//

#include "host_side.h"
#include "hot_rows_conformance.h"
#include "test_pool.h"

#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/store.h"

#include <gtest/gtest.h>

#include <random>

namespace genrec::rt::test {
namespace {

const uint16_t *lowerOf(const EmbeddingStore &store, float *row) {
  const uint16_t *lower = kernels::lowerHalves(row, storeLowerOffset(store.configuration().dim));
  return kernels::isHot(row, lower) ? lower : nullptr;
}

float *see(EmbeddingStore &store, int64_t id, int64_t step) {
  float *row = nullptr;
  store.findOrAdmit({}, &id, nullptr, 1, step, &row, nullptr);
  return row;
}

TEST(HotRows, TakeABlockMore) {
  EmbeddingStore store(hotConfig(3, 3, {.ttl = 4}));
  const int64_t plain = store.valueBytes();
  for (int64_t step : {1, 2})
    see(store, 7, step);
  EXPECT_EQ(store.valueBytes(), plain + store.rowStride() * 4);
  see(store, 7, 9);
  EXPECT_EQ(store.valueBytes(), plain + store.rowStride() * 4 + 64);
  store.evict({}, 13, -1);
  EXPECT_EQ(store.valueBytes(), plain);
  for (int64_t step : {14, 15, 16})
    see(store, 1, step);
  store.clear({});
  EXPECT_EQ(store.valueBytes(), 0);
  see(store, 1, 17);
  EXPECT_EQ(store.valueBytes(), store.rowStride() * 4);
}

TEST(HotRows, AreTheSameAtAnyNumberOfThreads) {
  const RowRules rules{.ttl = 6, .admitAfter = 2};
  EmbeddingStore one(hotConfig(8, 4, rules)), many(hotConfig(8, 4, rules));
  TestPool four(4);
  std::mt19937_64 random(12);
  std::vector<int64_t> ids(20000);
  std::vector<float *> rows(ids.size());
  for (int64_t step = 1; step <= 20; ++step) {
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % 3000 * (random() % 10));
    one.findOrAdmit({}, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    many.findOrAdmit(four.pool, ids.data(), nullptr, 20000, step, rows.data(), nullptr);
    one.evict({}, step, -1);
    many.evict(four.pool, step, -1);
    ASSERT_EQ(one.size(), many.size());
    ASSERT_EQ(one.valueBytes(), many.valueBytes());
  }
  int64_t hot = 0;
  for (int64_t number = 0; number < one.size(); ++number) {
    const bool isHot = lowerOf(one, one.row(number)) != nullptr;
    hot += isHot;
    ASSERT_EQ(isHot, lowerOf(many, many.row(number)) != nullptr);
  }
  EXPECT_GT(hot, 100);
  EXPECT_LT(hot, one.size());
}

} // namespace
} // namespace genrec::rt::test
