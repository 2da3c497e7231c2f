//===- GenRecAttrs.td - encodings, initializers, optimizers -----*- tablegen -*-===//

#ifndef GENREC_ATTRS_TD
#define GENREC_ATTRS_TD

include "genrec/Dialect/GenRec/IR/GenRecDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/TensorEncoding.td"

class GenRec_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<GenRec_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def GenRec_RowsAttr : GenRec_Attr<"Rows", "rows",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "the domain whose rows a tensor holds";
  let description = [{
    The encoding of a tensor whose dimension 0 ranges over the rows of this domain. Verifiers check
    it; `outline-kernels` drops it.
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$domain);
  let assemblyFormat = "`<` $domain `>`";
}

//===-- enums ---------------------------------------------------------------===//

class GenRec_Enum<string name, string description, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, description, cases> {
  let cppNamespace = "::genrec";
  let genSpecializedAttr = 0;
}
class GenRec_EnumAttr<EnumAttrInfo info, string attrMnemonic>
    : EnumAttr<GenRec_Dialect, info, attrMnemonic>;

def GenRec_DomainKind : GenRec_Enum<"DomainKind", "where a domain's rows come from", [
  I32EnumAttrCase<"data", 0>, I32EnumAttrCase<"derived", 1>,
  I32EnumAttrCase<"catalogue", 2>, I32EnumAttrCase<"step", 3>]>;
def GenRec_DomainKindAttr : GenRec_EnumAttr<GenRec_DomainKind, "domain_kind">;

def GenRec_InitKind : GenRec_Enum<"InitKind", "distribution of initial values", [
  I32EnumAttrCase<"zeros", 0>, I32EnumAttrCase<"constant", 1>,
  I32EnumAttrCase<"normal", 2>, I32EnumAttrCase<"truncated_normal", 3>,
  I32EnumAttrCase<"uniform", 4>, I32EnumAttrCase<"xavier_uniform", 5>,
  I32EnumAttrCase<"xavier_normal", 6>]>;

def GenRec_InitAttr : GenRec_Attr<"Init", "init"> {
  let summary = "initial values of a parameter or of a table's rows";
  let description = [{
    `scale` is the constant; the standard deviation (normal; truncated_normal, which is truncated at
    two standard deviations); half the width of the interval around 0 (uniform); or the gain
    (xavier_*, where fan in and fan out are the last two dimensions of the parameter, or 1 and `dim`
    for a table).
    Written `#genrec.init<truncated_normal, 0.02>`.
  }];
  let parameters = (ins EnumParameter<GenRec_InitKind>:$kind,
                        "::mlir::FloatAttr":$scale);
  let assemblyFormat = "`<` $kind `,` $scale `>`";
  let genVerifyDecl = 1;
}

// 5 is `frozen` in a model's description (kinds.h), which is an option here.
def GenRec_OptimizerKind : GenRec_Enum<"OptimizerKind", "update rule", [
  I32EnumAttrCase<"sgd", 0>, I32EnumAttrCase<"adagrad", 1>,
  I32EnumAttrCase<"adam", 2>, I32EnumAttrCase<"adamw", 3>,
  I32EnumAttrCase<"rowwise_adagrad", 4>, I32EnumAttrCase<"rmsprop", 6>]>;

def GenRec_OptimizerAttr : GenRec_Attr<"Optimizer", "optimizer"> {
  let summary = "the optimizer of a parameter or a table, with its hyperparameters";
  let description = [{
    The equations and defaults are PyTorch's. `options` is a dictionary of f64:
    sgd: `momentum` (0), `weight_decay` (0); adagrad, rowwise_adagrad: `eps` (1e-10),
    `initial_accumulator` (0), `weight_decay` (0); adam, adamw: `beta1` (0.9), `beta2` (0.999),
    `eps` (1e-8), `weight_decay` (0 for adam; for adamw 0.01 on parameters, 0 on table rows);
    rmsprop: `alpha` (0.99), `eps` (1e-8), `momentum` (0), `weight_decay` (0).
    `per_row_step` (0 or 1; only for tables with adam or adamw) counts steps per row.
    rowwise_adagrad (only for tables) keeps one accumulator per row: with g the row's gradient and d
    its width, a += sum(g^2) / d, then w -= lr * g / (sqrt(a) + eps). This is Adagrad (Duchi, Hazan
    and Singer 2011, figure 1) with the mean of a row's squared gradients instead of one value per
    weight (FBGEMM's EXACT_ROWWISE_ADAGRAD). `lr` is the base learning rate; the `--lr` flag of a
    binary scales all rates. With `frozen` (0 or 1, any kind) values are never updated and there are
    no optimizer states.
    Written `#genrec.optimizer<adamw, {lr = 1.0e-3, beta2 = 0.98}>`.
  }];
  let parameters = (ins EnumParameter<GenRec_OptimizerKind>:$kind,
                        "::mlir::DictionaryAttr":$options);
  let assemblyFormat = "`<` $kind `,` $options `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The value of option `name`, or PyTorch's default for this kind.
    /// `onTable` selects the default of a table's rows.
    double getOption(::llvm::StringRef name, bool onTable = false) const;
    /// Number of f32 states kept beside a row or a parameter (moments, momentum …).
    int64_t getStateCount() const;
    /// True where a state is one value per row, not one per weight.
    bool hasRowStates() const;
    /// f32 values of all states beside a row of `width`.
    int64_t getStateFloats(int64_t width) const {
      return getStateCount() * (hasRowStates() ? 1 : width);
    }
  }];
}

