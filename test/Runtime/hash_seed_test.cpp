//===- hash_seed_test.cpp - Ids that were made to collide -----------------===//

#include "../../runtime/embedding/catalogue_index.h"
#include "TinyModel.h"
#include "id_of_hash.h"

#include "genrec_rt/store.h"

#include <gtest/gtest.h>

namespace genrec::rt::test {
namespace {

constexpr int64_t kMany = 64000;

/// Ids that without a seed begin in one bucket (the low 20 bits of their hash) and go on by one
/// step (bits 32 to 52).
std::vector<int64_t> collidingIds() {
  std::vector<int64_t> ids;
  for (uint64_t i = 0; i < kMany; ++i)
    ids.push_back(idOfHash((i >> 12) << 53 | uint64_t(0x12345) << 32 | (i & 0xFFF) << 20 | 0x777));
  return ids;
}

/// Buckets read to find all ids.
int64_t bucketsRead(uint64_t seed, const std::vector<int64_t> &ids) {
  StoreConfig config;
  config.dim = 4;
  config.hashSeed = seed;
  EmbeddingStore store(config);
  std::vector<float *> rows(ids.size());
  store.findOrInsert(nullptr, ids.data(), nullptr, static_cast<int64_t>(ids.size()), rows.data());
  int64_t sum = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(store.id(static_cast<int64_t>(i)), ids[i]); // numbered as ever
    sum += store.bucketsRead(ids[i]);
  }
  return sum;
}

TEST(HashSeed, IdsMadeToCollideDoNot) {
  std::vector<int64_t> ids = collidingIds();
  // A few hundred of them show what the seed is for: the searches' sum is quadratic.
  std::vector<int64_t> few(ids.begin(), ids.begin() + 800);
  EXPECT_GT(bucketsRead(0, few), 800 * 800 / 16);
  StoreConfig made; // as a session makes its stores
  EXPECT_EQ(made.hashSeed, processHashSeed());
  for (uint64_t seed : {made.hashSeed, uint64_t(1), splitMix64(3), splitMix64(4)})
    EXPECT_LT(bucketsRead(seed, ids), 3 * kMany / 2) << seed;
}

TEST(HashSeed, SessionsHaveTheSeedOfTheProcess) {
  Session session(tinyModel(), {});
  EXPECT_EQ(session.table(0).configuration().hashSeed, processHashSeed());
  EXPECT_NE(processHashSeed(), 0u);
}

TEST(HashSeed, ACataloguesIdsDoNotCollideEither) {
  std::vector<int64_t> ids; // the low 20 bits are the slot
  for (uint64_t i = 0; i < kMany; ++i)
    ids.push_back(idOfHash(i << 20 | 0x777));
  auto slotsRead = [](const CatalogueIndex &index, const std::vector<int64_t> &ids) {
    int64_t sum = 0;
    for (int64_t id : ids)
      sum += index.slotsRead(id);
    return sum;
  };
  std::vector<int64_t> few(ids.begin(), ids.begin() + 800);
  EXPECT_GT(slotsRead(CatalogueIndex(few.data(), 800, /*hashSeed=*/0), few), 800 * 800 / 4);
  CatalogueIndex index(ids.data(), kMany);
  EXPECT_LT(slotsRead(index, ids), 3 * kMany);
  EXPECT_EQ(index.find(ids[777]), 777);
  EXPECT_EQ(index.find(-5), -1);
}

} // namespace
} // namespace genrec::rt::test
