//===- Identity.cpp - does a checkpoint fit a model? ----------------------===//

#include "genrec/Analysis/Identity.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/xxhash.h"

#include <map>

using namespace mlir;
using namespace genrec;

namespace {

/// A hash over a sequence of texts and numbers.
class Digest {
public:
  Digest &add(StringRef piece) {
    text += std::to_string(piece.size());
    text += ':';
    text += piece;
    return *this;
  }
  Digest &add(uint64_t number) { return add(StringRef(std::to_string(number))); }
  uint64_t get() const { return llvm::xxh3_64bits(text); }

private:
  std::string text;
};

std::string toHex(uint64_t hash) { return llvm::formatv("{0:x-16}", hash).str(); }

template <class T> std::string print(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

/// Attributes that do not change the meaning of an op. `stream` numbers the random draws by the
/// op's position in the model, which changes when any other op is added. `bf16` of a product says
/// how precisely it is computed, as the option `--mixed-precision` does.
bool isWithoutMeaning(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == "bf16")
    return isa<ProductOpInterface>(op);
  return name == "stream" || name == "note" || name.contains('.');
}

uint64_t hashAttributes(Operation *op) {
  Digest digest;
  for (NamedAttribute attribute : op->getAttrDictionary())
    if (!isWithoutMeaning(op, attribute))
      digest.add(attribute.getName()).add(print(attribute.getValue()));
  return digest.get();
}

/// The type without its domain, which the operands imply.
std::string printType(Type type) {
  if (isa<DomainType>(type))
    return "domain";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return print(type);
  std::string text;
  for (int64_t size : tensor.getShape())
    text += (ShapedType::isDynamic(size) ? "?" : std::to_string(size)) + "x";
  return text + print(tensor.getElementType());
}

/// Hashes values together with everything they are computed from.
class ValueHashes {
public:
  explicit ValueHashes(ModelOp model) : model(model) {}

  uint64_t of(Value value) {
    auto [entry, isNew] = known.try_emplace(value, 0);
    if (!isNew)
      return entry->second;
    uint64_t hash = compute(value);
    return known[value] = hash;
  }

  /// The hash of an op with its operands and regions. All operands must have been hashed already,
  /// or be defined outside of the op being hashed.
  uint64_t of(Operation *op) {
    Digest digest;
    digest.add(op->getName().getStringRef()).add(hashAttributes(op));
    for (Value operand : op->getOperands())
      digest.add(of(operand));
    for (Type type : op->getResultTypes())
      digest.add(printType(type));
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        for (BlockArgument argument : block.getArguments())
          known[argument] = Digest().add("argument").add(argument.getArgNumber()).get();
        for (Operation &inner : block)
          digest.add(of(&inner));
      }
    return digest.get();
  }

private:
  uint64_t compute(Value value) {
    auto result = dyn_cast<OpResult>(value);
    if (!result)
      return 0;
    Digest digest;
    // Rows are identified by the domain's column, or by its name if it is a root.
    if (result.getOwner()->hasTrait<ReadsDomains>()) {
      DomainOp domain = lookupDomain(model, cast<DomainType>(value.getType()).getDomain());
      return digest.add("rows").add(domain.getColumn().value_or(domain.getSymName())).get();
    }
    return digest.add(of(result.getOwner())).add(result.getResultNumber()).get();
  }

  ModelOp model;
  llvm::DenseMap<Value, uint64_t> known;
};

/// The losses, or all ops without results if the model has no loss.
SmallVector<Operation *> findSinks(ModelOp model) {
  SmallVector<Operation *> losses, all;
  model.walk([&](Operation *op) {
    if (!isa<ProgramOp>(op->getParentOp()))
      return;
    if (isa<LossOp>(op))
      losses.push_back(op);
    if (op->getNumResults() == 0)
      all.push_back(op);
  });
  return losses.empty() ? all : losses;
}

/// The sinks and the ops they depend on, operands before users.
llvm::SetVector<Operation *> findSlice(ArrayRef<Operation *> sinks) {
  llvm::SetVector<Operation *> slice;
  SmallVector<std::pair<Operation *, bool>> waiting;
  for (Operation *sink : llvm::reverse(sinks))
    waiting.push_back({sink, false});
  while (!waiting.empty()) {
    auto [op, isDone] = waiting.pop_back_val();
    if (isDone) {
      slice.insert(op);
      continue;
    }
    if (slice.contains(op))
      continue;
    waiting.push_back({op, true});
    for (Value operand : llvm::reverse(op->getOperands()))
      if (Operation *maker = operand.getDefiningOp())
        waiting.push_back({maker, false});
  }
  return slice;
}

