//===- nccl_comm_test.cpp - The communicator over NCCL, ranks as threads --===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../Comm/device_memory.h"
#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

using testing::HasSubstr;

class NcclComm : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    simt::clearError();
    simt::options() = {};
  }

  /// Runs `body(comm, memory)` on each of `ranks` threads, with a device each; what it throws.
  template <class Body> std::string run(int32_t ranks, const Body &body) {
    simt::options() = {.seed = GetParam(), .devices = ranks};
    try {
      runThreadRanks(ranks, [&](Communicator &host) {
        GENREC_CUDA_CHECK(cudaSetDevice(host.getRank()));
        std::unique_ptr<Communicator> comm = makeNcclComm(host);
        conformance::DeviceMemory memory;
        body(*comm, memory);
      });
    } catch (const std::exception &error) {
      return error.what();
    }
    return simt::errorMessage();
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, NcclComm, testing::Range<uint64_t>(1, 4));

TEST_P(NcclComm, Conforms) {
  for (int32_t ranks : {2, 3})
    EXPECT_EQ(run(ranks, [](Communicator &comm,
                            conformance::Memory &memory) { conformance::checkAll(comm, &memory); }),
              "");
}

TEST_P(NcclComm, AnAbortEndsTheWaitsOfOthersWithItsReason) {
  EXPECT_THAT(run(3,
                  [](Communicator &comm, conformance::Memory &memory) {
                    if (comm.getRank() == 1)
                      return comm.abort("no rows in part-7.parquet");
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("rank 1: no rows in part-7.parquet"));
}

TEST_P(NcclComm, APeerThatDoesNotComeIsNoticed) {
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPatience(std::chrono::milliseconds(300));
                    comm.setPurpose({"the rows", 37});
                    if (comm.getRank() == 1)
                      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
                    else
                      conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("which has not come to the rows of step 37"));
}

TEST_P(NcclComm, RanksThatDoNotAgreeAreNamedWhereThatIsChecked) {
  setenv("GENREC_COMM_CHECK", "1", 1);
  EXPECT_EQ(run(2, [](Communicator &comm,
                      conformance::Memory &memory) { conformance::checkAll(comm, &memory); }),
            "");
  EXPECT_THAT(run(2,
                  [](Communicator &comm, conformance::Memory &memory) {
                    comm.setPurpose({"the keys", 36 + static_cast<uint64_t>(comm.getRank())});
                    conformance::checkExchange(comm, 40, memory);
                  }),
              HasSubstr("the keys of step 37"));
  unsetenv("GENREC_COMM_CHECK");
}

} // namespace
} // namespace genrec::rt::cuda::test
