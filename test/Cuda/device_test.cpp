//===- device_test.cpp - What sessions are promised of a device -----------===//
//
// genrec_rt/device.h and what stands on it alone, without a session: promises that the results of
// whole steps do not depend on, or seldom.
//
//===----------------------------------------------------------------------===//

#include "../Runtime/store_conformance.h"
#include "device_model.h"
#include "device_promises.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/device.h"
#include "session/device_graphs.h"
#include "session/device_memory.h"
#include "session/device_profile.h"
#include "session/device_state.h"
#include "session/device_updates.h"
#include "session/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace genrec::rt::cuda::test {
namespace {

using rt::test::configOf;
using testing::ElementsAre;

/// Reports have it as nvidia-smi and CUDA_VISIBLE_DEVICES do.
TEST_F(DevicePromises, ADeviceIsNamedAsToolsNameIt) {
  EXPECT_THAT(device->info().uuid,
              testing::MatchesRegex("GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
}

/// Graphs are dropped where this number has risen: nothing else may tell them.
TEST_F(DevicePromises, MemoryThatIsGivenBackRaisesItsVersion) {
  void *memory = device->allocate("test", 100);
  const int64_t before = device->memoryVersion();
  device->release(memory);
  EXPECT_GT(device->memoryVersion(), before);
}

/// What a graph's launches would take and free is neither there before them nor behind them.
TEST_F(DevicePromises, MemoryDoesNotMoveWhileAStepIsCaptured) {
  DeviceMemory memory(*device, "buffers");
  DeviceArray<int> array("array");
  const auto stream = static_cast<cudaStream_t>(device->stream());
  memory.ensure(100);
  const int *before = array.ensure(4, stream);
  device->beginCapture();
  EXPECT_THROW(memory.ensure(100'000), Error);
  EXPECT_THROW(array.ensure(1000, stream), Error);
  EXPECT_EQ(array.data(), before);
  EXPECT_EQ(array.capacity(), 4);
  std::string why;
  EXPECT_TRUE(device->endCapture(&why)) << why;
  EXPECT_EQ(namedBytes("buffers"), 0);
  EXPECT_NE(memory.ensure(100'000), nullptr);
  EXPECT_NE(array.ensure(1000, stream), before);
}

/// Each holds memory of the device, and keys may come without end.
TEST_F(DevicePromises, GraphsThatWereUsedLastAreKept) {
  StepGraphs graphs(*device);
  const auto of = [&](int64_t number) -> StepGraph & {
    GraphKey key;
    key.add(number);
    return graphs.of(key);
  };
  const auto isKept = [&](int64_t number) { return of(number).pinnedBytes == number; };
  constexpr auto kMost = static_cast<int64_t>(StepGraphs::kMost);
  for (int64_t number = 1; number <= kMost; ++number)
    of(number).pinnedBytes = number;
  EXPECT_TRUE(isKept(1)); // so that 2 is the one that was not used for longest
  of(kMost + 1).pinnedBytes = kMost + 1;
  for (int64_t number = 3; number <= kMost + 1; ++number)
    EXPECT_TRUE(isKept(number)) << number;
  EXPECT_TRUE(isKept(1));
  EXPECT_FALSE(isKept(2));
}

/// Marks are kept from step to step, of training and of evaluations in turn: their names are not.
TEST_F(DevicePromises, ProfiledStepsHaveTheirOwnOps) {
  DeviceProfile profile(*device);
  const auto profiled = [&](const std::vector<int32_t> &ops) {
    SpanRecorder spans;
    profile.begin();
    for (int32_t op : ops)
      profile.note(op);
    profile.end();
    device->synchronize();
    profile.finish(spans);
    std::vector<int32_t> names;
    for (const Span &span : spans.all())
      names.push_back(span.what);
    return names;
  };
  for (const std::vector<int32_t> &ops : {std::vector<int32_t>{1, 2, 3}, {4, 5}, {6, 7, 8, 9}})
    EXPECT_EQ(profiled(ops), ops);
}

/// Behind what a block has room for comes another one, and a piece may be larger than blocks are.
TEST_F(DevicePromises, PinnedPiecesAreApart) {
  PinnedPieces pieces(*device);
  Copy<char> from(std::vector<char>(3'000'000, 1));
  for (int round = 0; round < 2; ++round) {
    std::map<const char *, int64_t> taken;
    for (const int64_t size : {700'000, 700'000, 1, 3'000'000, 400'000}) {
      auto *place = static_cast<char *>(pieces.take(size));
      taken[place] = size;
      GENREC_CUDA_CHECK(cudaMemcpyAsync(place, from.data(), static_cast<size_t>(size),
                                        cudaMemcpyDeviceToHost, testStream()));
    }
    waitForStream(testStream());
    const char *end = nullptr;
    for (const auto &[place, size] : taken) {
      EXPECT_GE(place, end);
      end = place + size;
    }
    pieces.reset();
  }
}

/// A store that never waited again would take more memory for ids that it has already.
TEST_F(DevicePromises, StoresKeepTheirMemoryWhereIdsRepeat) {
  simt::options().queues = simt::Completion::late; // answers are there where they are waited for
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(configOf(4, 0), "test.t");
  std::vector<int64_t> ids(600);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<int64_t>(i % 5);
  Copy<int64_t> onDevice(ids);
  Copy<float *> rows(std::vector<float *>(ids.size(), nullptr));
  int64_t warm = 0;
  for (int step = 0; step < 60; ++step) {
    device->beginDispatch();
    store->findOrInsert(StoreStream::ofDevice(device->stream()), onDevice.data(), nullptr, 600,
                        rows.data());
    if (step == 20)
      warm = device->counts().allocations;
  }
  EXPECT_EQ(device->counts().allocations, warm);
}

/// What the host does not know yet it adds to what it has heard: ids of calls that are under way,
/// and of those since the answer was asked for.
TEST_F(DevicePromises, NewIdsHaveRowsHoweverLateAnswersCome) {
  constexpr int64_t kNew = 600; // of rows of which a chunk has 2,048
  simt::options().queues = simt::Completion::late;
  for (const bool waits : {false, true}) {
    device->use(DeviceQueue::dispatch);
    const std::unique_ptr<TableStore> store = device->makeStore(configOf(1000, 0), "test.t");
    const StoreStream on = StoreStream::ofDevice(device->stream());
    std::vector<Copy<int64_t>> ids;
    std::vector<Copy<float *>> rows;
    for (int64_t call = 0; call < 8; ++call) {
      ids.emplace_back(idsFrom(call * kNew, kNew));
      rows.emplace_back(std::vector<float *>(kNew, nullptr));
    }
    device->beginDispatch();
    const int64_t waited = simt::waitCount();
    for (size_t call = 0; call < ids.size(); ++call) {
      store->findOrInsert(on, ids[call].data(), nullptr, kNew, rows[call].data());
      if (waits && call % 2 == 1) // the answer that comes is that of the call before
        device->synchronize();
    }
    EXPECT_LE(simt::waitCount() - waited, waits ? 5 : 1);
    std::set<float *> all;
    for (const Copy<float *> &each : rows)
      for (float *row : each.fetch())
        all.insert(row);
    EXPECT_EQ(static_cast<int64_t>(all.size()), 8 * kNew);
    EXPECT_EQ(all.count(nullptr), 0u);
    EXPECT_EQ(store->size(on), 8 * kNew);
  }
}

/// The same of what a bound counts; of tables that share a store, any may be the largest.
TEST_F(DevicePromises, BoundsHoldHoweverLateAnswersCome) {
  constexpr int64_t kAlone = -1;
  simt::options().queues = simt::Completion::late;
  for (const auto &[member, hears] :
       {std::pair(kAlone, true), {int64_t(0), true}, {int64_t(1), true}, {kAlone, false}}) {
    StoreConfig config = configOf(4, 0);
    config.rules.bound = 50;
    if (member != kAlone) {
      config.keyBits = 40;
      config.members.assign(3, config.initializer);
    }
    const int64_t table = std::max<int64_t>(member, 0), key = table << 40;
    device->use(DeviceQueue::dispatch);
    const std::unique_ptr<TableStore> store = device->makeStore(config, "test.t");
    const StoreStream on = StoreStream::ofDevice(device->stream());
    Copy<int64_t> first(idsFrom(key, 30)), second(idsFrom(key + 30, 30));
    Copy<float *> rows(std::vector<float *>(30, nullptr));
    device->beginDispatch();
    store->findOrAdmit(on, first.data(), nullptr, 30, 1, rows.data(), nullptr);
    store->findOrAdmit(on, second.data(), nullptr, 30, 2, rows.data(), nullptr);
    if (hears) {
      device->synchronize(); // the answer that is there is that of the first call
      store->findOrAdmit(on, second.data(), nullptr, 1, 3, rows.data(), nullptr);
    }
    store->evict(on, 3, -1);
    EXPECT_LE(store->memberSize(on, table), 50) << "member " << member;
  }
}

/// Rows of earlier steps make room; those of the step that is under way stay.
TEST_F(DevicePromises, RowsAreCachedForTheStepThatLooksThemUp) {
  constexpr int64_t kRows = 128;
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(configOf(4, 0), "test.t", kRows);
  std::vector<float *> first = lookUp(*store, idsFrom(0, kRows));
  std::ranges::sort(first);
  const auto cached = [&](int64_t from, bool beginsStep) {
    const std::vector<float *> rows = lookUp(*store, idsFrom(from, kRows), beginsStep);
    return std::ranges::count_if(
        rows, [&](float *row) { return std::ranges::binary_search(first, row); });
  };
  EXPECT_LT(cached(kRows, false), kRows / 4);
  for (int64_t step = 1; step < 4; ++step)
    EXPECT_GT(cached((step + 1) * kRows, true), kRows / 2) << step;
}

/// The ledger is what messages and tests read.
TEST_F(DevicePromises, MemoryIsCountedByName) {
  const int64_t allocations = namedAllocations("test.ledger");
  void *onDevice = allocateNamed("test.ledger.a", 100, testStream());
  void *pinned = allocateNamedHost("test.ledger.b", 30);
  void *afterAll = allocateNamed("test.ledger.c", 7, testStream());
  EXPECT_EQ(namedBytes("test.ledger"), 137);
  EXPECT_EQ(namedBytes("test.ledger.b"), 30);
  freeNamed(onDevice, testStream());
  EXPECT_EQ(namedBytes("test.ledger"), 37);
  freeNamedHost(pinned);
  EXPECT_EQ(namedBytes("test.ledger"), 7);
  freeNamedAfterAll(afterAll);
  EXPECT_EQ(namedBytes("test.ledger"), 0);
  EXPECT_EQ(namedAllocations("test.ledger"), allocations + 3);
}

/// Slots of erased ids that fill a table make room by moving its keys, not by a larger one.
TEST_F(DevicePromises, ErasedSlotsThatFillATableMakeRoom) {
  const auto idsOfLastBucket = [](int64_t first, int64_t count) {
    std::vector<int64_t> ids;
    for (int64_t i = first; i < first + count; ++i)
      ids.push_back(
          rt::test::idOfHash(uint64_t(0x5A) << 57 | static_cast<uint64_t>(i) << 20 | 0xFFFFF));
    return ids;
  };
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(configOf(1, 0), "test.t");
  const StoreStream on = StoreStream::ofDevice(device->stream());
  const int64_t bytes = store->keyBytes(); // of 256 slots: 192 are taken before it grows
  const std::vector<int64_t> gone = idsOfLastBucket(0, 128);
  lookUp(*store, gone);
  Copy<int64_t> erased(gone);
  store->erase(on, erased.data(), 128);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  const std::vector<int64_t> there = idsOfLastBucket(200, 70);
  const std::vector<float *> rows = lookUp(*store, there);
  EXPECT_EQ(store->keyBytes(), bytes);
  EXPECT_EQ(store->size(on), 70);
  Copy<float *> found(std::vector<float *>(128, nullptr));
  store->find(on, erased.data(), nullptr, 128, found.data(), nullptr);
  EXPECT_EQ(found.fetch(), std::vector<float *>(128, nullptr));
  // Nothing is erased any more: what makes it full are ids.
  const std::vector<float *> more = lookUp(*store, idsFrom(0, 125));
  EXPECT_EQ(std::ranges::count(more, nullptr), 0);
  EXPECT_GT(store->keyBytes(), bytes);
  EXPECT_EQ(lookUp(*store, there), rows);
  // The last bucket is full, its last slot, too, and moves once more.
  const std::vector<int64_t> others = idsOfLastBucket(300, 58);
  const std::vector<float *> ofOthers = lookUp(*store, others);
  lookUp(*store, idsFrom(1000, 132));
  EXPECT_EQ(store->keyBytes(), 4 * bytes);
  EXPECT_EQ(lookUp(*store, there), rows);
  EXPECT_EQ(lookUp(*store, others), ofOthers);
}

/// Numbers of erased rows stay known while the store grows.
TEST_F(DevicePromises, NumbersOfErasedRowsOutliveGrowth) {
  StoreConfig config = configOf(4, 250); // 1,002 floats, of which few are drawn
  config.element = RowElement::bf16;
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(config, "test.t");
  const StoreStream on = StoreStream::ofDevice(device->stream());
  const auto erase = [&](int64_t first, int64_t count) {
    Copy<int64_t> ids(idsFrom(first, count));
    store->erase(on, ids.data(), count);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  };
  const std::vector<float *> before = lookUp(*store, idsFrom(0, 300));
  lookUp(*store, idsFrom(20000, 1600)); // the first chunk has 2,048 rows
  erase(200, 100);
  std::vector<int64_t> ids = idsFrom(10000, 60); // take numbers of the last ones
  ids.resize(200, 10000);                        // as many ids might be new: a chunk more
  const int64_t bytes = namedBytes("test.t.values");
  std::vector<float *> rows = lookUp(*store, ids);
  EXPECT_GT(namedBytes("test.t.values"), bytes);
  for (size_t i = 0; i < 60; ++i)
    EXPECT_EQ(rows[i], before[299 - i]) << "the row that was erased last comes first";
  erase(0, 100);
  rows = lookUp(*store, idsFrom(30000, 140));
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], before[i < 100 ? 99 - i : 339 - i]);
  const std::vector<float *> beyond = lookUp(*store, idsFrom(40000, 150)); // in the second chunk
  Copy<float *> last(std::vector<float *>(beyond.end() - 2, beyond.end()));
  Copy<uint64_t> identities(std::vector<uint64_t>(2));
  store->identify(on, last.data(), 2, nullptr, identities.data());
  EXPECT_THAT(identities.fetch(), ElementsAre(config.identityOf(40148), config.identityOf(40149)));
  erase(40140, 10);
  rows = lookUp(*store, idsFrom(50000, 10));
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], beyond[149 - i]);
}

/// What was listed, and ids that wait for a row, are forgotten with the rows.
TEST_F(DevicePromises, ClearForgetsListsAndIdsThatWait) {
  StoreConfig config = configOf(4, 0);
  config.keyBits = 40;
  config.members.assign(2, config.initializer);
  config.rules.admitAfter = 2;
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(config, "test.t");
  const StoreStream on = StoreStream::ofDevice(device->stream());
  Copy<int64_t> ids(idsFrom((int64_t(1) << 40) + 7, 3));
  Copy<float *> rows(std::vector<float *>(3, nullptr));
  device->beginDispatch();
  for (int64_t step = 1; step < 5; ++step) {
    store->findOrAdmit(on, ids.data(), nullptr, 3, step, rows.data(), nullptr);
    EXPECT_EQ(store->memberSize(on, 1), step % 2 ? 0 : 3) << step;
    if (step == 2) {
      store->clear(on);
      for (int asked = 0; asked < 2; ++asked)
        EXPECT_EQ(store->memberSize(on, 1), 0);
    }
  }
  Copy<int64_t> others(idsFrom(100, 2));
  store->findOrAdmit(on, others.data(), nullptr, 2, 5, rows.data(), nullptr);
  store->clear(on);
  store->findOrAdmit(on, others.data(), nullptr, 2, 6, rows.data(), nullptr);
  EXPECT_EQ(store->memberSize(on, 0), 0);
}

/// A step that runs finds its rows' identities by where chunks begin; the next one may need a chunk
/// more.
TEST_F(DevicePromises, GrowthWaitsForWhoeverSearchesChunks) {
  StoreConfig config = configOf(1000, 0);
  config.element = RowElement::bf16;
  device->use(DeviceQueue::dispatch);
  const std::unique_ptr<TableStore> store = device->makeStore(config, "test.t");
  Copy<float *> rows(lookUp(*store, {1, 2, 3}));
  Copy<uint64_t> identities(std::vector<uint64_t>(3));
  Copy<int64_t> ids(std::vector<int64_t>(3000, 2)); // which might be as many rows
  Copy<float *> found(std::vector<float *>(3000, nullptr));
  simt::options().queues = simt::Completion::late;
  const auto on = [&](DeviceQueue queue) { return StoreStream::ofDevice(device->streamOf(queue)); };
  store->identify(on(DeviceQueue::compute), rows.data(), 3, nullptr, identities.data());
  const int64_t bytes = namedBytes("test.t.values");
  device->beginDispatch();
  store->findOrInsert(on(DeviceQueue::dispatch), ids.data(), nullptr, 3000, found.data());
  EXPECT_GT(namedBytes("test.t.values"), bytes);
  const std::vector<uint64_t> made = identities.fetch();
  for (size_t i = 0; i < made.size(); ++i)
    EXPECT_EQ(made[i], config.identityOf(static_cast<int64_t>(i) + 1));
}

/// Steps of two programs, whose sums have other lengths, follow each other as those of one.
TEST_F(DevicePromises, SumsOfAnotherProgramWaitForNobody) {
  const std::unique_ptr<Communicator> alone = makeSingleComm();
  const std::unique_ptr<DevicePortionSums> sums = device->makePortionSums(*alone, 1);
  Copy<float> values(std::vector<float>(8, 2.0f)), total(std::vector<float>(8));
  const float *const from = values.data();
  float *const to = total.data();
  int64_t waits = 0;
  for (const int64_t floats : {8, 4}) {
    waits = simt::waitCount();
    sums->begin();
    sums->contribute(0, {&from, 1}, {&floats, 1});
    sums->reduce(*alone);
    sums->collect(0, {&to, 1});
    EXPECT_EQ(simt::waitCount(), waits) << floats << " floats";
    device->synchronize();
  }
  EXPECT_EQ(total.fetch(), std::vector<float>(8, 2.0f));
}

/// Lists of a catalogue have one offset more than there are lists.
TEST_F(DevicePromises, CataloguesAreBroughtWhole) {
  const std::unique_ptr<DeviceState> state = DeviceState::make(deviceModel());
  const std::vector<int64_t> offsets = {0, 2, 2, 5}, parent = {0, 0, 2, 2, 2};
  const std::vector<uint64_t> identity = {11, 12, 13, 14, 15};
  genrec_domain above{}, lists{}, to{};
  above.count = 3;
  lists.count = 5;
  lists.parent_domain = &above;
  lists.offsets = offsets.data();
  lists.parent = parent.data();
  lists.identity = identity.data();
  state->useCatalogue(1, lists, to);
  const auto expectSame = [](const auto *onDevice, const auto &expected) {
    auto found = expected;
    std::ranges::fill(found, 77);
    GENREC_CUDA_CHECK(cudaMemcpy(found.data(), onDevice, found.size() * sizeof(found[0]),
                                 cudaMemcpyDeviceToHost));
    EXPECT_EQ(found, expected);
  };
  expectSame(to.offsets, offsets);
  expectSame(to.parent, parent);
  expectSame(to.identity, identity);
  genrec_domain again{};
  state->useCatalogue(1, lists, again); // which is there
  EXPECT_EQ(again.offsets, to.offsets);
  EXPECT_EQ(again.identity, to.identity);
  state->finish();
}

/// Fetches of two lookups, whose rows are given by hand.
class GivenRows final : public DeviceRowExchange {
public:
  GivenRows(Device &device, std::vector<float *> rows, const std::vector<float> &sums)
      : device(device), count(static_cast<int64_t>(rows.size())), rows(rows), sums(sums),
        descriptor({genrec_domain{}}) {}

  void begin() override {}
  void setReplicated(std::span<const std::vector<char>>) override {}
  int64_t *layOutKeys(std::span<const DeviceRowRequest>) override { return nullptr; }
  void ask(Communicator &, bool) override {}
  void bring(Communicator &, const FindRows &) override {}
  void beginPortion(int32_t) override {}
  void contribute(int32_t, int32_t, const genrec_domain *, int64_t, float *const *,
                  const float *) override {}
  void endPortion(int32_t) override {}
  void collect() override {}
  Update getUpdate(int32_t) const override {
    Update update;
    update.rows = rows.data();
    update.sums = sums.data();
    update.capacity = count;
    return update;
  }
  void describe(int32_t, genrec_domain *owned) override {
    genrec_domain domain{};
    domain.count = domain.max_length = count;
    GENREC_CUDA_CHECK(cudaMemcpyAsync(owned, &domain, sizeof domain, cudaMemcpyHostToDevice,
                                      static_cast<cudaStream_t>(device.stream())));
  }
  void end() override {}
  ExchangeCounts getTraffic() const override { return {}; }
  std::vector<int64_t> countAsked(int32_t) const override { return {}; }

private:
  Device &device;
  int64_t count;
  mutable Copy<float *> rows;
  mutable Copy<float> sums;
  Copy<genrec_domain> descriptor;
};

/// A row of two fetches is one; where its sums cancel it is updated all the same, as momentum and
/// decay change it.
TEST_F(DevicePromises, RowsOfTwoFetchesAreJoinedWhateverTheirSum) {
  const ExchangedTables tables(deviceModel(), std::vector<std::shared_ptr<TableStore>>(1),
                               std::vector<char>{0});
  Copy<float> memory(std::vector<float>(3 * kDim));
  float *a = memory.data(), *b = a + kDim, *c = b + kDim;
  device->use(DeviceQueue::compute);
  GivenRows first(*device, {a, b}, {1, 2, 3, 4, 0, 0, 0, 0});
  GivenRows later(*device, {c, a}, {5, 6, 7, 8, -1, -2, -3, -4});
  DeviceUpdates updates(*device, tables);
  updates.begin();
  updates.add(first);
  updates.add(later);
  updates.layOut();
  updates.join();
  Copy<genrec_domain> owned({genrec_domain{}});
  updates.describe(0, owned.data());
  EXPECT_EQ(updates.capacity(0), 4);
  ASSERT_EQ(owned.fetch()[0].count, 3);
  std::vector<float *> rows(3);
  std::vector<float> sums(3 * kDim);
  GENREC_CUDA_CHECK(
      cudaMemcpy(rows.data(), updates.of(0).rows, 3 * sizeof(float *), cudaMemcpyDeviceToHost));
  GENREC_CUDA_CHECK(cudaMemcpy(sums.data(), updates.of(0).sums, sums.size() * sizeof(float),
                               cudaMemcpyDeviceToHost));
  EXPECT_THAT(rows, ElementsAre(a, b, c));
  EXPECT_THAT(sums, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8));
}

} // namespace
} // namespace genrec::rt::cuda::test
