//===- library_products_test.cpp - Products through cuBLASLt --------------===//
//
// On the host through the emulated library, which checks sizes, alignments and workspaces. Held to
// double precision, with rows behind the last one that are NaN.
//
//===----------------------------------------------------------------------===//

#include "domain_copies.h"
#include "streams_testing.h"

#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/library_products.h"

#include <cmath>
#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

/// `rows` rows of `ld` floats, and NaN in the rest of `capacity` rows.
std::vector<float> rowsOf(int64_t rows, int64_t capacity, int64_t ld, std::mt19937_64 &random) {
  std::vector<float> values = randomFloats(rows * ld, random);
  values.resize(static_cast<size_t>(capacity * ld), NAN);
  return values;
}

/// Values that begin so many floats behind where they are aligned.
std::vector<float> behind(std::vector<float> values, int64_t floats) {
  values.insert(values.begin(), static_cast<size_t>(floats), NAN);
  return values;
}

float at(const std::vector<float> &values, int64_t index) {
  return values[static_cast<size_t>(index)];
}

/// Memory as large as a call wants it, whose old bytes are NaN.
template <class Product> Copy<char> scratchFor(const Product &product) {
  return Copy<char>(
      std::vector<char>(static_cast<size_t>(fastestScratchBytes(product)) + 1, '\xff'));
}

/// What becomes of sums: a bias is added; a residual, an activation, both of them; and sums are
/// kept.
enum class After { bias, residual, activation, both, all };
constexpr int kAfters = 5;
bool hasResidual(After after) { return after != After::bias && after != After::activation; }
bool hasActivation(After after) { return after >= After::activation; }

/// A product and what belongs to it. `odd` sizes, leading dimensions and addresses are aligned to a
/// float alone.
struct Layer {
  int64_t rows, capacity, k, n;
  bool bf16, transposed;
  After after;
  std::unique_ptr<HostDomain> host;
  DeviceDomain domain;
  int64_t ldX, ldY;
  std::vector<float> x, w, bias, residual;
  Copy<float> xs, ws, biases, residuals, pre, y;

  Layer(int64_t rows, int64_t capacity, int64_t k, int64_t n, bool bf16, bool transposed,
        After after, std::mt19937_64 &random)
      : rows(rows), capacity(capacity), k(k), n(n), bf16(bf16), transposed(transposed),
        after(after), host(makeRoot(rows, random)), domain(*host, nullptr, capacity),
        ldX(k + k % 2), ldY(n + (n % 3 ? n % 3 : n % 4)),
        x(rowsOf(rows, capacity + 1, ldX, random)), w(randomFloats(k * n, random)),
        bias(randomFloats(n, random)), residual(rowsOf(rows, capacity, n, random)), xs(x),
        ws(behind(w, k % 3 == 1)), biases(behind(bias, k % 3)),
        residuals(behind(residual, n % 3 == 0)), pre(rowsOf(0, capacity, n, random)),
        y(rowsOf(0, capacity + 1, ldY, random)) {}

  LinearProduct product() {
    LinearProduct p;
    p.rows = domain.get(), p.capacity = capacity;
    p.k = k, p.n = n;
    p.x = xs.data() + k % 2, p.ldX = ldX;
    p.weight = ws.data() + (k % 3 == 1), p.transposed = transposed, p.bf16 = bf16;
    p.bias = biases.data() + k % 3;
    p.y = y.data() + n % 3, p.ldY = ldY;
    if (hasResidual(after))
      p.residual = residuals.data() + (n % 3 == 0), p.ldResidual = n;
    if (hasActivation(after))
      p.activation = Activation::silu;
    if (after == After::all)
      p.pre = pre.data(), p.ldPre = n;
    return p;
  }

