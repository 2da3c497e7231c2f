// The three products of a sampled softmax with rows drawn from a catalogue, as
// fast as rows come out of the cache: dots, weighted sums and rank-one updates,
// beside plainly reading the same rows.
//
//   sampled_softmax [<threads>]

#include "timing.h"

#include "genrec_rt/kernels/cpu/gathered_rows.h"

namespace {

namespace k = genrec::rt::kernels;
using bench::best;
using bench::Floats;
using genrec::rt::parallelFor;

constexpr int kDim = 50;
constexpr int64_t kItems = 3706, kRows = 14000, kDrawn = 129;
/// Rows per chunk of reading kernels, and private copies of what is added to.
constexpr int64_t kGrain = 256, kCopies = 8;

/// Adds up every cache line of the drawn rows: the least that any use must do.
void readRows(const float *base, int64_t ld, const int32_t *index, float *out) {
  k::VecF total[4] = {};
  for (int64_t j = 0; j < kDrawn; ++j) {
    const float *row = base + index[j] * ld;
    for (int v = 0; v < 4; ++v)
      total[v] = total[v] + k::load(row + std::min<int64_t>(v * k::kLanes, ld - k::kLanes));
  }
  k::store(out, (total[0] + total[1]) + (total[2] + total[3]));
}

void run(int64_t ld, int threads) {
  bench::Pool pool(threads);
  Floats items(kItems * ld, 1), queries(kRows * kDim, 2), dots(kRows * kDrawn), sums(kRows * k::kLanes + kRows * kDim);
  Floats copies(kCopies * kItems * ld);
  std::vector<int32_t> index(static_cast<size_t>(kRows * kDrawn));
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t j = 0; j < kDrawn; ++j)
      index[static_cast<size_t>(row * kDrawn + j)] = static_cast<int32_t>(
          k::drawIndex(k::philoxWord({1, 2, 3}, static_cast<uint64_t>(row), static_cast<uint64_t>(j)), kItems));
  auto overRows = [&](int64_t grain, auto body) {
    return best([&] {
      parallelFor(pool, kRows, grain, [&](int64_t begin, int64_t end, int64_t chunk) {
        for (int64_t row = begin; row < end; ++row)
          body(row, index.data() + row * kDrawn, dots + row * kDrawn, queries + row * kDim, chunk);
      });
    });
  };
  double read = overRows(kGrain, [&](int64_t row, const int32_t *drawn, float *, const float *, int64_t) {
    readRows(items, ld, drawn, sums + row * k::kLanes);
  });
  double dot = overRows(kGrain, [&](int64_t, const int32_t *drawn, float *d, const float *q, int64_t) {
    k::gatherDot<kDim>(items, ld, drawn, kDrawn, q, d);
  });
  double both = overRows(kGrain, [&](int64_t row, const int32_t *drawn, float *d, const float *q, int64_t) {
    k::gatherDot<kDim>(items, ld, drawn, kDrawn, q, d);
    k::gatherSum<kDim>(items, ld, drawn, d, kDrawn, sums + row * kDim);
  });
  double scatter = overRows((kRows + kCopies - 1) / kCopies, [&](int64_t, const int32_t *drawn, float *d, const float *q, int64_t chunk) {
    k::scatterAddOuter<kDim>(copies + chunk * kItems * ld, ld, drawn, d, kDrawn, q);
  });
  double each = 1e9 / static_cast<double>(kRows * kDrawn);
  std::printf("| %ld | %d | %.2f (%.2f) | %.2f (%.2f) | %.2f (%.2f) | %.2f (%.2f) | %.2f |\n", static_cast<long>(ld), threads, read * 1e3, read * each,
              dot * 1e3, dot * each, both * 1e3, both * each, scatter * 1e3, scatter * each, (both + scatter) * 1e3);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  std::printf("%ld rows, %ld drawn each, of %ld items of %d floats; ms (ns per drawn row)\n"
              "| floats between items | threads | read | dots | dots and sums | add to | dots, sums and add |\n|---|---|---|---|---|---|---|\n",
              static_cast<long>(kRows), static_cast<long>(kDrawn), static_cast<long>(kItems), kDim);
  for (int threads : bench::threadCounts(argc, argv))
    for (int64_t ld : {50, 64, 150})
      run(ld, threads);
}
