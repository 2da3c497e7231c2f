//===- unique_test.cpp - Distinct ids, stable orders, owners --------------===//

#include "../Runtime/id_of_hash.h"
#include "device_copy.h"

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/unique.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Ids = std::vector<int64_t>;
using Numbers = std::vector<uint32_t>;

struct Found {
  Ids ids;
  Numbers inverse, counts;
  Ids offsets;
};
bool operator==(const Found &a, const Found &b) {
  return a.ids == b.ids && a.inverse == b.inverse && a.counts == b.counts && a.offsets == b.offsets;
}

/// The definition, with a map per segment.
Found expectedOf(const Ids &ids, const Ids &segmentOffsets) {
  Found result;
  for (size_t s = 0; s + 1 < segmentOffsets.size(); ++s) {
    result.offsets.push_back(static_cast<int64_t>(result.ids.size()));
    std::map<int64_t, uint32_t> numbers;
    for (int64_t i = segmentOffsets[s]; i < segmentOffsets[s + 1]; ++i) {
      const int64_t id = ids[static_cast<size_t>(i)];
      auto [entry, isNew] = numbers.try_emplace(id, static_cast<uint32_t>(result.ids.size()));
      if (isNew) {
        result.ids.push_back(id);
        result.counts.push_back(0);
      }
      ++result.counts[entry->second];
      result.inverse.push_back(entry->second);
    }
  }
  result.offsets.push_back(static_cast<int64_t>(result.ids.size()));
  return result;
}

Found uniqueOf(const Ids &ids, const Ids &segmentOffsets, Unique &&unique = Unique("test")) {
  Copy<int64_t> input(ids), segments(segmentOffsets), distinct(Ids(ids.size()));
  Copy<uint32_t> inverse{Numbers(ids.size())}, counts{Numbers(ids.size(), 77)}, total{Numbers(1)};
  Copy<int64_t> offsets{Ids(segmentOffsets.size())};
  unique.run(input.data(), static_cast<int64_t>(ids.size()), segments.data(),
             static_cast<int64_t>(segmentOffsets.size()) - 1,
             {distinct.data(), inverse.data(), counts.data(), offsets.data(), total.data()},
             testStream());
  Found result{distinct.fetch(), inverse.fetch(), counts.fetch(), offsets.fetch()};
  const uint32_t found = total.fetch()[0];
  result.ids.resize(found);
  result.counts.resize(found);
  return result;
}

Ids randomIds(int64_t count, uint64_t below, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Ids ids(static_cast<size_t>(count));
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % below);
  return ids;
}

TEST(Unique, BatchesOfEverySize) {
  for (int64_t count : {0, 1, 31, 32, 33, 255, 256, 257, 2047, 2049})
    for (uint64_t below : {uint64_t(10), uint64_t(1) << 62}) {
      const Ids ids = randomIds(count, below);
      EXPECT_EQ(uniqueOf(ids, {0, count}), expectedOf(ids, {0, count}))
          << count << " below " << below;
    }
}

// Below, at and above a tile, which has 2,048 ids, and many; each call has what the last one left.
TEST(Unique, BatchesOfManyTiles) {
  Unique unique("test");
  for (int64_t count : {2048, 20001, 4097})
    for (uint64_t below : {uint64_t(3), uint64_t(700), uint64_t(1) << 62}) {
      const Ids ids = randomIds(count, below, below);
      const Ids offsets = {0, 0, 5, 2047, 2048, 2048, count, count};
      EXPECT_EQ(uniqueOf(ids, offsets, std::move(unique)), expectedOf(ids, offsets))
          << count << " below " << below;
    }
}

// More words of bits than four blocks have threads, so many that parts are counted first, and an
// odd number of ids; ids that are all one or all different.
TEST(Unique, ManyWordsOfBits) {
  Unique unique("test");
  Ids mixed = randomIds(70001, 9000), equal(10240, 5), different(10241);
  std::iota(different.begin(), different.end(), -77);
  for (const Ids &ids : {mixed, equal, different}) {
    const auto count = static_cast<int64_t>(ids.size());
    const Ids offsets = {0, 9999, 10001, count, count};
    EXPECT_EQ(uniqueOf(ids, offsets, std::move(unique)), expectedOf(ids, offsets)) << count;
  }
}

// Each result is the same whichever others are asked for beside it.
TEST(Unique, EveryChoiceOfResults) {
  const Ids ids = randomIds(4099, 700), segments = {0, 2100, 4099};
  const Found expected = expectedOf(ids, segments);
  Copy<int64_t> input(ids), offsetsOf(segments);
  Unique unique("test");
  for (int asked = 0; asked < 16; ++asked) {
    SCOPED_TRACE(asked);
    Copy<int64_t> distinct(Ids(expected.ids.size())), offsets(Ids(segments.size()));
    Copy<uint32_t> inverse{Numbers(ids.size())}, counts{Numbers(expected.counts.size())},
        total{Numbers(1)};
    UniqueResult result;
    result.total = total.data();
    if (asked & 1)
      result.ids = distinct.data();
    if (asked & 2)
      result.inverse = inverse.data();
    if (asked & 4)
      result.counts = counts.data();
    if (asked & 8)
      result.offsets = offsets.data();
    unique.run(input.data(), 4099, offsetsOf.data(), 2, result, testStream());
    EXPECT_EQ(total.fetch()[0], expected.ids.size());
    EXPECT_TRUE(!result.ids || distinct.fetch() == expected.ids);
    EXPECT_TRUE(!result.inverse || inverse.fetch() == expected.inverse);
    EXPECT_TRUE(!result.counts || counts.fetch() == expected.counts);
    EXPECT_TRUE(!result.offsets || offsets.fetch() == expected.offsets);
  }
}

