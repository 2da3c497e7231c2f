// Time buckets of the attention kernels: the table against the host's definition, and times in any
// order and at any distance against the reference.

#include "attention_testing.h"

#include "genrec_rt/kernels/cpu/time_buckets.h"

#include <utility>

namespace of_times {
namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

/// buckets[i] is that of ticks[i], by the table and, below 2^31 ticks, by its short cells as well.
__global__ void lookUp(int64_t ticksPerSecond, const float *biases, int count, const int64_t *ticks,
                       int numbers, int *buckets, int *byCells, float *biasOfTicks) {
  __shared__ TimeTable table;
  table.fill(ticksPerSecond, biases, count, 2, static_cast<int>(threadIdx.x), kThreads);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < numbers; i += kThreads) {
    buckets[i] = byCells[i] = table.bucket(ticks[i]);
    biasOfTicks[i] = table.bias[buckets[i]];
    if (ticks[i] < INT32_MAX) {
      const int cell = table.cellOfBucket(static_cast<int>(ticks[i]));
      byCells[i] = table.bucketAt[cell];
      biasOfTicks[i] = table.biasAt[cell];
    }
  }
}

void checkTable(int64_t ticksPerSecond, int count) {
  SCOPED_TRACE(std::to_string(ticksPerSecond) + " ticks, " + std::to_string(count) + " buckets");
  constexpr int64_t kMost = int64_t(1) << 52; // what the definition says in double precision
  auto bucketOf = [&](int64_t t) {
    const int64_t seconds = std::max<int64_t>(1, t / ticksPerSecond);
    return std::min<int64_t>(count - 1, genrec::rt::kernels::timeBucketOfSeconds(seconds));
  };
  std::vector<int64_t> ticks = {1, 2, 3, INT32_MAX - 1, INT32_MAX, int64_t(1) << 31};
  for (int64_t t = 1; t < kMost; t += t / 64 + 1)
    ticks.push_back(t);
  // Where a bucket begins, and one before and behind.
  for (int64_t from = 1; bucketOf(from) < bucketOf(kMost);) {
    int64_t low = from, high = kMost;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (bucketOf(middle) > bucketOf(from) ? high : low) = middle;
    }
    ticks.insert(ticks.end(), {high - 1, high, high + 1});
    from = high;
  }
  // Longer ones, up to the longest, where rounding to double precision leaves the bucket.
  for (int64_t t = kMost; t < kLongestTicks / 65 * 64; t += t / 64)
    if (bucketOf(t - t / 4096) == bucketOf(t + t / 4096))
      ticks.push_back(t);
  ticks.push_back(kLongestTicks);
  std::vector<float> biases;
  for (int b = 0; b < count; ++b)
    biases.push_back(static_cast<float>(b));
  DeviceArray<int64_t> from(ticks);
  DeviceArray<float> values(biases), got(std::vector<float>(ticks.size()));
  DeviceArray<int> buckets(std::vector<int>(ticks.size())), byCells(std::vector<int>(ticks.size()));
  const LaunchShape shape{dim3(1), dim3(kThreads)};
  GENREC_CUDA_LAUNCH(testStream(), shape, lookUp, ticksPerSecond, values.data(), count, from.data(),
                     static_cast<int>(ticks.size()), buckets.data(), byCells.data(), got.data());
  const std::vector<int> &all = buckets.read(), &shorter = byCells.read();
  const std::vector<float> &biasOf = got.read();
  for (size_t i = 0; i < ticks.size(); ++i) {
    ASSERT_EQ(all[i], bucketOf(ticks[i])) << ticks[i] << " ticks";
    ASSERT_EQ(shorter[i], bucketOf(ticks[i])) << ticks[i] << " ticks";
    ASSERT_EQ(biasOf[i], 2 * static_cast<float>(bucketOf(ticks[i]))) << ticks[i] << " ticks";
  }
}

TEST(AttentionTimes, TableHasTheDefinitionsBuckets) {
  for (int64_t ticksPerSecond : {1, 7, 1000, 1000000})
    for (int count : {1, 2, 40, kMostTimeBuckets})
      checkTable(ticksPerSecond, count);
}

