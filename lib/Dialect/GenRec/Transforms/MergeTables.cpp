//===- MergeTables.cpp - merges logical tables with equal attributes ------===//

#include "Decisions.h"
#include "genrec/Analysis/Names.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

namespace genrec {
#define GEN_PASS_DEF_MERGETABLES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Choice of tables
//===----------------------------------------------------------------------===//

/// The attributes that tables must share to be merged: all but name and id_bits.
static DictionaryAttr getSpec(TableOp table) {
  SmallVector<NamedAttribute> spec;
  for (NamedAttribute entry : table->getAttrs())
    if (!llvm::is_contained({"sym_name", "id_bits", "members"}, entry.getName().getValue()))
      spec.push_back(entry);
  return DictionaryAttr::get(table.getContext(), spec);
}

/// The names of the attributes in which two tables differ.
static std::string listDifferences(DictionaryAttr left, DictionaryAttr right) {
  llvm::SetVector<StringRef> names;
  for (DictionaryAttr side : {left, right})
    for (NamedAttribute entry : side)
      if (left.get(entry.getName()) != right.get(entry.getName()))
        names.insert(entry.getName().getValue());
  return llvm::join(names, ", ");
}

/// The most members that a decision names; the plan has all.
constexpr size_t kMostNamed = 8;

/// The bits of a key that are left for ids in a merged table of `members` tables.
static int64_t getKeyBits(size_t members) {
  return 63 - static_cast<int64_t>(llvm::Log2_64_Ceil(members + 1));
}

namespace {
/// The shared attributes and the tables that have them, in declaration order.
struct TableGroup {
  SmallVector<TableOp> tables;
  TableOp merged;
};

class Merger {
public:
  explicit Merger(ModelOp model) : model(model), decisions("merge-tables") {}

  void chooseGroups();
  void declareMerged();
  void rewritePrograms();
  void finish() { decisions.attachTo(model); }

  unsigned merged = 0, tables = 0, lookups = 0, groupedLookups = 0;

private:
  void collectUses();
  bool isLookedUpWhole(LookupOp lookup);
  void dropWideTables(TableGroup &group);
  void noteLonely(const TableGroup &group);
  std::string describeOthers(const TableGroup &group) const;
  void rewriteProgram(ProgramOp program);
  void groupLookups(ProgramOp program, TableOp table, ArrayRef<LookupOp> group);

