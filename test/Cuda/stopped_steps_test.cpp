//===- stopped_steps_test.cpp - What losses that are not finite stop ------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/stopped_steps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace genrec::rt::cuda::test {
namespace {

/// A step of three domains, of which the middle one has rows that it updates.
struct StoppedStep {
  Copy<uint32_t> stopped{std::vector<uint32_t>{0}};
  Copy<int32_t> updated{std::vector<int32_t>{1}};
  PinnedArray<float> to{2};

  /// How many rows the domains have behind a loss.
  std::vector<int64_t> report(float sum, float weight) {
    std::vector<genrec_domain> described(3);
    for (genrec_domain &domain : described)
      domain.count = 7;
    Copy<genrec_domain> domains(described);
    Copy<float> values(std::vector<float>{sum, weight});
    reportLoss({.sum = values.data(),
                .weight = values.data() + 1,
                .to = to.data,
                .stopped = stopped.data(),
                .domains = domains.data(),
                .updated = updated.data(),
                .updatedCount = 1},
               testStream());
    std::vector<int64_t> counts;
    for (const genrec_domain &domain : domains.fetch())
      counts.push_back(domain.count);
    return counts;
  }
};

const std::vector<int64_t> kRunning = {7, 7, 7}, kStopped = {7, 0, 7};

TEST(StoppedSteps, ALossIsReportedAndWhatIsNotFiniteTakesUpdatedRowsAway) {
  for (const auto &[sum, weight, counts] :
       {std::tuple(2.0F, 3.0F, kRunning), std::tuple(std::nanf(""), 3.0F, kStopped),
        std::tuple(-INFINITY, 3.0F, kStopped), std::tuple(2.0F, INFINITY, kStopped)}) {
    StoppedStep step;
    EXPECT_EQ(step.report(sum, weight), counts);
    EXPECT_EQ(step.stopped.fetch()[0], counts == kStopped ? 1 : 0);
    EXPECT_TRUE(std::isnan(sum) ? std::isnan(step.to.data[0]) : step.to.data[0] == sum);
    EXPECT_EQ(step.to.data[1], weight);
  }
}

TEST(StoppedSteps, TheNextStepIsStoppedToo) {
  StoppedStep step;
  EXPECT_EQ(step.report(std::nanf(""), 1), kStopped);
  EXPECT_EQ(step.report(2, 3), kStopped);
  EXPECT_EQ(step.to.data[0], 2);
  GENREC_CUDA_CHECK(cudaMemsetAsync(step.stopped.data(), 0, sizeof(uint32_t), testStream()));
  EXPECT_EQ(step.report(2, 3), kRunning);
}

TEST(StoppedSteps, FloatsAreCopiedUnlessStepsAreStopped) {
  constexpr size_t kFloats = 3000; // more than threads
  for (const uint32_t isStopped : {0, 1}) {
    Copy<float> from(std::vector<float>(kFloats, 3)), to(std::vector<float>(kFloats + 1, 5));
    Copy<uint32_t> stopped(std::vector<uint32_t>{isStopped});
    copyUnlessStopped(to.data(), from.data(), kFloats, stopped.data(), testStream());
    std::vector<float> expected(kFloats, isStopped ? 5 : 3);
    expected.push_back(5);
    EXPECT_EQ(to.fetch(), expected);
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
