// The parallel-for: every chunk once, boundaries that depend on count and
// grain only, nesting, several callers, worker indices.

#include "test_pool.h"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

using genrec::rt::parallelFor;
using genrec::rt::test::TestPool;

TEST(ThreadPool, EveryChunkOnceWithFixedBoundaries) {
  for (int threads : {1, 2, 3, 8}) {
    TestPool p(threads);
    ASSERT_NE(p.pool, nullptr);
    EXPECT_EQ(genrec_rt_pool_threads(p.pool), threads);
    for (int64_t count : {0, 1, 2, 7, 63, 64, 65, 1000})
      for (int64_t grain : {-1, 0, 1, 2, 64, 2000}) {
        int64_t step = grain < 1 ? 1 : grain;
        int64_t chunks = count == 0 ? 0 : (count - 1) / step + 1;
        std::vector<std::atomic<int>> runs(static_cast<size_t>(chunks));
        parallelFor(p.pool, count, grain, [&](int64_t begin, int64_t end, int64_t chunk) {
          ASSERT_LT(chunk, chunks);
          EXPECT_EQ(begin, chunk * step);
          EXPECT_EQ(end, std::min(count, begin + step));
          ++runs[static_cast<size_t>(chunk)];
        });
        for (auto &n : runs)
          EXPECT_EQ(n, 1);
      }
  }
}

TEST(ThreadPool, NullPoolRunsInOrderOnTheCaller) {
  std::vector<int64_t> order;
  parallelFor(nullptr, 10, 3, [&](int64_t begin, int64_t, int64_t) { order.push_back(begin); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 3, 6, 9}));
  EXPECT_EQ(genrec_rt_pool_threads(nullptr), 1);
  genrec_rt_pool_destroy(nullptr);
}

TEST(ThreadPool, ThreadsBelowOneCountAsOne) {
  TestPool p(-3);
  EXPECT_EQ(genrec_rt_pool_threads(p.pool), 1);
}

TEST(ThreadPool, WorkerIndicesAreNeverSharedAtOneTime) {
  TestPool p(4);
  std::atomic<int> busy[4] = {};
  std::atomic<bool> shared{false};
  for (int round = 0; round < 200; ++round)
    parallelFor(p.pool, 64, 1, [&](int64_t, int64_t, int64_t) {
      int32_t worker = genrec_rt_worker_index();
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, 4);
      if (busy[worker]++ != 0)
        shared = true;
      --busy[worker];
    });
  EXPECT_FALSE(shared);
  EXPECT_EQ(genrec_rt_worker_index(), 0);
}

TEST(ThreadPool, NestedCallsRunInlineOnTheSameWorker) {
  TestPool p(3);
  std::atomic<int64_t> total{0};
  parallelFor(p.pool, 10, 1, [&](int64_t, int64_t, int64_t) {
    std::thread::id outer = std::this_thread::get_id();
    int32_t worker = genrec_rt_worker_index();
    parallelFor(p.pool, 10, 1, [&](int64_t begin, int64_t, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      EXPECT_EQ(genrec_rt_worker_index(), worker);
      total += begin;
    });
  });
  EXPECT_EQ(total, 450);
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  TestPool p(2);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round)
        parallelFor(p.pool, 20, 3, [&](int64_t begin, int64_t end, int64_t) { total += end - begin; });
    });
  for (std::thread &caller : callers)
    caller.join();
  EXPECT_EQ(total, 4 * 300 * 20);
}

TEST(ThreadPool, ManyShortJobsAndIdleWorkers) {
  TestPool p(4);
  int64_t total = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<int64_t> parts(8);
    parallelFor(p.pool, 8, 1, [&](int64_t begin, int64_t, int64_t chunk) { parts[static_cast<size_t>(chunk)] = begin; });
    for (int64_t part : parts)
      total += part;
    // Long enough for the workers to fall asleep, now and then.
    if (round % 500 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(total, 3000 * 28);
}

TEST(ThreadPool, WhatAChunkThrowsIsThrownByTheCaller) {
  for (int threads : {1, 2, 4}) {
    TestPool p(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int64_t> begun{0};
      try {
        parallelFor(p.pool, 10000, 1, [&](int64_t begin, int64_t, int64_t) {
          ++begun;
          if (begin >= 20)
            throw std::runtime_error("chunk " + std::to_string(begin));
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error &error) {
        EXPECT_EQ(std::string(error.what()).substr(0, 6), "chunk ");
      }
      EXPECT_LT(begun, 1000); // the others were not begun
      EXPECT_EQ(genrec_rt_worker_index(), 0);
      // The pool does its work as before, from inside of a chunk, too.
      std::atomic<int64_t> total{0};
      parallelFor(p.pool, 100, 1, [&](int64_t, int64_t, int64_t) {
        parallelFor(p.pool, 3, 1, [&](int64_t, int64_t, int64_t) { ++total; });
      });
      EXPECT_EQ(total, 300);
    }
  }
}

} // namespace
