//===- Explain.cpp - report of a compiled model ---------------------------===//

#include "genrec/Report/Explain.h"

#include "AlikeLines.h"
#include "DomainSizes.h"
#include "ExplainMemory.h"
#include "ExplainWorld.h"
#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Report/Plan.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace genrec;

namespace {
/// FLOPs of matrix products per row of the domain that `op` iterates over.
double getProductFlopsPerRow(Operation *op) {
  SmallVector<OpCost> costs = getCosts(op);
  return costs.empty() ? 0 : costs.front().productFlops;
}

void printTables(ModelOp model, raw_ostream &os) {
  int64_t count = 0, stores = 0;
  AlikeLines lines;
  const auto mergedTables = mapMergedTables(model);
  for (TableOp table : model.getOps<TableOp>()) {
    ++stores;
    if (ArrayAttr members = table.getMembersAttr()) {
      stores -= members.size();
      continue;
    }
    std::string rules = describeRowRules(table);
    TableOp merged = mergedTables.lookup(table.getSymNameAttr());
    std::string store = merged ? ", in '" + merged.getSymName().str() + "'" : "";
    std::string hot =
        table.getHotAfter() ? ", " + std::to_string(table.getHotBytes()) + " more where hot" : "";
    std::string text =
        llvm::formatv(": dim {0}, {1}, {2} bytes per row{3}{4}{5}", table.getDim(),
                      stringifyOptimizerKind(table.getOptimizer().getKind()), table.getRowBytes(),
                      hot, rules.empty() ? "" : ", " + rules, store);
    lines.add(table.getSymName(), table.getSymName().str() + text, text);
    ++count;
  }
  lines.print("  ", os);
  os << llvm::formatv("  {0} logical tables in {1} stores\n", count, stores);
}

/// The columns that are decoded, and the programs that read them. Other columns of the data are not
/// read.
void printColumns(ModelOp model, const ModelIndex &index, raw_ostream &os) {
  const ColumnReaders readers(model);
  llvm::DenseMap<Attribute, int64_t> counts; // columns of a domain, and of a table
  for (const FeatureEntry &feature : index.features) {
    ++counts[feature.domain];
    if (feature.table)
      ++counts[feature.table];
  }
  AlikeLines lines;
  for (const FeatureEntry &feature : index.features) {
    auto describeColumn = [&](bool isAlike) {
      auto isOwn = [&](FlatSymbolRefAttr of) { return isAlike && counts[of] == 1; };
      DomainOp domain = lookupDomain(model, feature.domain);
      std::string text;
      llvm::raw_string_ostream line(text);
      line << ": of ";
      if (isOwn(feature.domain) && domain && domain.getParentAttr())
        line << "a list each";
      else
        line << feature.domain;
      if (feature.element)
        line << ", " << describe(feature.element);
      if (feature.nullable)
        line << ", nullable";
      if (feature.table && isOwn(feature.table))
        line << ", ids of a table each";
      else if (feature.table)
        line << ", ids of table '" << feature.table.getValue() << "'";
      line << "; read by " << llvm::join(readers.list(feature), ", ");
      return text;
    };
    StringRef name = feature.column.getValue();
    lines.add(name, name.str() + describeColumn(false), describeColumn(true));
  }
  os << "columns\n";
  lines.print("  ", os);
}

/// The decisions of passes and their reasons.
void printDecisions(ModelOp model, raw_ostream &os) {
  auto decisions =
      model->getAttrOfType<ArrayAttr>(GenRecDialect::DecisionsAttrHelper::getNameStr());
  if (!decisions)
    return;
  os << "decisions\n";
  for (auto line : decisions.getAsRange<StringAttr>())
    os << "  " << line.getValue() << "\n";
}

void printKernels(ProgramOp program, raw_ostream &os) {
  llvm::MapVector<StringRef, int64_t> calls;
  int64_t kernels = 0;
  double flops = 0;
  AlikeLines lines;
  for (Operation &op : program.getBody().front()) {
    if (auto kernel = dyn_cast<RowKernelOp>(op)) {
      auto domain = cast<DomainType>(kernel.getDomain().getType()).getDomain();
      std::string name =
          llvm::formatv("{0} over @{1}", kernel.getName().value_or("kernel"), domain.getValue());
      std::string text =
          llvm::formatv(", {0}: {1}", stringifyStage(getStage(kernel)), describeOrigin(kernel));
      lines.add(name, name + text, text);
      ++kernels;
    } else if (getStepKind(&op) == StepKind::call) {
      ++calls[op.getName().stripDialect()];
      flops += getProductFlopsPerRow(&op);
    }
  }
  lines.print("    ", os);
  for (const JointLaunch &launch : getJointLaunches(program))
    if (RowKernelOp first = launch.kernels.front(); launch.kernels.size() > 1)
      os << llvm::formatv("    in one launch: {0} and {1} more\n",
                          first.getName().value_or("kernel"), launch.kernels.size() - 1);
  os << llvm::formatv("    {0} row kernels; library calls: ", kernels);
  llvm::interleaveComma(calls, os, [&](auto &entry) { os << entry.first << " " << entry.second; });
  os << llvm::formatv("; matrix products {0:f0} FLOPs per row\n", flops);
}

void printKept(ProgramOp program, raw_ostream &os) {
  if (auto notes = program->getAttrOfType<ArrayAttr>(GenRecDialect::NotesAttrHelper::getNameStr()))
    for (auto note : notes.getAsRange<StringAttr>())
      os << "    " << note.getValue() << "\n";
}

/// Fails if `told` has a name that is not in `names`.
template <class Map>
llvm::Error checkNames(StringRef flag, StringRef what, const Map &told,
                       const llvm::SetVector<StringRef> &names) {
  for (StringRef name : told.keys())
    if (!names.contains(name))
      return llvm::createStringError("--" + flag + " names " + what + " '" + name +
                                     "', which the model lacks; it has '" +
                                     llvm::join(names, "', '") + "'");
  return llvm::Error::success();
}

llvm::Error checkOptions(ModelOp model, const ExplainOptions &options) {
  llvm::SetVector<StringRef> domains, lists, tables;
  for (DomainOp domain : model.getOps<DomainOp>()) {
    if (domain.getKind() == DomainKind::step)
      continue;
    domains.insert(domain.getSymName());
    if (domain.getKind() == DomainKind::data && domain.getParentAttr())
      lists.insert(domain.getSymName());
  }
  for (TableOp table : model.getOps<TableOp>())
    tables.insert(table.getSymName());
  if (llvm::Error error = checkNames("longest", "list", options.longestOf, lists))
    return error;
  if (llvm::Error error = checkNames("rows", "domain", options.rows, domains))
    return error;
  if (llvm::Error error = checkNames("dataset", "domain", options.dataset, domains))
    return error;
  if (llvm::Error error = checkNames("ids", "table", options.ids, tables))
    return error;
  if (llvm::Error error = checkNames("replicate", "table", options.replicate, tables))
    return error;
  for (TableOp table : model.getOps<TableOp>())
    if (table.hasRowRules() && options.replicate.contains(table.getSymName()))
      return llvm::createStringError("--replicate names table '" + table.getSymName() +
                                     "', which cannot be replicated: it has rules about rows");
  if (options.ranks > 0 && getStepProgram(model) == nullptr)
    return llvm::createStringError("--world tells of training, and the model has no loss");
  return llvm::Error::success();
}

/// "128 root rows, lists of at most 200 (tags 4)".
std::string describeBatch(const ExplainOptions &options) {
  std::string text =
      llvm::formatv("{0} root rows, lists of at most {1}", options.batch, options.longest);
  SmallVector<std::string> others;
  for (const auto &[map, unit] :
       {std::pair(&options.longestOf, ""), std::pair(&options.rows, " rows")})
    for (const auto &entry : *map)
      others.push_back((entry.getKey() + " " + Twine(entry.getValue()) + unit).str());
  llvm::sort(others);
  return others.empty() ? text : text + " (" + llvm::join(others, ", ") + ")";
}
} // namespace

