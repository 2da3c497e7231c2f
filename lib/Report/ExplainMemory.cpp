//===- ExplainMemory.cpp - memory of a run by use -------------------------===//
//
// Adds up the allocations of the runtime, by the functions of genrec_rt/footprint.h that the
// runtime uses as well.
//
//===----------------------------------------------------------------------===//

#include "ExplainMemory.h"

#include "AlikeLines.h"
#include "DomainSizes.h"
#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec_rt/footprint.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using namespace genrec;

namespace {

/// The features that the program reads, without duplicates.
SmallVector<const FeatureEntry *> listFeatures(ProgramOp program, const ModelIndex &index) {
  const ReadColumns columns(program);
  SmallVector<const FeatureEntry *> features;
  for (const FeatureEntry &feature : index.features)
    if (columns.contains(feature))
      features.push_back(&feature);
  return features;
}

class MemoryTable {
public:
  MemoryTable(ProgramOp program, const ModelIndex &index, const ExplainOptions &options)
      : program(program), index(index), options(options), sizes(program, options),
        features(listFeatures(program, index)) {}

  std::vector<MemoryPart> list();

private:
  void line(StringRef part, int64_t bytes, const Twine &note, bool isUntold = false);
  void addParameters();
  void addTables();
  void addRules(TableOp table, int64_t rows);
  void addCatalogues();
  int64_t countBatches() const;
  void addArenas();
  void addBlocks();
  void addBatches();
  void addScratch();
  void addReader();

  SmallVector<FlatSymbolRefAttr> getReadDomains(bool ofCatalogues);
  int64_t getDescriptorBytes(FlatSymbolRefAttr domain);
  /// Rows of a table at the end of a run; `note` says where the number comes from.
  int64_t getTableRows(TableOp table, std::string &note);
  rt::RowBlockSizes getBlockSizes(FlatSymbolRefAttr domain) {
    return rt::sizeRowBlocks(sizes.getRows(domain), sizes.getLongest(domain));
  }
  /// The most rows of a batch that is run without row blocks, such as a short last batch.
  int64_t getUncutRows(FlatSymbolRefAttr domain) {
    return rt::mostUncutRows(sizes.getRows(domain), sizes.getLongest(domain));
  }
  void addBlockNeeds(Operation *op, rt::RowBlockNeeds &needs);

  ProgramOp program;
  const ModelIndex &index;
  const ExplainOptions &options;
  DomainSizes sizes;
  SmallVector<const FeatureEntry *> features; ///< that the program reads
  std::vector<MemoryPart> parts;
};

int64_t countBytes(const FeatureEntry &feature) {
  return feature.element ? getElementBytes(feature.element) * std::max<int64_t>(feature.width, 1)
                         : 1;
}

} // namespace

void MemoryTable::line(StringRef part, int64_t bytes, const Twine &note, bool isUntold) {
  parts.push_back({part.str(), bytes, note.str(), isUntold});
}

SmallVector<FlatSymbolRefAttr> MemoryTable::getReadDomains(bool ofCatalogues) {
  SmallVector<FlatSymbolRefAttr> domains;
  for (Operation &op : program.getBody().front())
    if (op.hasTrait<ReadsDomains>())
      for (Value result : op.getResults()) {
        FlatSymbolRefAttr domain = cast<DomainType>(result.getType()).getDomain();
        if (isOfCatalogue(program, domain) == ofCatalogues)
          domains.push_back(domain);
      }
  return domains;
}

int64_t MemoryTable::getDescriptorBytes(FlatSymbolRefAttr domain) {
  FlatSymbolRefAttr parent = lookupDomain(program, domain).getParentAttr();
  return parent ? rt::listRowBytes(sizes.getRows(parent), sizes.getRows(domain))
                : rt::rootRowBytes(sizes.getRows(domain));
}

//===----------------------------------------------------------------------===//
// Parameters and tables
//===----------------------------------------------------------------------===//

