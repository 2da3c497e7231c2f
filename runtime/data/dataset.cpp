//===- dataset.cpp - Parquet files as batches -----------------------------===//

#include "genrec_rt/dataset.h"

#include "../core/model_queries.h"
#include "../core/text.h"
#include "epoch.h"
#include "genrec_rt/error.h"
#include "genrec_rt/size.h"
#include "parquet_file.h"

#include <algorithm>
#include <mutex>

namespace genrec::rt {

namespace {

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
      : model(model), request(std::move(wanted)), options(options), paths(listFiles(spec, &notes)),
        order(model) {
    for (size_t i = 0; i < paths.size(); ++i) {
      files.push_back(std::make_unique<ParquetFile>(model, request, paths[i]));
      files[i]->requireSameKeys(*files[0]);
      for (int group = 0; group < files[i]->groups(); ++group) {
        groups.push_back({i, group});
        groupRows.push_back(files[i]->rowsOf(group));
        groupBytes.push_back(files[i]->estimatedBytes(group));
        firstRows.push_back(rows);
        rows = (Size(rows) + groupRows.back()).value([&] { return "the data of " + spec.text(); });
        bytes = (Size(bytes) + groupBytes.back()).saturated();
      }
    }
    kept.resize(groups.size());
    inMemory = bytes <= options.memoryBudget;
  }

  /// Runs on decoding threads.
  std::shared_ptr<const Chunk> chunk(int64_t index) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (kept[index])
        return kept[index];
    }
    const Group &group = groups[index];
    auto chunk = std::make_shared<Chunk>(files[group.file]->decode(group.number, order));
    chunk->firstPosition = firstRows[index];
    if (inMemory) {
      std::lock_guard<std::mutex> lock(mutex);
      kept[index] = chunk;
    }
    return chunk;
  }

  std::unique_ptr<BatchSource> epoch(const EpochOptions &epochOptions, const RowLocator &locator) {
    // Two windows exist at a time: one being read, one decoded ahead.
    auto windows = planWindows(epochOptions, groupBytes, inMemory, options.memoryBudget / 2);
    return std::make_unique<EpochSource>(
        epochOptions, std::move(windows), groupRows, [this](int64_t index) { return chunk(index); },
        options.decodeThreads, Assembler(model, request.domains, request.features, request.root),
        locator);
  }

  const genrec_model_desc &model;
  ReadRequest request;
  DatasetOptions options;
  std::vector<std::string> notes;
  std::vector<std::string> paths;
  std::vector<std::unique_ptr<ParquetFile>> files;
  std::vector<Group> groups;
  std::vector<int64_t> groupRows, groupBytes, firstRows;
  int64_t rows = 0, bytes = 0;
  bool inMemory = true;
  OrderWatch order;
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<const Chunk>> kept; ///< all of them, if they fit in memory
};

Dataset::Dataset(const genrec_model_desc &model,
                 const std::vector<const genrec_program_desc *> &programs, const FileSpec &files,
                 const DatasetOptions &options)
    : impl(std::make_unique<Impl>(model, requestFor(model, programs), files, options)) {}

Dataset::~Dataset() = default;

int64_t Dataset::rows() const { return impl->rows; }
const std::vector<std::string> &Dataset::files() const { return impl->paths; }
const std::vector<std::string> &Dataset::notes() const { return impl->notes; }
bool Dataset::inMemory() const { return impl->inMemory; }

int64_t Dataset::windowRows() const {
  if (impl->inMemory)
    return impl->rows;
  EpochOptions options;
  options.shuffle = true;
  int64_t most = 0;
  for (const Window &window :
       planWindows(options, impl->groupBytes, false, impl->options.memoryBudget / 2)) {
    int64_t rows = 0;
    for (int64_t group : window)
      rows += impl->groupRows[group];
    most = std::max(most, rows);
  }
  return most;
}

int64_t Dataset::decodedBytes() const {
  std::lock_guard<std::mutex> lock(impl->mutex);
  int64_t bytes = 0;
  for (const auto &chunk : impl->kept)
    bytes += chunk ? chunk->bytes() : 0;
  return bytes;
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
  return RowGroupLocation{impl->paths[group.file], group.number}.row(position - firsts[index]);
}

Batch readCatalogue(const genrec_model_desc &model, int32_t domain, const FileSpec &files,
                    std::vector<std::string> *notes) {
  struct NoLocator : RowLocator {
    std::string describe(int64_t position) const override {
      return "row " + withThousands(position);
    }
  } locator;
  DatasetOptions options;
  options.memoryBudget = INT64_MAX;
  Dataset::Impl data(model, requestForCatalogue(model, domain), files, options);
  if (notes)
    notes->insert(notes->end(), data.notes.begin(), data.notes.end());
  if (data.rows == 0)
    throw Error(files.text() + ": the catalogue '" + std::string(model.domains[domain].name) +
                "' has no rows");
  EpochOptions all;
  all.batch = data.rows;
  Batch batch(model);
  data.epoch(all, locator)->next(batch);
  batch.locator = nullptr;
  return batch;
}

} // namespace genrec::rt
