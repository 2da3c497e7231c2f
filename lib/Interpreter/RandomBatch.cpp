//===- RandomBatch.cpp - random data that a model accepts -----------------===//

#include "BatchSchema.h"
#include "Random.h"

#include <limits>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

namespace {

/// A random number generator.
class RandomNumbers {
public:
  explicit RandomNumbers(uint64_t seed) : state(splitMix(seed)) {}

  uint64_t bits() { return splitMix(state++); }
  int64_t below(int64_t count) { return static_cast<int64_t>(bits() % uint64_t(count)); }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool chance(double probability) { return uniform() < probability; }
  /// A number below `count`, small numbers more often.
  int64_t skewed(int64_t count) { return std::min(below(count), below(count)); }

private:
  uint64_t state;
};

/// How the model uses the values of a column, as far as that restricts them.
struct Role {
  int64_t idLimit = std::numeric_limits<int64_t>::max(); ///< ids must be below it
  bool isId = false;
  int64_t divisor = 1;       ///< the largest divisor of a mod op on these values
  int64_t classes = 0;      ///< if > 0, the values are classes below it
  FeatureOp catalogue;      ///< where resolve looks the ids up: a column of the catalogue
  bool allowMissing = true; ///< every resolve accepts ids that the catalogue lacks
  bool isTime = false;
  bool isLabel = false;       ///< 0 or 1
  bool isWeight = false;      ///< not negative
  bool isRequired = false;    ///< the model rejects values out of range
  bool isCatalogueId = false; ///< the column that resolve searches: ids must be distinct
};

} // namespace

/// Whether results of `op` are values of its operands, unchanged.
static bool passesValues(Operation *op) {
  return op->hasTrait<PassesRowsOn>() || op->hasTrait<CopiesElements>() ||
         op->hasTrait<SelectsElements>() || isa<PoolOp>(op);
}

/// The smallest id with more than `bits` bits.
static int64_t limitOf(int64_t bits) {
  return bits >= 63 ? std::numeric_limits<int64_t>::max() : int64_t(1) << bits;
}

/// Adds the restrictions that `user` puts on operand `value`.
static void addUse(Role &role, Operation *user, Value value) {
  if (auto lookup = dyn_cast<LookupOp>(user); lookup && lookup.getIds() == value) {
    role.isId = true;
    int64_t bits = lookupTable(user, lookup.getTableAttr()).getIdBits();
    role.idLimit = std::min(role.idLimit, limitOf(bits));
  } else if (auto rows = dyn_cast<TableRowsOp>(user); rows && rows.getIds() == value) {
    role.isId = true;
    int64_t bits = lookupTable(user, rows.getTableAttr()).getIdBits();
    role.idLimit = std::min(role.idLimit, limitOf(bits));
  } else if (auto keys = dyn_cast<MergedKeysOp>(user)) {
    for (auto [ids, name] :
         llvm::zip(keys.getIds(), keys.getTables().getAsRange<FlatSymbolRefAttr>()))
      if (ids == value) {
        role.isId = true;
        role.idLimit = std::min(role.idLimit, limitOf(lookupTable(user, name).getIdBits()));
      }
  } else if (auto loss = dyn_cast<SoftmaxCrossEntropyOp>(user); loss && loss.getLabel() == value) {
    role.classes = getRowSize(loss.getLogits().getType());
  } else if (auto mod = dyn_cast<ModOp>(user)) {
    role.divisor = std::max<int64_t>(role.divisor, mod.getDivisor());
  } else if (auto resolve = dyn_cast<ResolveOp>(user)) {
    if (resolve.getCatalogue() == value)
      role.isCatalogueId = true;
    if (resolve.getIds() == value) {
      role.catalogue = resolve.getCatalogue().getDefiningOp<FeatureOp>();
      role.allowMissing &= resolve.getAllowMissing();
    }
  } else if (auto bce = dyn_cast<BceWithLogitsOp>(user); bce && bce.getLabel() == value) {
    role.isLabel = true;
  } else if (auto metric = dyn_cast<MetricOp>(user); metric && metric.getLabel() == value) {
    role.isLabel = true;
  } else if (auto metric = dyn_cast<MetricOp>(user); metric && metric.getWeight() == value) {
    role.isWeight = true;
  } else if (auto ranks = dyn_cast<RankInListOp>(user); ranks && ranks.getLabel() == value) {
    role.isLabel = true;
  } else if (auto range = dyn_cast<RequireRangeOp>(user); range && range.getX() == value) {
    role.isRequired = true;
    role.isWeight |= !range.getMax();
  } else if (auto loss = dyn_cast<LossOp>(user); loss && loss.getWeight() == value) {
    role.isWeight = true;
  } else if (auto attention = dyn_cast<AttentionOp>(user)) {
    role.isTime |= attention.getTime() == value;
  } else if (auto block = dyn_cast<HstuBlockOp>(user)) {
    role.isTime |= block.getTime() == value;
  }
}

