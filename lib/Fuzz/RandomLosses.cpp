//===- RandomLosses.cpp - losses, catalogues, metrics, outputs ------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A data domain that has f32 values, and one of them.
static Value findOnData(ModelBuilder &m) {
  DomainEntry *domain = m.findDomain([&](const DomainEntry &d) {
    return d.kind == DomainKind::data && m.find(m.f32(), d.name, -1);
  });
  return domain ? m.find(m.f32(), domain->name, -1) : Value();
}

/// x times a parameter, as a loss that depends on nothing trained is an error.
static Value train(ModelBuilder &m, Value x) {
  return m.value("mul", x.getType(), {x, m.parameter(getRowShape(x.getType()))});
}

/// The range check that a front end adds for a loss's labels.
static void requireRange(ModelBuilder &m, Value label, double low, double high, Value items = {}) {
  SmallVector<Value> operands{label};
  if (items)
    operands.push_back(items);
  m.make("require_range", {}, operands,
         {m.text("what", "the label"), m.f64("min", low), m.f64("max", high)},
         {1, 0, 0, items ? 1 : 0});
}

static bool makeBce(ModelBuilder &m) {
  Value x = findOnData(m);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  Value logit = train(m, m.resize(x, 0));
  Value label = m.feature(m.entry(domain), m.columnOf(domain, "label"), m.f32());
  m.losses.push_back(m.value("bce_with_logits", logit.getType(), {logit, label}));
  requireRange(m, label, 0, 1);
  return true;
}

static Value makeLinear(ModelBuilder &m, Value x, int64_t columns) {
  SmallVector<Value> operands{m.bounded(x), m.parameter({getRowSize(x.getType()), columns})};
  if (m.chance(50))
    operands.push_back(m.parameter({columns}));
  return m.value("linear", m.rows(getRowDomain(x.getType()), {columns}, m.f32()), operands);
}

static bool makeCrossEntropy(ModelBuilder &m) {
  Value x = findOnData(m);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  int64_t classes = m.integer(2, 12);
  // split-classes can compute a product that only the loss reads in blocks of classes.
  Value logits = m.chance(50) ? makeLinear(m, m.resize(x, m.rowSize()), classes)
                              : train(m, m.resize(x, classes));
  Value id = m.feature(m.entry(domain), m.columnOf(domain, "id"), m.integerType());
  Value label = m.value("mod", id.getType(), id, m.i64("divisor", classes));
  requireRange(m, label, 0, static_cast<double>(classes - 1));
  m.losses.push_back(
      m.value("softmax_cross_entropy", m.rows(domain, {}, m.f32()), {logits, label}));
  return true;
}

/// Ids of which several rows have the same; sometimes with nulls and logarithms of frequencies.
void fuzz::makeInBatch(ModelBuilder &m) {
  Value x = m.chance(20) ? findOnData(m) : Value();
  if (!x)
    return;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  int64_t size = m.rowSize();
  Value query = m.bounded(m.resize(x, size));
  Value item = m.bounded(train(m, m.resize(m.find(m.f32(), domain, -1), size)));
  Value id = m.feature(m.entry(domain), m.columnOf(domain, "id"), m.integerType());
  SmallVector<Value> operands{query, item,
                              m.value("mod", id.getType(), id, m.i64("divisor", m.integer(2, 9)))};
  Value logQ = m.chance(50) ? m.find(m.f32(), domain, 0) : Value();
  if (logQ)
    operands.push_back(m.bounded(logQ));
  Value valid = m.chance(50) ? m.find(m.boolean(), domain, 0) : Value();
  if (valid)
    operands.push_back(valid);
  Operation *loss = m.make(
      "in_batch_softmax", {m.rows(domain, {}, m.f32()), m.rows(domain, {2}, m.f32())}, operands,
      m.f64("temperature", m.real(0.3, 1.5)), {1, 1, 1, logQ ? 1 : 0, valid ? 1 : 0});
  SmallVector<Value> declared{loss->getResult(0)};
  bool isMasked = valid && m.chance(50); // else null rows count with a loss of 0
  if (isMasked)
    declared.push_back(valid);
  m.make("loss", {}, declared, {m.text("name", "in_batch"), m.f64("scale", m.real(0.3, 2.0))},
         {1, 0, isMasked});
}

namespace {
/// A catalogue: its ids and a vector per item.
struct Catalogue {
  Value ids, items;
};
} // namespace

/// Declares the catalogue on the first call; its items have `dim` values.
static Catalogue makeCatalogue(ModelBuilder &m, int64_t dim) {
  MLIRContext *context = m.builder.getContext();
  FlatSymbolRefAttr name = m.declareDomain("items", {}, DomainKind::catalogue, "");
  Value domain = m.value("catalogue", DomainType::get(context, name), {});
  m.entry(name).value = domain;
  Value ids = m.feature(m.entry(name), "id", m.integerType());
  FlatSymbolRefAttr table = m.declareTable(dim, 52, /*distinctRows=*/true);
  Value items = m.value("lookup", m.rows(name, {dim}, m.f32()), ids, m.named("table", table));
  if (dim > 1 && m.chance(50))
    items =
        m.value("l2_normalize", items.getType(), items, m.f64("eps", m.chance(50) ? 0.05 : 1.0));
  return {ids, items};
}

