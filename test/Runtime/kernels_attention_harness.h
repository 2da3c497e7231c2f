//===- kernels_attention_harness.h - Kernel against reference ---*- C++ -*-===//

#ifndef GENREC_TEST_RUNTIME_KERNELS_ATTENTION_HARNESS_H
#define GENREC_TEST_RUNTIME_KERNELS_ATTENTION_HARNESS_H

#include "kernels_attention_reference.h"

#include "genrec_rt/kernels/cpu/attention.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace test {

template <class C> ReferenceConfig referenceConfig() {
  return {C::Heads,
          C::Qk,
          C::V,
          C::Score == ScoreKind::softmax,
          C::Causal,
          C::HasWindow,
          C::PositionBias,
          C::TimeBias,
          C::Dropout,
          C::Masked,
          C::Bf16};
}

/// A float copy of a dense matrix, in rows of a wider buffer.
struct Strided {
  int64_t rows, columns, ld;
  std::vector<float> values;
  Strided(const std::vector<double> &dense, int64_t rows, int64_t columns, int64_t gap)
      : rows(rows), columns(columns), ld(columns + gap),
        values(static_cast<size_t>(rows * ld) + 1, 7.5f) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        values[static_cast<size_t>(i * ld + j)] =
            dense.empty() ? NAN : static_cast<float>(dense[static_cast<size_t>(i * columns + j)]);
  }
  /// Where factors are rounded to bfloat16, another rounding of the float that is rounded may give
  /// another bfloat16: that happens to few elements, which are off by less than all of them are
  /// where a factor is not rounded.
  void expectMostlyNear(const std::vector<double> &dense, double tolerance,
                        const char *what) const {
    double most = 0;
    for (double x : dense)
      most = std::max(most, std::fabs(x));
    int64_t off = 0;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double difference = std::fabs(values[static_cast<size_t>(i * ld + j)] -
                                      dense[static_cast<size_t>(i * columns + j)]);
        ASSERT_LE(difference, 0x1p-7 * (1 + most)) << what << " row " << i << " column " << j;
        off += difference > tolerance * (1 + most);
      }
    EXPECT_LE(static_cast<double>(off), 0.1 * static_cast<double>(rows * columns)) << what;
  }
  void expectNear(const std::vector<double> &dense, double tolerance, const char *what) const {
    double most = 0;
    for (double x : dense)
      most = std::max(most, std::fabs(x));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < ld; ++j) {
        float got = values[static_cast<size_t>(i * ld + j)];
        if (j < columns)
          ASSERT_NEAR(got, dense[static_cast<size_t>(i * columns + j)], tolerance * (1 + most))
              << what << " row " << i << " column " << j;
        else
          ASSERT_EQ(got, 7.5f) << what << " was written between rows";
      }
    ASSERT_EQ(values.back(), 7.5f) << what << " was written behind its end";
  }
};

