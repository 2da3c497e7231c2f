// A training step of a dynamic table, all on the device but the number of distinct ids.
//
//   bench-cuda-step [--dry-run] [--only <group>] [<file.json>]
//
// table: distinct ids, find or insert, pool forward; order, reduce and a step that reads and writes
// two states backward. giant: the same where one id is a quarter of the batch.

#include "timing.h"

#include "../../test/Cuda/row_steps.h"
#include "genrec_rt/cuda/store.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/rows.h"
#include "genrec_rt/kernels/cuda/segment_sums.h"
#include "genrec_rt/kernels/cuda/unique.h"

namespace {

using namespace genrec::bench;
using genrec::rt::StoreConfig;
using namespace genrec::rt::cuda;

/// Ten tables merged into one store (the table's number above the id), a mebi of ids, rows of 128
/// with two states. Ids occur three times on average, by a power law; `equal` of them are one.
void trainingStep(Report &report, cudaStream_t stream, int64_t equal, const std::string &which) {
  constexpr int64_t kTables = 10, kIds = kMi, kDim = 128;
  StoreConfig config;
  config.dim = kDim;
  config.states = 2;
  config.initializer = {2, 0.01, 1, 2, 1, 1};
  EmbeddingStore store(config, "step", stream);
  std::vector<int64_t> keys = powerLawIds(kIds, limitOfThree(kIds / kTables), 9);
  for (int64_t i = 0; i < kIds; ++i)
    keys[static_cast<size_t>(i)] |= (i % kTables) << 59;
  std::fill_n(keys.begin(), equal, 7);
  Arrays arrays;
  int64_t *ids = arrays.of(keys), *distinct = arrays.of<int64_t>(kIds),
          *segments = arrays.of<int64_t>(kIds + 1);
  uint32_t *inverse = arrays.of<uint32_t>(kIds), *order = arrays.of<uint32_t>(kIds),
           *total = arrays.of<uint32_t>(1);
  float **rows = arrays.of<float *>(kIds);
  float *pooled = arrays.of<float>(kIds * kDim), *gradients = arrays.of<float>(kIds * kDim);
  std::vector<int64_t> ones, wholeBatch = {0, kIds};
  for (int64_t i = 0; i <= kIds; ++i)
    ones.push_back(i);
  int64_t *lists = arrays.of(ones), *batch = arrays.of(wholeBatch);
  GENREC_CUDA_CHECK(cudaMemset(gradients, 0, static_cast<size_t>(kIds * kDim) * 4));
  Unique unique("step");
  StableOrder stable("step");
  SegmentReduction reduction("step");
  SegmentSums *sums = arrays.of<SegmentSums>(1);
  uint32_t found = 0;
  auto forward = [&](cudaStream_t s) {
    unique.run(ids, kIds, batch, 1, {distinct, inverse, nullptr, nullptr, total}, s);
    GENREC_CUDA_CHECK(cudaMemcpyAsync(&found, total, 4, cudaMemcpyDeviceToHost, s));
    GENREC_CUDA_CHECK(cudaStreamSynchronize(s));
    store.findOrInsert(onStream(s), distinct, nullptr, found, rows);
    poolRows<float>(const_cast<const float *const *>(rows), inverse, lists, kIds, kDim, Pool::sum,
                    pooled, kDim, s);
  };
  auto backward = [&](cudaStream_t s) {
    stable.run(inverse, kIds, found, order, s);
    findSegments(inverse, order, kIds, total, segments, s);
    reduction.run(found, nullptr, kDim, {gradients, kDim, nullptr, nullptr, order}, segments, kIds,
                  sums, nullptr, s);
    test::launchStep<float, kDim>(rows, found, nullptr, sums, test::Average{1e-3f}, s);
  };
  report.add("table step forward, " + which, coldMilliseconds(stream, kRepeats, forward), "ms");
  report.add("table step forward and a step of two states, " + which,
             coldMilliseconds(stream, kRepeats,
                              [&](cudaStream_t s) {
                                forward(s);
                                backward(s);
                              }),
             "ms");
}

void table(Report &report, cudaStream_t stream) {
  trainingStep(report, stream, 0, "10 tables, 1 Mi ids, D 128");
}
void giant(Report &report, cudaStream_t stream) {
  trainingStep(report, stream, kMi / 4, "a quarter of 1 Mi ids equal, D 128");
}

} // namespace

int main(int argc, char **argv) {
  return run("step", argc, argv, {{"table", table}, {"giant", giant}});
}
