//===- device_watch_test.cpp - Waits within a step that are watched -------===//
//
// What a step waits for on a device may need a rank that is gone: who watches a thread's waits
// (genrec_rt/cuda/memory.h) is asked during each.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/session/device_memory.h"
#include "device_promises.h"

#include "genrec_rt/cuda/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

using rt::test::configOf;

TEST_F(DevicePromises, GrowthIsWatched) {
  struct Counter : WaitWatch {
    void look(std::chrono::nanoseconds) override { ++looks; }
    int looks = 0;
  } counter;
  StoreConfig config = configOf(1000, 0);
  config.element = RowElement::bf16;
  const std::unique_ptr<TableStore> store = device->makeStore(config, "test.t");
  Copy<int64_t> ids(std::vector<int64_t>(20'000, 2)); // which might be as many rows
  Copy<float *> found(std::vector<float *>(20'000, nullptr));
  device->use(DeviceQueue::dispatch);
  device->beginDispatch();
  const StoreStream on = StoreStream::ofDevice(device->stream());
  store->findOrInsert(on, ids.data(), nullptr, 3'000, found.data()); // asks, as one in a step may
  const int64_t bytes = namedBytes("test.t.values");
  simt::options().queues = simt::Completion::late;
  watch(counter);
  store->findOrInsert(on, ids.data(), nullptr, 20'000, found.data());
  unwatch(counter);
  EXPECT_GT(namedBytes("test.t.values"), bytes);
  EXPECT_GT(counter.looks, 0);
}

/// Pinned memory that grows within a step is taken, and what it replaces given back,
/// when the device has ended all it had.
TEST_F(DevicePromises, PinnedMemoryIsWatched) {
  struct Gone : WaitWatch {
    void look(std::chrono::nanoseconds) override { throw Error("a rank is gone"); }
  } gone;
  DeviceMemory room(*device, "test.room"), staging(*device, "test", DeviceMemory::Kind::pinned);
  room.ensure(64);
  char *const before = staging.ensure(64);
  simt::options().queues = simt::Completion::late;
  device->use(DeviceQueue::compute);
  device->copyOut(before, room.data(), 64);
  watch(gone);
  EXPECT_THAT([&] { staging.ensure(4096); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("a rank is gone")));
  unwatch(gone);
  EXPECT_EQ(staging.data(), before); // and the device may still write there
  device->synchronize();
}

} // namespace
} // namespace genrec::rt::cuda::test
