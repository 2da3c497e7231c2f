//===- attention_testing.h - Attention kernels against the reference -*- C++ -*-===//
//
// Runs the device's attention, on the device or on the host (Simt/simt.h), and
// holds it to the naive reference in double precision.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_ATTENTION_TESTING_H
#define GENREC_TEST_CUDA_ATTENTION_TESTING_H

#include "attention_reference.h"
#include "device_copy.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/attention/attention.h"

#include <functional>

namespace genrec::rt::cuda::testing {

using kernels::test::Random;
using kernels::test::ReferenceConfig;
using kernels::test::ReferenceInputs;
using kernels::test::ReferenceResults;
using test::testStream;

/// Device memory with a copy on the host.
template <class T> class DeviceArray {
public:
  explicit DeviceArray(std::vector<T> values) : host(std::move(values)) {
    GENREC_CUDA_CHECK(cudaMalloc(&device, bytes()));
    GENREC_CUDA_CHECK(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice));
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
  DeviceArray(const DeviceArray &) = delete;
  ~DeviceArray() { (void)cudaFree(device); }
  T *data() { return device; }
  const std::vector<T> &read() {
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    GENREC_CUDA_CHECK(cudaMemcpy(host.data(), device, bytes(), cudaMemcpyDeviceToHost));
    return host;
  }

private:
  size_t bytes() const { return host.size() * sizeof(T); }
  std::vector<T> host;
  T *device = nullptr;
};

/// A matrix on the device, in rows of a wider buffer; behind the last row there is one more. Nobody
/// may write what is `outside`.
template <class E> struct DeviceMatrix {
  int64_t rows, columns, ld;
  DeviceArray<E> memory;

  DeviceMatrix(const std::vector<double> &dense, int64_t rows, int64_t columns, int64_t gap,
               float outside = 7.5f)
      : rows(rows), columns(columns), ld(columns + gap), memory(values(dense, outside)) {}

  std::vector<E> values(const std::vector<double> &dense, float outside) const {
    std::vector<E> result(static_cast<size_t>((rows + 1) * ld), fromFloat<E>(outside));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        result[static_cast<size_t>(i * ld + j)] = fromFloat<E>(
            dense.empty() ? NAN : static_cast<float>(dense[static_cast<size_t>(i * columns + j)]));
    return result;
  }

  void expectNear(const std::vector<double> &dense, double tolerance, const char *what) {
    const std::vector<E> &got = memory.read();
    double most = 0;
    for (double x : dense)
      most = std::max(most, std::fabs(x));
    for (int64_t i = 0; i < (rows + 1) * ld; ++i) {
      float value = toFloat(got[static_cast<size_t>(i)]);
      if (i / ld == rows || i % ld >= columns)
        ASSERT_EQ(value, 7.5f) << what << " was written outside, row " << i / ld << " column "
                               << i % ld;
      else
        ASSERT_NEAR(value, dense[static_cast<size_t>(i / ld * columns + i % ld)],
                    tolerance * (1 + most))
            << what << " row " << i / ld << " column " << i % ld;
    }
  }
};

/// Makes the inputs values that elements can hold.
template <class E> void roundInputs(ReferenceInputs &in) {
  for (std::vector<double> *values : {&in.q, &in.k, &in.v, &in.dOut})
    for (double &x : *values)
      x = toFloat(fromFloat<E>(static_cast<float>(x)));
}

/// The calls of one configuration at one level. What holds them to the reference is compiled once
/// for an element, not for each configuration.
template <class E> struct AttentionCalls {
  ReferenceConfig config; ///< heads: 1
  AttentionLevel level;
  int64_t (*forwardBytes)(const AttentionArgs<E> &);
  void (*forward)(const AttentionArgs<E> &, void *memory, cudaStream_t);
  int64_t (*backwardBytes)(const AttentionArgs<E> &);
  void (*backward)(const AttentionArgs<E> &, const AttentionGradients<E> &, void *memory,
                   cudaStream_t);

  void run(const AttentionArgs<E> &args, const AttentionGradients<E> &gradients) const {
    test::Scratch list(forwardBytes(args)), space(backwardBytes(args));
    forward(args, list.data(), testStream());
    backward(args, gradients, space.data(), testStream());
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }

  ReferenceConfig withHeads(int64_t heads) const {
    ReferenceConfig result = config;
    result.heads = heads;
    return result;
  }
};

template <class C> constexpr ReferenceConfig referenceOf(int64_t heads) {
  return {heads,        C::Qk,           C::V,        C::Softmax, C::Causal,
          C::HasWindow, C::PositionBias, C::TimeBias, C::Dropout, C::Masked};
}
template <class C, AttentionLevel Level>
constexpr AttentionCalls<typename C::Element> kCallsOf = {referenceOf<C>(1),
                                                          Level,
                                                          attentionForwardBytes<C, Level>,
                                                          attentionForward<C, Level>,
                                                          attentionBackwardBytes<C, Level>,
                                                          attentionBackward<C, Level>};

/// What the kernels of one level make of the inputs.
template <class E> struct DeviceRun {
  DeviceMatrix<E> q, k, v, dOut, out, dQ, dK, dV;
  DeviceMatrix<float> logSumExp, dPositionBias, dTimeBias;

  DeviceRun(const AttentionCalls<E> &calls, int64_t heads, const ReferenceInputs &in, int64_t gap,
            int64_t maxLength)
      : DeviceRun(calls, heads, heads * calls.config.qk, heads * calls.config.v, in, gap,
                  maxLength) {}

private:
  /// NaN is seen in the results of who reads a row behind the last list, even if it multiplies it
  /// by 0. On Hopper tiles are copied as a whole, and rows behind the last one are finite.
  static float outside(const AttentionCalls<E> &calls) {
    return calls.level == AttentionLevel::hopper ? 7.5f : NAN;
  }

  DeviceRun(const AttentionCalls<E> &calls, int64_t heads, int64_t qk, int64_t vSize,
            const ReferenceInputs &in, int64_t gap, int64_t maxLength)
      : q(in.q, in.rows(), qk, gap, outside(calls)), k(in.k, in.rows(), qk, gap, outside(calls)),
        v(in.v, in.rows(), vSize, gap, outside(calls)),
        dOut(in.dOut, in.rows(), vSize, gap, outside(calls)), out({}, in.rows(), vSize, gap),
        dQ({}, in.rows(), qk, gap), dK({}, in.rows(), qk, gap), dV({}, in.rows(), vSize, gap),
        logSumExp({}, in.rows(), heads, 0),
        dPositionBias({}, 1, static_cast<int64_t>(in.positionBias.size()), 0),
        dTimeBias({}, 1, static_cast<int64_t>(in.timeBias.size()), 0) {
    DeviceArray<int64_t> offsets(in.offsets), timestamps(in.timestamps);
    DeviceArray<int64_t> targets(in.targets);
    DeviceArray<uint64_t> identity(in.identity);
    DeviceArray<float> position({in.positionBias.begin(), in.positionBias.end()});
    DeviceArray<float> time({in.timeBias.begin(), in.timeBias.end()});
    AttentionArgs<E> args;
    args.parents = static_cast<int64_t>(in.offsets.size()) - 1;
    // Every other call knows a bound of the lists, and the device their number.
    DeviceArray<genrec_domain> above(
        {genrec_domain{args.parents, args.parents + 3, nullptr, nullptr, nullptr, nullptr,
                       args.parents, nullptr}});
    DeviceArray<genrec_domain> domain(
        {genrec_domain{in.rows(), in.rows() + 1, offsets.data(), nullptr, nullptr, above.data(),
                       maxLength, nullptr}});
    if (in.rows() % 2) {
      args.domain = domain.data();
      args.parents += 3;
    }
    args.heads = heads;
    args.offsets = offsets.data();
    args.maxLength = maxLength;
    args.rows = in.rows() + 1;
    args.q = q.memory.data(), args.ldQ = q.ld;
    args.k = k.memory.data(), args.ldK = k.ld;
    args.v = v.memory.data(), args.ldV = v.ld;
    args.out = out.memory.data(), args.ldOut = out.ld;
    args.logSumExp = logSumExp.memory.data();
    args.scale = static_cast<float>(in.scale);
    args.fixedLength = static_cast<float>(in.fixedLength);
    args.window = in.window;
    args.contextual = in.contextual;
    args.targets = targets.data();
    args.positionBias = position.data();
    args.positionBuckets = static_cast<int64_t>(in.positionBias.size());
    args.timeBias = time.data();
    args.timeBuckets = static_cast<int64_t>(in.timeBias.size());
    args.timestamps = timestamps.data();
    args.ticksPerSecond = in.ticksPerSecond;
    args.nextEventTime = in.nextEventTime;
    args.identity = identity.data();
    args.random = in.random;
    args.dropProbability = static_cast<float>(in.dropProbability);
    AttentionGradients<E> gradients;
    gradients.dOut = dOut.memory.data(), gradients.ldDOut = dOut.ld;
    gradients.dQ = dQ.memory.data(), gradients.ldDQ = dQ.ld;
    gradients.dK = dK.memory.data(), gradients.ldDK = dK.ld;
    gradients.dV = dV.memory.data(), gradients.ldDV = dV.ld;
    gradients.dPositionBias = dPositionBias.memory.data();
    gradients.dTimeBias = dTimeBias.memory.data();
    calls.run(args, gradients);
  }
};

/// Random inputs for lists of the given lengths.
template <class E>
ReferenceInputs inputsOf(const AttentionCalls<E> &calls, int64_t heads,
                         const std::vector<int64_t> &lengths, Random &random) {
  ReferenceInputs in = kernels::test::randomInputs(calls.withHeads(heads), lengths, random);
  roundInputs<E>(in);
  return in;
}

using ChangeInputs = std::function<void(ReferenceInputs &)>;

/// Both directions against the reference. With bfloat16, results, and in the
/// tensor core kernels weights and gradients of scores, carry 8 bits. `change` may change inputs.
template <class E>
void checkCalls(const AttentionCalls<E> &calls, int64_t heads, const std::vector<int64_t> &lengths,
                uint64_t seed, const ChangeInputs &change) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  ReferenceInputs in = inputsOf(calls, heads, lengths, random);
  change(in);
  const ReferenceConfig config = calls.withHeads(heads);
  ReferenceResults expected = attentionReference(config, in);
  int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  const bool half = sizeof(E) == 2;
  DeviceRun<E> got(calls, heads, in, random.below(3) * 8, longest + random.below(2) * 13);
#if defined(GENREC_SIMT)
  constexpr double kSiluTolerance = 4e-3;
#else
  // tanh.approx may say -1 up to 2^-11 before: weights near -2e-3 are 0, errors of one sign (an
  // H200 needs 4.5e-3).
  constexpr double kSiluTolerance = 6e-3;
#endif
  const double outTolerance = !half ? 4e-6 : config.softmax ? 4e-3 : kSiluTolerance;
  got.out.expectNear(expected.out, outTolerance, "out");
  if (config.softmax)
    got.logSumExp.expectNear(expected.logSumExp, half ? 1e-5 : 2e-6, "log sum exp");
  got.dQ.expectNear(expected.dQ, half ? 6e-3 : 1e-5, "dq");
  got.dK.expectNear(expected.dK, half ? 6e-3 : 1e-5, "dk");
  got.dV.expectNear(expected.dV, half ? 6e-3 : 1e-5, "dv");
  // Softmax takes dO . out off the gradient of every score of a query, with out as it was rounded
  // to 8 bits: errors of one sign, which a bucket that many keys of a query fall into adds up.
  // (Floats and silu hold the biases' sums to more.)
  const double biasTolerance = !half                                  ? 2e-5
                               : config.softmax                       ? 8e-2
                               : calls.level == AttentionLevel::plain ? 2e-4
                                                                      : 6e-3;
  if (config.positionBias)
    got.dPositionBias.expectNear(expected.dPositionBias, biasTolerance, "position bias");
  if (config.timeBias)
    got.dTimeBias.expectNear(expected.dTimeBias, biasTolerance, "time bias");
}

