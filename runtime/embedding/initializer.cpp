//===- initializer.cpp - Initial values of rows and parameters ------------===//

#include "genrec_rt/kernels/cpu/init.h"
#include "genrec_rt/kinds.h"
#include "genrec_rt/store.h"

#include <cmath>

namespace genrec::rt {

/// Xavier: Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010; `scale` is the gain.
InitialDistribution RowInitializer::distribution() const {
  const auto shaped = [](kernels::Distribution kind, double mean, double scale) {
    return InitialDistribution{static_cast<int32_t>(kind), static_cast<float>(mean),
                               static_cast<float>(scale)};
  };
  double fans = fanIn + fanOut;
  switch (kind) {
  case GENREC_INIT_CONSTANT:
    // `scale` of a constant is the constant itself.
    return shaped(kernels::Distribution::constant, scale, 0);
  case GENREC_INIT_NORMAL:
    return shaped(kernels::Distribution::normal, 0, scale);
  case GENREC_INIT_TRUNCATED_NORMAL:
    return shaped(kernels::Distribution::truncatedNormal, 0, scale);
  case GENREC_INIT_UNIFORM:
    return shaped(kernels::Distribution::uniform, 0, scale);
  case GENREC_INIT_XAVIER_UNIFORM:
    return shaped(kernels::Distribution::uniform, 0, scale * std::sqrt(6.0 / fans));
  case GENREC_INIT_XAVIER_NORMAL:
    return shaped(kernels::Distribution::normal, 0, scale * std::sqrt(2.0 / fans));
  default:
    return shaped(kernels::Distribution::zeros, 0, 0);
  }
}

void RowInitializer::fill(uint64_t id, int64_t columns, float *out) const {
  const InitialDistribution values = distribution();
  kernels::initialRow(static_cast<kernels::Distribution>(values.kind), values.mean, values.scale, seed,
                      nameHash, id, columns, out);
}

} // namespace genrec::rt
