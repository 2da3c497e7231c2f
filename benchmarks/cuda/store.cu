// The store on a device: caches of 128 Mi rows as the peer has them (hkv.cu), and tables that grow.
//
//   bench-cuda-store [--dry-run] [--only <group>] [<file.json>]

#include "store_cases.h"

#include "genrec_rt/cuda/store.h"
#include "genrec_rt/kernels/cuda/rows.h"

namespace {

using namespace genrec::bench;
using genrec::rt::StoreConfig;
using namespace genrec::rt::cuda;

void measure(Report &report, const std::string &kind, const StoreCase &c, const CacheLimit &limit,
             cudaStream_t stream) {
  StoreConfig config;
  config.dim = c.dim;
  config.initializer = {2, 0.01, 1, 2, 1, 1};
  EmbeddingStore store(config, "bench", stream, {limit});
  Arrays arrays;
  float **places = arrays.of<float *>(kStoreBatch);
  float *values = arrays.of<float>(kStoreBatch * c.dim);
  {
    Arrays filling;
    const int64_t *all = filling.of(c.filled());
    for (int64_t begin = 0; begin < c.rows(); begin += kStoreBatch)
      store.findOrInsert(onStream(stream), all + begin, nullptr,
                         std::min(kStoreBatch, c.rows() - begin), places);
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  const int64_t *batch = arrays.of(c.known());
  auto rate = [&](int repeats, auto body) {
    return 1e-6 * kStoreBatch / coldMilliseconds(stream, repeats, body);
  };
  auto find = [&](cudaStream_t s) {
    store.find(onStream(s), batch, nullptr, kStoreBatch, places, nullptr);
  };
  report.add(kind + "find, pointers" + c.text(), rate(kRepeats, find), "G ids/s");
  report.add(kind + "find, values" + c.text(),
             rate(kRepeats,
                  [&](cudaStream_t s) {
                    find(s);
                    gatherRows<float>(const_cast<const float *const *>(places), kStoreBatch, c.dim,
                                      values, c.dim, s);
                  }),
             "G ids/s");
  report.add(kind + "find_or_insert, pointers, ids known" + c.text(),
             rate(kRepeats,
                  [&](cudaStream_t s) {
                    store.findOrInsert(onStream(s), batch, nullptr, kStoreBatch, places);
                  }),
             "G ids/s");
  const int64_t *mixed = arrays.of(c.mixed());
  int call = 0;
  if (!limit.rows) {
    report.add(kind + "find_or_insert, pointers, an eighth new" + c.text(),
               rate(kInsertRepeats,
                    [&](cudaStream_t s) {
                      store.findOrInsert(onStream(s), mixed + kStoreBatch * call++, nullptr,
                                         kStoreBatch, places);
                    }),
               "G ids/s");
    return;
  }
  int64_t *evictedIds = arrays.of<int64_t>(kStoreBatch);
  float *evictedValues = arrays.of<float>(kStoreBatch * store.rowStride());
  uint32_t *evicted = arrays.of<uint32_t>(1);
  report.add(kind + "insert_and_evict, an eighth new" + c.text(),
             rate(kInsertRepeats,
                  [&](cudaStream_t s) {
                    store.insertAndEvict(onStream(s), mixed + kStoreBatch * call++, nullptr,
                                         kStoreBatch, places, {evicted, evictedIds, evictedValues});
                  }),
             "G ids/s");
}

void caches(Report &report, cudaStream_t stream) {
  for (int64_t dim : kDims)
    for (double load : kLoads)
      measure(report, "cache, ", {dim, load}, {kStoreSlots}, stream);
}

void growing(Report &report, cudaStream_t stream) {
  for (int64_t dim : kDims)
    for (double load : {0.5, 0.75})
      measure(report, "table, ", {dim, load}, {}, stream);
}

} // namespace

int main(int argc, char **argv) {
  return run("store", argc, argv, {{"caches", caches}, {"growing", growing}});
}
