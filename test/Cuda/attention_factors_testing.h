//===- attention_factors_testing.h - Attention of a model's floats, set up -*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_ATTENTION_FACTORS_TESTING_H
#define GENREC_TEST_CUDA_ATTENTION_FACTORS_TESTING_H

#include "attention_testing.h"

#include "genrec_rt/kernels/cuda/attention/bf16_attention.h"
#include "genrec_rt/kernels/cuda/factors.h"

#include <algorithm>

namespace genrec::rt::cuda::testing {

/// q, k, v and dOut as floats; the reference gets them rounded.
struct FloatInputs {
  DeviceMatrix<float> q, k, v, dOut;

  FloatInputs(int64_t qk, int64_t vSize, const ReferenceInputs &in)
      : q(in.q, in.rows(), qk, 3), k(in.k, in.rows(), qk, 1), v(in.v, in.rows(), vSize, 5),
        dOut(in.dOut, in.rows(), vSize, 1) {}
};

/// Numbers that bfloat16 does not hold.
inline void spoil(ReferenceInputs &in) {
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

/// A call with room for more rows and lists than there are, in matrices with odd leading
/// dimensions. Factors are floats, or were rounded before.
struct ModelCall {
  Random random;
  ReferenceConfig config;
  ReferenceInputs drawn, in; ///< `in`: as factors
  int64_t heads, qk, vSize, rows, capacity, parents, longest;
  FloatInputs floats;
  RoundedInputs rounded;
  DeviceMatrix<float> out, dQ, dK, dV, logSumExp, dPosition;
  DeviceArray<int64_t> offsets;
  DeviceArray<float> position;
  DeviceArray<genrec_domain> above, domain;
  AttentionArgs<Bf16> args;
  kernels::AttentionArgs own;
  kernels::AttentionGradients gradients;
  RoundedBefore factors;

  ModelCall(const ReferenceConfig &config, const Case &of)
      : random(of.seed), config(config), drawn(draw(config, of, random)), in(asFactors(drawn)),
        heads(config.heads), qk(heads * config.qk), vSize(heads * config.v), rows(in.rows()),
        capacity(rows + 1), parents(static_cast<int64_t>(in.offsets.size()) - 1),
        longest(*std::max_element(of.lengths.begin(), of.lengths.end())), floats(qk, vSize, drawn),
        rounded(qk, vSize, capacity, in), out({}, rows, vSize, 1), dQ({}, rows, qk, 3),
        dK({}, rows, qk, 1), dV({}, rows, vSize, 1), logSumExp({}, rows, heads, 0),
        dPosition({}, 1, static_cast<int64_t>(in.positionBias.size()), 0), offsets(in.offsets),
        position({in.positionBias.begin(), in.positionBias.end()}),
        above({genrec_domain{parents, parents + 3, nullptr, nullptr, nullptr, nullptr, parents,
                             nullptr}}),
        domain({genrec_domain{rows, capacity, offsets.data(), nullptr, nullptr, above.data(),
                              longest, nullptr}}),
        factors(rounded.before()) {
    setArgs();
    setFloats();
    if (!of.before)
      return;
    own.q = own.k = own.v = gradients.dOut = nullptr;
    own.ldQ = rounded.q.ld, own.ldK = rounded.k.ld, own.ldV = rounded.v.ld;
    gradients.ldDOut = rounded.dOut.ld;
  }

  /// Memory whose old bytes are NaN.
  static DeviceArray<unsigned char> room(int64_t bytes) {
    return DeviceArray<unsigned char>(
        std::vector<unsigned char>(static_cast<size_t>(bytes) + 1, 0xFF));
  }

private:
  static ReferenceInputs draw(const ReferenceConfig &config, const Case &of, Random &random) {
    ReferenceInputs in = kernels::test::randomInputs(config, of.lengths, random);
    spoil(in);
    return in;
  }
  static ReferenceInputs asFactors(ReferenceInputs in) {
    roundInputs<Bf16>(in);
    return in;
  }
  void setArgs() {
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
  }
  void setFloats() {
    own.q = floats.q.memory.data(), own.ldQ = floats.q.ld;
    own.k = floats.k.memory.data(), own.ldK = floats.k.ld;
    own.v = floats.v.memory.data(), own.ldV = floats.v.ld;
    own.out = out.memory.data(), own.ldOut = out.ld;
    gradients.dOut = floats.dOut.memory.data(), gradients.ldDOut = floats.dOut.ld;
    gradients.dQ = dQ.memory.data(), gradients.ldDQ = dQ.ld;
    gradients.dK = dK.memory.data(), gradients.ldDK = dK.ld;
    gradients.dV = dV.memory.data(), gradients.ldDV = dV.ld;
    gradients.dPositionBias = dPosition.memory.data();
  }
};

} // namespace genrec::rt::cuda::testing

#endif // GENREC_TEST_CUDA_ATTENTION_FACTORS_TESTING_H
