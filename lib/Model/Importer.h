//===- Importer.h - from the FlatBuffers model to ops -----------*- C++ -*-===//

#ifndef GENREC_LIB_MODEL_IMPORTER_H
#define GENREC_LIB_MODEL_IMPORTER_H

#include "ModelReader.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace genrec {

/// Builds the ops of one model. FlatBuffers has verified the bytes. The importer checks names,
/// sizes, value numbers and keywords, as far as MLIR needs them to build ops; the verifiers of the
/// dialect check the rest.
class Importer {
public:
  Importer(const schema::Model &file, mlir::Location fileLocation);

  /// Fills `module`. Fails after a diagnostic.
  mlir::LogicalResult run(mlir::ModuleOp module);

private:
  enum class Symbol { Domain, Table, Parameter };

  // Declarations (Importer.cpp).
  mlir::LogicalResult createModel(mlir::ModuleOp module);
  mlir::LogicalResult declare(llvm::StringRef name, Symbol kind, mlir::Location location);
  mlir::LogicalResult declareAll();
  mlir::LogicalResult importDomain(const schema::Domain &domain);
  mlir::LogicalResult importTable(const schema::EmbeddingTable &table);
  mlir::LogicalResult importParameter(const schema::Parameter &parameter);
  InitAttr importInit(const schema::Initializer &init, mlir::Location location);
  OptimizerAttr importOptimizer(const schema::Optimizer &optimizer, mlir::Location location);
  mlir::LogicalResult importSchedule(const schema::Schedule &schedule);

  // Ops (ImportOps.cpp).
  mlir::LogicalResult importOp(const schema::Op &op);
  mlir::LogicalResult checkName(mlir::OperationName name, mlir::Location location);
  mlir::LogicalResult importOperands(const schema::Op &op, mlir::OperationState &state);
  mlir::LogicalResult importAttributes(const schema::Op &op, mlir::OperationState &state,
                                       mlir::NamedAttrList &attributes);
  mlir::LogicalResult importResults(const schema::Op &op, mlir::OperationState &state);

  // Values of attributes (ImportAttributes.cpp).
  mlir::Attribute importAttribute(const schema::Attribute &attribute, mlir::Location location);
  mlir::Attribute importEnum(const schema::EnumValue &value, llvm::StringRef name,
                             mlir::Location location);
  mlir::Attribute importTensor(const schema::TensorValue &value, mlir::Location location);
  mlir::Type importType(const schema::Type &type, mlir::Location location);
  mlir::Type importElement(schema::ElementType element, mlir::Location location);
  mlir::LogicalResult importShape(const flatbuffers::Vector<int64_t> *shape,
                                  mlir::Location location, llvm::SmallVectorImpl<int64_t> &result);
  mlir::Location importLocation(const schema::Location *location);
  mlir::FlatSymbolRefAttr getDomain(llvm::StringRef name, mlir::Location location);

  const schema::Model &file;
  mlir::Location fileLocation;
  mlir::OpBuilder builder;
  ModelOp model;
  llvm::StringMap<Symbol> symbols;
  llvm::SmallVector<mlir::Value> values;
};

} // namespace genrec

#endif // GENREC_LIB_MODEL_IMPORTER_H
