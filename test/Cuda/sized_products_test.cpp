//===- sized_products_test.cpp - Products whose sizes are on the device ---===//

#include "domain_copies.h"
#include "note_copy.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/sized_products.h"

#include <gtest/gtest.h>

#include <cmath>

namespace genrec::rt::cuda::test {
namespace {

/// A size that the device knows, below its bound.
struct Size {
  int64_t most, first, rows;
  int64_t value() const { return std::clamp<int64_t>(rows - first, 0, most); }
};

struct Case {
  Size m, k, n;
  bool leftTransposed = false, rightTransposed = false, onto = false, keepsRest = false;
};

void expectProduct(const Case &c) {
  std::mt19937_64 random(static_cast<uint64_t>(c.m.most * 31 + c.k.most * 7 + c.n.most));
  const int64_t m = c.m.value(), k = c.k.value(), n = c.n.value();
  const int64_t ldLeft = (c.leftTransposed ? m : k) + 3, ldRight = (c.rightTransposed ? k : n) + 1;
  const int64_t ldResult = c.n.most + 2, ldOnto = c.n.most + 5;
  // Nothing lies beyond the rows that there are.
  const auto left = fractions((c.leftTransposed ? k : m) * ldLeft, random),
             right = fractions((c.rightTransposed ? n : k) * ldRight, random),
             before = fractions(c.m.most * ldResult, random),
             onto = fractions(c.m.most * ldOnto, random);
  auto at = [](const std::vector<float> &x, int64_t i) { return x[static_cast<size_t>(i)]; };
  std::vector<float> expected = before;
  const bool isCut = productScratchBytes({.m = {c.m.most}, .k = {c.k.most}, .n = {c.n.most}}) > 0;
  for (int64_t i = 0; i < c.m.most; ++i)
    for (int64_t j = 0; j < c.n.most; ++j) {
      float &to = expected[static_cast<size_t>(i * ldResult + j)];
      float sum = 0;
      for (int64_t s = 0; s < k && i < m && j < n; ++s)
        sum = std::fmaf(at(left, c.leftTransposed ? s * ldLeft + i : i * ldLeft + s),
                        at(right, c.rightTransposed ? j * ldRight + s : s * ldRight + j), sum);
      if (i < m && j < n)
        to = c.onto ? at(onto, i * ldOnto + j) + sum : sum;
      else if (i < m || !c.keepsRest)
        to = i < m ? -5.0f : 0.0f;
    }
  auto record = [&](const Size &size) {
    return Copy<genrec_domain>(std::vector{genrec_domain{size.rows, size.rows, nullptr, nullptr,
                                                         nullptr, nullptr, size.rows, nullptr}});
  };
  Copy<genrec_domain> mRows = record(c.m), kRows = record(c.k), nRows = record(c.n);
  Copy<float> leftThere(left), rightThere(right), ontoThere(onto), result(before);
  NoteCopy nan;
  SizedProduct p;
  p.m = {c.m.most, mRows.data(), c.m.first}, p.k = {c.k.most, kRows.data(), c.k.first};
  p.n = {c.n.most, nRows.data(), c.n.first};
  p.left = leftThere.data(), p.ldLeft = ldLeft, p.leftTransposed = c.leftTransposed;
  p.right = rightThere.data(), p.ldRight = ldRight, p.rightTransposed = c.rightTransposed;
  p.onto = c.onto ? ontoThere.data() : nullptr, p.ldOnto = ldOnto;
  p.result = result.data(), p.ldResult = ldResult;
  p.keepsRest = c.keepsRest, p.rest = -5, p.nanNote = nan.data();
  Scratch scratch(productScratchBytes(p));
  multiply(p, scratch.data(), testStream());
  const auto got = result.fetch();
  if (isCut)
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected[i], 1e-5 * static_cast<double>(k) / 100) << i;
  else
    EXPECT_EQ(got, expected);
  EXPECT_EQ(nan.row(), -1);
}

TEST(SizedProducts, SizesBelowBoundsAndTransposedSides) {
  const Size sizes[] = {{70, 0, 66}, {5, 0, 9}, {130, 4, 69}};
  for (bool leftTransposed : {false, true})
    for (bool rightTransposed : {false, true})
      expectProduct({sizes[0], sizes[1], sizes[2], leftTransposed, rightTransposed});
  expectProduct({{3, 0, 2}, {40, 0, 33}, {2, 0, 2}, false, true, /*onto=*/true});
  expectProduct({{66, 0, 20}, {17, 0, 17}, {3, 0, 3}, true, false, true, /*keepsRest=*/true});
}

TEST(SizedProducts, NoRowsNoStepsNoColumns) {
  expectProduct({{7, 0, 0}, {5, 0, 5}, {6, 0, 6}});
  expectProduct({{7, 0, 5}, {5, 0, 0}, {6, 0, 6}});
  expectProduct({{7, 0, 5}, {5, 0, 5}, {6, 9, 6}});
  expectProduct({{0, 0, 0}, {5, 0, 5}, {6, 0, 6}});
  expectProduct({{0, 0, 0}, {9000, 0, 8500}, {6, 0, 6}}); // cut into chunks without a byte
}

TEST(SizedProducts, LongContractionsAreCut) {
  expectProduct({{2, 0, 2}, {9000, 0, 8500}, {3, 0, 3}});
  // More elements than the emulator's four blocks have at once.
  expectProduct({{400, 0, 2}, {9000, 0, 100}, {3, 0, 3}, false, false, /*onto=*/true});
}

TEST(SizedProducts, NaNIsSeen) {
  Copy<float> left(std::vector<float>{1, __builtin_nanf("")}), right(std::vector<float>{2});
  Copy<float> result{std::vector<float>(2)};
  NoteCopy nan;
  multiply({.m = {2},
            .k = {1},
            .n = {1},
            .left = left.data(),
            .ldLeft = 1,
            .right = right.data(),
            .ldRight = 1,
            .result = result.data(),
            .ldResult = 1,
            .nanNote = nan.data()},
           nullptr, testStream());
  EXPECT_EQ(nan.row(), 0);
  EXPECT_EQ(result.fetch()[0], 2.0f);
}

TEST(SizedProducts, NaNOfALongContractionIsSeen) {
  constexpr int64_t kSteps = 4100; // in two chunks
  std::vector<float> values(kSteps, 1.0f);
  values.back() = __builtin_nanf("");
  Copy<float> left(values), right(std::vector<float>(kSteps, 1.0f)), result{std::vector<float>(1)};
  NoteCopy nan;
  SizedProduct p;
  p.m = {1}, p.k = {kSteps}, p.n = {1};
  p.left = left.data(), p.ldLeft = kSteps, p.right = right.data(), p.ldRight = 1;
  p.result = result.data(), p.ldResult = 1, p.nanNote = nan.data();
  ASSERT_GT(productScratchBytes(p), 0);
  Scratch scratch(productScratchBytes(p));
  multiply(p, scratch.data(), testStream());
  EXPECT_EQ(nan.row(), 0);
}

} // namespace
} // namespace genrec::rt::cuda::test
