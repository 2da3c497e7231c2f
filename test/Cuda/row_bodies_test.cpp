//===- row_bodies_test.cpp - What bodies of row kernels call --------------===//
//
// Functions of rowbody.h, random.h and scattered_terms.h beside loops on the host, whatever number
// of lanes a row has. Emitted kernels call them with few of these numbers.
//
//===----------------------------------------------------------------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/random.h"
#include "genrec_rt/kernels/cuda/rowbody.h"
#include "genrec_rt/kernels/cuda/scattered_terms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace genrec::rt::kernels {
namespace {

using cuda::test::Copy;
using cuda::test::testStream;
using Floats = std::vector<float>;

constexpr int kThreads = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool hasSameBits(const Floats &a, const Floats &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

cuda::LaunchShape shapeOf(unsigned blocks) { return {dim3(blocks), dim3(kThreads)}; }

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// out[row][sum, greatest, least][lane], of rows in registers or where they are.
template <int64_t D, int64_t L, int64_t V, bool InMemory = false>
__global__ void reduceRows(const float *rows, int64_t count, float *out) {
  constexpr int64_t kPack = L == 1 ? D : V;
  __shared__ float memory[kThreads / L][reducesByMemory(L, V) ? D : 1];
  float *own = memory[threadIdx.x / L];
  for (int64_t row = firstRow<L>(); row < count; row += rowStep<L>()) {
    float *to = out + row * 3 * L + lane<L>();
    auto reduce = [&](const auto &x) {
      to[0] = rowSum<D, L, V>(x, own);
      to[L] = rowMax<D, L, V>(x, own);
      to[2 * L] = rowMin<D, L, V>(x, own);
    };
    if constexpr (InMemory) {
      reduce(rows + row * D);
    } else {
      float x[kSlots<D, L, kPack>];
      forElements<D, L, kPack>(
          [&](int64_t slot, int64_t element) { x[slot] = rows[row * D + element]; });
      reduce(x);
    }
  }
}

/// As rowbody.h says: 16 columns, then their halves.
template <class Combine> float reduced(const float *row, int64_t width, float rest, Combine each) {
  float totals[16];
  std::fill_n(totals, 16, rest);
  for (int64_t i = 0; i < width; ++i)
    totals[i % 16] = each(totals[i % 16], row[i]);
  for (int by = 8; by > 0; by /= 2)
    for (int c = 0; c < by; ++c)
      totals[c] = each(totals[c], totals[c + by]);
  return totals[0];
}

template <int64_t D, int64_t L, int64_t V> void expectReduced() {
  constexpr int64_t kRows = 4 * (kThreads / L) + 3;
  std::mt19937 random(static_cast<unsigned>(D + L));
  std::normal_distribution<float> draw;
  Floats rows(static_cast<size_t>(kRows * D)), expected;
  for (float &value : rows)
    value = draw(random);
  for (int64_t i = 0; i < D; ++i) { // which of equal zeros is taken shows in the sign
    rows[static_cast<size_t>(i)] = random() % 2 ? 0.0f : -0.0f;
    rows[static_cast<size_t>(D + i)] = -kInfinity;
  }
  for (int64_t row = 0; row < kRows; ++row) {
    const float *of = rows.data() + row * D;
    const float all[] = {
        reduced(of, D, 0, [](float a, float b) { return a + b; }),
        reduced(of, D, -kInfinity, [](float a, float b) { return a > b || a != a ? a : b; }),
        reduced(of, D, kInfinity, [](float a, float b) { return a < b || a != a ? a : b; })};
    for (float each : all)
      expected.insert(expected.end(), static_cast<size_t>(L), each);
  }
  Copy<float> from(rows), out(Floats(expected.size(), -7));
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(2), (reduceRows<D, L, V>), from.data(), kRows,
                     out.data());
  EXPECT_TRUE(hasSameBits(out.fetch(), expected)) << D << " on " << L << " lanes of " << V;
  // Rows begin at any address, some of them at a pack's.
  Floats moved(rows.size() + 1);
  std::copy(rows.begin(), rows.end(), moved.begin() + 1);
  Copy<float> shifted(moved), fromMemory(Floats(expected.size(), -7));
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(2), (reduceRows<D, L, V, true>), shifted.data() + 1,
                     kRows, fromMemory.data());
  EXPECT_TRUE(hasSameBits(fromMemory.fetch(), expected)) << D << " in memory, " << L << " lanes";
  // NaN at any place is that of the row.
  Floats bad(static_cast<size_t>(D * D));
  for (int64_t i = 0; i < D; ++i)
    bad[static_cast<size_t>(i * D + i)] = std::nanf("");
  Copy<float> withNaN(bad), results(Floats(static_cast<size_t>(D * 3 * L), -7));
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(2), (reduceRows<D, L, V>), withNaN.data(), D,
                     results.data());
  for (float each : results.fetch())
    ASSERT_TRUE(std::isnan(each)) << D << " on " << L << " lanes of " << V;
}

