//===- GenRecPlanAttrs.td - what passes leave for later ones ----*- tablegen -*-===//
//
// Types of the dialect's discardable attributes (declared in GenRecDialect.td), and the initial
// values of emitted structs.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_PLAN_ATTRS_TD
#define GENREC_PLAN_ATTRS_TD

include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"

def GenRec_TargetKind : GenRec_Enum<"TargetKind", "what compiled code runs on", [
  I32EnumAttrCase<"cpu", 0>, I32EnumAttrCase<"cuda", 1>]>;
def GenRec_TargetAttr : GenRec_EnumAttr<GenRec_TargetKind, "target">;

def GenRec_BufferAttr : GenRec_Attr<"Buffer", "buffer"> {
  let summary = "a buffer of a program, with its size and live range";
  let description = [{
    A buffer of `bytes_per_row` * capacity(`domain`) + `bytes` bytes, live from op `first` to op
    `last` of the program. `stride` is the number of elements from one row to the next, 0 if rows
    are contiguous. If only run `block` of `form-row-blocks` uses the buffer, `offset` is its offset
    in the run's memory, in bytes per row; otherwise `block` is -1.
    Written `#genrec.buffer<name = "h", domain = @event, bytes_per_row = 200, first = 3, last = 9>`.
  }];
  let parameters = (ins StringRefParameter<>:$name,
                        OptionalParameter<"::mlir::FlatSymbolRefAttr">:$domain,
                        DefaultValuedParameter<"int64_t", "0">:$bytes_per_row,
                        DefaultValuedParameter<"int64_t", "0">:$stride,
                        DefaultValuedParameter<"int64_t", "0">:$bytes,
                        "int64_t":$first, "int64_t":$last,
                        DefaultValuedParameter<"int64_t", "-1">:$block,
                        DefaultValuedParameter<"int64_t", "0">:$offset);
  let assemblyFormat = "`<` struct(params) `>`";
}

def GenRec_RowBlockAttr : GenRec_Attr<"RowBlock", "row_block"> {
  let summary = "the run of calls that `form-row-blocks` put an op into";
  let description = [{
    Ops with the same `number` are executed for a block of the lists of `domain` at a time.
    Written `#genrec.row_block<@event, 0>`.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$domain, "int64_t":$number);
  let assemblyFormat = "`<` $domain `,` $number `>`";
}

def GenRec_CostAttr : GenRec_Attr<"Cost", "cost"> {
  let summary = "bytes and FLOPs of an op, per row of a domain or per step";
  let description = [{
    Per row of `domain`, or per step without it; see `genrec::OpCost`. An absent parameter is 0.
    Written `#genrec.cost<domain = @user, bytes = 64.0 : f64, flops = 57.0 : f64>`.
  }];
  let parameters = (ins OptionalParameter<"::mlir::FlatSymbolRefAttr">:$domain,
                        OptionalParameter<"::mlir::FloatAttr">:$bytes,
                        OptionalParameter<"::mlir::FloatAttr">:$gathered_bytes,
                        OptionalParameter<"::mlir::FloatAttr">:$flops,
                        OptionalParameter<"::mlir::FloatAttr">:$product_flops,
                        OptionalParameter<"::mlir::FloatAttr">:$pair_flops,
                        OptionalParameter<"::mlir::FloatAttr">:$source_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

def GenRec_FieldsAttr : GenRec_Attr<"Fields", "fields"> {
  let summary = "the initial value of a C struct";
  let description = [{
    Names and values of the fields, in the order of the struct's declaration. A string attribute is
    a string literal, an opaque EmitC attribute a C++ name, an array or another `#genrec.fields` a
    nested initializer.
    Written `#genrec.fields<"name" = "user", "kind" = 0 : i64>`.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"::mlir::Attribute">:$values);
  let hasCustomAssemblyFormat = 1;
}

#endif // GENREC_PLAN_ATTRS_TD
