//===- nccl_devices_test.cpp - Ranks on the devices of this machine -------===//
//
// What nccl_comm_test.cpp checks with emulated devices, with those that are there and NCCL itself:
// one device is enough to load the library, to connect, and to send to oneself.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/comm_nccl/nccl_comm.h"
#include "../../runtime/comm_nccl/nccl_library.h"
#include "../Comm/device_memory.h"
#include "device_copy.h"

#include "genrec_rt/error.h"

#include <gtest/gtest.h>

#include <thread>

#if defined(GENREC_SIMT)
#include "simt.h"
#endif

namespace genrec::rt::cuda::test {
namespace {

class NcclDevices : public testing::Test {
protected:
  void SetUp() override {
    try {
      nccl = &NcclLibrary::get();
    } catch (const Error &error) {
      GTEST_SKIP() << error.what();
    }
  }
  void TearDown() override {
#if defined(GENREC_SIMT)
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
#endif
  }

  void expectSuccess(int result) { EXPECT_EQ(result, NcclLibrary::kSuccess) << describe(result); }
  std::string describe(int result) { return nccl->describe(result, nullptr); }

  /// Where calls do not block, what `result` was returned for may not be done.
  void finish(NcclLibrary::Comm comm, int result) {
    while (result == NcclLibrary::kInProgress) {
      std::this_thread::yield();
      expectSuccess(nccl->commGetAsyncError(comm, &result));
    }
    expectSuccess(result);
  }

  void sendToSelf(bool polls) {
    NcclLibrary::UniqueId id{};
    expectSuccess(nccl->getUniqueId(&id));
    NcclLibrary::Comm comm = nullptr;
    NcclLibrary::Config config;
    const int made = polls ? nccl->commInitRankConfig(&comm, 1, id, 0, &config)
                           : nccl->commInitRank(&comm, 1, id, 0);
    finish(comm, made);
    const TestStream stream;
    std::vector<uint8_t> values(100'003);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<uint8_t>(i * 37 + i / 251);
    Copy<uint8_t> from(values), to(std::vector<uint8_t>(values.size() + 1, 7));
    expectSuccess(nccl->groupStart());
    expectSuccess(nccl->send(from.data(), values.size(), NcclLibrary::kBytes, 0, comm, stream));
    expectSuccess(nccl->receive(to.data(), values.size(), NcclLibrary::kBytes, 0, comm, stream));
    finish(comm, nccl->groupEnd());
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
    int state = NcclLibrary::kInProgress;
    expectSuccess(nccl->commGetAsyncError(comm, &state));
    expectSuccess(state);
    values.push_back(7);
    EXPECT_EQ(to.fetch(), values);
    expectSuccess(nccl->commDestroy(comm));
  }

  const NcclLibrary *nccl = nullptr;
};

/// Types and their sizes, arguments and streams are what the library takes.
TEST_F(NcclDevices, ARankSendsToItself) {
  int version = 0;
  expectSuccess(nccl->getVersion(&version));
  EXPECT_GE(version, 2700);
  sendToSelf(/*polls=*/false);
}

/// The same by calls that do not block.
TEST_F(NcclDevices, ARankSendsToItselfAndAsksWhetherItHas) {
  if (!nccl->commInitRankConfig)
    GTEST_SKIP() << "NCCL is too old";
  sendToSelf(/*polls=*/true);
}

/// One rank, and a rank per device where there are several.
TEST_F(NcclDevices, RanksConform) {
  int devices = 0;
  GENREC_CUDA_CHECK(cudaGetDeviceCount(&devices));
  for (int ranks = 1; ranks <= devices; ++ranks)
    runThreadRanks(ranks, [](Communicator &host) {
      GENREC_CUDA_CHECK(cudaSetDevice(host.getRank()));
      std::unique_ptr<Communicator> comm = makeNcclComm(host);
      conformance::DeviceMemory memory;
      conformance::checkAll(*comm, &memory);
    });
  GENREC_CUDA_CHECK(cudaSetDevice(0));
}

} // namespace
} // namespace genrec::rt::cuda::test