template <class C, AttentionLevel Level>
void checkAttention(
    int64_t heads, const std::vector<int64_t> &lengths, uint64_t seed,
    const ChangeInputs &change = [](ReferenceInputs &) {}) {
  checkCalls(kCallsOf<C, Level>, heads, lengths, seed, change);
}

/// Lists that are cut at a length, of which none has a row and there is room for none: gradients of
/// biases are zeros, and nothing else is touched.
template <class C, AttentionLevel Level> void checkNoRows() {
  const auto &calls = kCallsOf<C, Level>;
  DeviceArray<int64_t> offsets(std::vector<int64_t>(4));
  DeviceArray<genrec_domain> above(
      {genrec_domain{3, 16, nullptr, nullptr, nullptr, nullptr, 3, nullptr}});
  DeviceArray<genrec_domain> domain(
      {genrec_domain{0, 0, offsets.data(), nullptr, nullptr, above.data(), 50, nullptr}});
  const std::vector<double> zeros(7);
  DeviceMatrix<float> dPositionBias({}, 1, 7, 0), dTimeBias({}, 1, 7, 0);
  AttentionArgs<typename C::Element> args;
  args.domain = domain.data();
  args.parents = 16, args.heads = 2, args.maxLength = 50, args.offsets = offsets.data();
  args.positionBuckets = args.timeBuckets = 7;
  args.ldQ = args.ldK = args.heads * C::Qk, args.ldV = args.ldOut = args.heads * C::V;
  AttentionGradients<typename C::Element> gradients;
  gradients.ldDOut = gradients.ldDV = args.ldV, gradients.ldDQ = gradients.ldDK = args.ldQ;
  gradients.dPositionBias = dPositionBias.memory.data();
  gradients.dTimeBias = dTimeBias.memory.data();
  calls.run(args, gradients);
  dPositionBias.expectNear(zeros, 0, "position bias");
  dTimeBias.expectNear(zeros, 0, "time bias");
}

