//===- Domains.cpp - the rows of domains ----------------------------------===//

#include "genrec/Interpreter/Evaluator.h"
#include "Random.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

//===----------------------------------------------------------------------===//
// DomainRows
//===----------------------------------------------------------------------===//

int64_t DomainRows::ancestorRow(int64_t row, const DomainRows &ancestor) const {
  const DomainRows *current = this;
  while (current != &ancestor) {
    assert(current->above && "not an ancestor");
    row = current->parent[row];
    current = current->above;
  }
  return row;
}

void DomainRows::forEachList(llvm::function_ref<void(int64_t, int64_t)> body) const {
  if (isRoot())
    for (int64_t row = 0; row < count; ++row)
      body(row, row + 1);
  for (size_t list = 0; list + 1 < offsets.size(); ++list)
    body(offsets[list], offsets[list + 1]);
}

//===----------------------------------------------------------------------===//
// Rows of a batch
//===----------------------------------------------------------------------===//

static llvm::Error checkOffsets(Operation *user, StringRef name, const BatchRows &rows,
                                int64_t lists) {
  const std::vector<int64_t> &offsets = rows.offsets;
  bool fits = static_cast<int64_t>(offsets.size()) == lists + 1 && offsets.front() == 0 &&
              offsets.back() == rows.count && llvm::is_sorted(offsets);
  if (fits)
    return llvm::Error::success();
  return fail(user, "reads domain @" + name + ", whose " + Twine(offsets.size()) +
                        " offsets do not cut its " + Twine(rows.count) + " rows into " +
                        Twine(lists) + " lists");
}

static llvm::Error checkColumns(Operation *user, StringRef name, const BatchRows &rows) {
  for (const auto &[path, column] : rows.columns)
    if (static_cast<int64_t>(column.size()) != rows.count ||
        (!column.valid.empty() && column.valid.size() != column.size()))
      return fail(user, "reads domain @" + name + " of " + Twine(rows.count) +
                            " rows, but the batch has " + Twine(column.size()) +
                            " values of column '" + path + "'");
  return llvm::Error::success();
}

/// Clears `kept` for rows that a feature of the program drops because they hold its padding id.
void Evaluator::keepUnpadded(DomainOp declaration, const BatchRows &rows,
                             std::vector<uint8_t> &kept) {
  for (auto feature : program.getBody().front().getOps<FeatureOp>()) {
    auto domainName = cast<DomainType>(feature.getDomain().getType()).getDomain();
    auto column = rows.columns.find(feature.getColumn());
    if (!feature.getPaddingId() || domainName.getAttr() != declaration.getSymNameAttr() ||
        column == rows.columns.end())
      continue;
    int64_t padding = static_cast<int64_t>(*feature.getPaddingId());
    auto *ids = std::get_if<std::vector<int64_t>>(&column->second.values);
    const std::vector<uint8_t> &valid = column->second.valid;
    for (size_t row = 0; ids && row < ids->size(); ++row)
      if ((valid.empty() || valid[row]) && (*ids)[row] == padding)
        kept[row] = 0;
  }
}

llvm::Expected<DomainRows> Evaluator::buildDataRows(Operation *user, DomainOp declaration) {
  StringRef name = declaration.getSymName();
  auto place = batch.domains.find(name);
  if (place == batch.domains.end())
    return fail(user, "reads domain @" + name + ", which the batch does not have");
  const BatchRows &given = place->second;
  if (llvm::Error error = checkColumns(user, name, given))
    return error;
  DomainRows rows;
  if (!declaration.getParentAttr()) {
    // Positions in the dataset belong to data; a catalogue's rows count from 0.
    bool hasPositions = declaration.getKind() == DomainKind::data && !batch.positions.empty();
    if (hasPositions && static_cast<int64_t>(batch.positions.size()) != given.count)
      return fail(user, "reads domain @" + name + " of " + Twine(given.count) +
                            " rows, but the batch has " + Twine(batch.positions.size()) +
                            " positions");
    rows.count = given.count;
    for (int64_t row = 0; row < rows.count; ++row)
      rows.identity.push_back(rootIdentity(hasPositions ? batch.positions[row] : row));
    return rows;
  }
  llvm::Expected<const DomainRows *> above = domain(user, declaration.getParentAttr());
  if (!above)
    return above.takeError();
  rows.above = *above;
  auto parentRows = batch.domains.find(declaration.getParentAttr().getValue());
  if (llvm::Error error = checkOffsets(user, name, given, parentRows->second.count))
    return error;
  std::vector<uint8_t> kept(given.count, 1);
  keepUnpadded(declaration, given, kept);
  for (int64_t list = 0; list < rows.above->count; ++list) {
    int64_t from = rows.above->sourceOf(list), ordinal = 0;
    rows.offsets.push_back(rows.count);
    for (int64_t row = given.offsets[from]; row < given.offsets[from + 1]; ++row) {
      if (!kept[row])
        continue;
      rows.parent.push_back(list);
      rows.source.push_back(row);
      rows.identity.push_back(childIdentity(rows.above->identity[list], ordinal++));
      ++rows.count;
    }
  }
  rows.offsets.push_back(rows.count);
  return rows;
}

llvm::Expected<const DomainRows *> Evaluator::domain(Operation *user, FlatSymbolRefAttr name) {
  if (auto place = domains.find(name); place != domains.end())
    return place->second.get();
  DomainOp declaration = lookupDomain(program, name);
  assert(declaration && "the verifier checks names of domains");
  llvm::Expected<DomainRows> rows = buildDataRows(user, declaration);
  if (!rows)
    return rows.takeError();
  auto &place = domains[name];
  place = std::make_unique<DomainRows>(std::move(*rows));
  return place.get();
}

//===----------------------------------------------------------------------===//
// Rows of domain values and of types
//===----------------------------------------------------------------------===//

static const DomainRows &
findRows(const llvm::DenseMap<Attribute, std::unique_ptr<DomainRows>> &domains,
         FlatSymbolRefAttr name) {
  auto place = domains.find(name);
  assert(place != domains.end() && "a domain that was not evaluated");
  return *place->second;
}

const DomainRows &Evaluator::rowsOf(Value domain) const {
  return findRows(domains, cast<DomainType>(domain.getType()).getDomain());
}

const DomainRows &Evaluator::rowsOf(Type type) const {
  return findRows(domains, getRowDomain(type));
}

void Evaluator::setRows(Value domain, DomainRows rows) {
  domains[cast<DomainType>(domain.getType()).getDomain()] =
      std::make_unique<DomainRows>(std::move(rows));
}
