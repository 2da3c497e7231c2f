//===- Description.cpp - the description of a compiled model --------------===//
//
// genrec_model() returns EmitC globals whose initial values are the structs of
// genrec_rt/model_desc.h, field by field (`#genrec.fields`, printed by the C++ printer).
//
//===----------------------------------------------------------------------===//

#include "Description.h"

#include "genrec/Analysis/Identity.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Target/EmitC/Fields.h"
#include "genrec_rt/kinds.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace genrec;

namespace {

class Describer {
public:
  Describer(const ModelIndex &index, OpBuilder &builder)
      : index(index), builder(builder), b(builder, ModelOp(index.model).getLoc()) {}

  void describe(ArrayRef<StageNames> stages, ArrayRef<StepOp> ops, StringRef compiler);

private:
  using Rows = SmallVector<Attribute>;

  Fields fields() const { return Fields(builder.getContext()); }

  /// Emits a constant initialised with fields, or with an array of fields or numbers.
  void global(StringRef name, Type type, Attribute value);
  /// Emits an array `name` of `type` and sets the fields `name` and `count` of `to`.
  void table(Fields &to, StringRef type, StringRef name, StringRef count, const Rows &rows,
             StringRef prefix = "model_");
  FieldsAttr location(Location loc, StringRef name);
  FieldsAttr optimizer(OptimizerAttr attribute, bool onTable);
  FieldsAttr init(InitAttr attribute);

  /// Emits the function that bounds a domain's rows, and returns its name.
  std::string capacity(DomainOp domain);
  Rows domains();
  Rows features();
  Rows tables();
  Rows parameters();
  Rows losses();
  Rows metrics();
  Rows outputs();
  Rows buffers(ProgramOp program);
  FieldsAttr stepOp(const StepOp &op, int64_t number);
  FieldsAttr program(ProgramOp program, const StageNames &stages);

  llvm::StringSet<> names; ///< of functions
  const ModelIndex &index;
  OpBuilder &builder;
  EmitCBuilder b;
};

StringRef getTypeName(Type element) {
  if (isa<StringType>(element))
    return "GENREC_STRING";
  if (isa<RowType>(element))
    return "GENREC_ROW";
  if (element.isF32())
    return "GENREC_F32";
  if (element.isF64())
    return "GENREC_F64";
  if (element.isBF16())
    return "GENREC_BF16";
  return element.isInteger(1) ? "GENREC_I1" : element.isInteger(32) ? "GENREC_I32" : "GENREC_I64";
}

} // namespace

void Describer::global(StringRef name, Type type, Attribute value) {
  auto global = emitc::GlobalOp::create(builder, b.loc, name, type, /*initial_value=*/Attribute(),
                                        /*extern_specifier=*/false, /*static_specifier=*/true,
                                        /*const_specifier=*/true);
  global->setAttr(kFieldsAttrName, value);
}

void Describer::table(Fields &to, StringRef type, StringRef name, StringRef count, const Rows &rows,
                      StringRef prefix) {
  if (rows.empty()) {
    to.name(name, "nullptr").integer(count, 0);
    return;
  }
  std::string symbol = (prefix + name).str();
  auto arrayType = emitc::ArrayType::get({static_cast<int64_t>(rows.size())}, b.opaque(type));
  global(symbol, arrayType, builder.getArrayAttr(rows));
  to.name(name, symbol).integer(count, rows.size());
}

FieldsAttr Describer::location(Location loc, StringRef name) {
  FileLineColLoc file = getUserLocation(loc);
  Fields fields = this->fields();
  fields.text("file", file ? file.getFilename().getValue() : "");
  fields.integer("line", file ? file.getLine() : 0);
  return fields.text("name", name).get();
}

FieldsAttr Describer::optimizer(OptimizerAttr attribute, bool onTable) {
  auto option = [&](StringRef name) { return attribute.getOption(name, onTable); };
  Fields fields = this->fields();
  bool isFrozen = option("frozen") != 0.0;
  fields.integer("kind",
                 isFrozen ? GENREC_OPTIMIZER_FROZEN : static_cast<int64_t>(attribute.getKind()));
  fields.integer("states", attribute.getStateCount());
  fields.number("learning_rate", isFrozen ? 0.0 : option("lr"));
  fields.number("initial_accumulator", option("initial_accumulator"));
  if (attribute.hasRowStates() && !isFrozen)
    fields.integer("row_states", 1);
  return fields.get();
}

