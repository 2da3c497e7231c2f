//===- device_steps_test.cpp - A session's steps on the emulated device ---===//
//
// What is queued where, captured or dispatched ahead changes no result; and a step takes no memory,
// of the device or of the host, and waits once. planted_defects.py leaves out what orders the
// queues.
//
//===----------------------------------------------------------------------===//

#include "device_model.h"
#include "prepared_source.h"

#include "../../runtime/session/device_state.h"
#include "simt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <compare>
#include <cstdlib>
#include <new>
#include <numeric>
#include <span>
#include <thread>

namespace {
std::atomic<int64_t> hostAllocations{0};
} // namespace

// What the program allocates, on any thread, but not what the emulated device does.
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  if (!simt::isHostInside())
    hostAllocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}
void *operator new(size_t bytes) {
  if (void *memory = operator new(bytes, std::nothrow))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kIds = 40;

std::vector<Samples> batchesOf(int64_t count, int64_t rows, int64_t ids = kIds) {
  std::vector<Samples> batches;
  for (int64_t i = 0; i < count; ++i)
    batches.push_back(drawSamples(static_cast<uint64_t>(i) + 1, rows, ids));
  return batches;
}

/// What a step may show of itself, when it has ended.
struct Counts {
  int64_t device, host, waits;
  auto operator<=>(const Counts &) const = default;
};

class DeviceSteps : public testing::TestWithParam<uint64_t> {
protected:
  void SetUp() override { simt::options() = {.seed = GetParam() + simt::defaultSeed() - 1}; }
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
    simt::options() = {};
  }

  std::unique_ptr<Session> make(bool captures = true, bool lateLookup = false) {
    SessionOptions options;
    options.threads = 1;
    options.captureSteps = captures;
    auto session = std::make_unique<Session>(deviceModel(lateLookup), options);
    for (int64_t d = 0; d < kDim; ++d)
      session->parameter(0).value[d] = start[static_cast<size_t>(d)];
    return session;
  }

  /// Runs all steps; the reading thread is given time to be ahead.
  std::vector<float> run(Session &session, const std::vector<Samples> &batches,
                         bool looks = false) {
    PreparedSource source(batches);
    std::vector<float> losses;
    losses.reserve(batches.size());
    counts.clear();
    counts.reserve(batches.size());
    const int64_t steps = session.run(
        Mode::train, source,
        [&](const StepReport &report) {
          losses.push_back(static_cast<float>(*report.loss));
          counts.push_back({simt::allocationCount(), hostAllocations.load(), simt::waitCount()});
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return true;
        },
        [looks](uint64_t) { return looks; });
    EXPECT_EQ(steps, static_cast<int64_t>(losses.size()));
    return losses;
  }

  static std::vector<float> evaluated(Session &session, PreparedSource &source) {
    std::vector<float> losses;
    session.run(
        Mode::evaluate, source,
        [&](const StepReport &report) {
          losses.push_back(static_cast<float>(*report.loss));
          return true;
        },
        [](uint64_t) { return false; });
    return losses;
  }

  void expectTrained(Session &session, const Trained &expected) {
    ParameterView weight = session.parameter(0);
    EXPECT_EQ(std::vector<float>(weight.value.begin(), weight.value.end()), expected.weight);
    TableView table = session.table(0);
    size_t count = 0;
    for (const auto &row : expected.rows)
      count += !row.empty();
    ASSERT_EQ(table.size(), static_cast<int64_t>(count));
    const std::vector<int64_t> ids = table.ids(0, table.size());
    std::vector<float> values(ids.size() * kDim);
    table.rows(0, table.size()).read(0, kDim, values.data());
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(std::vector<float>(values.begin() + static_cast<ptrdiff_t>(i * kDim),
                                   values.begin() + static_cast<ptrdiff_t>((i + 1) * kDim)),
                expected.rows[static_cast<size_t>(ids[i])]);
  }

  const std::vector<float> start = {0.5F, -0.25F, 0.125F, 1};
  std::vector<Counts> counts; ///< after each step
};

INSTANTIATE_TEST_SUITE_P(Seeds, DeviceSteps, testing::Range<uint64_t>(1, 9));

TEST_P(DeviceSteps, HaveTheBitsOfTheHost) {
  const std::vector<Samples> batches = batchesOf(12, 29); // there is room for 30
  const Trained expected = trainOnHost(batches, start, kIds);
  for (bool captures : {true, false}) {
    std::unique_ptr<Session> session = make(captures);
    EXPECT_EQ(run(*session, batches), expected.losses);
    expectTrained(*session, expected);
    const DeviceUse use = *session->deviceUse();
    EXPECT_EQ(use.launches > 0, captures);
    EXPECT_THAT(use.refusals, testing::IsEmpty());
    EXPECT_EQ(use.dispatchedAhead, 11);
  }
}

