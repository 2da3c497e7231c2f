//===- host_chunks_test.cpp - Chunks of the host's pinned memory ----------===//

#include "genrec_rt/cuda/host_chunks.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/error.h"

#include "simt.h"

#include <gtest/gtest.h>

#include <cstring>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kBytes = 4096;

/// Takes chunks until there are `count`, and fills each with its number.
void fill(HostChunks &chunks, std::vector<char *> &taken, size_t count) {
  while (taken.size() < count) {
    taken.push_back(static_cast<char *>(chunks.take(kBytes)));
    std::memset(taken.back(), static_cast<int>(taken.size() % 251), kBytes);
  }
}
void expectOwnBytes(const std::vector<char *> &taken) {
  for (size_t i = 0; i < taken.size(); ++i)
    for (int64_t byte : {int64_t(0), kBytes - 1})
      ASSERT_EQ(static_cast<uint8_t>(taken[i][byte]), (i + 1) % 251) << "chunk " << i;
}

TEST(HostChunks, SeveralArePinnedAtOnce) {
  const int64_t before = namedAllocations("several");
  {
    HostChunks chunks("several");
    std::vector<char *> taken;
    fill(chunks, taken, 400);
    expectOwnBytes(taken);
    EXPECT_LE(namedAllocations("several") - before, 45);
    EXPECT_GE(chunks.getBytes(), 400 * kBytes);
    EXPECT_LE(chunks.getBytes(), 450 * kBytes);
    EXPECT_EQ(namedBytes("several"), chunks.getBytes());
  }
  EXPECT_EQ(namedBytes("several"), 0);
}

TEST(HostChunks, OneIsPinnedWhereThereIsNoMemoryForMore) {
  HostChunks chunks("single");
  std::vector<char *> taken;
  fill(chunks, taken, 40);
  simt::options().mostPinnedBytes = kBytes;
  fill(chunks, taken, 60);
  simt::options().mostPinnedBytes = kBytes - 1;
  EXPECT_THROW(fill(chunks, taken, 61), Error);
  simt::options() = {};
  fill(chunks, taken, 70);
  expectOwnBytes(taken);
  EXPECT_EQ(namedBytes("single"), chunks.getBytes());
}

} // namespace
} // namespace genrec::rt::cuda::test
