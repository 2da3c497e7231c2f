//===- part_copies_test.cpp - Rows copied part by part --------------------===//

#include "domain_copies.h"

#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/part_copies.h"
#include "genrec_rt/kernels/cuda/rounded_factors.h"

#include <cmath>
#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

/// What a copy is made of; `shift` elements before the first one of each matrix.
struct Case {
  int64_t parts, fromSize, toSize, ldFrom, ldTo, shiftFrom = 0, shiftTo = 0;
};

float valueOf(int64_t i) { return static_cast<float>(i % 5003 - 2500) / 77; }

float asFloat(float x) { return x; }
float asFloat(Bf16 x) { return toFloat(x); }
template <class To> float expected(float x) { return factor(sizeof(To) == 2, x); }

/// Rows from `firstRow` on, of `count`, in room for `room` more than there are, or less.
template <class To>
void expectCopy(const Case &c, int64_t count, bool clearsRest, int64_t firstRow, int64_t room) {
  SCOPED_TRACE(testing::Message() << c.parts << " parts of " << c.fromSize << " to " << c.toSize
                                  << ", " << count << " rows from " << firstRow << ", by "
                                  << c.ldFrom << " to " << c.ldTo << ", " << c.shiftFrom << " and "
                                  << c.shiftTo << (clearsRest ? ", clears" : ""));
  const int64_t capacity = std::max<int64_t>(count - firstRow, 0) + room;
  std::vector<float> from(static_cast<size_t>(c.shiftFrom + count * c.ldFrom));
  for (size_t i = 0; i < from.size(); ++i)
    from[i] = valueOf(static_cast<int64_t>(i));
  const To before = fromFloat<To>(7);
  const std::vector<To> old(static_cast<size_t>(c.shiftTo + capacity * c.ldTo), before);
  std::mt19937_64 random(1);
  auto host = makeRoot(count, random);
  DeviceDomain domain(*host, nullptr, std::max(count, firstRow + capacity));
  Copy<float> source(from);
  Copy<To> result(old);
  copyParts(PartCopy<To>{domain.get(), capacity, c.parts, source.data() + c.shiftFrom, c.ldFrom,
                         c.fromSize, result.data() + c.shiftTo, c.ldTo, c.toSize, clearsRest,
                         firstRow},
            testStream());
  const std::vector<To> got = result.fetch();
  auto at = [&](int64_t row, int64_t column) {
    return asFloat(got[static_cast<size_t>(c.shiftTo + row * c.ldTo + column)]);
  };
  for (int64_t row = 0; row < capacity; ++row)
    for (int64_t column = 0; column < c.ldTo; ++column) {
      const int64_t part = column / c.toSize, place = column % c.toSize;
      const bool isThere = firstRow + row < count;
      float want = 7;
      if (part < c.parts && (isThere || clearsRest))
        want = isThere && place < c.fromSize
                   ? expected<To>(from[static_cast<size_t>(
                         c.shiftFrom + (firstRow + row) * c.ldFrom + part * c.fromSize + place)])
                   : 0;
      if (c.shiftTo + row * c.ldTo + column < static_cast<int64_t>(got.size()))
        ASSERT_EQ(at(row, column), want) << "row " << row << " column " << column;
    }
}

template <class To> void expectCopies(const Case &c) {
  for (int64_t count : {0, 1, 130})
    for (bool clearsRest : {false, true})
      for (int64_t firstRow : {0, 3})
        expectCopy<To>(c, count, clearsRest, firstRow, 5);
  expectCopy<To>(c, 130, false, 3, -60);
  expectCopy<To>(c, 130, true, 3, -60);
}

TEST(PartCopies, OfFloats) {
  expectCopies<float>({1, 50, 52, 50, 52});   // two floats at once
  expectCopies<float>({1, 64, 64, 64, 64});   // four
  expectCopies<float>({1, 33, 36, 34, 36});   // one
  expectCopies<float>({2, 50, 56, 100, 112}); // heads that are padded,
  expectCopies<float>({2, 56, 50, 112, 101}); // and back
  expectCopies<float>({1, 8, 8, 12, 12, 1});  // addresses
  expectCopies<float>({1, 8, 8, 12, 12, 2});
  expectCopies<float>({1, 8, 8, 12, 12, 0, 1});
  expectCopies<float>({3, 2, 4, 6, 20});
  expectCopies<float>({1, 8, 8, 8, 10}); // later rows are not aligned
}

TEST(PartCopies, OfFactors) {
  expectCopies<Bf16>({1, 64, 64, 64, 64});
  expectCopies<Bf16>({1, 50, 56, 50, 56});
  expectCopies<Bf16>({1, 37, 40, 40, 48});
  expectCopies<Bf16>({2, 20, 24, 44, 48});
  expectCopies<Bf16>({2, 25, 32, 50, 64, 1});
  expectCopies<Bf16>({1, 16, 16, 16, 16, 2});
  expectCopies<Bf16>({1, 16, 16, 16, 16, 0, 1});
  expectCopies<Bf16>({1, 16, 16, 16, 20});
  expectCopies<Bf16>({1, 2560, 2560, 2560, 2560}); // more units than a block has threads
}

