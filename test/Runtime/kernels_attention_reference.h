//===- kernels_attention_reference.h - Attention, naive ---------*- C++ -*-===//
//
// Attention as attention_args.h defines it, in double precision, pair by pair,
// forward and backward, with its configuration as values.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_KERNELS_ATTENTION_REFERENCE_H
#define GENREC_TEST_RUNTIME_KERNELS_ATTENTION_REFERENCE_H

#include "kernels_bf16_reference.h"

#include <algorithm>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace test {

struct ReferenceConfig {
  int64_t heads, qk, v;
  bool softmax, causal, hasWindow, positionBias, timeBias, dropout, masked;
  bool bf16 = false; ///< factors of products are rounded to bfloat16
};

/// Inputs; matrices are dense, [rows, heads * size].
struct ReferenceInputs {
  std::vector<int64_t> offsets, targets;
  std::vector<double> q, k, v, dOut, positionBias, timeBias;
  std::vector<int64_t> timestamps;
  std::vector<uint64_t> identity;
  double scale = 1, fixedLength = 0, dropProbability = 0;
  int64_t window = 0, contextual = 0, ticksPerSecond = 1;
  bool nextEventTime = false;
  RandomStream random{};
  int64_t rows() const { return offsets.back(); }
};

/// Random inputs whose values are floats, for lists of the given lengths.
inline ReferenceInputs randomInputs(const ReferenceConfig &c, const std::vector<int64_t> &lengths,
                                    Random &random) {
  ReferenceInputs in;
  in.offsets = {0};
  for (int64_t n : lengths)
    in.offsets.push_back(in.offsets.back() + n);
  auto fill = [&](std::vector<double> &x, int64_t count, double scale) {
    x.resize(static_cast<size_t>(count));
    for (double &value : x)
      value = static_cast<float>(scale * random.real());
  };
  double spread = 2 / std::sqrt(std::sqrt(static_cast<double>(c.qk)));
  fill(in.q, in.rows() * c.heads * c.qk, spread);
  fill(in.k, in.rows() * c.heads * c.qk, spread);
  fill(in.v, in.rows() * c.heads * c.v, 1);
  fill(in.dOut, in.rows() * c.heads * c.v, 1);
  // Fewer buckets than distances at times, so that both ends are clamped.
  fill(in.positionBias, 2 * random.below(60) + 1, 1);
  fill(in.timeBias, 1 + random.below(64), 1);
  for (size_t p = 0; p < lengths.size(); ++p) {
    int64_t now = 978300000 + random.below(1000000);
    for (int64_t i = 0; i < lengths[p]; ++i) {
      // Mostly sorted, in bursts; now and then out of order.
      now += random.below(8) ? random.below(100) : random.below(10000000) - 100000;
      in.timestamps.push_back(now);
    }
  }
  for (int64_t i = 0; i < in.rows(); ++i)
    in.identity.push_back(random.word());
  in.scale = static_cast<float>(0.5 + 0.5 * random.real());
  in.fixedLength = random.below(2) ? 211 : 0;
  in.window = random.below(4) ? 1 + random.below(40) : 0;
  in.contextual = random.below(3) ? random.below(20) : 0;
  // None, some, all rows of a list, and more than it has.
  for (int64_t n : lengths)
    in.targets.push_back(random.below(3) ? random.below(n + 3) : 0);
  in.ticksPerSecond = random.below(2) ? 1 : 1000;
  in.nextEventTime = random.below(2);
  in.random = {random.word(), random.word(), static_cast<uint32_t>(random.word())};
  in.dropProbability = 0.25;
  return in;
}

struct ReferenceResults {
  std::vector<double> out, logSumExp, dQ, dK, dV, dPositionBias, dTimeBias;
};

class Reference {
public:
  Reference(const ReferenceConfig &c, const ReferenceInputs &in)
      : c(c), in(in), q(factors(in.q)), k(factors(in.k)), v(factors(in.v)), dOut(factors(in.dOut)) {
  }

  ReferenceResults run(bool backward) {
    size_t rows = static_cast<size_t>(in.rows());
    r.out.assign(rows * static_cast<size_t>(c.heads * c.v), 0);
    r.dV = r.out;
    r.dQ.assign(rows * static_cast<size_t>(c.heads * c.qk), 0);
    r.dK = r.dQ;
    r.logSumExp.assign(rows * static_cast<size_t>(c.heads), 0);
    r.dPositionBias.assign(in.positionBias.size(), 0);
    r.dTimeBias.assign(in.timeBias.size(), 0);
    for (size_t p = 0; p + 1 < in.offsets.size(); ++p)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t i = 0; i < in.offsets[p + 1] - in.offsets[p]; ++i)
          query(in.offsets[p], in.offsets[p + 1] - in.offsets[p], h, i, backward, historyOf(p));
    return r;
  }

  /// The rows of list p that are no targets.
  int64_t historyOf(size_t p) {
    int64_t length = in.offsets[p + 1] - in.offsets[p];
    return c.masked ? std::clamp<int64_t>(length - in.targets[p], 0, length) : length;
  }

