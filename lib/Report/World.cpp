//===- World.cpp - what several ranks would exchange and hold -------------===//

#include "World.h"

#include "genrec/Report/IdStatistics.h"

#include "llvm/ADT/MapVector.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace genrec;

namespace {

// What the runtime sends (runtime/ranks/row_exchange.h, runtime/session/step_sums.h).
constexpr double kKeyBytes = 8, kMaskBytes = 4, kFloatBytes = 4;
/// Rows of a store in a message begin at whole cache lines of so many floats.
constexpr int64_t kAlignedFloats = 16;
/// Longer sums are added in slices, one per rank, where there are more than two.
constexpr int64_t kMostWholeFloats = 16384;

/// The portions of each node of the fixed tree over portions that a rank adds alone: those that are
/// as large as can be.
std::vector<int64_t> getNodeSizes(int64_t first, int64_t count) {
  std::vector<int64_t> sizes;
  for (int64_t at = first; at < first + count; at += sizes.back()) {
    int64_t size = 1;
    while (at % (2 * size) == 0 && at + 2 * size <= first + count)
      size *= 2;
    sizes.push_back(size);
  }
  return sizes;
}

double sum(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The distinct ids of a table that some root rows look up, by owner.
class DistinctIds {
public:
  DistinctIds(TableOp table, ArrayRef<const StepLookup *> lookups, const ExplainOptions &options,
              int64_t ranks, double portionRows);

  const std::vector<double> &among(double rows);
  double lookups(double rows, double portions) const {
    return perRow * rows + (fixed + draws) * portions;
  }
  /// Those that the table will hold.
  std::vector<double> owned() const;
  std::string source;
  std::shared_ptr<const IdModel> model; ///< null: every lookup is of another id

private:
  const int64_t ranks;
  const double portionRows;
  double perRow = 0; ///< lookups per root row
  double fixed = 0;  ///< ids that every portion looks up
  double draws = 0;  ///< lookups that a portion draws
  double told = 0;   ///< ids by --ids
  std::map<double, std::vector<double>> known;
};

DistinctIds::DistinctIds(TableOp table, ArrayRef<const StepLookup *> lookups,
                         const ExplainOptions &options, int64_t ranks, double portionRows)
    : ranks(ranks), portionRows(portionRows) {
  StringRef name = table.getSymName();
  for (const StepLookup *lookup : lookups) {
    auto rows = static_cast<double>(lookup->rows);
    if (lookup->kind == StepLookup::Kind::data)
      perRow += rows / static_cast<double>(options.batch);
    else if (lookup->kind == StepLookup::Kind::catalogue)
      fixed += rows;
    else
      draws += rows;
  }
  if (auto number = options.ids.find(name); number != options.ids.end())
    told = static_cast<double>(number->second);
  auto counted = options.statistics.tables.find(name);
  if (counted != options.statistics.tables.end()) {
    model = std::make_shared<IdModel>(name, counted->second, options.statistics.rows,
                                      static_cast<double>(options.batch), ranks);
    perRow = model->lookups();
    source = "counted in " + std::to_string(options.statistics.rows) + " root rows";
    if (options.batch > options.statistics.rows)
      source += ", a sample of more";
    return;
  }
  double exponent = options.zipf.lookup(name);
  auto size = static_cast<int64_t>(told > 0 ? told : fixed);
  if (size > 0) {
    model = std::make_shared<IdModel>(name, size, exponent, perRow, ranks);
    source = exponent > 0 ? llvm::formatv("Zipf's law, exponent {0}", exponent).str()
                          : "all equally frequent";
  } else {
    source = "not told: every lookup is of another id (--ids " + name.str() + "=n, or a file)";
  }
}

const std::vector<double> &DistinctIds::among(double rows) {
  auto [entry, isNew] = known.try_emplace(rows);
  std::vector<double> &distinct = entry->second;
  if (!isNew)
    return distinct;
  if (!model)
    return distinct = std::vector<double>(ranks, (perRow * rows + draws * rows / portionRows) /
                                                     static_cast<double>(ranks));
  distinct = model->countDistinct(rows, draws * rows / portionRows);
  if (fixed > 0) { // all items of a catalogue, and what data look up besides
    std::vector<double> all = model->countOwned();
    double share = std::min(1.0, fixed / std::max<double>(static_cast<double>(model->size()), 1)),
           more = std::max(0.0, fixed - static_cast<double>(model->size()));
    for (int64_t owner = 0; owner < ranks; ++owner)
      distinct[owner] = std::max(distinct[owner] + (all[owner] - distinct[owner]) * share +
                                     more / static_cast<double>(ranks),
                                 distinct[owner]);
  }
  return distinct;
}

std::vector<double> DistinctIds::owned() const {
  if (!model)
    return std::vector<double>(ranks, told / static_cast<double>(ranks));
  std::vector<double> owned = model->countOwned();
  // More than were seen: those are as even as slices are.
  double more = std::max({told, fixed, sum(owned)}) - sum(owned);
  for (double &each : owned)
    each += more / static_cast<double>(ranks);
  return owned;
}

} // namespace

//===----------------------------------------------------------------------===//
// Portions
//===----------------------------------------------------------------------===//

int64_t World::portionsOf(int64_t rank) const {
  return portionCount / worldSize + (rank < portionCount % worldSize ? 1 : 0);
}

int64_t World::firstPortionOf(int64_t rank) const {
  return rank * (portionCount / worldSize) + std::min(rank, portionCount % worldSize);
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

ExplainOptions genrec::getPortionOptions(ModelOp model, const ExplainOptions &options,
                                         int64_t portions) {
  ExplainOptions portion = options;
  auto share = [&](int64_t rows) { return (rows + portions - 1) / portions; };
  portion.batch = share(options.batch);
  for (auto &entry : portion.rows)
    if (!isOfCatalogue(model, FlatSymbolRefAttr::get(model.getContext(), entry.getKey())))
      entry.second = share(entry.second);
  return portion;
}

World::World(ProgramOp program, const ExplainOptions &options)
    : traffic(options.ranks), step(program, DomainSizes(program, options)), options(options),
      worldSize(options.ranks),
      portionCount(options.portions > 0 ? options.portions : options.ranks),
      portionRows(static_cast<double>(options.batch) / static_cast<double>(portionCount)) {
  // Each portion draws rows of its own.
  ExplainOptions ofPortion = getPortionOptions(getModel(program), options, portionCount);
  DomainSizes sizes(program, ofPortion);
  for (StepLookup &lookup : step.lookups)
    if (lookup.kind == StepLookup::Kind::drawn)
      lookup.rows = sizes.getRows(lookup.domain);
  llvm::MapVector<Operation *, SmallVector<const StepLookup *>> byTable;
  for (const StepLookup &lookup : step.lookups)
    byTable[lookup.table].push_back(&lookup);
  for (auto &[table, lookups] : byTable)
    addTable(cast<TableOp>(table), lookups);
  addDense();
}

/// Bytes that rows of a store take more in a message, in the mean.
static double getPadding(double floats) {
  return kFloatBytes *
         static_cast<double>(kAlignedFloats -
                             std::gcd<int64_t>(static_cast<int64_t>(floats), kAlignedFloats)) /
         2;
}

/// Rows that `rank` asks another one for, and gradients of those that it touches.
void World::addSharded(int64_t rank, int64_t owner, double asked, double touched, RowSize row) {
  RankTraffic &own = traffic[rank], &other = traffic[owner];
  double idBytes = kKeyBytes * asked,
         rowBytes = kFloatBytes * row.valueFloats * asked + getPadding(row.valueFloats),
         sumBytes = kMaskBytes * asked + kFloatBytes * row.dim * touched;
  own.ids.sent += idBytes, other.ids.received += idBytes;
  own.rows.received += rowBytes, other.rows.sent += rowBytes;
  if (step.updatesRows)
    own.gradients.sent += sumBytes, other.gradients.received += sumBytes;
}

/// Rows of a replica that a rank has asked itself for: all others hear which, and of gradients.
void World::addReplicas(int64_t rank, double asked, double touched, double dim) {
  for (int64_t other = 0; other < worldSize; ++other) {
    if (other == rank)
      continue;
    double idBytes = kKeyBytes * asked, sumBytes = kMaskBytes * asked + kFloatBytes * dim * touched;
    traffic[rank].ids.sent += idBytes, traffic[other].ids.received += idBytes;
    traffic[rank].gradients.sent += sumBytes, traffic[other].gradients.received += sumBytes;
  }
}

void World::addTable(TableOp table, ArrayRef<const StepLookup *> lookups) {
  DistinctIds ids(table, lookups, options, worldSize, portionRows);
  auto dim = static_cast<double>(table.getDim()), ranks = static_cast<double>(worldSize);
  auto valueFloats = static_cast<double>(table.getRowType().getValueFloats());
  bool isUpdated = llvm::any_of(lookups, [](auto *lookup) { return lookup->hasGradient; });
  bool isReplicated = options.replicate.contains(table.getSymName());
  bool isFrozen = table.getOptimizer().getOption("frozen") != 0.0;
  allAreReplicated &= isReplicated;
  TableTraffic all;
  all.table = table;
  all.source = ids.source;
  all.model = ids.model;
  for (int64_t rank = 0; rank < worldSize; ++rank) {
    auto portions = static_cast<double>(portionsOf(rank));
    double rows = portions * portionRows;
    const std::vector<double> &asked = ids.among(rows);
    double askedOfAll = sum(asked);
    RankTraffic &own = traffic[rank];
    own.lookedUp += ids.lookups(rows, portions);
    all.lookedUp += ids.lookups(rows, portions);
    own.asked += askedOfAll;
    all.asked += askedOfAll;
    // By owner: rows that are updated, once per node of the tree.
    std::vector<double> touched(worldSize);
    if (isUpdated)
      for (int64_t size : getNodeSizes(firstPortionOf(rank), portionsOf(rank))) {
        const std::vector<double> &ofNode = ids.among(static_cast<double>(size) * portionRows);
        for (int64_t owner = 0; owner < worldSize; ++owner)
          touched[owner] += ofNode[owner];
      }
    if (isReplicated)
      own.served += askedOfAll, own.found += askedOfAll, all.found += askedOfAll;
    if (isReplicated && step.updatesRows && !isFrozen)
      addReplicas(rank, askedOfAll, sum(touched), dim);
    all.served += askedOfAll;
    if (step.updatesRows && !isFrozen)
      all.placement.replicatedBytes +=
          (ranks - 1) / ranks *
          ((kKeyBytes + kMaskBytes) * askedOfAll + kFloatBytes * dim * sum(touched));
    for (int64_t owner = 0; owner < worldSize; ++owner) {
      if (!isReplicated)
        traffic[owner].served += asked[owner];
      if (owner == rank)
        continue;
      if (!isReplicated)
        addSharded(rank, owner, asked[owner], touched[owner], {dim, valueFloats});
      all.placement.shardedBytes +=
          ((kKeyBytes + kFloatBytes * valueFloats + (step.updatesRows ? kMaskBytes : 0)) *
               asked[owner] +
           getPadding(valueFloats) + kFloatBytes * dim * touched[owner]) /
          ranks;
    }
  }
  if (!isReplicated) {
    const std::vector<double> &found = ids.among(static_cast<double>(options.batch));
    for (int64_t owner = 0; owner < worldSize; ++owner)
      traffic[owner].found += found[owner];
    all.found = sum(found);
  }
  std::vector<double> owned = ids.owned();
  all.ids = sum(owned);
  all.mostOwned = isReplicated ? all.ids : *std::max_element(owned.begin(), owned.end());
  tables.push_back(std::move(all));
}

void World::addDense() {
  auto ranks = static_cast<double>(worldSize);
  std::vector<double> nodes;
  for (int64_t rank = 0; rank < worldSize; ++rank)
    nodes.push_back(
        static_cast<double>(getNodeSizes(firstPortionOf(rank), portionsOf(rank)).size()));
  double allNodes = sum(nodes);
  auto add = [&](int64_t floats, bool hasSlices) {
    double bytes = kFloatBytes * static_cast<double>(floats);
    for (int64_t rank = 0; rank < worldSize; ++rank) {
      RankTraffic::Bytes &dense = traffic[rank].dense;
      double others = allNodes - nodes[rank];
      if (hasSlices) { // a slice of every node, then the other slices
        dense.received += bytes / ranks * others + bytes / ranks * (ranks - 1);
        dense.sent += bytes / ranks * (ranks - 1) * (nodes[rank] + 1);
      } else {
        dense.received += bytes * others;
        dense.sent += bytes * (ranks - 1) * nodes[rank];
      }
    }
  };
  for (auto [floats, gradients] : llvm::zip_equal(step.sums, step.gradients)) {
    int64_t shared = sharesUpdates() ? gradients : 0;
    add(floats - shared, hasSlices(floats - shared));
    add(shared, /*hasSlices=*/true); // of gradients, then of new values
  }
}

bool World::hasSlices(int64_t floats) const { return worldSize > 2 && floats > kMostWholeFloats; }

int64_t World::countRounds(bool isReplicated) const {
  // Keys and values per fetch; without shards, what rides with keys.
  return (isReplicated ? step.sumsWithKeys : 2 * step.countFetches()) + countRoundsOfSums();
}

int64_t World::countRoundsOfSums() const {
  // Sums; slices of sums and of new values are gathered once each.
  bool isGathered = false;
  for (auto [floats, gradients] : llvm::zip_equal(step.sums, step.gradients))
    isGathered |= hasSlices(floats - (sharesUpdates() ? gradients : 0));
  int64_t norms = sharesUpdates() ? step.norms : step.tableNorms;
  return 1 + norms + isGathered + sharesUpdates();
}

double World::exchangeBytes() const {
  double most = 0;
  for (const RankTraffic &rank : traffic)
    // Messages of both directions; sums lie in the tree and in a message.
    most = std::max(most, rank.ids.received + rank.ids.sent + rank.rows.received + rank.rows.sent +
                              2 * (rank.gradients.received + rank.gradients.sent) +
                              rank.dense.received + rank.dense.sent);
  return most;
}