TEST(Unique, AnyNumberIsAnId) {
  const Ids ids = {-1, 0, -1, std::numeric_limits<int64_t>::min(), 0, -1};
  EXPECT_EQ(uniqueOf(ids, {0, 6}), expectedOf(ids, {0, 6}));
}

// As of rows that are touched: places without one come behind all, and end the last segment.
TEST(Unique, ZeroIsNone) {
  Unique unique("test");
  StableOrder stable("test");
  for (int64_t count : {1, 300, 4099})
    for (uint32_t zeroIn : {1u, 2u, 1000u}) {
      Ids ids = randomIds(count, 100, zeroIn), some;
      std::mt19937 random(zeroIn);
      for (int64_t &id : ids) {
        id = random() % zeroIn == 0 ? 0 : id + 1;
        if (id)
          some.push_back(id);
      }
      const auto present = static_cast<int64_t>(some.size());
      const Found expected = expectedOf(some, {0, present});
      Copy<int64_t> input(ids), distinct(Ids(ids.size())), offsets(Ids(ids.size() + 1));
      Copy<uint32_t> inverse{Numbers(ids.size())}, total{Numbers(1)}, order{Numbers(ids.size())};
      unique.runWithoutZero(input.data(), count,
                            {distinct.data(), inverse.data(), nullptr, nullptr, total.data()},
                            testStream());
      stable.run(inverse.data(), count, count + 1, order.data(), testStream());
      findSegments(inverse.data(), order.data(), count, total.data(), offsets.data(), testStream());
      const size_t found = total.fetch()[0];
      ASSERT_EQ(found, expected.ids.size());
      Ids rows = distinct.fetch(), begins = offsets.fetch();
      rows.resize(found);
      EXPECT_EQ(rows, expected.ids);
      const Numbers numbers = inverse.fetch();
      size_t at = 0;
      for (size_t i = 0; i < ids.size(); ++i)
        ASSERT_EQ(numbers[i], ids[i] ? expected.inverse[at++] : count) << i;
      EXPECT_EQ(begins[found], present);
      for (size_t u = 0; u < found; ++u)
        EXPECT_EQ(begins[u + 1] - begins[u], expected.counts[u]);
    }
}

TEST(Unique, SegmentsAreApartAndMayBeEmpty) {
  const Ids ids = randomIds(600, 50), offsets = {0, 0, 1, 200, 200, 201, 599, 600, 600};
  EXPECT_EQ(uniqueOf(ids, offsets), expectedOf(ids, offsets));
}

TEST(Unique, AllIdsEqualAndAllOfOnePlace) {
  const Ids equal(1500, 77);
  EXPECT_EQ(uniqueOf(equal, {0, 1500}), expectedOf(equal, {0, 1500}));
  // Equal upper halves of the hashes: every search begins at the last slot, and goes on at the
  // first of its segment.
  Ids colliding;
  for (uint64_t i = 0; colliding.size() < 300; ++i)
    if (int64_t id = rt::test::idOfHash(uint64_t(0xFFFFFFFF) << 32 | i); id >= 0)
      colliding.push_back(id);
  colliding.insert(colliding.end(), colliding.begin(), colliding.begin() + 100);
  for (const Ids &offsets : {Ids{0, 400}, Ids{0, 300, 400}})
    EXPECT_EQ(uniqueOf(colliding, offsets), expectedOf(colliding, offsets));
}

