//===- machine.h - What a machine can do at best ----------------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_COMMON_MACHINE_H
#define GENREC_BENCHMARKS_COMMON_MACHINE_H

#include "clock.h"

#include "genrec_rt/buffer.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/parallel.h"

#include <atomic>
#include <cstdint>

namespace bench {

class Random {
public:
  explicit Random(uint64_t seed = 42) : state(seed) {}
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(genrec::rt::splitMix64(++state) % static_cast<uint64_t>(bound));
  }

private:
  uint64_t state;
};

/// Seconds to read one line of 64 bytes, picked at random among `bytes`, with many
/// reads under way: the least of several runs.
inline double secondsPerRandomLine(genrec_rt_pool *pool, int threads, int64_t bytes) {
  constexpr int64_t kPicks = 1 << 21, kAhead = 24;
  const int64_t lines = bytes / 64;
  genrec::rt::GrowBuffer<int64_t> memory;
  genrec::rt::GrowBuffer<uint32_t> picked;
  int64_t *values = memory.ensure(lines * 8);
  std::fill(values, values + lines * 8, 1);
  uint32_t *picks = picked.ensure(kPicks + kAhead);
  Random random;
  for (int64_t i = 0; i < kPicks + kAhead; ++i)
    picks[i] = static_cast<uint32_t>(random.below(lines));
  std::atomic<int64_t> sink{0};
  double least = 1e9;
  for (int run = 0; run < 5; ++run)
    least = std::min(least, secondsOf(threads, [&] {
                       genrec::rt::parallelFor(
                           pool, kPicks, 1 << 14, [&](int64_t begin, int64_t end, int64_t) {
                             int64_t sum = 0;
                             for (int64_t i = begin; i < end; ++i) {
                               __builtin_prefetch(values + int64_t(picks[i + kAhead]) * 8);
                               sum += values[int64_t(picks[i]) * 8];
                             }
                             sink += sum;
                           });
                     }));
  return least / kPicks;
}

} // namespace bench

#endif // GENREC_BENCHMARKS_COMMON_MACHINE_H