/// Times of the rows, one for each: of all lists, one behind the other.
using Times = int64_t (*)(Random &random, int64_t row, int64_t before);

constexpr std::pair<const char *, Times> kTimes[] = {
    {"equal", [](Random &, int64_t, int64_t) -> int64_t { return 7; }},
    {"a second apart", [](Random &, int64_t row, int64_t) { return row; }},
    {"descending", [](Random &, int64_t row, int64_t) { return -1000 * row; }},
    {"hours apart",
     [](Random &random, int64_t, int64_t before) -> int64_t {
       return before + static_cast<int64_t>(random.below(50000));
     }},
    {"in any order",
     [](Random &random, int64_t, int64_t) -> int64_t {
       return static_cast<int64_t>(random.below(2000000000));
     }},
    // Tiles whose times no 32 bits hold.
    {"years apart",
     [](Random &random, int64_t, int64_t before) -> int64_t {
       return before + static_cast<int64_t>(random.below(1000000000)) * (random.below(4) == 0);
     }},
    {"in any order, far apart",
     [](Random &random, int64_t, int64_t) -> int64_t {
       return static_cast<int64_t>(random.word() >> 2 >> random.below(40));
     }},
    // From a lane's second row of a tile on.
    {"the last ones far from the others",
     [](Random &random, int64_t row, int64_t before) -> int64_t {
       return (row == 72 ? int64_t(1) << 61 : before) + static_cast<int64_t>(random.below(3000));
     }},
};

template <class C, AttentionLevel Level>
void checkTimes(const std::vector<int64_t> &lengths, int64_t ticksPerSecond, uint64_t seed) {
  for (const auto &[name, next] : kTimes) {
    SCOPED_TRACE(name);
    checkAttention<C, Level>(1, lengths, seed, [&](ReferenceInputs &in) {
      Random random(seed);
      int64_t before = 978300000;
      for (size_t row = 0; row < in.timestamps.size(); ++row)
        before = in.timestamps[row] = next(random, static_cast<int64_t>(row), before);
      in.ticksPerSecond = ticksPerSecond;
      in.timeBias.resize(kMostTimeBuckets);
      for (size_t b = 0; b < in.timeBias.size(); ++b)
        in.timeBias[b] = static_cast<double>(b * 37 % 64) / 32 - 1;
    });
  }
}

template <unsigned Features, ScoreKind Score, int Size>
using Config = AttentionConfig<Bf16, Size, Size, Score, Features + kTimeBias>;

TEST(AttentionTimes, AnyTimesHopper) {
  checkTimes<Config<kCausal + kPositionBias, ScoreKind::silu, 128>, AttentionLevel::hopper>({150},
                                                                                            1, 1);
  checkTimes<Config<0, ScoreKind::softmax, 64>, AttentionLevel::hopper>({0, 70, 131}, 1000, 2);
}
TEST(AttentionTimes, AnyTimesMma) {
  checkTimes<Config<kCausal, ScoreKind::silu, 128>, AttentionLevel::mma>({100}, 1, 3);
  checkTimes<Config<kMasked, ScoreKind::silu, 32>, AttentionLevel::mma>({0, 70}, 1000, 4);
}

/// Gradients of a tile that are added pair by pair are integers, which no NaN is: those of a key,
/// whose values and gradients are finite. A lane has rows of both halves of a warp's keys.
TEST(AttentionTimes, NaNOfAPairIsThatOfTheBiases) {
  constexpr const auto &kCalls = kCallsOf<Config<0, ScoreKind::silu, 32>, AttentionLevel::mma>;
  for (const size_t key : {7, 12}) {
    Random random(5);
    ReferenceInputs in = inputsOf(kCalls, 1, {40}, random);
    for (int64_t &time : in.timestamps)
      time = static_cast<int64_t>(random.below(2000000000));
    in.ticksPerSecond = 1;
    in.timeBias.resize(kMostTimeBuckets);
    in.k[key * 32] = NAN;
    DeviceRun<Bf16> got(kCalls, 1, in, 0, 40);
    for (float each : got.dTimeBias.memory.read())
      EXPECT_TRUE(std::isnan(each) || each == 7.5f) << each; // the latter behind the last bucket
  }
}

} // namespace
} // namespace of_times
