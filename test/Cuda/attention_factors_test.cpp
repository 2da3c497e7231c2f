// Attention of a model's floats with factors of bfloat16, at every level: heads that fill no
// multiple of 8, results that are floats, matrices with odd leading dimensions, room for more rows.

#include "attention_factors_testing.h"

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

/// The calls of one configuration at one level.
struct FactorCalls {
  ReferenceConfig config;
  AttentionLevel level;
  int64_t (*forwardBytes)(const AttentionArgs<Bf16> &, const RoundedBefore *);
  void (*forward)(AttentionArgs<Bf16>, const genrec::rt::kernels::AttentionArgs &, void *memory,
                  cudaStream_t, const RoundedBefore *);
  int64_t (*backwardBytes)(const AttentionArgs<Bf16> &, const RoundedBefore *);
  void (*backward)(AttentionArgs<Bf16>, const genrec::rt::kernels::AttentionArgs &,
                   const genrec::rt::kernels::AttentionGradients &, void *memory, cudaStream_t,
                   const RoundedBefore *);
};

void checkCalls(const FactorCalls &calls, const Case &of) {
  SCOPED_TRACE("level " + std::to_string(static_cast<int>(calls.level)) +
               (of.before ? ", before" : ""));
  ModelCall call(calls.config, of);
  const ReferenceConfig &config = call.config;
  const ReferenceResults expected = attentionReference(config, call.in);
  const RoundedBefore *before = of.before ? &call.factors : nullptr;
  auto forward = ModelCall::room(calls.forwardBytes(call.args, before)),
       backward = ModelCall::room(calls.backwardBytes(call.args, before));
  calls.forward(call.args, call.own, forward.data(), testStream(), before);
  calls.backward(call.args, call.own, call.gradients, backward.data(), testStream(), before);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());

  // A result is a float: only weights carry 8 bits, whose errors have no common sign.
  call.out.expectNear(expected.out, 2e-3, "out");
  if (config.softmax)
    call.logSumExp.expectNear(expected.logSumExp, 1e-5, "log sum exp");
  call.dQ.expectNear(expected.dQ, 4e-3, "dq");
  call.dK.expectNear(expected.dK, 4e-3, "dk");
  call.dV.expectNear(expected.dV, 4e-3, "dv");
  if (config.positionBias)
    call.dPosition.expectNear(expected.dPositionBias, 6e-3, "position bias");
}

template <int Heads, int Qk, int V, ScoreKind Score, unsigned Features, AttentionLevel Level>
void check(const Case &of) {
  using Calls = Bf16Attention<Heads, Qk, V, Score, Features, Level>;
  checkCalls({referenceOf<AttentionConfig<Bf16, Qk, V, Score, Features>>(Heads), Level,
              Calls::forwardBytes, Calls::forward, Calls::backwardBytes, Calls::backward},
             of);
}

template <int Heads, int Qk, int V, ScoreKind Score, unsigned Features>
void checkAll(const Case &of) {
  check<Heads, Qk, V, Score, Features, AttentionLevel::plain>(of);
  check<Heads, Qk, V, Score, Features, AttentionLevel::mma>(of);
  check<Heads, Qk, V, Score, Features, AttentionLevel::hopper>(of);
}

// A binary for several devices has what all of them can do, whichever is the newest.
using detail::levelOfAll;
static_assert(levelOfAll({900}) == AttentionLevel::hopper);
static_assert(levelOfAll({900, 1000}) == AttentionLevel::mma);
static_assert(levelOfAll({800, 900, 1000}) == AttentionLevel::mma);
static_assert(levelOfAll({750, 900}) == AttentionLevel::plain);

TEST(AttentionFactors, HeadsOfAnySize) {
  checkAll<2, 25, 25, ScoreKind::silu, kCausal + kPositionBias>({{0, 1, 17, 70}, 1});
  checkAll<2, 25, 13, ScoreKind::softmax, kCausal>({{3, 65, 0}, 2});
  checkAll<3, 8, 20, ScoreKind::softmax, 0>({{5, 9}, 3});
}

/// Heads that need no room; factors are rounded by the call, or were before.
TEST(AttentionFactors, ThatWereRoundedBefore) {
  for (bool before : {false, true}) {
    checkAll<2, 16, 32, ScoreKind::softmax, kCausal + kPositionBias>({{0, 1, 17, 70}, 4, before});
    checkAll<1, 32, 32, ScoreKind::silu, kCausal>({{64, 65}, 5, before});
  }
}

TEST(AttentionFactors, HeadsWiderThanTensorCoresTake) {
  check<1, 260, 8, ScoreKind::silu, kCausal, AttentionLevel::mma>({{3, 20}, 6});
}

} // namespace