void genrec::adoptSizes(ModelOp model, ExplainOptions &options) {
  for (DomainOp domain : model.getOps<DomainOp>()) {
    auto counted = options.statistics.domains.find(domain.getSymName());
    if (counted == options.statistics.domains.end())
      continue;
    auto [rows, longest] = counted->second;
    bool isData = domain.getKind() == DomainKind::data;
    if (domain.getKind() == DomainKind::catalogue)
      options.rows.try_emplace(domain.getSymName(), rows);
    else if (domain.getParentAttr())
      options.rows.try_emplace(domain.getSymName(),
                               (rows * options.batch + options.statistics.rows - 1) /
                                   std::max<int64_t>(options.statistics.rows, 1));
    if (isData)
      options.dataset.try_emplace(domain.getSymName(), rows);
    if (isData && domain.getParentAttr())
      options.longestOf.try_emplace(domain.getSymName(), longest);
  }
}

llvm::Error genrec::explain(ModelOp model, ModelOp apart, const ExplainOptions &options,
                            raw_ostream &os) {
  if (llvm::Error error = checkOptions(model, options))
    return error;
  ModelIndex index(model);
  std::optional<rt::Roofline> roofline = loadRoofline(model);
  os << "model " << model.getSymName() << "\ntables\n";
  printTables(model, os);
  printColumns(model, index, os);
  printDecisions(model, os);
  for (ProgramOp program : model.getOps<ProgramOp>()) {
    os << "program " << program.getSymName() << "\n  kernels\n";
    printKernels(program, os);
    os << "  kept between kernels of one domain and stage\n";
    printKept(program, os);
    os << "  costs of a step at least\n";
    DomainSizes sizes(program, options);
    printCosts(
        program, [&](FlatSymbolRefAttr domain) { return sizes.getRows(domain); }, roofline, os);
    os << "  memory of a run with " << describeBatch(options) << "\n";
    explainMemory(program, index, options, os);
  }
  if (options.ranks > 0)
    printWorld(describeWorld(model, apart, options), os);
  return llvm::Error::success();
}

llvm::Expected<llvm::json::Object> genrec::explainAsData(ModelOp model, ModelOp apart,
                                                         const ExplainOptions &options,
                                                         llvm::json::Object graphsBefore) {
  if (llvm::Error error = checkOptions(model, options))
    return error;
  auto rows = [&](ProgramOp program, FlatSymbolRefAttr domain) {
    return DomainSizes(program, options).getRows(domain);
  };
  llvm::json::Object plan = describePlan(model, rows, loadRoofline(model));
  ModelIndex index(model);
  auto entry = plan.getArray("programs")->begin();
  for (ProgramOp program : model.getOps<ProgramOp>()) {
    llvm::json::Array memory;
    for (const MemoryPart &part : listMemory(program, index, options))
      memory.push_back(
          llvm::json::Object{{"part", part.name}, {"bytes", part.bytes}, {"note", part.note}});
    (*entry++->getAsObject())["memory"] = std::move(memory);
  }
  plan["batch"] = options.batch;
  plan["longest"] = options.longest;
  plan["graphs_before"] = std::move(graphsBefore);
  if (options.ranks > 0)
    plan["world"] = describeWorld(model, apart, options);
  return plan;
}
