//===- GenRecUpdateOps.td - parameter and table updates ---------*- tablegen -*-===//

#ifndef GENREC_UPDATE_OPS_TD
#define GENREC_UPDATE_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_UpdateParameterOp : GenRec_Op<"update_parameter", [GenRec_SymbolUser]> {
  let summary = "one optimizer step of a dense parameter";
  let description = "`gradient`: shared, the parameter's shape. Clipping of the model op is applied before. Made by `differentiate`, expanded by `expand-updates`.";
  let arguments = (ins AnyRankedTensor:$gradient, FlatSymbolRefAttr:$parameter);
  let assemblyFormat = "$parameter `by` $gradient attr-dict `:` type($gradient)";
  let hasVerifier = 1;
}

def GenRec_UpdateTableOp : GenRec_Op<"update_table", [GenRec_SymbolUser, SameVariadicOperandSize]> {
  let summary = "one optimizer step of the touched rows of a table";
  let description = [{
    Pair i says: the rows `ids[i]` (i64 rows []) have gradients `gradients[i]` (f32 rows
    [dim]) of the same domain. A contribution whose gradient row is exactly 0 in every element
    does not touch its row (invalid and never drawn rows have such gradients). All gradients
    of an id are summed in the order (pair, row); each touched row is updated once.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$ids, Variadic<AnyRankedTensor>:$gradients,
                       FlatSymbolRefAttr:$table);
  let assemblyFormat = "$table `ids` `(` $ids `)` `by` `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- what updates and lookups become -------------------------------------===//

def GenRec_TableRowsOp : GenRec_Op<"table_rows", [GenRec_SymbolUser, Pure]> {
  let summary = "finds (training: or inserts) table rows";
  let description = [{
    `ids`: i64 rows []. Result `!genrec.row<dim>` rows []. Where `valid` is false: a row of zeros
    that updates skip. Outside training an unseen id gives a temporary row holding its initial value.
  }];
  let arguments = (ins AnyRankedTensor:$ids, Optional<AnyRankedTensor>:$valid,
                       FlatSymbolRefAttr:$table);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$ids (`valid` $valid^)? `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_UniqueRowsOp : GenRec_Op<"unique_rows", [Pure, SameVariadicOperandSize]> {
  let summary = "the distinct touched rows among several lookups, with their segments";
  let description = [{
    `rows`: tensors of `!genrec.row` found by `genrec.table_rows` in one table; `gradients`: their
    gradients. `domain` is a `step` domain with one row per distinct row that some
    gradient touches (is not exactly 0); `result` holds the handles, in the order of first appearance in (operand, row).
    `genrec.segment_sum` adds what belongs to each.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$rows, Variadic<AnyRankedTensor>:$gradients);
  let results = (outs GenRec_DomainType:$domain, AnyRankedTensor:$result);
  let assemblyFormat = "`(` $rows `)` `by` `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SegmentSumOp : GenRec_Op<"segment_sum", [Pure]> {
  let summary = "per distinct row, the sum of its gradients";
  let description = "`gradients` as in the `unique_rows` op that made `domain`; summed in the order (operand, row).";
  let arguments = (ins GenRec_DomainType:$domain, Variadic<AnyRankedTensor>:$gradients);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$domain `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ParameterRowsOp : GenRec_Op<"parameter_rows", [GenRec_SymbolUser, Pure]> {
  let summary = "a dense parameter as rows that a kernel may update in place";
  let description = "[n, w] gives n rows of `!genrec.row<w>`, [w] and a scalar one row. `domain` is a `step` domain with that many rows.";
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs GenRec_DomainType:$domain, AnyRankedTensor:$result);
  let assemblyFormat = "$parameter attr-dict `:` functional-type(operands, results)";
}

def GenRec_SharedRowsOp : GenRec_Op<"shared_rows", [GenRec_SymbolUser, Pure]> {
  let summary = "a shared tensor seen as rows of a step domain";
  let description = "shared [n, w] gives rows [w] of a domain with n rows; shared [w] and a scalar give one row. No copy.";
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `as` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_StepValueOp : GenRec_Op<"step_value", [Pure]> {
  let summary = "a scalar that the trainer supplies each step";
  let description = [{
    `learning_rate`: `argument` is the declared base rate; the value is the scheduled one.
    `bias_correction`: 1 - argument^t with t the 1-based step, computed in double.
    Shared f32 scalar.
  }];
  let arguments = (ins StrAttr:$name, F64Attr:$argument);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$name `(` $argument `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // GENREC_UPDATE_OPS_TD
