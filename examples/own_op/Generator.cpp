//===- Generator.cpp - how random models draw the op ----------------------===//

#include "Own.h"

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

static bool makeGatedCross(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  x = m.bounded(x);
  int64_t size = getRowSize(x.getType());
  Value x0 = x;
  if (m.chance(50))
    x0 = m.value("linear", x.getType(), {x, m.parameter({size, size})});
  return m.offer(
      m.value(own::GatedCrossOp::getOperationName(), x.getType(),
              {x0, x, m.parameter({size, size}), m.parameter({size}), m.parameter({size, size})}));
}

namespace {
struct Generator : GeneratorDialectInterface {
  using GeneratorDialectInterface::GeneratorDialectInterface;
  ArrayRef<Theme> getThemes() const override {
    static constexpr Theme themes[] = {makeGatedCross};
    return themes;
  }
};
} // namespace

void own::addGenerator(OwnDialect &dialect) { dialect.addInterfaces<Generator>(); }
