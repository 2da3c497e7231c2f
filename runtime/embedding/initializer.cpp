//===- initializer.cpp - Initial values of rows and parameters ------------===//

#include "genrec_rt/kernels/init.h"
#include "genrec_rt/store.h"

#include <cmath>

namespace genrec::rt {

namespace {

/// InitKind of the dialect (GenRecAttrs.td), as genrec_init_desc.kind.
enum DialectKind : int32_t {
  kZeros = 0,
  kConstant = 1,
  kNormal = 2,
  kTruncatedNormal = 3,
  kUniform = 4,
  kXavierUniform = 5,
  kXavierNormal = 6
};

} // namespace

/// Xavier: Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010; `scale` is the gain.
InitialDistribution RowInitializer::distribution() const {
  const auto shaped = [](kernels::InitKind kind, double mean, double scale) {
    return InitialDistribution{static_cast<int32_t>(kind), static_cast<float>(mean),
                               static_cast<float>(scale)};
  };
  double fans = fanIn + fanOut;
  switch (kind) {
  case kConstant:
    // `scale` of a constant is the constant itself.
    return shaped(kernels::InitKind::constant, scale, 0);
  case kNormal:
    return shaped(kernels::InitKind::normal, 0, scale);
  case kTruncatedNormal:
    return shaped(kernels::InitKind::truncatedNormal, 0, scale);
  case kUniform:
    return shaped(kernels::InitKind::uniform, 0, scale);
  case kXavierUniform:
    return shaped(kernels::InitKind::uniform, 0, scale * std::sqrt(6.0 / fans));
  case kXavierNormal:
    return shaped(kernels::InitKind::normal, 0, scale * std::sqrt(2.0 / fans));
  default:
    return shaped(kernels::InitKind::zeros, 0, 0);
  }
}

void RowInitializer::fill(uint64_t id, int64_t columns, float *out) const {
  const InitialDistribution values = distribution();
  kernels::initialRow(static_cast<kernels::InitKind>(values.kind), values.mean, values.scale, seed,
                      nameHash, id, columns, out);
}

} // namespace genrec::rt
