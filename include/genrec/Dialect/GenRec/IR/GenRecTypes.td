//===- GenRecTypes.td - domain, row and string types ------------*- tablegen -*-===//

#ifndef GENREC_TYPES_TD
#define GENREC_TYPES_TD

include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "mlir/IR/AttrTypeBase.td"

class GenRec_Type<string name, string typeMnemonic>
    : TypeDef<GenRec_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def GenRec_DomainType : GenRec_Type<"Domain", "domain"> {
  let summary = "the rows of a domain in one batch";
  let description = [{
    At run time a domain has a number of rows, a capacity (an upper bound, rounded up to a bucket,
    that the host knows), offsets of the list of each parent row, and the identity of every row.
    Written `!genrec.domain<@history>`.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$domain);
  let assemblyFormat = "`<` $domain `>`";
}

def GenRec_RowType : GenRec_Type<"Row", "row"> {
  let summary = "a pointer to one row of an embedding table";
  let description = [{
    The result of `genrec.table_rows` for an id: a pointer to the row's `width` values, stored as
    `element` (f32 or bf16), and its optimizer states (f32), valid until the row is updated. A row
    of bf16 of a table with hot rows (`hot_after`) is marked `hot`: where it is hot, the lower halves
    of its floats are kept, too.
    Written `!genrec.row<50>`, `!genrec.row<50, bf16>`, `!genrec.row<50, bf16, hot>`.
  }];
  let parameters = (ins "int64_t":$width, GenRec_RowElementParameter:$element,
                        GenRec_HotRowsParameter:$hot);
  let assemblyFormat = "`<` $width (`,` $element^)? (`,` custom<HotRows>($hot)^)? `>`";
  let genVerifyDecl = 1;
  let builders = [TypeBuilder<(ins "int64_t":$width), [{
    return $_get($_ctxt, width, ::genrec::RowElement::f32, false);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes of the values.
    int64_t getValueBytes() const {
      return getWidth() * (getElement() == ::genrec::RowElement::bf16 ? 2 : 4);
    }
    /// Floats that the values take: those of bf16 are filled up to whole ones.
    int64_t getValueFloats() const { return (getValueBytes() + 3) / 4; }
    /// Floats from the values' begin to the address of the lower halves of a hot row.
    int64_t getLowerOffset() const { return (getValueFloats() + 1) / 2 * 2; }
    /// Floats from the values' begin to the states'.
    int64_t getStateOffset() const { return getHot() ? getLowerOffset() + 2 : getValueFloats(); }
  }];
}

def GenRec_StringType : GenRec_Type<"String", "string"> {
  let summary = "a byte string (UTF-8 not required)";
  let description = "Element type of string features. Written `!genrec.string`.";
}

def GenRec_AccumulatorType : GenRec_Type<"Accumulator", "accumulator"> {
  let summary = "a partial sum over the rows of a row kernel";
  let description = [{
    Occurs only as a block argument of `genrec.row_kernel`, for a reduced or scattered result. The
    rows of a kernel are split into fixed chunks. Each chunk has its own accumulator, to which it
    adds in row order; the accumulators are then combined in a fixed tree, so that the sum is
    bitwise equal for any number of threads. `!genrec.accumulator<tensor<50xf32>>` is a sum over all
    rows; `!genrec.accumulator<tensor<211x50xf32>>` and `!genrec.accumulator<tensor<?x50xf32,
    #genrec.rows<@movies>>>` are scattered into by an index.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

//===-- what the documentation of operands and results says -----------------===//
//
// Verifiers check more than these and name the value: see VerifierRules.h.

def GenRec_Rows : TypeAlias<AnyRankedTensor, "rows of a domain">;
def GenRec_Shared : TypeAlias<AnyRankedTensor, "shared tensor">;
def GenRec_RowsOrShared : TypeAlias<AnyRankedTensor, "rows of a domain, or a shared tensor">;
def GenRec_BodyValue : TypeAlias<AnyType, "scalar or vector, of one row">;

#endif // GENREC_TYPES_TD
