//===- row_travel_test.cpp - ways in which table rows travel --------------===//

#include "../../runtime/ranks/row_exchange.h"

#include "genrec_rt/kernels/shared/row_values.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/session.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <mutex>

using namespace genrec::rt;

namespace {

constexpr int64_t kDim = 5, kTravellers = 300;

//===----------------------------------------------------------------------===//
// bf16
//===----------------------------------------------------------------------===//

TEST(RowBf16, RoundsToTheNearestEven) {
  auto round = [](float value) { return kernels::widened(kernels::nearestBf16(value)); };
  EXPECT_EQ(round(1), 1.0F);
  float step = std::ldexp(1.0F, -7); // between bf16s at 1
  EXPECT_EQ(round(1 + step / 4), 1.0F);
  EXPECT_EQ(round(1 + step / 2), 1.0F);               // a tie, down to even
  EXPECT_EQ(round(1 + 3 * step / 2), 1 + 2 * step);   // a tie, up to even
  EXPECT_EQ(round(1 + step / 2 + 1e-6F), 1 + step);   // just above a tie
  EXPECT_EQ(round(-1 - 3 * step / 2), -1 - 2 * step); // by size
  EXPECT_TRUE(std::signbit(round(-0.0F)));
  EXPECT_EQ(round(std::numeric_limits<float>::max()), std::numeric_limits<float>::infinity());
  EXPECT_EQ(round(-std::numeric_limits<float>::infinity()),
            -std::numeric_limits<float>::infinity());
  for (uint32_t bits : {0x7F800001U, 0xFFFFFFFFU, 0x7FC00000U}) // also where all set bits are low
    EXPECT_TRUE(std::isnan(round(std::bit_cast<float>(bits))));
}

//===----------------------------------------------------------------------===//
// One step
//===----------------------------------------------------------------------===//

/// What each rank saw of a step, and all updates.
struct Seen {
  std::vector<std::map<int64_t, std::vector<float>>> rows; ///< by rank and id
  std::map<int64_t, std::vector<float>> updates;
  std::vector<int64_t> found, rowBytes; ///< by rank
};

float valueOf(int64_t id, int64_t i) { return 1 / static_cast<float>(id * kDim + i + 3); }

/// The gradient of each entry.
float gradientOf(int32_t rank, int64_t entry, int64_t i) {
  return 1 / static_cast<float>(entry * 7 + i + rank * 1000 + 3);
}

/// Every rank asks for the ids from its number on, each twice, and touches all.
class Traveller {
public:
  Traveller(Communicator &comm, RowTravel travel, Seen &seen, std::mutex &mutex)
      : comm(comm), seen(seen), mutex(mutex), table(kTravellers * kDim),
        exchange(comm, {{kDim, {hashTableName("a")}}}, comm.getSize(), travel) {
    for (int64_t id = 0; id < kTravellers; ++id)
      for (int64_t i = 0; i < kDim; ++i)
        table[id * kDim + i] = valueOf(id, i);
    for (int64_t id = comm.getRank(); id < kTravellers; ++id)
      keys.insert(keys.end(), 2, id);
  }

  void run() {
    exchange.begin();
    std::vector<float *> rows(keys.size());
    RowRequest request{0,           keys.data(), nullptr, static_cast<int64_t>(keys.size()),
                       rows.data(), nullptr};
    int64_t found = 0, before = exchange.getTraffic().rowBytes;
    exchange.fetch({&request, 1}, [&](int32_t, std::span<const int64_t> asked, float **to) {
      found += static_cast<int64_t>(asked.size());
      for (size_t i = 0; i < asked.size(); ++i)
        to[i] = &table[asked[i] * kDim];
    });
    contribute(rows);
    exchange.collect();
    std::lock_guard lock(mutex);
    seen.found[comm.getRank()] = found;
    seen.rowBytes[comm.getRank()] = exchange.getTraffic().rowBytes - before;
    for (size_t i = 0; i < keys.size(); ++i)
      seen.rows[comm.getRank()][keys[i]].assign(rows[i], rows[i] + kDim);
    RowExchange::Update update = exchange.getUpdate(0);
    for (size_t i = 0; i < update.rows.size(); ++i) {
      int64_t id = (update.rows[i] - table.data()) / kDim;
      const float *sum = update.sums + static_cast<int64_t>(i) * kDim;
      EXPECT_TRUE(seen.updates.try_emplace(id, sum, sum + kDim).second) << "id " << id << " twice";
    }
  }

private:
  /// Adds the gradients of entries with one address, as a compiled model does.
  void contribute(const std::vector<float *> &rows) {
    std::vector<float *> touched;
    std::map<float *, std::vector<float>> sums;
    for (size_t entry = 0; entry < rows.size(); ++entry) {
      auto [at, isNew] = sums.try_emplace(rows[entry], kDim, 0.0F);
      if (isNew)
        touched.push_back(rows[entry]);
      for (int64_t i = 0; i < kDim; ++i)
        at->second[i] += gradientOf(comm.getRank(), static_cast<int64_t>(entry), i);
    }
    std::span<float *const> places = exchange.contribute(0, comm.getRank(), touched);
    for (size_t i = 0; i < touched.size(); ++i)
      std::copy_n(sums[touched[i]].data(), kDim, places[i]);
  }

