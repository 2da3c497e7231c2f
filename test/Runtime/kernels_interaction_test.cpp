// Dot products of all pairs against naive loops in double.

#include "genrec_rt/kernels/cpu/interaction.h"
#include "kernels_testing.h"

#include <gtest/gtest.h>

namespace genrec::rt::kernels {
namespace {

using test::Random;

template <int64_t Count, int64_t Size, bool Self> void check(int64_t rows, uint64_t seed) {
  constexpr int64_t kPairs = Count * (Self ? Count + 1 : Count - 1) / 2;
  constexpr int64_t kWidth = Count * Size;
  SCOPED_TRACE(::testing::Message() << Count << " vectors of " << Size << ", " << rows << " rows");
  Random random(seed);
  const int64_t ld = kWidth + 3, ldGradient = kPairs + 2;
  // Exactly as long as needed: reading past the last row would leave them.
  std::vector<float> x(rows ? (rows - 1) * ld + kWidth : 0),
      gradient(rows ? (rows - 1) * ldGradient + kPairs : 0);
  for (auto *values : {&x, &gradient})
    for (float &value : *values)
      value = static_cast<float>(random.real());
  std::vector<float> products(rows * kPairs + 1, 7.5f), dx(rows * kWidth + 1, 7.5f);
  test::Pool pool(2);
  genrec_step step{};
  step.pool = pool;
  dotInteraction<Count, Size, Self>(&step, rows, x.data(), ld, products.data());
  dotInteractionGradient<Count, Size, Self>(&step, rows, x.data(), ld, gradient.data(), ldGradient,
                                            dx.data());
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<double> expected(kWidth, 0);
    int64_t pair = 0;
    for (int64_t i = 0; i < Count; ++i)
      for (int64_t j = 0; j < i + Self; ++j, ++pair) {
        double dot = 0, g = gradient[row * ldGradient + pair];
        for (int64_t e = 0; e < Size; ++e) {
          double a = x[row * ld + i * Size + e], b = x[row * ld + j * Size + e];
          dot += a * b;
          expected[i * Size + e] += g * b;
          expected[j * Size + e] += g * a;
        }
        ASSERT_NEAR(products[row * kPairs + pair], dot, 1e-6 * Size) << row << ", " << pair;
      }
    for (int64_t i = 0; i < kWidth; ++i)
      ASSERT_NEAR(dx[row * kWidth + i], expected[i], 1e-6 * Count) << row << ", " << i;
  }
  EXPECT_EQ(products.back(), 7.5f);
  EXPECT_EQ(dx.back(), 7.5f);
}

KERNEL_TEST(KernelsInteraction, AgreesWithNaiveLoops) {
  check<2, 1, false>(5, 1);
  check<1, 7, true>(3, 2);
  check<3, 15, false>(64, 3);
  check<4, 16, true>(65, 4);
  check<5, 17, false>(200, 5);
  check<27, 16, false>(130, 6);
  check<6, 33, true>(1, 7);
  check<3, 8, false>(0, 8);
  check<13, 16, false>(3, 9); // blocks of two heights
  check<34, 10, true>(3, 10);
  check<40, 20, false>(2, 11);
}

} // namespace
} // namespace genrec::rt::kernels
