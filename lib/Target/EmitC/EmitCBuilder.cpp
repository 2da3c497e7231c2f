//===- EmitCBuilder.cpp - idioms of emitted C++ ---------------------------===//

#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Types and values
//===----------------------------------------------------------------------===//

Type EmitCBuilder::opaque(StringRef name) const {
  return emitc::OpaqueType::get(getContext(), name);
}

Type EmitCBuilder::pointer(Type pointee) const { return emitc::PointerType::get(pointee); }

Value EmitCBuilder::integer(int64_t value, Type type) const {
  type = type ? type : i64();
  return emitc::ConstantOp::create(builder, loc, type, IntegerAttr::get(type, value));
}

Value EmitCBuilder::floating(double value, Type type) const {
  type = type ? type : f32();
  return emitc::ConstantOp::create(builder, loc, type, FloatAttr::get(type, value));
}

Value EmitCBuilder::literal(StringRef text, Type type) const {
  return emitc::LiteralOp::create(builder, loc, type, text);
}

Value EmitCBuilder::add(Value lhs, Value rhs) const {
  return emitc::AddOp::create(builder, loc, lhs.getType(), lhs, rhs);
}
Value EmitCBuilder::sub(Value lhs, Value rhs) const {
  return emitc::SubOp::create(builder, loc, lhs.getType(), lhs, rhs);
}
Value EmitCBuilder::mul(Value lhs, Value rhs) const {
  return emitc::MulOp::create(builder, loc, lhs.getType(), lhs, rhs);
}
Value EmitCBuilder::compare(emitc::CmpPredicate predicate, Value lhs, Value rhs) const {
  return emitc::CmpOp::create(builder, loc, i1(), predicate, lhs, rhs);
}
Value EmitCBuilder::cast(Value value, Type type) const {
  return value.getType() == type ? value : emitc::CastOp::create(builder, loc, type, value);
}

void EmitCBuilder::callVoid(StringRef callee, ValueRange operands,
                            ArrayRef<Attribute> templateArguments) const {
  ArrayAttr arguments =
      templateArguments.empty() ? ArrayAttr() : builder.getArrayAttr(templateArguments);
  emitc::CallOpaqueOp::create(builder, loc, TypeRange(), callee, operands, ArrayAttr(), arguments);
}

Value EmitCBuilder::call(StringRef callee, Type result, ValueRange operands,
                         ArrayRef<Attribute> templateArguments) const {
  ArrayAttr arguments =
      templateArguments.empty() ? ArrayAttr() : builder.getArrayAttr(templateArguments);
  return emitc::CallOpaqueOp::create(builder, loc, TypeRange(result), callee, operands, ArrayAttr(),
                                     arguments)
      .getResult(0);
}

Attribute EmitCBuilder::templateInteger(int64_t value) const {
  return builder.getI64IntegerAttr(value);
}
Attribute EmitCBuilder::templateBool(bool value) const {
  return templateName(value ? "true" : "false");
}
Attribute EmitCBuilder::templateName(StringRef text) const {
  return emitc::OpaqueAttr::get(getContext(), text);
}
Attribute EmitCBuilder::templateType(Type type) const { return TypeAttr::get(type); }

//===----------------------------------------------------------------------===//
// Lvalues
//===----------------------------------------------------------------------===//

Value EmitCBuilder::load(Value place) const {
  Type type = cast<emitc::LValueType>(place.getType()).getValueType();
  return emitc::LoadOp::create(builder, loc, type, place);
}

void EmitCBuilder::assign(Value place, Value value) const {
  emitc::AssignOp::create(builder, loc, place, value);
}

Value EmitCBuilder::element(Value pointer, Value index) const {
  Type type = pointer.getType();
  Type element = isa<emitc::ArrayType>(type) ? cast<emitc::ArrayType>(type).getElementType()
                                             : cast<emitc::PointerType>(type).getPointee();
  return emitc::SubscriptOp::create(builder, loc, emitc::LValueType::get(element), pointer,
                                    ValueRange(index));
}

Value EmitCBuilder::loadElement(Value pointer, Value index) const {
  return load(element(pointer, index));
}

void EmitCBuilder::storeElement(Value pointer, Value index, Value value) const {
  assign(element(pointer, index), value);
}

Value EmitCBuilder::memberOf(Value pointer, StringRef name, Type type) const {
  Type pointee = cast<emitc::PointerType>(pointer.getType()).getPointee();
  Value place =
      emitc::DereferenceOp::create(builder, loc, emitc::LValueType::get(pointee), pointer);
  return member(place, name, type);
}

Value EmitCBuilder::member(Value place, StringRef name, Type type) const {
  return emitc::MemberOp::create(builder, loc, emitc::LValueType::get(type),
                                 builder.getStringAttr(name), place);
}

