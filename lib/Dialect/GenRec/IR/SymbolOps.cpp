//===- SymbolOps.cpp - models, domains, tables, parameters, programs ------===//

#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"
#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// ModelOp
//===----------------------------------------------------------------------===//

static LogicalResult verifyScheduleEntry(ModelOp model, NamedAttribute entry) {
  StringRef name = entry.getName();
  auto complain = [&](StringRef rule) -> LogicalResult {
    return model.emitOpError() << "'schedule' entry '" << name << "' must be " << rule
                               << ", but is " << entry.getValue();
  };
  if (name == "kind") {
    auto kind = dyn_cast<StringAttr>(entry.getValue());
    if (!kind || !llvm::is_contained({"constant", "linear", "cosine"}, kind.getValue()))
      return complain("\"constant\", \"linear\" or \"cosine\"");
    return success();
  }
  if (name == "warmup" || name == "steps") {
    auto steps = dyn_cast<IntegerAttr>(entry.getValue());
    if (!steps || !steps.getType().isSignlessInteger(64) || steps.getInt() < 0)
      return complain("an i64 of at least 0 (a number of steps)");
    return success();
  }
  if (name == "final") {
    auto factor = dyn_cast<FloatAttr>(entry.getValue());
    if (!factor || !(factor.getValueAsDouble() >= 0.0 && factor.getValueAsDouble() <= 1.0))
      return complain("a float from 0 to 1 (a factor of the learning rate)");
    return success();
  }
  return model.emitOpError() << "'schedule' has unknown entry '" << name
                             << "'; it has kind, warmup, steps and final";
}

/// Rejects cycles and deep trees first: the verifiers of domains and ops, which walk from a domain
/// to its root, run later.
static LogicalResult verifyDomainTree(ModelOp model) {
  llvm::DenseMap<Attribute, DomainOp> domains;
  for (auto domain : model.getBody().front().getOps<DomainOp>())
    domains.try_emplace(domain.getSymNameAttr(), domain);
  auto parentOf = [&](DomainOp domain) {
    FlatSymbolRefAttr parent = domain.getParentAttr();
    return parent ? domains.lookup(parent.getAttr()) : DomainOp();
  };
  for (auto domain : model.getBody().front().getOps<DomainOp>()) {
    llvm::SmallPtrSet<Operation *, 8> path{domain};
    for (DomainOp above = parentOf(domain); above; above = parentOf(above)) {
      if (!path.insert(above).second)
        return domain.emitOpError() << "is its own ancestor; domains must form a tree";
      if (path.size() > kMostDomainDepth + 1)
        return domain.emitOpError() << "lies below more than " << kMostDomainDepth
                                    << " domains, the most that may lie above one";
    }
  }
  return success();
}

