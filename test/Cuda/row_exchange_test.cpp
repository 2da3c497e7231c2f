//===- row_exchange_test.cpp - Rows and sums of portions, beside the CPU's ===//
//
// Random steps on threads with an emulated device each: what ranks are given, and what owners
// update, has the bits of ranks/row_exchange.h on the same ranks.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../../runtime/ranks/cuda/portion_sums.h"
#include "../../runtime/ranks/cuda/row_exchange.h"
#include "../../runtime/ranks/row_exchange.h"
#include "device_copy.h"
#include "simt.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kKeyBits = 8, kKeys = int64_t(3) << kKeyBits;
constexpr int64_t kDims[] = {4, 7, 1, 7};
constexpr int32_t kStores = 4;
/// Store 3 has values of bf16: whatever its floats are, they travel as they are.
bool isBf16(int32_t store) { return store == 3; }
int64_t widthOf(int32_t store) { return storeValueFloats(kDims[store], isBf16(store)); }

/// Store 1 is of three tables.
std::vector<uint64_t> membersOf(int32_t store) {
  return store == 1 ? std::vector<uint64_t>{11, 22, 33} : std::vector<uint64_t>{44u + store};
}

/// Element `c` of the row of a key, and of the sum that a portion has of it.
float valueOf(int32_t store, int64_t key, int64_t c) {
  return static_cast<float>(store * 100000 + key * 10 + c);
}
float sumOf(int32_t portion, int64_t key, int64_t c) {
  if (key % 5 == 0)
    return -0.0f; // which stays one where nobody else touches the key
  return std::sin(static_cast<float>(portion * 7919 + key * 31 + c)) * 3;
}

/// What a portion looks up in a store, and the distinct keys of it that it touches.
struct Portion {
  std::vector<int64_t> keys, touched;
};
Portion drawPortion(uint64_t seed, int32_t portion, int32_t store) {
  std::mt19937_64 random(seed * 1000003 + portion * 101 + store);
  Portion made;
  const int64_t limit = store == 1 ? kKeys : 60;
  for (int64_t left = static_cast<int64_t>(random() % 40); left > 0; --left) {
    const int64_t key = random() % 5 == 0 ? -1 : static_cast<int64_t>(random() % limit);
    made.keys.push_back(key);
    if (key >= 0 && random() % 4 && std::ranges::find(made.touched, key) == made.touched.end())
      made.touched.push_back(key);
  }
  return made;
}

/// By store: the bits of sums, by key.
using Updates = std::vector<std::map<int64_t, std::vector<uint32_t>>>;
std::vector<uint32_t> bitsOf(const float *sums, int64_t count) {
  std::vector<uint32_t> bits;
  std::transform(sums, sums + count, std::back_inserter(bits),
                 [](float sum) { return std::bit_cast<uint32_t>(sum); });
  return bits;
}

std::vector<std::vector<float>> makeTables() {
  std::vector<std::vector<float>> tables(kStores);
  for (int32_t store = 0; store < kStores; ++store)
    for (int64_t key = 0; key < kKeys; ++key)
      for (int64_t c = 0; c < widthOf(store); ++c)
        tables[store].push_back(valueOf(store, key, c));
  return tables;
}

std::vector<float> sumsOf(const Portion &portion, int32_t number, int32_t store) {
  std::vector<float> sums;
  for (int64_t key : portion.touched)
    for (int64_t c = 0; c < kDims[store]; ++c)
      sums.push_back(sumOf(number, key, c));
  return sums;
}

/// Rows of touched keys, given those of all entries.
std::vector<float *> touchedRows(const Portion &portion, const std::vector<float *> &rows) {
  std::vector<float *> touched;
  for (int64_t key : portion.touched)
    touched.push_back(rows[std::ranges::find(portion.keys, key) - portion.keys.begin()]);
  return touched;
}

/// The same step on the host.
Updates runOnHost(Communicator &comm, uint64_t seed, int32_t portions, RowTravel travel) {
  std::vector<ExchangedStore> stores;
  for (int32_t store = 0; store < kStores; ++store)
    stores.push_back({.dim = kDims[store],
                      .members = membersOf(store),
                      .keyBits = store == 1 ? kKeyBits : 63,
                      .isBf16 = isBf16(store)});
  rt::RowExchange exchange(comm, stores, portions, travel);
  std::vector<std::vector<float>> tables = makeTables();
  const PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
  std::vector<float> zeros(16);
  std::vector<Portion> drawn;
  std::vector<std::vector<float *>> rows;
  std::vector<RowRequest> requests;
  for (int32_t p = own.first; p < own.first + own.count; ++p)
    for (int32_t store = 0; store < kStores; ++store) {
      drawn.push_back(drawPortion(seed, p, store));
      rows.emplace_back(drawn.back().keys.size());
    }
  for (size_t i = 0; i < drawn.size(); ++i)
    requests.push_back({static_cast<int32_t>(i % kStores), drawn[i].keys.data(), nullptr,
                        static_cast<int64_t>(drawn[i].keys.size()), rows[i].data(), zeros.data()});
  exchange.fetch(requests, [&](int32_t store, std::span<const int64_t> keys, float **to) {
    for (size_t i = 0; i < keys.size(); ++i)
      to[i] = tables[store].data() + keys[i] * widthOf(store);
  });
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto store = static_cast<int32_t>(i % kStores),
               p = own.first + static_cast<int32_t>(i / kStores);
    std::vector<float *> touched = touchedRows(drawn[i], rows[i]);
    exchange.contribute(store, p, touched, sumsOf(drawn[i], p, store).data());
  }
  exchange.collect();
  Updates updates(kStores);
  for (int32_t store = 0; store < kStores; ++store) {
    const rt::RowExchange::Update update = exchange.getUpdate(store);
    for (size_t i = 0; i < update.rows.size(); ++i) {
      const float *sum = update.sums + static_cast<int64_t>(i) * kDims[store];
      updates[store][(update.rows[i] - tables[store].data()) / widthOf(store)] =
          bitsOf(sum, kDims[store]);
    }
  }
  return updates;
}

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
  OnDevice(Communicator &comm, int32_t portions, RowTravel travel)
      : comm(comm), portions(portions), isRounded(travel.bf16Values),
        exchange(comm, describe(), portions, travel, stream) {
    for (const std::vector<float> &table : makeTables())
      tables.emplace_back(table);
  }

  Updates run(uint64_t seed) {
    exchange.begin();
    fetch(seed);
    const PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
    for (int32_t p = own.first; p < own.first + own.count; ++p) {
      exchange.beginPortion(p);
      for (int32_t store = 0; store < kStores; ++store)
        contribute(p, store, drawn[(p - own.first) * kStores + store]);
      exchange.endPortion(p);
    }
    exchange.collect();
    Updates updates(kStores);
    for (int32_t store = 0; store < kStores; ++store)
      readUpdate(store, updates[store]);
    return updates;
  }

