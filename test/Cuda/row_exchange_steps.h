//===- row_exchange_steps.h - Random steps of a row exchange -----*- C++ -*-===//
//
// What portions look up and touch, drawn by seeds, and what the host makes of it
// (ranks/row_exchange.h): which rows ranks update by which sums, and what they count.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_ROW_EXCHANGE_STEPS_H
#define GENREC_TEST_CUDA_ROW_EXCHANGE_STEPS_H

#include "../../runtime/ranks/row_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace genrec::rt::cuda::test {

inline constexpr int64_t kKeyBits = 8, kKeys = int64_t(3) << kKeyBits;
inline constexpr int64_t kDims[] = {4, 7, 1, 7};
inline constexpr int32_t kStores = 4;
/// Store 3 has values of bf16: whatever its floats are, they travel as they are.
inline bool isBf16(int32_t store) { return store == 3; }
inline int64_t widthOf(int32_t store) { return storeValueFloats(kDims[store], isBf16(store)); }

/// Store 1 is of three tables.
inline std::vector<uint64_t> membersOf(int32_t store) {
  return store == 1 ? std::vector<uint64_t>{11, 22, 33} : std::vector<uint64_t>{44u + store};
}

/// How rows travel, and which ones every rank has.
struct Way {
  RowTravel travel = {};
  std::vector<std::vector<char>> replicated = std::vector<std::vector<char>>(kStores);
  bool collects = true;  ///< sums; or the step ends without
  int32_t frozen = -1;   ///< the store that no step changes
  uint64_t entries = 40; ///< a portion's lookups in a store are fewer
};
inline std::vector<ExchangedStore> storesOf(const Way &way) {
  std::vector<ExchangedStore> stores;
  for (int32_t store = 0; store < kStores; ++store)
    stores.push_back({.dim = kDims[store],
                      .members = membersOf(store),
                      .keyBits = store == 1 ? kKeyBits : 3, // one table has keys of 64 bits
                      .replicated = way.replicated[store],
                      .isFrozen = store == way.frozen,
                      .isBf16 = isBf16(store)});
  return stores;
}

/// Element `c` of the row of a key, and of the sum that a portion has of it.
inline float valueOf(int32_t store, int64_t key, int64_t c) {
  return static_cast<float>(store * 100000 + key * 10 + c);
}
inline float sumOf(int32_t portion, int64_t key, int64_t c) {
  if (key % 5 == 0)
    return -0.0f; // which stays one where nobody else touches the key
  return std::sin(static_cast<float>(portion * 7919 + key * 31 + c)) * 3;
}

/// What a portion looks up in a store, and the entries whose rows it touches, each row once.
struct Portion {
  std::vector<int64_t> keys;
  std::vector<size_t> touched;
};
inline Portion drawPortion(uint64_t seed, int32_t portion, int32_t store, const Way &way) {
  std::mt19937_64 random(seed * 1000003 + portion * 101 + store);
  Portion made;
  const int64_t limit = store == 1 ? kKeys : 60;
  for (int64_t left = static_cast<int64_t>(random() % way.entries); left > 0; --left) {
    const int64_t key = random() % 5 == 0 ? -1 : static_cast<int64_t>(random() % limit);
    made.keys.push_back(key);
    const bool isFirst = std::ranges::find(made.keys, key) == std::prev(made.keys.end());
    const bool isRow = key >= 0 && (isFirst || !way.travel.requestersDeduplicate);
    if (isRow && random() % 4 && store != way.frozen)
      made.touched.push_back(made.keys.size() - 1);
  }
  return made;
}

/// The bits of a sum, and whether the rank owns its row.
using Updated = std::pair<std::vector<uint32_t>, bool>;
/// What a rank updates, by store and key; and what it has counted.
struct Result {
  std::vector<std::map<int64_t, Updated>> updates =
      std::vector<std::map<int64_t, Updated>>(kStores);
  ExchangeCounts counts;
};
/// Those of the host. Of sums, devices send all that was asked for.
inline const std::pair<const char *, int64_t ExchangeCounts::*> kCounts[] = {
    {"looked up", &ExchangeCounts::lookedUp},   {"asked", &ExchangeCounts::asked},
    {"served", &ExchangeCounts::served},        {"found", &ExchangeCounts::found},
    {"bytes of ids", &ExchangeCounts::idBytes}, {"bytes of rows", &ExchangeCounts::rowBytes}};