FieldsAttr Describer::init(InitAttr attribute) {
  return fields()
      .integer("kind", static_cast<int64_t>(attribute.getKind()))
      .number("scale", attribute.getScale().getValueAsDouble())
      .get();
}

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

namespace {
/// Emits the formulas for numbers of rows, as code of a function that takes arrays of capacities
/// and of longest lists.
class SizeEmitter : public SizeBuilder {
public:
  SizeEmitter(const EmitCBuilder &b, const ModelIndex &index, Value capacities, Value maxLengths)
      : b(b), index(index), capacities(capacities), maxLengths(maxLengths) {}

  SizeTerm constant(int64_t number) override { return {number, b.integer(number)}; }
  SizeTerm rowsOf(FlatSymbolRefAttr domain) override {
    EmitCBuilder named = b.named("all");
    return {0, named.load(b.element(capacities, b.integer(index.getDomain(domain))))};
  }
  SizeTerm longestOf(FlatSymbolRefAttr domain) override {
    if (auto maker = dyn_cast_or_null<StepOpInterface>(index.getMaker(domain)))
      if (std::optional<SizeTerm> made = maker.getLongestList(*this))
        return *made;
    EmitCBuilder named = b.named("longest");
    return {0, named.load(b.element(maxLengths, b.integer(index.getDomain(domain))))};
  }
  SizeTerm add(SizeTerm lhs, SizeTerm rhs) override { return {0, b.add(lhs.value, rhs.value)}; }
  SizeTerm mul(SizeTerm lhs, SizeTerm rhs) override {
    return {0, b.named("most").mul(lhs.value, rhs.value)};
  }
  SizeTerm min(SizeTerm lhs, SizeTerm rhs) override { return select(lhs, rhs, lhs, rhs); }
  SizeTerm max(SizeTerm lhs, SizeTerm rhs) override { return select(lhs, rhs, rhs, lhs); }

private:
  /// lhs < rhs ? ifLess : otherwise
  SizeTerm select(SizeTerm lhs, SizeTerm rhs, SizeTerm ifLess, SizeTerm otherwise) {
    Value isLess = b.compare(emitc::CmpPredicate::lt, lhs.value, rhs.value);
    return {0, emitc::ConditionalOp::create(b.builder, b.loc, b.i64(), isLess, ifLess.value,
                                            otherwise.value)};
  }

  const EmitCBuilder &b;
  const ModelIndex &index;
  Value capacities, maxLengths;
};
} // namespace

std::string Describer::capacity(DomainOp domain) {
  auto symbol = FlatSymbolRefAttr::get(domain.getSymNameAttr());
  Type list = b.pointer(b.i64());
  FunctionType type = builder.getFunctionType({list, list}, {b.i64()});
  std::string name = makeUnique("capacity_" + makeIdentifier(domain.getSymName()), names);
  auto function = emitc::FuncOp::create(builder, domain.getLoc(), name, type);
  function.setSpecifiersAttr(builder.getStrArrayAttr({"static"}));
  Block *entry = function.addEntryBlock();
  for (auto [number, title] : llvm::enumerate(ArrayRef<StringRef>{"capacities", "max_lengths"})) {
    entry->getArgument(number).setLoc(NameLoc::get(builder.getStringAttr(title), b.loc));
    function.setArgAttr(number, kConstAttrName, builder.getUnitAttr());
  }
  builder.setInsertionPointToStart(entry);
  SizeEmitter sizes(b, index, entry->getArgument(0), entry->getArgument(1));
  auto maker = dyn_cast_or_null<StepOpInterface>(index.getMaker(symbol));
  std::optional<SizeTerm> rows = maker ? maker.getDomainRows(symbol, sizes) : std::nullopt;
  // A domain that no program makes has no formula; the value is never used.
  emitc::ReturnOp::create(builder, b.loc, rows ? rows->value : b.integer(1));
  builder.setInsertionPointAfter(function);
  return name;
}

