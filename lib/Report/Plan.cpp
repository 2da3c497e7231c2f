//===- Plan.cpp - the plan of a compiled model as JSON --------------------===//

#include "genrec/Report/Plan.h"

#include "AlikeLines.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Report/Explain.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

using namespace mlir;
using namespace genrec;
namespace json = llvm::json;

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void addWork(const OpCost &cost, bool isRounded, double rows, double pairs, rt::Work &work) {
  work.bytes += rows * cost.bytes;
  work.gatheredBytes += rows * cost.gatheredBytes;
  work.flops += rows * cost.flops;
  (isRounded ? work.bf16Flops : work.productFlops) +=
      rows * cost.productFlops + pairs * cost.pairFlops;
  work.sourceBytes += rows * cost.sourceBytes;
}

/// Causal pairs in a domain: each row with itself and the rows before it in its list. Assumes that
/// all lists have the same length.
static double getPairs(ProgramOp program, FlatSymbolRefAttr domain, RowsOfDomain rows) {
  DomainOp declaration = lookupDomain(program, domain);
  double count = rows(domain);
  FlatSymbolRefAttr parent = declaration ? declaration.getParentAttr() : FlatSymbolRefAttr();
  double lists = parent ? rows(parent) : count;
  return lists > 0 ? count * (count / lists + 1) / 2 : 0;
}

int64_t genrec::countLaunches(ArrayRef<PlannedOp> ops) {
  auto count = static_cast<int64_t>(ops.size());
  if (ops.empty())
    return count;
  for (const JointLaunch &launch :
       getJointLaunches(ops.front().op->getParentOfType<ProgramOp>()))
    count -= static_cast<int64_t>(launch.kernels.size()) - 1;
  return count;
}

SmallVector<PlannedOp> genrec::getPlannedOps(ProgramOp program, RowsOfDomain rows) {
  SmallVector<PlannedOp> planned;
  for (Operation &op : program.getBody().front()) {
    if (!isStepOp(&op))
      continue;
    PlannedOp entry{&op, getStepOpName(&op), describeOrigin(&op), getStage(&op), {}, 0, {}};
    for (const auto &[number, cost] : llvm::enumerate(getCosts(&op))) {
      double count = cost.domain ? rows(cost.domain) : 1;
      double pairs = cost.domain && cost.pairFlops > 0 ? getPairs(program, cost.domain, rows) : 0;
      addWork(cost, multipliesRounded(&op), count, pairs, entry.work);
      if (number == 0) {
        entry.domain = cost.domain;
        entry.rows = static_cast<int64_t>(count);
      }
    }
    double perRow = entry.rows > 0 ? 1.0 / static_cast<double>(entry.rows) : 0;
    entry.bytesPerRow = (entry.work.bytes + entry.work.gatheredBytes) * perRow;
    entry.flopsPerRow = entry.work.allFlops() * perRow;
    planned.push_back(std::move(entry));
  }
  return planned;
}

//===----------------------------------------------------------------------===//
// The machine
//===----------------------------------------------------------------------===//

static std::vector<rt::Bandwidth> readRates(const json::Object &object, StringRef key) {
  std::vector<rt::Bandwidth> rates;
  if (const json::Array *list = object.getArray(key))
    for (const json::Value &value : *list)
      if (const json::Object *rate = value.getAsObject())
        rates.push_back({rate->getNumber("bytes").value_or(0),
                         rate->getNumber("bytes_per_second").value_or(0)});
  return rates;
}

std::optional<rt::Roofline> genrec::loadRoofline(ModelOp model) {
  const bool isOfDevice = Target::of(model).hasDevice;
  auto file = llvm::MemoryBuffer::getFile(rt::rooflinePath(isOfDevice));
  if (!file)
    return std::nullopt;
  llvm::Expected<json::Value> value = json::parse((*file)->getBuffer());
  if (!value) {
    llvm::consumeError(value.takeError());
    return std::nullopt;
  }
  const json::Object *object = value->getAsObject();
  if (!object)
    return std::nullopt;
  rt::Roofline roofline;
  roofline.processor = object->getString("processor").value_or("").str();
  roofline.threads = static_cast<int>(object->getInteger("threads").value_or(0));
  roofline.flops = object->getNumber("flops_per_second").value_or(0);
  roofline.productFlops = object->getNumber("product_flops_per_second").value_or(0);
  roofline.launchSeconds = object->getNumber("launch_seconds").value_or(0);
  roofline.copies = readRates(*object, "copies");
  roofline.gathers = readRates(*object, "gathers");
  roofline.bf16Flops = object->getNumber("bf16_flops_per_second").value_or(0);
  if (!roofline.isMeasured() || isOfDevice != (roofline.threads == 0))
    return std::nullopt;
  return roofline;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

/// Features and ops that compute are drawn; declarations and descriptors are not.
static bool isDrawn(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  StepKind kind = getStepKind(op);
  bool isSetup = kind == StepKind::setup && op->getNumResults() > 0;
  return isa<FeatureOp>(op) || !(kind == StepKind::declaration || isSetup);
}

static FlatSymbolRefAttr getDomain(Operation *op) {
  auto step = dyn_cast<StepOpInterface>(op);
  return step ? step.getStepDomain() : getFirstDomain(op);
}

static std::string getLabel(Operation *op) {
  if (auto feature = dyn_cast<FeatureOp>(op))
    return feature.getColumn().str();
  if (isa<RowKernelOp>(op))
    return StringRef(getStepOpName(op)).drop_front(4).str();
  std::string label = op->getName().stripDialect().str();
  if (StringRef name = getUserName(op->getLoc()); !name.empty() && name != label)
    label += " " + name.str();
  return label;
}

json::Object genrec::describeGraph(ProgramOp program) {
  llvm::DenseMap<Operation *, int64_t> numbers;
  json::Array nodes, edges;
  for (Operation &op : program.getBody().front()) {
    if (!isDrawn(&op))
      continue;
    numbers[&op] = static_cast<int64_t>(nodes.size());
    json::Object node{{"op", op.getName().stripDialect()},
                      {"label", getLabel(&op)},
                      {"from", describeOrigin(&op)}};
    if (FlatSymbolRefAttr domain = getDomain(&op))
      node["domain"] = domain.getValue();
    nodes.push_back(std::move(node));
    llvm::SmallPtrSet<Operation *, 4> sources;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && numbers.count(source) && sources.insert(source).second)
        edges.push_back(json::Array{numbers[source], numbers[&op]});
  }
  return json::Object{{"nodes", std::move(nodes)}, {"edges", std::move(edges)}};
}

