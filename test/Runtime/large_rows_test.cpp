//===- large_rows_test.cpp - More rows than 31 bits count -----------------===//
//
// Memory that nobody touches costs nothing: arrays of tens of gigabytes are mapped, and a few
// rows at their far end are read and written.
//
//===----------------------------------------------------------------------===//

#include "../../runtime/embedding/distinct.h"
#include "../../runtime/embedding/segments.h"
#include "TinyModel.h"
#include "genrec_rt/kernels/cpu/gathered_rows.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <sys/mman.h>

namespace genrec::rt::test {
namespace {

constexpr int64_t kBeyond = int64_t(1) << 31; ///< the first row that an int does not count

/// An array of zeros, of which only touched pages take memory.
template <class T> class Sparse {
public:
  explicit Sparse(int64_t count) : bytes(static_cast<size_t>(count) * sizeof(T)) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() {
    if (isThere())
      munmap(memory, bytes);
  }
  bool isThere() const { return memory != MAP_FAILED; }
  T *data() { return static_cast<T *>(memory); }

private:
  size_t bytes;
  void *memory;
};

#define GENREC_REQUIRE_MEMORY(sparse)                                                              \
  if (!(sparse).isThere())                                                                         \
  GTEST_SKIP() << "this system gives no memory that is not backed"

constexpr int kFew = 4;

TEST(LargeRows, RowsPickedByIndexLieWhereTheyDo) {
  Sparse<float> table((kBeyond + 8) * kFew);
  GENREC_REQUIRE_MEMORY(table);
  const int64_t index[] = {kBeyond + 5, 3, kBeyond - 1, kBeyond};
  for (int64_t j = 0; j < 4; ++j)
    for (int64_t d = 0; d < kFew; ++d)
      table.data()[index[j] * kFew + d] = static_cast<float>(10 * j + d);
  const float coefficients[] = {1, 2, 3, 4};
  float sum[kFew] = {}, dots[4] = {};
  kernels::gatherSum<kFew>(table.data(), kFew, index, coefficients, 4, sum);
  for (int d = 0; d < kFew; ++d)
    EXPECT_EQ(sum[d], 2 * 10 + 3 * 20 + 4 * 30 + 10 * d);
  const float ones[] = {1, 1, 1, 1};
  kernels::gatherDot<kFew>(table.data(), kFew, index, 4, ones, dots);
  EXPECT_THAT(dots, testing::ElementsAre(6, 46, 86, 126));
  kernels::scatterAddOuter<kFew>(table.data(), kFew, index, coefficients, 4, ones);
  EXPECT_EQ(table.data()[index[0] * kFew], 1);
  EXPECT_EQ(table.data()[index[3] * kFew + 3], 30 + 3 + 4);
}

TEST(LargeRows, RowsOfAProductMayLieFarApart) {
  constexpr int64_t ld = int64_t(1) << 30; // floats: the third row begins beyond 2^31
  Sparse<float> x(4 * ld), y(4 * ld);
  GENREC_REQUIRE_MEMORY(x);
  GENREC_REQUIRE_MEMORY(y);
  float weight[kFew * 3];
  for (int i = 0; i < kFew * 3; ++i)
    weight[i] = static_cast<float>(i);
  for (int64_t row = 0; row < 4; ++row)
    x.data()[row * ld + row] = 1;
  std::vector<char> scratch(static_cast<size_t>(kernels::matmulScratchBytes<kFew, 3>()) + 64);
  kernels::matmul<kFew, 3>(nullptr, 4, x.data(), ld, weight, 3, y.data(), ld, kernels::Epilogue<>{},
                           scratch.data());
  for (int64_t row = 0; row < 4; ++row)
    for (int64_t column = 0; column < 3; ++column)
      EXPECT_EQ(y.data()[row * ld + column], weight[row * 3 + column]);
}

TEST(LargeRows, GradientsOfFarRowsAreAddedUp) {
  Sparse<float> gradients((kBeyond + 4) * kFew);
  GENREC_REQUIRE_MEMORY(gradients);
  alignas(64) float table[3][16] = {};
  float *const handles[] = {table[1], table[2], table[1], table[0]};
  const int64_t from[] = {kBeyond + 1, kBeyond - 1, 2, kBeyond + 2}; // the gradient of each
  for (int64_t i = 0; i < 4; ++i)
    gradients.data()[from[i] * kFew] = static_cast<float>(i + 1);
  float *const *lists[] = {handles};
  const float *parts[] = {gradients.data()};
  const int64_t counts[] = {4}, *parents[] = {from};
  float *rows[4] = {};
  std::vector<char> segments(static_cast<size_t>(segmentBytes(4)));
  int64_t count = buildSegments(
      nullptr, {1, counts, lists, parts, kFew, nullptr, parents, /*all=*/false}, table[0], rows,
      segments.data());
  ASSERT_EQ(count, 2); // the row of zeros is never touched
  EXPECT_EQ(rows[0], table[1]);
  EXPECT_EQ(rows[1], table[2]);
  float sums[2 * kFew] = {};
  sumSegments(nullptr, {1, nullptr, nullptr, parts, kFew, nullptr}, count, segments.data(), sums);
  EXPECT_EQ(sums[0], 1 + 3);
  EXPECT_EQ(sums[kFew], 2);
}

TEST(LargeRows, MoreRowsThanAreNumberedAreRefusedBeforeAnythingIsRead) {
  float *const *handles = nullptr;
  int64_t places[4] = {-1, -1, -1, -1};
  try {
    findDistinct(nullptr, kMostDistinctRows + 1, {std::array{1}, &handles, nullptr, places},
                 [] { return nullptr; });
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "a batch has 2,147,483,648 rows of a list whose lookups are "
                               "numbered, more than 2,147,483,647");
  }
  EXPECT_EQ(places[0], -1);
}

TEST(LargeRows, ACatalogueBeyondWhatIsDrawnIsRefused) {
  Session session(tinyModel(), {});
  Batch rows = tinyCatalogue(3);
  rows.domains[kTinyMovies].count = int64_t(UINT32_MAX) + 1;
  try {
    session.setCatalogue(kTinyMovies, std::move(rows));
    FAIL();
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "catalogue 'movies' has 4294967296 rows, more than 4294967295");
  }
}

} // namespace
} // namespace genrec::rt::test
