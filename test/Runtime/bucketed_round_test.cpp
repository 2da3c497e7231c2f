//===- bucketed_round_test.cpp - messages whose size the sender knows -----===//

#include "../../runtime/comm/bucketed_round.h"

#include <gtest/gtest.h>
#include <random>

using namespace genrec::rt;

namespace {

char byteAt(int32_t from, int32_t to, int64_t round, int64_t i) {
  return static_cast<char>(from * 31 + to * 17 + round * 7 + i);
}

/// One round whose messages have getBytes(from, to) bytes.
template <class GetBytes>
void runRound(BucketedRound &round, Communicator &comm, int64_t number, const GetBytes &getBytes) {
  int32_t rank = comm.getRank(), ranks = comm.getSize();
  std::vector<int64_t> bytes(ranks);
  for (int32_t to = 0; to < ranks; ++to)
    bytes[to] = getBytes(rank, to);
  round.layOut(bytes);
  for (int32_t to = 0; to < ranks; ++to)
    for (int64_t i = 0; i < bytes[to]; ++i)
      round.outgoing(to)[i] = byteAt(rank, to, number, i);
  round.exchange(comm);
  for (int32_t from = 0; from < ranks; ++from) {
    std::span<char> message = round.incoming(from);
    ASSERT_EQ(static_cast<int64_t>(message.size()), getBytes(from, rank));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(message.data()) % 64, 0U);
    for (size_t i = 0; i < message.size(); ++i)
      ASSERT_EQ(message[i], byteAt(from, rank, number, i)) << "byte " << i;
  }
}

TEST(BucketedRound, CarriesMessagesOfAnySize) {
  for (int32_t ranks : {1, 2, 3, 4})
    runThreadRanks(ranks, [&](Communicator &comm) {
      BucketedRound round(comm);
      for (int64_t number = 0; number < 60; ++number)
        runRound(round, comm, number, [&](int32_t from, int32_t to) {
          std::mt19937 random(number * 100 + from * 10 + to);
          return static_cast<int64_t>(random() % 3 ? random() % 9000 : random() % 90000);
        });
      EXPECT_EQ(round.overflows() > 0, ranks > 1); // or nothing is shown
    });
}

/// A message that is larger than before takes a second exchange, on all ranks; the next ones fit.
TEST(BucketedRound, RemembersSizes) {
  runThreadRanks(3, [](Communicator &comm) {
    BucketedRound round(comm);
    int64_t number = 0;
    auto run = [&](int64_t bytes) {
      int64_t before = round.overflows();
      runRound(round, comm, number++,
               [&](int32_t from, int32_t to) { return from == 2 && to == 0 ? bytes : int64_t(8); });
      return round.overflows() - before;
    };
    EXPECT_EQ(run(4000), 0); // with its header, what there is room for at first
    EXPECT_EQ(run(50000), 1);
    EXPECT_EQ(run(55000), 0);
    EXPECT_EQ(run(10), 0);
    EXPECT_EQ(run(55000), 0);
    EXPECT_EQ(run(100000), 1);
    for (int i = 0; i < 200; ++i)
      EXPECT_EQ(run(10), 0);
    EXPECT_EQ(run(55000), 1); // forgotten
    round.reset();
    EXPECT_EQ(run(55000), 1);
  });
}

} // namespace
