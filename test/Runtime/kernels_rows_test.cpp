// Products with gathered rows against sums in double precision.

#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/gathered_rows.h"

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;

template <int D, class Index> void checkRows(int64_t n, int64_t gap) {
  Random random(static_cast<uint64_t>(D * 1000 + n));
  const int64_t tableRows = 37, ld = D + gap;
  // Exactly as long as needed: reading past a row's end would leave it.
  std::vector<float> table = random.reals((tableRows - 1) * ld + D);
  std::vector<float> q = random.reals(D), coefficients = random.reals(n);
  std::vector<Index> index;
  std::vector<float *> rows;
  for (int64_t j = 0; j < n; ++j) {
    index.push_back(static_cast<Index>(random.below(tableRows)));
    rows.push_back(table.data() + index.back() * ld);
  }

  std::vector<float> dots(static_cast<size_t>(n)), dotsToo(static_cast<size_t>(n));
  k::gatherDot<D>(table.data(), ld, index.data(), n, q.data(), dots.data());
  k::gatherDot<D>(rows.data(), n, q.data(), dotsToo.data());
  EXPECT_EQ(dots, dotsToo);
  for (int64_t j = 0; j < n; ++j) {
    double exact = 0;
    for (int c = 0; c < D; ++c)
      exact += static_cast<double>(rows[static_cast<size_t>(j)][c]) * q[static_cast<size_t>(c)];
    ASSERT_NEAR(dots[static_cast<size_t>(j)], exact, 1e-7 * (D + 4)) << j;
  }

  std::vector<float> sums(D, NAN), sumsToo(D, NAN);
  k::gatherSum<D>(table.data(), ld, index.data(), coefficients.data(), n, sums.data());
  k::gatherSum<D>(rows.data(), coefficients.data(), n, sumsToo.data());
  EXPECT_EQ(sums, sumsToo);
  for (size_t c = 0; c < D; ++c) {
    double exact = 0;
    for (size_t j = 0; j < static_cast<size_t>(n); ++j)
      exact += static_cast<double>(coefficients[j]) * rows[j][c];
    ASSERT_NEAR(sums[c], exact, 1e-7 * static_cast<double>(n + 4)) << c;
  }

  std::vector<float> before = table, byIndex = table;
  k::scatterAddOuter<D>(byIndex.data(), ld, index.data(), coefficients.data(), n, q.data());
  k::scatterAddOuter<D>(rows.data(), coefficients.data(), n, q.data());
  EXPECT_EQ(byIndex, table);
  for (int64_t row = 0; row < tableRows; ++row)
    for (int64_t c = 0; c < (row + 1 < tableRows ? ld : D); ++c) {
      size_t at = static_cast<size_t>(row * ld + c);
      double exact = before[at];
      for (size_t j = 0; j < static_cast<size_t>(n) && c < D; ++j)
        if (index[j] == row)
          exact += static_cast<double>(coefficients[j]) * q[static_cast<size_t>(c)];
      ASSERT_NEAR(table[at], exact, c < D ? 3e-6 : 0) << row << ", " << c;
    }
}

template <int D> void checkWidth() {
  for (int64_t n : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 129})
    for (int64_t gap : {0, 14}) {
      checkRows<D, int32_t>(n, gap);
      checkRows<D, int64_t>(n, gap);
    }
}

KERNEL_TEST(KernelsRows, Widths) {
  checkWidth<1>();
  checkWidth<7>();
  checkWidth<8>();
  checkWidth<16>();
  checkWidth<50>();
  checkWidth<64>();
  checkWidth<129>();
}

} // namespace
