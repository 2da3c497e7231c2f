//===- time_buckets.h - Logarithmic buckets of time differences on the device -===//
//
// bucket(dt) = min(T - 1, floor(ln(max(1, s)) / 0.301)) with s = dt / ticks per
// second, rounded down, as on the host (kernels/cpu/time_buckets.h). A bucket is
// guessed with an approximate logarithm and settled by the exact places where
// buckets begin, so that no result depends on how good the guess is.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_TIME_BUCKETS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_TIME_BUCKETS_H

#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

/// Buckets that a number of seconds below 2^63 can fall into.
constexpr int kMostTimeBuckets = 146;

/// The least number of seconds in a bucket or a later one. (Not in a namespace without a name:
/// nvcc's stubs cannot tell it from another one of the file that includes this.)
static __constant__ int64_t kFirstSecond[kMostTimeBuckets] = {
    1,
    2,
    2,
    3,
    4,
    5,
    7,
    9,
    12,
    16,
    21,
    28,
    38,
    51,
    68,
    92,
    124,
    167,
    226,
    305,
    412,
    557,
    752,
    1016,
    1372,
    1854,
    2505,
    3385,
    4574,
    6180,
    8350,
    11283,
    15245,
    20600,
    27834,
    37610,
    50818,
    68666,
    92782,
    125367,
    169397,
    228891,
    309280,
    417902,
    564672,
    762990,
    1030960,
    1393042,
    1882291,
    2543369,
    3436624,
    4643598,
    6274473,
    8478127,
    11455724,
    15479081,
    20915478,
    28261189,
    38186783,
    51598337,
    69720155,
    94206525,
    127292737,
    171999135,
    232406837,
    314030289,
    424320660,
    573346040,
    774710524,
    1046796097,
    1414440665,
    1911205440,
    2582438644,
    3489415219,
    4714930440,
    6370858056,
    8608362918,
    11631700390,
    15716862225,
    21236771058,
    28695323438,
    38773389087,
    52390965538,
    70791162047,
    95653679456,
    129248145233,
    174641301215,
    235976957620,
    318854269524,
    430838867570,
    582153502558,
    786611250865,
    1062876470327,
    1436168615607,
    1940564449431,
    2622108811928,
    3543017921206,
    4787358912370,
    6468724083690,
    8740600409714,
    11810380924256,
    15958297031977,
    21563000024645,
    29136127064885,
    39369007066311,
    53195770115075,
    71878621509799,
    97123064840915,
    131233592491847,
    177324056098576,
    239601921079807,
    323752354013490,
    437457205087951,
    591096262037947,
    798694791013878,
    1079203862655707,
    1458230340644293,
    1970374458392736,
    2662388374508177,
    3597444042437669,
    4860899995802034,
    6568093482609822,
    8874869269797366,
    11991806262278891,
    16203440643505230,
    21894240362561062,
    29583702103771238,
    39973774639893333,
    54012937709959404,
    72982785997608233,
    98615022211437624,
    133249539228073673,
    180048022160609745,
    243282569468860016,
    328725680499693217,
    444177210294627424,
    600176395848397377,
    810963952640968128,
    1095782068459071168,
    1480630967191749249,
    2000642394239962496,
    2703286692174004992,
    3652706231320924417,
    4935570781654962689,
    6668989345994283521,
    9011200702924931585,
};

/// Longer differences of times count as this one. Buckets that begin behind it are never reached,
/// as on the host.
constexpr int64_t kLongestTicks = INT64_MAX - 1;

/// How long before `now` something was, at least a tick.
__device__ inline int64_t ticksBefore(int64_t now, int64_t then) {
  if (now <= then)
    return 1;
  const uint64_t delta = static_cast<uint64_t>(now) - static_cast<uint64_t>(then);
  return delta > static_cast<uint64_t>(kLongestTicks) ? kLongestTicks : static_cast<int64_t>(delta);
}

/// Where buckets begin, in ticks: in the shared memory of a block.
struct TimeBuckets {
  int64_t firstTick[kMostTimeBuckets + 1]; ///< behind the last one stands one that nothing reaches