inline void expectEqual(const Result &actual, const Result &expected) {
  EXPECT_EQ(actual.updates, expected.updates);
  for (const auto &[name, count] : kCounts)
    EXPECT_EQ(actual.counts.*count, expected.counts.*count) << name;
}
inline std::vector<uint32_t> bitsOf(const float *sums, int64_t count) {
  std::vector<uint32_t> bits;
  std::transform(sums, sums + count, std::back_inserter(bits),
                 [](float sum) { return std::bit_cast<uint32_t>(sum); });
  return bits;
}

inline std::vector<std::vector<float>> makeTables() {
  std::vector<std::vector<float>> tables(kStores);
  for (int32_t store = 0; store < kStores; ++store)
    for (int64_t key = 0; key < kKeys; ++key)
      for (int64_t c = 0; c < widthOf(store); ++c)
        tables[store].push_back(valueOf(store, key, c));
  return tables;
}

inline std::vector<float> sumsOf(const Portion &portion, int32_t number, int32_t store) {
  std::vector<float> sums;
  for (size_t entry : portion.touched)
    for (int64_t c = 0; c < kDims[store]; ++c)
      sums.push_back(sumOf(number, portion.keys[entry], c + static_cast<int64_t>(entry) * 100));
  return sums;
}

/// Touched rows, given those of all entries.
inline std::vector<float *> touchedRows(const Portion &portion, const std::vector<float *> &rows) {
  std::vector<float *> touched;
  for (size_t entry : portion.touched)
    touched.push_back(rows[entry]);
  return touched;
}

/// The same step on the host.
inline Result runOnHost(Communicator &comm, uint64_t seed, int32_t portions, const Way &way) {
  rt::RowExchange exchange(comm, storesOf(way), portions, way.travel);
  std::vector<std::vector<float>> tables = makeTables();
  const rt::RowExchange::FindRows find = [&](int32_t store, std::span<const int64_t> keys,
                                             float **to) {
    for (size_t i = 0; i < keys.size(); ++i)
      to[i] = tables[store].data() + keys[i] * widthOf(store);
  };
  const PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
  std::vector<float> zeros(16);
  std::vector<Portion> drawn;
  std::vector<std::vector<float *>> rows;
  std::vector<RowRequest> requests;
  for (int32_t p = own.first; p < own.first + own.count; ++p)
    for (int32_t store = 0; store < kStores; ++store) {
      drawn.push_back(drawPortion(seed, p, store, way));
      rows.emplace_back(drawn.back().keys.size());
    }
  for (size_t i = 0; i < drawn.size(); ++i)
    requests.push_back({static_cast<int32_t>(i % kStores), drawn[i].keys.data(), nullptr,
                        static_cast<int64_t>(drawn[i].keys.size()), rows[i].data(), zeros.data()});
  exchange.fetch(requests, find);
  Result result;
  for (size_t i = 0; i < drawn.size() && way.collects; ++i) {
    const auto store = static_cast<int32_t>(i % kStores),
               p = own.first + static_cast<int32_t>(i / kStores);
    std::vector<float *> touched = touchedRows(drawn[i], rows[i]);
    exchange.contribute(store, p, touched, sumsOf(drawn[i], p, store).data());
  }
  if (way.collects)
    exchange.collect(nullptr, find);
  result.counts = exchange.getTraffic();
  for (int32_t store = 0; store < kStores && way.collects; ++store) {
    const rt::RowExchange::Update update = exchange.getUpdate(store);
    for (size_t i = 0; i < update.rows.size(); ++i) {
      const float *sum = update.sums + static_cast<int64_t>(i) * kDims[store];
      const bool isOwned = update.isOwned.empty() || update.isOwned[i];
      result.updates[store][(update.rows[i] - tables[store].data()) / widthOf(store)] = {
          bitsOf(sum, kDims[store]), isOwned};
    }
  }
  return result;
}

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_ROW_EXCHANGE_STEPS_H