  void expectRight() const {
    const std::vector<float> got = y.fetch(), before = pre.fetch();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < n; ++c) {
        double sum = at(bias, c), size = std::fabs(sum);
        for (int64_t i = 0; i < k; ++i) {
          const double term = double(factor(bf16, at(x, k % 2 + r * ldX + i))) *
                              factor(bf16, at(w, transposed ? c * k + i : i * n + c));
          sum += term, size += std::fabs(term);
        }
        const double bound = static_cast<double>(k + 1) * 0x1p-24 * size + 1e-12;
        if (after == After::all)
          ASSERT_NEAR(at(before, r * n + c), sum, bound) << "row " << r << " column " << c;
        if (hasActivation(after))
          sum = sum / (1 + std::exp(-sum));
        if (hasResidual(after))
          sum += at(residual, r * n + c);
        ASSERT_NEAR(at(got, n % 3 + r * ldY + c), sum, 2 * bound + 4e-7 * (1 + std::fabs(sum)))
            << "row " << r << " column " << c;
      }
  }
};

TEST(LibraryProducts, RowsTimesAWeight) {
  std::mt19937_64 random(1);
  for (int64_t rows : {0, 1, 65})
    for (auto [k, n] :
         {std::pair<int64_t, int64_t>(32, 32), {64, 40}, {33, 70}, {100, 37}, {32, 66}})
      for (int variant = 0; variant < 4 * kAfters; ++variant) {
        SCOPED_TRACE(testing::Message()
                     << rows << " rows, " << k << " by " << n << ", " << variant);
        Layer layer(rows, rows + 9, k, n, variant & 1, variant & 2, After(variant / 4), random);
        const LinearProduct product = layer.product();
        ASSERT_TRUE(libraryTakes(product));
        Copy<char> scratch = scratchFor(product);
        multiplyFastest(product, scratch.data(), testStream());
        layer.expectRight();
      }
}

/// `values` as factors that were rounded before: rows of `ld` elements, zeros behind the last one.
std::vector<Bf16> roundedBefore(const std::vector<float> &values, int64_t rows, int64_t capacity,
                                int64_t ld) {
  std::vector<Bf16> rounded(static_cast<size_t>(capacity * ld), Bf16{0});
  for (size_t i = 0; i < static_cast<size_t>(rows * ld); ++i)
    rounded[i] = bf16Factor(values[i]);
  return rounded;
}

TEST(LibraryProducts, OfRowsThatWereRoundedBefore) {
  std::mt19937_64 random(8);
  for (int64_t k : {40, 24}) // of the library, and tiles
    for (int variant = 0; variant < 4; ++variant) {
      SCOPED_TRACE(testing::Message() << k << ", " << variant);
      constexpr int64_t kRows = 65, kCapacity = 74;
      const After after = variant & 2 ? After::all : After::residual;
      Layer layer(kRows, kCapacity, k, 48, true, variant & 1, after, random);
      LinearProduct product = layer.product();
      Copy<char> scratch = scratchFor(product);
      multiplyFastest(product, scratch.data(), testStream());
      const std::vector<float> once = layer.y.fetch();
      Copy<Bf16> rounded(roundedBefore(layer.x, kRows, kCapacity, layer.ldX));
      product.x = nullptr, product.roundedX = rounded.data();
      EXPECT_EQ(libraryTakes(product), k == 40);
      Copy<char> less = scratchFor(product);
      multiplyFastest(product, less.data(), testStream());
      layer.expectRight();
      const std::vector<float> again = layer.y.fetch();
      for (int64_t i = 0; i < kRows * layer.ldY; ++i)
        if (i % layer.ldY < 48)
          ASSERT_EQ(at(again, i), at(once, i)) << i;
    }
}

