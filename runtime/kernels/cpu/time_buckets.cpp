//===- time_buckets.cpp - The table behind the time buckets ---------------===//

#include "genrec_rt/kernels/cpu/time_buckets.h"

#include <cmath>

namespace genrec::rt::kernels {

namespace {

constexpr double kBucketWidth = 0.301;
/// Buckets that a number of seconds below 2^63 can fall into.
constexpr int64_t kMostBuckets = 146;

/// The least number of seconds in bucket `bucket` or a later one.
int64_t firstSecondOf(int64_t bucket) {
  double guess = std::exp(kBucketWidth * static_cast<double>(bucket));
  if (guess >= 9.2e18)
    return INT64_MAX;
  int64_t seconds = static_cast<int64_t>(guess) + 1;
  while (seconds < INT64_MAX && timeBucketOfSeconds(seconds) < bucket)
    ++seconds;
  while (seconds > 1 && timeBucketOfSeconds(seconds - 1) >= bucket)
    --seconds;
  return seconds;
}

int64_t scaled(int64_t seconds, int64_t ticks) {
  int64_t product;
  return __builtin_mul_overflow(seconds, ticks, &product) ? INT64_MAX : product;
}

} // namespace

int64_t timeBucketOfSeconds(int64_t seconds) {
  double value = std::log(static_cast<double>(seconds)) / kBucketWidth;
  return static_cast<int64_t>(std::floor(value));
}

void fillTimeBuckets(int64_t buckets, int64_t ticksPerSecond,
                     TimeBucketTable *table) {
  // Computed once: the numbers of seconds at which a bucket begins.
  static const struct Seconds {
    int64_t first[kMostBuckets];
    Seconds() {
      for (int64_t b = 0; b < kMostBuckets; ++b)
        first[b] = firstSecondOf(b);
    }
  } seconds;

  int64_t bucket = 0;
  auto next = [&](int64_t b) {
    return b + 1 < buckets && b + 1 < kMostBuckets
               ? scaled(seconds.first[b + 1], ticksPerSecond)
               : INT64_MAX;
  };
  for (int cell = 0; cell < 256; ++cell) {
    // Cells begin at (1 + quarter / 4) * 2^exponent.
    double begin = std::ldexp(1.0 + 0.25 * (cell % 4), cell / 4);
    double end = std::ldexp(1.0 + 0.25 * (cell % 4 + 1), cell / 4);
    while (next(bucket) != INT64_MAX &&
           static_cast<double>(next(bucket)) <= begin)
      ++bucket;
    int64_t threshold = next(bucket);
    bool inside = threshold != INT64_MAX && static_cast<double>(threshold) < end;
    int64_t after = bucket;
    while (inside && next(after) == threshold)
      ++after;
    table->below[cell] = bucket;
    table->threshold[cell] = inside ? threshold : INT64_MAX;
    table->step[cell] = after - bucket;
  }
}

} // namespace genrec::rt::kernels
