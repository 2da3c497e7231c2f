//===- Importer.cpp - declarations of a model file ------------------------===//

#include "Importer.h"
#include "EnumKinds.h"

#include "genrec/Model/Model.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace genrec;

OwningOpRef<ModuleOp> genrec::importModel(const void *data, size_t size, StringRef fileName,
                                          MLIRContext *context) {
  context->loadDialect<GenRecDialect>();
  // Line 0 denotes the file as a whole.
  Location location = FileLineColLoc::get(context, fileName, 0, 0);
  ModelReader reader(data, size);
  const schema::Model *file = reader.read(location);
  if (!file)
    return {};
  OwningOpRef<ModuleOp> module(ModuleOp::create(location));
  if (failed(Importer(*file, location).run(*module)) || failed(verify(*module)))
    return {};
  return module;
}

Importer::Importer(const schema::Model &file, Location fileLocation)
    : file(file), fileLocation(fileLocation), builder(fileLocation.getContext()) {}

LogicalResult Importer::run(ModuleOp module) {
  if (failed(createModel(module)) || failed(declareAll()))
    return failure();
  auto program = ProgramOp::create(builder, fileLocation, builder.getStringAttr("main"),
                                   ProgramModeAttr::get(builder.getContext(), ProgramMode::all));
  builder.setInsertionPointToStart(&program.getBody().emplaceBlock());
  if (file.ops())
    for (const schema::Op *op : *file.ops())
      if (failed(importOp(*op)))
        return failure();
  return success();
}

LogicalResult Importer::createModel(ModuleOp module) {
  StringRef name = toRef(file.name());
  if (name.empty())
    return emitError(fileLocation) << "the model has no name";
  for (double clip : {file.clip_norm(), file.clip_value()})
    if (!(clip >= 0) || !std::isfinite(clip))
      return emitError(fileLocation)
             << "clipping bounds must be finite and not negative, got " << clip;
  builder.setInsertionPointToEnd(module.getBody());
  model = ModelOp::create(builder, fileLocation, builder.getStringAttr(name),
                          builder.getF64FloatAttr(file.clip_norm()),
                          builder.getF64FloatAttr(file.clip_value()), DictionaryAttr());
  builder.setInsertionPointToStart(&model.getBody().emplaceBlock());
  return file.schedule() ? importSchedule(*file.schedule()) : success();
}

LogicalResult Importer::importSchedule(const schema::Schedule &schedule) {
  if (!std::isfinite(schedule.final()))
    return emitError(fileLocation)
           << "the schedule's final factor must be finite, got " << schedule.final();
  model.setScheduleAttr(builder.getDictionaryAttr({
      builder.getNamedAttr("kind", builder.getStringAttr(toRef(schedule.kind()))),
      builder.getNamedAttr("warmup", builder.getI64IntegerAttr(schedule.warmup())),
      builder.getNamedAttr("steps", builder.getI64IntegerAttr(schedule.steps())),
      builder.getNamedAttr("final", builder.getF64FloatAttr(schedule.final())),
  }));
  return success();
}

LogicalResult Importer::declare(StringRef name, Symbol kind, Location location) {
  auto text = [](Symbol symbol) {
    return symbol == Symbol::Domain  ? "a domain"
           : symbol == Symbol::Table ? "a table"
                                     : "a parameter";
  };
  if (name.empty())
    return emitError(location) << text(kind) << " has no name";
  if (name == "main")
    return emitError(location) << text(kind) << " is named 'main', which is the program's name; "
                               << "choose another";
  auto [entry, inserted] = symbols.try_emplace(name, kind);
  if (!inserted)
    return emitError(location) << text(kind) << " is named '" << name << "', but so is "
                               << text(entry->second)
                               << "; names of domains, tables and parameters "
                               << "must differ";
  return success();
}

/// Declares all names first, as a domain may refer to a parent that is declared after it.
LogicalResult Importer::declareAll() {
  auto each = [](const auto *vector, auto function) -> LogicalResult {
    if (vector)
      for (const auto *element : *vector)
        if (failed(function(*element)))
          return failure();
    return success();
  };
  auto name = [&](Symbol kind) {
    return [this, kind](const auto &element) {
      return declare(toRef(element.name()), kind, importLocation(element.location()));
    };
  };
  if (failed(each(file.domains(), name(Symbol::Domain))) ||
      failed(each(file.tables(), name(Symbol::Table))) ||
      failed(each(file.parameters(), name(Symbol::Parameter))))
    return failure();
  return failure(
      failed(each(file.domains(), [&](const auto &domain) { return importDomain(domain); })) ||
      failed(each(file.tables(), [&](const auto &table) { return importTable(table); })) ||
      failed(each(file.parameters(),
                  [&](const auto &parameter) { return importParameter(parameter); })));
}

LogicalResult Importer::importDomain(const schema::Domain &domain) {
  Location location = importLocation(domain.location());
  FlatSymbolRefAttr parent;
  if (StringRef name = toRef(domain.parent()); !name.empty())
    if (!(parent = getDomain(name, location)))
      return failure();
  std::optional<DomainKind> kind;
  switch (domain.kind()) {
  case schema::DomainKind::Data:
    kind = DomainKind::data;
    break;
  case schema::DomainKind::Derived:
    kind = DomainKind::derived;
    break;
  case schema::DomainKind::Catalogue:
    kind = DomainKind::catalogue;
    break;
  }
  if (!kind)
    return emitError(location) << "domain '" << toRef(domain.name()) << "' has kind number "
                               << static_cast<int>(domain.kind())
                               << ", which this build does not know";
  auto optional = [&](const flatbuffers::String *text) {
    return toRef(text).empty() ? StringAttr() : builder.getStringAttr(toRef(text));
  };
  DomainOp::create(builder, location, builder.getStringAttr(toRef(domain.name())), parent,
                   DomainKindAttr::get(builder.getContext(), *kind), optional(domain.column()),
                   optional(domain.source()),
                   domain.expected_rows() < 0 ? IntegerAttr()
                                              : builder.getI64IntegerAttr(domain.expected_rows()));
  return success();
}