TEST(LibraryProducts, SmallOnesAreTiles) {
  std::mt19937_64 random(2);
  for (auto [k, n, capacity] : {std::tuple<int64_t, int64_t, int64_t>(31, 64, 9), {64, 1, 9}})
    for (int after = 0; after < kAfters; ++after) {
      Layer layer(5, capacity, k, n, false, false, After(after), random);
      EXPECT_FALSE(libraryTakes(layer.product()));
      EXPECT_EQ(fastestScratchBytes(layer.product()), 0);
      multiplyFastest(layer.product(), nullptr, testStream());
      layer.expectRight();
    }
  Layer none(0, 0, 64, 64, true, false, After::bias, random);
  EXPECT_FALSE(libraryTakes(none.product()));
  multiplyFastest(none.product(), nullptr, testStream());
}

/// out = x^T y with `rows` rows of room for `capacity`, the rest NaN.
std::vector<float> contract(int64_t rows, int64_t capacity, int64_t k, int64_t n, bool bf16,
                            std::vector<float> x, std::vector<float> y) {
  std::mt19937_64 random(3);
  auto host = makeRoot(rows, random);
  DeviceDomain domain(*host, nullptr, capacity);
  x.resize(static_cast<size_t>(capacity * (k + 1)), NAN);
  y.resize(static_cast<size_t>(capacity * n), NAN);
  Copy<float> xs(x), ys(y), out(std::vector<float>(static_cast<size_t>(1 + k * n), NAN));
  const RowContraction contraction{domain.get(),   capacity, k, n, xs.data(), k + 1, ys.data(), n,
                                   out.data() + 1, bf16};
  Copy<char> scratch = scratchFor(contraction);
  contractFastest(contraction, scratch.data(), testStream());
  std::vector<float> got = out.fetch();
  got.erase(got.begin());
  return got;
}

/// Sums over rows by double precision, in room for few more and for many more rows.
void expectContraction(int64_t rows, int64_t k, int64_t n, bool bf16, std::mt19937_64 &random) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << k << " by " << n << ", " << bf16);
  const std::vector<float> x = randomFloats(rows * (k + 1), random),
                           y = randomFloats(rows * n, random);
  const std::vector<float> got = contract(rows, rows + 7, k, n, bf16, x, y);
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const double term =
            double(factor(bf16, at(x, r * (k + 1) + i))) * factor(bf16, at(y, r * n + j));
        sum += term, size += std::fabs(term);
      }
      ASSERT_NEAR(at(got, i * n + j), sum, static_cast<double>(rows) * 0x1p-24 * size);
    }
  // Room for more rows, as a larger batch before left it, changes nothing.
  EXPECT_EQ(contract(rows, 2 * rows + 3000, k, n, bf16, x, y), got);
}

TEST(LibraryProducts, ContractionsOverRows) {
  std::mt19937_64 random(4);
  for (int64_t rows : {0, 1, 1023, 1025, 2600})
    for (bool bf16 : {false, true}) {
      expectContraction(rows, 32, 40, bf16, random);
      expectContraction(rows, 33, 37, bf16, random);
      expectContraction(rows, 31, 64, bf16, random); // tiles
    }
}

TEST(LibraryProducts, ContractionsOfFewRows) {
  std::mt19937_64 random(5);
  for (bool bf16 : {false, true})
    expectContraction(5, 32, 40, bf16, random);
}

