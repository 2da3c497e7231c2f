//===- exact_sum.cu - Sums of floats without rounding ---------------------===//

#include "genrec_rt/kernels/cuda/exact_sum.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kDigitBits = 32, kMantissaBits = 24, kLowestExponent = -149;
/// Those of the highest float, and one that takes carries.
constexpr int kDigits = 10;
/// Behind the digits: how many infinities of each sign and NaNs there were.
enum Special { positive = kDigits, negative, nan, kWords };
static_assert(kWords * 8 <= kExactSumScratchBytes);

/// Digits are added up without carries: 2^31 floats of a batch fit into a limb.
__global__ void __launch_bounds__(kThreads)
    addLimbs(const genrec_domain *rows, const float *values, const float *counts, Word *limbs) {
  __shared__ Word ofBlock[kWords];
  if (threadIdx.x < kWords)
    ofBlock[threadIdx.x] = 0;
  __syncthreads();
  const int64_t count = rows->count;
  for (int64_t row = threadInGrid(); row < count; row += threadsInGrid()) {
    if (counts && counts[row] == 0)
      continue;
    const uint32_t bits = __float_as_uint(values[row]), exponent = bits >> 23 & 0xFF;
    const uint32_t fraction = bits & 0x7FFFFF;
    const bool isNegative = bits >> 31;
    if (exponent == 0xFF) {
      atomicAdd(ofBlock + (fraction ? nan : isNegative ? negative : positive), Word(1));
      continue;
    }
    const uint32_t mantissa = fraction | (exponent ? 0x800000u : 0),
                   shift = exponent ? exponent - 1 : 0;
    const uint64_t placed = static_cast<uint64_t>(mantissa) << shift % kDigitBits;
    for (int i = 0; i < 2; ++i) {
      const Word digit = placed >> i * kDigitBits & 0xFFFFFFFF;
      if (digit)
        atomicAdd(ofBlock + shift / kDigitBits + i, isNegative ? Word(0) - digit : digit);
    }
  }
  __syncthreads();
  if (threadIdx.x < kWords && ofBlock[threadIdx.x])
    atomicAdd(limbs + threadIdx.x, ofBlock[threadIdx.x]);
}

/// Makes every limb but the last a digit.
__device__ void carry(int64_t (&limbs)[kDigits]) {
  for (int digit = 0; digit + 1 < kDigits; ++digit) {
    limbs[digit + 1] += limbs[digit] >> kDigitBits;
    limbs[digit] &= 0xFFFFFFFF;
  }
}

__device__ uint32_t bitAt(const int64_t (&limbs)[kDigits], int bit) {
  const int digit = min(bit / kDigitBits, kDigits - 1);
  return static_cast<uint32_t>(limbs[digit] >> (bit - digit * kDigitBits) & 1);
}

/// The nearest float of a sum that is not negative, ties to even.
__device__ float nearest(const int64_t (&limbs)[kDigits]) {
  int top = 0;
  for (int digit = kDigits - 1; digit >= 0 && top == 0; --digit)
    if (limbs[digit])
      top = digit * kDigitBits + 64 - __clzll(limbs[digit]);
  const int cut = max(0, top - kMantissaBits);
  uint32_t mantissa = 0;
  for (int bit = top - 1; bit >= cut; --bit)
    mantissa = mantissa * 2 + bitAt(limbs, bit);
  bool isMore = false;
  for (int bit = 0; bit + 1 < cut && !isMore; ++bit)
    isMore = bitAt(limbs, bit);
  if (cut > 0 && bitAt(limbs, cut - 1) && (isMore || mantissa % 2))
    ++mantissa;
  return ldexpf(static_cast<float>(mantissa), cut + kLowestExponent);
}

/// Limbs of several ranks, one behind another, are added to the first.
__global__ void joinLimbs(Word *limbs, int32_t ranks) {
  constexpr int kDistance = kExactSumScratchBytes / sizeof(Word);
  for (int32_t other = 1; other < ranks; ++other)
    limbs[threadIdx.x] += limbs[other * kDistance + threadIdx.x];
}

__global__ void roundLimbs(const int64_t *from, float *sum) {
  if (from[nan] || (from[positive] && from[negative])) {
    *sum = __uint_as_float(0x7FC00000u);
    return;
  }
  if (from[positive] || from[negative]) {
    *sum = from[positive] ? __uint_as_float(0x7F800000u) : __uint_as_float(0xFF800000u);
    return;
  }
  int64_t limbs[kDigits];
  for (int digit = 0; digit < kDigits; ++digit)
    limbs[digit] = from[digit];
  carry(limbs);
  const bool isNegative = limbs[kDigits - 1] < 0;
  if (isNegative) {
    for (int digit = 0; digit < kDigits; ++digit)
      limbs[digit] = -limbs[digit];
    carry(limbs);
  }
  const float magnitude = nearest(limbs);
  *sum = isNegative ? -magnitude : magnitude;
}

} // namespace

void addLimbsExactly(const genrec_domain *rows, int64_t capacity, const float *values,
                     const float *counts, void *limbs, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(limbs, 0, kExactSumScratchBytes, stream));
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity, kThreads, 512), addLimbs, rows, values,
                     counts, static_cast<Word *>(limbs));
}

void roundExactly(void *limbs, int32_t ranks, float *sum, cudaStream_t stream) {
  if (ranks > 1)
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, kWords}), joinLimbs, static_cast<Word *>(limbs),
                       ranks);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), roundLimbs, static_cast<const int64_t *>(limbs),
                     sum);
}

void addExactly(const genrec_domain *rows, int64_t capacity, const float *values, float *sum,
                void *scratch, cudaStream_t stream) {
  addLimbsExactly(rows, capacity, values, nullptr, scratch, stream);
  roundExactly(scratch, 1, sum, stream);
}

} // namespace genrec::rt::cuda