  /// Called by all threads of a block, followed by a barrier.
  __device__ void fill(int64_t ticksPerSecond, int thread, int threads) {
    for (int b = thread; b <= kMostTimeBuckets; b += threads) {
      const int64_t seconds = b < kMostTimeBuckets ? kFirstSecond[b] : INT64_MAX;
      const bool fits = b < kMostTimeBuckets && seconds <= INT64_MAX / ticksPerSecond;
      firstTick[b] = b == 0 ? 0 : fits ? seconds * ticksPerSecond : INT64_MAX;
    }
  }

  /// `count` is the number of buckets in use, `secondsPerTick` may be rounded.
  __device__ int bucket(int64_t ticks, int count, float secondsPerTick) const {
    const int last = (count < kMostTimeBuckets ? count : kMostTimeBuckets) - 1;
    float seconds = static_cast<float>(ticks) * secondsPerTick;
    int guess = seconds > 1.0f ? static_cast<int>(__logf(seconds) * (1.0f / 0.301f)) : 0;
    guess = guess < last ? guess : last;
    while (guess < last && firstTick[guess + 1] <= ticks)
      ++guess;
    while (guess > 0 && firstTick[guess] > ticks)
      --guess;
    return guess;
  }
};

/// Buckets without a logarithm, as on the host: a difference is in one of four cells per power of
/// two, which its exponent and two bits of its mantissa select. A cell is so narrow that the bucket
/// changes in one place of it at most, to that of the next cell's begin.
struct TimeTable {
  static constexpr int kCells = 4 * 63;      ///< of all differences
  static constexpr int kShortCells = 4 * 31; ///< of those below 2^31 ticks
  TimeBuckets begins;
  int bucketAt[kCells + 1];      ///< where a cell begins
  int change[kShortCells];       ///< from which difference on the next cell's bucket holds
  float biasAt[kShortCells + 1]; ///< of a cell's begin; biases are those of a call times a factor
  float bias[kMostTimeBuckets];

  /// Called by all threads of a block, followed by a barrier.
  __device__ void fill(int64_t ticksPerSecond, const float *timeBias, int count, float factor,
                       int thread, int threads) {
    begins.fill(ticksPerSecond, thread, threads);
    for (int b = thread; b < count; b += threads)
      bias[b] = factor * timeBias[b];
    __syncthreads(); // every bucket's begin and bias is there
    const float secondsPerTick = 1.0f / static_cast<float>(ticksPerSecond);
    for (int c = thread; c <= kCells; c += threads) {
      const int b = begins.bucket(beginOf(c), count, secondsPerTick);
      bucketAt[c] = b;
      if (c <= kShortCells)
        biasAt[c] = bias[b];
      if (c < kShortCells) {
        const int64_t next = begins.firstTick[b + 1];
        change[c] = next < INT32_MAX ? static_cast<int>(next) : INT32_MAX;
      }
    }
  }

  /// Bucket of a difference in [1, kLongestTicks].
  __device__ int bucket(int64_t ticks) const {
    const int cell = cellOf(__ll2float_rz(ticks)), b = bucketAt[cell];
    return ticks >= begins.firstTick[b + 1] ? bucketAt[cell + 1] : b;
  }
  /// Bucket of a difference in [1, INT32_MAX).
  __device__ int bucketOfShort(int ticks) const { return bucketAt[cellOfBucket(ticks)]; }
  /// The cell whose begin has the bucket of a difference in [1, INT32_MAX).
  __device__ int cellOfBucket(int ticks) const {
    const int cell = cellOf(__int2float_rz(ticks));
    return ticks >= change[cell] ? cell + 1 : cell;
  }

private:
  /// Of a difference rounded to zero, which leaves it in its cell.
  static __device__ int cellOf(float ticks) {
    return static_cast<int>(__float_as_uint(ticks) >> 21) - 4 * 127;
  }
  /// The first difference of a cell; of those without one, that of a cell before or behind.
  static __device__ int64_t beginOf(int cell) {
    const int exponent = cell / 4;
    const int64_t quarters = 4 + cell % 4;
    return exponent < 2    ? quarters >> (2 - exponent)
           : cell < kCells ? quarters << (exponent - 2)
                           : kLongestTicks;
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_TIME_BUCKETS_H