/// Ids of items in a data domain, and the result of `resolve` on them.
static Value makeResolved(ModelBuilder &m, FlatSymbolRefAttr domain, const Catalogue &catalogue,
                          StringRef column, bool allowMissing) {
  Value ids = m.feature(m.entry(domain), m.columnOf(domain, column), m.integerType());
  SmallVector<Value> operands{ids};
  Value valid = m.chance(40) ? m.find(m.boolean(), domain, 0) : Value();
  if (valid)
    operands.push_back(valid);
  operands.push_back(catalogue.ids);
  SmallVector<NamedAttribute> attributes;
  if (allowMissing)
    attributes.push_back(m.unit("allow_missing"));
  return m.value("resolve", m.rows(domain, {}, m.integerType()), operands, attributes);
}

static void makeCatalogueLoss(ModelBuilder &m, Value query, const Catalogue &catalogue) {
  FlatSymbolRefAttr domain = getRowDomain(query.getType());
  Value positive = makeResolved(m, domain, catalogue, "item", false);
  if (m.chance(65)) {
    SmallVector<NamedAttribute> attributes{m.i64("negatives", m.integer(1, 6)),
                                           m.f64("temperature", m.real(0.3, 1.5)), m.stream()};
    if (m.chance(40))
      attributes.push_back(m.unit("shared"));
    m.losses.push_back(m.value("sampled_softmax", m.rows(domain, {}, m.f32()),
                               {query, positive, catalogue.items}, attributes));
    return;
  }
  constexpr int64_t largestCatalogue = 16;
  Value logits =
      m.value("scores", m.rows(domain, {largestCatalogue}, m.f32()), {query, catalogue.items});
  m.losses.push_back(
      m.value("softmax_cross_entropy", m.rows(domain, {}, m.f32()), {logits, positive}));
  requireRange(m, positive, -1, largestCatalogue - 1, catalogue.ids); // -1: nulls
}

/// A ranking metric. Its weights, if any, are per row of `weighed`: the domain of the ranks or,
/// with `perList`, of their lists.
static void makeRankMetric(ModelBuilder &m, StringRef name, Value rank, FlatSymbolRefAttr weighed,
                           bool perList) {
  SmallVector<NamedAttribute> attributes{
      m.named("kind", MetricKindAttr::get(m.builder.getContext(), MetricKind::ranking)),
      m.text("name", name), m.named("at", m.builder.getDenseI64ArrayAttr({1, 3}))};
  if (perList)
    attributes.push_back(m.unit("per_list"));
  SmallVector<Value> operands{rank};
  bool isWeighed = m.chance(40);
  if (isWeighed)
    operands.push_back(m.feature(m.entry(weighed), m.columnOf(weighed, "weight"), m.f32()));
  m.make("metric", {}, operands, attributes, {1, 0, 0, 0, isWeighed});
}

static void makeRanking(ModelBuilder &m, Value query, const Catalogue &catalogue) {
  FlatSymbolRefAttr domain = getRowDomain(query.getType());
  Value exclude;
  if (DomainEntry *child = m.findDomain(
          [&](const DomainEntry &d) { return d.parent == domain && d.kind == DomainKind::data; }))
    if (m.chance(60))
      exclude = makeResolved(m, child->name, catalogue, "item", true);
  // One target per query, or a list of them.
  DomainEntry *listed = m.findDomain(
      [&](const DomainEntry &d) { return d.parent == domain && d.kind == DomainKind::data; });
  FlatSymbolRefAttr ofTargets = listed && m.chance(50) ? listed->name : domain;
  Value target = makeResolved(m, ofTargets, catalogue, "item", false);
  SmallVector<Value> operands{query, target, catalogue.items};
  if (exclude)
    operands.push_back(exclude);
  Value rank = m.value("rank", m.rows(ofTargets, {}, m.integerType()), operands);
  makeRankMetric(m, "rank", rank, domain, ofTargets != domain);
  int64_t k = m.integer(1, 9);
  operands.erase(operands.begin() + 1);
  Operation *found = m.make(
      "top_k", {m.rows(domain, {k}, m.integerType()), m.rows(domain, {k}, m.f32())}, operands);
  Value ids =
      m.value("gather_rows", found->getResult(0).getType(), {catalogue.ids, found->getResult(0)});
  Value none = m.value("constant", RankedTensorType::get({}, m.integerType()), {},
                       m.named("value", DenseElementsAttr::get(
                                            RankedTensorType::get({}, m.integerType()), int64_t(0))));
  Value exists = m.value("compare", m.rows(domain, {k}, m.boolean()), {found->getResult(0), none},
                         m.named("kind", CompareKindAttr::get(m.builder.getContext(), CompareKind::ge)));
  m.make("output", {}, {ids, exists}, m.text("name", "top"));
  m.make("output", {}, {found->getResult(1), exists}, m.text("name", "top_score"));
}

