//===- row_exchange_test.cpp - Rows and sums of portions, beside the CPU's ===//
//
// Random steps on threads with an emulated device each: what ranks are given, what they update and
// what they count is what ranks/row_exchange.h says on the same ranks, bit by bit.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../../runtime/ranks/cuda/portion_sums.h"
#include "../../runtime/ranks/cuda/row_exchange.h"
#include "device_copy.h"
#include "row_exchange_steps.h"
#include "simt.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace genrec::rt::cuda::test {
namespace {

__global__ void findKernel(const int64_t *keys, int64_t count, int64_t dim, float *table,
                           float **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    rows[i] = table + keys[i] * dim;
}

std::vector<float> fetchFloats(const float *from, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  GENREC_CUDA_CHECK(
      cudaMemcpy(values.data(), from, values.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return values;
}

/// Steps on a device.
class OnDevice {
public:
  OnDevice(Communicator &comm, int32_t portions, Way given)
      : comm(comm), portions(portions), way(std::move(given)),
        exchange(comm, storesOf(way), portions, way.travel, stream) {
    for (const std::vector<float> &table : makeTables())
      tables.emplace_back(table);
  }

  /// Steps from here on have other replicas, and as many lookups.
  void become(const Way &other) {
    way = other;
    exchange.setReplicated(way.replicated);
  }

  Result run(uint64_t seed) {
    const ExchangeCounts before = exchange.getTraffic();
    exchange.begin();
    fetch(seed);
    Result result;
    if (way.collects)
      collect(result);
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
    exchange.end();
    const ExchangeCounts after = exchange.getTraffic();
    for (const auto &[name, count] : kCounts)
      result.counts.*count = after.*count - before.*count;
    return result;
  }

private:
  struct Lookup {
    Portion portion;
    std::unique_ptr<Copy<float *>> rows;
    std::vector<float *> addresses;
  };

  void collect(Result &result) {
    const PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
    for (int32_t p = own.first; p < own.first + own.count; ++p) {
      exchange.beginPortion(p);
      for (int32_t store = 0; store < kStores; ++store)
        contribute(p, store, drawn[(p - own.first) * kStores + store]);
      exchange.endPortion(p);
    }
    exchange.collect();
    for (int32_t store = 0; store < kStores; ++store)
      readUpdate(store, result.updates[store]);
  }

  void fetch(uint64_t seed) {
    const PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
    drawn.clear();
    drawn.resize(static_cast<size_t>(own.count * kStores));
    std::vector<DeviceRowRequest> requests;
    std::vector<int64_t> keys;
    for (int32_t store = 0; store < kStores; ++store)
      for (int32_t p = 0; p < own.count; ++p) {
        Lookup &lookup = drawn[p * kStores + store];
        lookup.portion = drawPortion(seed, own.first + p, store, way);
        const std::vector<int64_t> &of = lookup.portion.keys;
        lookup.rows = std::make_unique<Copy<float *>>(std::vector<float *>(of.size() + 1));
        requests.push_back({store, static_cast<int64_t>(of.size()), lookup.rows->data(), nullptr});
        keys.insert(keys.end(), of.begin(), of.end());
      }
    int64_t *to = exchange.layOutKeys(requests);
    if (!keys.empty())
      GENREC_CUDA_CHECK(
          cudaMemcpyAsync(to, keys.data(), keys.size() * 8, cudaMemcpyHostToDevice, stream));
    exchange.ask(comm, way.collects);
    exchange.bring(comm, [&](int32_t store, const int64_t *of, int64_t count, float **rows) {
      GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, 64), findKernel, of, count, widthOf(store),
                         tables[store].data(), rows);
    });
    for (size_t i = 0; i < drawn.size(); ++i)
      checkValues(drawn[i], static_cast<int32_t>(i % kStores));
  }

  /// Where values are rounded: those of other ranks, to eight bits.
  void checkValues(Lookup &lookup, int32_t store) {
    lookup.addresses = lookup.rows->fetch();
    for (size_t i = 0; i < lookup.portion.keys.size(); ++i) {
      const int64_t key = lookup.portion.keys[i];
      ASSERT_EQ(lookup.addresses[i] == nullptr, key < 0);
      if (key < 0)
        continue;
      const std::vector<float> values = fetchFloats(lookup.addresses[i], widthOf(store));
      for (int64_t c = 0; c < widthOf(store); ++c)
        ASSERT_NEAR(values[static_cast<size_t>(c)], valueOf(store, key, c),
                    way.travel.bf16Values && !isBf16(store) ? valueOf(store, key, c) / 256 : 0);
    }
  }

  void contribute(int32_t p, int32_t store, const Lookup &lookup) {
    std::vector<float *> rows = touchedRows(lookup.portion, lookup.addresses);
    rows.push_back(tables[store].data()); // which another fetch gave
    const auto count = static_cast<int64_t>(rows.size());
    std::vector<float> sums = sumsOf(lookup.portion, p, store);
    rows.resize(rows.size() + 3); // there is room for more
    sums.resize(rows.size() * static_cast<size_t>(kDims[store]));
    Copy<float *> rowsThere(rows);
    Copy<float> sumsThere(sums);
    genrec_domain domain{};
    domain.count = count;
    Copy<genrec_domain> domainThere({domain});
    exchange.contribute(p, store, domainThere.data(), count + 3, rowsThere.data(),
                        sumsThere.data());
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void readUpdate(int32_t store, std::map<int64_t, Updated> &to) {
    const DeviceRowExchange::Update update = exchange.getUpdate(store);
    Copy<genrec_domain> domain({genrec_domain{}});
    exchange.describe(store, domain.data());
    const int64_t count = domain.fetch()[0].count, dim = kDims[store];
    ASSERT_LE(count, update.capacity);
    if (count == 0)
      return;
    std::vector<float *> rows(static_cast<size_t>(count));
    GENREC_CUDA_CHECK(
        cudaMemcpy(rows.data(), update.rows, rows.size() * 8, cudaMemcpyDeviceToHost));
    std::vector<float> isOwned(rows.size(), 1);
    if (update.isOwned)
      GENREC_CUDA_CHECK(cudaMemcpy(isOwned.data(), update.isOwned, isOwned.size() * sizeof(float),
                                   cudaMemcpyDeviceToHost));
    const std::vector<float> sums = fetchFloats(update.sums, count * dim);
    for (int64_t i = 0; i < count; ++i)
      to[(rows[static_cast<size_t>(i)] - tables[store].data()) / widthOf(store)] = {
          bitsOf(sums.data() + i * dim, dim), isOwned[static_cast<size_t>(i)] != 0};
  }

  Communicator &comm;
  int32_t portions;
  Way way;
  TestStream made;
  cudaStream_t stream = made; // of which the exchange keeps a reference
  RowExchange exchange;
  std::vector<Copy<float>> tables;
  std::vector<Lookup> drawn;
};

class DeviceRowExchanges : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
    simt::options() = {};
  }

