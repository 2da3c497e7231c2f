//===- VerifierRules.h - rules that verifiers share -------------*- C++ -*-===//
//
// An op's verifier states the form of each operand and result, and these
// functions compare and report. Every message names the value, says what it
// must be and what it is: "'x' must be rows of a domain, [d] x f32, but is
// shared [50] x f32".
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_IR_VERIFIERRULES_H
#define GENREC_LIB_DIALECT_GENREC_IR_VERIFIERRULES_H

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

/// A type as text; diagnostics put quotes around types that they print.
std::string typeText(mlir::Type type);

/// The size of a dimension that may be anything.
constexpr int64_t kFree = mlir::ShapedType::kDynamic;

/// What a verifier asks of the type of an operand or result.
class Form {
public:
  /// Rows of a domain; of `domain`, when given.
  static Form rows(mlir::FlatSymbolRefAttr domain = {});
  /// Rows of the domain of `type`, or shared when that is shared.
  static Form alike(mlir::Type type);
  static Form shared();
  /// Rows or shared.
  static Form any();

  /// The row shape (the shape, of a shared tensor); kFree leaves a size open.
  Form &shape(llvm::ArrayRef<int64_t> sizes);
  Form &scalar() { return shape({}); }
  Form &vector() { return shape({kFree}); }
  Form &element(unsigned elements);
  /// Exactly the element type of `tensor`.
  Form &elementOf(mlir::Type tensor);
  Form &element(mlir::Type type);

  bool matches(mlir::Type type) const;
  std::string str() const;

private:
  enum class Place { any, rows, shared } place = Place::any;
  mlir::FlatSymbolRefAttr domain;
  std::optional<llvm::SmallVector<int64_t, 2>> sizes;
  unsigned elements = anything;
  mlir::Type exactElement;
};

/// An operand or result, by its name in the .td file.
struct Named {
  llvm::StringRef name;
  mlir::Type type;
};

/// Reports unless `value` has `form`. `reason`, when given, says where the form comes from.
llvm::LogicalResult expect(mlir::Operation *op, Named value, const Form &form,
                           const llvm::Twine &reason = "");

/// Reports unless all of `values` that hold rows hold rows of one domain. Shared ones are passed
/// over.
llvm::LogicalResult expectSameDomain(mlir::Operation *op, llvm::ArrayRef<Named> values);

/// Reports unless the types are equal.
llvm::LogicalResult expectType(mlir::Operation *op, Named value, mlir::Type type,
                               const llvm::Twine &reason);

/// Reports unless `name`, the value of attribute `attribute`, has at least one character.
llvm::LogicalResult expectNotEmpty(mlir::Operation *op, llvm::StringRef attribute,
                                   llvm::StringRef name);

/// Reports unless low <= value <= high. The bounds are stated in the message.
llvm::LogicalResult expectRange(mlir::Operation *op, llvm::StringRef attribute, int64_t value,
                                int64_t low, int64_t high = std::numeric_limits<int64_t>::max());

/// Reports unless `value` is finite and at least 0.
llvm::LogicalResult expectNotNegative(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Reports unless `value` is finite.
llvm::LogicalResult expectFinite(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Reports unless `value` is finite and greater than 0.
llvm::LogicalResult expectPositive(mlir::Operation *op, llvm::StringRef attribute, double value);

/// Reports unless 0 <= value < 1.
llvm::LogicalResult expectRate(mlir::Operation *op, llvm::StringRef attribute, double value);

/// The domain symbol of a `!genrec.domain`.
mlir::FlatSymbolRefAttr domainOf(mlir::Value domain);

/// The declared parent of a domain; null for a root, or where there is no declaration.
mlir::FlatSymbolRefAttr parentOf(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain);

/// Whether `op` stands in a program, where every domain is declared and has a value. Elsewhere (in
/// a function, say) the domain tree is not known, and rules about it do not apply.
bool isInProgram(mlir::Operation *op);

/// Reports unless `domain` is declared with one of `kinds`. `name`: the operand or result that has
/// it. Does not apply outside a program.
llvm::LogicalResult expectKind(mlir::Operation *op, llvm::StringRef name,
                               mlir::FlatSymbolRefAttr domain, llvm::ArrayRef<DomainKind> kinds);

/// Reports unless a pool of `kind` may lead from rows of `from` to rows of `to`: sum through
/// several levels, other kinds to the parent. Does not apply outside a program.
llvm::LogicalResult expectPoolTarget(mlir::Operation *op, PoolKind kind,
                                     mlir::FlatSymbolRefAttr from, mlir::FlatSymbolRefAttr to);

/// Reports unless rows `x`, `weight` (its rows are the result's columns when `transposed`) and
/// `bias`, when given, fit in a matrix product; the width of its result.
llvm::FailureOr<int64_t> expectProduct(mlir::Operation *op, mlir::Type x, mlir::Type weight,
                                       bool transposed, mlir::Value bias);

/// The op that makes the value of `domain` in op's program; null when there is none.
mlir::Operation *makerOf(mlir::Operation *op, mlir::FlatSymbolRefAttr domain);

/// The shape that elementwise operands give: equal shapes, or rank 0 beside any.
llvm::FailureOr<llvm::SmallVector<int64_t>> broadcast(llvm::ArrayRef<Named> values);

/// The rule of elementwise ops: one domain, shapes that broadcast, and `result` with the outcome
/// and `resultElement`.
llvm::LogicalResult expectElementwise(mlir::Operation *op, llvm::ArrayRef<Named> operands,
                                      Named result, mlir::Type resultElement);

/// Reports unless `edges`, of a bucketize, are 1 to 4096 ascending numbers.
llvm::LogicalResult expectEdges(mlir::Operation *op, llvm::ArrayRef<double> edges);

/// Reports unless `ids` are i64 rows [] and `valid`, when given, i1 rows [] of the same domain.
llvm::LogicalResult expectIds(mlir::Operation *op, mlir::Value ids, mlir::Value valid);

/// Reports unless `stream`, the number of a random stream, is at least 0.
llvm::LogicalResult expectStream(mlir::Operation *op, int64_t stream);

} // namespace genrec::rules

#endif // GENREC_LIB_DIALECT_GENREC_IR_VERIFIERRULES_H
