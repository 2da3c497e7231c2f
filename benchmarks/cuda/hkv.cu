// HierarchicalKV on what store.cu gives to ours: the peer of the store, in the same run.
//
//   bench-cuda-hkv [--dry-run] [--only <group>] [<file.json>]
//
// Its values come by pointer, as ours, and copied out, as ours with a gather behind the search.

#include "store_cases.h"

#include "merlin_hashtable.cuh"

namespace {

using namespace genrec::bench;

using Table = nv::merlin::HashTable<uint64_t, float, uint64_t, nv::merlin::EvictStrategy::kLru>;

void measure(Report &report, const StoreCase &c, cudaStream_t stream) {
  nv::merlin::HashTableOptions options;
  options.init_capacity = options.max_capacity = static_cast<size_t>(kStoreSlots);
  options.dim = static_cast<size_t>(c.dim);
  options.max_hbm_for_vectors = static_cast<size_t>(kStoreSlots * c.dim * 4);
  Table table;
  table.init(options);
  Arrays arrays;
  auto keysOf = [](const int64_t *ids) { return reinterpret_cast<const uint64_t *>(ids); };
  float *values = arrays.of<float>(kStoreBatch * c.dim);
  float **places = arrays.of<float *>(kStoreBatch);
  bool *founds = arrays.of<bool>(kStoreBatch);
  GENREC_CUDA_CHECK(cudaMemset(values, 0, static_cast<size_t>(kStoreBatch * c.dim) * 4));
  {
    Arrays filling;
    const int64_t *all = filling.of(c.filled());
    for (int64_t begin = 0; begin < c.rows(); begin += kStoreBatch)
      table.insert_or_assign(static_cast<size_t>(std::min(kStoreBatch, c.rows() - begin)),
                             keysOf(all + begin), values, nullptr, stream);
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  const uint64_t *batch = keysOf(arrays.of(c.known()));
  auto rate = [&](int repeats, auto body) {
    return 1e-6 * kStoreBatch / coldMilliseconds(stream, repeats, body);
  };
  report.add(
      "HierarchicalKV find, pointers" + c.text(),
      rate(kRepeats,
           [&](cudaStream_t s) { table.find(kStoreBatch, batch, places, founds, nullptr, s); }),
      "G ids/s");
  report.add(
      "HierarchicalKV find, values" + c.text(),
      rate(kRepeats,
           [&](cudaStream_t s) { table.find(kStoreBatch, batch, values, founds, nullptr, s); }),
      "G ids/s");
  report.add("HierarchicalKV find_or_insert, pointers, ids known" + c.text(),
             rate(kRepeats,
                  [&](cudaStream_t s) {
                    table.find_or_insert(kStoreBatch, batch, places, founds, nullptr, s);
                  }),
             "G ids/s");
  const uint64_t *mixed = keysOf(arrays.of(c.mixed()));
  uint64_t *evictedKeys = arrays.of<uint64_t>(kStoreBatch),
           *evictedScores = arrays.of<uint64_t>(kStoreBatch);
  float *evictedValues = arrays.of<float>(kStoreBatch * c.dim);
  auto *evicted = arrays.of<Table::size_type>(1);
  int call = 0;
  report.add("HierarchicalKV insert_and_evict, an eighth new" + c.text(),
             rate(kInsertRepeats,
                  [&](cudaStream_t s) {
                    GENREC_CUDA_CHECK(cudaMemsetAsync(evicted, 0, sizeof(*evicted), s));
                    table.insert_and_evict(kStoreBatch, mixed + kStoreBatch * call++, values,
                                           nullptr, evictedKeys, evictedValues, evictedScores,
                                           evicted, s);
                  }),
             "G ids/s");
}

void tables(Report &report, cudaStream_t stream) {
  for (int64_t dim : kDims)
    for (double load : kLoads)
      measure(report, {dim, load}, stream);
}

} // namespace

int main(int argc, char **argv) { return run("hkv", argc, argv, {{"tables", tables}}); }
