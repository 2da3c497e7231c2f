//===- ModelIndex.cpp - numbers of a model's declarations -----------------===//

#include "genrec/Analysis/ModelIndex.h"

#include "genrec/Dialect/GenRec/IR/ColumnTags.h"

using namespace mlir;
using namespace genrec;

ModelIndex::ModelIndex(ModelOp model) : model(model) {
  for (Operation &op : model.getBody().front()) {
    if (auto domain = dyn_cast<DomainOp>(op)) {
      domains.push_back(domain);
    } else if (auto table = dyn_cast<TableOp>(op)) {
      if (table.getMembersAttr()) {
        merged.push_back(table);
      } else {
        tableNumbers[table.getSymNameAttr()] = tables.size();
        tables.push_back(table);
      }
    } else if (auto parameter = dyn_cast<ParameterOp>(op)) {
      parameterNumbers[parameter.getSymNameAttr()] = parameters.size();
      parameters.push_back(parameter);
    } else if (auto program = dyn_cast<ProgramOp>(op)) {
      programs.push_back(program);
    }
  }
  for (auto [group, table] : llvm::enumerate(merged)) {
    auto members = table.getMembersAttr().getAsRange<FlatSymbolRefAttr>();
    tableNumbers[table.getSymNameAttr()] = getTable(*members.begin());
    for (auto [number, member] : llvm::enumerate(members))
      tableLocations[member.getAttr()] = {static_cast<int64_t>(group) + 1,
                                          static_cast<int64_t>(number) << table.getKeyBits(),
                                          table.getKeyBits()};
  }
  for (ProgramOp program : programs)
    collectProgram(program);
  orderDomains();
}

/// Ids that are read only by fused columns, which turn them into keys of a merged table; each with
/// the logical table whose keys they become.
static llvm::DenseMap<Value, FlatSymbolRefAttr> findFusedIds(ProgramOp program,
                                                             ArrayRef<TableOp> merged) {
  llvm::DenseMap<Attribute, TableOp> bySymbol;
  for (TableOp table : merged)
    bySymbol[FlatSymbolRefAttr::get(table.getSymNameAttr())] = table;
  llvm::DenseMap<Value, FlatSymbolRefAttr> ids;
  for (auto op : program.getBody().front().getOps<TransformColumnsOp>()) {
    SmallVector<TableOp> looked(op.getNumResults());
    for (OpResult result : op.getResults())
      for (Operation *user : result.getUsers())
        if (auto rows = dyn_cast<TableRowsOp>(user))
          looked[result.getResultNumber()] = bySymbol.lookup(rows.getTableAttr());
    for (const TransformColumnsOp::Column &column : op.getColumns())
      if (TableOp table = looked[column.result])
        if (std::optional<ColumnTag> tag = getColumnTag(op, column); tag && tag->ids)
          ids[tag->ids] =
              cast<FlatSymbolRefAttr>(table.getMembersAttr()[tag->value >> table.getKeyBits()]);
  }
  return ids;
}

void ModelIndex::collectProgram(ProgramOp program) {
  fusedIds = findFusedIds(program, merged);
  for (Operation &op : program.getBody().front()) {
    for (Value result : op.getResults())
      if (auto type = dyn_cast<DomainType>(result.getType()))
        makers.try_emplace(type.getDomain(), &op);
    if (auto feature = dyn_cast<FeatureOp>(op))
      collectFeature(&op, feature.getDomain(), feature.getColumnAttr());
    else if (auto valid = dyn_cast<FeatureValidOp>(op))
      collectFeature(&op, valid.getDomain(), valid.getColumnAttr());
    else if (auto loss = dyn_cast<ReportLossOp>(op))
      losses.try_emplace(loss.getNameAttr(), &op);
    else if (auto loss = dyn_cast<LossOp>(op))
      losses.try_emplace(loss.getNameAttr(), &op);
    else if (auto metric = dyn_cast<MetricOp>(op))
      metrics.try_emplace(metric.getNameAttr(), metric);
    else if (auto output = dyn_cast<OutputOp>(op))
      outputs.try_emplace(output.getNameAttr(), output);
  }
}