LogicalResult ModelOp::verify() {
  if (failed(verifyDomainTree(*this)) ||
      failed(expectNotNegative(*this, "clip_norm", getClipNorm().convertToDouble())) ||
      failed(expectNotNegative(*this, "clip_value", getClipValue().convertToDouble())))
    return failure();
  if (DictionaryAttr schedule = getScheduleAttr())
    for (NamedAttribute entry : schedule)
      if (failed(verifyScheduleEntry(*this, entry)))
        return failure();

  DomainOp root;
  ProgramOp programs[getMaxEnumValForProgramMode() + 1];
  for (Operation &op : getBody().front()) {
    if (!isa<SymbolOpInterface>(op))
      return emitOpError() << "holds declarations and programs only, but has '" << op.getName()
                           << "'";
    if (auto domain = dyn_cast<DomainOp>(op);
        domain && domain.getKind() == DomainKind::data && !domain.getParentAttr()) {
      if (root)
        return emitOpError() << "has two roots of kind data, @" << root.getSymName() << " and @"
                             << domain.getSymName()
                             << "; a dataset has one, and other domains name a parent";
      root = domain;
    }
    if (auto program = dyn_cast<ProgramOp>(op)) {
      ProgramOp &other = programs[static_cast<unsigned>(program.getMode())];
      if (other)
        return emitOpError() << "has two programs of mode "
                             << stringifyProgramMode(program.getMode()) << ", @"
                             << other.getSymName() << " and @" << program.getSymName();
      other = program;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DomainOp
//===----------------------------------------------------------------------===//

LogicalResult DomainOp::verify() {
  StringRef kind = stringifyDomainKind(getKind());
  bool hasParent = getParentAttr() != nullptr, hasColumn = getColumnAttr() != nullptr;
  if (getSourceAttr() && getKind() != DomainKind::catalogue)
    return emitOpError() << "of kind " << kind
                         << " must have no 'source'; only a catalogue is a file of its own";
  if (getExpectedRowsAttr() && getKind() != DomainKind::catalogue)
    return emitOpError()
           << "of kind " << kind
           << " must have no 'expected_rows'; only a catalogue has a number of its own";
  if (hasColumn && getColumn()->empty())
    return emitOpError() << "'column' must not be empty";
  if (getKind() == DomainKind::data) {
    if (hasParent != hasColumn)
      return emitOpError() << (hasParent ? "of kind data with a parent must name the list 'column' "
                                           "that opens it"
                                         : "of kind data without a parent must have no 'column'; "
                                           "its rows are the rows of the file");
    return success();
  }
  if (hasColumn)
    return emitOpError() << "of kind " << kind
                         << " must have no 'column'; its rows are not read from a list column";
  bool wantsParent = getKind() == DomainKind::derived;
  if (hasParent != wantsParent)
    return emitOpError() << "of kind " << kind << " must have " << (wantsParent ? "a" : "no")
                         << " 'parent'";
  return success();
}

LogicalResult DomainOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr parent = getParentAttr();
  if (!parent)
    return success();
  DomainOp declaration = lookupDomain(*this, parent, &symbols);
  if (!declaration)
    return emitOpError() << "names parent " << parent << ", which the model does not declare";
  bool fitting = declaration.getKind() == DomainKind::data ||
                 declaration.getKind() == DomainKind::catalogue ||
                 getKind() == DomainKind::derived; // of picked lists: also a step domain
  if (!fitting)
    return emitOpError() << "of kind " << stringifyDomainKind(getKind())
                         << " cannot have the parent " << parent << " of kind "
                         << stringifyDomainKind(declaration.getKind());
  return success();
}

//===----------------------------------------------------------------------===//
// TableOp, ParameterOp
//===----------------------------------------------------------------------===//

int64_t TableOp::getKeyBits() {
  size_t members = getMembersAttr() ? getMembersAttr().size() : 0;
  return 63 - static_cast<int64_t>(llvm::Log2_64_Ceil(members + 1));
}

RowType TableOp::getRowType() {
  return RowType::get(getContext(), getDim(), getElement(), getHotAfter().has_value());
}

LogicalResult TableOp::verify() {
  if (failed(expectRange(*this, "id_bits", getIdBits(), 1, 63)))
    return failure();
  if (getRounding() && getElement() == RowElement::f32)
    return emitOpError() << "has 'rounding', which says how values of bf16 are stored, but its "
                            "'element' is f32";
  if (getHotAfter() && getElement() == RowElement::f32)
    return emitOpError()
           << "has 'hot_after', which says what rows of bf16 keep the lower halves of "
              "floats, but its 'element' is f32";
  for (StringRef rule : {"bounded", "ttl", "admit_after", "hot_after"})
    if (auto value = (*this)->getAttrOfType<IntegerAttr>(rule))
      if (failed(expectRange(*this, rule, value.getInt(), 1)))
        return failure();
  if (getOptimizer().getOption("frozen") != 0.0 && hasRowRules())
    return emitOpError()
           << "is frozen, so that rows neither come nor leave nor change, but has rules about rows "
              "('bounded', 'ttl', 'admit_after' or 'hot_after')";
  if (getTtlInSeconds() && !getTtl())
    return emitOpError() << "has 'ttl_in_seconds', the unit of 'ttl', but no 'ttl'";
  if (getEvict() && !getBounded())
    return emitOpError() << "has 'evict', which says what leaves a bounded table, but no 'bounded'";
  return success();
}

/// Attributes that may differ between a logical table and its merged table.
static bool isOwnOfTable(StringAttr name) {
  return name == "sym_name" || name == "id_bits" || name == "members";
}

LogicalResult TableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ArrayAttr members = getMembersAttr();
  if (!members)
    return success();
  if (members.empty())
    return emitOpError() << "must have at least one of 'members'";
  auto spec = [](TableOp table) {
    return llvm::to_vector(llvm::make_filter_range(
        table->getAttrs(), [](NamedAttribute entry) { return !isOwnOfTable(entry.getName()); }));
  };
  SmallVector<NamedAttribute> own = spec(*this);
  llvm::SmallDenseSet<Attribute, 16> seen;
  for (auto name : members.getAsRange<FlatSymbolRefAttr>()) {
    TableOp member = lookupTable(*this, name, &symbols);
    if (!member || member.getMembersAttr())
      return emitOpError() << "has the member " << name
                           << ", which the model does not declare as a logical table";
    if (!seen.insert(name).second)
      return emitOpError() << "has the member " << name << " twice";
    if (static_cast<int64_t>(member.getIdBits()) > getKeyBits()) {
      InFlightDiagnostic diagnostic = emitOpError() << "of " << members.size() << " members leaves "
                                                    << getKeyBits() << " bits for ids, but " << name
                                                    << " has " << member.getIdBits();
      diagnostic.attachNote(member.getLoc()) << "the member is declared here";
      return diagnostic;
    }
    if (spec(member) != own) {
      InFlightDiagnostic diagnostic = emitOpError() << "differs from its member " << name
                                                    << " in more than name and id_bits";
      diagnostic.attachNote(member.getLoc()) << "the member is declared here";
      return diagnostic;
    }
  }
  return success();
}

static bool isXavier(InitKind kind) {
  return kind == InitKind::xavier_uniform || kind == InitKind::xavier_normal;
}

LogicalResult ParameterOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getEncoding() || !type.hasStaticShape() || type.getRank() > 2 ||
      !type.getElementType().isF32() || type.getNumElements() == 0)
    return emitOpError() << "must be a tensor of f32 of static shape, rank 0 to 2 and at least one "
                            "element, but is "
                         << typeText(type);
  if (isXavier(getInit().getKind()) && type.getRank() != 2)
    return emitOpError() << "is initialised by " << stringifyInitKind(getInit().getKind())
                         << ", which needs rank 2 (fan in and fan out), but is " << typeText(type);
  if (getOptimizer().hasRowStates())
    return emitOpError() << "has optimizer " << stringifyOptimizerKind(getOptimizer().getKind())
                         << ", which is for tables only: it keeps one accumulator per row";
  if (getOptimizer().getOption("per_row_step") != 0.0)
    return emitOpError() << "has optimizer option 'per_row_step', which is for tables only";
  return success();
}

