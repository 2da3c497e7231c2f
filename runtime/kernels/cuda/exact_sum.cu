//===- exact_sum.cu - Sums of floats without rounding ---------------------===//

#include "genrec_rt/kernels/cuda/exact_sum.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

constexpr int kDigitBits = 32, kMantissaBits = 24, kLowestExponent = -149;
/// Those of the highest float, and one that takes carries.
constexpr int kDigits = 10;
/// Behind the digits: how many infinities of each sign and NaNs there were.
enum Special { positive = kDigits, negative, nan, kWords };
constexpr int kSumWords = kExactSumBytes / sizeof(Word);
static_assert(kWords <= kSumWords);

/// What a launch does for each of some sums.
template <class T> struct ExactGroup {
  T of[kMostExactSums];
};

/// Row y of the grid adds up sum y. Digits are added up without carries: 2^31 floats of a batch fit
/// into a limb.
__global__ void __launch_bounds__(kThreads)
    addLimbs(__grid_constant__ const ExactGroup<ExactTerms> terms, Word *all) {
  const auto &[rows, capacity, values, counts] = terms.of[blockIdx.y];
  Word *limbs = all + blockIdx.y * kSumWords;
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

__device__ float roundedSum(const int64_t (&words)[kWords]) {
  if (words[nan] || (words[positive] && words[negative]))
    return __uint_as_float(0x7FC00000u);
  if (words[positive] || words[negative])
    return words[positive] ? __uint_as_float(0x7F800000u) : __uint_as_float(0xFF800000u);
  int64_t limbs[kDigits];
  for (int digit = 0; digit < kDigits; ++digit)
    limbs[digit] = words[digit];
  carry(limbs);
  const bool isNegative = limbs[kDigits - 1] < 0;
  if (isNegative) {
    for (int digit = 0; digit < kDigits; ++digit)
      limbs[digit] = -limbs[digit];
    carry(limbs);
  }
  const float magnitude = nearest(limbs);
  return isNegative ? -magnitude : magnitude;
}

/// A thread adds the limbs of all ranks of a sum, and rounds it.
__global__ void __launch_bounds__(kMostExactSums)
    roundLimbs(__grid_constant__ const ExactGroup<ExactLimbs> group, int32_t count) {
  const auto own = static_cast<int32_t>(threadIdx.x);
  if (own >= count)
    return;
  const ExactLimbs &of = group.of[own];
  int64_t words[kWords] = {};
  for (int32_t rank = 0; rank < of.ranks; ++rank) {
    const auto *limbs =
        reinterpret_cast<const int64_t *>(static_cast<const char *>(of.limbs) + rank * of.distance);
    for (int word = 0; word < kWords; ++word)
      words[word] += limbs[word];
  }
  *of.sum = roundedSum(words);
}

/// Calls body(group, first, count) for groups of `all`.
template <class T, class Body> void inGroups(std::span<const T> all, const Body &body) {
  for (size_t first = 0; first < all.size(); first += kMostExactSums) {
    ExactGroup<T> group{};
    const size_t count = std::min<size_t>(all.size() - first, kMostExactSums);
    std::ranges::copy(all.subspan(first, count), group.of);
    body(group, static_cast<int64_t>(first), static_cast<int32_t>(count));
  }
}

} // namespace

void addExactly(std::span<const ExactTerms> terms, void *limbs, cudaStream_t stream) {
  if (terms.empty())
    return;
  GENREC_CUDA_CHECK(cudaMemsetAsync(limbs, 0, terms.size() * kExactSumBytes, stream));
  inGroups(terms, [&](const ExactGroup<ExactTerms> &group, int64_t first, int32_t count) {
    int64_t most = 0;
    for (const ExactTerms &of : group.of)
      most = std::max(most, of.capacity);
    LaunchShape shape = shapeOfThreads(most, kThreads, 512);
    shape.grid.y = static_cast<unsigned>(count);
    GENREC_CUDA_LAUNCH(stream, shape, addLimbs, group,
                       static_cast<Word *>(limbs) + first * kSumWords);
  });
}

void roundExactly(std::span<const ExactLimbs> limbs, cudaStream_t stream) {
  inGroups(limbs, [&](const ExactGroup<ExactLimbs> &group, int64_t, int32_t count) {
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, kMostExactSums}), roundLimbs, group, count);
  });
}

} // namespace genrec::rt::cuda