FlatSymbolRefAttr ModelIndex::findTable(Value ids) const {
  if (FlatSymbolRefAttr table = fusedIds.lookup(ids))
    return table;
  for (OpOperand &use : ids.getUses()) {
    Operation *user = use.getOwner();
    if (auto rows = dyn_cast<TableRowsOp>(user)) {
      if (rows.getIds() == ids)
        return rows.getTableAttr();
    } else if (auto keys = dyn_cast<MergedKeysOp>(user)) {
      for (auto [own, name] :
           llvm::zip(keys.getIds(), keys.getTables().getAsRange<FlatSymbolRefAttr>()))
        if (own == ids)
          return name;
    } else if (user->hasTrait<PassesRowsOn>() && use.getOperandNumber() == 0) {
      if (FlatSymbolRefAttr table = findTable(user->getResult(0)))
        return table;
    }
  }
  return {};
}

void ModelIndex::collectFeature(Operation *op, Value domain, StringAttr column) {
  FlatSymbolRefAttr symbol = cast<DomainType>(domain.getType()).getDomain();
  auto [number, isNew] = featureNumbers.try_emplace({symbol, column}, features.size());
  if (isNew)
    features.push_back({symbol, column, {}, 0, false, {}, 0, {}, op->getLoc()});
  FeatureEntry *entry = &features[number->second];
  auto feature = dyn_cast<FeatureOp>(op);
  if (!feature) {
    entry->nullable = true;
    return;
  }
  entry->element = cast<RankedTensorType>(feature.getType()).getElementType();
  entry->width = getRowShape(feature.getType()).empty() ? 0 : getRowSize(feature.getType());
  entry->nullable |= feature.getNullable();
  if (std::optional<uint64_t> padding = feature.getPaddingId())
    entry->paddingId = static_cast<int64_t>(*padding);
  entry->idBits = std::max<int64_t>(entry->idBits, feature.getIdBits());
  entry->loc = feature.getLoc();
  if (!entry->table)
    entry->table =
        feature->getAttrOfType<FlatSymbolRefAttr>(GenRecDialect::TableAttrHelper::getNameStr());
  if (!entry->table)
    entry->table = findTable(feature.getResult());
}

int64_t ModelIndex::getFeature(FlatSymbolRefAttr domain, StringAttr column) const {
  auto found = featureNumbers.find({domain, column});
  return found == featureNumbers.end() ? -1 : found->second;
}

void ModelIndex::orderDomains() {
  SmallVector<DomainOp> declared = std::move(domains);
  llvm::MapVector<Attribute, DomainOp> bySymbol;
  for (DomainOp domain : declared)
    bySymbol[FlatSymbolRefAttr::get(domain.getSymNameAttr())] = domain;
  domains.clear();
  llvm::DenseSet<Attribute> seen;
  std::function<void(DomainOp)> visit = [&](DomainOp domain) {
    auto symbol = FlatSymbolRefAttr::get(domain.getSymNameAttr());
    if (!seen.insert(symbol).second)
      return;
    if (FlatSymbolRefAttr parent = domain.getParentAttr())
      visit(bySymbol.lookup(parent));
    if (Operation *maker = makers.lookup(symbol))
      for (Value operand : maker->getOperands()) {
        FlatSymbolRefAttr source = getRowDomain(operand.getType());
        if (auto type = dyn_cast<DomainType>(operand.getType()))
          source = type.getDomain();
        if (source)
          visit(bySymbol.lookup(source));
      }
    domainNumbers[domain.getSymNameAttr()] = domains.size();
    domains.push_back(domain);
  };
  for (DomainOp domain : declared)
    visit(domain);
}

