//===- cuda_store.h - A store on a device, for tests --------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_CUDA_STORE_H
#define GENREC_TEST_CUDA_CUDA_STORE_H

#include "../Runtime/host_side.h"
#include "device_copy.h"

#include "genrec_rt/cuda/store.h"

#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
inline StoreStream onTestStream() { return StoreStream::ofDevice(testStream()); }
} // namespace genrec::rt::cuda::test

namespace genrec::rt::test {

/// cuda::EmbeddingStore as the conformance suites see a store.
class CudaStore : public HostSide {
public:
  template <class T> using Copy = cuda::test::Copy<T>;
#if defined(GENREC_SIMT)
  static constexpr int64_t kMany = 1500;
#else
  static constexpr int64_t kMany = 200000;
#endif

  explicit CudaStore(const StoreConfig &config, const cuda::CacheLimit &limit = {})
      : CudaStore(config, cuda::StoreOptions{limit}) {}
  CudaStore(const StoreConfig &config, const cuda::StoreOptions &options)
      : HostSide(store, cuda::test::onTestStream()),
        store(config, "movie", cuda::test::testStream(), options) {}

  using HostSide::insert;
  /// The same, and what left: ids and rows as they were.
  std::vector<Row> insert(const std::vector<int64_t> &ids,
                          std::vector<std::pair<int64_t, std::vector<float>>> &evicted) {
    Copy<int64_t> onDevice(ids), left(std::vector<int64_t>(ids.size(), 0));
    Copy<Row> rows(std::vector<Row>(ids.size(), nullptr));
    Copy<uint32_t> count({0});
    const auto stride = static_cast<size_t>(store.rowStride());
    Copy<float> values(std::vector<float>(ids.size() * stride, 0.0f));
    store.insertAndEvict(cuda::test::onTestStream(), onDevice.data(), nullptr,
                         static_cast<int64_t>(ids.size()), rows.data(),
                         {count.data(), left.data(), values.data()});
    const std::vector<int64_t> all = left.fetch();
    const std::vector<float> contents = values.fetch();
    for (size_t i = 0; i < count.fetch()[0]; ++i)
      evicted.push_back({all[i],
                         {contents.begin() + static_cast<ptrdiff_t>(i * stride),
                          contents.begin() + static_cast<ptrdiff_t>((i + 1) * stride)}});
    return rows.fetch();
  }
  cuda::EmbeddingStore &storeOnDevice() { return store; }
  int64_t refused() { return store.refused(cuda::test::testStream()); }
  int64_t slots() const { return store.slots(); }
  int64_t keyBytes() const { return store.keyBytes(); }
  int64_t valueBytes() const { return store.valueBytes(); }
  const cuda::KeyTable &keyTable() const { return store.keyTable(); }

private:
  cuda::EmbeddingStore store;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_CUDA_CUDA_STORE_H
