//===- Identity.h - does a checkpoint fit a model? --------------*- C++ -*-===//
//
// A checkpoint can be loaded by models with the same identity: models that compute the same losses
// from the same columns, tables and parameters. The identity is taken from the imported model, so
// passes and compiler options do not change it. Locations, the model's name, metrics and outputs
// are not part of it either.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_IDENTITY_H
#define GENREC_ANALYSIS_IDENTITY_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"

namespace genrec {


/// A JSON object that describes the ops that losses depend on (all sinks, if the model has no
/// loss):
///
///   structure   a hash of the ops, their attributes and their operands
///   ops         by op name: their number and a hash of their attributes
///   columns     by path: the type of the column
///   tables, parameters   by name: shape, initial values, admission and eviction rules
///   optimizers  by name of the table or parameter, without the learning rate
std::string getIdentity(ModelOp model);

/// Adds the identity as an attribute to every model that has none.
void recordIdentity(mlir::ModuleOp module);

} // namespace genrec

#endif // GENREC_ANALYSIS_IDENTITY_H
