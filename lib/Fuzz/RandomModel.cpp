//===- RandomModel.cpp - random well-typed models -------------------------===//

#include "genrec/Fuzz/RandomModel.h"

#include "ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

OwningOpRef<ModuleOp> fuzz::makeRandomModel(MLIRContext *context, uint64_t seed,
                                            const RandomModelOptions &options) {
  ModelBuilder m(context, seed * 0x9E3779B97F4A7C15ull + 1, options.longestRow);
  makeDomainsAndFeatures(m);
  for (int64_t i = m.integer(options.ops / 3, options.ops); i > 0; --i) {
    ArrayRef<Theme> themes = m.chance(60) ? getRowThemes() : getSequenceThemes();
    m.pick(themes)(m);
  }
  int64_t wanted = m.integer(1, 2);
  for (int attempt = 0; attempt < 8 && static_cast<int64_t>(m.losses.size()) < wanted; ++attempt)
    m.pick(getLossThemes())(m);
  declareSinks(m);
  return std::move(m.module);
}
