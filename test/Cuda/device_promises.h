//===- device_promises.h - A device, as sessions have it --------*- C++ -*-===//
//
// What tests of device_test.cpp and device_watch_test.cpp begin with.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_DEVICE_PROMISES_H
#define GENREC_TEST_CUDA_DEVICE_PROMISES_H

#include "../Runtime/store_conformance.h"
#include "device_copy.h"
#include "simt.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/device.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

namespace genrec::rt::cuda::test {

class DevicePromises : public testing::Test {
protected:
  DevicePromises() : devices(genrec_rt_cuda_device()), device(devices->open(nullptr)) {}
  void TearDown() override {
    EXPECT_EQ(simt::errorMessage(), "");
    simt::clearError();
    simt::options() = {};
  }

  /// A store looks `ids` up in a step of its own, or in the one that is under way.
  std::vector<float *> lookUp(TableStore &store, const std::vector<int64_t> &ids,
                              bool beginsStep = true) {
    Copy<int64_t> onDevice(ids);
    Copy<float *> rows(std::vector<float *>(ids.size(), nullptr));
    device->use(DeviceQueue::dispatch);
    if (beginsStep)
      device->beginDispatch();
    store.findOrInsert(StoreStream::ofDevice(device->stream()), onDevice.data(), nullptr,
                       static_cast<int64_t>(ids.size()), rows.data());
    return rows.fetch();
  }

  static std::vector<int64_t> idsFrom(int64_t first, int64_t count) {
    std::vector<int64_t> ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    return ids;
  }

  std::unique_ptr<genrec_rt_device> devices;
  std::unique_ptr<Device> device;
};

} // namespace genrec::rt::cuda::test

#endif // GENREC_TEST_CUDA_DEVICE_PROMISES_H
