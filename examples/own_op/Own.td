//===- Own.td - a dialect from outside genrec -------------------*- tablegen -*-===//

include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/Step/StepOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Own_Dialect : Dialect {
  let name = "own";
  let cppNamespace = "::own";
  let summary = "an op with a kernel of its own, added to genrec by a plugin";
  let dependentDialects = ["::genrec::GenRecDialect"];
}

def Own_GatedCrossOp : Op<Own_Dialect, "gated_cross",
    [Pure, DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "one gated cross layer (GDCN)";
  let description = [{
    x0 ∘ (x · weight + bias) ∘ σ(x · gate) + x. x0, x: rows [d] of one domain; weight and
    gate: shared [d, d]; bias: shared [d]; all of f32. Wang et al. 2023, "Towards Deeper,
    Lighter and Interpretable Cross Network for CTR Prediction".

    ```mlir
    %y = own.gated_cross %x, %x, %weight, %bias, %gate
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x8xf32>, tensor<8xf32>, tensor<8x8xf32>)
        -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x0, GenRec_Rows:$x, GenRec_Shared:$weight,
                       GenRec_Shared:$bias, GenRec_Shared:$gate);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x0 `,` $x `,` $weight `,` $bias `,` $gate attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
