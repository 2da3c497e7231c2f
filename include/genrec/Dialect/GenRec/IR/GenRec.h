//===- GenRec.h - the genrec dialect: types, attributes, ops ----*- C++ -*-===//
//
// Includes all that the dialect declares. GenRecDialect.td explains row domains, GenRec*Ops.td the
// ops.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_GENREC_H
#define GENREC_DIALECT_GENREC_IR_GENREC_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "genrec/Dialect/GenRec/IR/GenRecEnums.h.inc"

#include "genrec/Dialect/GenRec/IR/GenRecTraits.h"

namespace genrec {

/// Whether a row kernel adds a result up over its rows, instead of computing one for each.
inline bool isAccumulated(ResultRole role) {
  return role == ResultRole::reduced || role == ResultRole::scattered;
}

class ProductOpInterface;
/// The rule for `bf16` of a product.
llvm::LogicalResult verifyProduct(ProductOpInterface op);
} // namespace genrec

#include "genrec/Dialect/GenRec/IR/GenRecInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecTypes.h.inc"

// After the attributes: the dialect's discardable attributes use them.
#include "genrec/Dialect/GenRec/IR/GenRecDialect.h.inc"

namespace genrec {

/// The domain of `type`'s rows; null for a shared tensor.
mlir::FlatSymbolRefAttr getRowDomain(mlir::Type type);

/// Whether `value` is a tensor of the rows of `domain`.
bool isRowsOf(mlir::Value value, mlir::FlatSymbolRefAttr domain);

/// The shape of one row: the tensor's shape without its first dimension. For a shared tensor, its
/// whole shape.
llvm::ArrayRef<int64_t> getRowShape(mlir::Type type);

/// `tensor<?xSHAPExELEMENT, #genrec.rows<@domain>>`.
mlir::RankedTensorType getRowsType(mlir::FlatSymbolRefAttr domain,
                                   llvm::ArrayRef<int64_t> rowShape,
                                   mlir::Type element);

/// The type of one row of `type` in the body of a row kernel: the element type for row shape [], a
/// vector for [d].
mlir::Type getBodyType(mlir::Type type);

/// A printable form of `type` for diagnostics: "rows of @history, [50] x f32"
/// or "shared [50, 200] x f32".
std::string describe(mlir::Type type);

/// The number of elements in one row.
int64_t getRowSize(mlir::Type type);

} // namespace genrec

#define GET_OP_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecOps.h.inc"

namespace genrec {

/// The largest number of ancestors of a domain, which bounds walks and recursion from a row to its
/// root. Deeper lists cannot be read anyway: Arrow accepts Parquet schemas of up to 100 levels, and
/// a list takes three. The Python package rejects a deeper schema (MOST_DOMAIN_DEPTH), and the
/// model's verifier a deeper model.
inline constexpr int kMostDomainDepth = 32;

/// The model that encloses `op`.
ModelOp getModel(mlir::Operation *op);
/// The declaration of a domain, table or parameter that is visible from `op`, or null. With
/// `symbols`, which verifiers of symbols get, the others are not passed: a model has thousands, and
/// all uses are verified after each pass.
DomainOp lookupDomain(mlir::Operation *op, mlir::FlatSymbolRefAttr domain,
                      mlir::SymbolTableCollection *symbols = nullptr);
TableOp lookupTable(mlir::Operation *op, mlir::FlatSymbolRefAttr table,
                    mlir::SymbolTableCollection *symbols = nullptr);
ParameterOp lookupParameter(mlir::Operation *op, mlir::FlatSymbolRefAttr name,
                            mlir::SymbolTableCollection *symbols = nullptr);
/// The domain symbol of a `!genrec.domain`.
mlir::FlatSymbolRefAttr domainOf(mlir::Value domain);
/// The value of `domain` in `program`, or null.
mlir::Value lookupDomainValue(ProgramOp program, mlir::FlatSymbolRefAttr domain);
/// Whether `distribute` made `program` one that ranks can run.
bool isDistributed(ProgramOp program);
/// Whether `domain` is a catalogue or a descendant of one.
bool isOfCatalogue(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain,
                   mlir::SymbolTableCollection *symbols = nullptr);
/// Whether `ancestor` is a proper ancestor of `domain`.
bool isAncestor(mlir::Operation *scope, mlir::FlatSymbolRefAttr ancestor,
                mlir::FlatSymbolRefAttr domain, mlir::SymbolTableCollection *symbols = nullptr);
/// Sets `bf16` of the products in [first, last) if `op`, which they were made from, has it.
void inheritPrecision(mlir::Operation *op, mlir::Block::iterator first, mlir::Block::iterator last);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_GENREC_H