//===----------------------------------------------------------------------===//
// ProgramOp
//===----------------------------------------------------------------------===//

/// The kind of domain that result `index` of `op` must have.
static DomainKind kindMadeBy(Operation &op, unsigned index) {
  if (isa<CatalogueOp>(op) && index == 0)
    return DomainKind::catalogue;
  if (op.hasTrait<ReadsDomains>())
    return DomainKind::data;
  return op.hasTrait<DerivesDomain>() ? DomainKind::derived : DomainKind::step;
}

/// Checks the type of a value, whatever op makes it.
static LogicalResult verifyValueType(Operation &op, unsigned index, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return success();
  if (!tensor.getEncoding() && (!tensor.hasStaticShape() || tensor.getRank() > 2))
    return op.emitOpError() << "result " << index
                            << " is shared, so it must have a static shape of rank 0 to 2, but is "
                            << typeText(tensor);
  if (tensor.getEncoding() && !getRowDomain(tensor))
    return op.emitOpError() << "result " << index
                            << " has an encoding that is not #genrec.rows: " << typeText(tensor);
  return success();
}

namespace {
/// Checks rules of the program as a whole.
class ProgramVerifier {
public:
  explicit ProgramVerifier(ProgramOp program) : program(program) {
    if (ModelOp model = getModel(program))
      for (DomainOp domain : model.getBody().getOps<DomainOp>())
        declared.try_emplace(domain.getSymNameAttr(), domain);
  }

