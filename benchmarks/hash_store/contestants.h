//===- contestants.h - The store and its peers behind one face --*- C++ -*-===//
//
// Every contestant maps ids to rows of 16 floats. The peers are maps from an id to
// the address of its row; their rows are numbered memory that nobody writes, while
// the store writes initial values and keeps the ids of its rows.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_BENCHMARKS_HASH_STORE_CONTESTANTS_H
#define GENREC_BENCHMARKS_HASH_STORE_CONTESTANTS_H

#include "genrec_rt/parallel.h"
#include "genrec_rt/store.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
#include <boost/unordered/unordered_flat_map.hpp>
#define BENCH_BOOST 1
#endif
#if defined(BENCH_ABSL) // where pkg-config knows what to link
#include <absl/container/flat_hash_map.h>
#endif
#if defined(BENCH_TBB)
#include <tbb/concurrent_hash_map.h>
#endif

namespace bench {

constexpr int64_t kRowFloats = 16;
/// Ids per task of a peer whose calls may run side by side.
constexpr int64_t kPeerGrain = 1 << 14;

class Contestant {
public:
  explicit Contestant(std::string name) : name(std::move(name)) {}
  virtual ~Contestant() = default;
  virtual void find(const int64_t *ids, int64_t count, float **rows) = 0;
  virtual void findOrInsert(const int64_t *ids, int64_t count, float **rows) = 0;
  virtual int64_t size() const = 0;
  virtual void clear() = 0;                ///< forgets everything and frees what it can
  virtual void makeRoom(int64_t keys) = 0; ///< forgets everything and has memory for `keys`
  const std::string name;
};

class Store final : public Contestant {
public:
  explicit Store(genrec_rt_pool *pool) : Contestant("genrec"), pool(pool) { clear(); }
  void find(const int64_t *ids, int64_t count, float **rows) override {
    store->find(pool, ids, nullptr, count, rows, nullptr);
  }
  void findOrInsert(const int64_t *ids, int64_t count, float **rows) override {
    store->findOrInsert(pool, ids, nullptr, count, rows);
  }
  int64_t size() const override { return store->size({}); }
  void clear() override {
    genrec::rt::StoreConfig config;
    config.dim = kRowFloats;
    store = genrec::rt::makeHostStore(config);
  }
  void makeRoom(int64_t) override { store->clear({}); } // it keeps what it had

private:
  genrec_rt_pool *pool;
  std::unique_ptr<genrec::rt::TableStore> store;
};

/// Addresses of rows, one after another.
class RowNumbers {
public:
  float *next() {
    return reinterpret_cast<float *>(count.fetch_add(1, std::memory_order_relaxed) * kRowFloats *
                                     4);
  }

private:
  std::atomic<int64_t> count{1}; // the address null means "none"
};

/// A map whose finds may run side by side, its insertions not.
template <class Map> class SerialMap final : public Contestant {
public:
  SerialMap(std::string name, genrec_rt_pool *pool) : Contestant(std::move(name)), pool(pool) {}
  void find(const int64_t *ids, int64_t count, float **rows) override {
    const Map &read = map;
    genrec::rt::parallelFor(pool, count, kPeerGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i) {
        auto found = read.find(ids[i]);
        rows[i] = found == read.end() ? nullptr : found->second;
      }
    });
  }
  void findOrInsert(const int64_t *ids, int64_t count, float **rows) override {
    for (int64_t i = 0; i < count; ++i) {
      auto [entry, isNew] = map.try_emplace(ids[i], nullptr);
      if (isNew)
        entry->second = numbers.next();
      rows[i] = entry->second;
    }
  }
  int64_t size() const override { return static_cast<int64_t>(map.size()); }
  void clear() override { map = Map(); }
  void makeRoom(int64_t keys) override {
    map.clear();
    map.reserve(static_cast<size_t>(keys));
  }

private:
  genrec_rt_pool *pool;
  Map map;
  RowNumbers numbers;
};

#if defined(BENCH_TBB)
class Tbb final : public Contestant {
public:
  using Map = tbb::concurrent_hash_map<int64_t, float *>;
  explicit Tbb(genrec_rt_pool *pool) : Contestant("TBB concurrent_hash_map"), pool(pool) {}
  void find(const int64_t *ids, int64_t count, float **rows) override {
    genrec::rt::parallelFor(pool, count, kPeerGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i) {
        Map::const_accessor entry;
        rows[i] = map.find(entry, ids[i]) ? entry->second : nullptr;
      }
    });
  }
  void findOrInsert(const int64_t *ids, int64_t count, float **rows) override {
    genrec::rt::parallelFor(pool, count, kPeerGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t i = begin; i < end; ++i) {
        Map::accessor entry;
        if (map.insert(entry, ids[i]))
          entry->second = numbers.next();
        rows[i] = entry->second;
      }
    });
  }
  int64_t size() const override { return static_cast<int64_t>(map.size()); }
  void clear() override { map.clear(); }
  void makeRoom(int64_t keys) override {
    map.clear();
    map.rehash(static_cast<size_t>(keys));
  }

private:
  genrec_rt_pool *pool;
  Map map;
  RowNumbers numbers;
};
#endif

/// The store, then every peer that this machine has and whose name has `part` in it.
inline std::vector<std::unique_ptr<Contestant>> contestants(genrec_rt_pool *pool,
                                                            const std::string &part) {
  std::vector<std::unique_ptr<Contestant>> all;
  all.push_back(std::make_unique<Store>(pool));
#if defined(BENCH_BOOST)
  all.push_back(std::make_unique<SerialMap<boost::unordered_flat_map<int64_t, float *>>>(
      "boost unordered_flat_map", pool));
#endif
#if defined(BENCH_ABSL)
  all.push_back(std::make_unique<SerialMap<absl::flat_hash_map<int64_t, float *>>>(
      "absl flat_hash_map", pool));
#endif
#if defined(BENCH_TBB)
  all.push_back(std::make_unique<Tbb>(pool));
#endif
  std::erase_if(all, [&](const auto &one) {
    return one != all.front() && one->name.find(part) == std::string::npos;
  });
  return all;
}

} // namespace bench

#endif // GENREC_BENCHMARKS_HASH_STORE_CONTESTANTS_H
