// Ranks and top-k of queries over a catalogue: how near selecting
// while scoring comes to the rate of the products alone.
//
//   rank [<threads>]

#include "timing.h"

#include "genrec_rt/kernels/cpu/rank.h"

namespace {

namespace k = genrec::rt::kernels;
using bench::Floats;

constexpr int64_t kQueries = 2048, kSeen = 165;

void run(int64_t items, int64_t dim, int threads) {
  bench::Pool pool(threads);
  Floats queries(kQueries * dim, 1), rows(items * dim, 2);
  std::vector<int64_t> offsets, excluded, targets, ranks(kQueries);
  for (int64_t query = 0; query <= kQueries; ++query)
    offsets.push_back(query * kSeen);
  auto draw = [&](uint64_t row, uint64_t element) {
    return static_cast<int64_t>(k::drawIndex(k::philoxWord({1, 2, 3}, row, element), static_cast<uint32_t>(items)));
  };
  for (int64_t i = 0; i < kQueries * kSeen; ++i)
    excluded.push_back(draw(0, static_cast<uint64_t>(i)));
  for (int64_t query = 0; query < kQueries; ++query)
    targets.push_back(draw(1, static_cast<uint64_t>(query)));
  k::RankArgs args;
  args.queries = queries, args.ldQueries = dim, args.queryCount = kQueries;
  args.items = rows, args.ldItems = dim, args.itemCount = items, args.dim = dim;
  args.excludedOffsets = offsets.data(), args.excluded = excluded.data();
  std::printf("| %ld x %ld | %d |", static_cast<long>(items), static_cast<long>(dim), threads);
  const double work = 2e-9 * static_cast<double>(kQueries * items * dim);
  for (int64_t top : {0, 10, 200}) {
    Floats scratch(k::rankScratchBytes(dim, static_cast<int64_t>(excluded.size()), top, threads) / 4);
    std::vector<int64_t> indices(static_cast<size_t>(kQueries * top));
    std::vector<float> scores(indices.size());
    double seconds = bench::best([&] {
      if (top == 0)
        k::rankOf(pool, args, targets.data(), ranks.data(), scratch);
      else
        k::topK(pool, args, top, indices.data(), scores.data(), scratch);
    });
    std::printf(" %.2f ms, %.0f |", seconds * 1e3, work / seconds);
  }
  std::printf("\n");
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  std::printf("%ld queries, %ld excluded items each; time and GFLOP/s of the scores\n"
              "| items x dim | threads | ranks | top 10 | top 200 |\n|---|---|---|---|---|\n",
              static_cast<long>(kQueries), static_cast<long>(kSeen));
  for (int threads : bench::threadCounts(argc, argv))
    for (auto [items, dim] : {std::pair<int64_t, int64_t>{3706, 50}, {3706, 64}, {100000, 64}})
      run(items, dim, threads);
}
