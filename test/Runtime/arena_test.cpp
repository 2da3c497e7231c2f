//===- arena_test.cpp - Packing of planned buffers ------------------------===//

#include "../../runtime/session/arena.h"

#include "CountedAllocations.h"
#include "TinyData.h"
#include "TinyModel.h"
#include "genrec_rt/buffer.h"
#include "genrec_rt/dataset.h"
#include "prepared_source.h"

#include <gtest/gtest.h>

#include <random>

namespace genrec::rt::test {
namespace {

TEST(Arena, BucketsWasteAtMostAnEighth) {
  EXPECT_EQ(capacityBucket(0), 0);
  EXPECT_EQ(capacityBucket(1), 16);
  EXPECT_EQ(capacityBucket(16), 16);
  EXPECT_EQ(capacityBucket(17), 18);
  EXPECT_EQ(capacityBucket(33), 36);
  EXPECT_EQ(capacityBucket(1 << 20), 1 << 20);
  for (int64_t count = 17; count < 5000; ++count) {
    EXPECT_GE(capacityBucket(count), count);
    EXPECT_LE(capacityBucket(count) * 8, count * 9);
    EXPECT_LE(capacityBucket(count - 1), capacityBucket(count));
    EXPECT_EQ(capacityBucket(capacityBucket(count)), capacityBucket(count));
  }
}

TEST(Arena, CapacitiesOfManyRowsWasteAtMostA32nd) {
  for (int64_t count : {0, 1, 16, 17, 4099, 65535})
    EXPECT_EQ(rowCapacity(count), capacityBucket(count));
  EXPECT_EQ(rowCapacity(131168), 135168); // an eighth: 147456
  EXPECT_EQ(rowCapacity(kLargestSize + 1), kLargestSize + 1);
  for (int64_t count = 60000; count < 300000; count += 61) {
    EXPECT_GE(rowCapacity(count), count);
    EXPECT_LE(rowCapacity(count), capacityBucket(count)); // buffers that others measured suffice
    EXPECT_LE(rowCapacity(count - 61), rowCapacity(count));
    EXPECT_EQ(rowCapacity(rowCapacity(count)), rowCapacity(count));
    if (count >= kManyRows) {
      EXPECT_LE(rowCapacity(count) * 32, count * 33);
    }
  }
}

TEST(Arena, BuffersThatDoNotMeetShareMemory) {
  genrec_buffer_desc buffers[] = {
      {-1, 0, 1000, 0, 1, "a"}, {-1, 0, 1000, 2, 3, "b"}, {-1, 0, 1000, 1, 2, "c"}};
  ArenaLayout layout = layOut(buffers, {});
  EXPECT_EQ(layout.offsets[0], layout.offsets[1]);
  EXPECT_NE(layout.offsets[0], layout.offsets[2]);
  EXPECT_EQ(layout.bytes, 2048);
}

TEST(Arena, SizesFollowCapacities) {
  genrec_buffer_desc buffers[] = {{1, 12, 5, 0, 0, "a"}};
  std::vector<int64_t> capacities = {7, 100};
  EXPECT_EQ(layOut(buffers, capacities).bytes, 1216); // 1205, rounded to 64
}

TEST(Arena, RandomPlansNeverOverlapWhileLive) {
  std::mt19937 random(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<genrec_buffer_desc> buffers(40);
    for (auto &buffer : buffers) {
      int32_t first = static_cast<int32_t>(random() % 30);
      buffer = {-1,
                0,
                static_cast<int64_t>(random() % 3000),
                first,
                first + static_cast<int32_t>(random() % 8),
                "b"};
    }
    ArenaLayout layout = layOut(buffers, {});
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % 64, 0);
      EXPECT_LE(layout.offsets[i] + buffers[i].bytes, layout.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool meet = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                     layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
        EXPECT_TRUE(!meet || apart || buffers[i].bytes == 0 || buffers[j].bytes == 0);
      }
    }
  }
}

/// What is counted is the runtime's.
class CountedSource : public PreparedSource {
public:
  using PreparedSource::PreparedSource;
  bool next(Batch &batch) override {
    isStepThread = true; // the reading thread is a step thread, too
    return PreparedSource::next(batch);
  }
};

TEST(Arena, StepsAllocateNothingButForANewLargestBucket) {
  SessionOptions options;
  options.seed = 1;
  options.threads = 2;
  Session session(tinyModel(), options);
  std::vector<Batch> batches;
  for (uint64_t i = 0; i < 40; ++i) // the longest comes last
    batches.push_back(tinyBatch(i, i < 39 ? 40 : 400, 30));
  CountedSource source(std::move(batches));
  std::vector<int64_t> arenas, allocations, news;
  arenas.reserve(64), allocations.reserve(64), news.reserve(64);
  countsEveryThread = true; // the reader's and the workers' too: nothing else runs
  session.run(Mode::train, source, [&](const StepReport &) {
    arenas.push_back(session.arenaAllocations());
    allocations.push_back(alignedAllocations());
    news.push_back(stepAllocations.load());
    return true;
  });
  countsEveryThread = false;
  ASSERT_EQ(arenas.size(), 40u);
  // The 40-user batches reach their largest buckets within a few steps; two of
  // them run while the last one is prepared.
  EXPECT_EQ(arenas[37], arenas[10]);
  EXPECT_EQ(allocations[37], allocations[10]);
  EXPECT_EQ(news[37], news[10]);
  // The last one's own arena and that of the compute stage grew, once each.
  EXPECT_EQ(arenas[39], arenas[37] + 2);
}

/// Counts what the reading thread allocates, too.
class WatchedSource : public BatchSource {
public:
  explicit WatchedSource(std::unique_ptr<BatchSource> source) : source(std::move(source)) {}
  bool next(Batch &batch) override {
    isStepThread = true;
    return source->next(batch);
  }

private:
  std::unique_ptr<BatchSource> source;
};

TEST(Arena, ReadingFromFilesAllocatesNothingInTheSteadyState) {
  TestFolder folder;
  writeTinyData(folder / "a.parquet", 3, 800, 30, 100);
  SessionOptions options;
  options.threads = 2;
  Session session(tinyModel(), options);
  Dataset data(tinyModel(), {&session.program(Mode::train)}, folder.path, {});
  EpochOptions epoch;
  epoch.batch = 10;
  epoch.shuffle = true;
  WatchedSource source(data.epoch(epoch));
  std::vector<int64_t> allocations, news;
  allocations.reserve(100), news.reserve(100);
  isStepThread = true;
  session.run(Mode::train, source, [&](const StepReport &) {
    allocations.push_back(alignedAllocations());
    news.push_back(stepAllocations.load());
    return true;
  });
  isStepThread = false;
  ASSERT_EQ(allocations.size(), 80u);
  EXPECT_EQ(allocations[75], allocations[40]); // all buckets were met by then
  EXPECT_EQ(news[75], news[40]);
}

} // namespace
} // namespace genrec::rt::test
