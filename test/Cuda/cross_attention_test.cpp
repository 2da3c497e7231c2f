//===- cross_attention_test.cpp - Cross attention on the device -----------===//
//
// Against the CPU's, which its own test holds to double precision.
//
//===----------------------------------------------------------------------===//

#include "cpu_reference.h"
#include "domain_copies.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/cross_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kSpareQueries = 6;

using Draw = std::function<float()>;

/// A matrix with gaps on both sides.
struct Matrix {
  int64_t ld;
  std::vector<float> values;
  Copy<float> there;

  Matrix(int64_t rows, int64_t width, int64_t gap, const Draw &draw)
      : ld(width + gap), values(static_cast<size_t>(rows * ld)), there(drawn(values, draw)) {}
  static const std::vector<float> &drawn(std::vector<float> &values, const Draw &draw) {
    std::generate(values.begin(), values.end(), draw);
    return values;
  }
};

void expectNear(const Copy<float> &got, const std::vector<float> &expected, const char *what,
                float tolerance) {
  const auto values = got.fetch();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << what << " " << i;
}

/// Queries and keys as given. With `far` scores are about so many times 100, and dots are exact.
template <int Heads, int Qk, int V, bool Bf16 = false>
void expectSame(const HostDomain &queries, const DeviceDomain &queriesThere, const HostDomain &keys,
                const DeviceDomain &keysThere, std::mt19937_64 &random, float far = 0) {
  const int64_t n = queries.view.count, m = keys.view.count;
  const Draw any = [&] { return randomValues<float>(1, random)[0] / 700; };
  const Draw ofQuery = [] { return 16.0f; };
  const Draw ofKey = [&] { return far * (1 + static_cast<float>(random() % 4) / 256); };
  Matrix q(n, Heads * Qk, 3, far != 0 ? ofQuery : any), k(m, Heads * Qk, 1, far != 0 ? ofKey : any),
      v(m, Heads * V, 2, any), dOut(n, Heads * V, 5, any);
  auto room = [](int64_t rows, int64_t width) {
    return std::vector<float>(static_cast<size_t>((rows + kSpareQueries) * width));
  };
  std::vector<float> out = room(n, Heads * V), dQ = room(n, Heads * Qk), dK = room(m, Heads * Qk),
                     dV = room(m, Heads * V);
  crossAttentionOnCpu<Heads, Qk, V, Bf16>({&queries.view, &keys.view, q.values.data(), q.ld,
                                           k.values.data(), k.ld, v.values.data(), v.ld, 0.7f,
                                           dOut.values.data(), dOut.ld},
                                          {out.data(), dQ.data(), dK.data(), dV.data()});
  CrossAttention a;
  a.queries = queriesThere.get(), a.queryCapacity = n + kSpareQueries;
  a.keys = keysThere.get(), a.keyCapacity = m + kSpareQueries;
  a.q = q.there.data(), a.ldQ = q.ld, a.k = k.there.data(), a.ldK = k.ld;
  a.v = v.there.data(), a.ldV = v.ld, a.scale = 0.7f;
  auto nines = [](const std::vector<float> &like) {
    return Copy<float>(std::vector<float>(like.size(), 9));
  };
  Copy<float> outThere = nines(out), dQThere = nines(dQ), dKThere = nines(dK), dVThere = nines(dV);
  Scratch scratch(crossAttentionBackwardBytes<Heads>(a));
  crossAttentionForward<Heads, Qk, V, Bf16>(a, outThere.data(), testStream());
  crossAttentionBackward<Heads, Qk, V, Bf16>(
      a, {dOut.there.data(), dOut.ld, dQThere.data(), dKThere.data(), dVThere.data()},
      scratch.data(), testStream());
  // Weights are rounded before and after they are rescaled: they may be neighbours. Those far from
  // zero are exp of a difference from a logarithm of about 540, which has steps of 6e-5.
  const float tolerance = Bf16 ? 0x1p-8f : far != 0 ? 2e-4f : 2e-5f;
  expectNear(outThere, out, "out", tolerance);
  expectNear(dQThere, dQ, "dQ", tolerance);
  expectNear(dKThere, dK, "dK", tolerance);
  expectNear(dVThere, dV, "dV", tolerance);
}

