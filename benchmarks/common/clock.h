//===- clock.h - The clock of the benchmarks --------------------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_COMMON_CLOCK_H
#define GENREC_BENCHMARKS_COMMON_CLOCK_H

#include <algorithm>
#include <ctime>
#include <vector>

namespace bench {

/// Seconds of a clock: with one thread the processor time of the calling one, its page
/// faults included, so that what else runs on the machine counts as little as can be;
/// with more, the time of day.
inline double seconds(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Seconds that `body` takes once.
template <class Body> double secondsOf(int threads, const Body &body) {
  double begin = seconds(threads);
  body();
  return seconds(threads) - begin;
}

inline double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace bench

#endif // GENREC_BENCHMARKS_COMMON_CLOCK_H