json::Object genrec::describeGraphs(ModelOp model) {
  json::Object graphs;
  for (ProgramOp program : model.getOps<ProgramOp>())
    graphs[program.getSymName()] = describeGraph(program);
  return graphs;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

namespace {
class PlanDescriber {
public:
  PlanDescriber(ModelOp model, llvm::function_ref<int64_t(ProgramOp, FlatSymbolRefAttr)> rows,
                const std::optional<rt::Roofline> &roofline)
      : index(model), rows(rows), roofline(roofline) {}

  json::Object describe();

private:
  json::Array domains();
  json::Array tables();
  json::Array columns();
  json::Object op(const PlannedOp &planned);
  json::Array buffers(ProgramOp program);
  json::Object program(ProgramOp program);

  ModelIndex index;
  llvm::function_ref<int64_t(ProgramOp, FlatSymbolRefAttr)> rows;
  const std::optional<rt::Roofline> &roofline;
};
} // namespace

json::Array PlanDescriber::domains() {
  json::Array list;
  for (DomainOp domain : index.domains) {
    json::Object entry{{"name", domain.getSymName()},
                       {"kind", stringifyDomainKind(domain.getKind())}};
    if (FlatSymbolRefAttr parent = domain.getParentAttr())
      entry["parent"] = parent.getValue();
    list.push_back(std::move(entry));
  }
  return list;
}

json::Array PlanDescriber::tables() {
  json::Array list;
  const auto mergedTables = mapMergedTables(index.model);
  for (TableOp table : index.tables) {
    OptimizerAttr optimizer = table.getOptimizer();
    list.push_back(json::Object{{"name", table.getSymName()},
                                {"dim", static_cast<int64_t>(table.getDim())},
                                {"optimizer", stringifyOptimizerKind(optimizer.getKind())},
                                {"bytes_per_row", table.getRowBytes()},
                                {"where", describeLocation(table.getLoc())}});
    if (int64_t bytes = table.getHotBytes())
      (*list.back().getAsObject())["bytes_where_hot"] = bytes;
    if (TableOp merged = mergedTables.lookup(table.getSymNameAttr()))
      (*list.back().getAsObject())["in"] = merged.getSymName();
    if (std::string rules = describeRowRules(table); !rules.empty())
      (*list.back().getAsObject())["rules"] = rules;
  }
  return list;
}

json::Array PlanDescriber::columns() {
  json::Array list;
  const ColumnReaders readers(index.model);
  for (const FeatureEntry &feature : index.features) {
    json::Object entry{{"column", feature.column.getValue()},
                       {"domain", feature.domain.getValue()}};
    if (feature.table)
      entry["table"] = feature.table.getValue();
    entry["read_by"] = json::Array(readers.list(feature));
    list.push_back(std::move(entry));
  }
  return list;
}

json::Object PlanDescriber::op(const PlannedOp &planned) {
  json::Object entry{{"name", planned.name},
                     {"op", planned.op->getName().stripDialect()},
                     {"stage", stringifyStage(planned.stage)},
                     {"from", planned.origin},
                     {"rows", planned.rows},
                     {"bytes", planned.work.bytes},
                     {"gathered_bytes", planned.work.gatheredBytes},
                     {"flops", planned.work.flops},
                     {"product_flops", planned.work.productFlops + planned.work.bf16Flops},
                     {"bytes_per_row", planned.bytesPerRow},
                     {"flops_per_row", planned.flopsPerRow}};
  if (planned.domain)
    entry["domain"] = planned.domain.getValue();
  if (roofline) {
    entry["predicted_milliseconds"] = roofline->seconds(planned.work) * 1e3;
    entry["bound"] = roofline->bound(planned.work);
  }
  return entry;
}

json::Array PlanDescriber::buffers(ProgramOp program) {
  json::Array list;
  for (const PlannedBuffer &buffer : getBuffers(program))
    list.push_back(json::Object{
        {"name", buffer.name},
        {"bytes",
         buffer.bytes + (buffer.domain ? buffer.bytesPerRow * rows(program, buffer.domain) : 0)},
        {"first", buffer.first},
        {"last", buffer.last}});
  return list;
}

json::Object PlanDescriber::program(ProgramOp program) {
  json::Array ops, decisions;
  int64_t kernels = 0;
  double predicted = 0;
  auto rowsOf = [&](FlatSymbolRefAttr domain) { return rows(program, domain); };
  SmallVector<PlannedOp> all = getPlannedOps(program, rowsOf);
  for (const PlannedOp &planned : all) {
    ops.push_back(op(planned));
    kernels += isa<RowKernelOp>(planned.op);
    if (roofline)
      predicted += roofline->seconds(planned.work) * 1e3;
  }
  if (auto notes = program->getAttrOfType<ArrayAttr>(GenRecDialect::NotesAttrHelper::getNameStr()))
    for (auto note : notes.getAsRange<StringAttr>())
      decisions.push_back(note.getValue());
  json::Object result{{"name", program.getSymName()},      {"row_kernels", kernels},
                      {"launches", countLaunches(all)},    {"ops", std::move(ops)},
                      {"decisions", std::move(decisions)}, {"buffers", buffers(program)},
                      {"graph", describeGraph(program)}};
  if (roofline)
    result["predicted_milliseconds"] = predicted;
  return result;
}

json::Object PlanDescriber::describe() {
  json::Array programs, decisions;
  for (ProgramOp op : index.programs)
    programs.push_back(program(op));
  if (auto lines =
          index.model->getAttrOfType<ArrayAttr>(GenRecDialect::DecisionsAttrHelper::getNameStr()))
    for (auto line : lines.getAsRange<StringAttr>())
      decisions.push_back(line.getValue());
  json::Object plan{{"model", index.model.getSymName()},
                    {"domains", domains()},
                    {"tables", tables()},
                    {"columns", columns()},
                    {"decisions", std::move(decisions)},
                    {"programs", std::move(programs)}};
  if (roofline)
    plan["machine"] = roofline->processor;
  return plan;
}

json::Object genrec::describePlan(ModelOp model,
                                  llvm::function_ref<int64_t(ProgramOp, FlatSymbolRefAttr)> rows,
                                  const std::optional<rt::Roofline> &roofline) {
  return PlanDescriber(model, rows, roofline).describe();
}

//===----------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------===//

StringRef genrec::getCalibration(Operation *op) {
  return Target::of(op).hasDevice ? "`calibrate` of the compiled model on its device"
                                  : "genrec-compile --calibrate";
}

void genrec::printCosts(ProgramOp program, RowsOfDomain rows,
                        const std::optional<rt::Roofline> &roofline, raw_ostream &os) {
  SmallVector<PlannedOp> ops = getPlannedOps(program, rows);
  os << "    " << llvm::left_justify("op", 34) << "      rows    B/row FLOP/row        MB    MFLOP";
  if (roofline)
    os << "  at least ms by";
  os << "\n";
  rt::Work all;
  double seconds = 0;
  AlikeLines lines;
  auto justify = [](StringRef name) {
    std::string text = name.take_front(34).str();
    return text.append(34 - text.size(), ' ');
  };
  for (const PlannedOp &op : ops) {
    double bytes = op.work.bytes + op.work.gatheredBytes, flops = op.work.allFlops();
    std::string numbers;
    llvm::raw_string_ostream line(numbers);
    line << llvm::format("%10lld %8.0f %8.0f %9.3f %8.2f", static_cast<long long>(op.rows),
                         op.bytesPerRow, op.flopsPerRow, bytes * 1e-6, flops * 1e-6);
    if (roofline) {
      line << llvm::format("  %11.3f %s", roofline->seconds(op.work) * 1e3,
                           roofline->bound(op.work));
      seconds += roofline->seconds(op.work);
    }
    lines.add(op.name, justify(op.name) + numbers, numbers + "\n" + op.origin);
    all.add(op.work);
  }
  lines.print("    ", os, [&](ArrayRef<std::string> names, StringRef alike) {
    return justify(llvm::formatv("{0} like {1}", names.size(), names.front()).str()) +
           alike.split('\n').first.str();
  });
  os << llvm::formatv("    {0} launches; {1:f1} MB, {2:f1} MFLOP", countLaunches(ops),
                      (all.bytes + all.gatheredBytes) * 1e-6, all.allFlops() * 1e-6);
  if (!roofline)
    os << "; times are predicted after " << getCalibration(program);
  else if (roofline->threads > 0)
    os << llvm::formatv("; at least {0:f3} ms on {1} threads of {2}", seconds * 1e3,
                        roofline->threads, roofline->processor);
  else
    os << llvm::formatv("; at least {0:f3} ms on {1}", seconds * 1e3, roofline->processor);
  os << "\n";
}
