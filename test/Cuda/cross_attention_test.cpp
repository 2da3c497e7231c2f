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

namespace genrec::rt::cuda::test {
namespace {

constexpr int64_t kSpareQueries = 6;

/// A matrix with gaps on both sides.
struct Matrix {
  int64_t ld;
  std::vector<float> values;
  Copy<float> there;

  Matrix(int64_t rows, int64_t width, int64_t gap, std::mt19937_64 &random)
      : ld(width + gap), values(randomValues<float>(rows * ld, random)), there(scaled(values)) {}
  static const std::vector<float> &scaled(std::vector<float> &values) {
    for (float &value : values)
      value /= 700;
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

/// Queries and keys as given: `queries` null is the domain above the keys.
template <int Heads, int Qk, int V, bool Bf16 = false>
void expectSame(const HostDomain &queries, const DeviceDomain &queriesThere, const HostDomain &keys,
                const DeviceDomain &keysThere, std::mt19937_64 &random) {
  const int64_t n = queries.view.count, m = keys.view.count;
  Matrix q(n, Heads * Qk, 3, random), k(m, Heads * Qk, 1, random), v(m, Heads * V, 2, random),
      dOut(n, Heads * V, 5, random);
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
  // Weights are rounded before and after they are rescaled: they may be neighbours.
  const float tolerance = Bf16 ? 0x1p-8f : 2e-5f;
  expectNear(outThere, out, "out", tolerance);
  expectNear(dQThere, dQ, "dQ", tolerance);
  expectNear(dKThere, dK, "dK", tolerance);
  expectNear(dVThere, dV, "dV", tolerance);
}

/// Lists of one parent, and keys that are children of the queries.
template <int Heads, int Qk, int V, bool Bf16 = false>
void expectSame(const Lengths &queryLengths, const Lengths &keyLengths) {
  std::mt19937_64 random(4);
  auto users = makeRoot(static_cast<int64_t>(queryLengths.size()), random);
  auto queries = makeLists(*users, queryLengths, random),
       keys = makeLists(*users, keyLengths, random);
  DeviceDomain usersThere(*users), queriesThere(*queries, &usersThere),
      keysThere(*keys, &usersThere);
  expectSame<Heads, Qk, V, Bf16>(*queries, queriesThere, *keys, keysThere, random);
  expectSame<Heads, Qk, V, Bf16>(*users, usersThere, *keys, keysThere, random);
}

TEST(CrossAttention, AgreesWithTheCpu) {
  expectSame<2, 18, 12>({3, 0, 1, 5, 2, 0}, {4, 7, 0, 1, 33, 0});
  expectSame<1, 50, 50>({2, 40}, {65, 3});
  expectSame<3, 1, 40>({1, 2, 3}, {0, 100, 2});
  expectSame<1, 64, 64>({0, 0}, {0, 0});
  expectSame<2, 8, 8>({}, {});
  expectSame<1, 8, 8>({1, 0, 70}, {900, 0, 1}); // a giant list
}

TEST(CrossAttention, RoundsFactorsAsTheCpu) {
  expectSame<2, 18, 12, true>({3, 0, 1, 5, 2, 0}, {4, 7, 0, 1, 33, 0});
  expectSame<1, 50, 50, true>({2, 40}, {65, 3});
  expectSame<1, 8, 8, true>({1, 0, 70}, {900, 0, 1});
}

} // namespace
} // namespace genrec::rt::cuda::test
