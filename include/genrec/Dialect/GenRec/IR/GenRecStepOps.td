//===- GenRecStepOps.td - what row kernels become ---------------*- tablegen -*-===//
//
// Ops of the step level, between `outline-kernels` and `lower-to-runtime`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_STEP_OPS_TD
#define GENREC_STEP_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_StepOpsDocs : OpDocGroup {
  let summary = "Step level";
  let description = [{
    Row kernels between `outline-kernels` and `lower-to-runtime`.
  }];
}

let opDocGroup = GenRec_StepOpsDocs in {

def GenRec_LaunchOp : GenRec_Op<"launch"> {
  let summary = "runs an outlined row kernel over the rows of a domain";
  let description = [{
    `kernel` names a function of the enclosing module, which `outline-kernels` made from a
    `genrec.row_kernel` with the same inputs and results. The rows of `domain` are distributed to
    threads: it is the kernel's own domain, or the uppermost domain that the kernel pools into.
    `grain` is the smallest number of its rows per chunk. `accumulators` lists the results for which
    each chunk computes a partial sum in memory of its own; these are combined after the kernel. The
    kernel writes other results directly. `splits_lists`: on a device, threads pool pieces of long
    lists, which are combined after the kernel, too. `name` is what reports call the launch, where
    another kernel with the same code has given the function its name.

    ```mlir
    %sum = genrec.launch @train_bce over %impression(%logit, %label) {accumulators = array<i64: 0>, grain = 4096 : i64}
        : (!genrec.domain<@impression>, tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<f32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, GenRec_DomainType:$domain,
                       Variadic<GenRec_RowsOrShared>:$inputs, I64Attr:$grain,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$accumulators,
                       UnitAttr:$splits_lists, OptionalAttr<StrAttr>:$name);
  let results = (outs Variadic<GenRec_RowsOrShared>:$results);
  let assemblyFormat = "$kernel `over` $domain `(` $inputs `)` attr-dict `:` functional-type(operands, results)";
}

def GenRec_LaunchColumnsOp : GenRec_Op<"launch_columns", [AttrSizedOperandSegments]> {
  let summary = "runs outlined column programs, all in one parallel region";
  let description = [{
    `outline-kernels` makes this op from a `genrec.transform_columns` with the same operands and
    results. `kernels` are the functions of its column programs. `columns` has four numbers per
    column: its kernel, its number of inputs, its result, and its part of that result.

    For a device it makes one from all updates of parameters of a stage, too, named
    `update_parameters`, one from reductions of rows of parameters that one op reads, named
    `reduce_parameters`, and one from kernels that do the same for several lists, named after the
    first of them. Their columns run over the rows of domains of their own. Of such a column the
    third number is that of its domain in `domains`, and the fourth is -1; results are those of the
    first column, then of the next. `shared_bytes`: of shared memory, that a block needs.

    `passed_domains` has, column by column, the numbers of the domains that the function is passed,
    and `pools` is a function whose description says how the lists of all columns are split. The last
    of a device's `kernels` runs them all; `shapes` is the description of the columns that it takes.

    Where a device makes one from a kernel that joins many parts, each part and each other result is a
    column; `places` has the number of its result, and where it begins in rows of this.

    ```mlir
    %first = genrec.constant dense<0> : tensor<i64>
    %second = genrec.constant dense<2305843009213693952> : tensor<i64>
    %keys = genrec.launch_columns [@train_keys](%user, %first, %movie, %second) into (%both)
        {columns = array<i64: 0, 2, 0, 0, 0, 2, 0, 1>}
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<i64>, tensor<?xi64, #genrec.rows<@history>>, tensor<i64>,
           !genrec.domain<@both>) -> tensor<?xi64, #genrec.rows<@both>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_RowsOrShared>:$inputs, Variadic<GenRec_DomainType>:$domains,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "functions">:$kernels,
                       DenseI64ArrayAttr:$columns, OptionalAttr<StrAttr>:$name,
                       DefaultValuedAttr<I64Attr, "0">:$shared_bytes,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$passed_domains,
                       OptionalAttr<FlatSymbolRefAttr>:$pools,
                       OptionalAttr<FlatSymbolRefAttr>:$shapes,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$places);
  let results = (outs Variadic<GenRec_Rows>:$results);
  let assemblyFormat = "$kernels `(` $inputs `)` `into` `(` $domains `)` attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The part of a column over rows of a domain of its own.
    static constexpr int64_t kNoPart = -1;
  }];
}

def GenRec_LaunchedKernelOp : GenRec_Op<"launched_kernel"> {
  let summary = "stands for a row kernel that an earlier launch runs with others";
  let description = [{
    `outline-kernels` leaves it where a kernel was that runs with those of other lists, on a device.
    Errors about `values`, what the kernel made, name it, in the order in which the kernels were.

    ```mlir
    %zero = genrec.constant dense<0> : tensor<i64>
    %keys = genrec.launch_columns [@train_keys](%user, %zero) into (%both) {columns = array<i64: 0, 2, 0, 0>}
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<i64>, !genrec.domain<@both>) -> tensor<?xi64, #genrec.rows<@both>>
    genrec.launched_kernel "row_keys" %keys : tensor<?xi64, #genrec.rows<@both>>
    ```
  }];
  let arguments = (ins StrAttr:$name, Variadic<GenRec_Rows>:$values);
  let assemblyFormat = "$name $values attr-dict `:` type($values)";
}

} // opDocGroup

#endif // GENREC_STEP_OPS_TD
