// Attention of a model's floats with factors of bfloat16, at every level: heads that fill no
// multiple of 8, results that are floats, matrices with odd leading dimensions, room for more rows.

#include "attention_testing.h"

#include "genrec_rt/kernels/cuda/attention/bf16_attention.h"
#include "genrec_rt/kernels/cuda/factors.h"

namespace {

using namespace genrec::rt::cuda;
using namespace genrec::rt::cuda::testing;

/// q, k, v and dOut as floats; the reference gets them rounded.
struct FloatInputs {
  DeviceMatrix<float> q, k, v, dOut;

  FloatInputs(int64_t qk, int64_t vSize, const ReferenceInputs &in)
      : q(in.q, in.rows(), qk, 3), k(in.k, in.rows(), qk, 1), v(in.v, in.rows(), vSize, 5),
        dOut(in.dOut, in.rows(), vSize, 1) {}
};

/// Numbers that bfloat16 does not hold.
void spoil(ReferenceInputs &in) {
  for (std::vector<double> *values : {&in.q, &in.k, &in.v, &in.dOut})
    for (double &x : *values)
      x = static_cast<float>(x * 1.00123);
}

/// A matrix of `capacity` rows of bfloat16, rounded before, with zeros behind the last row.
struct RoundedMatrix {
  int64_t ld;
  DeviceArray<Bf16> memory;

  RoundedMatrix(const std::vector<double> &dense, int64_t columns, int64_t capacity)
      : ld(columns + 8), memory(values(dense, columns, capacity)) {}

  std::vector<Bf16> values(const std::vector<double> &dense, int64_t columns,
                           int64_t capacity) const {
    std::vector<Bf16> result(static_cast<size_t>(capacity * ld), Bf16{0});
    for (int64_t i = 0; i < static_cast<int64_t>(dense.size()); ++i)
      result[static_cast<size_t>(i / columns * ld + i % columns)] =
          bf16Factor(static_cast<float>(dense[static_cast<size_t>(i)]));
    return result;
  }
};

/// q, k, v and dOut, rounded before.
struct RoundedInputs {
  RoundedMatrix q, k, v, dOut;

  RoundedInputs(int64_t qk, int64_t vSize, int64_t capacity, const ReferenceInputs &in)
      : q(in.q, qk, capacity), k(in.k, qk, capacity), v(in.v, vSize, capacity),
        dOut(in.dOut, vSize, capacity) {}

  RoundedBefore before() {
    return {q.memory.data(), k.memory.data(), v.memory.data(), dOut.memory.data()};
  }
};

/// Lists, and whether factors were rounded before.
struct Case {
  std::vector<int64_t> lengths;
  uint64_t seed;
  bool before = false;
};

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
  Random random(of.seed);
  const ReferenceConfig &config = calls.config;
  const int64_t heads = config.heads, qk = heads * config.qk, vSize = heads * config.v;
  ReferenceInputs in = genrec::rt::kernels::testing::randomInputs(config, of.lengths, random);
  spoil(in);
  FloatInputs floats(qk, vSize, in);
  roundInputs<Bf16>(in);
  const ReferenceResults expected = attentionReference(config, in);

  const int64_t rows = in.rows(), capacity = rows + 1;
  DeviceMatrix<float> out({}, rows, vSize, 1), dQ({}, rows, qk, 3), dK({}, rows, qk, 1),
      dV({}, rows, vSize, 1), logSumExp({}, rows, heads, 0);
  DeviceMatrix<float> dPosition({}, 1, static_cast<int64_t>(in.positionBias.size()), 0);
  DeviceArray<int64_t> offsets(in.offsets);
  DeviceArray<float> position({in.positionBias.begin(), in.positionBias.end()});
  const auto parents = static_cast<int64_t>(in.offsets.size()) - 1,
             longest = *std::max_element(of.lengths.begin(), of.lengths.end());
  DeviceArray<genrec_domain> above(
      {genrec_domain{parents, parents + 3, nullptr, nullptr, nullptr, nullptr, parents, nullptr}});
  DeviceArray<genrec_domain> domain({genrec_domain{rows, capacity, offsets.data(), nullptr, nullptr,
                                                   above.data(), longest, nullptr}});
  AttentionArgs<Bf16> args;
  args.domain = domain.data();
  args.parents = parents + 3;
  args.heads = heads;
  args.offsets = offsets.data();
  args.maxLength = longest + 5;
  args.rows = capacity;
  args.logSumExp = logSumExp.memory.data();
  args.scale = static_cast<float>(in.scale);
  args.fixedLength = static_cast<float>(in.fixedLength);
  args.positionBias = position.data();
  args.positionBuckets = static_cast<int64_t>(in.positionBias.size());

  genrec::rt::kernels::AttentionArgs own;
  own.q = floats.q.memory.data(), own.ldQ = floats.q.ld;
  own.k = floats.k.memory.data(), own.ldK = floats.k.ld;
  own.v = floats.v.memory.data(), own.ldV = floats.v.ld;
  own.out = out.memory.data(), own.ldOut = out.ld;
  genrec::rt::kernels::AttentionGradients gradients;
  gradients.dOut = floats.dOut.memory.data(), gradients.ldDOut = floats.dOut.ld;
  gradients.dQ = dQ.memory.data(), gradients.ldDQ = dQ.ld;
  gradients.dK = dK.memory.data(), gradients.ldDK = dK.ld;
  gradients.dV = dV.memory.data(), gradients.ldDV = dV.ld;
  gradients.dPositionBias = dPosition.memory.data();

  RoundedInputs rounded(qk, vSize, capacity, in);
  const RoundedBefore factors = rounded.before(), *before = of.before ? &factors : nullptr;
  if (before) {
    own.q = own.k = own.v = gradients.dOut = nullptr;
    own.ldQ = rounded.q.ld, own.ldK = rounded.k.ld, own.ldV = rounded.v.ld;
    gradients.ldDOut = rounded.dOut.ld;
  }

  auto room = [](int64_t bytes) { // whose old bytes are NaN
    return std::vector<unsigned char>(static_cast<size_t>(bytes) + 1, 0xFF);
  };
  DeviceArray<unsigned char> forward(room(calls.forwardBytes(args, before))),
      backward(room(calls.backwardBytes(args, before)));
  calls.forward(args, own, forward.data(), testStream(), before);
  calls.backward(args, own, gradients, backward.data(), testStream(), before);
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());

  // A result is a float: only weights carry 8 bits, whose errors have no common sign.
  out.expectNear(expected.out, 2e-3, "out");
  if (config.softmax)
    logSumExp.expectNear(expected.logSumExp, 1e-5, "log sum exp");
  dQ.expectNear(expected.dQ, 4e-3, "dq");
  dK.expectNear(expected.dK, 4e-3, "dk");
  dV.expectNear(expected.dV, 4e-3, "dv");
  if (config.positionBias)
    dPosition.expectNear(expected.dPositionBias, 6e-3, "position bias");
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