/// What the kernels make of the inputs.
template <class C> struct KernelRun {
  Strided q, k, v, dOut, out, logSumExp, dQ, dK, dV, dPositionBias, dTimeBias;

  KernelRun(genrec_rt_pool *pool, const ReferenceInputs &in, int64_t gap, int64_t maxLength)
      : q(in.q, in.rows(), C::Heads * C::Qk, gap), k(in.k, in.rows(), C::Heads * C::Qk, gap),
        v(in.v, in.rows(), C::Heads * C::V, gap), dOut(in.dOut, in.rows(), C::Heads * C::V, gap),
        out({}, in.rows(), C::Heads * C::V, gap), logSumExp({}, in.rows(), C::Heads, 0),
        dQ({}, in.rows(), C::Heads * C::Qk, gap), dK({}, in.rows(), C::Heads * C::Qk, gap),
        dV({}, in.rows(), C::Heads * C::V, gap),
        dPositionBias({}, 1, static_cast<int64_t>(in.positionBias.size()), 0),
        dTimeBias({}, 1, static_cast<int64_t>(in.timeBias.size()), 0) {
    std::vector<float> position(in.positionBias.begin(), in.positionBias.end());
    std::vector<float> time(in.timeBias.begin(), in.timeBias.end());
    AttentionArgs args;
    args.parents = static_cast<int64_t>(in.offsets.size()) - 1;
    args.offsets = in.offsets.data();
    args.maxLength = maxLength;
    args.q = q.values.data(), args.ldQ = q.ld;
    args.k = k.values.data(), args.ldK = k.ld;
    args.v = v.values.data(), args.ldV = v.ld;
    args.out = out.values.data(), args.ldOut = out.ld;
    args.logSumExp = logSumExp.values.data();
    args.scale = static_cast<float>(in.scale);
    args.fixedLength = static_cast<float>(in.fixedLength);
    args.window = in.window;
    args.contextual = in.contextual;
    args.targets = in.targets.data();
    args.positionBias = position.data();
    args.positionBuckets = static_cast<int64_t>(position.size());
    args.timeBias = time.data();
    args.timeBuckets = static_cast<int64_t>(time.size());
    args.timestamps = in.timestamps.data();
    args.ticksPerSecond = in.ticksPerSecond;
    args.nextEventTime = in.nextEventTime;
    args.identity = in.identity.data();
    args.random = in.random;
    args.dropProbability = static_cast<float>(in.dropProbability);
    AttentionGradients gradients;
    gradients.dOut = dOut.values.data(), gradients.ldDOut = dOut.ld;
    gradients.dQ = dQ.values.data(), gradients.ldDQ = dQ.ld;
    gradients.dK = dK.values.data(), gradients.ldDK = dK.ld;
    gradients.dV = dV.values.data(), gradients.ldDV = dV.ld;
    gradients.dPositionBias = dPositionBias.values.data();
    gradients.dTimeBias = dTimeBias.values.data();
    int32_t workers = genrec_rt_pool_threads(pool);
    Scratch forward(attentionForwardScratchBytes<C>(maxLength, workers));
    attentionForward<C>(pool, args, forward.data());
    EXPECT_TRUE(forward.guardIsWhole());
    Scratch backward(attentionBackwardScratchBytes<C>(maxLength, workers, args.positionBuckets,
                                                      args.timeBuckets));
    attentionBackward<C>(pool, args, gradients, backward.data());
    EXPECT_TRUE(backward.guardIsWhole());
  }
};

/// Runs the kernels over lists of the given lengths and compares everything.
template <class C>
void checkAttention(const std::vector<int64_t> &lengths, uint64_t seed, int threads = 2) {
  SCOPED_TRACE(::testing::Message()
               << "heads " << C::Heads << " qk " << C::Qk << " v " << C::V << " softmax "
               << (C::Score == ScoreKind::softmax) << " causal " << C::Causal << " window "
               << C::HasWindow << " position " << C::PositionBias << " time " << C::TimeBias
               << " dropout " << C::Dropout << " masked " << C::Masked << " seed " << seed);
  Random random(seed);
  ReferenceConfig config = referenceConfig<C>();
  ReferenceInputs in = randomInputs(config, lengths, random);
  ReferenceResults expected = Reference(config, in).run(true);
  int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  Pool pool(threads);
  KernelRun<C> got(pool, in, random.below(3) * 5, longest + random.below(2) * 13);
  if constexpr (C::Bf16) {
    got.out.expectMostlyNear(expected.out, 4e-6, "out");
    got.dQ.expectMostlyNear(expected.dQ, 1e-5, "dq");
    got.dK.expectMostlyNear(expected.dK, 1e-5, "dk");
    got.dV.expectMostlyNear(expected.dV, 1e-5, "dv");
    if (C::PositionBias)
      got.dPositionBias.expectMostlyNear(expected.dPositionBias, 2e-5, "position bias");
    if (C::TimeBias)
      got.dTimeBias.expectMostlyNear(expected.dTimeBias, 2e-5, "time bias");
    return;
  }
  got.out.expectNear(expected.out, 4e-6, "out");
  if (C::Score == ScoreKind::softmax)
    got.logSumExp.expectNear(expected.logSumExp, 2e-6, "log sum exp");
  got.dQ.expectNear(expected.dQ, 1e-5, "dq");
  got.dK.expectNear(expected.dK, 1e-5, "dk");
  got.dV.expectNear(expected.dV, 1e-5, "dv");
  // A bias's gradient is a sum over all pairs: of giants, a million.
  const double biasTolerance = longest > 960 ? 4e-5 : 2e-5;
  if (C::PositionBias)
    got.dPositionBias.expectNear(expected.dPositionBias, biasTolerance, "position bias");
  if (C::TimeBias)
    got.dTimeBias.expectNear(expected.dTimeBias, biasTolerance, "time bias");
}

} // namespace test
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_TEST_RUNTIME_KERNELS_ATTENTION_HARNESS_H
