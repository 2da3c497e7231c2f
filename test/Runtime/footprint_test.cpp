//===- footprint_test.cpp - What is predicted is what is taken ------------===//

#include "genrec_rt/footprint.h"

#include "../../runtime/data/decode_memory.h"
#include "ReadingModel.h"
#include "TinyModel.h"
#include "genrec_rt/kernels/cpu/attention.h"
#include "genrec_rt/kernels/cpu/distinct_gradient.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/gemm_rows.h"
#include "genrec_rt/store.h"

#include <arrow/memory_pool.h>

#include <gtest/gtest.h>

namespace genrec::rt::test {
namespace {

//===-- tables --------------------------------------------------------------===//

TEST(Footprint, TablesTakeWhatTheirRowsSay) {
  for (int64_t rows : {0, 1, 191, 192, 193, 5000, 70000}) {
    EmbeddingStore store({.dim = 50, .states = 2});
    std::vector<int64_t> ids(static_cast<size_t>(rows));
    std::vector<float *> found(ids.size());
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<int64_t>(i) * 7;
    store.findOrInsert(nullptr, ids.data(), nullptr, rows, found.data());
    EXPECT_EQ(storeValueBytes(rows, 50, 2 * 50), store.valueBytes()) << rows;
    EXPECT_EQ(storeKeyBytes(rows), store.slots() * kStoreSlotBytes + rows * 8) << rows;
  }
}

TEST(Footprint, ChoosingRowsThatLeaveTakesWhatTheirNumberSays) {
  constexpr int64_t kRows = 5000;
  for (bool isBounded : {true, false}) {
    StoreConfig config{.dim = 8, .states = 1};
    config.rules = isBounded ? RowRules{.bound = kRows / 2} : RowRules{.ttl = 1};
    EmbeddingStore store(config);
    std::vector<int64_t> ids(kRows);
    std::vector<float *> found(kRows);
    for (int64_t i = 0; i < kRows; ++i)
      ids[i] = i * 7;
    store.findOrAdmit({}, ids.data(), nullptr, kRows, 1, found.data(), nullptr);
    EXPECT_EQ(storeValueBytes(kRows, 8, 8, /*hasRules=*/true), store.valueBytes());
    int64_t before = store.keyBytes();
    store.evict({}, 2, -1);
    int64_t taken = store.keyBytes() - before + (kRows - store.size()) * 8; // ids that are gone
    EXPECT_LE(taken, storeEvictionBytes(kRows, isBounded, !isBounded));
    EXPECT_GE(taken, kRows * (isBounded ? 32 : 8));
  }
}

//===-- batches and arenas --------------------------------------------------===//

TEST(Footprint, ASessionHoldsWhatItsBatchesSay) {
  Session session(tinyModel(), {.seed = 1, .threads = 2});
  constexpr int64_t kUsers = 300;
  Batch batch = tinyBatch(3, kUsers, 50);
  int64_t events = batch.domains[kTinyHistory].count;
  session.train(batch);

  // One batch was prepared: one slot's parents and identities, and its own arena.
  int64_t described = growBufferBytes(kUsers, 8) + 2 * growBufferBytes(events, 8);
  EXPECT_EQ(session.memoryUse().batches, described);

  std::vector<int64_t> capacities = {capacityBucket(kUsers), capacityBucket(events), 0,
                                     capacityBucket(events)};
  std::vector<ArenaBuffer> copy, compute;
  const genrec_program_desc &program = session.program(Mode::train);
  for (int32_t i = 0; i < program.buffer_count; ++i) {
    const genrec_buffer_desc &buffer = program.buffers[i];
    int64_t bytes = capacities[buffer.domain] * buffer.bytes_per_row + buffer.bytes;
    (buffer.first < program.first_compute_op ? copy : compute)
        .push_back({bytes, buffer.first, buffer.last});
  }
  EXPECT_EQ(session.memoryUse().arenas, packArena(copy).bytes + packArena(compute).bytes);
  EXPECT_GT(packArena(compute).bytes, 0);
}

int64_t wholeHistory(const int64_t *capacities, const int64_t *) { return capacities[1]; }

/// A model with a buffer per row of `recent`, the last two events of every history.
struct TruncatingModel : ReadingModel {
  TruncatingModel()
      : ReadingModel({root("user"),
                      child("history", 0, "history"),
                      {"recent", GENREC_DOMAIN_DERIVED, 0, nullptr, nullptr, wholeHistory, 2, 1}},
                     {feature("user", 0, GENREC_I64)}) {
    program.buffers = &buffer;
    program.buffer_count = 1;
    program.compute = [](genrec_step *) {};
  }
  genrec_buffer_desc buffer = {2, 1 << 10, 0, 0, 0, "recent"};
};

TEST(Footprint, CutListsTakeNoMoreThanWhatIsLeftOfThem) {
  TruncatingModel model;
  Session session(model.description, {.threads = 1});
  // 100 users, one of them with 10,000 events: 2 + 99 rows are left.
  std::vector<int64_t> offsets = {0}, users;
  for (int64_t user = 0; user < 100; ++user) {
    offsets.push_back(offsets.back() + (user == 7 ? 10000 : 1));
    users.push_back(user);
  }
  Batch batch = BatchBuilder(model.description)
                    .rows("user", 100)
                    .offsets("history", offsets)
                    .column<int64_t>("user", users)
                    .take();
  session.train(batch);
  EXPECT_EQ(session.memoryUse().arenas, 64 + capacityBucket(101) * 1024); // 64: its own, empty
}

//===-- reading ---------------------------------------------------------------===//

TEST(Footprint, DecodingGivesItsMemoryBack) {
  TestFolder folder;
  writeTinyData(folder / "a.parquet", 1, 20000, 50, 5000);
  Dataset data(tinyModel(), {&tinyModel().programs[0]}, folder.path, {});
  int64_t before = decodeMemory()->bytes_allocated();
  EpochOptions options;
  options.shuffle = true;
  Batch batch(tinyModel());
  ASSERT_TRUE(data.epoch(options)->next(batch)); // decodes all of it
  EXPECT_GT(decodeMemory()->max_memory(), before);
  EXPECT_EQ(decodeMemory()->bytes_allocated(), before);
  EXPECT_GT(data.heldBytes(), 0);
}

TEST(Footprint, MemoryOfDecodingKeepsWhatItHoldsAsItGrows) {
  arrow::MemoryPool *pool = decodeMemory();
  for (int64_t size : {0, 1, 1000, 300 << 10}) {
    uint8_t *memory = nullptr;
    ASSERT_TRUE(pool->Allocate(size, 64, &memory).ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    for (int64_t i = 0; i < size; ++i)
      memory[i] = static_cast<uint8_t>(i);
    ASSERT_TRUE(pool->Reallocate(size, size * 3 + 5, 64, &memory).ok());
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(memory[i], static_cast<uint8_t>(i));
    pool->Free(memory, size * 3 + 5, 64);
  }
  uint8_t *memory = nullptr;
  EXPECT_TRUE(pool->Allocate(64, 4096, &memory).IsInvalid());
  EXPECT_TRUE(pool->Allocate(int64_t(1) << 60, 64, &memory).IsOutOfMemory());
}

//===-- scratch ---------------------------------------------------------------===//

/// `bound` is no less than `bytes`, and no more than twice that and 256 KB: it is of the
/// widest vectors and longest tiles, which narrow heads and one thread need little of.
void expectBound(int64_t bytes, int64_t bound, const char *what, int64_t size) {
  EXPECT_GE(bound, bytes) << what << ", " << size;
  EXPECT_LE(bound, 2 * bytes + (256 << 10)) << what << ", " << size;
}

template <class Config> void checkAttention(const char *what, int64_t threads) {
  for (int64_t longest : {1, 16, 200, 1000, 5000}) {
    int64_t positions = Config::PositionBias ? 2 * longest + 1 : 0;
    int64_t times = Config::TimeBias ? 129 : 0;
    AttentionSizes sizes{Config::Qk, Config::V, longest, positions, times};
    expectBound(kernels::attentionForwardScratchBytes<Config>(longest, threads),
                attentionScratchBound(sizes, threads, false), what, longest);
    expectBound(kernels::attentionBackwardScratchBytes<Config>(longest, threads, positions, times),
                attentionScratchBound(sizes, threads, true), what, longest);
  }
}

TEST(Footprint, ScratchOfAttentionIsBounded) {
  using enum kernels::ScoreKind;
  for (int32_t threads : {1, 2, 16}) {
    checkAttention<kernels::AttentionConfig<1, 50, 50, silu, true, false, true, true, true>>(
        "width 50, all options", threads);
    checkAttention<kernels::AttentionConfig<4, 32, 64, softmax, false, false, false, false, false>>(
        "widths 32 and 64", threads);
    checkAttention<kernels::AttentionConfig<2, 25, 33, softmax, true, true, true, false, true>>(
        "widths 25 and 33", threads);
  }
}

TEST(Footprint, ScratchOfProductsIsBounded) {
  expectBound(kernels::matmulScratchBytes<50, 200>(), matmulScratchBound(50, 200), "w", 200);
  expectBound(kernels::matmulScratchBytes<300, 7>(), matmulScratchBound(300, 7), "w", 7);
  expectBound(kernels::matmulRowsScratchBytes<50, 200>(), matmulRowsScratchBound(50, 200), "dw",
              200);
  expectBound(kernels::matmulRowsScratchBytes<512, 512>(), matmulRowsScratchBound(512, 512), "dw",
              512);
}

TEST(Footprint, ScratchOfGradientsByDistinctRowIsBounded) {
  for (int64_t rows : {1, 300, 100000})
    for (int32_t threads : {1, 16}) {
      const int64_t header[] = {1, rows, 0, rows};
      kernels::DistinctLookups lookups(header);
      expectBound(kernels::distinctLinearGradientScratchBytes<16, 100>(lookups, threads),
                  distinctLinearGradScratchBound(rows, 16, 100, threads), "[., 16] [16, 100]",
                  rows);
      expectBound(kernels::distinctLinearGradientScratchBytes<300, 3>(lookups, threads),
                  distinctLinearGradScratchBound(rows, 300, 3, threads), "[., 300] [300, 3]", rows);
    }
}

TEST(Footprint, SumsAreCutIntoAtMost8Megabytes) {
  EXPECT_EQ(cutForSums(1000, 1, 1).count, 32); // 32 rows each
  SumChunks large = cutForSums(25600, 1, 3883 * 50);
  EXPECT_EQ(large.count, 10);
  EXPECT_LE(sumScratchBytes(large, 3883 * 50), 8 << 20);
  EXPECT_EQ(cutForSums(25600, 1, 1 << 28).count, 4); // never fewer
  EXPECT_EQ(cutForSums(0, 1, 100).count, 0);
  EXPECT_EQ(sumScratchBytes(cutForSums(0, 1, 100), 100), 400);
  for (int64_t rows : {1, 33, 4096, 100000, 1 << 24})
    for (int64_t least : {1, 100, 4096})
      EXPECT_LE(sumScratchBytes(cutForSums(rows, least, kMostPieceFloats), kMostPieceFloats),
                8 << 20);
}

TEST(Footprint, ChunksOfSumsHaveAPowerOfTwoOfADevicesChunks) {
  for (int64_t rows : {1, 32, 33, 728, 4096, 100000, 1 << 24})
    for (int64_t least : {1, 100, 4096}) {
      const SumChunks chunks = cutForSums(rows, least, 64);
      const int64_t pieces = chunks.grain / chunks.pieceRows;
      EXPECT_EQ(chunks.pieceRows, kernels::cutRows(rows, 64).grain);
      EXPECT_EQ(chunks.grain, pieces * chunks.pieceRows);
      EXPECT_EQ(int64_t(1) << (chunks.slots - 1), pieces);
      EXPECT_GE(chunks.grain * chunks.count, rows);
      EXPECT_LT(chunks.grain * (chunks.count - 1), rows);
    }
}

} // namespace
} // namespace genrec::rt::test
