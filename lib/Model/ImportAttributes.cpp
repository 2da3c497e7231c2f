//===- ImportAttributes.cpp - types, attributes, locations ----------------===//

#include "EnumKinds.h"
#include "Importer.h"

#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

/// A limit on the elements of a row or parameter. Products of two sizes below it fit into 64 bits.
static constexpr int64_t kMostElements = int64_t(1) << 40;
static constexpr unsigned kHighestRank = 4;
static constexpr llvm::StringLiteral kMisaligned =
    "the model file is damaged: a list of numbers is not aligned";

Location Importer::importLocation(const schema::Location *location) {
  if (!location)
    return fileLocation;
  Location place = fileLocation;
  if (StringRef path = toRef(location->file()); !path.empty()) {
    unsigned column = location->column();
    place = FileLineColRange::get(builder.getStringAttr(path), location->line(), column,
                                  std::max(location->end_column(), column));
  }
  StringRef name = toRef(location->name());
  return name.empty() ? place : NameLoc::get(builder.getStringAttr(name), place);
}

FlatSymbolRefAttr Importer::getDomain(StringRef name, Location location) {
  auto found = symbols.find(name);
  if (found == symbols.end() || found->second != Symbol::Domain) {
    emitError(location) << "the model file declares no domain '" << name << "'";
    return {};
  }
  return FlatSymbolRefAttr::get(builder.getContext(), name);
}

LogicalResult Importer::importShape(const flatbuffers::Vector<int64_t> *shape, Location location,
                                    SmallVectorImpl<int64_t> &result) {
  std::optional<ArrayRef<int64_t>> extents = toNumbers(shape);
  if (!extents)
    return emitError(location) << kMisaligned;
  if (extents->size() > kHighestRank)
    return emitError(location) << "a shape of rank " << extents->size() << ", at most "
                               << kHighestRank << " is possible";
  int64_t elements = 1;
  for (int64_t extent : *extents) {
    if (extent < 1)
      return emitError(location) << "sizes must be at least 1, got " << extent;
    std::optional<int64_t> product = llvm::checkedMul(elements, extent);
    if (!product || *product > kMostElements)
      return emitError(location) << "a shape with more than 2^40 elements (a size of it is "
                                 << extent << ")";
    elements = *product;
    result.push_back(extent);
  }
  return success();
}

Type Importer::importElement(schema::ElementType element, Location location) {
  switch (element) {
  case schema::ElementType::I1:
    return builder.getI1Type();
  case schema::ElementType::I32:
    return builder.getI32Type();
  case schema::ElementType::I64:
    return builder.getI64Type();
  case schema::ElementType::F32:
    return builder.getF32Type();
  case schema::ElementType::F64:
    return builder.getF64Type();
  case schema::ElementType::BF16:
    return builder.getBF16Type();
  case schema::ElementType::String:
    return StringType::get(builder.getContext());
  }
  emitError(location) << "element type number " << static_cast<int>(element)
                      << ", which this build does not know";
  return {};
}

Type Importer::importType(const schema::Type &type, Location location) {
  StringRef name = toRef(type.domain());
  FlatSymbolRefAttr domain;
  if (!name.empty() || type.is_domain())
    if (!(domain = getDomain(name, location)))
      return {};
  if (type.is_domain())
    return DomainType::get(builder.getContext(), domain);
  SmallVector<int64_t> shape;
  Type element = importElement(type.element(), location);
  if (!element || failed(importShape(type.shape(), location, shape)))
    return {};
  if (!domain)
    return RankedTensorType::get(shape, element);
  shape.insert(shape.begin(), ShapedType::kDynamic);
  return RankedTensorType::getChecked([&] { return emitError(location); }, shape, element,
                                      RowsAttr::get(builder.getContext(), domain));
}

