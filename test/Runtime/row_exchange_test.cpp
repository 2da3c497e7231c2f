//===- row_exchange_test.cpp - rows of sharded tables, among ranks --------===//

#include "../../runtime/ranks/row_exchange.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/owner.h"
#include "genrec_rt/portions.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

using namespace genrec::rt;

namespace {

using Row = std::vector<float>;

/// The value of a row, whoever has it.
Row makeValue(int32_t store, int64_t key, int64_t dim) {
  Row value(dim);
  for (int64_t i = 0; i < dim; ++i)
    value[i] = static_cast<float>(splitMix64(key * 31 + store * 7 + i) % 10007);
  return value;
}

//===----------------------------------------------------------------------===//
// What the ranks of a step do, and what must come of it
//===----------------------------------------------------------------------===//

struct Lookup {
  int32_t store = 0;
  std::vector<int64_t> keys;
  std::vector<uint8_t> valid; ///< empty: all are
};

struct Portion {
  std::vector<std::vector<Lookup>> fetches;
  std::vector<std::map<int64_t, Row>> sums; ///< by store: of the keys that it touches
};

struct Step {
  std::vector<ExchangedStore> stores;
  std::vector<Portion> portions;
};

/// What the ids of a step are like.
enum class Ids { few, many, ofOneOwner, none, ofSomePortions };

/// Sums whose total depends on the order: of many sizes, now and then all 0 or -0, to which a 0
/// that is added shows.
Row makeSum(std::mt19937 &random, int64_t dim) {
  Row sum(dim, random() % 2 ? 0.0F : -0.0F);
  if (random() % 8)
    for (float &value : sum)
      value = std::ldexp(static_cast<float>(random() % 2000) - 1000,
                         static_cast<int>(random() % 30) - 15);
  return sum;
}

int64_t makeKey(std::mt19937 &random, const ExchangedStore &store, Ids ids) {
  size_t member = random() % store.members.size();
  for (;;) {
    int64_t id = random() % (ids == Ids::few ? 5 : 1000);
    // The first quarter of slices: those of rank 0 of 1 to 4.
    if (ids == Ids::ofOneOwner && getSlice(store.members[member], id) >= kSlices / 4)
      continue;
    return store.members.size() == 1 ? id : int64_t(member) << store.keyBits | id;
  }
}

Lookup makeLookup(std::mt19937 &random, const Step &step, Ids ids, std::set<int64_t> *asked) {
  Lookup lookup;
  lookup.store = static_cast<int32_t>(random() % step.stores.size());
  bool hasValid = random() % 2;
  for (size_t count = random() % 40; count; --count) {
    int64_t key = random() % 7 ? makeKey(random, step.stores[lookup.store], ids) : -1;
    lookup.keys.push_back(key);
    bool isValid = !hasValid || random() % 4;
    if (hasValid)
      lookup.valid.push_back(isValid);
    if (isValid && key != -1)
      asked[lookup.store].insert(key);
  }
  return lookup;
}

/// One step of some stores; `seed` gives the stores, `seed` and `number` the rest.
Step makeStep(uint32_t seed, uint32_t number, int32_t portions, Ids ids) {
  std::mt19937 random(seed);
  Step step;
  for (size_t count = 1 + random() % 3; count; --count) {
    ExchangedStore store;
    store.dim = std::vector<int64_t>{1, 3, 4, 16, 17, 64}[random() % 6];
    store.keyBits = 40;
    for (size_t members = 1 + random() % 3; members; --members)
      store.members.push_back(hashTableName("table" + std::to_string(random() % 100)));
    bool hasReplicas = random() % 3 == 0;
    for (size_t member = 0; hasReplicas && member < store.members.size(); ++member)
      store.replicated.push_back(random() % 3 != 0);
    step.stores.push_back(store);
  }
  random.seed(seed * 1009 + number);
  size_t fetches = 1 + random() % 3;
  for (int32_t i = 0; i < portions; ++i) {
    Portion portion;
    std::vector<std::set<int64_t>> asked(step.stores.size());
    portion.fetches.resize(fetches);
    bool isEmpty = ids == Ids::none || (ids == Ids::ofSomePortions && i * 3 >= portions);
    for (std::vector<Lookup> &fetch : portion.fetches)
      for (size_t lookups = isEmpty ? 0 : random() % 4; lookups; --lookups)
        fetch.push_back(makeLookup(random, step, ids, asked.data()));
    portion.sums.resize(step.stores.size());
    for (size_t store = 0; store < step.stores.size(); ++store)
      for (int64_t key : asked[store])
        if (random() % 4)
          portion.sums[store][key] = makeSum(random, step.stores[store].dim);
    step.portions.push_back(std::move(portion));
  }
  return step;
}

using Bits = std::vector<uint32_t>;
/// By store and key.
using Updates = std::vector<std::map<int64_t, Bits>>;

Bits getBits(const float *values, int64_t count) {
  Bits bits;
  for (int64_t i = 0; i < count; ++i)
    bits.push_back(std::bit_cast<uint32_t>(values[i]));
  return bits;
}

/// The tree of portions.h, written down plainly: those that touch the key.
std::optional<Row> addTree(const std::vector<const Row *> &sums, size_t first, size_t span) {
  if (first >= sums.size())
    return std::nullopt;
  if (span == 1)
    return sums[first] ? std::optional(*sums[first]) : std::nullopt;
  std::optional<Row> left = addTree(sums, first, span / 2);
  std::optional<Row> right = addTree(sums, first + span / 2, span / 2);
  if (!left || !right)
    return left ? left : right;
  for (size_t i = 0; i < left->size(); ++i)
    (*left)[i] += (*right)[i];
  return left;
}

Updates computeUpdates(const Step &step) {
  Updates updates(step.stores.size());
  for (size_t store = 0; store < step.stores.size(); ++store) {
    std::map<int64_t, std::vector<const Row *>> sums;
    for (size_t i = 0; i < step.portions.size(); ++i)
      for (const auto &[key, sum] : step.portions[i].sums[store]) {
        sums[key].resize(step.portions.size());
        sums[key][i] = &sum;
      }
    for (const auto &[key, rows] : sums) {
      Row total = *addTree(rows, 0, std::bit_ceil(rows.size()));
      updates[store][key] = getBits(total.data(), step.stores[store].dim);
    }
  }
  return updates;
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

/// How a step's first fetch is done: at once, in parts before the sums of the step before it, or by
/// another thread beside them.
enum class Fetch { whole, inParts, early, beside };

/// A rank's stores, and what it sees in a step.
class Rank {
public:
  Rank(Communicator &comm, const Step &step, int32_t portions, Fetch kind,
       const std::vector<Updates> &expected)
      : comm(comm), ahead(comm.duplicate()), stores(step.stores), expected(expected), own(getPortions(portions, comm.getRank(), comm.getSize())),
        kind(kind), exchanges{{comm, stores, portions}, {comm, stores, portions}},
        rows(stores.size()) {}

  /// The first fetch of a step up to where it needs the step before; that one's rows change later.
  void begin(const Step &step, size_t number) {
    RowExchange &exchange = exchanges[number % 2];
    exchange.begin();
    found.assign(stores.size(), {});
    prepare(step, 0);
    if (kind != Fetch::whole)
      exchange.ask(*ahead, requests);
    if (kind == Fetch::early || kind == Fetch::beside)
      exchange.bringEarly(*ahead, number > 0 ? &exchanges[(number + 1) % 2] : nullptr,
                          [&](int32_t store, std::span<const int64_t> keys, float **to) {
                            for (size_t i = 0; i < keys.size() && store != 1; ++i)
                              to[i] = findEarly(store, keys[i]);
                            return store != 1;
                          });
  }

  void run(const Step &step, size_t number, const Step *next, Updates &updates, std::mutex &mutex) {
    RowExchange &exchange = exchanges[number % 2];
    addresses.assign(stores.size(), {});
    current = number;
    for (size_t fetch = 0; fetch < step.portions[0].fetches.size(); ++fetch)
      runFetch(exchange, step, fetch);
    std::thread beside;
    if (next && kind == Fetch::beside)
      beside = std::thread([&] { begin(*next, number + 1); });
    else if (next)
      begin(*next, number + 1);
    for (size_t store = 0; store < stores.size(); ++store)
      EXPECT_EQ(exchange.getUpdate(static_cast<int32_t>(store)).rows.size(), 0U);
    for (int32_t i = 0; i < own.count; ++i)
      for (size_t store = 0; store < stores.size(); ++store)
        contribute(exchange, step.portions[own.first + i], own.first + i,
                   static_cast<int32_t>(store));
    exchange.collect(nullptr, [&](int32_t store, std::span<const int64_t> keys, float **to) {
      for (size_t i = 0; i < keys.size(); ++i) {
        EXPECT_TRUE(isReplica(store, keys[i]));
        to[i] = insert(store, keys[i]);
      }
    });
    {
      std::lock_guard lock(mutex);
      for (size_t store = 0; store < stores.size(); ++store)
        readUpdate(exchange, static_cast<int32_t>(store), updates[store]);
    }
    if (beside.joinable())
      beside.join();
  }

  int64_t earlyBytes() const {
    return exchanges[0].getTraffic().earlyRowBytes + exchanges[1].getTraffic().earlyRowBytes;
  }

  /// Those that this rank has, by store.
  std::vector<std::set<int64_t>> replicaKeys() const {
    std::vector<std::set<int64_t>> keys(stores.size());
    for (size_t store = 0; store < stores.size(); ++store)
      for (const auto &[key, row] : rows[store])
        if (isReplica(static_cast<int32_t>(store), key))
          keys[store].insert(key);
    return keys;
  }

private:
  size_t memberOf(int32_t store, int64_t key) const {
    return stores[store].members.size() > 1 ? key >> stores[store].keyBits : 0;
  }
  bool isReplica(int32_t store, int64_t key) const {
    const std::vector<char> &replicated = stores[store].replicated;
    return !replicated.empty() && replicated[memberOf(store, key)];
  }
  bool isOwn(int32_t store, int64_t key) const {
    const ExchangedStore &of = stores[store];
    int64_t id = of.members.size() > 1 ? key & ((int64_t(1) << of.keyBits) - 1) : key;
    return getOwner(getSlice(of.members[memberOf(store, key)], id), comm.getSize()) ==
           comm.getRank();
  }

  void prepare(const Step &step, size_t fetch) {
    requests.clear();
    results.clear();
    lookups.clear();
    for (int32_t i = 0; i < own.count; ++i)
      for (const Lookup &lookup : step.portions[own.first + i].fetches[fetch]) {
        lookups.push_back(&lookup);
        results.emplace_back(lookup.keys.size());
      }
    for (size_t i = 0; i < lookups.size(); ++i)
      requests.push_back({lookups[i]->store, lookups[i]->keys.data(),
                          lookups[i]->valid.empty() ? nullptr : lookups[i]->valid.data(),
                          static_cast<int64_t>(lookups[i]->keys.size()), results[i].data(), &zero});
  }

  void runFetch(RowExchange &exchange, const Step &step, size_t fetch) {
    auto findAll = [&](int32_t store, std::span<const int64_t> keys, float **to) {
      EXPECT_FALSE(keys.empty());
      for (size_t i = 0; i < keys.size(); ++i)
        to[i] = find(store, keys[i]);
    };
    if (fetch > 0)
      prepare(step, fetch);
    if (fetch > 0 || kind == Fetch::whole) {
      exchange.fetch(requests, findAll);
    } else {
      exchange.find(comm, findAll);
      exchange.bring(comm);
    }
    for (size_t i = 0; i < lookups.size(); ++i)
      for (size_t entry = 0; entry < results[i].size(); ++entry)
        checkRow(*lookups[i], entry, results[i][entry]);
  }

  /// A row that is there; it may be one that the running step has not updated yet.
  float *findEarly(int32_t store, int64_t key) {
    auto at = rows[store].find(key);
    if (at == rows[store].end())
      return nullptr;
    found[store].insert(key);
    return at->second.data();
  }

  float *find(int32_t store, int64_t key) {
    EXPECT_TRUE(found[store].insert(key).second) << "key " << key << " is found twice";
    EXPECT_TRUE(isReplica(store, key) || isOwn(store, key));
    return insert(store, key);
  }

  float *insert(int32_t store, int64_t key) {
    auto [at, isNew] = rows[store].try_emplace(key);
    if (isNew) {
      at->second = makeValue(store, key, stores[store].dim);
      keyOf[at->second.data()] = key;
    }
    return at->second.data();
  }

  void checkRow(const Lookup &lookup, size_t entry, const float *row) {
    int64_t key = lookup.keys[entry], dim = stores[lookup.store].dim;
    if (key == -1 || (!lookup.valid.empty() && !lookup.valid[entry])) {
      EXPECT_EQ(row, &zero);
      return;
    }
    EXPECT_EQ(Row(row, row + dim), getValue(lookup.store, key));
    auto [known, isNew] = addresses[lookup.store].try_emplace(key, const_cast<float *>(row));
    EXPECT_EQ(known->second, row) << "key " << key << " has two addresses";
  }

  /// The value of a row in this step: every update adds 1.
  Row getValue(int32_t store, int64_t key) const {
    Row value = makeValue(store, key, stores[store].dim);
    for (size_t number = 0; number < current; ++number)
      if (expected[number][store].contains(key))
        for (float &element : value)
          element += 1;
    return value;
  }

  void contribute(RowExchange &exchange, const Portion &portion, int32_t number, int32_t store) {
    if (portion.sums[store].empty() && number % 2)
      return; // as good as a call without rows
    std::vector<float *> touched;
    Row sums;
    for (const auto &[key, sum] : portion.sums[store]) {
      touched.push_back(addresses[store].at(key));
      sums.insert(sums.end(), sum.begin(), sum.end());
    }
    exchange.contribute(store, number, touched, sums.data());
  }

  void readUpdate(RowExchange &exchange, int32_t store, std::map<int64_t, Bits> &to) {
    RowExchange::Update update = exchange.getUpdate(store);
    std::set<int64_t> updated;
    for (size_t i = 0; i < update.rows.size(); ++i) {
      ASSERT_TRUE(keyOf.contains(update.rows[i]));
      int64_t key = keyOf[update.rows[i]], dim = stores[store].dim;
      auto [at, isNew] = to.try_emplace(key, getBits(update.sums + i * dim, dim));
      if (isReplica(store, key)) // each rank, once
        EXPECT_EQ(at->second, getBits(update.sums + i * dim, dim));
      else
        EXPECT_TRUE(isNew) << "key " << key << " twice";
      EXPECT_TRUE(updated.insert(key).second) << "key " << key << " twice on one rank";
      EXPECT_EQ(update.isOwned.empty() || update.isOwned[i], isOwn(store, key));
      for (int64_t d = 0; d < dim; ++d)
        update.rows[i][d] += 1;
    }
  }

  Communicator &comm;
  std::unique_ptr<Communicator> ahead; ///< of `begin`
  std::vector<ExchangedStore> stores;
  const std::vector<Updates> &expected; ///< by step
  PortionRange own;
  const Fetch kind;
  RowExchange exchanges[2]; ///< by step, in turns
  size_t current = 0;       ///< step
  float zero = 0;
  std::vector<RowRequest> requests; ///< of the fetch that is under way, with their results
  std::vector<std::vector<float *>> results;
  std::vector<const Lookup *> lookups;
  std::vector<std::map<int64_t, Row>> rows;          ///< by store: those that this rank has
  std::map<float *, int64_t> keyOf;                  ///< by address of `rows`
  std::vector<std::set<int64_t>> found;              ///< by store: in this step
  std::vector<std::map<int64_t, float *>> addresses; ///< by store: what `fetch` gave in this step
};

/// Three steps on `ranks` ranks: every key that is touched is updated once, with the tree's bits.
/// Returns the bytes of rows that came early.
int64_t check(uint32_t seed, int32_t portions, int32_t ranks, Ids ids, Fetch kind) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << portions << " portions, " << ranks
                                  << " ranks, ids " << static_cast<int>(ids) << ", fetch "
                                  << static_cast<int>(kind));
  std::vector<Step> steps;
  std::vector<Updates> updates, expected;
  for (uint32_t number = 0; number < 3; ++number) {
    steps.push_back(makeStep(seed, number, portions, ids));
    updates.emplace_back(steps.back().stores.size());
    expected.push_back(computeUpdates(steps.back()));
  }
  std::mutex mutex;
  int64_t early = 0;
  std::set<std::vector<std::set<int64_t>>> replicas;
  runThreadRanks(ranks, [&](Communicator &comm) {
    Rank rank(comm, steps[0], portions, kind, expected);
    rank.begin(steps[0], 0);
    for (size_t number = 0; number < steps.size(); ++number)
      rank.run(steps[number], number, number + 1 < steps.size() ? &steps[number + 1] : nullptr,
               updates[number], mutex);
    std::lock_guard lock(mutex);
    early += rank.earlyBytes();
    replicas.insert(rank.replicaKeys());
  });
  EXPECT_EQ(replicas.size(), 1U); // also of rows that were looked up and not updated
  for (size_t number = 0; number < steps.size(); ++number)
    EXPECT_EQ(updates[number], expected[number]);
  return early;
}

