//===- time_buckets.h - Logarithmic buckets of time differences -*- C++ -*-===//
//
// bucket(dt) = min(T - 1, floor(ln(max(1, s)) / 0.301)) with s = dt / ticks
// per second, rounded down: the relative time bias of the public HSTU code.
// No logarithm is taken per pair: within a quarter of an octave of dt there is at
// most one place where the bucket changes, so the exponent and two bits of
// the mantissa select that place and one comparison decides. Equal to the formula
// in double precision for every dt below 2^53 ticks.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_TIME_BUCKETS_H
#define GENREC_RT_KERNELS_CPU_TIME_BUCKETS_H

#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {

struct TimeBucketTable {
  int64_t threshold[256]; ///< of a cell: where the bucket changes
  int64_t below[256];     ///< the bucket of smaller differences in the cell
  int64_t step[256];      ///< what reaching the threshold adds
};

/// The bucket by its definition, for seconds >= 1; not clamped to T - 1.
int64_t timeBucketOfSeconds(int64_t seconds);

/// Fills the table for `buckets` buckets (T >= 1) and a positive number of
/// ticks per second.
void fillTimeBuckets(int64_t buckets, int64_t ticksPerSecond,
                     TimeBucketTable *table);

inline namespace GENREC_RT_ISA {

/// out[j] = bucket(now - times[j]); negative differences count as 0.
inline void timeBucketsOf(const TimeBucketTable &table, int64_t now,
                          const int64_t *times, int64_t count,
                          int32_t *__restrict__ out) {
  const int64_t *below = table.below, *threshold = table.threshold;
  const int64_t *step = table.step;
  for (int64_t j = 0; j < count; ++j) {
    int64_t delta = static_cast<int64_t>(static_cast<uint64_t>(now) -
                                         static_cast<uint64_t>(times[j]));
    // A difference that does not fit counts as the longest one.
    delta = now <= times[j] ? 1 : delta < 1 ? INT64_MAX : delta;
    double value = static_cast<double>(delta);
    int64_t bits;
    __builtin_memcpy(&bits, &value, 8);
    int64_t cell = (bits >> 50) - (1023 << 2);
    out[j] = static_cast<int32_t>(
        below[cell] + (step[cell] & -(delta >= threshold[cell])));
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_TIME_BUCKETS_H
