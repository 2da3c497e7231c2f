//===- comm_test.cpp - communicators of one process -----------------------===//

#include "../Comm/conformance.h"

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <thread>

using namespace genrec::rt;
using testing::AllOf;
using testing::HasSubstr;

namespace {

using namespace std::chrono_literals;

/// What a run of `ranks` ranks ends with; empty: nothing.
std::string run(int32_t ranks, const std::function<void(Communicator &)> &rank) {
  try {
    runThreadRanks(ranks, rank);
  } catch (const std::exception &error) {
    return error.what();
  }
  return "";
}

TEST(SingleComm, Conforms) {
  std::unique_ptr<Communicator> comm = makeSingleComm();
  EXPECT_NO_THROW(conformance::checkAll(*comm));
}

class ThreadRanks : public testing::TestWithParam<int32_t> {};

TEST_P(ThreadRanks, Conform) {
  EXPECT_EQ(run(GetParam(), [](Communicator &comm) { conformance::checkAll(comm); }), "");
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadRanks, testing::Values(1, 2, 3, 4, 7));

TEST(ThreadRanks, NumbersAreChecked) { EXPECT_EQ(run(0, [](Communicator &) {}), "cannot run on 0 ranks"); }

TEST(ThreadRanks, APeerThatStallsIsNamed) {
  std::atomic<bool> isOver = false;
  std::string error = run(3, [&](Communicator &comm) {
    comm.barrier(); // threads may start at different times
    comm.setPatience(100ms);
    comm.setPurpose({"the rows", 37});
    if (comm.getRank() == 1)
      while (!isOver)
        std::this_thread::sleep_for(1ms);
    else
      try {
        comm.barrier();
      } catch (const CommError &) {
        isOver = true;
        throw;
      }
  });
  EXPECT_THAT(error, HasSubstr("waited 100 ms for rank 1, which has not come to the rows of step 37"));
}

TEST(ThreadRanks, PartsOfDifferentSizesAreToldOnAllRanks) {
  std::atomic<int> told = 0;
  std::string error = run(2, [&](Communicator &comm) {
    char data[16] = {};
    std::vector<SendPart> send(2, SendPart{data, comm.getRank() == 0 ? 8 : 4});
    std::vector<ReceivePart> receive(2, ReceivePart{data + 8, 4});
    receive[comm.getRank()].bytes = comm.getRank() == 0 ? 8 : 4;
    try {
      comm.exchange(send, receive);
    } catch (const CommError &failure) {
      EXPECT_STREQ(failure.what(), "rank 0 sends 8 bytes to rank 1, which expects 4");
      ++told;
      throw;
    }
  });
  EXPECT_EQ(told, 2);
  EXPECT_THAT(error, HasSubstr("rank 0 sends 8 bytes to rank 1, which expects 4"));
}

TEST(ThreadRanks, AnAbortEndsWhatWaits) {
  std::atomic<int> seen = 0;
  std::string error = run(4, [&](Communicator &comm) {
    std::unique_ptr<Communicator> stage = comm.duplicate();
    if (comm.getRank() == 2) {
      comm.abort("no rows in part-7.parquet");
      return;
    }
    try {
      stage->barrier();
    } catch (const CommError &failure) {
      EXPECT_STREQ(failure.what(), "rank 2: no rows in part-7.parquet");
      ++seen;
    }
  });
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(error, "");
}

TEST(ThreadRanks, AnExceptionOfOneEndsAll) {
  EXPECT_EQ(run(3,
                [](Communicator &comm) {
                  if (comm.getRank() == 1)
                    throw Error("a null in column 'item'");
                  comm.barrier();
                }),
            "a null in column 'item'");
}

TEST(ThreadRanks, LackOfMemoryIsHeardInWords) {
  EXPECT_EQ(run(2,
                [](Communicator &comm) {
                  if (comm.getRank() == 1)
                    EXPECT_NE(failureOf(comm, [] { throw std::bad_alloc(); }), nullptr);
                  else
                    EXPECT_THAT([&] { comm.barrier(); }, testing::ThrowsMessage<CommError>(
                                                             HasSubstr("rank 1: out of memory")));
                }),
            "");
}

TEST(LoadMpiComm, WhatIsMissingIsSaid) {
  EXPECT_THAT([] { loadMpiComm("/nowhere/libgenrec-comm-mpi.so"); },
              testing::ThrowsMessage<Error>(AllOf(HasSubstr("cannot load the communicator over MPI"),
                                                  HasSubstr("/nowhere/libgenrec-comm-mpi.so"))));
}

TEST(RunTogether, AllThrowWhatTheFirstDoes) {
  std::atomic<int> told = 0;
  EXPECT_EQ(run(4,
                [&](Communicator &comm) {
                  runTogether(&comm, [] {});
                  try {
                    runTogether(&comm, [&] {
                      if (comm.getRank() % 2)
                        throw Error("no " + std::to_string(comm.getRank()), "try again");
                    });
                  } catch (const Error &error) {
                    std::string expected = comm.getRank() == 1 ? "no 1" : "rank 1: no 1";
                    told += error.what() == expected && error.help() == "try again";
                  }
                  comm.barrier(); // nothing is over
                  EXPECT_THAT([&] { runTogether(&comm, [] { throw Error("all"); }); },
                              testing::ThrowsMessage<Error>("all"));
                }),
            "");
  EXPECT_EQ(told, 4);
  EXPECT_THROW(runTogether(nullptr, [] { throw Error("alone"); }), Error);
}

} // namespace
