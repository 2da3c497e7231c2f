// HierarchicalKV on the tables of runtime.cu: the peer of the store, in the same run.
//
//   bench-cuda-hkv [<file.json>]
//
// Its values come by pointer, as ours, and copied out, as ours with a gather behind the search.

#include "timing.h"

#include "merlin_hashtable.cuh"

#include <random>

namespace {

using namespace genrec::bench;

using Table = nv::merlin::HashTable<uint64_t, float, uint64_t, nv::merlin::EvictStrategy::kLru>;

constexpr int64_t kMi = 1 << 20, kSlots = 16 * kMi, kBatch = kMi;
constexpr int kRepeats = 20;

void measure(Report &report, int64_t dim, double load, cudaStream_t stream) {
  nv::merlin::HashTableOptions options;
  options.init_capacity = options.max_capacity = static_cast<size_t>(kSlots);
  options.dim = static_cast<size_t>(dim);
  options.max_hbm_for_vectors = static_cast<size_t>(kSlots * dim * 4);
  Table table;
  table.init(options);
  const int64_t rows = static_cast<int64_t>(load * kSlots);
  std::vector<uint64_t> ids(static_cast<size_t>(rows)), known(static_cast<size_t>(kBatch));
  for (int64_t i = 0; i < rows; ++i)
    ids[static_cast<size_t>(i)] = static_cast<uint64_t>(i * 7919 + 1);
  std::mt19937_64 random(5);
  for (uint64_t &id : known)
    id = random() % static_cast<uint64_t>(rows) * 7919 + 1;
  uint64_t *all = onDevice(ids), *batch = onDevice(known);
  float *values = onDevice<float>(kBatch * dim);
  float **places = onDevice<float *>(kBatch);
  bool *founds = onDevice<bool>(kBatch);
  GENREC_CUDA_CHECK(cudaMemset(values, 0, static_cast<size_t>(kBatch * dim) * 4));
  for (int64_t begin = 0; begin < rows; begin += kBatch)
    table.insert_or_assign(static_cast<size_t>(std::min(kBatch, rows - begin)), all + begin, values,
                           nullptr, stream);
  const std::string which =
      ", dim " + std::to_string(dim) + ", load " + std::to_string(load).substr(0, 4);
  auto rate = [&](auto body) { return 1e-6 * kBatch / milliseconds(stream, kRepeats, body); };
  report.add("HierarchicalKV find, pointers" + which,
             rate([&](cudaStream_t s) { table.find(kBatch, batch, places, founds, nullptr, s); }),
             "G ids/s");
  report.add("HierarchicalKV find, values" + which,
             rate([&](cudaStream_t s) { table.find(kBatch, batch, values, founds, nullptr, s); }),
             "G ids/s");
  report.add("HierarchicalKV find_or_insert, pointers, ids known" + which,
             rate([&](cudaStream_t s) {
               table.find_or_insert(kBatch, batch, places, founds, nullptr, s);
             }),
             "G ids/s");
  for (void *memory :
       {static_cast<void *>(all), static_cast<void *>(batch), static_cast<void *>(values),
        static_cast<void *>(places), static_cast<void *>(founds)})
    GENREC_CUDA_CHECK(cudaFree(memory));
}

} // namespace

int main(int argc, char **argv) {
  try {
    Report report;
    cudaStream_t stream;
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int64_t dim : {8, 32, 64})
      for (double load : {0.5, 0.75, 1.0})
        measure(report, dim, load, stream);
    if (argc > 1 && !report.write(argv[1])) {
      std::fprintf(stderr, "error: cannot write '%s'\n", argv[1]);
      return 1;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
