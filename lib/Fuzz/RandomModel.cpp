//===- RandomModel.cpp - random well-typed models -------------------------===//

#include "genrec/Fuzz/RandomModel.h"

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Fuzz/ModelBuilder.h"
#include "genrec/Fuzz/Shrink.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

RandomModelOptions RandomModelOptions::ofSeed(uint64_t seed) {
  RandomModelOptions options;
  switch (seed % 16) {
  case 3: // many tables
    options.features = 5;
    options.ops = 30;
    break;
  case 4: // rows of many parts
    options.features = 3;
    options.wideJoins = 2;
    break;
  case 5: // layers over lookups that have no other users
    options.joinedLookups = 2;
    break;
  case 7: // a deep tree
    options.lists = 7;
    options.deep = true;
    options.ops = 24;
    break;
  case 8: // lists that are alike
    options.lists = 5;
    options.alikeLists = true;
    break;
  case 9: // a catalogue with lists, columns by id
    options.itemColumns = true;
    break;
  case 11: // long chains of transforms
    options.features = 2;
    options.transforms = 6;
    break;
  case 12: // rows that are cut into slices, or have several words a lane, on devices
    options.longestRow = 100;
    options.ops = 8;
    options.joinedScalars = 2;
    break;
  case 10: // products of bfloat16
  case 13:
  case 14:
    options.bf16 = true;
    break;
  case 15: // fan-outs everywhere, on the way into many ops
    options.lists = 5;
    options.deep = true;
    options.fanouts = 12;
    options.ops = 30;
    break;
  default:
    break;
  }
  return options;
}

/// The themes of plugins.
static SmallVector<Theme> getPluginThemes(MLIRContext *context) {
  SmallVector<Theme> themes;
  for (Dialect *dialect : context->getLoadedDialects())
    if (auto *generator = dialect->getRegisteredInterface<GeneratorDialectInterface>())
      llvm::append_range(themes, generator->getThemes());
  return themes;
}

/// All products, as `mixed-precision` does it, or some.
static void roundProducts(ModelBuilder &m) {
  if (m.chance(50)) {
    PassManager pm(m.module->getContext());
    pm.addNestedPass<ModelOp>(createMixedPrecision());
    [[maybe_unused]] LogicalResult done = pm.run(*m.module);
    assert(succeeded(done) && "the pass has no preconditions");
    return;
  }
  m.module->walk([&](ProductOpInterface product) {
    bool isF64 = llvm::any_of(product->getOperandTypes(),
                              [](Type type) { return getElementTypeOrSelf(type).isF64(); });
    product.setBf16(!isF64 && m.chance(50));
  });
}

OwningOpRef<ModuleOp> fuzz::makeRandomModel(MLIRContext *context, uint64_t seed,
                                            const RandomModelOptions &options, uint64_t attempt) {
  ModelBuilder m(context, seed * 0x9E3779B97F4A7C15ull + 0xD1B54A32D192ED03ull * attempt + 1,
                 options);
  makeDomainsAndFeatures(m);
  for (int64_t i = 0; i < options.fanouts; ++i)
    makeFanout(m);
  for (int64_t i = m.integer(options.ops / 3, options.ops); i > 0; --i) {
    ArrayRef<Theme> themes = m.chance(60) ? getRowThemes() : getSequenceThemes();
    m.pick(themes)(m);
  }
  if (SmallVector<Theme> themes = getPluginThemes(context); !themes.empty())
    for (int64_t i = m.integer(1, 3); i > 0; --i)
      m.pick(themes)(m);
  for (int64_t i = 0; i < options.joinedScalars; ++i)
    makeJoinedScalars(m);
  for (int64_t i = 0; i < options.wideJoins; ++i)
    makeWideJoin(m);
  for (int64_t i = 0; i < options.joinedLookups; ++i)
    makeJoinedLookups(m);
  if (options.alikeLists)
    makeAlikeLists(m);
  for (int tries = 8; options.forDevice && options.bf16 && tries > 0 && !makeWideBlock(m); --tries)
    ;
  makeGroups(m);
  int64_t wanted = m.integer(1, 2);
  for (int attempt = 0; attempt < 8 && static_cast<int64_t>(m.losses.size()) < wanted; ++attempt)
    m.pick(getLossThemes())(m);
  readRest(m);
  declareSinks(m);
  if (options.itemColumns)
    makeItemColumns(m);
  if (options.bf16)
    roundProducts(m);
  makeInBatch(m);
  removeUnused(*m.module); // values that were not offered
  return std::move(m.module);
}