class RowExchanges : public testing::TestWithParam<Ids> {};

TEST_P(RowExchanges, GiveTheSameBitsOnAnyRanks) {
  uint32_t seed = 1;
  int64_t early = 0;
  for (int32_t ranks : {1, 2, 3, 4})
    for (int32_t portions : {ranks, ranks + 1, 7, 12, 13})
      for (Fetch kind : {Fetch::whole, Fetch::inParts, Fetch::early, Fetch::beside, Fetch::beside}) {
        int64_t bytes = check(seed++, portions, ranks, GetParam(), kind);
        EXPECT_TRUE(kind == Fetch::early || kind == Fetch::beside || bytes == 0);
        early += bytes;
      }
  EXPECT_EQ(early > 0, GetParam() != Ids::none); // or nothing is shown
}

INSTANTIATE_TEST_SUITE_P(Ids, RowExchanges,
                         testing::Values(Ids::few, Ids::many, Ids::ofOneOwner, Ids::none,
                                         Ids::ofSomePortions));

TEST(RowExchange, TheOrderMatters) {
  // Else the tests above would show nothing: sums from left to right are others.
  Step step = makeStep(3, 0, 12, Ids::few);
  Updates tree = computeUpdates(step);
  size_t different = 0;
  for (size_t store = 0; store < step.stores.size(); ++store)
    for (const auto &[key, bits] : tree[store]) {
      float forwards = 0;
      for (const Portion &portion : step.portions)
        if (portion.sums[store].contains(key))
          forwards += portion.sums[store].at(key)[0];
      different += std::bit_cast<uint32_t>(forwards) != bits[0];
    }
  EXPECT_GT(different, 0U);
}

} // namespace
