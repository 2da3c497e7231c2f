//===- CppText.cpp - types and constants as C++ text ----------------------===//

#include "CppText.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Dialect/GenRec/IR/NumberedNames.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <cmath>
#include <cstdlib>

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

std::string genrec::getCppType(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.getWidth() == 1)
      return "bool";
    return (integer.isUnsigned() ? "uint" : "int") + std::to_string(integer.getWidth()) + "_t";
  }
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (isa<IndexType>(type))
    return "size_t";
  if (auto opaque = dyn_cast<emitc::OpaqueType>(type))
    return opaque.getValue().str();
  if (auto pointer = dyn_cast<emitc::PointerType>(type)) {
    std::string pointee = getCppType(pointer.getPointee());
    if (pointee.empty())
      return "";
    return pointee + (pointee.back() == '*' ? "*" : " *");
  }
  return "";
}

std::string genrec::getCppDeclaration(Type type, StringRef name, bool isConst, bool isRestrict) {
  if (auto lvalue = dyn_cast<emitc::LValueType>(type))
    type = lvalue.getValueType();
  std::string suffix, prefix = isConst ? "const " : "";
  if (auto array = dyn_cast<emitc::ArrayType>(type)) {
    for (int64_t size : array.getShape())
      suffix += "[" + std::to_string(size) + "]";
    type = array.getElementType();
  }
  std::string text = getCppType(type);
  // For a pointer to pointers, const applies to the pointers.
  if (isConst && isa<emitc::PointerType>(type)) {
    auto pointee = dyn_cast<emitc::PointerType>(cast<emitc::PointerType>(type).getPointee());
    if (pointee) {
      prefix = "";
      text = getCppType(pointee) + "const *";
    }
  }
  if (isRestrict)
    text += "__restrict__ ";
  else if (text.empty() || text.back() != '*')
    text += " ";
  return prefix + text + name.str() + suffix;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// The shortest decimal that reads back as `value`, in scientific notation only from 1e7 on and for
/// small numbers.
static std::string getShortest(double value, bool isFloat) {
  std::string text;
  bool isPlain = std::fabs(value) < 1e7;
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    bool isSame = isFloat ? std::strtof(text.c_str(), nullptr) == static_cast<float>(value)
                          : std::strtod(text.c_str(), nullptr) == value;
    if (isSame && !(isPlain && text.find("e+") != std::string::npos))
      break;
  }
  if (text.find_first_of(".e") == std::string::npos)
    text += ".0";
  return text + (isFloat ? "f" : "");
}

static std::string getFloat(const llvm::APFloat &value, bool isFloat) {
  std::string suffix = isFloat ? "f" : "";
  if (value.isNaN())
    return "__builtin_nan" + suffix + "(\"\")";
  if (value.isInfinity())
    return (value.isNegative() ? "-__builtin_inf" : "__builtin_inf") + suffix + "()";
  return getShortest(isFloat ? value.convertToFloat() : value.convertToDouble(), isFloat);
}

static std::string getInteger(const llvm::APInt &value, Type type) {
  if (type.isInteger(1))
    return value.isZero() ? "false" : "true";
  bool isUnsigned = type.isUnsignedInteger();
  bool isWide = type.getIntOrFloatBitWidth() == 64;
  if (isUnsigned)
    return llvm::toString(value, 10, /*Signed=*/false) + (isWide ? "ull" : "u");
  if (value.isMinSignedValue() && isWide)
    return "(-9223372036854775807LL - 1)";
  bool isLong = isWide && value.getSignificantBits() > 32;
  return llvm::toString(value, 10, /*Signed=*/true) + (isLong ? "LL" : "");
}