InitAttr Importer::importInit(const schema::Initializer &init, Location location) {
  std::optional<InitKind> kind = symbolizeInitKind(toRef(init.kind()));
  if (!kind) {
    emitError(location) << "unknown initializer '" << toRef(init.kind()) << "'; there are "
                        << listKeywords<InitKind>(getMaxEnumValForInitKind());
    return {};
  }
  return InitAttr::getChecked([&] { return emitError(location); }, builder.getContext(), *kind,
                              builder.getF64FloatAttr(init.scale()));
}

OptimizerAttr Importer::importOptimizer(const schema::Optimizer &optimizer, Location location) {
  std::optional<OptimizerKind> kind = symbolizeOptimizerKind(toRef(optimizer.kind()));
  if (!kind) {
    emitError(location) << "unknown optimizer '" << toRef(optimizer.kind()) << "'; there are "
                        << listKeywords<OptimizerKind>(getMaxEnumValForOptimizerKind());
    return {};
  }
  NamedAttrList options;
  if (optimizer.options())
    for (const schema::Option *option : *optimizer.options()) {
      StringRef name = toRef(option->name());
      if (name.empty()) {
        emitError(location) << "an optimizer option has no name";
        return {};
      }
      if (options.set(name, builder.getF64FloatAttr(option->value()))) {
        emitError(location) << "optimizer option '" << name << "' is given twice";
        return {};
      }
    }
  return OptimizerAttr::getChecked([&] { return emitError(location); }, builder.getContext(), *kind,
                                   options.getDictionary(builder.getContext()));
}

LogicalResult Importer::importTable(const schema::EmbeddingTable &table) {
  Location location = importLocation(table.location());
  InitAttr init = importInit(*table.init(), location);
  OptimizerAttr optimizer = init ? importOptimizer(*table.optimizer(), location) : OptimizerAttr();
  if (!optimizer)
    return failure();
  auto rule = [&](int64_t value) {
    return value ? builder.getI64IntegerAttr(value) : IntegerAttr();
  };
  EvictKindAttr evict;
  if (table.evict()) {
    std::optional<EvictKind> kind = symbolizeEvictKind(toRef(table.evict()));
    if (!kind)
      return emitError(location) << "unknown 'evict' of a table '" << toRef(table.evict())
                                 << "'; known are "
                                 << listKeywords<EvictKind>(getMaxEnumValForEvictKind());
    evict = EvictKindAttr::get(builder.getContext(), *kind);
  }
  RowElementAttr element;
  if (table.element()) {
    std::optional<RowElement> kind = symbolizeRowElement(toRef(table.element()));
    if (!kind)
      return emitError(location) << "unknown 'element' of a table '" << toRef(table.element())
                                 << "'; known are "
                                 << listKeywords<RowElement>(getMaxEnumValForRowElement());
    if (*kind != RowElement::f32)
      element = RowElementAttr::get(builder.getContext(), *kind);
  }
  RowRoundingAttr rounding;
  if (table.rounding()) {
    std::optional<RowRounding> kind = symbolizeRowRounding(toRef(table.rounding()));
    if (!kind)
      return emitError(location) << "unknown 'rounding' of a table '" << toRef(table.rounding())
                                 << "'; known are "
                                 << listKeywords<RowRounding>(getMaxEnumValForRowRounding());
    rounding = RowRoundingAttr::get(builder.getContext(), *kind);
  }
  if (table.ttl() && table.ttl_seconds())
    return emitError(location) << "table '" << toRef(table.name())
                               << "' has both 'ttl', in steps, and 'ttl_seconds'";
  TableOp::create(builder, location, builder.getStringAttr(toRef(table.name())),
                  builder.getI64IntegerAttr(table.dim()),
                  builder.getI64IntegerAttr(table.id_bits()), init, optimizer,
                  rule(table.bounded()), evict,
                  rule(table.ttl_seconds() ? table.ttl_seconds() : table.ttl()),
                  table.ttl_seconds() ? builder.getUnitAttr() : UnitAttr(),
                  rule(table.admit_after()), element, rounding, rule(table.hot_after()),
                  /*members=*/ArrayAttr());
  return success();
}

LogicalResult Importer::importParameter(const schema::Parameter &parameter) {
  Location location = importLocation(parameter.location());
  SmallVector<int64_t> shape;
  if (failed(importShape(parameter.shape(), location, shape)))
    return failure();
  InitAttr init = importInit(*parameter.init(), location);
  OptimizerAttr optimizer =
      init ? importOptimizer(*parameter.optimizer(), location) : OptimizerAttr();
  if (!optimizer)
    return failure();
  ParameterOp::create(builder, location, builder.getStringAttr(toRef(parameter.name())),
                      TypeAttr::get(RankedTensorType::get(shape, builder.getF32Type())), init,
                      optimizer);
  return success();
}
