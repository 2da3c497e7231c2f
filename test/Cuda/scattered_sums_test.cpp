//===- scattered_sums_test.cpp - Sums into rows that an index picks -------===//

#include "added_by_pieces.h"
#include "device_copy.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/scattered_sums.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"
#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace genrec::rt::kernels {
namespace {

using cuda::test::Copy;
using Floats = std::vector<float>;

/// What rows left, on the host: vectors as floats, also where rows leave them rounded.
struct Case {
  SumShape shape;
  int64_t leaving, rows;
  std::vector<uint32_t> keys;
  Floats coefficients, values;

  int64_t count() const { return leaving * shape.terms; }
  const float *vectorOf(int64_t term) const {
    const int64_t row = term / shape.terms, inRow = term % shape.terms;
    int64_t number = 0;
    while (number + 1 < shape.vectors && inRow >= shape.firstTerms[number + 1])
      ++number;
    return values.data() + row * valuesOfRow() + coefficientFloats(shape.terms, shape.isScaled) +
           number * shape.width;
  }
  int64_t valuesOfRow() const {
    return valueFloats(shape.terms, shape.vectors, shape.width, shape.isScaled);
  }
};

Case makeCase(const SumShape &shape, int64_t leaving, int64_t rows, uint32_t seed) {
  std::mt19937 draw(seed);
  auto number = [&] { return static_cast<float>(draw() % 20000) / 777 - 13; };
  Case made{shape, leaving, rows, {}, {}, {}};
  for (int64_t i = 0; i < made.count(); ++i) {
    // Half of the terms are for one row, some for none.
    const uint32_t any = draw() % static_cast<uint32_t>(rows);
    const uint32_t kind = draw() % 8;
    made.keys.push_back(kind == 0  ? ScatteredTerms::kNoRow
                        : kind < 5 ? static_cast<uint32_t>(rows / 2)
                                   : any);
  }
  for (int64_t i = 0; i < leaving * made.valuesOfRow(); ++i)
    made.values.push_back(number());
  for (int64_t i = 0; i < made.count(); ++i)
    made.coefficients.push_back(shape.isScaled
                                    ? made.values[static_cast<size_t>(
                                          i / shape.terms * made.valuesOfRow() + i % shape.terms)]
                                    : 1);
  return made;
}

/// Adds up from zero on.
Floats addedUp(const std::vector<Floats> &items, int64_t width) {
  Floats total(static_cast<size_t>(width));
  for (const Floats &item : items)
    for (size_t i = 0; i < total.size(); ++i)
      total[i] += item[i];
  return total;
}

Floats expectedOf(const Case &c) {
  Floats result(static_cast<size_t>(c.rows * c.shape.stride));
  const auto width = static_cast<size_t>(c.shape.width);
  for (int64_t row = 0; row < c.rows; ++row) {
    std::vector<Floats> items;
    for (int64_t term = 0; term < c.count(); ++term)
      if (c.keys[static_cast<size_t>(term)] == static_cast<uint32_t>(row)) {
        const float *vector = c.vectorOf(term);
        Floats &item = items.emplace_back(vector, vector + width);
        for (float &value : item)
          value *= c.coefficients[static_cast<size_t>(term)];
      }
    const Floats sum = cuda::test::addedByPieces(
        items, [&](const std::vector<Floats> &some) { return addedUp(some, c.shape.width); });
    std::copy(sum.begin(), sum.end(), result.begin() + row * c.shape.stride);
  }
  return result;
}

/// What rows leave, as it lies on the device.
std::vector<uint32_t> valuesLeft(const Case &c) {
  std::vector<uint32_t> words;
  const auto scales = coefficientFloats(c.shape.terms, c.shape.isScaled);
  for (size_t i = 0; i < c.values.size(); ++i) {
    const bool isScale = static_cast<int64_t>(i) % c.valuesOfRow() < scales;
    uint32_t bits;
    std::memcpy(&bits, &c.values[i], 4);
    if (isScale || !c.shape.isRounded) {
      words.push_back(bits);
      continue;
    }
    const uint32_t low = narrowed(c.values[i]).bits, high = narrowed(c.values[++i]).bits;
    words.push_back(low | high << 16);
  }
  return words;
}

/// The result begins `shift` floats behind where memory does.
Floats foundOf(const Case &c, size_t shift = 0) {
  const int64_t words = scatteredWords(c.leaving, c.shape.terms, c.shape.vectors, c.shape.width,
                                       c.shape.isScaled, c.shape.isRounded);
  const std::vector<uint32_t> values = valuesLeft(c);
  cuda::DeviceArray<float> memory("terms"); // without values
  Copy<float> to{Floats(static_cast<size_t>(c.rows * c.shape.stride) + shift, 5.0f)};
  ScatteredSum sum{
      c.shape,
      scatteredTerms(memory.ensure(words + 1, cuda::test::testStream()), c.leaving, c.shape.terms),
      c.leaving, to.data() + shift, c.rows};
  clearTerms(cuda::test::testStream(), sum);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  // Rows behind those that are there leave no keys.
  auto copy = [](void *to, const void *from, size_t words) {
    GENREC_CUDA_CHECK(cudaMemcpy(to, from, words * 4, cudaMemcpyHostToDevice));
  };
  copy(sum.terms.keys, c.keys.data(), c.keys.size());
  copy(sum.terms.values, values.data(), values.size());
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  cuda::DeviceArray<char> scratch("scratch"); // without values
  addTerms(cuda::test::testStream(), sum,
           scratch.ensure(scatteredScratchBytes(sum), cuda::test::testStream()));
  const Floats all = to.fetch();
  return {all.begin() + static_cast<ptrdiff_t>(shift), all.end()};
}

bool hasSameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

SumShape plain(int32_t width, int32_t stride) { return {1, 1, width, stride, 0, false, {0}}; }

TEST(ScatteredSums, AreThoseOfTheRowsInTheirOrder) {
  for (int64_t leaving : {0, 1, 37, 300, 1500})
    for (int64_t rows : {1, 32, 700}) // 32: a key has no bits to spare for terms of no row
      for (SumShape shape :
           {plain(1, 1), plain(4, 4), plain(6, 16), plain(50, 64), plain(160, 160)}) {
        const Case c = makeCase(shape, leaving, rows, 7);
        const size_t shift = rows == 32 ? 1 : 0; // what threads move at once is not aligned
        EXPECT_TRUE(hasSameBits(foundOf(c, shift), expectedOf(c)))
            << leaving << " rows into " << rows << " of " << shape.width;
      }
}

/// Where a row begins is looked for in what is left, down to nothing.
TEST(ScatteredSums, OfEveryNumberOfFewTerms) {
  for (int64_t leaving = 2; leaving <= 33; ++leaving) {
    Case c = makeCase(plain(1, 1), leaving, 3, 7);
    for (uint32_t &key : c.keys)
      key %= 2; // the last row has none
    EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c))) << leaving;
  }
}