  Communicator &comm;
  Seen &seen;
  std::mutex &mutex;
  std::vector<float> table;
  std::vector<int64_t> keys;
  RowExchange exchange;
};

/// The second of two steps on `ranks` ranks.
Seen runStep(RowTravel travel, int32_t ranks = 2) {
  Seen seen;
  std::mutex mutex;
  runThreadRanks(ranks, [&](Communicator &comm) {
    Traveller rank(comm, travel, seen, mutex);
    for (int step = 0; step < 2; ++step) {
      {
        std::lock_guard lock(mutex);
        seen.rows.assign(ranks, {});
        seen.found.assign(ranks, 0);
        seen.rowBytes.assign(ranks, 0);
        seen.updates.clear();
      }
      comm.barrier();
      rank.run();
      comm.barrier();
    }
  });
  return seen;
}

bool isOwn(int32_t rank, int64_t id) {
  return getOwner(getSlice(hashTableName("a"), id), 2) == rank;
}

TEST(RowTravels, ValuesAsBf16AreHalfOfTheBytes) {
  Seen plain = runStep({}), narrow = runStep({.bf16Values = true});
  EXPECT_EQ(plain.updates, narrow.updates);
  for (int32_t rank = 0; rank < 2; ++rank) {
    EXPECT_GT(plain.rowBytes[rank], 0);
    EXPECT_EQ(narrow.rowBytes[rank] * 2, plain.rowBytes[rank]);
    for (auto &[id, row] : narrow.rows[rank])
      for (int64_t i = 0; i < kDim; ++i)
        EXPECT_EQ(row[i], isOwn(rank, id) ? valueOf(id, i)
                                          : kernels::widened(kernels::nearestBf16(valueOf(id, i))));
  }
}

TEST(RowTravels, SumsAsBf16AreRoundedWhereTheyTravel) {
  Seen plain = runStep({}), narrow = runStep({.bf16Sums = true});
  EXPECT_EQ(plain.rows, narrow.rows);
  ASSERT_EQ(narrow.updates.size(), static_cast<size_t>(kTravellers));
  for (auto &[id, sum] : narrow.updates)
    for (int64_t i = 0; i < kDim; ++i) {
      float of[2] = {};
      for (int32_t rank = 0; rank < 2; ++rank)
        if (int64_t entry = 2 * (id - rank); entry >= 0) {
          of[rank] = gradientOf(rank, entry, i) + gradientOf(rank, entry + 1, i);
          if (!isOwn(rank, id))
            of[rank] = kernels::widened(kernels::nearestBf16(of[rank]));
        }
      EXPECT_EQ(sum[i], of[0] + of[1]) << "id " << id;
    }
}

TEST(RowTravels, OneRankRoundsNothing) {
  Seen plain = runStep({}, 1), narrow = runStep({.bf16Values = true, .bf16Sums = true}, 1);
  EXPECT_EQ(plain.rows, narrow.rows);
  EXPECT_EQ(plain.updates, narrow.updates);
}

//===----------------------------------------------------------------------===//
// Without deduplication
//===----------------------------------------------------------------------===//

TEST(RowTravels, OwnersThatDoNotDeduplicateGiveTheSameBits) {
  for (int32_t ranks : {1, 2, 3}) {
    Seen plain = runStep({}, ranks), other = runStep({.ownersDeduplicate = false}, ranks);
    EXPECT_EQ(plain.rows, other.rows);
    EXPECT_EQ(plain.updates, other.updates);
    EXPECT_EQ(plain.rowBytes, other.rowBytes);
    if (ranks > 1) {
      EXPECT_LT(plain.found[0], other.found[0]);
    }
  }
}

TEST(RowTravels, RequestersThatDoNotDeduplicateSendEachEntry) {
  for (bool ownersDeduplicate : {true, false}) {
    Seen plain = runStep({}),
         other = runStep({.requestersDeduplicate = false, .ownersDeduplicate = ownersDeduplicate});
    EXPECT_EQ(plain.rows, other.rows);
    ASSERT_EQ(plain.updates.size(), other.updates.size());
    for (auto &[id, sum] : plain.updates)
      for (int64_t i = 0; i < kDim; ++i)
        EXPECT_NEAR(sum[i], other.updates[id][i], 1e-6F * std::abs(sum[i])) << "id " << id;
    for (int32_t rank = 0; rank < 2; ++rank) {
      // The rows of a message are padded to whole lines.
      EXPECT_NEAR(static_cast<double>(other.rowBytes[rank]),
                  2 * static_cast<double>(plain.rowBytes[rank]), 64);
    }
  }
}

} // namespace
