//===- Export.cpp - MLIR to model files -----------------------------------===//

#include "EnumKinds.h"

#include "genrec/Dialect/GenRec/IR/ModelDialectInterface.h"
#include "genrec/Model/Model.h"
#include "genrec/Model/model_generated.h"
#include "genrec/Version.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace genrec;

namespace {

/// Fills FlatBuffers' object form of one model.
class Exporter {
public:
  explicit Exporter(ModelOp model) : model(model) {}

  /// Fails after a diagnostic.
  LogicalResult run(schema::ModelT &file);

private:
  LogicalResult exportDeclarations(schema::ModelT &file);
  LogicalResult exportDomain(DomainOp domain, schema::DomainT &result);
  LogicalResult exportParameter(ParameterOp parameter, schema::ParameterT &result);
  LogicalResult exportOp(Operation &op, schema::OpT &result);
  LogicalResult exportAttribute(Operation &op, NamedAttribute attribute,
                                schema::AttributeT &result);
  LogicalResult exportTensor(Operation &op, DenseElementsAttr tensor, schema::TensorValueT &result);
  LogicalResult exportType(Operation &op, Type type, schema::TypeT &result);
  std::optional<schema::ElementType> exportElement(Type element);

  ModelOp model;
  llvm::DenseMap<Value, uint32_t> numbers;
};

} // namespace

static std::unique_ptr<schema::LocationT> exportLocation(Location location) {
  auto result = std::make_unique<schema::LocationT>();
  location->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner); named && result->name.empty())
      result->name = named.getName().str();
    auto range = dyn_cast<FileLineColRange>(inner);
    if (!range)
      return WalkResult::advance();
    // Line 0 denotes the model file itself, which is not a location in the user's program.
    if (range.getStartLine() != 0) {
      result->file = range.getFilename().str();
      result->line = range.getStartLine();
      result->column = range.getStartColumn();
      result->end_column = range.getEndColumn();
    }
    return WalkResult::interrupt();
  });
  if (result->file.empty() && result->name.empty())
    return nullptr;
  return result;
}

static std::unique_ptr<schema::InitializerT> exportInit(InitAttr init) {
  auto result = std::make_unique<schema::InitializerT>();
  result->kind = stringifyInitKind(init.getKind()).str();
  result->scale = init.getScale().getValueAsDouble();
  return result;
}

static std::unique_ptr<schema::OptimizerT> exportOptimizer(OptimizerAttr optimizer) {
  auto result = std::make_unique<schema::OptimizerT>();
  result->kind = stringifyOptimizerKind(optimizer.getKind()).str();
  for (NamedAttribute option : optimizer.getOptions()) {
    auto value = dyn_cast<FloatAttr>(option.getValue());
    if (!value)
      continue; // the verifier of tables and parameters rejects it
    auto &entry = result->options.emplace_back(std::make_unique<schema::OptionT>());
    entry->name = option.getName().str();
    entry->value = value.getValueAsDouble();
  }
  return result;
}

static std::unique_ptr<schema::ScheduleT> exportSchedule(DictionaryAttr schedule) {
  auto result = std::make_unique<schema::ScheduleT>();
  if (auto kind = schedule.getAs<StringAttr>("kind"))
    result->kind = kind.str();
  if (auto warmup = schedule.getAs<IntegerAttr>("warmup"))
    result->warmup = warmup.getInt();
  if (auto steps = schedule.getAs<IntegerAttr>("steps"))
    result->steps = steps.getInt();
  if (auto final = schedule.getAs<FloatAttr>("final"))
    result->final = final.getValueAsDouble();
  return result;
}

LogicalResult Exporter::run(schema::ModelT &file) {
  file.version = kModelFileVersion;
  file.name = model.getSymName().str();
  file.producer = "genrec-translate " GENREC_VERSION;
  file.clip_norm = model.getClipNorm().convertToDouble();
  file.clip_value = model.getClipValue().convertToDouble();
  if (std::optional<DictionaryAttr> schedule = model.getSchedule())
    file.schedule = exportSchedule(*schedule);
  if (failed(exportDeclarations(file)))
    return failure();
  auto programs = llvm::to_vector(model.getBody().getOps<ProgramOp>());
  if (programs.size() != 1 || programs.front().getMode() != ProgramMode::all)
    return model.emitError() << "a model file holds one program of mode 'all', the model has "
                             << programs.size() << " programs";
  for (Operation &op : programs.front().getBody().front())
    if (failed(exportOp(op, *file.ops.emplace_back(std::make_unique<schema::OpT>()))))
      return failure();
  return success();
}