/// Either side, or both, of the library and of tiles: the bits of sums that round both sides.
TEST(LibraryProducts, ContractionsOfRoundedRows) {
  std::mt19937_64 random(9);
  for (auto [rows, capacity, k, n] : {std::tuple<int64_t, int64_t, int64_t, int64_t>(1, 8, 32, 40),
                                      {1025, 1025, 32, 40},  // a chunk and a row
                                      {2600, 2607, 40, 32},  // no multiple of what copies fill
                                      {1100, 1107, 32, 520}, // added onto, chunk by chunk
                                      {300, 307, 24, 40}}) {
    auto host = makeRoot(rows, random);
    DeviceDomain domain(*host, nullptr, capacity);
    const std::vector<float> x = rowsOf(rows, capacity, k, random),
                             y = rowsOf(rows, capacity, n, random);
    Copy<float> xs(x), ys(y);
    Copy<Bf16> roundedX(roundedBefore(x, rows, capacity, k)),
        roundedY(roundedBefore(y, rows, capacity, n));
    std::vector<float> once;
    for (int which = 0; which < 4; ++which) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << k << " by " << n << ", " << which);
      Copy<float> out(std::vector<float>(static_cast<size_t>(k * n), NAN));
      RowContraction c{domain.get(), capacity,     k, n, xs.data(), k, ys.data(), n,
                       out.data(),   /*bf16=*/true};
      if (which & 1)
        c.x = nullptr, c.roundedX = roundedX.data();
      if (which & 2)
        c.y = nullptr, c.roundedY = roundedY.data();
      Copy<char> scratch = scratchFor(c);
      contractFastest(c, scratch.data(), testStream());
      if (which == 0)
        once = out.fetch();
      else
        ASSERT_EQ(out.fetch(), once);
    }
  }
}

/// A result of many tiles has longer chunks.
TEST(LibraryProducts, ChunksFollowFromTheSizes) {
  auto rows = [](int64_t k, int64_t n, bool bf16) {
    return chunkRows(RowContraction{.k = k, .n = n, .bf16 = bf16});
  };
  EXPECT_EQ(rows(32, 40, true), 1024);
  EXPECT_EQ(rows(1024, 1024, true), 8192);
  EXPECT_EQ(rows(1024, 4096, true), 16384);
  EXPECT_EQ(rows(32, 40, false), 256);
  EXPECT_EQ(rows(448, 200, false), 512);
  EXPECT_EQ(rows(1024, 4096, false), 4096);
  EXPECT_EQ(rows(65536, 65536, true), 1024); // 256 MiB of copies
}

/// Of which the host has room for one at a time.
TEST(LibraryProducts, LargeChunksAreAddedOnto) {
  std::mt19937_64 random(6);
  for (int64_t rows : {5, 1100})
    expectContraction(rows, 32, 520, true, random);
  expectContraction(600, 32, 1100, false, random);
}

/// More chunks than copies and sums of them may take memory at once.
TEST(LibraryProducts, LongContractionsRunInGroups) {
  RowContraction contraction{.capacity = int64_t(1) << 20, .k = 512, .n = 512};
  EXPECT_LT(fastestScratchBytes(contraction), int64_t(300) << 20);
  contraction.k = 1024, contraction.n = 4096;
  EXPECT_LT(fastestScratchBytes(contraction), int64_t(300) << 20);
  contraction.bf16 = true;
  EXPECT_LT(fastestScratchBytes(contraction), int64_t(300) << 20);
  constexpr int64_t kRows = 3;
  std::mt19937_64 random(5);
  const std::vector<float> x = randomFloats(kRows * 33, random),
                           y = randomFloats(kRows * 32, random);
  EXPECT_EQ(contract(kRows, 40 * 1024, 32, 32, true, x, y),
            contract(kRows, kRows, 32, 32, true, x, y));
}

TEST(LibraryProducts, LaterGroupsHaveRowsOfTheirOwn) {
  constexpr int64_t kRows = 7900, kSize = 32; // a group has 7,680
  std::mt19937_64 random(6);
  const std::vector<float> x = randomFloats(kRows * (kSize + 1), random),
                           y = randomFloats(kRows * kSize, random);
  const std::vector<float> out = contract(kRows, kRows, kSize, kSize, false, x, y);
  for (int64_t i = 0; i < kSize; ++i) {
    double sum = 0;
    for (int64_t row = 0; row < kRows; ++row)
      sum += static_cast<double>(at(x, row * (kSize + 1) + i)) * at(y, row * kSize + i);
    ASSERT_NEAR(at(out, i * kSize + i), sum, 1e-3) << i;
  }
}

