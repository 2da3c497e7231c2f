//===- VerifierRules.h - rules that verifiers share -------------*- C++ -*-===//
//
// An op's verifier states the *form* (domain, row shape, element type) of each operand and result,
// and these functions check it. Every message names the value, the rule, and the actual type: "'x'
// must be rows of a domain, [d] x f32, but is shared [50] x f32".
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_VERIFIERRULES_H
#define GENREC_DIALECT_GENREC_IR_VERIFIERRULES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <limits>
#include <optional>

namespace genrec::rules {

/// A set of element types.
enum Elements : unsigned {
  i1 = 1,
  i32 = 2,
  i64 = 4,
  f32 = 8,
  f64 = 16,
  string = 32,
  floats = f32 | f64,
  integers = i32 | i64,
  numbers = floats | integers,
  values = numbers | i1,
  anything = values | string,
};

/// A type as text. (Diagnostics add quotes to types that they print.)
std::string typeText(mlir::Type type);

/// The name in a message of an operand or a result that there are several of: "ids 2".
std::string numbered(llvm::StringRef name, size_t index);

/// A dimension of any size.
constexpr int64_t kFree = mlir::ShapedType::kDynamic;

/// The required form of an operand or result.
class Form {
public:
  /// Rows of any domain, or of `domain` if it is given.
  static Form rows(mlir::FlatSymbolRefAttr domain = {});
  /// Rows of `type`'s domain, or shared if `type` is.
  static Form alike(mlir::Type type);
  static Form shared();
  /// Rows of any domain, or shared.
  static Form any();

  /// Requires a row shape (of a shared tensor, a shape); kFree allows any size.
  Form &shape(llvm::ArrayRef<int64_t> sizes);
  Form &scalar() { return shape({}); }
  Form &vector() { return shape({kFree}); }
  Form &element(unsigned elements);
  /// Requires the element type of `tensor`.
  Form &elementOf(mlir::Type tensor);
  Form &element(mlir::Type type);

  bool matches(mlir::Type type) const;
  std::string str() const;

private:
  enum class Kind { any, rows, shared } kind = Kind::any;
  mlir::FlatSymbolRefAttr domain;
  std::optional<llvm::SmallVector<int64_t, 2>> sizes;
  unsigned elements = anything;
  mlir::Type exactElement;
};

/// An operand or result with its name in the .td file.
struct Named {
  llvm::StringRef name;
  mlir::Type type;
};

/// Fails unless `value` has `form`. `reason`, if given, says where the form comes from.
llvm::LogicalResult expect(mlir::Operation *op, Named value, const Form &form,
                           const llvm::Twine &reason = "");

/// Fails unless all of `values` that are not shared have the same domain.
llvm::LogicalResult expectSameDomain(mlir::Operation *op, llvm::ArrayRef<Named> values);

/// Fails unless the types are equal.
llvm::LogicalResult expectType(mlir::Operation *op, Named value, mlir::Type type,
                               const llvm::Twine &reason);

/// Fails if `name`, the value of attribute `attribute`, is empty.
llvm::LogicalResult expectNotEmpty(mlir::Operation *op, llvm::StringRef attribute,
                                   llvm::StringRef name);

/// Fails unless low <= value <= high. The message states the bounds.
llvm::LogicalResult expectRange(mlir::Operation *op, llvm::StringRef attribute, int64_t value,
                                int64_t low, int64_t high = std::numeric_limits<int64_t>::max());

/// Fails unless `value` is finite and at least 0.
llvm::LogicalResult expectNotNegative(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Fails unless `value` is finite.
llvm::LogicalResult expectFinite(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Fails unless `value` is finite and greater than 0.
llvm::LogicalResult expectPositive(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Fails unless 0 <= value < 1.
llvm::LogicalResult expectRate(mlir::Operation *op, llvm::StringRef attribute, double value);

/// The declared parent of a domain; null for a root and for an undeclared domain.
mlir::FlatSymbolRefAttr parentOf(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain,
                                 mlir::SymbolTableCollection *symbols = nullptr);

/// Whether `op` is in a program, where every domain is declared and has a value. Elsewhere (in a
/// function, for example) the domain tree is unknown, and its rules are not checked.
bool isInProgram(mlir::Operation *op);

/// Fails unless `domain`, the domain of operand or result `name`, is declared with one of `kinds`.
/// Checks nothing outside of a program.
llvm::LogicalResult expectKind(mlir::Operation *op, llvm::StringRef name,
                               mlir::FlatSymbolRefAttr domain, llvm::ArrayRef<DomainKind> kinds,
                               mlir::SymbolTableCollection *symbols = nullptr);

/// Fails unless a pool of `kind` can reduce rows of `from` to rows of `to`: to any ancestor for
/// sum, to the parent for other kinds. Checks nothing outside of a program.
llvm::LogicalResult expectPoolTarget(mlir::Operation *op, PoolKind kind,
                                     mlir::FlatSymbolRefAttr from, mlir::FlatSymbolRefAttr to,
                                     mlir::SymbolTableCollection *symbols = nullptr);

/// Fails unless rows `x`, `weight` (`transposed` or not) and `bias`, if given, have matching sizes
/// for a matrix product. Returns the row size of its result.
llvm::FailureOr<int64_t> expectProduct(mlir::Operation *op, mlir::Type x, mlir::Type weight,
                                       bool transposed, mlir::Value bias);

/// The type of a factor of `product`, with f32 for the bf16 of one that was rounded before
/// (`round-factors`).
mlir::Type unroundedType(ProductOpInterface product, mlir::Value factor);

/// The op that makes `domain` in the program of `op`, or null.
mlir::Operation *makerOf(mlir::Operation *op, mlir::FlatSymbolRefAttr domain);

/// The broadcast row shape of elementwise operands: all shapes are equal or [].
llvm::FailureOr<llvm::SmallVector<int64_t>> broadcast(llvm::ArrayRef<Named> values);

/// Checks a unary elementwise op: an operand `x` of `elements`, of rows or shared.
llvm::LogicalResult expectUnary(mlir::Operation *op, unsigned elements = floats);

/// Checks an elementwise op: operands of one domain (or shared) whose shapes broadcast, and a
/// `result` of that domain and shape with elements `resultElement`.
llvm::LogicalResult expectElementwise(mlir::Operation *op, llvm::ArrayRef<Named> operands,
                                      Named result, mlir::Type resultElement);

/// Fails unless `edges`, of a bucketize, are 1 to 4096 ascending numbers.
llvm::LogicalResult expectEdges(mlir::Operation *op, llvm::ArrayRef<double> edges);

/// Fails unless `ids` are i64 rows [] and `valid`, if given, is i1 rows [] of the same domain.
llvm::LogicalResult expectIds(mlir::Operation *op, mlir::Value ids, mlir::Value valid);

/// Fails unless `stream`, the number of a random stream, is at least 0.
llvm::LogicalResult expectStream(mlir::Operation *op, int64_t stream);

} // namespace genrec::rules

#endif // GENREC_DIALECT_GENREC_IR_VERIFIERRULES_H
