//===- BatchSchema.cpp - the columns that a model reads -------------------===//

#include "BatchSchema.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

size_t Column::size() const {
  return std::visit([](const auto &list) { return list.size(); }, values) / width;
}

std::string DomainSchema::name() const {
  return cast<StringAttr>(declaration->getAttr("sym_name")).str();
}

bool DomainSchema::isCatalogue() const {
  return isOfCatalogue(declaration, FlatSymbolRefAttr::get(DomainOp(declaration).getSymNameAttr()));
}

StringRef DomainSchema::path() const { return DomainOp(declaration).getColumn().value_or(""); }

/// Adds `declaration` after its parent. Returns its index, or -1 for a derived domain, which no
/// file holds.
static int addDomain(std::vector<DomainSchema> &schema, DomainOp declaration) {
  if (declaration.getKind() != DomainKind::data && declaration.getKind() != DomainKind::catalogue)
    return -1;
  auto known = llvm::find_if(
      schema, [&](const DomainSchema &domain) { return domain.declaration == declaration; });
  if (known != schema.end())
    return static_cast<int>(known - schema.begin());
  int parent = -1;
  if (declaration.getParentAttr())
    parent = addDomain(schema, lookupDomain(declaration, declaration.getParentAttr()));
  int index = static_cast<int>(schema.size());
  schema.push_back({declaration, parent, {}, {}});
  if (parent >= 0)
    schema[parent].children.push_back(index);
  return index;
}

static ColumnSchema &getColumn(std::vector<DomainSchema> &schema, Value domain, StringRef path) {
  StringRef name = cast<DomainType>(domain.getType()).getDomain().getValue();
  auto place = llvm::find_if(schema, [&](DomainSchema &d) { return d.name() == name; });
  assert(place != schema.end() && "the verifier lets columns be read from data only");
  for (ColumnSchema &column : place->columns)
    if (column.path == path)
      return column;
  return place->columns.emplace_back(ColumnSchema{path.str(), Type(), 1, false, false, {}});
}

std::vector<DomainSchema> interpreter::getBatchSchema(ProgramOp program) {
  std::vector<DomainSchema> schema;
  ModelOp model = getModel(program);
  for (auto declaration : model.getBody().front().getOps<DomainOp>())
    addDomain(schema, declaration);
  model.walk([&](Operation *op) {
    if (auto feature = dyn_cast<FeatureOp>(op)) {
      ColumnSchema &column = getColumn(schema, feature.getDomain(), feature.getColumn());
      column.element = getElementTypeOrSelf(feature.getType());
      column.width = getRowSize(feature.getType());
      column.isVector = !getRowShape(feature.getType()).empty();
      column.nullable |= feature.getNullable();
      column.features.push_back(feature);
    } else if (auto valid = dyn_cast<FeatureValidOp>(op)) {
      getColumn(schema, valid.getDomain(), valid.getColumn()).nullable = true;
    }
  });
  return schema;
}

/// Removes "prefix." from the front of `path`.
static bool consume(StringRef &path, StringRef prefix) {
  return prefix.empty() || (path.consume_front(prefix) && path.consume_front("."));
}

ColumnPath interpreter::getColumnPath(const DomainSchema &domain, StringRef column) {
  if (!domain.path().empty() && column == domain.path())
    return {ColumnPath::element, ""};
  StringRef below = column;
  if (consume(below, domain.path()))
    return {ColumnPath::member, below};
  return {ColumnPath::parallel, column};
}

StringRef interpreter::getListPath(const DomainSchema &parent, const DomainSchema &child) {
  StringRef path = child.path(), below = path;
  return consume(below, parent.path()) ? below : path;
}