/// result = onto + left right, of `m` rows in room for nine more; a contraction over rows
/// (`overRows`) has `k` of them in as much room.
std::vector<float> multiplySized(int64_t m, int64_t k, int64_t n, bool overRows, bool onto,
                                 int64_t room, const std::vector<float> &left,
                                 const std::vector<float> &right,
                                 const std::vector<float> &before) {
  std::mt19937_64 random(3);
  const int64_t rows = overRows ? k : m;
  auto host = makeRoot(rows, random);
  DeviceDomain domain(*host, nullptr, rows + room);
  auto padded = [&](std::vector<float> values, int64_t width) {
    values.resize(values.size() + static_cast<size_t>(room * width), NAN);
    return values;
  };
  Copy<float> lefts(behind(padded(left, overRows ? m : k), 1)),
      rights(overRows ? padded(right, n) : right), result(overRows ? before : padded(before, n));
  SizedProduct p;
  const ProductSize known{rows + room, domain.get()};
  p.m = overRows ? ProductSize{m} : known, p.k = overRows ? known : ProductSize{k}, p.n = {n};
  p.left = lefts.data() + 1, p.ldLeft = overRows ? m : k, p.leftTransposed = overRows;
  p.right = rights.data(), p.ldRight = n;
  p.onto = onto ? result.data() : nullptr, p.ldOnto = n;
  p.result = result.data(), p.ldResult = n;
  EXPECT_TRUE(libraryTakes(p));
  Copy<char> scratch = scratchFor(p);
  multiplyFastest(p, scratch.data(), testStream());
  return result.fetch();
}

void expectSized(int64_t m, int64_t k, int64_t n, bool overRows, bool onto,
                 std::mt19937_64 &random) {
  SCOPED_TRACE(testing::Message() << m << " by " << k << " by " << n << ", " << onto);
  const std::vector<float> left = randomFloats(m * k, random), right = randomFloats(k * n, random),
                           before = randomFloats(m * n, random);
  const auto got = multiplySized(m, k, n, overRows, onto, 9, left, right, before);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = onto ? at(before, i * n + j) : 0, size = std::fabs(sum);
      for (int64_t s = 0; s < k; ++s) {
        const double term =
            double(at(left, overRows ? s * m + i : i * k + s)) * at(right, s * n + j);
        sum += term, size += std::fabs(term);
      }
      ASSERT_NEAR(at(got, i * n + j), sum, static_cast<double>(k + 1) * 0x1p-24 * size);
    }
  for (int64_t i = m * n; i < static_cast<int64_t>(got.size()); ++i)
    ASSERT_EQ(at(got, i), 0) << "behind the last row";
  // Room that a larger batch left changes nothing.
  auto wide = multiplySized(m, k, n, overRows, onto, k > 4096 ? 90 : 3000, left, right, before);
  wide.resize(got.size());
  EXPECT_EQ(wide, got);
}

TEST(LibraryProducts, OfSizesOnTheDevice) {
  std::mt19937_64 random(6);
  for (bool onto : {false, true}) {
    expectSized(5, 40, 70, false, onto, random);
    expectSized(0, 32, 32, false, onto, random);
    expectSized(70, 5, 33, true, onto, random);
    expectSized(33, 0, 32, true, onto, random);
  }
}

TEST(LibraryProducts, LongContractionsAreCutAlikeForAnyRoom) {
  std::mt19937_64 random(7);
  for (int64_t steps : {4097, 12288, 8200})
    expectSized(2, steps, 32, false, steps == 12288, random);
}