TEST_P(DeviceSteps, TakeNoMemoryAndWaitOnce) {
  std::unique_ptr<Session> session = make();
  run(*session, batchesOf(40, 30, 12));
  const Counts warm = counts[20], end = counts[38];
  EXPECT_EQ(end.device, warm.device);
  EXPECT_EQ(end.host, warm.host);
  EXPECT_EQ(end.waits - warm.waits, 18);
}

/// New ids in every step: tables grow in dispatch, which waits once in a step at most.
TEST_P(DeviceSteps, WaitTwiceAtMostWhileTablesGrow) {
  const std::vector<Samples> batches = batchesOf(20, 60, 100'000);
  std::unique_ptr<Session> session = make();
  EXPECT_EQ(run(*session, batches), trainOnHost(batches, start, 100'000).losses);
  for (size_t step = 1; step < counts.size(); ++step)
    EXPECT_LE(counts[step].waits - counts[step - 1].waits, 2) << "step " << step + 1;
}

/// Whoever looks at tables between steps sees no row of the next one.
TEST_P(DeviceSteps, RowsOfTheNextStepAreNotThereWhereSomebodyLooks) {
  const std::vector<Samples> batches = batchesOf(6, 10, 1000);
  std::unique_ptr<Session> session = make();
  PreparedSource source(batches);
  std::vector<int64_t> seen;
  session->run(
      Mode::train, source,
      [&](const StepReport &report) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (report.step == 3)
          seen.push_back(session->table(0).size());
        return report.step != 5;
      },
      [](uint64_t step) { return step == 3 || step == 5; });
  std::vector<Samples> first(batches.begin(), batches.begin() + 3),
      all(batches.begin(), batches.begin() + 5);
  auto rowsAfter = [&](const std::vector<Samples> &of) {
    int64_t count = 0;
    for (const auto &row : trainOnHost(of, start, 1000).rows)
      count += !row.empty();
    return count;
  };
  EXPECT_THAT(seen, testing::ElementsAre(rowsAfter(first)));
  EXPECT_EQ(session->table(0).size(), rowsAfter(all));
}

/// What happened before an error is told before it.
TEST_P(DeviceSteps, AreReportedBeforeTheErrorOfTheNextBatch) {
  struct Failing : PreparedSource {
    using PreparedSource::PreparedSource;
    bool next(Batch &batch) override {
      if (++asked == 4)
        throw Error("the fourth batch cannot be read");
      return PreparedSource::next(batch);
    }
    int asked = 0;
  };
  std::unique_ptr<Session> session = make();
  Failing source(batchesOf(6, 30));
  std::vector<uint64_t> reported;
  auto onStep = [&](const StepReport &report) {
    reported.push_back(report.step);
    return true;
  };
  auto looks = [](uint64_t) { return false; };
  EXPECT_THROW(session->run(Mode::train, source, onStep, looks), Error);
  EXPECT_THAT(reported, testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(session->stepsDone(), 3u);
}

/// The first id that a table has not is named with its row; the step has changed nothing that the
/// next session would see.
TEST_P(DeviceSteps, AnIdBeyondItsTableIsNamed) {
  std::unique_ptr<Session> session = make();
  std::vector<Samples> batches = batchesOf(3, 30);
  batches[1].ids[17] = batches[1].ids[23] = (int64_t(1) << 20) + 5;
  batches[1].ids[19] = -1;
  PreparedSource source(batches);
  std::vector<uint64_t> reported;
  std::string message;
  try {
    session->run(
        Mode::train, source,
        [&](const StepReport &report) {
          reported.push_back(report.step);
          return true;
        },
        [](uint64_t) { return false; });
  } catch (const Error &error) {
    message = error.what();
  }
  EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("row 17 of 'sample'"),
                                      testing::HasSubstr("1048581"),
                                      testing::HasSubstr("the 20 bits of table 't'")));
  EXPECT_THAT(reported, testing::ElementsAre(1));
}

/// Nobody needs to look at steps.
TEST_P(DeviceSteps, CountWithoutReports) {
  std::unique_ptr<Session> session = make();
  PreparedSource source(batchesOf(5, 30));
  EXPECT_EQ(session->run(Mode::train, source, nullptr, [](uint64_t) { return false; }), 5);
  EXPECT_EQ(session->stepsDone(), 5u);
}

/// Batches of several sizes: their capacities never fall, so that the last bucket serves all.
TEST_P(DeviceSteps, ChangingSizesAreCapturedAnew) {
  std::vector<Samples> batches;
  for (int64_t rows : {10, 10, 10, 10, 10, 10, 10, 10, 10, 50, 20, 10, 30, 20, 50, 7, 3})
    batches.push_back(drawSamples(batches.size() + 1, rows, kIds));
  std::unique_ptr<Session> session = make();
  EXPECT_EQ(run(*session, batches), trainOnHost(batches, start, kIds).losses);
  EXPECT_GT(session->deviceUse()->launches, 4);
}

/// Says which batch is asked for.
class WatchedSource : public PreparedSource {
public:
  using PreparedSource::PreparedSource;
  bool next(Batch &batch) override {
    ++asked;
    return PreparedSource::next(batch);
  }
  /// Whether so many batches are asked for within ten seconds.
  bool awaits(int count) {
    for (int i = 0; i < 1000 && asked.load() < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return asked.load() >= count;
  }

private:
  std::atomic<int> asked = 0;
};

/// A step and the next one have a batch each until the first has been reported: what is behind them
/// is read meanwhile, so that reading hides behind steps as long as it.
TEST_P(DeviceSteps, BatchesAreReadBehindTheStepThatIsQueued) {
  WatchedSource source(batchesOf(6, 10));
  std::unique_ptr<Session> session = make();
  int reported = 0;
  session->run(
      Mode::train, source,
      [&](const StepReport &) {
        ++reported;
        EXPECT_TRUE(source.awaits(std::min(reported + 2, 6))) << reported;
        return true;
      },
      [](uint64_t) { return false; });
  EXPECT_EQ(reported, 6);
}

/// Each size is met often enough to be captured in all slots, and there are more than the 16 that
/// are kept.
TEST_P(DeviceSteps, MoreStepsAreCapturedThanAreKept) {
  std::vector<Samples> batches;
  for (int64_t rows : {10, 18, 20, 22, 24, 26, 28, 30, 32, 36})
    for (int i = 0; i < 9; ++i)
      batches.push_back(drawSamples(batches.size() + 1, rows, kIds));
  std::unique_ptr<Session> session = make();
  EXPECT_EQ(run(*session, batches), trainOnHost(batches, start, kIds).losses);
  EXPECT_GE(session->deviceUse()->captures, 20);
}

/// Programs share memory, which a batch of one of them may have made large enough for those of
/// another: then sizes change and nothing moves.
TEST_P(DeviceSteps, EachProgramAndSizeIsCapturedForItself) {
  std::unique_ptr<Session> session = make();
  std::vector<Samples> trained;
  auto train = [&](int64_t count, int64_t rows) {
    const size_t before = trained.size();
    for (int64_t i = 0; i < count; ++i)
      trained.push_back(drawSamples(trained.size() + 1, rows, kIds));
    const std::vector<float> losses =
        run(*session, {trained.begin() + static_cast<ptrdiff_t>(before), trained.end()});
    const Trained expected = trainOnHost(trained, start, kIds);
    EXPECT_TRUE(std::ranges::equal(losses, std::span(expected.losses).subspan(before))) << rows;
    expectTrained(*session, expected);
  };
  auto evaluate = [&](int64_t count, int64_t rows) {
    const std::vector<Samples> batches = batchesOf(count, rows);
    PreparedSource source(batches);
    EXPECT_EQ(evaluated(*session, source),
              evaluateOnHost(batches, trainOnHost(trained, start, kIds)));
  };
  train(8, 10);
  evaluate(8, 10);
  train(2, 10);
  evaluate(2, 64);
  train(8, 10);
  train(4, 30);
  EXPECT_GT(session->deviceUse()->launches, 12);
}

/// Lists have more items than before, then more in one list: either changes alone, and no memory
/// moves.
TEST_P(DeviceSteps, MoreItemsAndLongerListsAreCapturedAnew) {
  SessionOptions options;
  options.threads = 1;
  Session session(listModel(), options);
  std::vector<Batch> batches;
  std::vector<float> expected;
  auto add = [&](int64_t count, const std::vector<int64_t> &lengths) {
    for (int64_t i = 0; i < count; ++i) {
      batches.push_back(batchOfLists(lengths));
      expected.push_back(static_cast<float>(std::reduce(lengths.begin(), lengths.end())) / 16);
    }
  };
  std::vector<int64_t> lengths(16, 1);
  add(9, lengths); // items have room for 16
  lengths[3] = 15;
  add(2, lengths); // for 30
  add(9, std::vector<int64_t>(16, 3));
  lengths.assign(16, 0);
  lengths[9] = 40;
  add(2, lengths);
  PreparedSource source(std::move(batches));
  EXPECT_EQ(evaluated(session, source), expected);
  EXPECT_GT(session.deviceUse()->launches, 8);
}

/// A store may grow in any lookup: such a step is run call by call, and the reason is told.
TEST_P(DeviceSteps, ALookupBehindDispatchIsNotCaptured) {
  const std::vector<Samples> batches = batchesOf(10, 30);
  std::unique_ptr<Session> session = make(true, true);
  EXPECT_EQ(run(*session, batches), trainOnHost(batches, start, kIds).losses);
  EXPECT_EQ(session->deviceUse()->launches, 0);
  EXPECT_THAT(session->deviceUse()->refusals,
              testing::ElementsAre(testing::HasSubstr("rows of table 't' are looked up")));
  // Ids without a row have one in a table of the step, which the lookup makes.
  const std::vector<Samples> more = batchesOf(3, 30, 100'000);
  Trained trained = trainOnHost(batches, start, 100'000);
  PreparedSource source(more);
  EXPECT_EQ(evaluated(*session, source), evaluateOnHost(more, trained));
}

/// Where somebody looks at tables, the next batch is copied and nothing of it queued.
TEST_P(DeviceSteps, MayEndWhileTheNextOneIsQueued) {
  for (bool looks : {false, true}) {
    std::unique_ptr<Session> session = make();
    PreparedSource source(batchesOf(6, 30));
    session->run(
        Mode::train, source,
        [looks](const StepReport &report) {
          if (looks)
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return report.step != 3;
        },
        [looks](uint64_t) { return looks; });
    const std::vector<Samples> more = batchesOf(4, 30);
    run(*session, more);
    EXPECT_EQ(session->stepsDone(), 7u);
  }
}

/// What is queued or copied ahead is waited for before its memory is given back.
TEST_P(DeviceSteps, ASessionMayEndWhileTheNextStepIsQueued) {
  for (bool looks : {false, true}) {
    std::unique_ptr<Session> session = make();
    PreparedSource source(batchesOf(6, 30));
    session->run(
        Mode::train, source,
        [](const StepReport &report) {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return report.step != 3; // the next one's memory has been used
        },
        [looks](uint64_t) { return looks; });
  }
}

TEST_P(DeviceSteps, ParametersAreBroughtWhole) {
  std::unique_ptr<DeviceState> state = DeviceState::make(deviceModel());
  std::vector<std::vector<float>> values;
  for (float first : {1.0F, 10.0F, 20.0F}) {
    std::vector<float> &all = values.emplace_back(24);
    std::iota(all.begin(), all.end(), first);
    genrec_parameter host = {};
    host.size = 8;
    host.value = host.own = all.data();
    host.states = all.data() + host.size;
    state->addParameter(host, 16);
  }
  const std::vector<std::vector<float>> expected = values;
  auto forget = [&] {
    for (std::vector<float> &all : values)
      std::ranges::fill(all, 0.0F);
  };
  state->giveParameters();
  forget();
  const int64_t before = simt::waitCount();
  state->readParameters();
  EXPECT_EQ(simt::waitCount() - before, 1); // for all of them
  EXPECT_EQ(values, expected);
  forget();
  state->giveParameters(); // the device has what it had
  for (size_t i = 0; i < values.size(); ++i)
    state->fetchParameter(static_cast<int32_t>(i));
  EXPECT_EQ(values, expected);
  state->finish();
}

TEST_P(DeviceSteps, CopiesShareAndFillPieces) {
  std::unique_ptr<DeviceState> state = DeviceState::make(deviceModel());
  Device &device = state->device();
  {
    HostCopies copies(device, 256);
    DeviceMemory memory(device, "copied");
    std::vector<std::vector<char>> arrays;
    int64_t total = 0;
    for (int64_t bytes : {7, 100, 0, 149, 1, 3000, 255, 30}) {
      std::vector<char> &array = arrays.emplace_back(static_cast<size_t>(bytes));
      for (char &byte : array)
        byte = static_cast<char>(++total * 31);
    }
    const std::vector<std::vector<char>> expected = arrays;
    char *at = memory.ensure(total);
    for (std::vector<char> &array : arrays) {
      copies.in(at, array.data(), static_cast<int64_t>(array.size()));
      at += array.size();
      std::ranges::fill(array, 0);
    }
    copies.finish();
    at = memory.data();
    for (std::vector<char> &array : arrays) {
      copies.out(array.data(), at, static_cast<int64_t>(array.size()));
      at += array.size();
    }
    copies.finish();
    EXPECT_EQ(arrays, expected);
  }
  state->finish();
}

} // namespace
} // namespace genrec::rt::cuda::test