Describer::Rows Describer::domains() {
  Rows rows;
  for (DomainOp domain : index.domains) {
    Fields fields = this->fields();
    fields.text("name", domain.getSymName());
    fields.name("kind",
                "GENREC_DOMAIN_" + StringRef(stringifyDomainKind(domain.getKind())).upper());
    FlatSymbolRefAttr parent = domain.getParentAttr();
    fields.integer("parent", parent ? index.getDomain(parent) : -1);
    if (domain.getColumn())
      fields.text("column", *domain.getColumn());
    if (domain.getSource())
      fields.text("source", *domain.getSource());
    if (domain.getKind() == DomainKind::derived || domain.getKind() == DomainKind::step) {
      fields.name("capacity", capacity(domain));
    }
    Operation *maker = index.getMaker(FlatSymbolRefAttr::get(domain.getSymNameAttr()));
    if (auto truncate = dyn_cast_or_null<TruncateOp>(maker))
      fields.integer("max_length", truncate.getCount())
          .integer("truncated", index.getDomain(truncate.getSource().getType().getDomain()));
    if (auto rows = dyn_cast_or_null<CollectRowsOp>(maker))
      fields.integer("collected", index.getTable(rows.getTableAttr()) + 1);
    if (auto rows = dyn_cast_or_null<ParameterRowsOp>(maker))
      fields.integer("parameter", index.getParameter(rows.getParameterAttr()) + 1);
    rows.push_back(fields.get());
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Features, tables, parameters
//===----------------------------------------------------------------------===//

Describer::Rows Describer::features() {
  Rows rows;
  for (const FeatureEntry &feature : index.features) {
    Fields fields = this->fields();
    fields.text("column", feature.column.getValue());
    fields.integer("domain", index.getDomain(feature.domain));
    fields.name("type", feature.element ? getTypeName(feature.element) : "GENREC_VALID");
    fields.integer("nullable", feature.nullable);
    fields.integer("has_padding_id", feature.paddingId.has_value());
    fields.integer("padding_id", feature.paddingId.value_or(0));
    fields.integer("id_bits", feature.idBits);
    if (feature.table)
      fields.text("table", feature.table.getValue());
    fields.add("location", location(feature.loc, getUserName(feature.loc)));
    if (feature.width)
      fields.integer("width", feature.width);
    rows.push_back(fields.get());
  }
  return rows;
}

Describer::Rows Describer::tables() {
  Rows rows;
  for (TableOp table : index.tables) {
    Fields fields = this->fields();
    fields.text("name", table.getSymName());
    fields.integer("dim", table.getDim()).integer("id_bits", table.getIdBits());
    fields.add("init", init(table.getInit()))
        .add("optimizer", optimizer(table.getOptimizer(), true));
    fields.add("location", location(table.getLoc(), table.getSymName()));
    if (ModelIndex::TableLocation location = index.getTableLocation(table); location.group)
      fields.integer("group", location.group)
          .integer("key", location.key)
          .integer("key_bits", location.keyBits);
    if (table.hasRowRules()) {
      fields.integer("bounded", table.getBounded().value_or(0));
      fields.integer("evict", static_cast<int64_t>(table.getEvict().value_or(EvictKind::lru)));
      fields.integer("ttl", table.getTtlSteps().value_or(0));
      fields.integer("admit_after", table.getAdmitAfter().value_or(0));
      fields.integer("ttl_seconds", table.getTtlSeconds().value_or(0));
    }
    if (table.getElement() != RowElement::f32) {
      fields.integer("element", static_cast<int64_t>(table.getElement()));
      fields.integer("rounding",
                     static_cast<int64_t>(table.getRounding().value_or(RowRounding::nearest)));
      fields.integer("hot_after", table.getHotAfter().value_or(0));
    }
    rows.push_back(fields.get());
  }
  return rows;
}

Describer::Rows Describer::parameters() {
  Rows rows;
  for (ParameterOp parameter : index.parameters) {
    auto type = cast<RankedTensorType>(parameter.getType());
    Fields fields = this->fields();
    fields.text("name", parameter.getSymName()).integer("rank", type.getRank());
    fields.add("shape", builder.getI64ArrayAttr(type.getShape()));
    fields.add("init", init(parameter.getInit()));
    fields.add("optimizer", optimizer(parameter.getOptimizer(), false));
    fields.add("location", location(parameter.getLoc(), parameter.getSymName()));
    rows.push_back(fields.get());
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Losses, metrics, outputs
//===----------------------------------------------------------------------===//

Describer::Rows Describer::losses() {
  Rows rows;
  for (auto [name, op] : index.losses)
    rows.push_back(fields()
                       .text("name", name.getValue())
                       .number("scale", cast<ReportLossOp>(op).getScale().convertToDouble())
                       .add("location", location(op->getLoc(), getUserName(op->getLoc())))
                       .get());
  return rows;
}

Describer::Rows Describer::metrics() {
  Rows rows;
  for (auto [name, op] : index.metrics) {
    MetricOp metric = op;
    Fields fields = this->fields();
    fields.text("name", name.getValue()).integer("kind", static_cast<int64_t>(metric.getKind()));
    if (std::optional<ArrayRef<int64_t>> at = metric.getAt(); at && !at->empty()) {
      Rows cutoffs = llvm::to_vector(builder.getI64ArrayAttr(*at));
      table(fields, "int64_t", "at", "at_count", cutoffs,
            "metric_" + std::to_string(rows.size()) + "_");
    }
    if (metric.getNote())
      fields.text("note", *metric.getNote());
    if (metric.getPerList())
      fields.integer("per_list", 1);
    rows.push_back(fields.get());
  }
  return rows;
}

Describer::Rows Describer::outputs() {
  Rows rows;
  for (auto [name, op] : index.outputs) {
    OutputOp output = op;
    auto type = cast<RankedTensorType>(output.getX().getType());
    Value valid = output.getValid();
    rows.push_back(fields()
                       .text("name", name.getValue())
                       .integer("domain", index.getDomain(getRowDomain(type)))
                       .name("type", getTypeName(type.getElementType()))
                       .integer("width", getRowShape(type).empty() ? 0 : getRowSize(type))
                       .integer("nulls", !valid                                 ? 0
                                         : getRowShape(valid.getType()).empty() ? 1
                                                                                : 2)
                       .get());
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

Describer::Rows Describer::buffers(ProgramOp program) {
  Rows rows;
  for (const PlannedBuffer &buffer : getBuffers(program)) {
    bool hasRows = buffer.domain && buffer.block < 0; // a run's own buffers are in no arena
    rows.push_back(fields()
                       .integer("domain", hasRows ? index.getDomain(buffer.domain) : -1)
                       .integer("bytes_per_row", hasRows ? buffer.bytesPerRow : 0)
                       .integer("bytes", buffer.bytes)
                       .integer("first", buffer.first)
                       .integer("last", buffer.last)
                       .text("name", buffer.name)
                       .get());
  }
  return rows;
}

FieldsAttr Describer::program(ProgramOp program, const StageNames &stages) {
  Rows domains, features;
  llvm::DenseSet<std::pair<Rows *, int64_t>> added;
  auto add = [&](Rows &rows, int64_t number) {
    if (added.insert({&rows, number}).second)
      rows.push_back(builder.getI64IntegerAttr(number));
  };
  for (Operation &op : program.getBody().front()) {
    if (op.hasTrait<ReadsDomains>())
      for (Value domain : op.getResults())
        add(domains, index.getDomain(cast<DomainType>(domain.getType()).getDomain()));
    if (auto feature = dyn_cast<FeatureOp>(op))
      add(features,
          index.getFeature(feature.getDomain().getType().getDomain(), feature.getColumnAttr()));
    if (auto valid = dyn_cast<FeatureValidOp>(op))
      add(features,
          index.getFeature(valid.getDomain().getType().getDomain(), valid.getColumnAttr()));
  }
  std::string name = program.getSymName().str();
  Fields fields = this->fields();
  fields.text("name", name).integer("mode", static_cast<int64_t>(program.getMode()));
  table(fields, "int32_t", "domains", "domain_count", domains, name + "_");
  table(fields, "int32_t", "features", "feature_count", features, name + "_");
  table(fields, "genrec_buffer_desc", "buffers", "buffer_count", buffers(program), name + "_");
  if (auto first = program->getAttrOfType<IntegerAttr>(
          GenRecDialect::FirstComputeOpAttrHelper::getNameStr()))
    fields.integer("first_compute_op", first.getInt());
  if (auto first =
          program->getAttrOfType<IntegerAttr>(GenRecDialect::FirstUpdateOpAttrHelper::getNameStr()))
    fields.integer("first_update_op", first.getInt());
  for (auto [stage, function] :
       llvm::zip(ArrayRef<StringRef>{"copy", "dispatch", "compute", "update"}, stages))
    fields.name(stage, function.empty() ? "nullptr" : function);
  using D = GenRecDialect;
  for (auto [field, name] :
       {std::pair<StringRef, StringRef>("single_rank", D::SingleRankAttrHelper::getNameStr()),
        {"meeting", D::MeetingAttrHelper::getNameStr()}})
    if (auto why = program->getAttrOfType<StringAttr>(name))
      fields.text(field, why.getValue());
  return fields.get();
}

FieldsAttr Describer::stepOp(const StepOp &op, int64_t number) {
  Rows costs;
  for (const OpCost &cost : op.costs) {
    Fields fields = this->fields();
    fields.integer("domain", cost.domain ? index.getDomain(cost.domain) : -1);
    for (auto [name, value] :
         {std::pair("bytes", cost.bytes), std::pair("gathered_bytes", cost.gatheredBytes),
          std::pair("flops", cost.flops), std::pair("product_flops", cost.productFlops),
          std::pair("pair_flops", cost.pairFlops), std::pair("source_bytes", cost.sourceBytes)})
      if (value != 0)
        fields.number(name, value);
    costs.push_back(fields.get());
  }
  Fields fields = this->fields();
  fields.text("name", op.name).add("location", location(op.loc, getUserName(op.loc)));
  fields.text("what", op.origin).integer("stage", static_cast<int64_t>(op.stage));
  table(fields, "genrec_cost", "costs", "cost_count", costs, "op_" + std::to_string(number) + "_");
  if (op.bf16)
    fields.integer("bf16", 1);
  if (op.isFused)
    fields.integer("is_fused", 1);
  return fields.get();
}

void Describer::describe(ArrayRef<StageNames> stages, ArrayRef<StepOp> ops, StringRef compiler) {
  ModelOp op = index.model;
  Fields model = fields();
  model.name("abi_version", "GENREC_ABI_VERSION").text("name", op.getSymName());
  model.text("compiler", compiler);
  model.number("clip_norm", op.getClipNorm().convertToDouble());
  model.number("clip_value", op.getClipValue().convertToDouble());
  DictionaryAttr schedule = op.getScheduleAttr();
  auto entry = [&](StringRef name) -> double {
    Attribute value = schedule ? schedule.get(name) : Attribute();
    if (auto number = dyn_cast_or_null<FloatAttr>(value))
      return number.getValueAsDouble();
    auto number = dyn_cast_or_null<IntegerAttr>(value);
    return number ? static_cast<double>(number.getInt()) : 0;
  };
  auto kind = schedule ? schedule.getAs<StringAttr>("kind") : StringAttr();
  model.text("schedule", kind ? kind.getValue() : "constant");
  model.integer("schedule_warmup", static_cast<int64_t>(entry("warmup")));
  model.integer("schedule_steps", static_cast<int64_t>(entry("steps")));
  model.number("schedule_final", entry("final"));
  table(model, "genrec_domain_desc", "domains", "domain_count", domains());
  table(model, "genrec_feature_desc", "features", "feature_count", features());
  table(model, "genrec_table_desc", "tables", "table_count", tables());
  table(model, "genrec_parameter_desc", "parameters", "parameter_count", parameters());
  table(model, "genrec_loss_desc", "losses", "loss_count", losses());
  table(model, "genrec_metric_desc", "metrics", "metric_count", metrics());
  table(model, "genrec_output_desc", "outputs", "output_count", outputs());
  Rows programs, names;
  for (auto [op, functions] : llvm::zip(index.programs, stages))
    programs.push_back(program(op, functions));
  table(model, "genrec_program_desc", "programs", "program_count", programs);
  for (const StepOp &step : ops)
    names.push_back(stepOp(step, static_cast<int64_t>(names.size())));
  table(model, "genrec_op_desc", "ops", "op_count", names);
  if (auto identity =
          op->getAttrOfType<StringAttr>(GenRecDialect::IdentityAttrHelper::getNameStr()))
    model.text("identity", identity.getValue());
  if (Target::of(op).hasDevice)
    model.name("device", "genrec_rt_cuda_device");

  Type type = b.opaque("genrec_model_desc");
  global("model", type, model.get());
  Type pointer = b.pointer(b.opaque("const genrec_model_desc"));
  auto function =
      emitc::FuncOp::create(builder, b.loc, "genrec_model", builder.getFunctionType({}, {pointer}));
  function.setSpecifiersAttr(builder.getStrArrayAttr({"extern \"C\""}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  Value place = emitc::GetGlobalOp::create(builder, b.loc, emitc::LValueType::get(type), "model");
  emitc::ReturnOp::create(builder, b.loc, b.cast(b.addressOf(place), pointer));
  builder.setInsertionPointAfter(function);
}

void genrec::emitDescription(const ModelIndex &index, ArrayRef<StageNames> stages,
                             ArrayRef<StepOp> ops, StringRef compiler, OpBuilder &builder) {
  Describer(index, builder).describe(stages, ops, compiler);
}
