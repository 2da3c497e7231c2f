//===- ImportOps.cpp - ops of a model file --------------------------------===//
//
// Ops are created by name, so a new op of the dialect or of a plugin needs no change here or in the
// schema.
//
//===----------------------------------------------------------------------===//

#include "Importer.h"

#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace genrec;

/// The op's name in MLIR. A plugin's op has its dialect in the file, "own.op"; that is loaded.
static std::string getFullName(StringRef name, MLIRContext *context) {
  if (!name.contains('.'))
    return ("genrec." + name).str();
  context->getOrLoadDialect(name.split('.').first);
  return name.str();
}

LogicalResult Importer::importOp(const schema::Op &op) {
  Location location = importLocation(op.location());
  OperationState state(location, getFullName(toRef(op.name()), builder.getContext()));
  NamedAttrList attributes;
  if (failed(checkName(state.name, location)) || failed(importOperands(op, state)) ||
      failed(importAttributes(op, state, attributes)) || failed(importResults(op, state)))
    return failure();
  Operation *created = Operation::create(state);
  auto fail = [&] { return emitError(location) << "'" << toRef(op.name()) << "': "; };
  // Properties are set from attributes, if there are any.
  if (!attributes.empty() && failed(created->setPropertiesFromAttribute(
                                 attributes.getDictionary(builder.getContext()), fail))) {
    created->destroy();
    return failure();
  }
  builder.insert(created);
  llvm::append_range(values, created->getResults());
  return success();
}

/// Accepts ops of the dialect without regions and symbols. The file has tables of their own for
/// declarations.
LogicalResult Importer::checkName(OperationName name, Location location) {
  StringRef mnemonic = name.getStringRef();
  mnemonic.consume_front("genrec.");
  if (!name.isRegistered() && name.getDialectNamespace() != "genrec")
    return emitError(location) << "the model file has op '" << mnemonic
                               << "' of a plugin that is not loaded; load it with gr.load_plugin "
                                  "in Python, or with --plugin=<file.so>";
  if (!name.isRegistered())
    return emitError(location) << "the model file has op '" << mnemonic
                               << "', which this build of genrec does not know";
  if (!hasModelOps(name.getDialect()))
    return emitError(location) << "the model file has op '" << mnemonic
                               << "', which is not one of a model";
  if (name.hasTrait<OpTrait::OneRegion>() || name.hasTrait<OpTrait::IsTerminator>() ||
      name.hasInterface<SymbolOpInterface>())
    return emitError(location) << "the model file has '" << mnemonic
                               << "' in its list of ops, where it cannot stand";
  return success();
}

LogicalResult Importer::importOperands(const schema::Op &op, OperationState &state) {
  if (!op.operands())
    return success();
  for (uint32_t number : *op.operands()) {
    if (number >= values.size())
      return emitError(state.location)
             << "'" << toRef(op.name()) << "' uses value " << number << ", but only "
             << values.size() << " values are defined before it";
    state.operands.push_back(values[number]);
  }
  return success();
}

/// For an op that has gained optional operand groups since its first version: how many groups it
/// has now. Older files lack the new groups, which are the last ones. 0 for other ops.
static size_t getGrownGroups(StringRef mnemonic) {
  return llvm::StringSwitch<size_t>(mnemonic)
      .Case("attention", 7)
      .Case("hstu_block", 8)
      .Case("metric", 5)
      .Default(0);
}

LogicalResult Importer::importAttributes(const schema::Op &op, OperationState &state,
                                         NamedAttrList &attributes) {
  static constexpr llvm::StringLiteral kSegments = "operandSegmentSizes";
  StringRef mnemonic = toRef(op.name());
  ArrayRef<StringAttr> known = state.name.getAttributeNames();
  if (op.attributes())
    for (const schema::Attribute *attribute : *op.attributes()) {
      StringRef name = toRef(attribute->name());
      bool isKnown = llvm::any_of(known, [&](StringAttr a) { return a.getValue() == name; });
      if (!isKnown || name == kSegments)
        return emitError(state.location)
               << "'" << mnemonic << "' has no attribute '" << name << "'";
      const schema::BoolValue *flag = attribute->value_as_BoolValue();
      if (flag && !flag->value())
        continue;
      Attribute value = importAttribute(*attribute, state.location);
      if (!value)
        return failure();
      if (attributes.set(name, value))
        return emitError(state.location)
               << "'" << mnemonic << "' has attribute '" << name << "' twice";
    }
  SmallVector<int32_t> segments;
  uint64_t sum = 0;
  if (op.operand_segments())
    for (uint32_t size : *op.operand_segments()) {
      segments.push_back(static_cast<int32_t>(std::min<uint32_t>(size, INT32_MAX)));
      sum += size;
    }
  bool segmented = state.name.hasTrait<OpTrait::AttrSizedOperandSegments>();
  if (segmented != !segments.empty() || (segmented && sum != state.operands.size()))
    return emitError(state.location)
           << "'" << mnemonic << "' has " << state.operands.size() << " operands in segments of "
           << "total size " << sum << (segmented ? "" : ", but takes no segments");
  if (segmented && segments.size() < getGrownGroups(mnemonic))
    segments.resize(getGrownGroups(mnemonic), 0);
  if (segmented)
    attributes.set(kSegments, builder.getDenseI32ArrayAttr(segments));
  return success();
}

LogicalResult Importer::importResults(const schema::Op &op, OperationState &state) {
  if (!op.results())
    return success();
  for (const schema::Type *type : *op.results()) {
    Type result = importType(*type, state.location);
    if (!result)
      return failure();
    state.types.push_back(result);
  }
  return success();
}