/// The key of no row takes a bit more than those of 2,048 rows: with it they are ordered in two
/// passes, whose scratch is more than what lies behind it.
TEST(ScatteredSums, IntoAPowerOfTwoOfRows) {
  const Case c = makeCase(plain(1, 1), 15000, 2048, 31);
  EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c)));
}

TEST(ScatteredSums, OfSeveralScaledVectorsPerRow) {
  const SumShape shape{9, 3, 12, 12, 0, true, {0, 1, 8}};
  for (int64_t leaving : {1, 40, 200}) {
    const Case c = makeCase(shape, leaving, 50, 11);
    const Floats found = foundOf(c), expected = expectedOf(c);
    for (size_t i = 0; i < found.size(); ++i) // products may be fused
      ASSERT_NEAR(found[i], expected[i], 1e-5f * 170 * 170 * static_cast<float>(leaving)) << i;
  }
}

TEST(ScatteredSums, OfRoundedVectors) {
  // Slices of 64 columns, whole ones, some without a thread; 16 bytes at a time, and one element.
  for (const auto &[width, stride] : std::vector<std::pair<int32_t, int32_t>>{
           {8, 8}, {24, 32}, {64, 64}, {72, 72}, {136, 144}, {16, 17}, {80, 83}})
    for (int64_t leaving : {1, 40, 700}) {
      Case c = makeCase({3, 1, width, stride, 0, true, {0}, true}, leaving, 40, 23);
      for (float &value : c.values) // whole numbers below 2^8, of which sums are exact
        value = static_cast<float>(static_cast<int>(value));
      for (float &value : c.coefficients)
        value = static_cast<float>(static_cast<int>(value));
      EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c)))
          << leaving << " rows, " << width << " of " << stride;
    }
}

