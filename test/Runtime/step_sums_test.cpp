//===- step_sums_test.cpp - sums over portions that travel together -------===//

#include "../../runtime/session/step_sums.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>

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

/// Of no parameters: every rank reads all sums.
const ParameterShards kAlone(genrec_model_desc{}, 1);

/// The last length is cut into slices by more than two ranks.
constexpr int64_t kLengths[] = {1, 7, 20000};

void contribute(StepSums &sums, int32_t number, int32_t portion, int32_t step) {
  std::vector<float> values = makePartial(number, portion, step, kLengths[number]);
  const float *partial[] = {values.data()};
  int64_t floats[] = {kLengths[number]};
  sums.contribute(number, partial, floats, {});
}

std::vector<float> collect(StepSums &sums, Communicator &comm, int32_t number) {
  std::vector<float> total(kLengths[number]);
  float *to[] = {total.data()};
  sums.collect(comm, number, to);
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
        StepSums sums(comm, portions, 0, kAlone);
        BucketedRound round(comm);
        for (int32_t step = 0; step < 4; ++step)
          runStep(sums, round, comm, portions, step);
      });
}

/// A step that was dispatched and not taken leaves nothing behind.
TEST(StepSums, BeginAnew) {
  runThreadRanks(2, [](Communicator &comm) {
    StepSums sums(comm, 4, 0, kAlone);
    BucketedRound round(comm);
    contribute(sums, 0, comm.getRank() * 2, 9);
    runStep(sums, round, comm, 4, 0);
  });
}

//===----------------------------------------------------------------------===//
// Parameters whose updates ranks share
//===----------------------------------------------------------------------===//

/// Parameters [300, 70], [5], [], and [40, 64] of another optimizer; the last one is not trained.
const genrec_parameter_desc kParameters[] = {
    {"weight", 2, {300, 70}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}},
    {"bias", 1, {5, 0}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}},
    {"scale", 0, {0, 0}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}},
    {"other", 2, {40, 64}, {}, {GENREC_OPTIMIZER_SGD, 0, 0.1, 0, 0}, {}},
    {"frozen", 2, {100, 100}, {}, {GENREC_OPTIMIZER_FROZEN, 0, 0, 0, 0}, {}},
};
constexpr int64_t kSizes[] = {300 * 70, 5, 1, 40 * 64, 100 * 100};

genrec_model_desc makeModel() {
  genrec_model_desc model{};
  model.parameters = kParameters;
  model.parameter_count = 5;
  return model;
}

TEST(ParameterShards, CutRowsEvenlyAndLeaveNoneOut) {
  genrec_model_desc model = makeModel();
  for (int32_t ranks : {1, 2, 3, 4, 7}) {
    ParameterShards shards(model, ranks);
    EXPECT_EQ(shards.areShared(), ranks > 1);
    std::vector<double> floats(ranks);
    for (int32_t i = 0; i < 4; ++i) {
      int64_t next = 0;
      for (int32_t rank = 0; rank < ranks; ++rank) {
        ParameterShards::Rows rows = shards.of(i, rank);
        EXPECT_EQ(rows.first, next);
        next += rows.count;
        floats[rank] += static_cast<double>(rows.count * shards.width(i)) *
                        (1 + kParameters[i].optimizer.states);
      }
      EXPECT_EQ(next * shards.width(i), kSizes[i]);
    }
    double all = 3 * (kSizes[0] + kSizes[1] + kSizes[2]) + kSizes[3];
    for (double each : floats)
      EXPECT_NEAR(each, all / ranks, 3 * 70) << "of " << ranks << " ranks";
    EXPECT_EQ(shards.of(4, 0).count, 100) << "nobody updates it";
  }
}

TEST(ParameterShards, GatherWhatEachRankHasUpdated) {
  for (int32_t ranks : {1, 2, 3, 4, 7})
    runThreadRanks(ranks, [&](Communicator &comm) {
      genrec_model_desc model = makeModel();
      ParameterShards shards(model, ranks);
      std::vector<float> block(shards.countFloats(), -1), wanted = block;
      for (int32_t i = 0; i < 5; ++i)
        for (int64_t at = 0; at < kSizes[i]; ++at) {
          ParameterShards::Rows own = shards.of(i, comm.getRank());
          int64_t row = at / shards.width(i), place = shards.start(i) + at;
          bool isFrozen = i == 4;
          wanted[place] = isFrozen ? -1 : static_cast<float>(1000 * i + at % 977);
          if (!isFrozen && row >= own.first && row < own.first + own.count)
            block[place] = wanted[place];
        }
      int64_t bytes = ranks > 1 ? shards.gather(comm, block.data()) : 0;
      EXPECT_EQ(block, wanted);
      EXPECT_LE(bytes, shards.countFloats() * 4);
    });
}

