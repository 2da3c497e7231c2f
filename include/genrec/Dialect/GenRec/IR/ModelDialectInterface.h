//===- ModelDialectInterface.h - whose ops models are made of ---*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_IR_MODELDIALECTINTERFACE_H
#define GENREC_DIALECT_GENREC_IR_MODELDIALECTINTERFACE_H

#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/Operation.h"

namespace genrec {

/// A dialect with this interface has ops that may stand in a `genrec.program`: the genrec dialect,
/// and those of plugins. What its ops mean to each part of the compiler, they and the dialect's
/// other interfaces say (docs/adding-an-op.md).
class ModelDialectInterface : public mlir::DialectInterface::Base<ModelDialectInterface> {
public:
  explicit ModelDialectInterface(mlir::Dialect *dialect) : Base(dialect) {}
};

/// Whether `dialect` (null: that of an unregistered op) has ops of models.
inline bool hasModelOps(mlir::Dialect *dialect) {
  return dialect && dialect->getRegisteredInterface<ModelDialectInterface>();
}

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_MODELDIALECTINTERFACE_H
