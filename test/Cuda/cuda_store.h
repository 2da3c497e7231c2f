//===- cuda_store.h - A store on a device, for tests --------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_CUDA_STORE_H
#define GENREC_TEST_CUDA_CUDA_STORE_H

#include "device_copy.h"

#include "genrec_rt/cuda/store.h"

#include <gtest/gtest.h>

namespace genrec::rt::test {

/// cuda::EmbeddingStore as the conformance suite sees a store.
class CudaStore {
public:
  using Row = float *;
  template <class T> using Copy = cuda::test::Copy<T>;
#if defined(GENREC_SIMT)
  static constexpr int64_t kMany = 1500;
#else
  static constexpr int64_t kMany = 200000;
#endif

  explicit CudaStore(const StoreConfig &config, const cuda::CacheLimit &limit = {})
      : CudaStore(config, cuda::StoreOptions{limit}) {}
  CudaStore(const StoreConfig &config, const cuda::StoreOptions &options)
      : store(config, "movie", nullptr, options) {}

  std::vector<Row> insert(const std::vector<int64_t> &ids, const std::vector<uint8_t> &valid = {},
                          Row untouched = nullptr) {
    Copy<int64_t> onDevice(ids);
    Copy<uint8_t> mask(valid);
    Copy<Row> rows(std::vector<Row>(ids.size(), untouched));
    store.findOrInsert(onDevice.data(), valid.empty() ? nullptr : mask.data(),
                       static_cast<int64_t>(ids.size()), rows.data(), nullptr);
    return rows.fetch();
  }
  /// The same, and what left: ids and rows as they were.
  std::vector<Row> insert(const std::vector<int64_t> &ids,
                          std::vector<std::pair<int64_t, std::vector<float>>> &evicted) {
    Copy<int64_t> onDevice(ids), left(std::vector<int64_t>(ids.size(), 0));
    Copy<Row> rows(std::vector<Row>(ids.size(), nullptr));
    Copy<uint32_t> count({0});
    const auto stride = static_cast<size_t>(store.rowStride());
    Copy<float> values(std::vector<float>(ids.size() * stride, 0.0f));
    store.insertAndEvict(onDevice.data(), nullptr, static_cast<int64_t>(ids.size()), rows.data(),
                         {count.data(), left.data(), values.data()}, nullptr);
    const std::vector<int64_t> all = left.fetch();
    const std::vector<float> contents = values.fetch();
    for (size_t i = 0; i < count.fetch()[0]; ++i)
      evicted.push_back({all[i],
                         {contents.begin() + static_cast<ptrdiff_t>(i * stride),
                          contents.begin() + static_cast<ptrdiff_t>((i + 1) * stride)}});
    return rows.fetch();
  }
  std::vector<Row> find(const std::vector<int64_t> &ids, int64_t *missing = nullptr) const {
    Copy<int64_t> onDevice(ids);
    Copy<Row> rows(std::vector<Row>(ids.size(), nullptr));
    Copy<uint32_t> count({0});
    store.find(onDevice.data(), nullptr, static_cast<int64_t>(ids.size()), rows.data(),
               count.data(), nullptr);
    if (missing)
      *missing = count.fetch()[0];
    return rows.fetch();
  }
  std::vector<Row> train(const std::vector<int64_t> &ids, int64_t step) {
    Copy<int64_t> onDevice(ids);
    Copy<Row> rows(std::vector<Row>(ids.size(), nullptr));
    Copy<uint32_t> waits({0});
    store.findOrAdmit(onDevice.data(), nullptr, static_cast<int64_t>(ids.size()), step, rows.data(),
                      waits.data(), nullptr);
    const std::vector<Row> found = rows.fetch();
    EXPECT_EQ(waits.fetch()[0], std::count(found.begin(), found.end(), nullptr));
    return found;
  }
  void evict(int64_t step) { store.evict(step, nullptr); }
  Sighting sighting(int64_t id) const {
    const Row row = find({id})[0];
    Sighting result;
    if (!row)
      ADD_FAILURE() << id << " has no row";
    else
      GENREC_CUDA_CHECK(cudaMemcpy(&result, row + store.sightingOffset(), sizeof(result),
                                   cudaMemcpyDeviceToHost));
    return result;
  }
  void erase(const std::vector<int64_t> &ids) {
    Copy<int64_t> onDevice(ids);
    store.erase(onDevice.data(), static_cast<int64_t>(ids.size()), nullptr);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
  std::vector<float> values(Row row) const {
    std::vector<float> result(static_cast<size_t>(store.rowStride()));
    GENREC_CUDA_CHECK(cudaMemcpy(result.data(), row, result.size() * 4, cudaMemcpyDefault));
    return result;
  }
  void write(Row row, int64_t column, float value) {
    GENREC_CUDA_CHECK(cudaMemcpy(row + column, &value, 4, cudaMemcpyDefault));
  }
  std::vector<std::pair<int64_t, Row>> exported() {
    const auto numbers = static_cast<size_t>(store.numbersInUse(nullptr));
    Copy<int64_t> ids(std::vector<int64_t>(numbers, 0));
    Copy<Row> rows(std::vector<Row>(numbers, nullptr));
    int64_t count = store.exportRows(ids.data(), rows.data(), nullptr);
    std::vector<int64_t> all = ids.fetch();
    std::vector<Row> places = rows.fetch();
    std::vector<std::pair<int64_t, Row>> result;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      result.push_back({all[i], places[i]});
    return result;
  }
  std::vector<int64_t> ids() {
    std::vector<int64_t> result;
    for (auto &[id, row] : exported())
      result.push_back(id);
    return result;
  }
  int64_t size() { return store.size(nullptr); }
  int64_t refused() { return store.refused(nullptr); }
  int64_t slots() const { return store.slots(); }
  int64_t rowStride() const { return store.rowStride(); }
  void clear() { store.clear(nullptr); }

private:
  cuda::EmbeddingStore store;
};

} // namespace genrec::rt::test

#endif // GENREC_TEST_CUDA_CUDA_STORE_H
