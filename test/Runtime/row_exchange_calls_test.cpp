//===- row_exchange_calls_test.cpp - what a row exchange sends and refuses ===//

#include "../../runtime/ranks/row_exchange.h"

#include "CountedAllocations.h"
#include "genrec_rt/buffer.h"
#include "genrec_rt/forwarding_comm.h"
#include "genrec_rt/owner.h"

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mutex>
#include <random>

using namespace genrec::rt;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

namespace {

//===----------------------------------------------------------------------===//
// What travels
//===----------------------------------------------------------------------===//

/// Notes the bytes that each exchange sends.
class CountingComm final : public ForwardingComm {
public:
  using ForwardingComm::ForwardingComm;

  std::vector<int64_t> sent; ///< by exchange

protected:
  void doExchange(std::span<const SendPart> send, std::span<const ReceivePart> receive) override {
    note(send);
    ForwardingComm::doExchange(send, receive);
  }
  void doExchangeUpTo(std::span<const SendPart> send, std::span<const ReceivePart> receive,
                      std::span<int64_t> received) override {
    note(send);
    ForwardingComm::doExchangeUpTo(send, receive, received);
  }

private:
  void note(std::span<const SendPart> send) {
    sent.push_back(0);
    for (const SendPart &part : send)
      sent.back() += part.bytes;
  }
};

constexpr int64_t kHeaderBytes = 64; // of a bucketed message

/// A rank with two stores of one table each, of 16 and 32 floats per row; rows are in `memory`.
struct TwoStores {
  TwoStores(Communicator &comm, int32_t portions, ExchangedStore like = {})
      : exchange(comm,
                 {{16, {hashTableName("a")}, 63, like.replicated, like.isFrozen},
                  {32, {hashTableName("b")}, 63, like.replicated, like.isFrozen}},
                 portions) {}

  void fetch(int32_t store, const std::vector<int64_t> &keys, std::vector<float *> &rows) {
    rows.resize(keys.size());
    RowRequest request{store,       keys.data(), nullptr, static_cast<int64_t>(keys.size()),
                       rows.data(), nullptr};
    exchange.fetch({&request, 1}, find);
  }

  RowExchange::FindRows find = [this](int32_t, std::span<const int64_t> keys, float **to) {
    for (size_t i = 0; i < keys.size(); ++i)
      to[i] = memory + keys[i] % 64 * 32;
  };