  LogicalResult run() {
    for (Operation &op : program.getBody().front())
      if (failed(verifyDialect(op)) || failed(collectDomains(op)))
        return failure();
    for (Operation &op : program.getBody().front())
      if (failed(verifyValues(op)) || failed(verifyNames(op)))
        return failure();
    return success();
  }

private:
  LogicalResult verifyDialect(Operation &op);
  LogicalResult collectDomains(Operation &op);
  LogicalResult verifyValues(Operation &op);
  LogicalResult verifyNames(Operation &op);
  LogicalResult verifyUnique(Operation &op, StringRef what, StringRef name);

  ProgramOp program;
  llvm::DenseMap<Attribute, DomainOp> declared;
  llvm::DenseMap<Attribute, Operation *> makers;
  llvm::StringMap<Operation *> names;
};
} // namespace

LogicalResult ProgramVerifier::verifyDialect(Operation &op) {
  // Declarations and body ops check their parent themselves.
  if (hasModelOps(op.getDialect()))
    return success();
  return program.emitOpError() << "holds ops of genrec and of its plugins only, but has '"
                               << op.getName() << "'";
}

LogicalResult ProgramVerifier::collectDomains(Operation &op) {
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    auto type = dyn_cast<DomainType>(result.getType());
    if (!type)
      continue;
    DomainOp declaration = declared.lookup(type.getDomain().getAttr());
    if (!declaration)
      return op.emitOpError() << "makes rows of " << type.getDomain()
                              << ", which the model does not declare";
    if (DomainKind kind = kindMadeBy(op, index); declaration.getKind() != kind) {
      InFlightDiagnostic diagnostic = op.emitOpError()
                                      << "makes domains of kind " << stringifyDomainKind(kind)
                                      << ", but " << type.getDomain() << " is of kind "
                                      << stringifyDomainKind(declaration.getKind());
      diagnostic.attachNote(declaration.getLoc()) << "domain declared here";
      return diagnostic;
    }
    auto [place, isNew] = makers.try_emplace(type.getDomain(), &op);
    if (!isNew) {
      InFlightDiagnostic diagnostic = op.emitOpError()
                                      << "makes rows of " << type.getDomain()
                                      << ", which the program has already; a program holds one "
                                         "value of each domain";
      diagnostic.attachNote(place->second->getLoc()) << "made first here";
      return diagnostic;
    }
  }
  return success();
}

LogicalResult ProgramVerifier::verifyValues(Operation &op) {
  for (auto [index, type] : llvm::enumerate(op.getResultTypes())) {
    if (failed(verifyValueType(op, index, type)))
      return failure();
    FlatSymbolRefAttr domain = getRowDomain(type);
    if (!domain || makers.contains(domain))
      continue;
    if (!declared.contains(domain.getAttr()))
      return op.emitOpError() << "has rows of " << domain << ", which the model does not declare";
    return op.emitOpError() << "has rows of " << domain
                            << ", but the program has no value of that domain";
  }
  return success();
}

LogicalResult ProgramVerifier::verifyUnique(Operation &op, StringRef what, StringRef name) {
  auto [place, isNew] = names.try_emplace((what + " " + name).str(), &op);
  if (isNew)
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError()
                                  << "is a second " << what << " named \"" << name << "\"";
  diagnostic.attachNote(place->second->getLoc()) << "the first is here";
  return diagnostic;
}

LogicalResult ProgramVerifier::verifyNames(Operation &op) {
  if (auto loss = dyn_cast<LossOp>(op))
    return verifyUnique(op, "loss", loss.getName());
  if (auto loss = dyn_cast<ReportLossOp>(op))
    return verifyUnique(op, "reported loss", loss.getName());
  if (auto metric = dyn_cast<MetricOp>(op))
    return verifyUnique(op, "metric", metric.getName());
  if (auto output = dyn_cast<OutputOp>(op))
    return verifyUnique(op, "output", output.getName());
  return success();
}

LogicalResult ProgramOp::verifyRegions() { return ProgramVerifier(*this).run(); }
