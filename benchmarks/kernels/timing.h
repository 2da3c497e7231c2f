//===- timing.h - What the kernel benchmarks share --------------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_KERNELS_TIMING_H
#define GENREC_BENCHMARKS_KERNELS_TIMING_H

#include "genrec_rt/kernels/shared/random.h"
#include "genrec_rt/parallel.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace bench {

/// Seconds of the shortest of the calls that fit into a third of a second.
template <class Body> double best(Body &&body) {
  using Clock = std::chrono::steady_clock;
  constexpr double kEnough = 0.33;
  constexpr int kFewest = 5;
  body();
  double shortest = 1e9, total = 0;
  for (int run = 0; run < kFewest || total < kEnough; ++run) {
    Clock::time_point begin = Clock::now();
    body();
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    shortest = std::min(shortest, seconds);
    total += seconds;
  }
  return shortest;
}

/// `count` floats, aligned to a cache line: zeros, or random in [-1, 1).
class Floats {
public:
  explicit Floats(int64_t count, uint64_t seed = 0)
      : memory(static_cast<float *>(std::aligned_alloc(64, static_cast<size_t>((count * 4 + 127) / 64 * 64))), &std::free) {
    for (int64_t i = 0; i < count; ++i)
      memory.get()[i] =
          seed ? 2 * genrec::rt::kernels::uniformFromBits(genrec::rt::kernels::philoxWord({seed, 0, 0}, 0, static_cast<uint64_t>(i))) - 1
               : 0.0f;
  }
  operator float *() const { return memory.get(); }

private:
  std::unique_ptr<float, decltype(&std::free)> memory;
};

/// Pools of one thread and of as many as there are cores (argument 1 overrides).
inline std::vector<int> threadCounts(int argc, char **argv) {
  int most = argc > 1 ? std::atoi(argv[1]) : static_cast<int>(std::thread::hardware_concurrency());
  return most > 1 ? std::vector<int>{1, most} : std::vector<int>{1};
}

struct Pool {
  explicit Pool(int threads) : pool(genrec_rt_pool_create(threads)) {}
  ~Pool() { genrec_rt_pool_destroy(pool); }
  Pool(const Pool &) = delete;
  operator genrec_rt_pool *() const { return pool; }
  genrec_rt_pool *pool;
};

} // namespace bench

#endif // GENREC_BENCHMARKS_KERNELS_TIMING_H
