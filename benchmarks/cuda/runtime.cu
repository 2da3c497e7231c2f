// Store and sparse kernels on a device, beside the ceilings of the card.
//
//   bench-cuda-runtime [<file.json>]
//
// Times are medians between events on one stream. Rates of rows count the bytes of the rows once
// read and once written.

#include "timing.h"

#include "genrec_rt/cuda/row_update.h"
#include "genrec_rt/cuda/rows.h"
#include "genrec_rt/cuda/store.h"
#include "genrec_rt/cuda/unique.h"

#include <memory>
#include <random>

namespace {

using namespace genrec::bench;
using genrec::rt::StoreConfig;
using namespace genrec::rt::cuda;

constexpr int64_t kMi = 1 << 20;
constexpr int kRepeats = 20;

std::vector<int64_t> randomIds(int64_t count, uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % below);
  return ids;
}

/// Bytes per second of a copy within the device, read and written; and of gathered rows.
double ceilings(Report &report, cudaStream_t stream) {
  constexpr int64_t kBytes = int64_t(1) << 30;
  char *from = onDevice<char>(4 * kBytes), *to = onDevice<char>(kBytes);
  GENREC_CUDA_CHECK(cudaMemset(from, 0, 4 * kBytes));
  const double copy =
      2e-9 * kBytes / 1e-3 / milliseconds(stream, kRepeats, [&](cudaStream_t s) {
        GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, s));
      });
  report.add("copy", copy, "GB/s");
  for (int64_t bytes : {32, 64, 128, 256, 512}) {
    const int64_t rows = kBytes / bytes / 4, dim = bytes / 4;
    std::vector<const float *> places(static_cast<size_t>(rows));
    std::mt19937_64 random(1);
    for (const float *&place : places)
      place =
          reinterpret_cast<float *>(from + random() % (4 * kBytes / static_cast<uint64_t>(bytes)) *
                                               static_cast<uint64_t>(bytes));
    const float **device = onDevice(places);
    const double rate =
        2e-6 * static_cast<double>(rows * bytes) /
        milliseconds(stream, kRepeats, [&](cudaStream_t s) {
          gatherRows<float>(device, rows, dim, reinterpret_cast<float *>(to), dim, s);
        });
    report.add("gather, rows of " + std::to_string(bytes) + " B", rate, "GB/s");
    report.add("gather, rows of " + std::to_string(bytes) + " B, of copy", 100 * rate / copy, "%");
    GENREC_CUDA_CHECK(cudaFree(device));
  }
  GENREC_CUDA_CHECK(cudaFree(from));
  GENREC_CUDA_CHECK(cudaFree(to));
  return copy;
}

void stores(Report &report, cudaStream_t stream) {
  constexpr int64_t kSlots = 16 * kMi, kBatch = kMi;
  for (int64_t dim : {8, 32, 64})
    for (double load : {0.5, 0.75}) {
      StoreConfig config;
      config.dim = dim;
      config.initializer = {2, 0.01, 1, 2, 1, 1};
      EmbeddingStore store(config, "bench", stream);
      const int64_t rows = static_cast<int64_t>(load * kSlots);
      std::vector<int64_t> ids(static_cast<size_t>(rows));
      for (int64_t i = 0; i < rows; ++i)
        ids[static_cast<size_t>(i)] = i * 7919 + 1;
      int64_t *all = onDevice(ids);
      float **places = onDevice<float *>(kBatch);
      float *values = onDevice<float>(kBatch * dim);
      for (int64_t begin = 0; begin < rows; begin += kBatch)
        store.findOrInsert(all + begin, nullptr, std::min(kBatch, rows - begin), places, stream);
      std::vector<int64_t> known = randomIds(kBatch, static_cast<uint64_t>(rows), 5);
      for (int64_t &id : known)
        id = id * 7919 + 1;
      int64_t *batch = onDevice(known);
      const std::string which =
          ", dim " + std::to_string(dim) + ", load " + std::to_string(load).substr(0, 4);
      auto rate = [&](auto body) { return 1e-6 * kBatch / milliseconds(stream, kRepeats, body); };
      report.add("find, pointers" + which, rate([&](cudaStream_t s) {
                   store.find(batch, nullptr, kBatch, places, nullptr, s);
                 }),
                 "G ids/s");
      report.add("find, values" + which, rate([&](cudaStream_t s) {
                   store.find(batch, nullptr, kBatch, places, nullptr, s);
                   gatherRows<float>(const_cast<const float *const *>(places), kBatch, dim, values,
                                     dim, s);
                 }),
                 "G ids/s");
      report.add("find_or_insert, pointers, ids known" + which, rate([&](cudaStream_t s) {
                   store.findOrInsert(batch, nullptr, kBatch, places, s);
                 }),
                 "G ids/s");
      GENREC_CUDA_CHECK(cudaFree(all));
      GENREC_CUDA_CHECK(cudaFree(batch));
      GENREC_CUDA_CHECK(cudaFree(places));
      GENREC_CUDA_CHECK(cudaFree(values));
    }
}