/// Numbers below the smallest normal one become zeros of their sign, in packs as by themselves.
TEST(PartCopies, FactorsAreNormal) {
  const std::vector<float> from{1e-39f, -1e-39f, 1.00390625f, NAN, INFINITY, -3, 0x1p-126f, 65504};
  Copy<float> source(from);
  Copy<Bf16> packed(std::vector<Bf16>(8)), single(std::vector<Bf16>(8));
  copyParts(PartCopy<Bf16>{nullptr, 1, 1, source.data(), 8, 8, packed.data(), 8, 8}, testStream());
  copyParts(PartCopy<Bf16>{nullptr, 1, 1, source.data(), 7, 7, single.data(), 7, 7}, testStream());
  const std::vector<Bf16> all = packed.fetch(), ones = single.fetch();
  for (size_t i = 0; i < from.size(); ++i) {
    EXPECT_EQ(all[i].bits, bf16Factor(from[i]).bits) << i;
    if (i < 7) {
      EXPECT_EQ(ones[i].bits, all[i].bits) << i;
    }
  }
}

__global__ void clear(const genrec_domain *rows, kernels::Bf16 *values, int64_t width) {
  kernels::clearRowsBehind(rows, values, width);
}

/// By the threads of whatever kernel makes the factors: few or many.
TEST(PartCopies, RowsBehindFactorsAreCleared) {
  constexpr int64_t kWidth = 24, kCapacity = 40;
  for (int64_t count : {0, 1, 33, 40}) {
    std::mt19937_64 random(1);
    auto host = makeRoot(count, random);
    DeviceDomain domain(*host, nullptr, kCapacity);
    const Bf16 before = fromFloat<Bf16>(7);
    Copy<Bf16> values(std::vector<Bf16>(static_cast<size_t>((kCapacity + 1) * kWidth), before));
    const LaunchShape shape{dim3(count % 2 + 1), dim3(count == 40 ? 256 : 32)};
    GENREC_CUDA_LAUNCH(testStream(), shape, clear, domain.get(),
                       reinterpret_cast<kernels::Bf16 *>(values.data()), kWidth);
    const std::vector<Bf16> got = values.fetch();
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
      const bool isBehind = i >= count * kWidth && i < kCapacity * kWidth;
      ASSERT_EQ(toFloat(got[static_cast<size_t>(i)]), isBehind ? 0 : 7) << i << " of " << count;
    }
  }
}

/// Copies in one launch, of other sizes, alignment and rows each: each is as by itself. `shifts`:
/// of what is copied, in floats.
template <class To> void expectTogether(const std::vector<int64_t> &shifts) {
  constexpr int64_t kRows = 37, kWidest = 300;
  const int64_t sizes[] = {24, 8, kWidest, 16}, capacities[] = {40, 0, 3, kRows};
  std::mt19937_64 random(1);
  auto host = makeRoot(kRows, random);
  DeviceDomain domain(*host, nullptr, 64);
  std::vector<Copy<float>> sources;
  std::vector<Copy<To>> apart, together;
  std::vector<PartCopy<To>> copies;
  for (size_t i = 0; i < shifts.size(); ++i) {
    std::vector<float> from(static_cast<size_t>(kRows * (kWidest + 4) + 4));
    for (size_t at = 0; at < from.size(); ++at)
      from[at] = valueOf(static_cast<int64_t>(at * (i + 1)));
    sources.emplace_back(from);
    const std::vector<To> old(static_cast<size_t>(64 * kWidest), fromFloat<To>(7));
    apart.emplace_back(old);
    together.emplace_back(old);
    copies.push_back({i == 2 ? nullptr : domain.get(), capacities[i], 1,
                      sources[i].data() + shifts[i], sizes[i] + 4, sizes[i], apart[i].data(),
                      sizes[i], sizes[i], true});
    copyParts(copies[i], testStream());
    copies[i].to = together[i].data();
  }
  copyParts(std::span<const PartCopy<To>>(copies), testStream());
  for (size_t i = 0; i < shifts.size(); ++i) {
    const std::vector<To> got = together[i].fetch(), expected = apart[i].fetch();
    for (size_t at = 0; at < got.size(); ++at)
      ASSERT_EQ(asFloat(got[at]), asFloat(expected[at])) << i << " at " << at;
  }
}

TEST(PartCopies, SeveralInOneLaunch) {
  expectTogether<float>({0, 0, 0, 0});
  expectTogether<float>({0, 0, 1, 0});
  expectTogether<Bf16>({0, 0, 0, 0});
  expectTogether<Bf16>({2, 0, 0, 0});
  expectTogether<Bf16>({1, 0, 0});
  expectTogether<Bf16>({0, 1});
}

TEST(PartCopies, NothingToCopy) {
  copyParts(PartCopy<float>{}, testStream());
  copyParts(PartCopy<Bf16>{}, testStream());
}

} // namespace
} // namespace genrec::rt::cuda::test