/// Holds the distinct ids of each owner, in the order of their first appearance, to the definition.
void expectGrouped(const Ids &ids, uint32_t owners, Unique &&unique = Unique("test")) {
  SCOPED_TRACE(std::to_string(ids.size()) + " ids of " + std::to_string(owners));
  const auto count = static_cast<int64_t>(ids.size());
  Copy<int64_t> input(ids), distinct(Ids(ids.size())), offsets(Ids(owners + 1, -1));
  Copy<uint32_t> inverse{Numbers(ids.size())}, total{Numbers{77}};
  unique.runByOwner(input.data(), count, owners,
                    {distinct.data(), inverse.data(), nullptr, nullptr, total.data()},
                    offsets.data(), testStream());
  const Found plain = expectedOf(ids, {0, count});
  ASSERT_EQ(total.fetch()[0], plain.ids.size());
  std::vector<Ids> ofOwners(owners);
  for (int64_t id : plain.ids)
    ofOwners[ownerOf(id, owners)].push_back(id);
  Ids grouped, begins = {0};
  for (const Ids &some : ofOwners) {
    grouped.insert(grouped.end(), some.begin(), some.end());
    begins.push_back(static_cast<int64_t>(grouped.size()));
  }
  Ids found = distinct.fetch();
  found.resize(grouped.size());
  EXPECT_EQ(found, grouped);
  EXPECT_EQ(offsets.fetch(), begins);
  const Numbers numbers = inverse.fetch();
  for (size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(found[numbers[i]], ids[i]) << i;
}

// An id of whose hash's part another comes first is not found to repeat in its tile.
TEST(Unique, RepetitionsBehindOthersOfTheirPart) {
  Ids ids;
  for (uint64_t upper = 0; ids.size() < 40; ++upper)
    if (int64_t id = rt::test::idOfHash(upper << 40 | 0x123); id >= 0)
      ids.push_back(id);
  for (int i = 0; i < 300; ++i)
    ids.push_back(ids[static_cast<size_t>(i * 7 % 40)]);
  const Ids offsets = {0, 100, 340};
  EXPECT_EQ(uniqueOf(ids, offsets), expectedOf(ids, offsets));
  expectGrouped(ids, 3);
}

// Below and above a warp of owners and a block of them; most of 1,024 have none.
TEST(Unique, OwnersGroupByFirstAppearance) {
  for (uint32_t owners : {1u, 8u, 64u, 300u, 1024u})
    expectGrouped(randomIds(1000, 400, owners), owners);
  for (int64_t count : {0, 1, 33})
    expectGrouped(randomIds(count, 20), 3);
}

// What was counted for the owners of the last call is forgotten.
TEST(Unique, OwnersOfManyTiles) {
  Unique unique("test");
  for (uint32_t owners : {8u, 3u, 40u})
    for (uint64_t below : {uint64_t(9000), uint64_t(1) << 62})
      expectGrouped(randomIds(owners == 3 ? 2049 : 12000, below, owners), owners,
                    std::move(unique));
  const Ids ids = randomIds(5000, 700), whole = {0, 5000};
  EXPECT_EQ(uniqueOf(ids, whole, std::move(unique)), expectedOf(ids, whole));
}

TEST(Unique, MoreOwnersThanABlockCountsAreRefused) {
  Unique unique("test");
  for (uint32_t owners : {0u, 1025u})
    EXPECT_THROW(unique.runByOwner(nullptr, 1, owners, {}, nullptr, testStream()),
                 std::invalid_argument);
}

TEST(Unique, OwnersAreEven) {
  std::vector<int> counts(8);
  for (int64_t id = 0; id < 80000; ++id)
    ++counts[ownerOf(id, 8)];
  for (int count : counts)
    EXPECT_NEAR(count, 10000, 500); // five standard deviations
}

__global__ void scanTwice(int *out) {
  int total;
  const int first = exclusiveBlockSum<128>(1, total);
  out[threadIdx.x] = first + exclusiveBlockSum<128>(first, total);
}

TEST(BlockScan, MayBeCalledAgainAtOnce) {
  int *out = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&out, 512));
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{1, 128}), scanTwice, out);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<int> got(128);
  GENREC_CUDA_CHECK(cudaMemcpy(got.data(), out, 512, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(got[i], i + i * (i - 1) / 2);
  cudaFree(out);
}

TEST(StableOrder, IsThatOfTheLibrary) {
  // One, two and three passes; below, at and above a warp's part and a block.
  for (int64_t limit : {1, 7, 256, 2048, 2049, 70000, 1 << 22, 1 << 23})
    for (int64_t count : {0, 1, 33, 511, 513, 4096, 4097, 9000}) {
      Numbers keys(static_cast<size_t>(count)), expected(keys.size());
      std::mt19937 random(static_cast<uint32_t>(limit));
      for (uint32_t &key : keys)
        key = random() % static_cast<uint32_t>(limit);
      std::iota(expected.begin(), expected.end(), 0u);
      std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(keys[a], a) < std::pair(keys[b], b);
      });
      StableOrder order("test");
      Copy<uint32_t> input(keys), output(Numbers(keys.size()));
      order.run(input.data(), count, limit, output.data(), testStream());
      EXPECT_EQ(output.fetch(), expected) << count << " keys below " << limit;
    }
}

// Where the last key ends is looked at by a lane of its own where whole warps have all positions.
TEST(StableOrder, SegmentsBeginWhereKeysDo) {
  for (int64_t count : {900, 896}) {
    const Ids ids = randomIds(count, 60);
    const Found found = expectedOf(ids, {0, count});
    StableOrder order("test");
    Copy<uint32_t> keys(found.inverse), output(Numbers(ids.size())),
        total(Numbers{static_cast<uint32_t>(found.ids.size())});
    Copy<int64_t> offsets(Ids(found.ids.size() + 1));
    order.run(keys.data(), count, static_cast<int64_t>(found.ids.size()), output.data(),
              testStream());
    findSegments(keys.data(), output.data(), count, total.data(), offsets.data(), testStream());
    const Ids begins = offsets.fetch();
    EXPECT_EQ(begins[0], 0);
    for (size_t u = 0; u < found.ids.size(); ++u)
      EXPECT_EQ(begins[u + 1] - begins[u], found.counts[u]) << count;
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