/// What is not finite in a query or in the gradient of a result is seen in every gradient that it
/// is part of, and nowhere else. `C` has both biases.
template <class C, AttentionLevel Level> void checkNotFinite() {
  const auto &calls = kCallsOf<C, Level>;
  struct Place {
    std::vector<int64_t> lengths;
    int64_t row;
  };
  // The second list's first row, and one behind several tiles of a list.
  for (const auto &[lengths, wrong] : {Place{{40, 24}, 40}, Place{{300}, 270}})
    for (bool inQuery : {true, false}) {
      Random random(8);
      ReferenceInputs in = inputsOf(calls, 1, lengths, random);
      (inQuery ? in.q : in.dOut)[static_cast<size_t>(C::Qk * wrong)] = NAN;
      DeviceRun<typename C::Element> got(calls, 1, in, 0, lengths[0]);
      const auto &dQ = got.dQ.memory.read();
      for (int64_t row = 0; row <= wrong; ++row)
        EXPECT_EQ(std::isnan(toFloat(dQ[static_cast<size_t>(C::Qk * row)])), row == wrong) << row;
      EXPECT_TRUE(std::isnan(got.dPositionBias.memory.read()[0]));
      EXPECT_TRUE(std::isnan(got.dTimeBias.memory.read()[0]));
    }
}

} // namespace genrec::rt::cuda::testing

#endif // GENREC_TEST_CUDA_ATTENTION_TESTING_H
