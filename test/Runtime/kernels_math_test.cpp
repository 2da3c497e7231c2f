// The functions of math.h against the C library in double precision, over a
// dense sample of all floats, and in vectors against the scalar ones.

#include "kernels_testing.h"

#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/kernels/shared/trigonometry.h"

#include <algorithm>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;
using k::VecF;

/// Without FMA a product is rounded on its own.
constexpr double kSlack =
#if defined(GENREC_HAS_FMA)
    0;
#else
    0.7;
#endif

float floatOf(uint64_t bits) {
  uint32_t word = static_cast<uint32_t>(bits);
  float x;
  __builtin_memcpy(&x, &word, 4);
  return x;
}

/// Every 1021st float, of which there are four million, NaNs among them.
template <class F, class G>
void checkUlps(F f, G exact, double bound, double low = -INFINITY,
               double high = INFINITY) {
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 1021) {
    float x = floatOf(bits);
    if (x < low || x > high)
      continue;
    ASSERT_LE(ulps(f(x), exact(static_cast<double>(x))), bound + kSlack)
        << "at " << x << ": " << f(x) << " against " << exact(x);
  }
  for (float x : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 0x1p-149f,
                  0x1.fffffep127f, 0x1p-126f, 88.72283f, 88.72284f, -103.97f,
                  -104.5f})
    if (!(x < low || x > high)) {
      ASSERT_LE(ulps(f(x), exact(static_cast<double>(x))), bound + kSlack)
          << "at " << x << ": " << f(x);
    }
}

template <class F, class G>
void checkAbsolute(F f, G exact, double bound) {
  for (double x = -120; x < 120; x += 0.00037) {
    float at = static_cast<float>(x);
    ASSERT_NEAR(f(at), exact(static_cast<double>(at)), bound) << "at " << at;
  }
  ASSERT_TRUE(std::isnan(f(NAN)));
}

double sigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double cdfOf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double densityOf(double x) {
  return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
}

KERNEL_TEST(KernelsMath, Exp) {
  checkUlps([](float x) { return k::exp(x); },
            [](double x) { return std::exp(x); }, 1.1);
}
KERNEL_TEST(KernelsMath, Log) {
  checkUlps([](float x) { return k::log(x); },
            [](double x) { return std::log(x); }, 0.9);
}
KERNEL_TEST(KernelsMath, Log1p) {
  checkUlps([](float x) { return k::log1p(x); },
            [](double x) { return std::log1p(x); }, 1.5);
}
KERNEL_TEST(KernelsMath, Expm1) {
  checkUlps([](float x) { return k::expm1(x); },
            [](double x) { return std::expm1(x); }, 1.5);
}
KERNEL_TEST(KernelsMath, Tanh) {
  checkUlps([](float x) { return k::tanh(x); },
            [](double x) { return std::tanh(x); }, 2.1);
}
// With or without FMA: no slack. Arguments of every size, up to the greatest float.
KERNEL_TEST(KernelsMath, SineAndCosine) {
  for (uint64_t bits = 0; bits < (uint64_t(1) << 32); bits += 2039) {
    float x = floatOf(bits);
    long double at = x;
    ASSERT_LE(ulps(k::sin(x), static_cast<double>(std::sin(at))), 0.501) << "sin " << x;
    ASSERT_LE(ulps(k::cos(x), static_cast<double>(std::cos(at))), 0.501) << "cos " << x;
  }
  // Those nearest to a multiple of pi/2, of their size and of all.
  for (float x : {0x1.921fb6p0f, 0x1.921fb4p0f, 0x1.921fb6p1f, 0x1.2d97c8p2f, 0x1.fe2e9p27f, 0x1.6ac5b2p34f,
                  0x1.f8bbcep-1f, 0x1.0p-149f, 0x1.fffffep-2f, 0x1.0p-1f, 0x1.fffffep127f}) {
    long double at = x;
    EXPECT_LE(ulps(k::sin(x), static_cast<double>(std::sin(at))), 0.501) << "sin " << x;
    EXPECT_LE(ulps(k::cos(x), static_cast<double>(std::cos(at))), 0.501) << "cos " << x;
  }
  EXPECT_TRUE(std::signbit(k::sin(-0.0f)));
  EXPECT_EQ(k::cos(-0.0f), 1.0f);
  for (float x : {INFINITY, -INFINITY, NAN}) {
    EXPECT_TRUE(std::isnan(k::sin(x))) << x;
    EXPECT_TRUE(std::isnan(k::cos(x))) << x;
  }
}

