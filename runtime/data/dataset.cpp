//===- dataset.cpp - Parquet files as batches -----------------------------===//

#include "genrec_rt/dataset.h"

#include "../core/model_queries.h"
#include "../core/text.h"
#include "dataset_files.h"
#include "epoch.h"
#include "genrec_rt/error.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>

namespace genrec::rt {

namespace {

/// Where shuffling all rows would take about more than this, windows of half of it are shuffled.
constexpr int64_t kMostShuffledBytes = int64_t(4) << 30;

struct Group {
  size_t file;
  int number; ///< in its file
};

ReadRequest requestFor(const genrec_model_desc &model,
                       const std::vector<const genrec_program_desc *> &programs) {
  ReadRequest request{dataRoot(model), std::vector<char>(model.domain_count),
                      std::vector<char>(model.feature_count)};
  if (request.root < 0)
    throw Error(std::string("model '") + model.name + "' reads no data");
  for (const genrec_program_desc *program : programs) {
    ReadSet set = readSet(model, *program);
    for (int32_t i = 0; i < model.domain_count; ++i)
      request.domains[i] |= set.domains[i];
    for (int32_t i = 0; i < model.feature_count; ++i)
      request.features[i] |= set.features[i];
  }
  return request;
}

ReadRequest requestForCatalogue(const genrec_model_desc &model, int32_t domain) {
  ReadRequest request{domain, std::vector<char>(model.domain_count),
                      std::vector<char>(model.feature_count)};
  for (int32_t i = 0; i < model.domain_count; ++i) {
    int32_t kind = model.domains[i].kind;
    bool isRead = kind == GENREC_DOMAIN_CATALOGUE || kind == GENREC_DOMAIN_DATA;
    request.domains[i] = isRead && rootDomain(model, i) == domain;
  }
  for (int32_t i = 0; i < model.feature_count; ++i)
    request.features[i] = request.domains[model.features[i].domain];
  return request;
}

} // namespace

/// Opened files and their decoded chunks; used for datasets and for catalogues.
struct Dataset::Impl {
  Impl(const genrec_model_desc &model, ReadRequest wanted, const FileSpec &spec,
       const DatasetOptions &options)
      : model(model), request(std::move(wanted)), options(options),
        files(model, request, spec, options.comm), order(model) {
    for (size_t i = 0; i < files.size(); ++i) {
      const FileSummary &file = files[i];
      for (size_t group = 0; group < file.groupRows.size(); ++group) {
        groups.push_back({i, static_cast<int>(group)});
        groupRows.push_back(file.groupRows[group]);
        groupBytes.push_back(file.groupBytes[group]);
        firstRows.push_back(rows);
        rows = (Size(rows) + groupRows.back()).value([&] { return "the data of " + spec.text(); });
        bytes = (Size(bytes) + groupBytes.back()).saturated();
      }
    }
    kept.resize(groups.size());
    inUse.resize(groups.size());
    isDecoding.resize(groups.size());
    inMemory = bytes <= options.memoryBudget;
  }

