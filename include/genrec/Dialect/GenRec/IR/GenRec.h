//===- GenRec.h - the genrec dialect: types, attributes, ops ----*- C++ -*-===//
//
// One include for all that the dialect declares. See GenRecDialect.td for the
// idea of row domains and GenRec*Ops.td for the ops.
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

#include "genrec/Dialect/GenRec/IR/GenRecInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecTypes.h.inc"

// After the attributes, which its discardable attributes are of.
#include "genrec/Dialect/GenRec/IR/GenRecDialect.h.inc"

namespace genrec {

/// The domain whose rows `type` holds; null for a shared tensor.
mlir::FlatSymbolRefAttr getRowDomain(mlir::Type type);

/// The sizes of one row: the tensor's shape without its row dimension; for a
/// shared tensor its whole shape.
llvm::ArrayRef<int64_t> getRowShape(mlir::Type type);

/// `tensor<?xSHAPExELEMENT, #genrec.rows<@domain>>`.
mlir::RankedTensorType getRowsType(mlir::FlatSymbolRefAttr domain,
                                   llvm::ArrayRef<int64_t> rowShape,
                                   mlir::Type element);

/// What the body of a row kernel sees of one row of `type`: its element type
/// for a row shape of rank 0, a vector for rank 1.
mlir::Type getBodyType(mlir::Type type);

/// A printable form of `type` for diagnostics: "rows of @history, [50] x f32"
/// or "shared [50, 200] x f32".
std::string describe(mlir::Type type);

/// `element count` of one row.
int64_t getRowSize(mlir::Type type);

} // namespace genrec

#define GET_OP_CLASSES
#include "genrec/Dialect/GenRec/IR/GenRecOps.h.inc"

namespace genrec {

/// How many domains may lie above a domain: what walks or recurses from a row to its
/// root takes at most so many steps, and deeper lists cannot be read: Arrow takes Parquet
/// schemas of up to 100 levels, and a list has three. The Python package refuses a deeper schema
/// (MOST_DOMAIN_DEPTH), the model's verifier a deeper model.
inline constexpr int kMostDomainDepth = 32;

/// The model that encloses `op`.
ModelOp getModel(mlir::Operation *op);
/// The declaration of a domain, table or parameter visible from `op`; null
/// when there is none.
DomainOp lookupDomain(mlir::Operation *op, mlir::FlatSymbolRefAttr domain);
TableOp lookupTable(mlir::Operation *op, mlir::FlatSymbolRefAttr table);
ParameterOp lookupParameter(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
/// The value of `domain`'s type in `program`; null when it has none.
mlir::Value lookupDomainValue(ProgramOp program, mlir::FlatSymbolRefAttr domain);
/// Whether `domain` is a catalogue, or lies below one.
bool isOfCatalogue(mlir::Operation *scope, mlir::FlatSymbolRefAttr domain);
/// True when `ancestor` lies above `domain` in the domain tree (not itself).
bool isAncestor(mlir::Operation *scope, mlir::FlatSymbolRefAttr ancestor,
                mlir::FlatSymbolRefAttr domain);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_GENREC_H