  RowExchange exchange;
  alignas(64) float memory[64 * 32] = {};
};

TEST(RowExchange, EveryDistinctKeyTravelsOnceInOneRound) {
  runThreadRanks(2, [](Communicator &inner) {
    CountingComm comm(inner);
    TwoStores stores(comm, 2);
    std::vector<float *> rows[2];
    std::vector<int64_t> keys[] = {{1, 2, 1, 2, 3, 1}, {7, 7, 7, -1, 9}};
    std::vector<RowRequest> requests;
    for (int32_t store : {0, 1, 0, 1}) {
      rows[store].resize(keys[store].size());
      requests.push_back({store, keys[store].data(), nullptr,
                          static_cast<int64_t>(keys[store].size()), rows[store].data(), nullptr});
    }
    auto find = [&](int32_t, std::span<const int64_t> keys, float **to) {
      for (size_t i = 0; i < keys.size(); ++i)
        to[i] = stores.memory + keys[i] * 32;
    };
    auto countOthers = [&](const char *table, std::vector<int64_t> distinct) {
      return std::count_if(distinct.begin(), distinct.end(), [&](int64_t key) {
        return getOwner(getSlice(hashTableName(table), key), 2) != comm.getRank();
      });
    };
    int64_t asked = countOthers("a", {1, 2, 3}) + countOthers("b", {7, 9});
    ASSERT_TRUE(asked > 0 && asked < 5);
    stores.exchange.fetch(requests, find);
    ASSERT_EQ(comm.sent.size(), 2U); // keys with a count per store, values
    EXPECT_EQ(comm.sent[0], kHeaderBytes + (2 + asked) * 8);
    stores.exchange.fetch(requests, find); // all are here
    EXPECT_EQ(comm.sent[2], kHeaderBytes + 2 * 8);
    EXPECT_EQ(comm.sent[3], 0);

    std::vector<float> sums(3 * 16, 1.0F);
    comm.sent.clear();
    stores.exchange.contribute(0, comm.getRank(), std::span(rows[0]).subspan(0, 2), sums.data());
    stores.exchange.collect();
    ASSERT_EQ(comm.sent.size(), 1U); // masks, in a cache line, and sums
    EXPECT_EQ(comm.sent[0], kHeaderBytes + 64 + countOthers("a", {1, 2}) * 16 * 4);
  });
}

/// What a rank sends in the messages of a step whose tables are all replicated.
std::vector<int64_t> listSent(bool isFrozen) {
  std::vector<int64_t> sent;
  runThreadRanks(2, [&](Communicator &inner) {
    CountingComm comm(inner);
    TwoStores stores(comm, 2, {.replicated = {true}, .isFrozen = isFrozen});
    std::vector<float *> rows[2];
    stores.fetch(0, {1, 2, 1, 2, 3, 1}, rows[0]);
    stores.fetch(1, {7, 7, 7, -1, 9}, rows[1]);
    std::vector<float> sums(2 * 16, 1.0F);
    if (!isFrozen)
      stores.exchange.contribute(0, comm.getRank(), std::span(rows[0]).subspan(0, 2), sums.data());
    stores.exchange.collect(nullptr, [](int32_t, std::span<const int64_t>, float **) {
      ADD_FAILURE() << "both ranks ask for the same rows";
    });
    EXPECT_EQ(stores.exchange.getUpdate(0).rows.size(), isFrozen ? 0U : 2U);
    EXPECT_EQ(stores.exchange.getTraffic().rowBytes, 0);
    if (comm.getRank() == 0)
      sent = comm.sent;
  });
  return sent;
}

TEST(RowExchange, ReplicasTakeOneRound) {
  // Two counts and five keys, five masks: each in a cache line; two sums.
  EXPECT_THAT(listSent(/*isFrozen=*/false), ElementsAre(kHeaderBytes + 64 + 64 + 2 * 16 * 4));
  EXPECT_THAT(listSent(/*isFrozen=*/true), ElementsAre(kHeaderBytes));
}

TEST(RowExchange, ReplicasAreNotRounded) {
  EXPECT_THAT(
      [] {
        std::unique_ptr<Communicator> comm = makeSingleComm();
        RowExchange(*comm, {{4, {1}, 63, {true}}}, 1, {.bf16Sums = true});
      },
      ThrowsMessage<Error>(HasSubstr("copies of replicated rows would differ")));
}

TEST(RowExchange, AllocatesNothingInTheSteadyState) {
  for (bool replicated : {false, true})
    runThreadRanks(2, [&](Communicator &comm) {
      TwoStores stores(comm, 6, {.replicated = {replicated}});
      std::mt19937 random(comm.getRank());
      std::vector<int64_t> keys(500);
      std::vector<float *> rows, touched;
      std::vector<float> sums(500 * 32, 1.0F);
      auto run = [&](int32_t store) {
        for (int64_t &key : keys)
          key = random() % 3000;
        stores.fetch(store, keys, rows);
        touched = rows;
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (int32_t i = 0; i < 3; ++i)
          stores.exchange.contribute(store, comm.getRank() * 3 + i, touched, sums.data());
      };
      auto runStep = [&] {
        stores.exchange.begin();
        run(0);
        run(1);
        stores.exchange.collect(nullptr, stores.find);
      };
      for (int i = 0; i < 20; ++i)
        runStep();
      comm.barrier();
      random.seed(comm.getRank()); // steps of sizes that were there
      int64_t aligned = alignedAllocations();
      comm.barrier();
      int64_t news = genrec::rt::test::stepAllocations;
      genrec::rt::test::isStepThread = true;
      for (int i = 0; i < 20; ++i)
        runStep();
      genrec::rt::test::isStepThread = false;
      EXPECT_EQ(genrec::rt::test::stepAllocations - news, 0);
      EXPECT_EQ(alignedAllocations() - aligned, 0);
    });
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(RowExchange, AnErrorAtOneOwnerEndsAllRanks) {
  std::mutex mutex;
  std::vector<std::string> errors;
  auto run = [&](Communicator &comm) {
    comm.setPatience(std::chrono::minutes(1)); // others that are not told
    RowExchange exchange(comm, {{4, {hashTableName("a")}}}, 3);
    float row[4] = {};
    std::vector<int64_t> keys(200);
    for (int64_t i = 0; i < 200; ++i)
      keys[i] = i;
    std::vector<float *> rows(200);
    RowRequest request{0, keys.data(), nullptr, 200, rows.data(), nullptr};
    try {
      exchange.fetch({&request, 1}, [&](int32_t, std::span<const int64_t> keys, float **to) {
        if (comm.getRank() == 1)
          throw Error("table 'a' is full");
        std::fill_n(to, keys.size(), &row[0]);
      });
    } catch (const Error &error) {
      std::lock_guard lock(mutex);
      errors.push_back(error.what());
    }
  };
  runThreadRanks(3, run);
  ASSERT_EQ(errors.size(), 3U);
  std::sort(errors.begin(), errors.end());
  EXPECT_EQ(errors[0], "rank 1: table 'a' is full");
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], "table 'a' is full");
}

