//===- GenRecDialect.cpp - registration, types, attributes ----------------===//

#include "VectorBodyOps.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace genrec;

#include "genrec/Dialect/GenRec/IR/GenRecDialect.cpp.inc"
#include "genrec/Dialect/GenRec/IR/GenRecEnums.cpp.inc"
#include "genrec/Dialect/GenRec/IR/GenRecInterfaces.cpp.inc"

/// `hot`, of the type of handles.
static ParseResult parseHotRows(AsmParser &parser, bool &isHot) {
  isHot = true;
  return parser.parseKeyword("hot");
}

static void printHotRows(AsmPrinter &printer, bool) { printer << "hot"; }

#define GET_ATTRDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecTypes.cpp.inc"

void GenRecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "genrec/Dialect/GenRec/IR/GenRecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "genrec/Dialect/GenRec/IR/GenRecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "genrec/Dialect/GenRec/IR/GenRecOps.cpp.inc"
      >();
  addInterfaces<ModelDialectInterface>();
  attachVectorBodies(getContext());
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

template <typename AttrT> static bool isA(Attribute value) { return isa<AttrT>(value); }

template <typename AttrT> static bool isArrayOf(Attribute value) {
  auto array = dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, [](Attribute element) { return isa<AttrT>(element); });
}

/// The rule for the value of a discardable attribute, as a predicate; null if the dialect has no
/// attribute of that name.
static bool (*findAttributeRule(StringRef name))(Attribute) {
  using D = GenRecDialect;
  static constexpr std::pair<StringRef, bool (*)(Attribute)> rules[] = {
      {D::StageAttrHelper::getNameStr(), isA<StageAttr>},
      {D::RowBlockAttrHelper::getNameStr(), isA<RowBlockAttr>},
      {D::BufferIdsAttrHelper::getNameStr(), isA<DenseI64ArrayAttr>},
      {D::CostsAttrHelper::getNameStr(), isArrayOf<CostAttr>},
      {D::OriginAttrHelper::getNameStr(), isA<StringAttr>},
      {D::OpsAttrHelper::getNameStr(), isA<StringAttr>},
      {D::TableAttrHelper::getNameStr(), isA<FlatSymbolRefAttr>},
      {D::BuffersAttrHelper::getNameStr(), isArrayOf<BufferAttr>},
      {D::FirstComputeOpAttrHelper::getNameStr(), isA<IntegerAttr>},
      {D::FirstUpdateOpAttrHelper::getNameStr(), isA<IntegerAttr>},
      {D::NotesAttrHelper::getNameStr(), isArrayOf<StringAttr>},
      {D::ColumnsAttrHelper::getNameStr(), isArrayOf<StringAttr>},
      {D::TablesAttrHelper::getNameStr(), isArrayOf<FlatSymbolRefAttr>},
      {D::TrainsAttrHelper::getNameStr(), isArrayOf<FlatSymbolRefAttr>},
      {D::SingleRankAttrHelper::getNameStr(), isA<StringAttr>},
      {D::MeetingAttrHelper::getNameStr(), isA<StringAttr>},
      {D::DecisionsAttrHelper::getNameStr(), isArrayOf<StringAttr>},
      {D::IdentityAttrHelper::getNameStr(), isA<StringAttr>},
      {D::TargetAttrHelper::getNameStr(), isA<TargetKindAttr>}};
  const auto *rule = llvm::find_if(rules, [&](const auto &entry) { return entry.first == name; });
  return rule == std::end(rules) ? nullptr : rule->second;
}

LogicalResult GenRecDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto *rule = findAttributeRule(attribute.getName());
  if (!rule)
    return op->emitError() << "has attribute " << attribute.getName()
                           << ", which the dialect does not declare";
  if (!rule(attribute.getValue()))
    return op->emitError() << "has attribute " << attribute.getName()
                           << " of a type that it may not have: " << attribute.getValue();
  return success();
}

Attribute FieldsAttr::parse(AsmParser &parser, Type) {
  SmallVector<StringAttr> names;
  SmallVector<Attribute> values;
  auto parseField = [&]() -> ParseResult {
    return failure(parser.parseAttribute(names.emplace_back()) || parser.parseEqual() ||
                   parser.parseAttribute(values.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseField))
    return {};
  return get(parser.getContext(), names, values);
}

void FieldsAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(llvm::zip(getNames(), getValues()), printer, [&](auto field) {
    printer << std::get<0>(field) << " = " << std::get<1>(field);
  });
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Row types
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr genrec::getRowDomain(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return {};
  auto rows = dyn_cast_or_null<RowsAttr>(tensor.getEncoding());
  return rows ? rows.getDomain() : FlatSymbolRefAttr();
}

bool genrec::isRowsOf(Value value, FlatSymbolRefAttr domain) {
  return isa<RankedTensorType>(value.getType()) && getRowDomain(value.getType()) == domain;
}

ArrayRef<int64_t> genrec::getRowShape(Type type) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  return getRowDomain(type) ? shape.drop_front() : shape;
}

RankedTensorType genrec::getRowsType(FlatSymbolRefAttr domain, ArrayRef<int64_t> rowShape,
                                     Type element) {
  SmallVector<int64_t> shape{ShapedType::kDynamic};
  llvm::append_range(shape, rowShape);
  return RankedTensorType::get(shape, element, RowsAttr::get(element.getContext(), domain));
}

LogicalResult RowType::verify(function_ref<InFlightDiagnostic()> emitError, int64_t width,
                              RowElement element, bool hot) {
  if (hot && element == RowElement::f32)
    return emitError() << "rows of f32 have no lower halves beside them, which 'hot' says: "
                          "!genrec.row<"
                       << width << ", bf16, hot>";
  return success();
}

Type genrec::getBodyType(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  ArrayRef<int64_t> shape = getRowShape(type);
  if (shape.empty())
    return element;
  return VectorType::get(shape, element);
}

int64_t genrec::getRowSize(Type type) {
  int64_t size = 1;
  for (int64_t extent : getRowShape(type))
    size *= extent;
  return size;
}

std::string genrec::describe(Type type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    os << type;
    return text;
  }
  if (FlatSymbolRefAttr domain = getRowDomain(type))
    os << "rows of " << domain << ", [";
  else
    os << "shared [";
  llvm::interleaveComma(getRowShape(type), os);
  os << "] x " << tensor.getElementType();
  return text;
}