/// Lists of one parent, and keys that are children of the queries.
template <int Heads, int Qk, int V, bool Bf16 = false>
void expectSame(const Lengths &queryLengths, const Lengths &keyLengths, float far = 0) {
  std::mt19937_64 random(4);
  auto users = makeRoot(static_cast<int64_t>(queryLengths.size()), random);
  auto queries = makeLists(*users, queryLengths, random),
       keys = makeLists(*users, keyLengths, random);
  DeviceDomain usersThere(*users), queriesThere(*queries, &usersThere),
      keysThere(*keys, &usersThere);
  expectSame<Heads, Qk, V, Bf16>(*queries, queriesThere, *keys, keysThere, random, far);
  expectSame<Heads, Qk, V, Bf16>(*users, usersThere, *keys, keysThere, random, far);
}

TEST(CrossAttention, AgreesWithTheCpu) {
  expectSame<2, 18, 12>({3, 0, 1, 5, 2, 0}, {4, 7, 0, 1, 33, 0});
  expectSame<1, 50, 50>({2, 40}, {65, 3});
  expectSame<3, 1, 40>({1, 2, 3}, {0, 100, 2});
  expectSame<1, 64, 64>({0, 0}, {0, 0});
  expectSame<2, 8, 8>({}, {});
  expectSame<1, 8, 8>({1, 0, 70}, {900, 0, 1}); // a giant list
}

TEST(CrossAttention, HeadsWiderThanTwoWarps) { expectSame<1, 72, 130>({2, 0, 1}, {5, 3, 40}); }

/// Shared memory has room for three warps of a block backward, and for one.
TEST(CrossAttention, HeadsThatLeaveRoomForFewerWarps) {
  expectSame<1, 1500, 1200>({3, 0, 1}, {1, 2, 3});
  expectSame<2, 7, 5600>({1, 1}, {1, 2});
}

/// Queries that are lists themselves, and have the keys below them.
TEST(CrossAttention, KeysBelowListsOfQueries) {
  std::mt19937_64 random(6);
  auto users = makeRoot(3, random);
  auto queries = makeLists(*users, {2, 0, 3}, random),
       keys = makeLists(*queries, {4, 0, 35, 1, 2}, random);
  DeviceDomain usersThere(*users), queriesThere(*queries, &usersThere),
      keysThere(*keys, &queriesThere);
  expectSame<2, 8, 8>(*queries, queriesThere, *keys, keysThere, random);
}

/// exp of a score is 0 or infinite, and so it is of a score less that of a row that is not there.
TEST(CrossAttention, ScoresFarFromZero) {
  for (float far : {-6.0f, 6.0f})
    expectSame<1, 8, 8>({3, 0, 1}, {4, 7, 40}, far);
}

/// Closer than those of the CPU are, which rounds weights when they are divided.
TEST(CrossAttention, WeightsAreRounded) {
  std::mt19937_64 random(7);
  auto users = makeRoot(1, random), keys = makeLists(*users, {2}, random);
  DeviceDomain usersThere(*users), keysThere(*keys, &usersThere);
  std::vector<float> ones(8, 1), k(16), v(16);
  k[8] = -1;                               // scores 0 and -0.7
  std::fill(v.begin() + 8, v.end(), 1.0f); // so a result is the second's share
  Copy<float> q(ones), kThere(k), vThere(v), out(std::vector<float>(8, 9));
  CrossAttention a;
  a.queries = usersThere.get(), a.queryCapacity = 1, a.keys = keysThere.get(), a.keyCapacity = 2;
  a.q = q.data(), a.k = kThere.data(), a.v = vThere.data();
  a.ldQ = a.ldK = a.ldV = 8, a.scale = 0.7f;
  crossAttentionForward<1, 8, 8, true>(a, out.data(), testStream());
  const float weight = std::exp(-0.7f);
  for (float value : out.fetch())
    EXPECT_NEAR(value, toFloat(fromFloat<Bf16>(weight)) / (1 + weight), 1e-6f);
}

TEST(CrossAttention, RoundsFactorsAsTheCpu) {
  expectSame<2, 18, 12, true>({3, 0, 1, 5, 2, 0}, {4, 7, 0, 1, 33, 0});
  expectSame<1, 50, 50, true>({2, 40}, {65, 3});
  expectSame<1, 8, 8, true>({1, 0, 70}, {900, 0, 1});
}

} // namespace
} // namespace genrec::rt::cuda::test