LogicalResult Exporter::exportDeclarations(schema::ModelT &file) {
  for (Operation &op : model.getBody().front()) {
    LogicalResult result =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case([&](DomainOp domain) {
              return exportDomain(domain,
                                  *file.domains.emplace_back(std::make_unique<schema::DomainT>()));
            })
            .Case([&](TableOp table) {
              auto &entry = file.tables.emplace_back(std::make_unique<schema::EmbeddingTableT>());
              entry->name = table.getSymName().str();
              entry->dim = table.getDim();
              entry->id_bits = table.getIdBits();
              entry->init = exportInit(table.getInit());
              entry->optimizer = exportOptimizer(table.getOptimizer());
              entry->location = exportLocation(table.getLoc());
              entry->bounded = table.getBounded().value_or(0);
              if (std::optional<EvictKind> evict = table.getEvict())
                entry->evict = stringifyEvictKind(*evict).str();
              entry->ttl = table.getTtlSteps().value_or(0);
              entry->ttl_seconds = table.getTtlSeconds().value_or(0);
              entry->admit_after = table.getAdmitAfter().value_or(0);
              if (table.getElement() != RowElement::f32)
                entry->element = stringifyRowElement(table.getElement()).str();
              if (std::optional<RowRounding> rounding = table.getRounding())
                entry->rounding = stringifyRowRounding(*rounding).str();
              entry->hot_after = table.getHotAfter().value_or(0);
              return success();
            })
            .Case([&](ParameterOp parameter) {
              return exportParameter(
                  parameter, *file.parameters.emplace_back(std::make_unique<schema::ParameterT>()));
            })
            .Case([](ProgramOp) { return success(); })
            .Default([](Operation *op) {
              return op->emitError() << "a model file has no place for this op";
            });
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult Exporter::exportDomain(DomainOp domain, schema::DomainT &result) {
  result.name = domain.getSymName().str();
  result.parent = domain.getParent().value_or("").str();
  switch (domain.getKind()) {
  case DomainKind::data:
    result.kind = schema::DomainKind::Data;
    break;
  case DomainKind::derived:
    result.kind = schema::DomainKind::Derived;
    break;
  case DomainKind::catalogue:
    result.kind = schema::DomainKind::Catalogue;
    break;
  case DomainKind::step:
    return domain.emitError() << "a model file has no place for domains of kind 'step'";
  }
  result.column = domain.getColumn().value_or("").str();
  result.source = domain.getSource().value_or("").str();
  if (domain.getExpectedRows())
    result.expected_rows = static_cast<int64_t>(*domain.getExpectedRows());
  result.location = exportLocation(domain.getLoc());
  return success();
}

LogicalResult Exporter::exportParameter(ParameterOp parameter, schema::ParameterT &result) {
  auto type = cast<RankedTensorType>(parameter.getType());
  result.name = parameter.getSymName().str();
  llvm::append_range(result.shape, type.getShape());
  result.init = exportInit(parameter.getInit());
  result.optimizer = exportOptimizer(parameter.getOptimizer());
  result.location = exportLocation(parameter.getLoc());
  return success();
}

LogicalResult Exporter::exportOp(Operation &op, schema::OpT &result) {
  if (!hasModelOps(op.getDialect()) || op.getNumRegions() != 0)
    return op.emitError() << "a model file has no place for this op";
  result.name = isa<GenRecDialect>(op.getDialect()) ? op.getName().stripDialect().str()
                                                    : op.getName().getStringRef().str();
  for (Value operand : op.getOperands())
    result.operands.push_back(numbers.lookup(operand));
  for (NamedAttribute attribute : op.getPropertiesAsAttribute()
                                      ? cast<DictionaryAttr>(op.getPropertiesAsAttribute())
                                      : DictionaryAttr::get(op.getContext())) {
    if (attribute.getName() == "operandSegmentSizes") {
      for (int32_t size : cast<DenseI32ArrayAttr>(attribute.getValue()).asArrayRef())
        result.operand_segments.push_back(size);
      continue;
    }
    auto &entry = result.attributes.emplace_back(std::make_unique<schema::AttributeT>());
    if (failed(exportAttribute(op, attribute, *entry)))
      return failure();
  }
  for (Value value : op.getResults()) {
    numbers.try_emplace(value, numbers.size());
    auto &type = result.results.emplace_back(std::make_unique<schema::TypeT>());
    if (failed(exportType(op, value.getType(), *type)))
      return failure();
  }
  result.location = exportLocation(op.getLoc());
  return success();
}

LogicalResult Exporter::exportAttribute(Operation &op, NamedAttribute attribute,
                                        schema::AttributeT &result) {
  result.name = attribute.getName().str();
  Attribute value = attribute.getValue();
  for (const EnumKind &kind : getEnumKinds())
    if (std::optional<StringRef> keyword = kind.print(value)) {
      schema::EnumValueT entry;
      entry.kind = kind.name.str();
      entry.value = keyword->str();
      result.value.Set(std::move(entry));
      return success();
    }
  auto scalar = [&](auto entry, auto contents) {
    entry.value = contents;
    result.value.Set(std::move(entry));
    return success();
  };
  auto list = [&](auto entry, auto contents) {
    entry.values.assign(contents.begin(), contents.end());
    result.value.Set(std::move(entry));
    return success();
  };
  return llvm::TypeSwitch<Attribute, LogicalResult>(value)
      .Case([&](UnitAttr) { return scalar(schema::BoolValueT(), true); })
      .Case([&](IntegerAttr i) { return scalar(schema::IntValueT(), i.getInt()); })
      .Case([&](FloatAttr f) { return scalar(schema::FloatValueT(), f.getValueAsDouble()); })
      .Case([&](StringAttr s) { return scalar(schema::StringValueT(), s.str()); })
      .Case([&](FlatSymbolRefAttr symbol) {
        schema::SymbolValueT entry;
        entry.name = symbol.getValue().str();
        result.value.Set(std::move(entry));
        return success();
      })
      .Case([&](DenseI64ArrayAttr a) { return list(schema::IntsValueT(), a.asArrayRef()); })
      .Case([&](DenseF64ArrayAttr a) { return list(schema::FloatsValueT(), a.asArrayRef()); })
      .Case([&](DenseElementsAttr tensor) -> LogicalResult {
        schema::TensorValueT entry;
        if (failed(exportTensor(op, tensor, entry)))
          return failure();
        result.value.Set(std::move(entry));
        return success();
      })
      .Default([&](Attribute) {
        return op.emitError() << "a model file has no place for attribute '" << result.name << "'";
      });
}

LogicalResult Exporter::exportTensor(Operation &op, DenseElementsAttr tensor,
                                     schema::TensorValueT &result) {
  result.type = std::make_unique<schema::TypeT>();
  if (failed(exportType(op, tensor.getType(), *result.type)))
    return failure();
  if (isa<FloatType>(tensor.getElementType()))
    for (APFloat value : tensor.getValues<APFloat>()) {
      bool lossy = false;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
      result.floats.push_back(value.convertToDouble());
    }
  else
    for (const APInt &value : tensor.getValues<APInt>())
      result.ints.push_back(value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue());
  return success();
}

LogicalResult Exporter::exportType(Operation &op, Type type, schema::TypeT &result) {
  if (auto domain = dyn_cast<DomainType>(type)) {
    result.is_domain = true;
    result.domain = domain.getDomain().getValue().str();
    return success();
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  std::optional<schema::ElementType> element =
      tensor ? exportElement(tensor.getElementType()) : std::nullopt;
  if (!element)
    return op.emitError() << "a model file has no place for type " << type;
  if (FlatSymbolRefAttr domain = getRowDomain(type))
    result.domain = domain.getValue().str();
  llvm::append_range(result.shape, getRowShape(type));
  result.element = *element;
  return success();
}

std::optional<schema::ElementType> Exporter::exportElement(Type element) {
  if (isa<StringType>(element))
    return schema::ElementType::String;
  if (element.isBF16())
    return schema::ElementType::BF16;
  if (element.isF32())
    return schema::ElementType::F32;
  if (element.isF64())
    return schema::ElementType::F64;
  if (element.isSignlessInteger(1))
    return schema::ElementType::I1;
  if (element.isSignlessInteger(32))
    return schema::ElementType::I32;
  if (element.isSignlessInteger(64))
    return schema::ElementType::I64;
  return std::nullopt;
}

LogicalResult genrec::exportModel(ModelOp model, llvm::raw_ostream &os) {
  schema::ModelT file;
  if (failed(Exporter(model).run(file)))
    return failure();
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &file));
  os.write(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
  return success();
}
