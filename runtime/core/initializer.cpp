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

struct Distribution {
  kernels::InitKind kind;
  double scale;
};

/// Xavier: Glorot and Bengio, "Understanding the difficulty of training deep
/// feedforward neural networks", AISTATS 2010; `scale` is the gain.
Distribution distributionOf(const RowInitializer &init) {
  double fans = init.fanIn + init.fanOut;
  switch (init.kind) {
  case kConstant:
    return {kernels::InitKind::constant, init.scale};
  case kNormal:
    return {kernels::InitKind::normal, init.scale};
  case kTruncatedNormal:
    return {kernels::InitKind::truncatedNormal, init.scale};
  case kUniform:
    return {kernels::InitKind::uniform, init.scale};
  case kXavierUniform:
    return {kernels::InitKind::uniform, init.scale * std::sqrt(6.0 / fans)};
  case kXavierNormal:
    return {kernels::InitKind::normal, init.scale * std::sqrt(2.0 / fans)};
  default:
    return {kernels::InitKind::zeros, 0};
  }
}

} // namespace

void RowInitializer::fill(uint64_t id, int64_t columns, float *out) const {
  Distribution distribution = distributionOf(*this);
  // `scale` of a constant is the constant itself, which is the mean there.
  bool isConstant = distribution.kind == kernels::InitKind::constant;
  float scale = static_cast<float>(distribution.scale);
  kernels::initialRow(distribution.kind, isConstant ? scale : 0.0f, isConstant ? 0.0f : scale, seed,
                      nameHash, id, columns, out);
}

} // namespace genrec::rt