TEST(RowBodies, ReductionsOfEveryNumberOfLanes) {
  expectReduced<5, 1, 5>();
  expectReduced<37, 1, 37>();
  expectReduced<36, 4, 4>();
  expectReduced<50, 8, 2>();
  expectReduced<19, 16, 1>();
  expectReduced<70, 32, 1>();
  expectReduced<100, 32, 4>(); // by memory
  expectReduced<90, 64, 1>();
}

//===----------------------------------------------------------------------===//
// Sums of chunks whose rows are spread
//===----------------------------------------------------------------------===//

template <int64_t N, int64_t L>
__global__ void sumChunks(const float *values, int64_t count, float *sums) {
  constexpr int64_t kRow = (N + 3) / 4 * 4;
  __shared__ float addends[kThreads / L][kRow];
  const int64_t chunk = chunkOfTeam<L>();
  const int64_t begin = chunkBegin(chunk, count, N), end = chunkEnd(chunk, count, N);
  if (begin >= end)
    return;
  float *own = addends[threadIdx.x / L], *to = chunkSums(sums, chunk, N);
  for (int64_t first = begin; first < end; first += teamRows<L>()) {
    const int64_t row = first + rowOfTeam<L>();
    for (int64_t i = lane<L>(); i < N && row < end; i += L)
      own[i] = values[row * N + i];
    meetTeam<L>();
    addRows<N, L, kRow * 4>(to, own, first, begin, end);
    meetTeam<L>();
  }
}

template <int64_t N, int64_t L> void expectChunks(int64_t count) {
  std::mt19937 random(static_cast<unsigned>(N + L));
  std::normal_distribution<float> draw;
  Floats values(static_cast<size_t>(count * N));
  for (float &value : values)
    value = draw(random);
  const RowChunks cut = cutRows(count, N);
  Floats expected(static_cast<size_t>(cut.count * N));
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < N; ++i)
      expected[static_cast<size_t>(row / cut.grain * N + i)] +=
          values[static_cast<size_t>(row * N + i)];
  Copy<float> from(values), sums(Floats(expected.size(), 5));
  const int64_t teams = kThreads / teamThreads(L, kThreads);
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(static_cast<unsigned>(cut.count / teams + 1)),
                     (sumChunks<N, L>), from.data(), count, sums.data());
  EXPECT_TRUE(hasSameBits(sums.fetch(), expected)) << N << " on " << L << " lanes";
}

TEST(RowBodies, SumsOfSpreadRowsAreInTheirOrder) {
  for (int64_t count : {1, 70, 1001}) {
    expectChunks<3, 1>(count);
    expectChunks<50, 8>(count);
    expectChunks<33, 32>(count);
  }
}

//===----------------------------------------------------------------------===//
// What is added to rows, and terms in its place
//===----------------------------------------------------------------------===//

constexpr int64_t kWide = 20, kStride = 24, kPicks = 9;

/// Rows, one after another, add themselves to row picks[row] and their number to counts.
template <int64_t L, int64_t V>
__global__ void addToRows(const float *rows, const int64_t *picks, float *to, float *counts) {
  if (threadIdx.x >= L)
    return;
  constexpr int64_t kPack = L == 1 ? kWide : V;
  for (int64_t row = 0; row < kPicks; ++row) {
    float x[kSlots<kWide, L, kPack>];
    forElements<kWide, L, kPack>(
        [&](int64_t slot, int64_t element) { x[slot] = rows[row * kWide + element]; });
    addRow<kWide, L, kPack>(to, kStride, picks[row], x);
    addElement<L, V>(counts, picks[row], static_cast<float>(row + 1));
  }
}

