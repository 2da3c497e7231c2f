// Jagged attention, forward and backward, on lists of lengths like those of
// MovieLens-1M: how many useful operations per second (pairs that the mask
// keeps only), and what each option costs.
//
//   attention [<threads>]

#include "timing.h"

#include "genrec_rt/kernels/cpu/attention.h"

#include <cmath>

namespace {

namespace k = genrec::rt::kernels;
using bench::Floats;
using k::ScoreKind;

constexpr int64_t kLists = 128, kLongest = 200, kPositionBuckets = 421, kTimeBuckets = 128;

/// Lengths from 5 to 200, many short and a peak at the limit.
struct Lists {
  std::vector<int64_t> offsets{0}, times;
  std::vector<uint64_t> identity;
  double pairs = 0;
  Lists() {
    for (uint64_t list = 0; list < kLists; ++list) {
      double u = k::uniformFromBits(k::philoxWord({1, 2, 3}, list, 0));
      int64_t n = std::min<int64_t>(kLongest, 5 + static_cast<int64_t>(-110 * std::log(1 - u)));
      offsets.push_back(offsets.back() + n);
      pairs += static_cast<double>(n * (n + 1)) / 2;
      int64_t now = 978300000;
      for (int64_t i = 0; i < n; ++i) {
        uint32_t word = k::philoxWord({1, 2, 4}, list, static_cast<uint64_t>(i));
        now += word % 20 ? word % 60 : word % 1000000;
        times.push_back(now);
        identity.push_back(word);
      }
    }
  }
};

template <class C> void run(const char *name, const Lists &lists, int threads) {
  bench::Pool pool(threads);
  const int64_t rows = lists.offsets.back();
  const int64_t width = C::Heads * 2 * (C::Qk + C::V);
  Floats uvqk(rows * width, 1), gradients(rows * width);
  Floats out(rows * C::Heads * C::V), dOut(rows * C::Heads * C::V, 2), logSumExp(rows * C::Heads);
  Floats position(kPositionBuckets, 3), time(kTimeBuckets, 4), dPosition(kPositionBuckets), dTime(kTimeBuckets);
  k::AttentionArgs a;
  a.parents = kLists, a.offsets = lists.offsets.data(), a.maxLength = kLongest;
  a.v = uvqk + C::Heads * C::V, a.q = a.v + C::Heads * C::V, a.k = a.q + C::Heads * C::Qk;
  a.ldQ = a.ldK = a.ldV = width;
  a.out = out, a.ldOut = C::Heads * C::V, a.logSumExp = logSumExp;
  a.scale = C::Score == ScoreKind::silu ? 1.0f : 1 / std::sqrt(static_cast<float>(C::Qk));
  a.fixedLength = 211;
  a.positionBias = position, a.positionBuckets = kPositionBuckets;
  a.timeBias = time, a.timeBuckets = kTimeBuckets, a.timestamps = lists.times.data();
  a.identity = lists.identity.data(), a.random = {1, 2, 3}, a.dropProbability = 0.2;
  k::AttentionGradients g;
  g.dOut = dOut, g.ldDOut = a.ldOut;
  g.dV = gradients + C::Heads * C::V, g.dQ = g.dV + C::Heads * C::V, g.dK = g.dQ + C::Heads * C::Qk;
  g.ldDQ = g.ldDK = g.ldDV = width;
  g.dPositionBias = dPosition, g.dTimeBias = dTime;
  Floats scratch(std::max(k::attentionForwardScratchBytes<C>(kLongest, threads),
                          k::attentionBackwardScratchBytes<C>(kLongest, threads, kPositionBuckets, kTimeBuckets)) / 4);
  double forward = bench::best([&] { k::attentionForward<C>(pool, a, scratch); });
  double backward = bench::best([&] { k::attentionBackward<C>(pool, a, g, scratch); });
  double work = 2e-9 * lists.pairs * C::Heads;
  std::printf("| %-38s | %d | %5.2f | %4.0f | %5.2f | %4.0f |\n", name, threads, forward * 1e3, work * (C::Qk + C::V) / forward,
              backward * 1e3, work * (3 * C::Qk + 2 * C::V) / backward);
  std::fflush(stdout);
}

template <int Heads, int D, ScoreKind Kind, bool Position, bool Time, bool Dropout>
using Causal = k::AttentionConfig<Heads, D, D, Kind, true, false, Position, Time, Dropout>;

} // namespace

int main(int argc, char **argv) {
  Lists lists;
  std::printf("%ld lists, %ld rows, %.0f causal pairs\n"
              "| causal attention | threads | forward, ms | GFLOP/s | backward, ms | GFLOP/s |\n|---|---|---|---|---|---|\n",
              static_cast<long>(kLists), static_cast<long>(lists.offsets.back()), lists.pairs);
  for (int threads : bench::threadCounts(argc, argv)) {
    run<Causal<1, 50, ScoreKind::silu, false, false, false>>("1 x 50, SiLU", lists, threads);
    run<Causal<1, 50, ScoreKind::silu, true, false, false>>("1 x 50, SiLU, position bias", lists, threads);
    run<Causal<1, 50, ScoreKind::silu, true, true, false>>("1 x 50, SiLU, position and time bias", lists, threads);
    run<Causal<1, 50, ScoreKind::softmax, false, false, false>>("1 x 50, softmax", lists, threads);
    run<Causal<1, 50, ScoreKind::softmax, false, false, true>>("1 x 50, softmax, dropout", lists, threads);
    run<Causal<1, 64, ScoreKind::silu, true, false, false>>("1 x 64, SiLU, position bias", lists, threads);
    run<Causal<4, 32, ScoreKind::softmax, false, false, false>>("4 x 32, softmax", lists, threads);
    run<Causal<1, 128, ScoreKind::softmax, false, false, false>>("1 x 128, softmax", lists, threads);
  }
}