std::string describeInit(InitAttr init) {
  return (stringifyInitKind(init.getKind()) + " " + print(init.getScale().getValue())).str();
}

std::string describeOptimizer(OptimizerAttr optimizer) {
  std::string text = stringifyOptimizerKind(optimizer.getKind()).str();
  for (NamedAttribute option : optimizer.getOptions())
    if (option.getName() != "lr")
      text += (" " + option.getName().getValue() + "=" + print(option.getValue())).str();
  return text;
}

/// Dimension, id type, initial values, admission and eviction rules, elements.
std::string describeTable(TableOp table) {
  std::string text = "dim " + std::to_string(table.getDim()) + ", " +
                     std::to_string(table.getIdBits()) + " bits, " + describeInit(table.getInit());
  if (auto bounded = table.getBounded())
    text += ", bounded " + std::to_string(*bounded) + " " +
            stringifyEvictKind(table.getEvict().value_or(EvictKind::lru)).str();
  if (auto steps = table.getTtlSteps())
    text += ", ttl " + std::to_string(*steps);
  if (auto seconds = table.getTtlSeconds())
    text += ", ttl " + std::to_string(*seconds) + " s";
  if (auto admitAfter = table.getAdmitAfter())
    text += ", admit_after " + std::to_string(*admitAfter);
  if (table.getElement() != RowElement::f32)
    text += ", " + stringifyRowElement(table.getElement()).str();
  if (auto hotAfter = table.getHotAfter())
    text += ", hot_after " + std::to_string(*hotAfter);
  return text;
}

void addDeclarations(ModelOp model, llvm::json::Object &identity) {
  llvm::json::Object tables, parameters, optimizers;
  for (TableOp table : model.getOps<TableOp>()) {
    if (table.getMembersAttr())
      continue;
    tables[table.getSymName()] = describeTable(table);
    optimizers[table.getSymName()] = describeOptimizer(table.getOptimizer());
  }
  for (ParameterOp parameter : model.getOps<ParameterOp>()) {
    parameters[parameter.getSymName()] =
        printType(parameter.getType()) + ", " + describeInit(parameter.getInit());
    optimizers[parameter.getSymName()] = describeOptimizer(parameter.getOptimizer());
  }
  identity["tables"] = std::move(tables);
  identity["parameters"] = std::move(parameters);
  identity["optimizers"] = std::move(optimizers);
}

void addOps(const llvm::SetVector<Operation *> &slice, llvm::json::Object &identity) {
  llvm::json::Object columns;
  std::map<std::string, SmallVector<uint64_t>> byName;
  for (Operation *op : slice) {
    StringRef name = op->getName().getStringRef();
    name.consume_front("genrec.");
    byName[name.str()].push_back(hashAttributes(op));
    if (auto feature = dyn_cast<FeatureOp>(op))
      columns[feature.getColumn()] =
          print(cast<RankedTensorType>(feature.getType()).getElementType());
  }
  llvm::json::Object ops;
  for (auto &[name, hashes] : byName) {
    llvm::sort(hashes);
    Digest digest;
    for (uint64_t hash : hashes)
      digest.add(hash);
    ops[name] = llvm::json::Array{static_cast<int64_t>(hashes.size()), toHex(digest.get())};
  }
  identity["columns"] = std::move(columns);
  identity["ops"] = std::move(ops);
}

} // namespace

std::string genrec::getIdentity(ModelOp model) {
  SmallVector<Operation *> sinks = findSinks(model);
  llvm::SetVector<Operation *> slice = findSlice(sinks);
  ValueHashes hashes(model);
  // The slice is in topological order, so hashing needs no deep recursion.
  for (Operation *op : slice)
    for (Value result : op->getResults())
      hashes.of(result);
  Digest structure;
  for (Operation *sink : sinks)
    structure.add(hashes.of(sink));
  llvm::json::Object identity{{"structure", toHex(structure.get())}};
  addOps(slice, identity);
  addDeclarations(model, identity);
  return llvm::formatv("{0}", llvm::json::Value(std::move(identity))).str();
}

void genrec::recordIdentity(ModuleOp module) {
  for (ModelOp model : module.getOps<ModelOp>())
    if (!model->hasAttr(GenRecDialect::IdentityAttrHelper::getNameStr()))
      model->setAttr(GenRecDialect::IdentityAttrHelper::getNameStr(),
                     StringAttr::get(model.getContext(), getIdentity(model)));
}
