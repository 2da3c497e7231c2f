//===- device_ranks_test.cpp - A session's steps on ranks with devices ----===//
//
// Ranks are threads with an emulated device each. Neither their number nor what overlaps changes a
// bit, and both agree with a loop of the host. planted_defects.py leaves out what orders queues and
// exchanges.
//
//===----------------------------------------------------------------------===//

#include "rank_batches.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/placement.h"
#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kIds = kLaterIds;

/// What all ranks have in the end.
struct Result {
  std::vector<double> losses;
  std::vector<float> weight;
  std::map<int64_t, std::vector<float>> rows;
  int64_t ahead = 0;    ///< steps that were dispatched beside another
  int64_t launches = 0; ///< of captured compute stages, on the last rank to end
  int64_t updateCaptures = 0, updateLaunches = 0; ///< of update stages, likewise
  std::vector<std::string> refusals;
  std::vector<int64_t> exchangeAllocations; ///< what exchanges had taken memory after each step
  PlacementReport placement;
  bool operator==(const Result &other) const {
    return losses == other.losses && weight == other.weight && rows == other.rows;
  }
};

struct How {
  Overlap overlap = Overlap::none;
  EarlyGradients early = EarlyGradients::no;
  bool captures = true;
  int64_t cached = 0;        ///< above 0: rows are in the host's memory, and so many on each device
  bool looksUpLater = false; ///< the compute stage looks up ids that it makes
  bool isReplicated = false; ///< every rank has all rows
  bool chooses = false;      ///< ranks choose that
  bool meetsLate = false;    ///< between the rows that portions touch and their sums
};

class DeviceRanks : public testing::TestWithParam<uint64_t> {
protected:
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
    simt::options() = {};
  }

  /// Trains on so many ranks. With `again`, the run ends a batch early, and then comes that one.
  Result train(int32_t ranks, How how, const std::vector<Samples> &batches,
               const std::vector<Samples> &again = {}) {
    simt::options() = {.seed = GetParam() + simt::defaultSeed() - 1, .devices = ranks};
    Result result;
    std::mutex mutex;
    runThreadRanks(ranks, [&](Communicator &comm) {
      SessionOptions options;
      options.threads = 1;
      options.comm = &comm;
      options.portions = kPortions;
      options.overlap = how.overlap;
      options.earlyGradients = how.early;
      options.captureSteps = how.captures;
      if (how.cached > 0)
        options.hostTables = {{"t", how.cached}};
      if (how.isReplicated)
        options.replicate = {"t"};
      options.choosesReplicas = how.chooses;
      Session session(rankModel(how.looksUpLater ? RankCompute::looksUpLater
                                : how.meetsLate  ? RankCompute::meetsLate
                                                 : RankCompute::plain),
                      options);
      std::copy(start.begin(), start.end(), session.parameter(0).value.begin());
      std::vector<double> losses;
      std::vector<int64_t> allocations;
      auto run = [&](const std::vector<Samples> &of, uint64_t last) {
        PortionSource source(of, getPortions(kPortions, comm.getRank(), ranks));
        const size_t before = losses.size();
        const int64_t steps = session.run(
            Mode::train, source,
            [&](const StepReport &report) {
              losses.push_back(*report.loss);
              allocations.push_back(namedAllocations("exchange"));
              return report.step < last;
            },
            [](uint64_t) { return false; });
        EXPECT_EQ(steps, static_cast<int64_t>(losses.size() - before));
      };
      run(batches, again.empty() ? batches.size() + 1 : batches.size() - 1);
      if (!again.empty())
        run(again, UINT64_MAX);
      const std::lock_guard lock(mutex);
      if (comm.getRank() > 0)
        EXPECT_EQ(losses, result.losses.empty() ? losses : result.losses);
      result.losses = losses;
      result.exchangeAllocations = allocations;
      const DeviceUse use = *session.deviceUse();
      result.ahead = use.dispatchedAhead;
      result.launches = use.launches;
      result.updateCaptures = use.updateCaptures;
      result.updateLaunches = use.updateLaunches;
      result.refusals = use.refusals;
      ParameterView weight = session.parameter(0);
      result.weight.assign(weight.value.begin(), weight.value.end());
      TableView table = session.table(0);
      const std::vector<int64_t> ids = table.ids(0, table.size());
      std::vector<float> values(ids.size() * kDim);
      table.rows(0, table.size()).read(0, kDim, values.data());
      result.placement = session.placement();
      const bool isShared = ranks > 1 && !session.commOfRows(0);
      for (size_t i = 0; i < ids.size(); ++i) {
        const std::vector<float> row(values.begin() + i * kDim, values.begin() + (i + 1) * kDim);
        const auto [at, isNew] = result.rows.emplace(ids[i], row);
        EXPECT_TRUE(isNew || isShared) << "id " << ids[i] << " has two owners";
        EXPECT_EQ(at->second, row) << "id " << ids[i] << " differs from rank to rank";
      }
      if (isShared)
        EXPECT_EQ(result.rows.size(), ids.size());
    });
    return result;
  }

  static std::vector<Samples> draw(int64_t count, int64_t rows, int64_t ids = kIds) {
    std::vector<Samples> batches;
    for (int64_t i = 0; i < count; ++i)
      batches.push_back(drawSamples(static_cast<uint64_t>(i) + 1, rows + i % 3, ids));
    return batches;
  }

  const std::vector<float> start = {0.5F, -0.25F, 0.125F, 1};
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceRanks, testing::Range<uint64_t>(1, 3));

