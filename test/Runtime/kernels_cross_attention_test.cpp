// Cross attention and its gradient against naive loops in double.

#include "genrec_rt/kernels/cpu/cross_attention.h"
#include "kernels_bf16_reference.h"

#include <gtest/gtest.h>

namespace genrec::rt::kernels {
namespace {

using test::Random;

/// Domains of two lists of one parent, or (isBelow) of a list below the queries.
struct Lists {
  std::vector<int64_t> queryOffsets{0}, keyOffsets{0};
  genrec_domain parent{}, queries{}, keys{};

  Lists(const std::vector<std::pair<int64_t, int64_t>> &lengths, bool isBelow) {
    for (auto [queryCount, keyCount] : lengths) {
      queryOffsets.push_back(queryOffsets.back() + (isBelow ? 1 : queryCount));
      keyOffsets.push_back(keyOffsets.back() + keyCount);
      keys.max_length = std::max(keys.max_length, keyCount);
    }
    parent.count = static_cast<int64_t>(lengths.size());
    queries.count = queryOffsets.back(), queries.offsets = queryOffsets.data();
    queries.parent_domain = &parent;
    keys.count = keyOffsets.back(), keys.offsets = keyOffsets.data();
    keys.parent_domain = isBelow ? &queries : &parent;
  }
};

std::vector<float> fill(int64_t rows, int64_t ld, int64_t width, Random &random) {
  std::vector<float> values(rows ? (rows - 1) * ld + width : 0);
  for (float &value : values)
    value = static_cast<float>(random.real() * 2 - 1);
  return values;
}

template <int Heads, int Qk, int V, bool Bf16 = false>
void check(const std::vector<std::pair<int64_t, int64_t>> &lengths, bool isBelow, int threads) {
  SCOPED_TRACE(::testing::Message() << Heads << " heads of " << Qk << " and " << V << ", "
                                    << lengths.size() << " lists, below " << isBelow);
  Lists lists(lengths, isBelow);
  const int64_t nq = lists.queries.count, nk = lists.keys.count;
  const int64_t wide = Heads * Qk, wideV = Heads * V;
  Random random(7);
  CrossAttentionArgs args;
  args.queries = &lists.queries, args.keys = &lists.keys;
  args.ldQ = wide + 1, args.ldK = wide + 2, args.ldV = wideV + 3, args.scale = 0.7f;
  const int64_t ldG = wideV + 1;
  std::vector<float> q = fill(nq, args.ldQ, wide, random), k = fill(nk, args.ldK, wide, random),
                     v = fill(nk, args.ldV, wideV, random), g = fill(nq, ldG, wideV, random);
  args.q = q.data(), args.k = k.data(), args.v = v.data();
  std::vector<float> out(nq * wideV + 1, 7.5f), dq(nq * wide + 1, 7.5f), dk(nk * wide + 1, 7.5f),
      dv(nk * wideV + 1, 7.5f);
  test::Pool pool(threads);
  test::Scratch scratch(crossAttentionScratchBytes(&lists.keys, threads));
  crossAttentionForward<Heads, Qk, V, Bf16>(pool, args, out.data(), scratch.data());
  crossAttentionBackward<Heads, Qk, V, Bf16>(pool, args, g.data(), ldG, dq.data(), dk.data(),
                                             dv.data(), scratch.data());
  EXPECT_TRUE(scratch.guardIsWhole());

  auto factor = [](double x) { return Bf16 ? test::roundedToBf16(static_cast<float>(x)) : x; };
  std::vector<double> outs(nq * wideV), dqs(nq * wide), dks(nk * wide), dvs(nk * wideV);
  for (size_t list = 0; list < lengths.size(); ++list)
    for (int64_t i = lists.queryOffsets[list]; i < lists.queryOffsets[list + 1]; ++i)
      for (int head = 0; head < Heads; ++head) {
        const int64_t begin = lists.keyOffsets[list], end = lists.keyOffsets[list + 1];
        std::vector<double> weight, dot;
        double total = 0, mean = 0;
        for (int64_t j = begin; j < end; ++j) {
          double score = 0, product = 0;
          for (int64_t c = head * Qk; c < (head + 1) * Qk; ++c)
            score += factor(q[i * args.ldQ + c]) * factor(k[j * args.ldK + c]);
          for (int64_t c = head * V; c < (head + 1) * V; ++c)
            product += factor(g[i * ldG + c]) * factor(v[j * args.ldV + c]);
          weight.push_back(std::exp(double(args.scale) * score));
          dot.push_back(product);
          total += weight.back();
        }
        for (size_t j = 0; j < weight.size(); ++j) {
          weight[j] /= total;
          mean += weight[j] * dot[j];
        }
        for (int64_t j = begin; j < end; ++j) {
          double w = weight[j - begin], d = factor(w * (dot[j - begin] - mean)) * args.scale;
          w = factor(w);
          for (int64_t c = head * V; c < (head + 1) * V; ++c) {
            outs[i * wideV + c] += w * factor(v[j * args.ldV + c]);
            dvs[j * wideV + c] += w * factor(g[i * ldG + c]);
          }
          for (int64_t c = head * Qk; c < (head + 1) * Qk; ++c) {
            dqs[i * wide + c] += d * factor(k[j * args.ldK + c]);
            dks[j * wide + c] += d * factor(q[i * args.ldQ + c]);
          }
        }
      }
  const double allowed = 1e-6 * (8 + Qk + V);
  auto compare = [&](const char *name, const std::vector<float> &got,
                     const std::vector<double> &wanted) {
    size_t off = 0; // with Bf16: where another float gave another bfloat16
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(got[i], wanted[i], Bf16 ? 0x1p-6 : allowed) << name << " " << i;
      off += std::fabs(got[i] - wanted[i]) > allowed;
    }
    EXPECT_LE(off, wanted.size() / 10) << name;
    EXPECT_EQ(got.back(), 7.5f) << name;
  };
  compare("out", out, outs);
  compare("dq", dq, dqs);
  compare("dk", dk, dks);
  compare("dv", dv, dvs);
}

// Lists of no keys, of no queries, of one, below, at and above a vector.
const std::vector<std::pair<int64_t, int64_t>> kLengths = {
    {0, 0}, {3, 0}, {0, 4}, {1, 1}, {5, 15}, {2, 16}, {4, 17}, {7, 33}, {1, 2}, {0, 0}};

KERNEL_TEST(KernelsCrossAttention, AgreesWithNaiveLoops) {
  for (bool isBelow : {false, true}) {
    check<1, 1, 1>(kLengths, isBelow, 1);
    check<1, 16, 8>(kLengths, isBelow, 2);
    check<2, 7, 17>(kLengths, isBelow, 1);
    check<3, 33, 5>(kLengths, isBelow, 2);
    check<2, 64, 64>(kLengths, isBelow, 1);
    check<2, 4, 4>({}, isBelow, 1);
  }
}

KERNEL_TEST(KernelsCrossAttention, FactorsRoundedToBfloat16) {
  for (bool isBelow : {false, true}) {
    check<2, 7, 17, true>(kLengths, isBelow, 1);
    check<1, 33, 16, true>(kLengths, isBelow, 2);
  }
}

// Many lists are cut into chunks.
KERNEL_TEST(KernelsCrossAttention, ManyLists) {
  std::vector<std::pair<int64_t, int64_t>> lengths;
  for (int64_t i = 0; i < 200; ++i)
    lengths.emplace_back(i % 4, (i * 7) % 5);
  check<1, 8, 8>(lengths, false, 2);
  check<1, 8, 8>(lengths, true, 2);
}

} // namespace
} // namespace genrec::rt::kernels