void uniques(Report &report, cudaStream_t stream) {
  struct Case {
    int64_t count, segments;
  };
  for (const Case &c : {Case{kMi, 10}, Case{64 * kMi, 40}}) {
    std::vector<int64_t> offsets;
    for (int64_t s = 0; s <= c.segments; ++s)
      offsets.push_back(c.count * s / c.segments);
    // Three occurrences of an id: draws from a third of as many.
    int64_t *ids = onDevice(randomIds(c.count, static_cast<uint64_t>(c.count / c.segments / 3), 3));
    int64_t *segments = onDevice(offsets), *distinct = onDevice<int64_t>(c.count);
    uint32_t *inverse = onDevice<uint32_t>(c.count), *counts = onDevice<uint32_t>(c.count),
             *total = onDevice<uint32_t>(1);
    int64_t *begins = onDevice<int64_t>(c.segments + 65);
    Unique unique("bench");
    const std::string which = std::to_string(c.count / kMi) + " Mi ids";
    report.add("segment-unique, " + which + " in " + std::to_string(c.segments),
               1e3 * milliseconds(stream, kRepeats,
                                  [&](cudaStream_t s) {
                                    unique.run(ids, c.count, segments, c.segments,
                                               {distinct, inverse, counts, begins, total}, s);
                                  }),
               "us");
    for (uint32_t owners : {8u, 64u})
      report.add("unique and partition, " + which + " into " + std::to_string(owners),
                 1e3 * milliseconds(stream, kRepeats,
                                    [&](cudaStream_t s) {
                                      unique.runByOwner(
                                          ids, c.count, owners,
                                          {distinct, inverse, nullptr, nullptr, total}, begins, s);
                                    }),
                 "us");
    for (void *memory :
         {static_cast<void *>(ids), static_cast<void *>(segments), static_cast<void *>(distinct),
          static_cast<void *>(inverse), static_cast<void *>(counts), static_cast<void *>(total),
          static_cast<void *>(begins)})
      GENREC_CUDA_CHECK(cudaFree(memory));
  }
}

/// Ten tables merged into one store (the table's number above the id), a mebi of ids, rows of 128,
/// Adam.
void trainingStep(Report &report, cudaStream_t stream) {
  constexpr int64_t kTables = 10, kIds = kMi, kDim = 128, kRowsEach = 2000000;
  StoreConfig config;
  config.dim = kDim;
  config.states = 2;
  config.initializer = {2, 0.01, 1, 2, 1, 1};
  EmbeddingStore store(config, "step", stream);
  std::vector<int64_t> keys = randomIds(kIds, kRowsEach, 9);
  for (int64_t i = 0; i < kIds; ++i)
    keys[static_cast<size_t>(i)] |= (i % kTables) << 59;
  int64_t *ids = onDevice(keys), *distinct = onDevice<int64_t>(kIds),
          *segments = onDevice<int64_t>(kIds + 1);
  uint32_t *inverse = onDevice<uint32_t>(kIds), *order = onDevice<uint32_t>(kIds),
           *total = onDevice<uint32_t>(1);
  float **rows = onDevice<float *>(kIds);
  float *pooled = onDevice<float>(kIds * kDim), *gradients = onDevice<float>(kIds * kDim);
  std::vector<int64_t> ones, wholeBatch = {0, kIds};
  for (int64_t i = 0; i <= kIds; ++i)
    ones.push_back(i);
  int64_t *lists = onDevice(ones), *batch = onDevice(wholeBatch);
  GENREC_CUDA_CHECK(cudaMemset(gradients, 0, static_cast<size_t>(kIds * kDim) * 4));
  Unique unique("step");
  StableOrder stable("step");
  RowUpdate update("step");
  uint32_t found = 0;
  auto forward = [&](cudaStream_t s) {
    unique.run(ids, kIds, batch, 1, {distinct, inverse, nullptr, nullptr, total}, s);
    GENREC_CUDA_CHECK(cudaMemcpyAsync(&found, total, 4, cudaMemcpyDeviceToHost, s));
    GENREC_CUDA_CHECK(cudaStreamSynchronize(s));
    store.findOrInsert(distinct, nullptr, found, rows, s);
    poolRows<float>(const_cast<const float *const *>(rows), inverse, lists, kIds, kDim, Pool::sum,
                    pooled, kDim, s);
  };
  auto backward = [&](cudaStream_t s) {
    stable.run(inverse, kIds, found, order, s);
    findSegments(inverse, order, kIds, total, segments, s);
    update.run<float>(rows, found, nullptr, kDim, order, segments, kIds,
                      {gradients, kDim, nullptr, nullptr}, {OptimizerKind::adam, 1e-3f}, s);
  };
  report.add("table step forward, 10 tables, 1 Mi ids, D 128",
             milliseconds(stream, kRepeats, forward), "ms");
  report.add("table step forward and Adam, 10 tables, 1 Mi ids, D 128",
             milliseconds(stream, kRepeats,
                          [&](cudaStream_t s) {
                            forward(s);
                            backward(s);
                          }),
             "ms");
}

} // namespace

int main(int argc, char **argv) {
  try {
    Report report;
    cudaStream_t stream;
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ceilings(report, stream);
    trainingStep(report, stream);
    uniques(report, stream);
    stores(report, stream);
    if (argc > 1 && !report.write(argv[1])) {
      std::fprintf(stderr, "error: cannot write '%s'\n", argv[1]);
      return 1;
    }
  } catch (const genrec::rt::Error &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