private:
  struct Lookup {
    Portion portion;
    std::unique_ptr<Copy<float *>> rows;
    std::vector<float *> addresses;
  };

  static std::vector<DeviceExchangedStore> describe() {
    std::vector<DeviceExchangedStore> stores;
    for (int32_t store = 0; store < kStores; ++store)
      stores.push_back(
          {kDims[store], membersOf(store), store == 1 ? kKeyBits : 63, isBf16(store)});
    return stores;
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
        lookup.portion = drawPortion(seed, own.first + p, store);
        const std::vector<int64_t> &of = lookup.portion.keys;
        lookup.rows = std::make_unique<Copy<float *>>(std::vector<float *>(of.size() + 1));
        requests.push_back({store, static_cast<int64_t>(of.size()), lookup.rows->data(), nullptr});
        keys.insert(keys.end(), of.begin(), of.end());
      }
    int64_t *to = exchange.layOutKeys(requests);
    if (!keys.empty())
      GENREC_CUDA_CHECK(cudaMemcpy(to, keys.data(), keys.size() * 8, cudaMemcpyHostToDevice));
    exchange.ask(comm);
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
                    isRounded && !isBf16(store) ? valueOf(store, key, c) / 256 : 0);
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
    exchange.contribute(p, store, domainThere.data(), count + 3, rowsThere.data(), sumsThere.data());
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void readUpdate(int32_t store, std::map<int64_t, std::vector<uint32_t>> &to) {
    const DeviceRowExchange::Update update = exchange.getUpdate(store);
    Copy<genrec_domain> domain({genrec_domain{}});
    exchange.describe(store, domain.data());
    const int64_t count = domain.fetch()[0].count, dim = kDims[store];
    ASSERT_LE(count, update.most);
    if (count == 0)
      return;
    std::vector<float *> rows(static_cast<size_t>(count));
    GENREC_CUDA_CHECK(
        cudaMemcpy(rows.data(), update.rows, rows.size() * 8, cudaMemcpyDeviceToHost));
    const std::vector<float> sums = fetchFloats(update.sums, count * dim);
    for (int64_t i = 0; i < count; ++i)
      to[(rows[static_cast<size_t>(i)] - tables[store].data()) / widthOf(store)] =
          bitsOf(sums.data() + i * dim, dim);
  }

  Communicator &comm;
  int32_t portions;
  bool isRounded;
  cudaStream_t stream = nullptr;
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
};
INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRowExchanges, testing::Range<uint64_t>(1, 5));

TEST_P(DeviceRowExchanges, RowsAndSumsAreThoseOfTheHost) {
  const auto portions = static_cast<int32_t>(3 + GetParam() % 4);
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    onRanks(ranks, [&](Communicator &comm, Communicator &host) {
      OnDevice device(comm, portions, {});
      for (uint64_t step = 0; step < 2; ++step) {
        const uint64_t seed = GetParam() * 10 + step;
        EXPECT_EQ(device.run(seed), runOnHost(host, seed, portions, {}));
      }
    });
}

/// What goes to another rank is rounded as on the host, what stays is not.
TEST_P(DeviceRowExchanges, RowsThatTravelRoundedAreThoseOfTheHost) {
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    onRanks(ranks, [&](Communicator &comm, Communicator &host) {
      RowTravel travel;
      travel.bf16Values = travel.bf16Sums = true;
      OnDevice device(comm, 3, travel);
      for (uint64_t step = 0; step < 2; ++step) {
        const uint64_t seed = GetParam() * 10 + step;
        EXPECT_EQ(device.run(seed), runOnHost(host, seed, 3, travel));
      }
    });
}

/// Long ones are added in slices where there are three ranks.
TEST_P(DeviceRowExchanges, SumsOfVectorsAreThoseOfTheHost) {
  const auto portions = static_cast<int32_t>(3 + GetParam() % 3);
  for (int32_t ranks = 1; ranks <= 3; ++ranks)
    for (int64_t length : {5, 20000})
      onRanks(ranks, [&](Communicator &comm, Communicator &host) {
        cudaStream_t stream = nullptr;
        PortionSums sums(comm, portions, stream);
        rt::PortionSums expected(length, portions, host.getRank(), ranks);
        const PortionRange own = getPortions(portions, host.getRank(), ranks);
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
      });
}

} // namespace
} // namespace genrec::rt::cuda::test
