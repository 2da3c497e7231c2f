//===- dataset.h - Parquet files as batches ----------------------*- C++ -*-===//
//
// Reads the columns that a model's programs need, decoding row groups on threads
// of its own ahead of the step. See docs/data.md for formats, rules and errors.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DATASET_H
#define GENREC_RT_DATASET_H

#include "genrec_rt/batch.h"
#include "genrec_rt/portions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace genrec::rt {

/// What a flag such as --data names: entries, each of them a file, a folder, a
/// pattern, or several of these separated by commas. An entry that is a file or a
/// folder as it stands, commas and all, or a pattern that matches as it stands, is
/// not taken apart.
struct FileSpec {
  FileSpec() = default;
  FileSpec(const char *entry) : entries{entry} {}
  FileSpec(const std::string &entry) : entries{entry} {}
  FileSpec(std::vector<std::string> entries) : entries(std::move(entries)) {}

  bool empty() const { return entries.empty(); }
  /// For messages.
  std::string text() const;

  std::vector<std::string> entries;
};

/// Expands files, folders (every *.parquet, *.parq and *.pq below, in any case, links followed,
/// each folder once; sorted by path) and glob patterns (sorted). Error where one matches
/// nothing. `notes` (may be null) gets a line for each folder in which something was skipped.
std::vector<std::string> listFiles(const FileSpec &spec, std::vector<std::string> *notes = nullptr);

struct DatasetOptions {
  int32_t decodeThreads = 2;
  /// Decoded data is kept in memory for all epochs where it takes at most this;
  /// beyond, row groups are decoded again each epoch and shuffling is windowed.
  int64_t memoryBudget = int64_t(4) << 30;
};

/// How one pass over the data goes.
struct EpochOptions {
  int64_t batch = 128; ///< root rows per batch; the last batch may be smaller
  bool shuffle = false;
  uint64_t seed = 0;
  uint64_t epoch = 1;   ///< with `seed`, all that the order depends on
  int64_t skipRows = 0; ///< root rows of this order that are left out (resume)
  /// A batch of n rows is so many portions, p of them its rows [n * p / portions, n * (p + 1) / portions),
  /// some maybe without rows. A source gives those of `own`, one by one.
  int32_t portions = 1;
  PortionRange own{0, 1};
};

/// A dataset of one or more Parquet files with the columns of `model`. Safe to
/// keep for many epochs; one epoch at a time.
class Dataset : public RowLocator {
public:
  /// Opens every file and checks that the columns for `programs` (of the model)
  /// are there with the right types; Error otherwise.
  Dataset(const genrec_model_desc &model, const std::vector<const genrec_program_desc *> &programs,
          const FileSpec &files, const DatasetOptions &options);
  ~Dataset() override;

  int64_t rows() const;
  const std::vector<std::string> &files() const;
  /// Whether all of it stays in memory; otherwise the rows of a window.
  bool inMemory() const;
  int64_t windowRows() const;
  /// Bytes of decoded data held now.
  int64_t decodedBytes() const;
  /// What was skipped in folders, a line each.
  const std::vector<std::string> &notes() const;
  /// What was noticed while decoding ("lists not oldest first"), each once.
  std::vector<std::string> warnings() const;

  /// The batches of one epoch, or this rank's portions of them. At most one source may be alive; it
  /// must not outlive the dataset.
  std::unique_ptr<BatchSource> epoch(const EpochOptions &options);

  std::string describe(int64_t position) const override;

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

/// Reads all rows of a catalogue domain (and of the domains below it). `notes` (may be null) gets a
/// line for each folder in which something was skipped.
Batch readCatalogue(const genrec_model_desc &model, int32_t domain, const FileSpec &files,
                    std::vector<std::string> *notes = nullptr);

/// The order in which an epoch visits `count` rows: a permutation that depends on
/// (seed, epoch, window) alone. Fisher-Yates over a SplitMix64 stream.
void shuffledOrder(uint64_t seed, uint64_t epoch, uint64_t window, int64_t count, int64_t *order);

} // namespace genrec::rt

#endif // GENREC_RT_DATASET_H