TEST(LibraryProducts, WhatTheDeviceAloneKnowsIsTiles) {
  Copy<float> some(std::vector<float>(1));
  Copy<genrec_domain> rows(std::vector<genrec_domain>(1));
  SizedProduct p{.m = {40}, .k = {40}, .n = {40}};
  p.left = p.right = some.data(), p.result = some.data();
  p.ldLeft = p.ldRight = p.ldResult = 40;
  EXPECT_TRUE(libraryTakes(p));
  p.n.rows = rows.data();
  EXPECT_FALSE(libraryTakes(p));
  p.n.rows = nullptr, p.k.rows = rows.data();
  EXPECT_FALSE(libraryTakes(p));
  p.leftTransposed = true;
  EXPECT_TRUE(libraryTakes(p));
  p.m = {40, rows.data()}, p.keepsRest = true;
  EXPECT_FALSE(libraryTakes(p));
}

TEST(LibraryProducts, EachDeviceHasAHandle) {
  simt::options() = {.devices = 2};
  std::mt19937_64 random(2);
  for (int device : {0, 1}) {
    GENREC_CUDA_CHECK(cudaSetDevice(device));
    const TestStream stream;
    Layer layer(5, 9, 32, 40, false, false, After::all, random);
    Copy<char> scratch = scratchFor(layer.product());
    multiplyFastest(layer.product(), scratch.data(), stream);
    GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
    layer.expectRight();
  }
  GENREC_CUDA_CHECK(cudaSetDevice(0));
  simt::options() = {};
}

class LibraryStreams : public Graphs {};
INSTANTIATE_TEST_SUITE_P(Seeds, LibraryStreams, testing::Range<uint64_t>(1, 5));

TEST_P(LibraryStreams, ACapturedProductRunsAgain) {
  std::mt19937_64 random(GetParam());
  for (bool bf16 : {false, true}) {
    Layer layer(20, 40, 64, 48, bf16, false, After::all, random);
    const LinearProduct product = layer.product();
    Copy<char> scratch = scratchFor(product);
    recapture([&] { multiplyFastest(product, scratch.data(), first); });
    cudaGraphExec_t captured = nullptr;
    GENREC_CUDA_CHECK(cudaGraphInstantiate(&captured, graph, 0));
    for (int run = 0; run < 2; ++run) {
      GENREC_CUDA_CHECK(cudaGraphLaunch(captured, first));
      GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
      layer.expectRight();
    }
    GENREC_CUDA_CHECK(cudaGraphExecDestroy(captured));
  }
}

/// What is in the stream before a product is there, what is behind it waits.
TEST_P(LibraryStreams, EverythingIsInTheStreamThatIsGiven) {
  std::mt19937_64 random(GetParam());
  for (bool bf16 : {false, true}) {
    Layer layer(20, 40, 64, 48, bf16, true, After::all, random);
    const LinearProduct product = layer.product();
    Copy<char> scratch = scratchFor(product);
    Copy<float> given(layer.x);
    const size_t bytes = layer.x.size() * 4;
    GENREC_CUDA_CHECK(cudaMemsetAsync(layer.xs.data(), 0, bytes, first));
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(layer.xs.data(), given.data(), bytes, cudaMemcpyDeviceToDevice, first));
    multiplyFastest(product, scratch.data(), first);
    GENREC_CUDA_CHECK(cudaMemsetAsync(layer.xs.data(), 0, bytes, first));
    GENREC_CUDA_CHECK(cudaStreamSynchronize(first));
    layer.expectRight();
  }
}

TEST_P(LibraryStreams, NeedScratchOfTheirOwn) {
  std::mt19937_64 random(GetParam());
  Layer one(5, 9, 33, 32, false, false, After::bias, random), // whose bias is not copied
      other(5, 9, 33, 32, false, false, After::bias, random);
  Copy<char> scratch = scratchFor(one.product());
  std::string said; // by the call itself, where the first one has run already
  said += accusation([&] {
    try {
      multiplyFastest(one.product(), scratch.data(), first);
      multiplyFastest(other.product(), scratch.data(), second);
    } catch (const Error &error) {
      said = error.what();
    }
  });
  EXPECT_THAT(said, testing::HasSubstr("race between operations: matmul"));
}

} // namespace
} // namespace genrec::rt::cuda::test
