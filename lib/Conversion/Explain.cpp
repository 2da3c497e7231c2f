//===- Explain.cpp - what became of a model, and why ----------------------===//

#include "genrec/Conversion/Explain.h"

#include "genrec/Conversion/MemoryPlan.h"
#include "ModelIndex.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Rows that each domain has at most, for a batch where every list is as long as the longest.
class RowBounds {
public:
  RowBounds(ProgramOp program, const ExplainOptions &options) : program(program), options(options) {}

  /// 0: not known before the data is (a catalogue).
  int64_t get(FlatSymbolRefAttr name) {
    auto [entry, inserted] = known.try_emplace(name, 0);
    if (inserted)
      entry->second = compute(name);
    return known[name];
  }

private:
  int64_t compute(FlatSymbolRefAttr name) {
    Value value = lookupDomainValue(program, name);
    Operation *maker = value ? value.getDefiningOp() : nullptr;
    DomainOp domain = lookupDomain(program, name);
    if (auto fixed = dyn_cast_or_null<FixedRowsOp>(maker))
      return fixed.getCount();
    if (auto rows = dyn_cast_or_null<ParameterRowsOp>(maker)) {
      auto type = cast<RankedTensorType>(lookupParameter(program, rows.getParameterAttr()).getType());
      return type.getRank() == 2 ? type.getDimSize(0) : 1;
    }
    if (auto unique = dyn_cast_or_null<UniqueRowsOp>(maker)) {
      int64_t sum = 0;
      for (Value rows : unique.getRows())
        sum += get(getRowDomain(rows.getType()));
      return sum;
    }
    if (auto truncate = dyn_cast_or_null<TruncateOp>(maker))
      return std::min(get(cast<DomainType>(truncate.getSource().getType()).getDomain()),
                      get(domain.getParentAttr()) * static_cast<int64_t>(truncate.getCount()));
    if (auto pad = dyn_cast_or_null<PadOp>(maker))
      return std::max(get(pad.getSource().getType().getDomain()),
                      get(domain.getParentAttr()) * static_cast<int64_t>(pad.getCount()));
    if (auto pairs = dyn_cast_or_null<PairDomainsOp>(maker))
      return get(domain.getParentAttr()) * options.longest;
    if (auto concat = dyn_cast_or_null<ConcatDomainsOp>(maker)) {
      int64_t sum = 0;
      for (Value source : concat.getSources())
        sum += get(cast<DomainType>(source.getType()).getDomain());
      return sum;
    }
    if (!domain || domain.getKind() != DomainKind::data)
      return 0;
    return domain.getParentAttr() ? get(domain.getParentAttr()) * options.longest : options.batch;
  }

  ProgramOp program;
  const ExplainOptions &options;
  llvm::DenseMap<Attribute, int64_t> known;
};

/// Floating-point operations of a matrix product per row of its domain; 0 for other ops.
int64_t getFlopsPerRow(Operation *op) {
  if (auto linear = dyn_cast<LinearOp>(op))
    return 2 * getRowSize(linear.getX().getType()) * getRowSize(linear.getResult().getType());
  if (auto interaction = dyn_cast<DotInteractionOp>(op))
    return 2 * getRowSize(interaction.getX().getType()) / interaction.getCount() *
           getRowSize(interaction.getResult().getType());
  if (auto gradient = dyn_cast<DotInteractionGradOp>(op))
    return 4 * getRowSize(gradient.getX().getType()) / gradient.getCount() *
           getRowSize(gradient.getGradient().getType());
  if (auto gradient = dyn_cast<WeightGradientOp>(op))
    return 2 * getRowSize(gradient.getX().getType()) * getRowSize(gradient.getY().getType());
  return 0;
}

/// Called library ops: not kernels, declarations of values, or views.
bool isLibraryCall(Operation *op) {
  return !isView(op) && !isa<RowKernelOp, BatchOp, CatalogueOp, FeatureOp, FeatureValidOp, ParamOp, ConstantOp,
                             FixedRowsOp, ParameterRowsOp, StepValueOp, LossOp, ReportLossOp, MetricOp, OutputOp>(op);
}

void printTables(ModelOp model, raw_ostream &os) {
  int64_t count = 0;
  for (TableOp table : model.getOps<TableOp>()) {
    int64_t states = table.getOptimizer().getStateCount();
    os << llvm::formatv("  {0}: dim {1}, {2}, {3} bytes per row\n", table.getSymName(), table.getDim(),
                        stringifyOptimizerKind(table.getOptimizer().getKind()), 4 * table.getDim() * (1 + states));
    ++count;
  }
  os << llvm::formatv("  {0} logical, {0} physical: tables are kept apart\n", count);
}

void printKernels(ProgramOp program, raw_ostream &os) {
  llvm::MapVector<StringRef, int64_t> calls;
  int64_t kernels = 0, flops = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto kernel = dyn_cast<RowKernelOp>(op)) {
      auto domain = cast<DomainType>(kernel.getDomain().getType()).getDomain();
      os << "    " << kernel.getName().value_or("kernel") << " over " << domain << ", "
         << stringifyStage(getStage(kernel));
      if (auto ops = kernel->getAttrOfType<ArrayAttr>("genrec.ops")) {
        os << ": ";
        llvm::interleaveComma(ops.getAsRange<StringAttr>(), os, [&](StringAttr name) { os << name.getValue(); });
      }
      os << "\n";
      ++kernels;
    } else if (isLibraryCall(&op)) {
      ++calls[op.getName().stripDialect()];
      flops += getFlopsPerRow(&op);
    }
  }
  os << llvm::formatv("    {0} row kernels; library calls: ", kernels);
  llvm::interleaveComma(calls, os, [&](auto &entry) { os << entry.first << " " << entry.second; });
  os << llvm::formatv("; matrix products {0} FLOPs per row\n", flops);
}

void printKept(ProgramOp program, raw_ostream &os) {
  if (auto notes = program->getAttrOfType<ArrayAttr>("genrec.notes"))
    for (auto note : notes.getAsRange<StringAttr>())
      os << "    " << note.getValue() << "\n";
}

/// The largest sum of buffers alive together, and the largest of them.
void printMemory(ProgramOp program, const ExplainOptions &options, raw_ostream &os) {
  RowBounds bounds(program, options);
  SmallVector<PlannedBuffer> buffers = getBuffers(program);
  std::map<int64_t, int64_t> changes;
  for (const PlannedBuffer &buffer : buffers) {
    int64_t bytes = buffer.bytes + (buffer.domain ? buffer.bytesPerRow * bounds.get(buffer.domain) : 0);
    changes[buffer.first] += bytes;
    changes[buffer.last + 1] -= bytes;
  }
  int64_t alive = 0, peak = 0;
  for (auto [op, change] : changes)
    peak = std::max(peak, alive += change);
  os << llvm::formatv("    {0} buffers, at most {1:f1} MB alive together for {2} root rows with lists of {3}\n",
                      buffers.size(), static_cast<double>(peak) / 1e6, options.batch, options.longest);
}
} // namespace

void genrec::explain(ModelOp model, const ExplainOptions &options, raw_ostream &os) {
  os << "model " << model.getSymName() << "\ntables\n";
  printTables(model, os);
  for (ProgramOp program : model.getOps<ProgramOp>()) {
    os << "program " << program.getSymName() << "\n  kernels\n";
    printKernels(program, os);
    os << "  kept between kernels of one domain and stage\n";
    printKept(program, os);
    os << "  memory (catalogues not counted)\n";
    printMemory(program, options, os);
  }
}
