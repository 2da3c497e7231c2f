//===- step_sums_test.cpp - sums over portions that travel together -------===//

#include "../../runtime/session/step_sums.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace genrec::rt;

namespace {

std::vector<float> makePartial(int32_t number, int32_t portion, int32_t step, int64_t length) {
  std::mt19937 random(number * 1009 + portion * 31 + step);
  std::vector<float> values(length);
  for (float &value : values)
    value = std::ldexp(static_cast<float>(random() % 2000) - 1000,
                       static_cast<int>(random() % 30) - 15);
  return values;
}

/// What PortionSums makes of the portions of this rank, in calls of its own.
std::vector<float> sumAlone(Communicator &comm, int32_t portions, int32_t number, int32_t step,
                            int64_t length) {
  PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
  PortionSums sums(length, portions, comm.getRank(), comm.getSize());
  for (int32_t i = 0; i < own.count; ++i) {
    std::vector<float> values = makePartial(number, own.first + i, step, length);
    std::copy(values.begin(), values.end(), sums.begin());
    sums.commit();
  }
  std::vector<float> total(length);
  sums.reduce(comm, total.data());
  return total;
}

/// The last length is cut into slices by more than two ranks.
constexpr int64_t kLengths[] = {1, 7, 20000};

void contribute(StepSums &sums, int32_t number, int32_t portion, int32_t step) {
  std::vector<float> values = makePartial(number, portion, step, kLengths[number]);
  const float *partial[] = {values.data()};
  int64_t floats[] = {kLengths[number]};
  sums.contribute(number, partial, floats);
}

std::vector<float> collect(StepSums &sums, Communicator &comm, int32_t number) {
  std::vector<float> total(kLengths[number]);
  float *to[] = {total.data()};
  int64_t floats[] = {kLengths[number]};
  sums.collect(comm, number, floats, to);
  return total;
}

/// Number 0 is complete in the first round of a step, 1 and 2 in the second; or 1 travels where it
/// is collected.
void runStep(StepSums &sums, BucketedRound &round, Communicator &comm, int32_t portions,
             int32_t step) {
  PortionRange own = getPortions(portions, comm.getRank(), comm.getSize());
  sums.begin();
  for (int32_t i = 0; i < own.count; ++i)
    contribute(sums, 0, own.first + i, step);
  round.exchange(comm, sums);
  sums.finish(comm, /*messagesStay=*/false);
  for (int32_t i = 0; i < own.count; ++i)
    contribute(sums, 1, own.first + i, step);
  std::vector<float> early = step % 2 ? collect(sums, comm, 1) : std::vector<float>();
  for (int32_t i = 0; i < own.count; ++i)
    contribute(sums, 2, own.first + i, step);
  round.exchange(comm, sums);
  sums.finish(comm, /*messagesStay=*/true);
  for (int32_t number = 0; number < 3; ++number)
    EXPECT_EQ(collect(sums, comm, number), sumAlone(comm, portions, number, step, kLengths[number]))
        << "number " << number << ", step " << step;
  if (step % 2)
    EXPECT_EQ(early, collect(sums, comm, 1));
}

TEST(StepSums, HaveTheBitsOfSumsThatTravelAlone) {
  for (int32_t ranks : {1, 2, 3, 4})
    for (int32_t portions : {ranks, 7})
      runThreadRanks(ranks, [&](Communicator &comm) {
        StepSums sums(comm, portions, 0);
        BucketedRound round(comm);
        for (int32_t step = 0; step < 4; ++step)
          runStep(sums, round, comm, portions, step);
      });
}

/// A step that was dispatched and not taken leaves nothing behind.
TEST(StepSums, BeginAnew) {
  runThreadRanks(2, [](Communicator &comm) {
    StepSums sums(comm, 4, 0);
    BucketedRound round(comm);
    contribute(sums, 0, comm.getRank() * 2, 9);
    runStep(sums, round, comm, 4, 0);
  });
}

} // namespace