static bool makeRetrieval(ModelBuilder &m) {
  if (llvm::any_of(m.domains, [](const DomainEntry &d) { return d.kind == DomainKind::catalogue; }))
    return false;
  Value x = findOnData(m);
  if (!x)
    return false;
  int64_t dim = m.rowSize();
  Value query = m.bounded(m.resize(x, dim));
  Catalogue catalogue = makeCatalogue(m, dim);
  makeCatalogueLoss(m, query, catalogue);
  if (m.chance(60))
    makeRanking(m, query, catalogue);
  return true;
}

ArrayRef<Theme> fuzz::getLossThemes() {
  static constexpr Theme themes[] = {makeBce, makeCrossEntropy, makeRetrieval, makeRetrieval};
  return themes;
}

void fuzz::declareSinks(ModelBuilder &m) {
  MLIRContext *context = m.builder.getContext();
  for (auto [index, loss] : llvm::enumerate(m.losses)) {
    FlatSymbolRefAttr domain = getRowDomain(loss.getType());
    SmallVector<Value> operands{loss};
    Value weight = m.chance(30) ? m.find(m.f32(), domain, 0) : Value();
    if (weight) { // positive; unless they are detached, a gradient flows through them
      weight = m.value("softplus", weight.getType(), weight);
      operands.push_back(m.chance(50) ? m.value("detach", weight.getType(), weight) : weight);
    }
    Value valid = m.chance(30) ? m.find(m.boolean(), domain, 0) : Value();
    if (valid)
      operands.push_back(valid);
    m.make("loss", {}, operands,
           {m.text("name", "loss" + std::to_string(index)), m.f64("scale", m.real(0.3, 2.0))},
           {1, weight ? 1 : 0, valid ? 1 : 0});
  }
  if (Value x = findOnData(m)) {
    Value known = m.chance(30) ? m.find(m.boolean(), getRowDomain(x.getType()), 0) : Value();
    SmallVector<Value> written{x};
    if (known)
      written.push_back(known);
    m.make("output", {}, written, m.text("name", "value"));
    if (Value other = m.chance(30) ? findOnData(m) : Value()) // sometimes of another domain
      m.make("output", {}, other, m.text("name", "other"));
    for (int64_t i = m.integer(0, 2); i > 0; --i)
      m.make("output", {}, m.find(m.f32(), getRowDomain(x.getType()), -1),
             m.text("name", "value" + std::to_string(i)));
    // Scores are read from the data: computed scores may be mathematically equal, and rounding
    // would then decide their order.
    FlatSymbolRefAttr domain = getRowDomain(x.getType());
    Value score = m.feature(m.entry(domain), m.columnOf(domain, "dense"), m.f32());
    Value label = m.feature(m.entry(domain), m.columnOf(domain, "label"), m.f32());
    auto declare = [&](MetricKind kind, Value key = {}) {
      SmallVector<Value> operands{score, label};
      Value valid = m.chance(30) ? m.find(m.boolean(), domain, 0) : Value();
      Value weight = m.chance(40)
                         ? m.feature(m.entry(domain), m.columnOf(domain, "weight"), m.f32())
                         : Value();
      for (Value optional : {valid, key, weight})
        if (optional)
          operands.push_back(optional);
      m.make("metric", {}, operands,
             {m.named("kind", MetricKindAttr::get(context, kind)),
              m.text("name", stringifyMetricKind(kind))},
             {1, 1, valid ? 1 : 0, key ? 1 : 0, weight ? 1 : 0});
    };
    declare(MetricKind::auc);
    for (MetricKind kind : {MetricKind::ne, MetricKind::rmse, MetricKind::mae})
      if (m.chance(50))
        declare(kind);
    if (m.chance(50)) {
      Value id = m.feature(m.entry(domain), m.columnOf(domain, "id"), m.integerType());
      declare(MetricKind::gauc, m.value("mod", id.getType(), id, m.i64("divisor", 3)));
    }
    if (FlatSymbolRefAttr parent = m.entry(domain).parent; parent && m.chance(60)) {
      SmallVector<Value> ranked{score, label};
      if (Value valid = m.chance(30) ? m.find(m.boolean(), domain, 0) : Value())
        ranked.push_back(valid);
      Value rank = m.value("rank_in_list", m.rows(domain, {}, m.integerType()), ranked);
      makeRankMetric(m, "lists", rank, parent, /*perList=*/true);
    }
  }
}