  /// Runs on decoding threads. Who asks for a row group that another decodes, or that is still in use,
  /// shares it: an epoch may begin within one that it ends with.
  std::shared_ptr<const Chunk> chunk(int64_t index) {
    std::unique_lock<std::mutex> lock(mutex);
    isDecoded.wait(lock, [&] { return !isDecoding[index]; });
    if (std::shared_ptr<const Chunk> chunk = inUse[index].lock())
      return chunk;
    isDecoding[index] = 1;
    lock.unlock();
    std::shared_ptr<Chunk> chunk;
    std::exception_ptr error;
    try {
      const Group &group = groups[index];
      chunk = std::make_shared<Chunk>(files.open(group.file).decode(group.number, order));
      chunk->number = index;
      chunk->firstPosition = firstRows[index];
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    isDecoding[index] = 0;
    isDecoded.notify_all();
    if (error)
      std::rethrow_exception(error);
    ++decoded.rowGroups;
    decoded.rows += chunk->rows;
    decoded.bytes += chunk->bytes();
    inUse[index] = chunk;
    if (inMemory)
      kept[index] = chunk;
    return chunk;
  }

  /// The share of the data's bytes that own portions of two windows take.
  int64_t windowBytes(const EpochOptions &epochOptions) const {
    int64_t window = epochOptions.windowRows > 0 ? epochOptions.windowRows : defaultWindow();
    double share = rows == 0 ? 0
                             : static_cast<double>(std::min(2 * std::min(window, rows), rows)) /
                                   static_cast<double>(rows);
    return static_cast<int64_t>(static_cast<double>(bytes) * share * epochOptions.own.count /
                                epochOptions.portions);
  }

  int64_t defaultWindow() const {
    if (bytes <= kMostShuffledBytes)
      return rows;
    return std::max<int64_t>(
        static_cast<int64_t>(static_cast<double>(rows) * (kMostShuffledBytes / 2) /
                             static_cast<double>(bytes)),
        1);
  }

  /// Of the batches by tokens that `epochOptions` ask for; none of batches by rows.
  std::optional<TokenCounts> tokenCounts(const EpochOptions &epochOptions) const {
    if (epochOptions.batchTokens <= 0)
      return std::nullopt;
    return TokenCounts(model, epochOptions.tokenDomain,
                       std::max<int64_t>(epochOptions.batchTokens / epochOptions.portions, 1));
  }

  std::unique_ptr<EpochOrder> orderOf(EpochOptions epochOptions) const {
    if (epochOptions.windowRows <= 0)
      epochOptions.windowRows = defaultWindow();
    bool byTokens = epochOptions.batchTokens > 0;
    if (byTokens && groupTokens.size() != groups.size())
      throw Error("the tokens of the data are not counted");
    return EpochOrder::make(epochOptions, {groupRows, byTokens ? &groupTokens : nullptr});
  }

  std::unique_ptr<BatchSource> epoch(const EpochOptions &epochOptions, const RowLocator &locator) {
    bool readsAhead = inMemory || windowBytes(epochOptions) <= options.memoryBudget;
    return std::make_unique<EpochSource>(
        epochOptions, orderOf(epochOptions), tokenCounts(epochOptions),
        [this](int64_t index) { return chunk(index); }, options.decodeThreads, readsAhead,
        Assembler(model, request.domains, request.features, request.root), locator);
  }

  /// What is read to count the entries of a list of the data: itself, the lists around it, and what
  /// says which entries are padding.
  ReadRequest requestForList(int32_t list) const {
    ReadRequest counted{request.root, std::vector<char>(model.domain_count),
                        std::vector<char>(model.feature_count)};
    for (int32_t at = list; at != request.root; at = model.domains[at].parent)
      counted.domains[at] = 1;
    for (int32_t i = 0; i < model.feature_count; ++i)
      counted.features[i] = request.features[i] && model.features[i].has_padding_id &&
                            counted.domains[model.features[i].domain];
    return counted;
  }

  /// Counts the tokens of every row group `first`, `first` + `stride`, …; 0 for the others.
  std::vector<int64_t> countTokens(const TokenCounts &counts, int64_t first, int64_t stride) {
    ReadRequest counted = requestForList(counts.source());
    std::vector<std::unique_ptr<ParquetFile>> lists(files.size());
    std::vector<int64_t> some;
    for (auto i = static_cast<size_t>(first); i < groups.size(); i += static_cast<size_t>(stride)) {
      some.push_back(static_cast<int64_t>(i));
      if (auto &file = lists[groups[i].file]; !file)
        file = std::make_unique<ParquetFile>(files.open(groups[i].file), counted);
    }
    OrderWatch ignored(model);
    auto decode = [&](int64_t index) {
      const Group &group = groups[index];
      return std::make_shared<Chunk>(lists[group.file]->decode(group.number, ignored));
    };
    std::vector<int64_t> tokens(groups.size());
    ChunkLoader loader(some, decode, options.decodeThreads, options.decodeThreads);
    for (int64_t i = 0; i < loader.size(); ++i)
      tokens[some[i]] = counts.before(*loader.get(i)).back();
    return tokens;
  }

  const genrec_model_desc &model;
  ReadRequest request;
  DatasetOptions options;
  DatasetFiles files;
  std::vector<Group> groups;
  std::vector<int64_t> groupRows, groupBytes, firstRows;
  int64_t rows = 0, bytes = 0;
  bool inMemory = true;
  OrderWatch order;
  mutable std::mutex mutex;
  std::condition_variable isDecoded;
  std::vector<char> isDecoding;
  std::vector<std::weak_ptr<const Chunk>> inUse;
  std::vector<std::shared_ptr<const Chunk>> kept; ///< all of them, if they fit in memory
  DecodedData decoded;
  std::vector<int64_t> groupTokens; ///< by row group; empty: not counted
};

Dataset::Dataset(const genrec_model_desc &model,
                 const std::vector<const genrec_program_desc *> &programs, const FileSpec &files,
                 const DatasetOptions &options)
    : impl(std::make_unique<Impl>(model, requestFor(model, programs), files, options)) {}

Dataset::~Dataset() = default;

int64_t Dataset::rows() const { return impl->rows; }
const std::vector<std::string> &Dataset::files() const { return impl->files.paths(); }
std::vector<DataFile> Dataset::describeFiles(const std::string &role) const {
  return impl->files.describe(role);
}
void Dataset::requireSameType(int32_t feature) const { impl->files.requireSameType(feature); }
const std::shared_ptr<arrow::DataType> &Dataset::keyType(int32_t feature) const {
  return impl->files.keyType(feature);
}
const std::vector<std::string> &Dataset::notes() const { return impl->files.notes(); }
bool Dataset::inMemory() const { return impl->inMemory; }

int64_t Dataset::estimatedBytes() const { return impl->bytes; }
int64_t Dataset::defaultWindow() const { return impl->defaultWindow(); }
int64_t Dataset::windowBytes(const EpochOptions &options) const {
  return impl->windowBytes(options);
}

int64_t Dataset::heldBytes() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  int64_t bytes = 0;
  for (const auto &chunk : impl->kept)
    bytes += chunk ? chunk->bytes() : 0;
  return bytes;
}

DecodedData Dataset::decoded() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  return impl->decoded;
}