SmallVector<DomainOp> genrec::getDomainPath(Operation *scope, FlatSymbolRefAttr domain) {
  SmallVector<DomainOp> path;
  for (DomainOp op = lookupDomain(scope, domain); op;
       op = op.getParentAttr() ? lookupDomain(scope, op.getParentAttr()) : DomainOp())
    path.push_back(op);
  return path;
}

size_t genrec::getHeight(ArrayRef<DomainOp> path, FlatSymbolRefAttr domain) {
  auto isDomain = [&](DomainOp op) { return op.getSymName() == domain.getValue(); };
  return llvm::find_if(path, isDomain) - path.begin();
}

Stage genrec::getStage(Operation *op) {
  auto stage = op->getAttrOfType<StageAttr>(GenRecDialect::StageAttrHelper::getNameStr());
  return stage ? stage.getValue() : Stage::compute;
}

int64_t genrec::getElementBytes(Type element) {
  if (isa<RowType>(element))
    return 8;
  if (isa<StringType>(element))
    return 16;
  return std::max<int64_t>(1, element.getIntOrFloatBitWidth() / 8);
}

/// "30 days", "90 minutes": in the largest unit of which it is a multiple.
static std::string describeSeconds(int64_t seconds) {
  for (auto [length, name] :
       {std::pair(86400, "day"), std::pair(3600, "hour"), std::pair(60, "minute")})
    if (seconds % length == 0)
      return (Twine(seconds / length) + " " + name + (seconds == length ? "" : "s")).str();
  return (Twine(seconds) + (seconds == 1 ? " second" : " seconds")).str();
}

std::string genrec::describeRowRules(TableOp table) {
  SmallVector<std::string, 3> rules;
  if (table.getOptimizer().getOption("frozen") != 0.0)
    rules.push_back("frozen");
  if (table.getElement() != RowElement::f32)
    rules.push_back((stringifyRowElement(table.getElement()) + " values" +
                     (table.roundsStochastically() ? ", rounded stochastically" : ""))
                        .str());
  if (auto hotAfter = table.getHotAfter())
    rules.push_back(("hot after " + Twine(*hotAfter) + " steps").str());
  if (auto bounded = table.getBounded())
    rules.push_back(("at most " + Twine(*bounded) + " rows (" +
                     stringifyEvictKind(table.getEvict().value_or(EvictKind::lru)) + ")")
                        .str());
  if (auto steps = table.getTtlSteps())
    rules.push_back(("gone after " + Twine(*steps) + " steps unseen").str());
  if (auto seconds = table.getTtlSeconds())
    rules.push_back("gone after " + describeSeconds(*seconds) + " unseen");
  if (auto admitAfter = table.getAdmitAfter())
    rules.push_back(("admitted after " + Twine(*admitAfter) + " steps").str());
  return llvm::join(rules, ", ");
}

ReadColumns::ReadColumns(ProgramOp program) {
  auto add = [&](auto op) {
    reads.insert({op.getColumnAttr(), op.getDomain().getType().getDomain()});
  };
  for (Operation &op : program.getBody().front())
    if (auto read = dyn_cast<FeatureOp>(op))
      add(read);
    else if (auto valid = dyn_cast<FeatureValidOp>(op))
      add(valid);
}

ColumnReaders::ColumnReaders(ModelOp model) {
  for (ProgramOp program : model.getOps<ProgramOp>())
    programs.emplace_back(program.getSymName(), ReadColumns(program));
}

SmallVector<StringRef> ColumnReaders::list(const FeatureEntry &feature) const {
  SmallVector<StringRef> readers;
  for (const auto &[name, columns] : programs)
    if (columns.contains(feature))
      readers.push_back(name);
  return readers;
}

llvm::DenseMap<Attribute, TableOp> genrec::mapMergedTables(ModelOp model) {
  llvm::DenseMap<Attribute, TableOp> merged;
  for (TableOp table : model.getOps<TableOp>())
    if (ArrayAttr members = table.getMembersAttr())
      for (auto name : members.getAsRange<FlatSymbolRefAttr>())
        merged[name.getAttr()] = table;
  return merged;
}