private:
  const ReferenceConfig &c;
  const ReferenceInputs &in;
  const std::vector<double> q, k, v, dOut; ///< as factors of products
  ReferenceResults r;

  double factor(double x) const { return c.bf16 ? roundedToBf16(static_cast<float>(x)) : x; }
  std::vector<double> factors(std::vector<double> values) const {
    for (double &x : values)
      x = factor(x);
    return values;
  }
  double at(const std::vector<double> &x, int64_t row, int64_t h, int64_t size, int64_t e) {
    return x[static_cast<size_t>((row * c.heads + h) * size + e)];
  }
  bool sees(int64_t i, int64_t j, int64_t history) {
    if (c.masked && j >= history)
      return i == j;
    if (c.masked && (j < in.contextual || (i < in.contextual && i < history)))
      return true;
    return !(c.causal && j > i) &&
           !(c.hasWindow && in.window > 0 && std::llabs(i - j) >= in.window);
  }
  size_t positionIndex(int64_t i, int64_t j) {
    int64_t b = static_cast<int64_t>(in.positionBias.size());
    return static_cast<size_t>(std::clamp<int64_t>(j - i + (b - 1) / 2, 0, b - 1));
  }
  size_t timeIndex(int64_t first, int64_t n, int64_t i, int64_t j) {
    int64_t from = in.nextEventTime && i + 1 < n ? i + 1 : i;
    int64_t delta = in.timestamps[static_cast<size_t>(first + from)] -
                    in.timestamps[static_cast<size_t>(first + j)];
    int64_t seconds = delta < 0 ? 0 : delta / in.ticksPerSecond;
    double bucket =
        std::floor(std::log(static_cast<double>(std::max<int64_t>(1, seconds))) / 0.301);
    return static_cast<size_t>(
        std::min<double>(bucket, static_cast<double>(in.timeBias.size() - 1)));
  }
  bool keptAt(int64_t row, int64_t h, int64_t j) {
    return philoxWord(in.random, in.identity[static_cast<size_t>(row)],
                      static_cast<uint64_t>(h * (1 << 20) + j)) >=
           keepThreshold(static_cast<float>(in.dropProbability));
  }

  void query(int64_t first, int64_t n, int64_t h, int64_t i, bool backward, int64_t history) {
    const int64_t row = first + i;
    std::vector<int64_t> keys;
    std::vector<double> scores, weights, kept, dWeights;
    for (int64_t j = 0; j < n; ++j) {
      if (!sees(i, j, history))
        continue;
      double s = 0;
      for (int64_t e = 0; e < c.qk; ++e)
        s += at(q, row, h, c.qk, e) * at(k, first + j, h, c.qk, e);
      s *= in.scale;
      if (c.positionBias)
        s += in.positionBias[positionIndex(i, j)];
      if (c.timeBias)
        s += in.timeBias[timeIndex(first, n, i, j)];
      keys.push_back(j);
      scores.push_back(s);
      bool keep = !c.dropout || keptAt(row, h, j);
      kept.push_back(!keep ? 0 : c.dropout ? 1 / (1 - in.dropProbability) : 1);
    }
    double norm = in.fixedLength > 0 ? in.fixedLength : static_cast<double>(n);
    double most = *std::max_element(scores.begin(), scores.end()), total = 0;
    for (double s : scores)
      total += std::exp(s - most);
    // What is rounded: silu(s) or exp(s - most) forward, silu(s) or the softmax backward.
    std::vector<double> forward, backwardWeights;
    for (double s : scores) {
      double divisor = c.softmax ? total : norm;
      double weight = c.softmax ? std::exp(s - most) : s / (1 + std::exp(-s));
      forward.push_back(factor(weight) / divisor);
      backwardWeights.push_back(c.softmax ? factor(weight / divisor) : factor(weight) / divisor);
      weights.push_back(weight / divisor);
    }
    if (c.softmax)
      r.logSumExp[static_cast<size_t>(row * c.heads + h)] = most + std::log(total);
    double weighted = 0; // softmax: sum of weight times its gradient
    for (size_t x = 0; x < keys.size(); ++x) {
      double d = 0;
      for (int64_t e = 0; e < c.v; ++e) {
        size_t o = static_cast<size_t>((row * c.heads + h) * c.v + e);
        double value = at(v, first + keys[x], h, c.v, e);
        r.out[o] += forward[x] * kept[x] * value;
        if (backward)
          d += dOut[o] * value * kept[x];
      }
      dWeights.push_back(d);
      weighted += d * weights[x];
    }
    if (c.bf16) { // the gradient of out times out, of which nothing is rounded
      weighted = 0;
      for (int64_t e = 0; e < c.v; ++e) {
        size_t o = static_cast<size_t>((row * c.heads + h) * c.v + e);
        weighted += in.dOut[o] * r.out[o];
      }
    }
    if (!backward)
      return;
    for (size_t x = 0; x < keys.size(); ++x) {
      const int64_t j = keys[x], key = first + j;
      double sigmoid = 1 / (1 + std::exp(-scores[x]));
      double dScore = c.softmax ? weights[x] * (dWeights[x] - weighted)
                                : dWeights[x] / norm * sigmoid * (1 + scores[x] * (1 - sigmoid));
      if (c.positionBias)
        r.dPositionBias[positionIndex(i, j)] += dScore;
      if (c.timeBias)
        r.dTimeBias[timeIndex(first, n, i, j)] += dScore;
      for (int64_t e = 0; e < c.v; ++e)
        r.dV[static_cast<size_t>((key * c.heads + h) * c.v + e)] +=
            backwardWeights[x] * kept[x] * at(dOut, row, h, c.v, e);
      dScore = factor(dScore);
      for (int64_t e = 0; e < c.qk; ++e) {
        r.dQ[static_cast<size_t>((row * c.heads + h) * c.qk + e)] +=
            in.scale * dScore * at(k, key, h, c.qk, e);
        r.dK[static_cast<size_t>((key * c.heads + h) * c.qk + e)] +=
            in.scale * dScore * at(q, row, h, c.qk, e);
      }
    }
  }
};

} // namespace test
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_TEST_RUNTIME_KERNELS_ATTENTION_REFERENCE_H