/// Long runs.
class DeviceRanksThatChoose : public DeviceRanks {};
INSTANTIATE_TEST_SUITE_P(Seed, DeviceRanksThatChoose, testing::Values<uint64_t>(1));

TEST_P(DeviceRanks, HaveTheBitsOfOne) {
  const std::vector<Samples> batches = draw(3, 16);
  const Result alone = train(1, {Overlap::none}, batches);
  const Trained expected = trainOnHost(batches, start, kIds);
  ASSERT_EQ(alone.losses.size(), expected.losses.size());
  for (size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(alone.losses[i], expected.losses[i], 1e-5);
  for (const auto &[id, row] : alone.rows)
    EXPECT_THAT(row, testing::Pointwise(testing::FloatNear(1e-4F), expected.rows[id]));
  for (int32_t ranks : {2, 3}) {
    const Result several = train(ranks, {Overlap::keys}, batches);
    EXPECT_EQ(several, alone) << ranks << " ranks";
    EXPECT_GT(several.ahead, 0);
  }
}

TEST_P(DeviceRanks, HaveTheseBitsWithoutOverlap) {
  const std::vector<Samples> batches = draw(3, 16);
  const Result alone = train(1, {Overlap::none}, batches),
               several = train(2, {Overlap::none}, batches);
  EXPECT_EQ(several, alone);
  EXPECT_EQ(several.ahead, 0);
}

/// Between their graphs lies what they give to sums; the last portion's sums travel from there.
TEST_P(DeviceRanks, LaunchComputeStagesAsGraphs) {
  std::vector<Samples> batches;
  for (uint64_t step = 1; step <= 15; ++step)
    batches.push_back(drawSamples(step, 8, 12));
  const Result alone = train(1, {.captures = false}, batches);
  EXPECT_EQ(alone.launches, 0);
  for (const int32_t ranks : {1, 2})
    for (const EarlyGradients early : {EarlyGradients::no, EarlyGradients::yes}) {
      const Result several = train(ranks, {Overlap::keys, early}, batches);
      EXPECT_EQ(several, alone) << ranks << " ranks";
      EXPECT_GT(several.launches, 3 * kPortions / ranks);
      EXPECT_THAT(several.refusals, testing::IsEmpty());
    }
}

/// Batches of which ids differ, and with them how many rows owners update; the numbers of some
/// steps are those of a larger bucket.
std::vector<Samples> drawUnequal(uint64_t steps) {
  std::vector<Samples> batches;
  for (uint64_t step = 1; step <= steps; ++step)
    batches.push_back(drawSamples(step, 40, step % 3 == 0 ? 12 : 60));
  return batches;
}

/// One graph, whatever rows and however many a step updates: the device knows.
TEST_P(DeviceRanks, LaunchUpdateStagesAsGraphs) {
  constexpr int64_t kSteps = 14;
  const std::vector<Samples> batches = drawUnequal(kSteps);
  const Result alone = train(1, {.captures = false}, batches);
  EXPECT_EQ(alone.updateCaptures, 0);
  EXPECT_EQ(alone.updateLaunches, 0);
  for (const int32_t ranks : {1, 2, 3}) {
    // With sums that travel early: an update stage may wait for none of them.
    const Result several =
        train(ranks, {.early = ranks == 2 ? EarlyGradients::yes : EarlyGradients::no}, batches);
    EXPECT_EQ(several, alone) << ranks << " ranks";
    // Two slots take turns: each is seen, captured, and launched from then on.
    EXPECT_GE(several.updateCaptures, 2) << ranks << " ranks";
    EXPECT_GE(several.updateLaunches, kSteps / 2) << ranks << " ranks";
    EXPECT_LT(several.updateLaunches, kSteps);
    EXPECT_THAT(several.refusals, testing::IsEmpty());
  }
}

/// Where a step has a few more keys than all before it: memory that moves would drop all graphs.
TEST_P(DeviceRanksThatChoose, ExchangeMoreKeysInTheSameMemory) {
  std::vector<Samples> batches;
  for (uint64_t step = 1; step <= 8; ++step)
    batches.push_back(drawSamples(step, 24, static_cast<int64_t>(5 * step)));
  const Result several = train(2, {Overlap::none}, batches);
  EXPECT_EQ(several.exchangeAllocations.back(), several.exchangeAllocations[2]);
}

/// Sums of the weight's gradients travel while those of rows are computed, and the next step's keys
/// beside both.
TEST_P(DeviceRanks, HaveTheseBitsWithEarlyGradients) {
  const std::vector<Samples> batches = draw(4, 16);
  const Result alone = train(1, {Overlap::none}, batches);
  for (int32_t ranks : {2, 3})
    EXPECT_EQ(train(ranks, {Overlap::keys, EarlyGradients::yes}, batches), alone)
        << ranks << " ranks";
}

/// Tables, messages and nodes grow from step to step.
TEST_P(DeviceRanks, GrowBesideTheStepBefore) {
  std::vector<Samples> batches;
  for (int64_t i = 0; i < 4; ++i)
    batches.push_back(drawSamples(static_cast<uint64_t>(i) + 1, 30 << i, 100'000));
  const Result alone = train(1, {Overlap::none}, batches);
  EXPECT_EQ(train(2, {Overlap::keys}, batches), alone);
  EXPECT_EQ(alone.rows.count(0), 0u); // the id that places behind a batch have
}

/// Owners bring rows that their caches have or not; the cache has fewer than a step looks up.
TEST_P(DeviceRanks, MayKeepRowsInHostMemory) {
  const std::vector<Samples> batches = draw(4, 300, 5000); // a cache has at least 128 rows
  const Result onDevice = train(1, {}, batches);
  for (const int32_t ranks : {1, 2}) {
    const Result onHost = train(ranks, {.overlap = Overlap::keys, .cached = 1}, batches);
    EXPECT_EQ(onHost, onDevice) << ranks << " ranks";
    EXPECT_EQ(onHost.ahead > 0, ranks > 1);
  }
}

/// Of ids that the compute stage makes of rows, some are those of the dispatch stage: their sums
/// are joined. Portions of a rank meet.
TEST_P(DeviceRanks, LookUpIdsThatTheComputeStageMakes) {
  const std::vector<Samples> batches = draw(4, 16);
  const Result alone = train(1, {.looksUpLater = true}, batches);
  const Trained expected = trainOnHost(batches, start, kIds, laterId);
  ASSERT_EQ(alone.losses.size(), expected.losses.size());
  for (size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(alone.losses[i], expected.losses[i], 1e-5);
  for (const auto &[id, row] : alone.rows)
    EXPECT_THAT(row, testing::Pointwise(testing::FloatNear(1e-4F), expected.rows[id]));
  for (const auto &[ranks, overlap] :
       {std::pair(2, Overlap::keys), {3, Overlap::none}, {4, Overlap::keys}}) {
    const Result several = train(
        ranks, {.overlap = overlap, .early = EarlyGradients::yes, .looksUpLater = true}, batches);
    EXPECT_EQ(several, alone) << ranks << " ranks";
    EXPECT_EQ(several.ahead > 0, overlap == Overlap::keys);
  }
}

/// Between two graphs lies the lookup. Portions of a rank that meet are not captured.
TEST_P(DeviceRanks, LaunchStagesThatLookUpAsGraphs) {
  std::vector<Samples> batches;
  for (uint64_t step = 1; step <= 12; ++step) // in the first of them, memory of updates grows
    batches.push_back(drawSamples(step, 8, 12));
  const Result alone = train(1, {.looksUpLater = true}, batches),
               several = train(4, {.overlap = Overlap::keys, .looksUpLater = true}, batches);
  EXPECT_EQ(several, alone);
  EXPECT_EQ(alone.launches, 0);
  EXPECT_THAT(alone.refusals, testing::ElementsAre(testing::HasSubstr("wait for each other")));
  EXPECT_GT(several.launches, 2);
  EXPECT_THAT(several.refusals, testing::IsEmpty());
}

/// A row with many gradients has sums of some of them, which stay while other portions make theirs.
TEST_P(DeviceRanks, KeepSumsOfAPortionUntilItGivesThem) {
  const std::vector<Samples> batches = draw(2, 1600, 1); // portions have 400 of the row
  EXPECT_EQ(train(1, {.meetsLate = true}, batches), train(1, {}, batches));
}

/// Caches have fewer rows than a step looks up, early and later.
TEST_P(DeviceRanks, LookUpLaterInHostMemory) {
  const std::vector<Samples> batches = draw(3, 60);
  EXPECT_EQ(train(2, {.cached = 1, .looksUpLater = true}, batches),
            train(1, {.looksUpLater = true}, batches));
}

/// Keys and sums of replicas go to all ranks, the keys beside the step before.
TEST_P(DeviceRanks, MayKeepReplicas) {
  const std::vector<Samples> batches = draw(4, 16);
  const Result alone = train(1, {}, batches);
  EXPECT_EQ(train(1, {.isReplicated = true}, batches), alone);
  for (const int32_t ranks : {2, 3}) {
    const Result several = train(ranks, {.overlap = Overlap::keys, .isReplicated = true}, batches);
    EXPECT_EQ(several, alone) << ranks << " ranks";
    EXPECT_GT(several.ahead, 0);
    EXPECT_TRUE(several.placement.tables[0].isReplicated);
  }
}

/// Who owns a row is joined as its sums are.
TEST_P(DeviceRanks, MayLookUpReplicasLater) {
  const std::vector<Samples> batches = draw(3, 16);
  const How later = {.overlap = Overlap::keys, .looksUpLater = true, .isReplicated = true};
  EXPECT_EQ(train(2, later, batches), train(1, {.looksUpLater = true}, batches));
}

TEST_P(DeviceRanks, MayKeepReplicasInHostMemory) {
  const std::vector<Samples> batches = draw(3, 300, 5000);
  EXPECT_EQ(train(2, {.overlap = Overlap::keys, .cached = 1, .isReplicated = true}, batches),
            train(1, {}, batches));
}

/// Where rounds are dear, the only table is replicated after the first look.
TEST_P(DeviceRanksThatChoose, ReplicateWhatSavesRounds) {
  constexpr uint64_t kFirstLook = 64;
  std::vector<Samples> batches;
  for (uint64_t step = 1; step <= kFirstLook + 2; ++step)
    batches.push_back(drawSamples(step, 4, 12));
  const Result alone = train(1, {}, batches);
  setenv("GENREC_COMM_LATENCY_US", "3000", 1);
  const Result several = train(2, {.overlap = Overlap::keys, .chooses = true}, batches);
  unsetenv("GENREC_COMM_LATENCY_US");
  EXPECT_EQ(several, alone);
  EXPECT_EQ(several.placement.looks, 1);
  ASSERT_EQ(several.placement.moves.size(), 1U);
  EXPECT_EQ(several.placement.moves[0].step, kFirstLook);
  EXPECT_THAT(several.placement.tables[0].why,
              testing::HasSubstr("0 rounds of keys and values instead of 1"));
  EXPECT_GT(several.placement.machine.roundSeconds, 3e-3);
  EXPECT_GT(several.placement.tables[0].needs.asked, 0);
  EXPECT_EQ(several.ahead, static_cast<int64_t>(batches.size()) - 1); // beside all but that one
}

/// The least that does so: rows leave caches in the second and the third step.
TEST_P(DeviceRanks, OwnersBringRowsOfTheHostsMemory) {
  const std::vector<Samples> batches = draw(3, 200, 600);
  EXPECT_EQ(train(2, {.cached = 1}, batches), train(1, {}, batches));
}

/// What was dispatched of the next step changes nothing.
TEST_P(DeviceRanks, MayEndWhileTheNextOneIsDispatched) {
  const std::vector<Samples> batches = draw(4, 16);
  std::vector<Samples> seen(batches.begin(), batches.begin() + 3);
  seen.push_back(batches.front());
  EXPECT_EQ(train(2, {Overlap::keys}, batches, {batches.front()}), train(1, {Overlap::none}, seen));
}

/// What sessions of so many ranks say; empty: nothing.
std::string open(int32_t ranks, std::vector<int32_t> *numbers = nullptr) {
  std::mutex mutex;
  try {
    runThreadRanks(ranks, [&](Communicator &comm) {
      SessionOptions options;
      options.threads = 1;
      options.comm = &comm;
      const Session session(rankModel(), options);
      const std::lock_guard lock(mutex);
      if (numbers)
        (*numbers)[comm.getRank()] = session.deviceUse()->number;
    });
  } catch (const Error &error) {
    return error.what() + std::string("; ") + error.help();
  }
  return "";
}

TEST_P(DeviceRanks, HaveADeviceEach) {
  simt::options().devices = 4;
  std::vector<int32_t> numbers(3, -1);
  EXPECT_EQ(open(3, &numbers), "");
  EXPECT_THAT(numbers, testing::ElementsAre(0, 1, 2));
}

TEST_P(DeviceRanks, AreRefusedWhereDevicesAreFewer) {
  simt::options().devices = 2;
  EXPECT_THAT(open(3), testing::HasSubstr(
                           "rank 2 has no GPU of its own: ranks 0, 1, 2 see 2 GPUs together"));
}

TEST_P(DeviceRanks, AreRefusedWithoutCodeForTheDevice) {
  for (const auto &[capability, version, architecture] :
       {std::tuple(80, "8.0", "80"), {120, "12.0", "120a"}})
    for (const int32_t ranks : {1, 2}) {
      simt::options().capability = capability;
      simt::options().devices = ranks;
      EXPECT_THAT(open(ranks),
                  testing::AllOf(testing::HasSubstr(
                                     "the GPU 'emulated device' has compute capability " +
                                     std::string(version) + ", and the model was compiled for 9.0"),
                                 testing::HasSubstr("-DGENREC_CUDA_ARCHITECTURES=" +
                                                    std::string(architecture) + " ")));
    }
}

} // namespace
} // namespace genrec::rt::cuda::test