/// What one rank throws when it makes these calls.
template <class Body> void expectError(const Body &body, const std::string &message) {
  std::unique_ptr<Communicator> comm = makeSingleComm();
  TwoStores stores(*comm, 3);
  EXPECT_THAT([&] { body(stores); }, ThrowsMessage<Error>(HasSubstr(message)));
}

TEST(RowExchange, WrongCallsAreErrors) {
  std::vector<float *> rows;
  std::vector<float> sums(64);
  auto contribute = [&](TwoStores &stores, int32_t portion) {
    stores.exchange.contribute(0, portion, rows, sums.data());
  };
  expectError([&](TwoStores &stores) { stores.fetch(2, {1}, rows); }, "store 2 is not among 2");
  expectError(
      [&](TwoStores &stores) {
        stores.fetch(0, {1}, rows);
        contribute(stores, 1);
        contribute(stores, 0);
      },
      "portion 0 of store 0 is not next: this rank has portions 0 to 2");
  expectError([&](TwoStores &stores) { contribute(stores, 3); },
              "portion 3 of store 0 is not next");
  expectError(
      [&](TwoStores &stores) {
        stores.fetch(0, {1, 1}, rows);
        contribute(stores, 0);
      },
      "portion 0 has two sums for one row of store 0");
  for (int64_t offset : {-1, 1, 16})
    expectError(
        [&](TwoStores &stores) {
          stores.fetch(0, {1}, rows);
          rows[0] += offset;
          contribute(stores, 0);
        },
        "a row that is touched in store 0 was not fetched in this step");
  expectError(
      [&](TwoStores &stores) {
        stores.fetch(0, {1}, rows);
        stores.exchange.begin();
        contribute(stores, 0);
      },
      "was not fetched in this step");
  expectError(
      [&](TwoStores &stores) {
        stores.exchange.collect();
        stores.exchange.collect();
      },
      "'collect' is called twice in a step");
  expectError(
      [&](TwoStores &stores) {
        stores.exchange.collect();
        stores.fetch(0, {1}, rows);
      },
      "rows are fetched after 'collect'");
}

TEST(RowExchange, RowsThatTheOwnerDoesNotGiveAreErrors) {
  std::unique_ptr<Communicator> comm = makeSingleComm();
  RowExchange exchange(*comm, {{4, {1, 2}, /*keyBits=*/40}}, 1);
  int64_t keys[] = {17, int64_t(5) << 40};
  float *rows[2];
  RowRequest request{0, keys, nullptr, 1, rows, nullptr};
  auto find = [](int32_t, std::span<const int64_t>, float **) {};
  EXPECT_THAT([&] { exchange.fetch({&request, 1}, find); },
              ThrowsMessage<Error>(HasSubstr("store 0 gave no row for key 17")));
  exchange.begin();
  request.count = 2;
  EXPECT_THAT([&] { exchange.fetch({&request, 1}, find); },
              ThrowsMessage<Error>(HasSubstr("is of table 5 where 2 share a store")));
}

} // namespace