void MemoryTable::addParameters() {
  int64_t floats = 1, states = 0, all = 0;
  for (ParameterOp parameter : index.parameters) {
    int64_t size = cast<RankedTensorType>(parameter.getType()).getNumElements(),
            ofStates = size * parameter.getOptimizer().getStateCount();
    floats += rt::parameterFloats(size);
    all += ofStates;
    states += rt::growBufferBytes(ofStates + 1, 4);
  }
  line("parameters", rt::growBufferBytes(floats, 4), Twine(index.parameters.size()));
  bool isShared = options.shardOptimizer && options.ranks > 1;
  line("optimizer state", isShared ? all * 4 / options.ranks : states,
       Twine("of parameters") + (isShared ? ", shared among ranks" : "") +
           "; that of table rows lies beside them");
}

int64_t MemoryTable::getTableRows(TableOp table, std::string &note) {
  if (auto told = options.ids.find(table.getSymName()); told != options.ids.end())
    return told->second;
  // A catalogue's items are looked up by all of its ids.
  int64_t rows = 0;
  for (const FeatureEntry &feature : index.features)
    if (feature.table && feature.table.getAttr() == table.getSymNameAttr() &&
        isOfCatalogue(program, feature.domain))
      rows = std::max(rows, sizes.getRows(feature.domain));
  note = rows ? ", as many as the catalogue has"
              : " (told by --ids " + table.getSymName().str() + "=n)";
  return rows;
}

void MemoryTable::addTables() {
  for (TableOp table : index.tables) {
    std::string note;
    int64_t rows = getTableRows(table, note);
    int64_t floats = table.getRowType().getStateOffset(), states = table.getStateFloats();
    if (auto bounded = table.getBounded(); bounded && rows > static_cast<int64_t>(*bounded)) {
      // A step inserts its new ids before it evicts rows.
      note = ", bounded to " + std::to_string(*bounded) + " and those that a step adds";
      rows = static_cast<int64_t>(*bounded);
    }
    bool hasRules = table.hasRowRules();
    int64_t values = rt::storeValueBytes(rows, floats, states, hasRules),
            keys = rt::storeKeyBytes(rows);
    line("table '" + table.getSymName().str() + "'", values + keys,
         llvm::formatv("{0} distinct ids{1} of {2} bytes, and {3:f1} MB of keys", rows, note,
                       rt::storeValueBytes(1, floats, states, hasRules),
                       static_cast<double>(keys) / 1e6)
             .str(),
         /*isUntold=*/rows == 0);
    if (hasRules)
      addRules(table, rows);
  }
}

/// Memory for admission and eviction of a table with `rows` rows, and for those that are hot. At
/// most that many ids wait for admission, as an id either waits or has a row.
void MemoryTable::addRules(TableOp table, int64_t rows) {
  bool isBounded = table.getBounded().has_value(), isTimed = table.getTtl().has_value();
  std::string name = "table '" + table.getSymName().str() + "'";
  int64_t leaving = rt::storeEvictionBytes(rows, isBounded, isTimed);
  if (table.getHotAfter()) {
    int64_t bytes = rt::storeLowerBytes(table.getDim());
    line(name + ", hot", rows * bytes,
         "at most: the lower halves of " + Twine(rows) + " hot rows, " + Twine(bytes) +
             " bytes each");
  }
  if (table.getAdmitAfter().value_or(0) > 1) {
    line(name + ", waiting",
         rt::storeKeyBytes(rows) + rt::storeValueBytes(rows, 0, 0, /*hasRules=*/true),
         "at most: " + Twine(rows) + " ids that are not admitted yet");
    leaving *= 2;
  }
  if ((isBounded || isTimed) && program.getMode() == ProgramMode::train)
    line(name + ", leaving", leaving, "ranks and numbers, when rows are chosen that leave");
}