Value EmitCBuilder::addressOf(Value place) const {
  Type type = cast<emitc::LValueType>(place.getType()).getValueType();
  return emitc::AddressOfOp::create(builder, loc, emitc::PointerType::get(type), place);
}

Value EmitCBuilder::variable(Type type, Attribute value) const {
  if (!value)
    value = emitc::OpaqueAttr::get(getContext(), "");
  return emitc::VariableOp::create(builder, loc, emitc::LValueType::get(type), value);
}

Value EmitCBuilder::array(Type element, int64_t size) const {
  return emitc::VariableOp::create(builder, loc, emitc::ArrayType::get({size}, element),
                                   emitc::OpaqueAttr::get(getContext(), ""));
}

Value EmitCBuilder::decay(Value array) const {
  auto type = dyn_cast<emitc::ArrayType>(array.getType());
  if (!type)
    return array;
  // EmitC has no array-to-pointer conversion: takes the address of the first element.
  return addressOf(element(array, integer(0)));
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

emitc::ForOp EmitCBuilder::enterFor(Value begin, Value end, Value step, StringRef name) const {
  auto loop = emitc::ForOp::create(builder, loc, begin, end, step);
  Location place = NameLoc::get(builder.getStringAttr(name), loc);
  loop.getInductionVar().setLoc(place);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  return loop;
}

emitc::IfOp EmitCBuilder::enterIf(Value condition) const {
  auto op = emitc::IfOp::create(builder, loc, condition, /*addThenBlock=*/true,
                                /*addElseBlock=*/false);
  builder.setInsertionPointToStart(&op.getThenRegion().front());
  auto end = emitc::YieldOp::create(builder, loc);
  builder.setInsertionPoint(end);
  return op;
}

emitc::VerbatimOp EmitCBuilder::comment(const Twine &text) const {
  // Names are the user's: one with a line break must not end the comment, nor one with a backslash
  // go on in the next line.
  std::string line = ("// " + text).str();
  for (char &c : line)
    if (c == '\n' || c == '\r' || c == '\\')
      c = ' ';
  return emitc::VerbatimOp::create(builder, loc, builder.getStringAttr(line), ValueRange());
}

void EmitCBuilder::pragma(const Twine &text) const {
  emitc::VerbatimOp::create(builder, loc, builder.getStringAttr("#pragma " + text), ValueRange());
}

EmitCBuilder EmitCBuilder::named(const Twine &name) const {
  return EmitCBuilder(builder, NameLoc::get(builder.getStringAttr(name), loc));
}

Value EmitCBuilder::restricted(Value value) {
  value.getDefiningOp()->setAttr(kRestrictAttrName, UnitAttr::get(value.getContext()));
  return value;
}

Value EmitCBuilder::constant(Value value) {
  value.getDefiningOp()->setAttr(kConstAttrName, UnitAttr::get(value.getContext()));
  return value;
}

Value EmitCBuilder::kept(Value value) {
  value.getDefiningOp()->setAttr(kVariableAttrName, UnitAttr::get(value.getContext()));
  return value;
}

Value EmitCBuilder::constantTable(DenseElementsAttr values, StringRef name) const {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  Type element = values.getElementType();
  Type type = emitc::ArrayType::get({values.getNumElements()}, element);
  // EmitC requires a tensor as the initial value of an array, while bodies may have a vector.
  values = values.reshape(RankedTensorType::get({values.getNumElements()}, element));
  emitc::GlobalOp table;
  int64_t count = 0;
  for (auto global : module.getOps<emitc::GlobalOp>()) {
    if (!global.getInitialValue())
      continue;
    ++count;
    if (*global.getInitialValue() == values)
      table = global;
  }
  if (!table) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(module.getBody());
    table = emitc::GlobalOp::create(builder, loc, (name + "_constant_" + Twine(count)).str(), type,
                                    values, /*extern_specifier=*/false, /*static_specifier=*/true,
                                    /*const_specifier=*/true);
  }
  Value place = emitc::GetGlobalOp::create(builder, loc, type, table.getSymName());
  return decay(place);
}

void EmitCBuilder::constexprGlobal(const Twine &name, Type type, Attribute value) const {
  auto global =
      emitc::GlobalOp::create(builder, loc, name.str(), type, /*initial_value=*/Attribute(),
                              /*extern_specifier=*/false, /*static_specifier=*/false,
                              /*const_specifier=*/false);
  global->setAttr(kConstexprAttrName, builder.getUnitAttr());
  global->setAttr(kFieldsAttrName, value);
}

void genrec::moveTablesToDevice(ModuleOp module) {
  for (auto global : module.getOps<emitc::GlobalOp>())
    if (global.getInitialValue())
      global->setAttr(kDeviceAttrName, UnitAttr::get(module.getContext()));
}