std::string genrec::getCppConstant(Attribute value, Type type) {
  if (auto opaque = dyn_cast<emitc::OpaqueAttr>(value))
    return opaque.getValue().str();
  if (auto number = dyn_cast<FloatAttr>(value))
    return getFloat(number.getValue(), number.getType().isF32());
  if (auto number = dyn_cast<IntegerAttr>(value))
    return getInteger(number.getValue(), number.getType());
  auto dense = cast<DenseElementsAttr>(value);
  Type element = dense.getElementType();
  SmallVector<std::string> parts;
  if (isa<FloatType>(element)) {
    for (const llvm::APFloat &part : dense.getValues<llvm::APFloat>())
      parts.push_back(getFloat(part, element.isF32()));
  } else {
    for (const llvm::APInt &part : dense.getValues<llvm::APInt>())
      parts.push_back(getInteger(part, element));
  }
  return "{" + llvm::join(parts, ", ") + "}";
}

std::string genrec::getCppInitializer(Attribute value, bool isOuter) {
  if (auto text = dyn_cast<StringAttr>(value))
    return quoteText(text.getValue());
  SmallVector<std::string> parts;
  if (auto fields = dyn_cast<FieldsAttr>(value)) {
    for (auto [name, field] : llvm::zip(fields.getNames(), fields.getValues()))
      parts.push_back("." + name.getValue().str() + " = " + getCppInitializer(field));
    return "{" + llvm::join(parts, ", ") + "}";
  }
  auto array = dyn_cast<ArrayAttr>(value);
  if (!array)
    return getCppConstant(value, Type());
  for (Attribute element : array)
    parts.push_back(getCppInitializer(element));
  return isOuter ? "{\n  " + llvm::join(parts, ",\n  ") + "}" : "{" + llvm::join(parts, ", ") + "}";
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Keywords of C++20, and names that emitted code or its headers have. Macros are upper case, or
/// one such letter and what it is about (M_PIf), but for those of CUDA and a few.
static bool isReserved(StringRef name) {
  static constexpr StringLiteral kWords =
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char "
      "char16_t char32_t char8_t class co_await co_return co_yield compl concept const "
      "const_cast consteval constexpr constinit continue decltype default delete do double "
      "dynamic_cast else enum errno explicit export extern false float for friend genrec "
      "goto if inline int int32_t int64_t kernels linux long math_errhandling mutable namespace "
      "new "
      "noexcept not not_eq nullptr operator or or_eq private protected public register "
      "reinterpret_cast requires return short signed size_t sizeof static static_assert "
      "static_cast stderr stdin stdout struct switch template this thread_local throw true "
      "try typedef typeid typename uint32_t uint64_t uint8_t union unix unsigned using "
      "virtual void volatile wchar_t while xor xor_eq";
  static const llvm::StringSet<> words = [] {
    SmallVector<StringRef> parts;
    kWords.split(parts, ' ');
    llvm::StringSet<> set;
    set.insert_range(parts);
    return set;
  }();
  constexpr int kShortestMacro = 3; // letters: columns are called I1 and C2
  const bool isMacro =
      llvm::none_of(name, llvm::isLower) && llvm::count_if(name, llvm::isUpper) >= kShortestMacro;
  const bool isOfHeader = name.size() > 1 && llvm::isUpper(name[0]) && name[1] == '_';
  const bool isOfCompiler =
      name.size() > 1 && name[0] == '_' && (name[1] == '_' || llvm::isUpper(name[1]));
  return words.contains(name) || isMacro || isOfHeader || isOfCompiler || name.starts_with("cuda");
}

std::string CppNames::make(StringRef wanted) {
  std::string name = makeIdentifier(wanted);
  if (isReserved(name))
    name += "_";
  Count &known = *counts.try_emplace(name, 0).first;
  scopes.back().counts.emplace_back(&known, known.second);
  std::string free;
  do
    free = nameWithNumber(name, ++known.second);
  while (symbols.contains(free) || !taken.insert(free).second);
  scopes.back().names.push_back(free);
  return free;
}

void CppNames::leaveScope() {
  for (const std::string &name : scopes.back().names)
    taken.erase(name);
  for (auto [known, before] : llvm::reverse(scopes.back().counts))
    known->second = before;
  scopes.pop_back();
}