void MemoryTable::addCatalogues() {
  for (FlatSymbolRefAttr domain : getReadDomains(/*ofCatalogues=*/true)) {
    int64_t rows = sizes.getRows(domain);
    std::string name = domain.getValue().str();
    // Columns, identities, the index by id, and the table rows of the items.
    int64_t bytes = getDescriptorBytes(domain) + rows * (16 * 4 + 8);
    for (const FeatureEntry *feature : features)
      if (feature->domain == domain)
        bytes += rt::columnBytes(rows, countBytes(*feature), feature->nullable);
    line("catalogue '" + name + "'", bytes,
         Twine(rows) + " rows" + (rows ? "" : " (told by --rows " + name + "=n)"));
  }
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// In flight, of all portions.
int64_t MemoryTable::countBatches() const {
  return rt::batchesInFlight(Target::of(program).hasDevice) * options.portionsPerProcess;
}

void MemoryTable::addArenas() {
  auto first =
      program->getAttrOfType<IntegerAttr>(GenRecDialect::FirstComputeOpAttrHelper::getNameStr());
  int64_t firstComputeOp = first ? first.getInt() : 0;
  std::vector<rt::ArenaBuffer> copy, compute;
  for (const PlannedBuffer &buffer : getBuffers(program)) {
    if (buffer.block >= 0)
      continue;
    int64_t bytes =
        buffer.bytes + (buffer.domain ? buffer.bytesPerRow * sizes.getCapacity(buffer.domain) : 0);
    (buffer.first < firstComputeOp ? copy : compute).push_back({bytes, buffer.first, buffer.last});
  }
  const int64_t batches = countBatches();
  line("arena, copy and dispatch", batches * rt::packArena(copy).bytes,
       Twine(copy.size()) + " buffers, for each of " + Twine(batches) + " batches in flight");
  line("arena, compute stage", rt::packArena(compute).bytes,
       Twine(compute.size()) + " buffers, those whose lives do not meet in one place");
}

void MemoryTable::addBatches() {
  int64_t bytes = 0, columns = 0;
  for (FlatSymbolRefAttr domain : getReadDomains(/*ofCatalogues=*/false))
    bytes += getDescriptorBytes(domain);
  for (const FeatureEntry *feature : features) {
    if (isOfCatalogue(program, feature->domain))
      continue;
    bytes +=
        rt::columnBytes(sizes.getRows(feature->domain), countBytes(*feature), feature->nullable);
    ++columns;
  }
  const int64_t batches = countBatches();
  line("batches in flight", batches * bytes,
       Twine(columns) + " columns, offsets, parents and identities, " + Twine(batches) + " times");
}

/// Adds the memory that `op` needs to run block by block.
void MemoryTable::addBlockNeeds(Operation *op, rt::RowBlockNeeds &needs) {
  ++needs.ops;
  auto step = dyn_cast<StepOpInterface>(op);
  BlockScratch scratch = step ? step.getBlockScratch(sizes) : BlockScratch();
  needs.kept += scratch.kept;
  needs.perChunk += scratch.perChunk;
  needs.scratch = std::max(needs.scratch, scratch.scratch);
}

void MemoryTable::addBlocks() {
  std::map<int64_t, std::pair<FlatSymbolRefAttr, rt::RowBlockNeeds>> runs;
  for (Operation &op : program.getBody().front())
    if (RowBlockAttr run = getRowBlock(&op)) {
      auto &[domain, needs] = runs.try_emplace(run.getNumber()).first->second;
      domain = run.getDomain();
      addBlockNeeds(&op, needs);
    }
  int64_t most = 0, ops = 0, local = 0, rows = 0;
  SmallVector<PlannedBuffer> buffers = getBuffers(program);
  for (auto &[number, run] : runs) {
    auto &[domain, needs] = run;
    needs.local = getBlockBytes(buffers, number);
    needs.domains = index.domains.size();
    rt::RowBlockSizes blocks = getBlockSizes(domain);
    int64_t bytes = std::max(
        rt::rowBlockBytes(sizes.getRows(domain), blocks, needs, options.threads),
        rt::rowBlockBytes(getUncutRows(domain), rt::RowBlockSizes(), needs, options.threads));
    bytes = rt::growBufferBytes(bytes, 1);
    if (bytes < most)
      continue;
    most = bytes, ops = needs.ops, local = needs.local;
    rows = blocks.rows ? blocks.capacity : sizes.getRows(domain);
  }
  if (!runs.empty())
    line("row blocks", most,
         llvm::formatv("{0} calls that run for {1} rows at a time, {2} bytes per row, {3} threads",
                       ops, rows, local, options.threads)
             .str());
}

void MemoryTable::addScratch() {
  int64_t most = 0;
  std::string who = "none";
  for (Operation &op : program.getBody().front()) {
    RowBlockAttr run = getRowBlock(&op);
    bool isInBlocks = run && getUncutRows(run.getDomain()) == 0;
    auto step = dyn_cast<StepOpInterface>(op);
    int64_t bytes = isInBlocks || !step ? 0 : step.getScratchBytes(sizes);
    if (bytes <= most)
      continue;
    most = bytes;
    auto kernel = dyn_cast<RowKernelOp>(op);
    who = kernel && kernel.getName() ? kernel.getName()->str() : op.getName().stripDialect().str();
  }
  line("scratch", most,
       "the most that a call asks for: " + who + ", " + Twine(options.threads) + " threads");
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void MemoryTable::addReader() {
  int64_t bytes = 0;
  SmallVector<std::string> notTold;
  for (FlatSymbolRefAttr domain : getReadDomains(/*ofCatalogues=*/false)) {
    FlatSymbolRefAttr parent = lookupDomain(program, domain).getParentAttr();
    // A list has one offset per row of its parent, whose number may not be given.
    int64_t perRow = parent ? 0 : rt::kOrderBytesPerRow;
    for (const FeatureEntry *feature : features)
      if (feature->domain == domain)
        perRow += countBytes(*feature) + feature->nullable;
    auto told = options.dataset.find(domain.getValue());
    if (told == options.dataset.end())
      notTold.push_back(std::to_string(perRow) + " bytes per row of '" + domain.getValue().str() +
                        "'");
    else
      bytes += perRow * told->second;
    auto above = parent ? options.dataset.find(parent.getValue()) : options.dataset.end();
    if (above != options.dataset.end())
      bytes += 8 * (above->second + 1);
  }
  line("reader", bytes,
       notTold.empty() ? "all decoded data, up to --data-memory of the binary"
                       : "decoded data not counted (told by --dataset): " + joinFirst(notTold));
}

std::vector<MemoryPart> MemoryTable::list() {
  addParameters();
  addTables();
  addCatalogues();
  addArenas();
  addBlocks();
  addBatches();
  addScratch();
  addReader();
  line("code and stacks", rt::kCodeBytes, "what a run touches of them after its start");
  int64_t total = 0;
  for (const MemoryPart &part : parts)
    total += part.bytes;
  line("together", total, "beside what the process holds at its start");
  return std::move(parts);
}

std::vector<MemoryPart> genrec::listMemory(ProgramOp program, const ModelIndex &index,
                                           const ExplainOptions &options) {
  return MemoryTable(program, index, options).list();
}

void genrec::explainMemory(ProgramOp program, const ModelIndex &index,
                           const ExplainOptions &options, raw_ostream &os) {
  auto print = [&](StringRef name, int64_t bytes, const Twine &note) {
    os << llvm::formatv("    {0,-26}{1,9:f1} MB   {2}\n", name, static_cast<double>(bytes) / 1e6,
                        note.str());
  };
  std::vector<MemoryPart> parts = listMemory(program, index, options);
  SmallVector<std::string> untold;
  for (const MemoryPart &part : parts)
    if (part.isUntold)
      untold.push_back(part.name.substr(StringRef("table ").size()));
  bool isFirst = true;
  for (const MemoryPart &part : parts) {
    if (untold.size() <= kMostListed || !part.isUntold)
      print(part.name, part.bytes, part.note);
    else if (std::exchange(isFirst, false))
      print(std::to_string(untold.size()) + " tables", 0,
            "of unknown numbers of distinct ids (told by --ids): " + joinFirst(untold));
  }
}