Attribute Importer::importEnum(const schema::EnumValue &value, StringRef name, Location location) {
  const EnumKind *kind = findEnumKind(toRef(value.kind()));
  if (!kind) {
    emitError(location) << "attribute '" << name << "' has kind '" << toRef(value.kind())
                        << "', which this build does not know";
    return {};
  }
  Attribute attribute = kind->parse(builder.getContext(), toRef(value.value()));
  if (!attribute)
    emitError(location) << "attribute '" << name << "' is '" << toRef(value.value())
                        << "'; there are " << kind->keywords();
  return attribute;
}

/// The number of constants must be what the type says, in the list for its element type.
Attribute Importer::importTensor(const schema::TensorValue &value, Location location) {
  auto type = value.type() ? dyn_cast_or_null<RankedTensorType>(importType(*value.type(), location))
                           : RankedTensorType();
  if (!type || getRowDomain(type) || isa<StringType>(type.getElementType())) {
    emitError(location) << "a constant must be a shared tensor of numbers";
    return {};
  }
  Type element = type.getElementType();
  std::optional<ArrayRef<double>> floats = toNumbers(value.floats());
  std::optional<ArrayRef<int64_t>> ints = toNumbers(value.ints());
  if (!floats || !ints) {
    emitError(location) << kMisaligned;
    return {};
  }
  SmallVector<Attribute> numbers;
  if (isa<FloatType>(element))
    for (double number : *floats)
      numbers.push_back(builder.getFloatAttr(element, number));
  else
    for (int64_t number : *ints) {
      unsigned bits = element.getIntOrFloatBitWidth();
      bool holds = bits == 1 ? number == 0 || number == 1 : llvm::isIntN(bits, number);
      if (!holds) {
        emitError(location) << "a constant of " << element << " cannot hold " << number;
        return {};
      }
      numbers.push_back(IntegerAttr::get(element, APInt(bits, number, /*isSigned=*/bits > 1)));
    }
  if (static_cast<int64_t>(numbers.size()) != type.getNumElements()) {
    emitError(location) << "a constant of " << type.getNumElements() << " elements comes with "
                        << numbers.size() << " numbers";
    return {};
  }
  return DenseElementsAttr::get(type, numbers);
}

Attribute Importer::importAttribute(const schema::Attribute &attribute, Location location) {
  StringRef name = toRef(attribute.name());
  switch (attribute.value() ? attribute.value_type() : schema::AttributeValue::NONE) {
  case schema::AttributeValue::NONE:
    break;
  case schema::AttributeValue::IntValue:
    return builder.getI64IntegerAttr(attribute.value_as_IntValue()->value());
  case schema::AttributeValue::FloatValue:
    return builder.getF64FloatAttr(attribute.value_as_FloatValue()->value());
  case schema::AttributeValue::BoolValue:
    return builder.getUnitAttr();
  case schema::AttributeValue::StringValue:
    return builder.getStringAttr(toRef(attribute.value_as_StringValue()->value()));
  case schema::AttributeValue::SymbolValue: {
    StringRef symbol = toRef(attribute.value_as_SymbolValue()->name());
    if (symbols.contains(symbol))
      return FlatSymbolRefAttr::get(builder.getContext(), symbol);
    emitError(location) << "attribute '" << name << "' names '" << symbol
                        << "', which the model file does not declare";
    return {};
  }
  case schema::AttributeValue::IntsValue:
    if (auto ints = toNumbers(attribute.value_as_IntsValue()->values()))
      return builder.getDenseI64ArrayAttr(*ints);
    emitError(location) << kMisaligned;
    return {};
  case schema::AttributeValue::FloatsValue:
    if (auto floats = toNumbers(attribute.value_as_FloatsValue()->values()))
      return builder.getDenseF64ArrayAttr(*floats);
    emitError(location) << kMisaligned;
    return {};
  case schema::AttributeValue::EnumValue:
    return importEnum(*attribute.value_as_EnumValue(), name, location);
  case schema::AttributeValue::TensorValue:
    return importTensor(*attribute.value_as_TensorValue(), location);
  }
  emitError(location) << "attribute '" << name
                      << "' has no value, or one of a kind that this build "
                      << "does not know";
  return {};
}
