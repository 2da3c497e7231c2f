// Transforms of many columns in one launch (columns.h).
//
//   bench-cuda-columns [--dry-run] [--only <group>] [<file.json>]
//
// small: 100 columns of 10 k values, a value per row, from enqueue until done, as the host sees it.
// ragged: 600 columns of 100 k values each in lists of up to 20, of which the last 15 are kept;
// rates count values read and written.

#include "timing.h"

#include "genrec_rt/kernels/cuda/columns.h"

#include <chrono>

namespace {

using namespace genrec::bench;
using namespace genrec::rt::cuda;

struct Columns {
  Columns(int64_t count, int64_t valuesEach, int64_t longest, int64_t most) {
    std::mt19937_64 random(7);
    std::vector<int64_t> offsets = {0};
    while (offsets.back() < valuesEach) {
      const auto length = longest == 1 ? 1 : static_cast<int64_t>(random() % (longest + 1));
      offsets.push_back(std::min(valuesEach, offsets.back() + length));
      kept += std::min(offsets.back() - offsets[offsets.size() - 2], most);
    }
    kept *= count;
    values = count * valuesEach;
    std::vector<double> edges;
    for (int i = 0; i < 100; ++i)
      edges.push_back(i * 1e7);
    const double *deviceEdges = arrays.of(edges);
    const int64_t *deviceOffsets = arrays.of(offsets);
    std::vector<ColumnDescriptor> table;
    for (int64_t c = 0; c < count; ++c) {
      ColumnDescriptor column;
      column.values = arrays.of(randomIds(valuesEach, 1000000000, static_cast<uint64_t>(c)));
      column.offsets = deviceOffsets;
      column.rows = static_cast<int64_t>(offsets.size()) - 1;
      column.most = most;
      column.out = arrays.of<int64_t>(valuesEach);
      column.outOffsets = arrays.of<int64_t>(static_cast<int64_t>(offsets.size()));
      for (ColumnParameters &parameters : column.parameters) {
        parameters.seed = c;
        parameters.divisor = 100000 + c;
        parameters.edges = deviceEdges;
        parameters.edgeCount = static_cast<int64_t>(edges.size());
      }
      table.push_back(column);
    }
    descriptors = arrays.of(table);
    this->count = count;
    isCut = most < longest;
  }
  template <class Program> void run(cudaStream_t stream) const {
    runColumns<Program>(descriptors, count, values, isCut, stream);
  }

  Arrays arrays;
  const ColumnDescriptor *descriptors = nullptr;
  int64_t count = 0, values = 0, kept = 0;
  bool isCut = false;
};

using Hashed = ColumnProgram<HashXxh3, Modulo>;
using Bucketed = ColumnProgram<Bucketize>;

void small(Report &report, cudaStream_t stream) {
  const Columns columns(100, 10000, 1, INT64_MAX);
  auto enqueueToDone = [&](auto run) {
    std::vector<double> times;
    for (int i = 0; i < 3 * kRepeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      run();
      GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
      const std::chrono::duration<double, std::micro> time =
          std::chrono::steady_clock::now() - begin;
      times.push_back(time.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  };
  report.add("bucketize 100 x 10 k, enqueue to done",
             enqueueToDone([&] { columns.run<Bucketed>(stream); }), "us");
  report.add("hash and mod 100 x 10 k, enqueue to done",
             enqueueToDone([&] { columns.run<Hashed>(stream); }), "us");
}

void ragged(Report &report, cudaStream_t stream) {
  const Columns columns(600, 100000, 20, 15);
  auto rate = [&](auto body) {
    return 8e-6 * static_cast<double>(2 * columns.kept) / coldMilliseconds(stream, kRepeats, body);
  };
  report.add("truncate, hash and mod, 600 ragged columns, 60 M values",
             rate([&](cudaStream_t s) { columns.run<Hashed>(s); }), "GB/s");
  report.add("truncate and bucketize, 600 ragged columns, 60 M values",
             rate([&](cudaStream_t s) { columns.run<Bucketed>(s); }), "GB/s");
}

} // namespace

int main(int argc, char **argv) {
  return run("columns", argc, argv, {{"small", small}, {"ragged", ragged}});
}