// A loop over them is vectorised, for another number of lanes in each build of this file.
KERNEL_TEST(KernelsMath, SineAndCosineHaveTheSameBitsOnEveryInstructionSet) {
  std::vector<float> x, sines, cosines;
  for (uint64_t bits = 0; bits < 0x7F800000u; bits += 4099)
    x.push_back(floatOf(bits));
  sines.resize(x.size());
  cosines.resize(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    sines[i] = k::sin(x[i]);
  for (size_t i = 0; i < x.size(); ++i)
    cosines[i] = k::cos(x[i]);
  uint64_t hash = 14695981039346656037ull; // FNV-1a of their words
  for (size_t i = 0; i < x.size(); ++i)
    for (float y : {sines[i], cosines[i]}) {
      uint32_t word;
      __builtin_memcpy(&word, &y, 4);
      hash = (hash ^ word) * 1099511628211ull;
    }
  EXPECT_EQ(hash, 0xDBDB26E847AC4DB7ull);
}

KERNEL_TEST(KernelsMath, Erf) {
  checkUlps([](float x) { return k::erf(x); },
            [](double x) { return std::erf(x); }, 1.2);
}
KERNEL_TEST(KernelsMath, SquareRoots) {
  checkUlps([](float x) { return k::sqrt(x); },
            [](double x) { return std::sqrt(x); }, 0.5);
  checkUlps([](float x) { return k::rsqrt(x); },
            [](double x) { return 1 / std::sqrt(x); }, 1.5);
}
KERNEL_TEST(KernelsMath, Softplus) {
  checkUlps([](float x) { return k::softplus(x); },
            [](double x) { return x > 700 ? x : std::log1p(std::exp(x)); }, 2.2);
}
KERNEL_TEST(KernelsMath, Sigmoid) {
  checkUlps([](float x) { return k::sigmoid(x); }, sigmoidOf, 2.7, -87);
  for (float x : {-87.1f, -100.0f, -1e30f, -INFINITY})
    EXPECT_EQ(k::sigmoid(x), 0.0f) << x;
}
KERNEL_TEST(KernelsMath, Silu) {
  checkUlps([](float x) { return k::silu(x); },
            [](double x) { return x * sigmoidOf(x); }, 3.5, -87);
  EXPECT_EQ(k::silu(-100.0f), 0.0f);
  EXPECT_TRUE(std::isnan(k::silu(-INFINITY)));
}
KERNEL_TEST(KernelsMath, Gelu) {
  for (double x = -20; x < 20; x += 0.00011) {
    float at = static_cast<float>(x);
    ASSERT_NEAR(k::gelu(at), at * cdfOf(at), 1.3e-7 * std::fabs(at)) << at;
  }
  EXPECT_EQ(k::gelu(100.0f), 100.0f);
  EXPECT_EQ(std::fabs(k::gelu(-100.0f)), 0.0f);
}
KERNEL_TEST(KernelsMath, Derivatives) {
  checkAbsolute([](float x) { return k::siluGrad(x); },
                [](double x) {
                  double s = sigmoidOf(x);
                  return s * (1 + x * (1 - s));
                },
                3e-7);
  checkAbsolute([](float x) { return k::geluGrad(x); },
                [](double x) { return cdfOf(x) + x * densityOf(x); }, 2e-7);
  checkAbsolute([](float x) { return k::sigmoidGrad(x); },
                [](double x) { return sigmoidOf(x) * sigmoidOf(-x); }, 3e-7);
  checkAbsolute([](float x) { return k::softplusGrad(x); }, sigmoidOf, 3e-7);
  checkUlps([](float x) { return k::tanhGrad(x); },
            [](double x) {
              double e = std::exp(-2 * std::fabs(x));
              return 4 * e / ((1 + e) * (1 + e));
            },
            5.0, -43, 43);
}

KERNEL_TEST(KernelsMath, VectorsEqualScalars) {
  auto check = [](const char *name, VecF (*vector)(VecF), float (*scalar)(float)) {
    Random random(7);
    for (int round = 0; round < 4000; ++round) {
      float x[k::kLanes], y[k::kLanes];
      for (float &value : x)
        value = round % 2 ? floatOf(random.word())
                          : static_cast<float>(20 * random.real());
      k::store(y, vector(k::load(x)));
      for (int lane = 0; lane < k::kLanes; ++lane) {
        float expected = scalar(x[lane]);
        ASSERT_TRUE(y[lane] == expected ||
                    (std::isnan(y[lane]) && std::isnan(expected)))
            << name << "(" << x[lane] << "): " << y[lane] << " and " << expected;
      }
    }
  };
#define CHECK_FUNCTION(f)                                                      \
  check(#f, [](VecF x) { return k::f(x); }, [](float x) { return k::f(x); })
  CHECK_FUNCTION(exp);
  CHECK_FUNCTION(log);
  CHECK_FUNCTION(log1p);
  CHECK_FUNCTION(expm1);
  CHECK_FUNCTION(tanh);
  CHECK_FUNCTION(erf);
  CHECK_FUNCTION(sigmoid);
  CHECK_FUNCTION(silu);
  CHECK_FUNCTION(softplus);
  CHECK_FUNCTION(gelu);
  CHECK_FUNCTION(sqrt);
  CHECK_FUNCTION(rsqrt);
  CHECK_FUNCTION(siluGrad);
  CHECK_FUNCTION(geluGrad);
  CHECK_FUNCTION(sigmoidGrad);
  CHECK_FUNCTION(tanhGrad);
#undef CHECK_FUNCTION
}

KERNEL_TEST(KernelsSimd, MaskedLoadsAndStoresTouchTheirLanesOnly) {
  for (int n = 0; n <= k::kLanes; ++n) {
    // The last lanes lie behind the end of the allocation, where a sanitizer
    // sees them.
    std::vector<float> from(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i)
      from[static_cast<size_t>(i)] = static_cast<float>(i + 1);
    float to[k::kLanes];
    k::store(to, k::loadTail(from.data(), n));
    for (int i = 0; i < k::kLanes; ++i)
      EXPECT_EQ(to[i], i < n ? i + 1 : 0);
    float kept[k::kLanes + 1];
    std::fill(kept, kept + k::kLanes + 1, -1.0f);
    k::storeTail(kept, k::splat(5), n);
    for (int i = 0; i <= k::kLanes; ++i)
      EXPECT_EQ(kept[i], i < n ? 5 : -1);
  }
}

KERNEL_TEST(KernelsSimd, ReductionsHaveTheStatedOrder) {
  Random random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<float> x = random.reals(k::kLanes * k::kLanes, 1e4);
    float half[k::kLanes];
    std::copy(x.begin(), x.begin() + k::kLanes, half);
    for (int n = k::kLanes / 2; n > 0; n /= 2)
      for (int i = 0; i < n; ++i)
        half[i] += half[i + n];
    EXPECT_EQ(k::sum(k::load(x.data())), half[0]);
    EXPECT_EQ(k::maxLane(k::load(x.data())),
              *std::max_element(x.begin(), x.begin() + k::kLanes));

    VecF rows[k::kLanes];
    for (int i = 0; i < k::kLanes; ++i)
      rows[i] = k::load(x.data() + i * k::kLanes);
    float sums[k::kLanes];
    k::store(sums, k::sumEach(rows));
    for (int i = 0; i < k::kLanes; ++i) {
      float tree[k::kLanes];
      k::store(tree, rows[i]);
      for (int n = 1; n < k::kLanes; n *= 2)
        for (int lane = 0; lane < k::kLanes; lane += 2 * n)
          tree[lane] += tree[lane + n];
      EXPECT_EQ(sums[i], tree[0]);
    }
  }
}

KERNEL_TEST(KernelsSimd, GatherAndMaskBits) {
  Random random(5);
  std::vector<float> base = random.reals(1000);
  int32_t index[k::kLanes];
  for (int32_t &i : index)
    i = static_cast<int32_t>(random.below(1000));
  float got[k::kLanes];
  k::store(got, k::gather(base.data(), k::loadI(index)));
  for (int i = 0; i < k::kLanes; ++i)
    EXPECT_EQ(got[i], base[static_cast<size_t>(index[i])]);
  for (int n = 0; n <= k::kLanes; ++n)
    EXPECT_EQ(k::maskBits(k::tailMask(n)), (1u << n) - 1);
}

} // namespace