def GenRec_EvictKind : GenRec_Enum<"EvictKind", "which rows leave a bounded table first", [
  I32EnumAttrCase<"lru", 0>, I32EnumAttrCase<"lfu", 1>]>;
def GenRec_EvictKindAttr : GenRec_EnumAttr<GenRec_EvictKind, "evict_kind">;

def GenRec_RowElement : GenRec_Enum<"RowElement", "in what the value of a table row is stored", [
  I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"bf16", 1>]>;
def GenRec_RowElementAttr : GenRec_EnumAttr<GenRec_RowElement, "row_element">;
def GenRec_RowElementParameter : EnumParameter<GenRec_RowElement> {
  let defaultValue = "::genrec::RowElement::f32";
}

def GenRec_HotRowsParameter : DefaultValuedParameter<"bool", "false">;

def GenRec_RowRounding : GenRec_Enum<"RowRounding", "how a step rounds values that it stores", [
  I32EnumAttrCase<"nearest", 0>, I32EnumAttrCase<"stochastic", 1>]>;
def GenRec_RowRoundingAttr : GenRec_EnumAttr<GenRec_RowRounding, "row_rounding">;

def GenRec_ProgramMode : GenRec_Enum<"ProgramMode", "what a program is for", [
  I32EnumAttrCase<"all", 0>, I32EnumAttrCase<"train", 1>,
  I32EnumAttrCase<"evaluate", 2>, I32EnumAttrCase<"predict", 3>,
  I32EnumAttrCase<"items", 4>]>;
def GenRec_ProgramModeAttr : GenRec_EnumAttr<GenRec_ProgramMode, "mode">;

def GenRec_PoolKind : GenRec_Enum<"PoolKind", "how children reduce to their parent", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>,
  I32EnumAttrCase<"first", 3>, I32EnumAttrCase<"last", 4>]>;
def GenRec_PoolKindAttr : GenRec_EnumAttr<GenRec_PoolKind, "pool_kind">;

def GenRec_KeepKind : GenRec_Enum<"KeepKind", "which end of a list truncate keeps", [
  I32EnumAttrCase<"first", 0>, I32EnumAttrCase<"last", 1>]>;
def GenRec_KeepKindAttr : GenRec_EnumAttr<GenRec_KeepKind, "keep">;

def GenRec_PadSide : GenRec_Enum<"PadSide", "the end of a list that pad lengthens", [
  I32EnumAttrCase<"front", 0>, I32EnumAttrCase<"back", 1>]>;
def GenRec_PadSideAttr : GenRec_EnumAttr<GenRec_PadSide, "pad_side">;

def GenRec_HashKind : GenRec_Enum<"HashKind", "published hash functions", [
  I32EnumAttrCase<"xxh3", 0>, I32EnumAttrCase<"murmur3", 1>,
  I32EnumAttrCase<"farmhash64", 2>]>;
def GenRec_HashKindAttr : GenRec_EnumAttr<GenRec_HashKind, "hash_kind">;

def GenRec_ReduceKind : GenRec_Enum<"ReduceKind", "reduction along a row", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"mean", 1>, I32EnumAttrCase<"max", 2>]>;
def GenRec_ReduceKindAttr : GenRec_EnumAttr<GenRec_ReduceKind, "reduce_kind">;

def GenRec_CompareKind : GenRec_Enum<"CompareKind", "elementwise comparisons", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
  I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def GenRec_CompareKindAttr : GenRec_EnumAttr<GenRec_CompareKind, "compare_kind">;

def GenRec_ScoreKind : GenRec_Enum<"ScoreKind", "attention score functions", [
  I32EnumAttrCase<"silu", 0>, I32EnumAttrCase<"softmax", 1>]>;
def GenRec_ScoreKindAttr : GenRec_EnumAttr<GenRec_ScoreKind, "score">;

def GenRec_MetricKind : GenRec_Enum<"MetricKind", "evaluation metrics", [
  I32EnumAttrCase<"ranking", 0>, I32EnumAttrCase<"auc", 1>,
  I32EnumAttrCase<"gauc", 2>, I32EnumAttrCase<"ne", 3>,
  I32EnumAttrCase<"rmse", 4>, I32EnumAttrCase<"mae", 5>]>;
def GenRec_MetricKindAttr : GenRec_EnumAttr<GenRec_MetricKind, "metric_kind">;

def GenRec_Stage : GenRec_Enum<"Stage", "stage of a step", [
  I32EnumAttrCase<"copy", 0>, I32EnumAttrCase<"dispatch", 1>,
  I32EnumAttrCase<"compute", 2>, I32EnumAttrCase<"update", 3>]>;
def GenRec_StageAttr : GenRec_EnumAttr<GenRec_Stage, "stage">;

#endif // GENREC_ATTRS_TD
