//===- RandomItems.cpp - features of catalogue items ----------------------===//
//
// A catalogue with a list of tags per item and columns that other rows look up by id, and ops that
// are used with such columns: rows of several values, random numbers, stacked values, label
// smoothing.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {
struct Items {
  DomainEntry rows, tags;
  Value ids, vectors, image, price;
};
} // namespace

static Value makeVectorFeature(ModelBuilder &m, const DomainEntry &domain, StringRef column,
                               int64_t size) {
  return m.value("feature", m.rows(domain.name, {size}, m.f32()), domain.value,
                 m.text("column", column));
}

static Value lookUp(ModelBuilder &m, const DomainEntry &domain, Value ids, int64_t dim) {
  return m.value("lookup", m.rows(domain.name, {dim}, m.f32()), ids,
                 m.named("table", m.declareTable(dim, 52, /*distinctRows=*/true)));
}

/// Items whose vectors are computed from an id, tags and an image.
static Items makeItems(ModelBuilder &m, int64_t dim) {
  MLIRContext *context = m.builder.getContext();
  Items items;
  FlatSymbolRefAttr goods = m.declareDomain("goods", {}, DomainKind::catalogue, "");
  if (m.chance(30)) // so few that all are computed, or so many that a step reads some
    lookupDomain(m.model, goods)
        .setExpectedRowsAttr(m.builder.getI64IntegerAttr(m.chance(50) ? 4 : 1000000));
  FlatSymbolRefAttr tags = m.declareDomain("goods_tag", goods, DomainKind::data, "tags");
  Operation *catalogue =
      m.make("catalogue", {DomainType::get(context, goods), DomainType::get(context, tags)}, {});
  m.entry(goods).value = catalogue->getResult(0);
  m.entry(tags).value = catalogue->getResult(1);
  items.rows = m.entry(goods);
  items.tags = m.entry(tags);
  items.ids = m.feature(items.rows, "id", m.integerType());
  items.price = m.feature(items.rows, "price", m.f32());
  items.image = makeVectorFeature(m, items.rows, "image", dim);
  Value ofTags = lookUp(m, items.tags, m.feature(items.tags, "tags.id", m.integerType()), dim);
  Type type = m.rows(goods, {dim}, m.f32());
  Value pooled = m.pool(ofTags, static_cast<PoolKind>(m.integer(0, 2)), items.rows);
  Value own = lookUp(m, items.rows, items.ids, dim);
  Value seen = m.value("linear", type, {items.image, m.parameter({dim, dim})});
  items.vectors = m.value("add", type, {m.value("add", type, {own, pooled}), seen});
  // Masks by the identity of an item, whichever rows are computed.
  if (m.chance(50))
    items.vectors =
        m.value("dropout", type, items.vectors, {m.f64("rate", m.real(0.1, 0.6)), m.stream()});
  return items;
}

static void declareLoss(ModelBuilder &m, StringRef name, Value loss) {
  m.make("loss", {}, loss, {m.text("name", name), m.f64("scale", m.real(0.3, 2.0))}, {1, 0, 0});
}

/// The features of each row's item with random noise, encoded as waves.
static Value makeWaves(ModelBuilder &m, const DomainEntry &domain, const Items &items, Value row,
                       int64_t dim) {
  Type type = m.rows(domain.name, {dim}, m.f32());
  Type scalar = m.rows(domain.name, {}, m.f32());
  Value image = m.value("gather_rows", type, {items.image, row});
  Value price = m.value("gather_rows", scalar, {items.price, row});
  bool perRow = m.chance(50);
  Value noise = m.value("random_uniform", perRow ? scalar : type, domain.value, m.stream());
  Value angle = m.value("add", type, {image, noise});
  Value wave = m.value(m.chance(50) ? "sin" : "cos", type, angle);
  return m.value("mul", type, {wave, m.value("cos", scalar, price)});
}

void fuzz::makeItemColumns(ModelBuilder &m) {
  MLIRContext *context = m.builder.getContext();
  DomainEntry *found =
      m.findDomain([](const DomainEntry &d) { return d.kind == DomainKind::data; });
  DomainEntry domain = *found;
  int64_t dim = m.integer(2, 5);
  Items items = makeItems(m, dim);
  std::string prefix = m.columnOf(domain.name, "");
  Value good = m.feature(domain, prefix + "good", m.integerType());
  Value row = m.value("resolve", m.rows(domain.name, {}, m.integerType()), {good, items.ids});
  Value waves = makeWaves(m, domain, items, row, dim);

  // Three values per row as a list.
  Type type = m.rows(domain.name, {dim}, m.f32());
  Value mixed = m.value("linear", type, {waves, m.parameter({dim, dim})});
  Value given = makeVectorFeature(m, domain, prefix + "vector", dim);
  FlatSymbolRefAttr fields = m.declareDomain("fields", domain.name, DomainKind::derived, "");
  Value stack = m.value("concat_domains", DomainType::get(context, fields),
                        {domain.value, domain.value, domain.value});
  m.entry(fields).value = stack;
  Value stacked =
      m.value("concat_rows", m.rows(fields, {dim}, m.f32()), {mixed, given, waves, stack});
  Value query = m.pool(m.bounded(stacked), PoolKind::mean, domain);

  Type scalar = m.rows(domain.name, {}, m.f32());
  SmallVector<NamedAttribute> draws = {m.i64("negatives", m.integer(1, 4)),
                                       m.f64("temperature", m.real(0.5, 1.5)), m.stream()};
  if (m.chance(50))
    draws.push_back(m.unit("shared"));
  // The vectors are read by number twice, the second time without a gradient.
  if (m.chance(50)) {
    Value fixed = m.value("detach", items.vectors.getType(), items.vectors);
    query = m.value("add", type, {query, m.value("gather_rows", type, {fixed, row})});
  }
  declareLoss(m, "goods", m.value("sampled_softmax", scalar, {query, row, items.vectors}, draws));
  Value label = m.value("mod", good.getType(), good, m.i64("divisor", dim));
  declareLoss(m, "smooth",
              m.value("softmax_cross_entropy", scalar, {mixed, label},
                      m.f64("label_smoothing", m.real(0.05, 0.5))));
}
