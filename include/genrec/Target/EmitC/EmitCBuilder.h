//===- EmitCBuilder.h - idioms of emitted C++ -------------------*- C++ -*-===//
//
// Builders for calls, members, element accesses and counted loops. Each creates EmitC ops. A name
// for the printer to use is passed as a name location.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TARGET_EMITC_EMITCBUILDER_H
#define GENREC_TARGET_EMITC_EMITCBUILDER_H

#include "genrec/Analysis/Names.h"

#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/Twine.h"

namespace genrec {

/// Unit attributes of an op whose result is a pointer: the printer adds the qualifier to the
/// variable.
inline constexpr llvm::StringLiteral kConstAttrName = "emit.const";
inline constexpr llvm::StringLiteral kRestrictAttrName = "emit.restrict";
/// A global in device memory.
inline constexpr llvm::StringLiteral kDeviceAttrName = "emit.device";
/// The initial value of a global: `#genrec.fields` for a struct, or an array of these or of
/// numbers.
inline constexpr llvm::StringLiteral kFieldsAttrName = "emit.fields";
/// Unit attribute of a global that is `inline constexpr`.
inline constexpr llvm::StringLiteral kConstexprAttrName = "emit.constexpr";
/// Unit attribute of an op whose result must be a variable, even if it has one use.
inline constexpr llvm::StringLiteral kVariableAttrName = "emit.variable";

/// Builds EmitC ops at `loc`.
class EmitCBuilder {
public:
  EmitCBuilder(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::MLIRContext *getContext() const { return builder.getContext(); }

  //===-- types ------------------------------------------------------------===//
  mlir::Type i64() const { return builder.getI64Type(); }
  mlir::Type i32() const { return builder.getI32Type(); }
  mlir::Type f32() const { return builder.getF32Type(); }
  mlir::Type f64() const { return builder.getF64Type(); }
  mlir::Type i1() const { return builder.getI1Type(); }
  mlir::Type u8() const { return builder.getIntegerType(8, /*isSigned=*/false); }
  mlir::Type u16() const { return builder.getIntegerType(16, /*isSigned=*/false); }
  mlir::Type u32() const { return builder.getIntegerType(32, /*isSigned=*/false); }
  mlir::Type u64() const { return builder.getIntegerType(64, /*isSigned=*/false); }
  mlir::Type opaque(llvm::StringRef name) const;
  mlir::Type pointer(mlir::Type pointee) const;
  mlir::Type voidPointer() const { return pointer(opaque("void")); }

  //===-- values -----------------------------------------------------------===//
  mlir::Value integer(int64_t value, mlir::Type type = {}) const;
  mlir::Value floating(double value, mlir::Type type = {}) const;
  /// A name or expression of C++, such as "nullptr" or an enumerator.
  mlir::Value literal(llvm::StringRef text, mlir::Type type) const;
  /// A string literal, `const char *`.
  mlir::Value text(llvm::StringRef value) const {
    return literal(quoteText(value), pointer(opaque("const char")));
  }

  mlir::Value add(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value sub(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value mul(mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value compare(mlir::emitc::CmpPredicate predicate, mlir::Value lhs, mlir::Value rhs) const;
  mlir::Value cast(mlir::Value value, mlir::Type type) const;

  /// A call, without or with a result. Template arguments are integers, types or opaque attributes.
  void callVoid(llvm::StringRef callee, mlir::ValueRange operands,
                llvm::ArrayRef<mlir::Attribute> templateArguments = {}) const;
  mlir::Value call(llvm::StringRef callee, mlir::Type result, mlir::ValueRange operands,
                   llvm::ArrayRef<mlir::Attribute> templateArguments = {}) const;
  mlir::Attribute templateInteger(int64_t value) const;
  mlir::Attribute templateBool(bool value) const;
  mlir::Attribute templateName(llvm::StringRef text) const;
  mlir::Attribute templateType(mlir::Type type) const;

  //===-- places -----------------------------------------------------------===//
  mlir::Value load(mlir::Value place) const;
  void assign(mlir::Value place, mlir::Value value) const;
  /// `pointer[index]` as an lvalue, and its loaded value.
  mlir::Value element(mlir::Value pointer, mlir::Value index) const;
  mlir::Value loadElement(mlir::Value pointer, mlir::Value index) const;
  void storeElement(mlir::Value pointer, mlir::Value index, mlir::Value value) const;
  /// `pointer->name` and `lvalue.name` as lvalues of `type`.
  mlir::Value memberOf(mlir::Value pointer, llvm::StringRef name, mlir::Type type) const;
  mlir::Value member(mlir::Value place, llvm::StringRef name, mlir::Type type) const;
  mlir::Value addressOf(mlir::Value place) const;
  /// A local variable, uninitialised if there is no value.
  mlir::Value variable(mlir::Type type, mlir::Attribute value = {}) const;
  mlir::Value array(mlir::Type element, int64_t size) const;
  /// The array as a pointer to its first element.
  mlir::Value decay(mlir::Value array) const;
  /// A pointer to a constant array in the module; equal arrays are shared.
  mlir::Value constantTable(mlir::DenseElementsAttr values, llvm::StringRef name) const;
  /// A global of the module that is `inline constexpr`; `value` is what `emit.fields` may be.
  void constexprGlobal(const llvm::Twine &name, mlir::Type type, mlir::Attribute value) const;

  //===-- control flow -----------------------------------------------------===//
  /// for (i = begin; i < end; i += step). Moves the builder into the body; `leave` takes the
  /// returned loop and moves it out again.
  mlir::emitc::ForOp enterFor(mlir::Value begin, mlir::Value end, mlir::Value step,
                              llvm::StringRef name) const;
  mlir::emitc::IfOp enterIf(mlir::Value condition) const;
  void leave(mlir::Operation *op) const { builder.setInsertionPointAfter(op); }
  // What EmitC has no op for:
  mlir::emitc::VerbatimOp comment(const llvm::Twine &text) const;
  /// Of the loop behind it.
  void pragma(const llvm::Twine &text) const;

  /// A copy of the builder that names the values it makes.
  EmitCBuilder named(const llvm::Twine &name) const;
  /// Adds the restrict qualifier to the pointer `value`.
  static mlir::Value restricted(mlir::Value value);
  static mlir::Value constant(mlir::Value value);
  /// Makes the printer hold `value` in a variable.
  static mlir::Value kept(mlir::Value value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// Puts the constant tables of a module, which kernels read, into device memory.
void moveTablesToDevice(mlir::ModuleOp module);

} // namespace genrec

#endif // GENREC_TARGET_EMITC_EMITCBUILDER_H
