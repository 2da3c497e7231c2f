//===- GenRecSymbolOps.td - models, domains, tables, parameters -*- tablegen -*-===//

#ifndef GENREC_SYMBOL_OPS_TD
#define GENREC_SYMBOL_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def GenRec_SymbolOpsDocs : OpDocGroup {
  let summary = "Models and declarations";
  let description = [{
    A model declares domains, tables and parameters; its programs use them by name.
  }];
}

let opDocGroup = GenRec_SymbolOpsDocs in {

/// A declaration in a model, outside of programs.
class GenRec_DeclarationOp<string mnemonic, list<Trait> traits = []>
    : GenRec_Op<mnemonic, !listconcat([Symbol, HasParent<"ModelOp">], traits)>;

def GenRec_ModelOp : GenRec_Op<"model", [
    IsolatedFromAbove, NoTerminator, Symbol, SymbolTable, SingleBlock,
    NoRegionArguments]> {
  let summary = "one recommendation model: declarations and programs";
  let description = [{
    Holds the declarations of domains, tables and parameters, then one `genrec.program`, from which
    `specialize-modes` makes one for each of training, evaluation and prediction.

    - `clip_norm`, `clip_value`: limits of gradients, 0 for none. The norm is over all gradients
      together; gradients of duplicate ids are summed before.
    - `schedule`: the schedule of the learning rate, a dictionary of `kind` ("constant", "linear",
      "cosine"), `warmup` and `steps` (i64, in steps) and `final` (float, the factor at the end).

    Flags of the binary can override these attributes. At most one root domain has kind data, and no
    two programs have the same mode.

    ```mlir
    genrec.model @ranker attributes {clip_norm = 1.0 : f64, schedule = {kind = "cosine", warmup = 500 : i64}} {
      genrec.domain @request
      genrec.domain @history parent @request {column = "history"}
      genrec.table @movie dim 8 {init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<adam, {lr = 1.0e-3}>}
      genrec.program @main {
        %history = genrec.batch : !genrec.domain<@history>
        %id = genrec.feature %history "history.movie" : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
        %vector = genrec.lookup %id in @movie : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
      }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<F64Attr, "0.0">:$clip_norm,
                       DefaultValuedAttr<F64Attr, "0.0">:$clip_value,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def GenRec_DomainOp : GenRec_DeclarationOp<"domain", [GenRec_SymbolUser]> {
  let summary = "declares a row domain";
  let description = [{
    A domain is a set of rows: one per request, or one per event of a history, for example. Domains
    form a tree. A root has no `parent`, and a domain has at most 32 ancestors (`kMostDomainDepth`).
    The kinds:

    - `data` (the default): read from a file. The rows of the root are the rows of the dataset; any
      other domain has the rows of the lists in `column` (a dotted path), of the dataset or of a
      catalogue.
    - `derived`: made by exactly one op (`genrec.truncate`, `genrec.pad`, `genrec.pick_lists`,
      `genrec.pair_domains`, `genrec.concat_domains`), as a child of a data, catalogue
      or derived domain, or of the step domain of a `genrec.pick_rows`.
    - `catalogue`: a root of its own, loaded once from the file that a flag names
      (`--catalogue <name>=<file>`); `source` is its default path. `expected_rows` is the number of
      its rows when the model was written, by which passes estimate costs; a file may have another.
    - `step`: rows that exist only within a step (distinct table rows, for example); no parent.

    ```mlir
    genrec.domain @basket parent @request {column = "basket"}
    genrec.domain @last_ten parent @request kind derived
    genrec.domain @catalogue kind catalogue {source = "items.parquet"}
    genrec.domain @catalogue_tag parent @catalogue {column = "tags"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<FlatSymbolRefAttr>:$parent,
                       DefaultValuedAttr<GenRec_DomainKindAttr,
                                         "::genrec::DomainKind::data">:$kind,
                       OptionalAttr<StrAttr>:$column,
                       OptionalAttr<StrAttr>:$source,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$expected_rows);
  let assemblyFormat = "$sym_name (`parent` $parent^)? (`kind` $kind^)? attr-dict";
  let hasVerifier = 1;
}

def GenRec_TableOp : GenRec_DeclarationOp<"table", [GenRec_DeclaresWeights, GenRec_SymbolUser]> {
  let summary = "declares an embedding table";
  let description = [{
    A dynamic hash table from ids in `[0, 2^id_bits)` (1 to 63 bits) to rows of `dim` f32. The
    initial value of a row is a function of (seed, table name, id, element). For the `xavier_*`
    initializers, fan in is 1 and fan out is `dim`.

    Admission and eviction rules are optional; without them a table grows and keeps every row. A
    training step *sees* an id once, however often its lookups contain the id; evaluation and
    prediction do not count.

    - `admit_after`: an id gets a row in the step that is the n-th to see it. Until then lookups
      give its initial value, and its gradients are dropped.
    - `ttl`: at the end of step t, rows last seen in step t - ttl or before are evicted. From a ttl
      of 16 on, this happens only in steps that are multiples of `ttl / 16` (rounded down). With
      `ttl_in_seconds` it counts seconds of the run's clock instead of steps.
    - `bounded`: if a table has more rows than this at the end of a step, rows are evicted until
      `bounded - bounded / 16` (rounded down) remain. `evict` chooses them: `lru` (the default)
      evicts the least recently seen rows; `lfu` those seen in the fewest steps since they were
      inserted, and of these the least recently seen. In a tie the row with the lower id is evicted.

    `element` says in what the values of rows are stored; optimizer states are f32. With bf16, a
    lookup widens a value to f32, exactly. An update computes in f32 from the widened value and
    rounds the new value once, when it is stored. `rounding` says how: `nearest` (the default), ties
    to even; or `stochastic`, up or down with the probability of the other's distance, so that steps
    smaller than half a unit in the last place add up. What is drawn depends on (seed, step, table
    name, id, element). Initial values, and those that a file gives, are rounded to nearest.

    `hot_after`, of bf16: a row is *hot* from the step on that is the n-th to see it since it came. A
    hot row's value is a float: an update rounds nothing, and keeps its lower halves beside the row.
    Whatever else reads the row reads the upper halves: its value rounded towards 0 to bf16. Rows
    that are not hot are stored and rounded as `element` and `rounding` say.

    Eviction discards the row's optimizer state and counts; its id starts anew. Ids that wait for
    admission are evicted by the same rules.

    With `members` the table is a *merged table*, created by `merge-tables`. It holds the rows of
    those *logical tables*, which stay declared: checkpoints and exports use their names. The ids of
    a merged table are keys (see `genrec.merged_keys`). Its admission and eviction rules are those
    of its members, and apply to each of them separately.

    ```mlir
    genrec.table @city dim 16 {
      id_bits = 40 : i64, init = #genrec.init<truncated_normal, 0.02>,
      optimizer = #genrec.optimizer<adamw, {lr = 1.0e-3, beta2 = 0.98}>}
    genrec.table @street dim 16 {
      element = #genrec<row_element bf16>, rounding = #genrec<row_rounding stochastic>,
      init = #genrec.init<normal, 0.02>, optimizer = #genrec.optimizer<sgd, {lr = 1.0e-3}>}
    genrec.table @shop dim 16 {
      bounded = 1000000 : i64, evict = #genrec<evict_kind lfu>, ttl = 5000 : i64, admit_after = 3 : i64,
      element = #genrec<row_element bf16>, hot_after = 20 : i64,
      init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<rowwise_adagrad, {lr = 1.0e-2}>}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       ConfinedAttr<I64Attr, [IntPositive]>:$dim,
                       DefaultValuedAttr<I64Attr, "52">:$id_bits,
                       GenRec_InitAttr:$init,
                       GenRec_OptimizerAttr:$optimizer,
                       OptionalAttr<I64Attr>:$bounded,
                       OptionalAttr<GenRec_EvictKindAttr>:$evict,
                       OptionalAttr<I64Attr>:$ttl,
                       UnitAttr:$ttl_in_seconds,
                       OptionalAttr<I64Attr>:$admit_after,
                       DefaultValuedAttr<GenRec_RowElementAttr, "::genrec::RowElement::f32">:$element,
                       OptionalAttr<GenRec_RowRoundingAttr>:$rounding,
                       OptionalAttr<I64Attr>:$hot_after,
                       OptionalAttr<TypedArrayAttrBase<FlatSymbolRefAttr, "tables">>:$members);
  let assemblyFormat = "$sym_name `dim` $dim attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bits of a key of a merged table that hold the id: 63 - ceil(log2(members + 1)).
    int64_t getKeyBits();
    /// True where training counts sightings: rows come, leave or are hot by rule, which `bounded`,
    /// `ttl`, `admit_after` and `hot_after` are.
    bool hasRowRules() { return getBounded() || getTtl() || getAdmitAfter() || getHotAfter(); }
    /// The type of handles of the table's rows.
    RowType getRowType();
    /// f32 values of all optimizer states beside a row.
    int64_t getStateFloats() { return getOptimizer().getStateFloats(getDim()); }
    /// Bytes of a row's values and states.
    int64_t getRowBytes() { return getRowType().getValueBytes() + 4 * getStateFloats(); }
    /// Bytes of a hot row's lower halves, beside it.
    int64_t getHotBytes() { return getHotAfter() ? 2 * getDim() : 0; }
    /// Whether what a step stores is rounded by random numbers.
    bool roundsStochastically() { return getRounding() == RowRounding::stochastic; }
    /// Steps without being seen after which a row is evicted; none where `ttl` counts seconds.
    std::optional<int64_t> getTtlSteps() { return getTtlInSeconds() ? std::nullopt : getTtl(); }
    /// The same in seconds; none where `ttl` counts steps.
    std::optional<int64_t> getTtlSeconds() { return getTtlInSeconds() ? getTtl() : std::nullopt; }
  }];
}

def GenRec_ParameterOp : GenRec_DeclarationOp<"parameter", [GenRec_DeclaresWeights]> {
  let summary = "declares a dense parameter";
  let description = [{
    A trained tensor of f32 with static shape and rank 0 to 2, read by `genrec.param`. The
    `xavier_*` initializers need rank 2: fan in is the first dimension, fan out the second.

    ```mlir
    genrec.parameter @dense : tensor<64x16xf32> {
      init = #genrec.init<xavier_uniform, 1.0>, optimizer = #genrec.optimizer<adamw, {lr = 1.0e-3}>}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       GenRec_InitAttr:$init,
                       GenRec_OptimizerAttr:$optimizer);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def GenRec_ProgramOp : GenRec_DeclarationOp<"program", [
    NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "the computation on one batch";
  let description = [{
    A list of ops of this dialect. Mode `all` (the imported program) contains losses, metrics and
    outputs; a program of a specialised mode contains those of its mode. Mode `items` outputs
    vectors of catalogue rows and reads no batch.

    A program has at most one value of each domain type, so that the symbol in
    `#genrec.rows<@history>` identifies the rows of a tensor; every domain of a tensor in the
    program has such a value. The kind of a domain must match the op that makes it: data for
    `genrec.batch`, catalogue for `genrec.catalogue`, derived for `genrec.truncate`, `genrec.pad`,
    `genrec.pair_domains` and `genrec.concat_domains`, step for other ops. Names of losses, of
    metrics and of outputs are unique. Outputs in mode `items` have rows of catalogues.

    ```mlir
    genrec.program @predict mode predict {
      %request = genrec.batch : !genrec.domain<@request>
      %user = genrec.feature %request "user" : (!genrec.domain<@request>) -> tensor<?xi64, #genrec.rows<@request>>
      genrec.output "user" %user : tensor<?xi64, #genrec.rows<@request>>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<GenRec_ProgramModeAttr,
                                         "::genrec::ProgramMode::all">:$mode);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`mode` $mode^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

} // opDocGroup

#endif // GENREC_SYMBOL_OPS_TD