static Role getRole(const ColumnSchema &column) {
  Role role;
  SmallVector<Value> pending;
  llvm::DenseSet<Value> seen;
  for (FeatureOp feature : column.features) {
    pending.push_back(feature.getResult());
    if (int64_t bits = feature.getIdBits(); bits > 0) {
      role.isId = true;
      role.idLimit = std::min(role.idLimit, limitOf(bits));
    }
  }
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    for (Operation *user : value.getUsers()) {
      addUse(role, user, value);
      if (passesValues(user))
        llvm::append_range(pending, user->getResults().take_front(1));
    }
  }
  return role;
}

namespace {

/// Draws the rows and columns of every domain.
class BatchGenerator {
public:
  BatchGenerator(ProgramOp program, uint64_t seed, const RandomBatchOptions &options)
      : schema(getBatchSchema(program)), program(program), random(seed), options(options) {}

  Batch run();

private:
  int64_t catalogueRows(const DomainSchema &domain);
  void drawLists(const DomainSchema &domain, BatchRows &rows);
  void drawColumn(const DomainSchema &domain, const ColumnSchema &column);
  std::vector<int64_t> drawIntegers(const ColumnSchema &column, const Role &role,
                                    const BatchRows &rows);
  std::vector<int64_t> drawCatalogueIds(const Role &role, int64_t count);
  std::vector<int64_t> drawTimes(const BatchRows &rows);
  int64_t drawInteger(const Role &role, Type element);
  int64_t getVocabulary(const Role &role) const;
  double drawFloat(const Role &role);
  std::string drawString();

  std::vector<DomainSchema> schema;
  ProgramOp program;
  RandomNumbers random;
  int64_t nextId = 0; ///< next of the distinct ids
  const RandomBatchOptions &options;
  Batch batch;
};

} // namespace

Batch BatchGenerator::run() {
  RandomNumbers ofData = random;
  // Catalogues first, as ids of the data are drawn from them. They are loaded once, so they depend
  // on the model alone.
  for (bool catalogues : {true, false}) {
    random = catalogues ? RandomNumbers(0) : ofData;
    for (const DomainSchema &domain : schema) {
      if (domain.isCatalogue() != catalogues)
        continue;
      BatchRows &rows = batch.domains[domain.name()];
      if (domain.parent >= 0)
        drawLists(domain, rows);
      else
        rows.count = catalogues ? catalogueRows(domain) : options.rows;
      for (const ColumnSchema &column : domain.columns)
        drawColumn(domain, column);
    }
  }
  for (int64_t row = 0; row < options.rows; ++row)
    batch.positions.push_back(options.firstPosition + row);
  return std::move(batch);
}

/// As many rows as asked for, but at most one per id and per column of `scores`.
int64_t BatchGenerator::catalogueRows(const DomainSchema &domain) {
  int64_t count = options.catalogueRows;
  for (const ColumnSchema &column : domain.columns)
    if (Role role = getRole(column); role.isCatalogueId)
      count = std::min(count, role.idLimit);
  getModel(program).walk([&](ScoresOp scores) {
    if (getRowDomain(scores.getItems().getType()).getValue() == domain.name())
      count = std::min(count, getRowSize(scores.getType()));
  });
  return count;
}

void BatchGenerator::drawLists(const DomainSchema &domain, BatchRows &rows) {
  int64_t lists = batch.domains[schema[domain.parent].name()].count;
  rows.offsets = {0};
  for (int64_t list = 0; list < lists; ++list) {
    if (!random.chance(options.emptyRate))
      rows.count += 1 + random.skewed(options.longestList);
    rows.offsets.push_back(rows.count);
  }
}

void BatchGenerator::drawColumn(const DomainSchema &domain, const ColumnSchema &schemaColumn) {
  BatchRows &rows = batch.domains[domain.name()];
  Role role = getRole(schemaColumn);
  Column &column = rows.columns[schemaColumn.path];
  Type element = schemaColumn.element;
  if (element && isa<FloatType>(element)) {
    std::vector<double> &values = column.values.emplace<std::vector<double>>();
    column.width = schemaColumn.width;
    column.isVector = schemaColumn.isVector;
    for (int64_t i = 0; i < rows.count * column.width; ++i)
      values.push_back(drawFloat(role));
  } else if (element && isa<StringType>(element)) {
    std::vector<std::string> &values = column.values.emplace<std::vector<std::string>>();
    for (int64_t row = 0; row < rows.count; ++row)
      values.push_back(drawString());
  } else {
    column.values = drawIntegers(schemaColumn, role, rows);
  }
  for (int64_t row = 0; schemaColumn.nullable && row < rows.count; ++row)
    column.valid.push_back(!random.chance(options.nullRate));
}