/// A number that has gradients of parameters and another value: ranks read the rows that they
/// update, and all of the other. Bits are those of sums that travel alone, in either stage.
TEST(StepSums, OfParametersComeToTheRankThatUpdatesTheRows) {
  for (int32_t ranks : {1, 2, 3, 4})
    for (int32_t portions : {ranks, 9})
      runThreadRanks(ranks, [&](Communicator &comm) {
        genrec_model_desc model = makeModel();
        ParameterShards shards(model, ranks);
        StepSums sums(comm, portions, 0, shards);
        BucketedRound round(comm);
        PortionRange own = getPortions(portions, comm.getRank(), ranks);
        const int32_t parameters[] = {3, -1, 0, 1, 2};
        const int64_t floats[] = {kSizes[3], 11, kSizes[0], kSizes[1], kSizes[2]};
        for (int32_t step = 0; step < 4; ++step) {
          sums.begin();
          for (int32_t i = 0; i < own.count; ++i) {
            std::vector<std::vector<float>> values;
            std::vector<const float *> partial;
            for (int32_t list = 0; list < 5; ++list)
              values.push_back(makePartial(list, own.first + i, step, floats[list]));
            for (const std::vector<float> &list : values)
              partial.push_back(list.data());
            sums.contribute(0, partial, floats, parameters);
          }
          if (step != 3) { // else it travels where it is collected
            round.exchange(comm, sums);
            sums.finish(comm, /*messagesStay=*/step != 1);
          }
          std::vector<std::vector<float>> totals;
          std::vector<float *> to;
          for (int64_t size : floats)
            to.push_back(totals.emplace_back(size, -1.0F).data());
          sums.collect(comm, 0, to);
          for (int32_t list = 0; list < 5; ++list) {
            std::vector<float> wanted = sumAlone(comm, portions, list, step, floats[list]);
            if (int32_t parameter = parameters[list]; parameter >= 0) {
              ParameterShards::Rows rows = shards.of(parameter, comm.getRank());
              int64_t width = shards.width(parameter);
              for (int64_t at = 0; at < floats[list]; ++at)
                if (at / width < rows.first || at / width >= rows.first + rows.count)
                  wanted[at] = -1;
            }
            EXPECT_EQ(totals[list], wanted) << "list " << list << ", step " << step;
          }
        }
      });
}

//===----------------------------------------------------------------------===//
// Sums that travel ahead
//===----------------------------------------------------------------------===//

/// Large sums travel on a thread of their own, shared ones too; the rest rides. Every other step does
/// without.
TEST(StepSums, HaveTheSameBitsAhead) {
  const genrec_parameter_desc parameters[] = {
      {"wide", 2, {300, 280}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}},
      {"bias", 1, {5, 0}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}},
      {"other", 2, {90, 1000}, {}, {GENREC_OPTIMIZER_ADAM, 2, 0.1, 0, 0}, {}}};
  genrec_model_desc model{};
  model.parameters = parameters;
  model.parameter_count = 3;
  const int64_t sizes[] = {300 * 280, 5, 90 * 1000};
  for (int32_t ranks : {2, 3})
    for (bool areShared : {false, true})
      runThreadRanks(ranks, [&](Communicator &comm) {
        ParameterShards shards(model, areShared ? ranks : 1);
        const int32_t portions = 5;
        StepSums sums(comm, portions, 0, shards);
        BucketedRound round(comm);
        SumsAhead ahead(comm);
        PortionRange own = getPortions(portions, comm.getRank(), ranks);
        for (int32_t step = 0; step < 4; ++step) {
          sums.begin();
          int64_t before = ahead.rounds();
          for (int32_t i = 0; i < own.count; ++i)
            for (int32_t number = 0; number < 3; ++number) {
              std::vector<float> values = makePartial(number, own.first + i, step, sizes[number]);
              const float *partial[] = {values.data()};
              sums.contribute(number, partial, {&sizes[number], 1}, {&number, 1});
              if (step % 2)
                sums.sendAhead(number, ahead, {"the gradients", 1});
            }
          ahead.wait(comm);
          sums.endAhead();
          EXPECT_EQ(sums.has(0), step % 2 == 1);
          EXPECT_FALSE(sums.has(1)) << "is small";
          EXPECT_EQ(ahead.rounds() - before, step % 2 ? (areShared || ranks == 2 ? 2 : 4) : 0);
          round.exchange(comm, sums);
          sums.finish(comm, /*messagesStay=*/true);
          for (int32_t number = 0; number < 3; ++number) {
            std::vector<float> total(sizes[number]),
                wanted = sumAlone(comm, portions, number, step, sizes[number]);
            float *to[] = {total.data()};
            sums.collect(comm, number, to);
            ParameterShards::Rows rows = shards.of(number, areShared ? comm.getRank() : 0);
            int64_t width = shards.width(number), first = rows.first * width,
                    last = first + rows.count * width;
            EXPECT_TRUE(std::equal(total.begin() + first, total.begin() + last,
                                   wanted.begin() + first))
                << "number " << number << ", step " << step;
          }
        }
      });
}

/// A rank that ends does not come to what others wait for.
TEST(SumsAhead, EndWithTheRun) {
  std::atomic<int> ended = 0;
  EXPECT_THROW(runThreadRanks(2, [&](Communicator &comm) {
                 SumsAhead ahead(comm);
                 if (comm.getRank() == 1) {
                   comm.abort("the data are wrong");
                   throw Error("the data are wrong");
                 }
                 ahead.start([](Communicator &on) { on.barrier(); });
                 try {
                   ahead.wait(comm);
                 } catch (const CommError &error) {
                   EXPECT_NE(std::string(error.what()).find("the data are wrong"), std::string::npos);
                   ++ended;
                   throw;
                 }
               }),
               Error);
  EXPECT_EQ(ended, 1);
}

TEST(AheadTrial, KeepsTheFasterWay) {
  for (int64_t with : {50, 99, 100, 150}) {
    AheadTrial trial;
    bool isAhead = false;
    std::vector<bool> ways;
    for (int step = 0; step < 100; ++step) {
      // A step now and then takes long.
      isAhead = trial.next((isAhead ? with : 100) + (step % 13 == 0 ? 500 : 0));
      ways.push_back(isAhead);
    }
    EXPECT_TRUE(std::count(ways.begin(), ways.begin() + 40, true) >= 15);
    EXPECT_EQ(std::count(ways.begin() + 40, ways.end(), true), with == 50 ? 60 : 0) << with;
  }
}

} // namespace