/// A row leaves itself, three multiples of the row, and twice itself.
template <int64_t L, int64_t V>
__global__ void leaveTerms(const float *rows, const int64_t *picks, const float *coefficients,
                           float *memory, float *behind) {
  constexpr int64_t kTerms = 5, kVectors = 3, kPack = L == 1 ? kWide : V;
  const ScatteredTerms terms = termsOf<kTerms, kVectors, kWide, true, false>(memory, kPicks);
  if (firstRow<1>() == 0)
    *behindTerms<kTerms, kVectors, kWide, true, false>(memory, kPicks) = *behind;
  for (int64_t row = firstRow<L>(); row < kPicks; row += rowStep<L>()) {
    const float *of = rows + row * kWide;
    float x[kSlots<kWide, L, kPack>];
    forElements<kWide, L, kPack>([&](int64_t slot, int64_t element) { x[slot] = 2 * of[element]; });
    addRow<kWide, L, kPack>(rowTerms<kTerms, kVectors, kWide, true, false, 0, 0>(terms, row),
                            kStride, picks[row], of);
    scatterAddOuter<kWide, L, kPack>(
        rowTerms<kTerms, kVectors, kWide, true, false, 1, 1>(terms, row), kStride, picks + row / 2,
        coefficients + row, 3, of);
    addRow<kWide, L, kPack>(rowTerms<kTerms, kVectors, kWide, true, false, 4, 2>(terms, row),
                            kStride, picks[kPicks - 1 - row], x);
  }
}

struct Picked {
  Floats rows = Floats(kPicks * kWide);
  std::vector<int64_t> picks = {3, 0, -1, 3, 5, 3, -1, 1, 0};
  Picked() {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i] = static_cast<float>(i % 101) - 50;
  }
};

template <int64_t L, int64_t V> void expectAdded() {
  const Picked from;
  Floats to(6 * kStride, 1), counts(6, 1);
  Copy<float> rows(from.rows), toThere(to), countsThere(counts);
  Copy<int64_t> picks(from.picks);
  for (size_t row = 0; row < kPicks; ++row)
    if (const int64_t pick = from.picks[row]; pick >= 0) {
      for (size_t i = 0; i < kWide; ++i)
        to[static_cast<size_t>(pick * kStride) + i] += from.rows[row * kWide + i];
      counts[static_cast<size_t>(pick)] += static_cast<float>(row + 1);
    }
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(1), (addToRows<L, V>), rows.data(), picks.data(),
                     toThere.data(), countsThere.data());
  EXPECT_EQ(toThere.fetch(), to) << L << " lanes";
  EXPECT_EQ(countsThere.fetch(), counts) << L << " lanes";
}

template <int64_t L, int64_t V> void expectTerms() {
  const Picked from;
  const Floats coefficients = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
  const int64_t words = scatteredWords(kPicks, 5, 3, kWide, true);
  Copy<float> rows(from.rows), factors(coefficients), last(Floats{4.5f}),
      memory(Floats(static_cast<size_t>(words) + 1, -7));
  Copy<int64_t> picks(from.picks);
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(2), (leaveTerms<L, V>), rows.data(), picks.data(),
                     factors.data(), memory.data(), last.data());
  Floats found = memory.fetch();
  EXPECT_EQ(found[static_cast<size_t>(words)], 4.5f);
  const ScatteredTerms terms = scatteredTerms(found.data(), kPicks, 5);
  for (int64_t row = 0; row < kPicks; ++row) {
    const float *values = terms.values + row * valueFloats(5, 3, kWide, true);
    const float *vectors = values + coefficientFloats(5, true);
    auto keyOf = [&](int64_t place) {
      return static_cast<uint32_t>(from.picks[static_cast<size_t>(place)]);
    };
    const float *of = coefficients.data() + row;
    const uint32_t keys[] = {keyOf(row), keyOf(row / 2), keyOf(row / 2 + 1), keyOf(row / 2 + 2),
                             keyOf(kPicks - 1 - row)};
    const float factor[] = {1, of[0], of[1], of[2], 1};
    for (int64_t term = 0; term < 5; ++term) {
      EXPECT_EQ(terms.keys[row * 5 + term], keys[term]) << L << " lanes, row " << row;
      EXPECT_EQ(values[term], factor[term]) << L << " lanes, row " << row;
    }
    for (int64_t i = 0; i < 3 * kWide; ++i)
      EXPECT_EQ(vectors[i],
                (i < 2 * kWide ? 1 : 2) * from.rows[static_cast<size_t>(row * kWide + i % kWide)])
          << L << " lanes, row " << row;
  }
}

TEST(RowBodies, RowsAreAddedToThoseThatAreThere) {
  expectAdded<1, 1>();
  expectAdded<4, 4>();
  expectAdded<16, 1>();
}

