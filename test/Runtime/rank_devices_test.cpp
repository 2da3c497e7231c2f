//===- rank_devices_test.cpp - Which rank takes which device --------------===//

#include "../../runtime/comm/rank_devices.h"

#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace genrec::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// What ranks take that see devices of these numbers.
std::vector<size_t> take(const std::vector<std::vector<uint8_t>> &seen) {
  std::vector<size_t> taken(seen.size());
  runThreadRanks(static_cast<int32_t>(seen.size()), [&](Communicator &comm) {
    std::vector<DeviceUuid> devices;
    for (const uint8_t number : seen[comm.getRank()])
      devices.push_back({number});
    taken[comm.getRank()] = takeDevice(comm, devices);
  });
  return taken;
}

/// The error of ranks that see these, and what it says to do.
std::string refusal(const std::vector<std::vector<uint8_t>> &seen) {
  try {
    take(seen);
  } catch (const Error &error) {
    return error.what() + std::string("; ") + error.help();
  }
  return "none";
}

TEST(RankDevices, RanksOfAMachineTakeOneAfterAnother) {
  EXPECT_THAT(take({{5, 6, 7, 8}, {5, 6, 7, 8}, {5, 6, 7, 8}}), ElementsAre(0, 1, 2));
}

TEST(RankDevices, RanksThatSeeOneEachTakeThat) {
  EXPECT_THAT(take({{1}, {2}, {3}}), ElementsAre(0, 0, 0));
}

TEST(RankDevices, SeveralMachinesBeginAnew) {
  EXPECT_THAT(take({{1, 2}, {1, 2}, {3, 4}, {3, 4}}), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(take({{1, 2}, {3, 4}, {1, 2}, {3, 4}}), ElementsAre(0, 0, 1, 1));
}

TEST(RankDevices, RanksMaySeeThemInAnotherOrder) {
  EXPECT_THAT(take({{1, 2}, {2, 1}, {9}}), ElementsAre(0, 0, 0));
  EXPECT_THAT(take({{1, 2}, {1, 3}}), ElementsAre(0, 1));
}

TEST(RankDevices, MoreRanksThanDevicesAreRefused) {
  EXPECT_THAT(refusal({{1, 2}, {1, 2}, {7}, {1, 2}}),
              HasSubstr("rank 3 has no GPU of its own: ranks 0, 1, 3 see 2 GPUs together; start as "
                        "many ranks on a machine as it has GPUs (mpirun --map-by ppr:2:node)"));
}

TEST(RankDevices, TwoRanksOnOneDeviceAreRefused) {
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  const std::string said = refusal({{4}, {4}});
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(said, HasSubstr("rank 1 has no GPU of its own: ranks 0, 1 see one GPU"));
  EXPECT_THAT(said, HasSubstr("CUDA_VISIBLE_DEVICES is '3' there"));
}

} // namespace