int32_t Dataset::tokenDomain(const std::string &name) const {
  const genrec_model_desc &model = impl->model;
  std::vector<std::string> names;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    bool isCut = domain.kind == GENREC_DOMAIN_DERIVED && domain.max_length > 0;
    int32_t list = isCut ? domain.truncated : i;
    if ((domain.kind != GENREC_DOMAIN_DATA && !isCut) || list == impl->request.root ||
        model.domains[list].kind != GENREC_DOMAIN_DATA || !impl->request.domains[list])
      continue;
    if (name == domain.name)
      return i;
    names.emplace_back(domain.name);
  }
  throw Error("there is no list '" + name + "' that the model reads" +
                  (names.empty() ? std::string() : "; it reads " + listNames(names)),
              suggestion(name, names));
}

void Dataset::countTokens(const EpochOptions &options) {
  Communicator *comm = impl->options.comm;
  TokenCounts counts = impl->tokenCounts(options).value();
  int64_t rank = comm ? comm->getRank() : 0, ranks = comm ? comm->getSize() : 1;
  std::vector<int64_t> own;
  runTogether(comm, [&] { own = impl->countTokens(counts, rank, ranks); });
  std::vector<int64_t> all = own;
  if (ranks > 1) {
    all.resize(own.size() * static_cast<size_t>(ranks));
    comm->allGather(own.data(), all.data(), static_cast<int64_t>(own.size() * sizeof own[0]));
  }
  // A row group was counted by one rank.
  impl->groupTokens.assign(own.size(), 0);
  Size total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    impl->groupTokens[i % own.size()] += all[i];
    total += all[i];
  }
  (void)total.value("the tokens of the data");
}

int64_t Dataset::batches(const EpochOptions &options) const {
  return impl->orderOf(options)->batches();
}

std::vector<std::string> Dataset::warnings() const { return impl->order.warnings(); }

std::unique_ptr<BatchSource> Dataset::epoch(const EpochOptions &options) {
  if (options.batch < 1)
    throw Error("a batch needs at least one row, got " + std::to_string(options.batch));
  if (options.own.first < 0 || options.own.count < 1 ||
      options.own.first + options.own.count > options.portions)
    throw Error("a source of no portion, or of one that is not among " +
                std::to_string(options.portions));
  return impl->epoch(options, *this);
}

std::string Dataset::describe(int64_t position) const {
  const auto &firsts = impl->firstRows;
  auto after = std::upper_bound(firsts.begin(), firsts.end(), position);
  if (after == firsts.begin())
    return "row " + withThousands(position);
  auto index = static_cast<size_t>(after - firsts.begin() - 1);
  const Group &group = impl->groups[index];
  return RowGroupLocation{impl->files.paths()[group.file], group.number}.row(position -
                                                                             firsts[index]);
}

Catalogue readCatalogue(const genrec_model_desc &model, int32_t domain, const FileSpec &files,
                        Communicator *comm) {
  struct NoLocator : RowLocator {
    std::string describe(int64_t position) const override {
      return "row " + withThousands(position);
    }
  } locator;
  DatasetOptions options;
  options.memoryBudget = INT64_MAX;
  options.comm = comm;
  const std::string name = model.domains[domain].name;
  Dataset::Impl data(model, requestForCatalogue(model, domain), files, options);
  if (data.rows == 0)
    throw Error(files.text() + ": the catalogue '" + name + "' has no rows");
  EpochOptions all;
  all.batch = data.rows;
  Catalogue catalogue{Batch(model), data.files.describe("catalogue '" + name + "'"),
                      data.files.notes()};
  runTogether(comm, [&] { data.epoch(all, locator)->next(catalogue.rows); });
  catalogue.rows.locator = nullptr;
  return catalogue;
}

} // namespace genrec::rt
