//===- Identity.h - what makes two models one to a checkpoint ---*- C++ -*-===//
//
// A checkpoint belongs to a model that computes its losses in the same way from the same columns,
// tables and parameters. That is taken from the model as it was imported, so that passes, options
// of the compiler, locations and the model's name are not part of it, nor metrics and outputs,
// which may come and go without the weights losing their meaning.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_IDENTITY_H
#define GENREC_ANALYSIS_IDENTITY_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"

namespace genrec {


/// A JSON object of the ops that losses follow from (of all sinks, where the model has no loss):
///
///   structure   a hash of them, of their attributes and of how they are connected
///   ops         by name: how many, and a hash of their attributes
///   columns     by path: the type that is read
///   tables, parameters   by name: shape, initial values and rules about rows
///   optimizers  by name of table or parameter, without the learning rate
std::string getIdentity(ModelOp model);

/// Notes the identity on every model that has none.
void recordIdentity(mlir::ModuleOp module);

} // namespace genrec

#endif // GENREC_ANALYSIS_IDENTITY_H