TEST(ScatteredSums, OfSeveralRoundedVectorsPerRow) {
  Case c = makeCase({9, 3, 16, 16, 0, true, {0, 1, 8}, true}, 200, 50, 29);
  for (float &value : c.values)
    value = static_cast<float>(static_cast<int>(value));
  for (float &value : c.coefficients)
    value = static_cast<float>(static_cast<int>(value));
  EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c)));
}

TEST(ScatteredSums, OfRowsOfEveryLength) {
  // Terms are looked up by 8 to 32 lanes, loaded 8, 4, 2 and 1 at a time, and pieces likewise.
  const std::vector<int64_t> lengths = {0,  1,  2,  3,  4,  5,  6,  7,   8,   9,   15,  16,
                                        17, 31, 32, 33, 39, 64, 65, 255, 256, 257, 520, 2305};
  std::vector<uint32_t> keys;
  for (size_t row = 0; row < lengths.size(); ++row)
    keys.insert(keys.end(), static_cast<size_t>(lengths[row]), static_cast<uint32_t>(row));
  std::mt19937 draw(19);
  std::shuffle(keys.begin(), keys.end(), draw);
  // Whole results and slices, by packs of 4, 2 and 1 floats.
  for (const auto &[width, stride] : std::vector<std::pair<int32_t, int32_t>>{
           {32, 32}, {36, 64}, {100, 112}, {6, 6}, {34, 34}, {66, 68}, {3, 7}, {65, 65}}) {
    const SumShape shape{2, 2, width, stride, 0, true, {0, 1}};
    Case c = makeCase(shape, static_cast<int64_t>(keys.size() / 2 + 1),
                      static_cast<int64_t>(lengths.size()), 19);
    c.keys = keys;
    c.keys.resize(static_cast<size_t>(c.count()), ScatteredTerms::kNoRow);
    for (float &value : c.values) // whole numbers, of which sums are exact
      value = static_cast<float>(static_cast<int>(value));
    for (float &value : c.coefficients)
      value = static_cast<float>(static_cast<int>(value));
    EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c))) << width << " of " << stride;
  }
}

TEST(ScatteredSums, OfPiecesOfPieces) {
  const Case c = makeCase(plain(2, 2), 150000, 3, 13);
  EXPECT_TRUE(hasSameBits(foundOf(c), expectedOf(c)));
}

TEST(ScatteredSums, RowsThatAreNotThereLeaveNothing) {
  // Two terms of a row; results in one slice and in several, with and without coefficients.
  for (int32_t width : {4, 72})
    for (bool isScaled : {false, true}) {
      const Case c = makeCase({2, 1, width, width, 0, isScaled, {0}}, 100, 40, 17);
      Case more = c;
      more.leaving = 130; // room for 30 rows behind those that are there
      EXPECT_TRUE(hasSameBits(foundOf(more), foundOf(c))) << width << ", " << isScaled;
    }
}

} // namespace
} // namespace genrec::rt::kernels
