//===- arithmetic_test.cpp - Arithmetic by instructions that only devices have ----===//
//
// What is one instruction there, or two, has the bits of its definition. On the host, which has the
// definition itself, these say that the tests are right.
//
//===----------------------------------------------------------------------===//

#include "device_copy.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/remainder.h"
#include "genrec_rt/kernels/shared/math.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

/// Of every `step`-th number in [1, 2]: counts those whose reciprocal is not the rounded one.
__global__ void compareReciprocals(uint32_t step, int *wrong) {
  constexpr uint32_t kOne = 0x3F800000, kTwo = 0x40000000;
  for (auto i = static_cast<uint32_t>(threadInGrid()) * step; i <= kTwo - kOne;
       i += static_cast<uint32_t>(threadsInGrid()) * step) {
    const float x = __uint_as_float(kOne + i);
    if (kernels::detail::reciprocalOfOneToTwo(x) != __frcp_rn(x))
      atomicAdd(wrong, 1);
  }
}
/// Of all of them on a device; on the host, where the reciprocal is a division, of some.
TEST(Arithmetic, ReciprocalsFromOneToTwoAreRounded) {
#if defined(GENREC_SIMT)
  constexpr uint32_t kStep = 4099;
#else
  constexpr uint32_t kStep = 1;
#endif
  Copy<int> wrong{std::vector<int>{0}};
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{16, 256}), compareReciprocals, kStep, wrong.data());
  EXPECT_EQ(wrong.fetch()[0], 0);
}

__global__ void dropDenormals(const float *x, int64_t count, float *results, uint16_t *factors) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    results[i] = normalOrZero(x[i]);
    factors[i] = bf16Factor(x[i]).bits;
  }
}
/// Zeros of their sign for what is below the smallest normal number, all else as it is.
TEST(Arithmetic, FactorsHaveNoDenormals) {
  const float least = 0x1p-126f, below = std::nextafter(least, 0.0f), tiny = 0x1p-149f;
  const std::vector<float> x = {least, below, tiny, 0, 1.5f, 0x1p127f, INFINITY};
  std::vector<float> all = x;
  for (float each : x)
    all.push_back(-each);
  all.push_back(NAN);
  Copy<float> in(all), results{std::vector<float>(all.size(), -9)};
  Copy<uint16_t> factors{std::vector<uint16_t>(all.size(), 9)};
  GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{1, 32}), dropDenormals, in.data(),
                     static_cast<int64_t>(all.size()), results.data(), factors.data());
  const std::vector<float> r = results.fetch();
  const std::vector<uint16_t> f = factors.fetch();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const float expected = std::fabs(all[i]) < least ? std::copysign(0.0f, all[i]) : all[i];
    EXPECT_EQ(std::signbit(r[i]), std::signbit(expected)) << all[i];
    EXPECT_EQ(r[i], expected) << all[i];
    EXPECT_EQ(f[i], fromFloat<Bf16>(expected).bits) << all[i];
  }
  EXPECT_TRUE(std::isnan(r.back()));
  EXPECT_EQ(f.back() & 0x7F80, 0x7F80); // NaN, not infinity
  EXPECT_NE(f.back() & 0x7F, 0);
}

__global__ void takeRemainders(int64_t *values, int64_t count, int64_t divisor) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    values[i] = kernels::remainderBy(values[i], divisor);
}

TEST(Arithmetic, RemaindersByTheReciprocal) {
  std::mt19937_64 random(11);
  std::vector<int64_t> divisors = {1, 2, 3, 7, 1000, INT64_MAX, INT64_MAX - 1, int64_t(1) << 62};
  for (int bits = 1; bits < 63; ++bits)
    divisors.push_back(std::max<int64_t>(1, static_cast<int64_t>(random() >> (64 - bits))));
  for (int64_t divisor : divisors) {
    std::vector<int64_t> values = {0,           1,         -1,        divisor,      -divisor,
                                   divisor - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (int i = 0; i < 2000; ++i) {
      const auto any = static_cast<int64_t>(random() >> (random() % 64));
      values.insert(values.end(),
                    {any, -any, any / divisor * divisor, any / divisor * divisor - 1});
    }
    Copy<int64_t> onDevice(values);
    GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{1, kWarp}), takeRemainders, onDevice.data(),
                       static_cast<int64_t>(values.size()), divisor);
    const std::vector<int64_t> remainders = onDevice.fetch();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(remainders[i], values[i] % divisor) << values[i] << " % " << divisor;
  }
}

} // namespace
} // namespace genrec::rt::cuda::test