  /// Runs `body(comm)` on threads with a device each.
  template <class Body> void onRanks(int32_t ranks, const Body &body) {
    simt::options() = {.seed = GetParam(), .devices = ranks};
    runThreadRanks(ranks, [&](Communicator &host) {
      GENREC_CUDA_CHECK(cudaSetDevice(host.getRank()));
      std::unique_ptr<Communicator> comm = ranks > 1 ? makeNcclComm(host) : makeSingleComm();
      body(*comm, host);
    });
  }

  /// Two steps have the results of the host.
  void expectTheHosts(int32_t ranks, int32_t portions, const Way &way) {
    onRanks(ranks, [&](Communicator &comm, Communicator &host) {
      OnDevice device(comm, portions, way);
      for (uint64_t step = 0; step < 2; ++step) {
        const uint64_t seed = GetParam() * 10 + step;
        expectEqual(device.run(seed), runOnHost(host, seed, portions, way));
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRowExchanges, testing::Range<uint64_t>(1, 5));

TEST_P(DeviceRowExchanges, RowsAndSumsAreThoseOfTheHost) {
  const auto portions = static_cast<int32_t>(3 + GetParam() % 4);
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    expectTheHosts(ranks, portions, {});
}

/// What goes to another rank is rounded as on the host, what stays is not.
TEST_P(DeviceRowExchanges, RowsThatTravelRoundedAreThoseOfTheHost) {
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    expectTheHosts(ranks, 3, {.travel = {.bf16Values = true, .bf16Sums = true}});
}

/// Equal keys have rows of their own, and owners add their sums in the order of entries.
TEST_P(DeviceRowExchanges, EqualKeysThatTravelAreThoseOfTheHost) {
  const bool owners = GetParam() % 2;
  expectTheHosts(2, 3, {.travel = {.ownersDeduplicate = owners}});
  expectTheHosts(3, 4, {.travel = {.requestersDeduplicate = false, .ownersDeduplicate = owners}});
}

TEST_P(DeviceRowExchanges, MoreRowsThanThreadsAreThoseOfTheHost) {
  expectTheHosts(2, 2, {.travel = {.requestersDeduplicate = GetParam() % 2 == 0}, .entries = 2500});
}

/// Of a store, of one table of three, and of rows that no step changes; of all.
const std::vector<std::vector<char>>
    kNone(kStores), kSome = {{1}, {0, 1, 0}, {1}, {}}, kAll = {{1}, {1, 1, 1}, {1}, {1}};

TEST_P(DeviceRowExchanges, ReplicasAreThoseOfTheHost) {
  const auto ranks = static_cast<int32_t>(1 + GetParam() % 3);
  for (const auto &replicated : {kSome, kAll})
    expectTheHosts(ranks, ranks + 2, {.replicated = replicated, .frozen = 2});
}

/// Values of replicas are not rounded; equal keys of them may travel.
TEST_P(DeviceRowExchanges, ReplicasThatTravelOtherwiseAreThoseOfTheHost) {
  RowTravel travel;
  (GetParam() % 2 ? travel.bf16Values : travel.requestersDeduplicate) = GetParam() % 2;
  expectTheHosts(2, 2, {.travel = travel, .replicated = kSome});
}

/// Keys of replicas stay where they are.
TEST_P(DeviceRowExchanges, StepsWithoutSumsAreThoseOfTheHost) {
  const std::vector<std::vector<char>> *replicated[] = {&kNone, &kSome, &kAll};
  expectTheHosts(3, 3, {.replicated = *replicated[GetParam() % 3], .collects = false});
}

TEST_P(DeviceRowExchanges, TablesMayBecomeReplicas) {
  const std::vector<std::vector<char>> *others[] = {&kSome, &kAll};
  onRanks(2, [&](Communicator &comm, Communicator &host) {
    const RowTravel travel{.requestersDeduplicate = GetParam() > 2};
    OnDevice device(comm, 4, {.travel = travel});
    for (const Way &way :
         {Way{.travel = travel}, Way{.travel = travel, .replicated = *others[GetParam() % 2]},
          Way{.travel = travel, .entries = 800}}) { // for which all memory grows
      device.become(way);
      expectEqual(device.run(GetParam()), runOnHost(host, GetParam(), 4, way));
    }
  });
}

/// Keys, values and sums; keys and sums of replicas apart; where all are replicas, these alone.
TEST_P(DeviceRowExchanges, RoundsOfReplicas) {
  const std::tuple<std::vector<std::vector<char>>, bool, int64_t> cases[] = {
      {kNone, true, 3}, {kSome, true, 5}, {kAll, true, 2}, {kAll, false, 0}};
  const auto &[replicated, collects, rounds] = cases[GetParam() % 4];
  onRanks(2, [&](Communicator &comm, Communicator &) {
    OnDevice device(comm, 2, {.replicated = replicated, .collects = collects, .frozen = 2});
    const int64_t before = comm.rounds();
    device.run(GetParam());
    EXPECT_EQ(comm.rounds() - before, rounds + (rounds > 0)); // one of counts
  });
}

/// Rows of replicas count at their owners.
TEST_P(DeviceRowExchanges, ExactSumsAreOfRowsThatCount) {
  onRanks(2, [&](Communicator &comm, Communicator &host) {
    TestStream made;
    const cudaStream_t stream = made;
    PortionSums sums(comm, 2, stream);
    Copy<float> values({100, 3, 5, 7}), others({1, 20, 300, 7}), sum({0, 0, 0});
    const bool isFirst = host.getRank() == 0;
    Copy<float> counts(isFirst ? std::vector<float>{1, 0, 1, 1} : std::vector<float>{0, 1, 0, 0});
    genrec_domain domain{};
    domain.count = 3; // there is room for more
    Copy<genrec_domain> there({domain});
    domain.device = there.data();
    domain.capacity = 4;
    const ExactValues of[] = {{&domain, values.data(), counts.data(), true, sum.data()},
                              {&domain, values.data(), nullptr, false, sum.data() + 1},
                              {&domain, others.data(), counts.data(), true, sum.data() + 2}};
    sums.sumExactly(of);
    EXPECT_EQ(sum.fetch(), (std::vector<float>{108, 108, 321}));
  });
}

/// Long ones are added in slices where there are three ranks; a later program may give others.
TEST_P(DeviceRowExchanges, SumsOfVectorsAreThoseOfTheHost) {
  constexpr int32_t kPortions[] = {3, 4, 5, 8}; // of 8 the third rank has 5, and 6 and 7 together
  const int32_t portions = kPortions[GetParam() % 4];
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    onRanks(ranks, [&](Communicator &comm, Communicator &host) {
      TestStream made;
      const cudaStream_t stream = made;
      PortionSums sums(comm, portions, stream);
      const PortionRange own = getPortions(portions, host.getRank(), ranks);
      for (int64_t length : {5, 20017}) {
        rt::PortionSums expected(length, portions, host.getRank(), ranks);
        const int64_t before = sums.getReceivedBytes();
        sums.begin();
        for (int32_t p = own.first; p < own.first + own.count; ++p) {
          std::vector<float> values;
          for (int64_t i = 0; i < length; ++i)
            values.push_back(sumOf(p, i, 0));
          std::copy(values.begin(), values.end(), expected.begin());
          expected.commit();
          Copy<float> there(values);
          const float *parts[] = {there.data(), there.data() + 3};
          const int64_t floats[] = {3, length - 3};
          sums.contribute(0, parts, floats);
          GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
        }
        sums.reduce(comm);
        Copy<float> total(std::vector<float>(static_cast<size_t>(length)));
        float *totals[] = {total.data(), total.data() + 3};
        sums.collect(0, totals);
        std::vector<float> of(static_cast<size_t>(length));
        expected.reduce(host, of.data());
        EXPECT_EQ(total.fetch(), of);
        int64_t floats = expected.hasSlices() ? length - expected.sliceSize(host.getRank()) : 0;
        for (int32_t from = 0; from < ranks; ++from)
          floats += expected.countFloats(from, host.getRank());
        EXPECT_EQ(sums.getReceivedBytes() - before, floats * 4);
      }
    });
}

} // namespace
} // namespace genrec::rt::cuda::test