TEST(RowBodies, TermsHaveVectorsAndCoefficients) {
  expectTerms<1, 1>();
  expectTerms<4, 4>();
  expectTerms<16, 1>();
  expectTerms<64, 1>();
}

//===----------------------------------------------------------------------===//
// Random words
//===----------------------------------------------------------------------===//

/// Words and numbers go through registers, halves to memory.
template <int64_t N, int64_t L, int64_t V>
__global__ void drawRows(RandomStream stream, int64_t count, uint32_t *words, uint16_t *halves,
                         float *numbers) {
  constexpr int64_t kPack = L == 1 ? N : V;
  for (int64_t row = firstRow<L>(); row < count; row += rowStep<L>()) {
    uint32_t word[kSlots<N, L, kPack>];
    float number[kSlots<N, L, kPack>];
    fillBits<N, L, kPack>(stream, static_cast<uint64_t>(row), word);
    fillUniform<N, L, kPack>(stream, static_cast<uint64_t>(row), number);
    forElements<N, L, kPack>([&](int64_t slot, int64_t element) {
      words[row * N + element] = word[slot];
      numbers[row * N + element] = number[slot];
    });
    uint16_t *to = halves + row * N;
    fillHalves<N, L, kPack>(stream, static_cast<uint64_t>(row), to);
  }
}

template <int64_t N, int64_t L, int64_t V> void expectDrawn() {
  constexpr int64_t kRows = kThreads / L + 2;
  const RandomStream stream{42, 7, 3};
  std::vector<uint32_t> words;
  std::vector<uint16_t> halves;
  Floats numbers;
  for (uint64_t row = 0; row < kRows; ++row)
    for (uint64_t element = 0; element < N; ++element) {
      words.push_back(philoxWord(stream, row, element));
      halves.push_back(philoxHalf(stream, row, element));
      numbers.push_back(uniformFromBits(words.back()));
    }
  Copy<uint32_t> drawnWords(std::vector<uint32_t>(words.size(), 7));
  Copy<uint16_t> drawnHalves(std::vector<uint16_t>(halves.size(), 7));
  Copy<float> drawnNumbers(Floats(numbers.size(), 7));
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(1), (drawRows<N, L, V>), stream, kRows,
                     drawnWords.data(), drawnHalves.data(), drawnNumbers.data());
  EXPECT_EQ(drawnWords.fetch(), words) << N << " on " << L << " lanes of " << V;
  EXPECT_EQ(drawnHalves.fetch(), halves) << N << " on " << L << " lanes of " << V;
  EXPECT_EQ(drawnNumbers.fetch(), numbers) << N << " on " << L << " lanes of " << V;
}

TEST(RowBodies, RandomWordsOfEveryNumberOfLanes) {
  expectDrawn<7, 1, 7>();
  expectDrawn<70, 1, 70>();
  expectDrawn<50, 8, 2>();
  expectDrawn<132, 4, 4>();
  expectDrawn<63, 16, 1>();
  expectDrawn<200, 32, 1>();
  expectDrawn<260, 32, 4>();
  expectDrawn<70, 64, 1>();
}

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

template <int64_t Count>
__global__ void findBuckets(const double *edges, const int64_t *values, int64_t *buckets) {
  buckets[threadIdx.x] = bucketAmong<Count>(values[threadIdx.x], edges);
}

template <int64_t Count> void expectBuckets() {
  std::vector<double> edges(Count + 1);
  std::vector<int64_t> values(kThreads), expected;
  for (size_t e = 0; e < edges.size(); ++e)
    edges[e] = static_cast<double>(3 * e + e % 2);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(i) - 5;
    expected.push_back(std::count_if(edges.begin(), edges.begin() + Count, [&](double edge) {
      return edge <= static_cast<double>(values[i]);
    }));
  }
  Copy<double> edgesThere(edges);
  Copy<int64_t> valuesThere(values), found(std::vector<int64_t>(values.size(), -7));
  GENREC_CUDA_LAUNCH(testStream(), shapeOf(1), findBuckets<Count>, edgesThere.data(),
                     valuesThere.data(), found.data());
  EXPECT_EQ(found.fetch(), expected) << Count << " edges";
}

TEST(RowBodies, BucketsAmongAnyNumberOfEdges) {
  expectBuckets<0>();
  expectBuckets<1>();
  expectBuckets<2>();
  expectBuckets<3>();
  expectBuckets<7>();
  expectBuckets<8>();
}

} // namespace
} // namespace genrec::rt::kernels