  ModelOp model;
  Decisions decisions;
  SmallVector<TableOp> used;
  llvm::DenseSet<Attribute> wholeCatalogues;
  llvm::MapVector<Attribute, TableGroup> groups;
  DenseMap<Attribute, TableOp> owners;     ///< by symbol of the logical table
  DenseMap<Attribute, Value> domainValues; ///< of the program being rewritten
};
} // namespace

/// Whether a lookup is over all rows of a catalogue. The runtime keeps their handles between steps,
/// which it could not do for a buffer of keys that is computed in each step.
bool Merger::isLookedUpWhole(LookupOp lookup) {
  return isOfCatalogue(model, getRowDomain(lookup.getIds().getType()));
}

void Merger::collectUses() {
  llvm::DenseSet<Attribute> names;
  for (auto program : model.getBody().front().getOps<ProgramOp>())
    for (auto lookup : program.getBody().front().getOps<LookupOp>()) {
      names.insert(lookup.getTableAttr());
      if (isLookedUpWhole(lookup))
        wholeCatalogues.insert(lookup.getTableAttr());
    }
  for (auto table : model.getBody().front().getOps<TableOp>())
    if (!table.getMembersAttr() && names.contains(FlatSymbolRefAttr::get(table.getSymNameAttr())))
      used.push_back(table);
}

/// Keeps in `group` as many tables as possible whose ids fit into a key next to the number of the
/// table. With fewer tables there are more bits for ids, so tables with the fewest bits are taken
/// first.
void Merger::dropWideTables(TableGroup &group) {
  SmallVector<TableOp> byBits(group.tables);
  llvm::sort(byBits, [](TableOp a, TableOp b) {
    return a.getIdBits() != b.getIdBits() ? a.getIdBits() < b.getIdBits() : a->isBeforeInBlock(b);
  });
  size_t fitting = byBits.size();
  while (fitting > 0 && static_cast<int64_t>(byBits[fitting - 1].getIdBits()) > getKeyBits(fitting))
    --fitting;
  for (TableOp table : ArrayRef(byBits).drop_front(fitting))
    decisions.add("table '" + table.getSymName() + "' stays apart: its ids of " +
                  Twine(table.getIdBits()) + " bits do not fit beside the numbers of " +
                  Twine(fitting + 1) + " tables, which leave " + Twine(getKeyBits(fitting + 1)));
  llvm::SmallPtrSet<Operation *, 16> kept;
  for (TableOp table : ArrayRef(byBits).take_front(fitting))
    kept.insert(table);
  llvm::erase_if(group.tables, [&](TableOp table) { return !kept.contains(table); });
}

/// The attributes in which the merged table of `group` differs from earlier merged tables of its
/// dimension.
std::string Merger::describeOthers(const TableGroup &group) const {
  TableOp first = group.tables.front();
  std::string text;
  for (auto &[spec, other] : groups) {
    if (&other == &group)
      break;
    TableOp merged = other.merged;
    if (merged && merged.getDim() == first.getDim())
      text += (text.empty() ? "; apart from '" : ", from '") + merged.getSymName().str() + "' by " +
              listDifferences(getSpec(first), cast<DictionaryAttr>(spec));
  }
  return text;
}

/// Records the attributes in which an unmerged table differs from others of its dimension.
void Merger::noteLonely(const TableGroup &group) {
  TableOp table = group.tables.front();
  DictionaryAttr spec = getSpec(table);
  for (auto &[other, candidate] : groups) {
    if (candidate.tables.empty() || other == spec ||
        TableOp(candidate.tables.front()).getDim() != table.getDim())
      continue;
    decisions.add("table '" + table.getSymName() + "' stays apart: it differs from '" +
                  TableOp(candidate.tables.front()).getSymName() + "' in " +
                  listDifferences(spec, cast<DictionaryAttr>(other)));
    return;
  }
  decisions.add("table '" + table.getSymName() + "' stays apart: no other table has dimension " +
                Twine(table.getDim()));
}

void Merger::chooseGroups() {
  collectUses();
  for (TableOp table : used) {
    if (wholeCatalogues.contains(FlatSymbolRefAttr::get(table.getSymNameAttr())))
      decisions.add("table '" + table.getSymName() +
                    "' stays apart: it is looked up for a whole catalogue, whose rows are found "
                    "once and kept");
    else
      groups[getSpec(table)].tables.push_back(table);
  }
  for (auto &[spec, group] : groups)
    dropWideTables(group);
  for (auto &[spec, group] : groups)
    if (group.tables.size() == 1)
      noteLonely(group);
}

void Merger::declareMerged() {
  MLIRContext *context = model.getContext();
  llvm::StringSet<> taken;
  for (auto symbol : model.getBody().front().getOps<SymbolOpInterface>())
    taken.insert(symbol.getName());
  for (auto &[spec, group] : groups) {
    if (group.tables.size() < 2)
      continue;
    TableOp first = group.tables.front(), last = group.tables.back();
    std::string name = makeUnique("merged_" + std::to_string(first.getDim()), taken);
    SmallVector<Attribute> members;
    std::string names;
    for (TableOp table : group.tables) {
      members.push_back(FlatSymbolRefAttr::get(table.getSymNameAttr()));
      if (members.size() <= kMostNamed)
        names += (names.empty() ? "" : ", ") + table.getSymName().str();
    }
    OpBuilder builder(context);
    builder.setInsertionPointAfter(last);
    group.merged = cast<TableOp>(builder.clone(*first));
    group.merged.setSymName(name);
    group.merged.setIdBits(63);
    group.merged.setMembersAttr(ArrayAttr::get(context, members));
    for (Attribute member : members)
      owners[member] = group.merged;
    if (members.size() > kMostNamed)
      names += " and " + std::to_string(members.size() - kMostNamed) + " more";
    decisions.add("tables " + names + " are one, '" + name + "', with " +
                  Twine(group.merged.getKeyBits()) + " bits for ids: same dimension, initializer" +
                  (first.hasRowRules() ? ", optimizer and rules about rows" : " and optimizer") +
                  describeOthers(group));
    ++merged;
    tables += group.tables.size();
    RewriteCounter::count("merge-tables");
  }
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

using Depths = DenseMap<Operation *, unsigned>;

/// For each lookup that `counts`: the length of the longest chain of such lookups that it depends
/// on.
static Depths computeDepths(ProgramOp program, llvm::function_ref<bool(LookupOp)> counts) {
  DenseMap<Value, unsigned> depths;
  Depths result;
  for (Operation &op : program.getBody().front()) {
    unsigned depth = 0;
    for (Value operand : op.getOperands())
      depth = std::max(depth, depths.lookup(operand));
    auto lookup = dyn_cast<LookupOp>(op);
    bool isOwn = lookup && counts(lookup);
    if (isOwn)
      result[&op] = depth;
    if (depth + isOwn > 0)
      for (Value value : op.getResults())
        depths[value] = depth + isOwn;
  }
  return result;
}

void Merger::groupLookups(ProgramOp program, TableOp table, ArrayRef<LookupOp> group) {
  // Equal lookups become one part; a valid mask belongs to a part.
  using PartKey = std::tuple<Value, Value, Attribute>;
  llvm::MapVector<PartKey, SmallVector<LookupOp>> parts;
  for (LookupOp lookup : group)
    parts[{lookup.getIds(), lookup.getValid(), lookup.getTableAttr()}].push_back(lookup);
  SmallVector<Value> ids, valid, domains;
  SmallVector<int64_t> validOf;
  SmallVector<Attribute> tables;
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (auto &[key, users] : parts) {
    auto [id, isValid, name] = key;
    if (isValid) {
      validOf.push_back(ids.size());
      valid.push_back(isValid);
    }
    ids.push_back(id);
    tables.push_back(name);
    domains.push_back(domainValues.lookup(getRowDomain(id.getType())));
    types.push_back(users.front().getType());
    locations.push_back(users.front().getLoc());
  }
  MLIRContext *context = program.getContext();
  OpBuilder builder(LookupOp(group.front()));
  Location loc = FusedLoc::get(context, locations);
  FlatSymbolRefAttr domain = declareStepDomain(model, (table.getSymName() + "_keys").str());
  auto stack = StackDomainsOp::create(builder, loc, DomainType::get(context, domain), domains);
  FlatSymbolRefAttr name = FlatSymbolRefAttr::get(table.getSymNameAttr());
  auto keys = MergedKeysOp::create(builder, loc, getRowsType(domain, {}, builder.getI64Type()), ids,
                                   valid, stack.getResult(), builder.getDenseI64ArrayAttr(validOf),
                                   builder.getArrayAttr(tables), name);
  auto rows = GroupedLookupOp::create(builder, loc, types, keys.getResult(), domains, name);
  for (auto [entry, result] : llvm::zip_equal(parts, rows.getResults()))
    for (LookupOp lookup : entry.second) {
      lookup.getResult().replaceAllUsesWith(result);
      lookup.erase();
    }
  lookups += group.size();
  ++groupedLookups;
  RewriteCounter::count("group-lookups");
}

void Merger::rewriteProgram(ProgramOp program) {
  Block &body = program.getBody().front();
  domainValues.clear();
  for (Operation &op : body)
    for (Value value : op.getResults())
      if (auto type = dyn_cast<DomainType>(value.getType()))
        domainValues[type.getDomain()] = value;
  // In most programs no lookup depends on another, and this is all.
  Depths all = computeDepths(program, [](LookupOp) { return true; });
  llvm::MapVector<Operation *, SmallVector<LookupOp>> byTable;
  for (auto lookup : body.getOps<LookupOp>())
    if (TableOp owner = owners.lookup(lookup.getTableAttr()))
      byTable[owner].push_back(lookup);
  for (auto &[owner, members] : byTable) {
    auto table = cast<TableOp>(owner);
    Depths depths;
    if (llvm::any_of(members, [&](LookupOp lookup) { return all.lookup(lookup) > 0; }))
      depths = computeDepths(
          program, [&](LookupOp lookup) { return owners.lookup(lookup.getTableAttr()) == table; });
    std::map<unsigned, SmallVector<LookupOp>> byDepth;
    for (LookupOp lookup : members)
      byDepth[depths.lookup(lookup)].push_back(lookup);
    for (auto &[depth, group] : byDepth)
      groupLookups(program, table, group);
    if (!depths.empty() || byTable.back().first == owner)
      // Operands of one lookup may come after another lookup of its group.
      sortTopologically(&body);
  }
}

void Merger::rewritePrograms() {
  if (owners.empty())
    return;
  SmallVector<ProgramOp> programs(model.getBody().front().getOps<ProgramOp>());
  for (ProgramOp program : programs)
    rewriteProgram(program);
}

namespace {
struct MergeTables : genrec::impl::MergeTablesBase<MergeTables> {
  void runOnOperation() override {
    Merger merger(getOperation());
    merger.chooseGroups();
    merger.declareMerged();
    merger.rewritePrograms();
    merger.finish();
    countStatistic(*this, merged, "merged", merger.merged);
    countStatistic(*this, tables, "tables", merger.tables);
    countStatistic(*this, lookups, "lookups", merger.lookups);
    countStatistic(*this, groupedLookups, "grouped-lookups", merger.groupedLookups);
  }
};
} // namespace