std::vector<int64_t> BatchGenerator::drawIntegers(const ColumnSchema &column, const Role &role,
                                                  const BatchRows &rows) {
  if (role.isCatalogueId)
    return drawCatalogueIds(role, rows.count);
  if (role.isTime)
    return drawTimes(rows);
  const std::vector<int64_t> *catalogue = nullptr;
  if (FeatureOp listing = role.catalogue) {
    BatchRows &items = batch.domains.find(getRowDomain(listing.getType()).getValue())->second;
    catalogue =
        &std::get<std::vector<int64_t>>(items.columns.find(listing.getColumn())->second.values);
  }
  std::vector<int64_t> values;
  for (int64_t row = 0; row < rows.count; ++row) {
    bool isListed = catalogue && !catalogue->empty() && !(role.allowMissing && random.chance(0.1));
    values.push_back(isListed ? (*catalogue)[random.skewed(catalogue->size())]
                              : drawInteger(role, column.element));
    for (FeatureOp feature : column.features)
      if (feature.getPaddingId() && random.chance(0.15))
        values.back() = static_cast<int64_t>(*feature.getPaddingId());
  }
  return values;
}

/// Distinct ids in random order, among them 0, which nulls and rows beyond a list's end read as.
std::vector<int64_t> BatchGenerator::drawCatalogueIds(const Role &role, int64_t count) {
  int64_t spread = std::min<int64_t>(role.idLimit, 3 * count);
  std::vector<int64_t> ids(spread);
  for (int64_t i = 0; i < spread; ++i)
    ids[i] = i;
  for (int64_t i = 1; i < spread; ++i)
    std::swap(ids[i], ids[1 + random.below(i)]);
  ids.resize(count);
  if (count > 1)
    std::swap(ids[0], ids[random.below(count)]);
  return ids;
}

/// Ascending seconds within each list, with steps of very different sizes.
std::vector<int64_t> BatchGenerator::drawTimes(const BatchRows &rows) {
  std::vector<int64_t> times;
  int64_t now = 0;
  size_t list = 0;
  for (int64_t row = 0; row < rows.count; ++row) {
    bool startsList = rows.offsets.empty();
    for (; list < rows.offsets.size() && rows.offsets[list] <= row; ++list)
      startsList = true;
    now = startsList ? 1000000000 + random.below(1000000)
                     : now + random.below(int64_t(1) << random.below(24));
    times.push_back(now);
  }
  return times;
}

/// Values that a mod op divides range over more than its divisor, so that some remainders collide
/// and some do not.
int64_t BatchGenerator::getVocabulary(const Role &role) const {
  constexpr int64_t kLargestDivisor = 64;
  if (options.vocabulary == 1 || role.divisor > kLargestDivisor)
    return options.vocabulary;
  return std::max(options.vocabulary, 2 * role.divisor + 3);
}

int64_t BatchGenerator::drawInteger(const Role &role, Type element) {
  unsigned width = element ? element.getIntOrFloatBitWidth() : 1;
  if (width == 1)
    return random.below(2);
  if (role.isId || role.classes > 0 || role.catalogue) {
    int64_t limit = width == 32 ? std::min<int64_t>(role.idLimit, INT32_MAX) : role.idLimit;
    if (role.classes > 0)
      limit = std::min(limit, role.classes);
    if (role.classes == 0 && options.distinctIds)
      return nextId++ % limit;
    // A few ids from the whole range.
    if (role.classes == 0 && random.chance(options.rareRate))
      return random.below(limit);
    if (role.classes > 0 && !role.isId && !role.isRequired && random.chance(0.1))
      return -1;
    if (role.classes > 0)
      return random.skewed(limit);
    return random.skewed(std::min(limit, getVocabulary(role)));
  }
  return random.chance(0.9) ? random.below(101) - 50
                            : static_cast<int32_t>(static_cast<uint32_t>(random.bits()));
}

double BatchGenerator::drawFloat(const Role &role) {
  if (role.isLabel)
    return static_cast<double>(random.below(2));
  if (role.isWeight)
    return random.chance(0.2) ? 0.0 : static_cast<float>(2.0 * random.uniform());
  // Small multiples of 1/2, so that equal values occur.
  double drawn = random.chance(0.2) ? static_cast<double>(random.below(9) - 4) / 2.0
                                    : static_cast<float>(4.0 * random.uniform() - 2.0);
  return options.positive ? std::abs(drawn) : drawn;
}

std::string BatchGenerator::drawString() {
  static constexpr const char *words[] = {"",
                                          "a",
                                          "tag",
                                          "electronics",
                                          "0123456789abcdef",
                                          "a string of more than thirty-two bytes in all"};
  return words[random.skewed(std::min<int64_t>(std::size(words), options.vocabulary))];
}

Batch interpreter::randomBatch(ProgramOp program, uint64_t seed,
                               const RandomBatchOptions &options) {
  return BatchGenerator(program, seed, options).run();
}
