//===- dataset.h - Parquet files as batches ----------------------*- C++ -*-===//
//
// Reads the columns that a model's programs need, decoding row groups on threads
// of its own ahead of the step. See docs/data.md for formats, rules and errors.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DATASET_H
#define GENREC_RT_DATASET_H

#include "genrec_rt/batch.h"
#include "genrec_rt/comm.h"
#include "genrec_rt/data_file.h"
#include "genrec_rt/portions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace arrow {
class DataType;
}

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
  /// Decoded data is kept in memory for all epochs where all of it takes at most this; beyond, row
  /// groups are decoded again each epoch. The order of rows does not depend on it.
  int64_t memoryBudget = int64_t(4) << 30;
  /// Of the ranks that read together: rank 0 lists the files and reads their footers, the others
  /// open a file when they first decode a row group of it. Null: this process alone.
  Communicator *comm = nullptr;
};

/// What of the data was decoded by this process so far, and what that took in memory.
struct DecodedData {
  int64_t rowGroups = 0, rows = 0, bytes = 0;

  DecodedData &operator+=(const DecodedData &other) {
    rowGroups += other.rowGroups;
    rows += other.rows;
    bytes += other.bytes;
    return *this;
  }
};

/// The version of the order of shuffled rows: another one where the same options give another
/// order.
inline constexpr int32_t kEpochOrder = 2;

/// How one pass over the data goes. The batches depend on data, batch, shuffle, seed, epoch and
/// window alone, and with batchTokens on the number of portions.
struct EpochOptions {
  int64_t batch = 128; ///< root rows per batch; the last batch may be smaller
  /// Instead of `batch`: about so many entries of the lists of `tokenDomain` (a list of the data,
  /// or one truncated from such a list) per batch. 0: batches by rows.
  int64_t batchTokens = 0;
  int32_t tokenDomain = -1;
  bool shuffle = false;
  uint64_t seed = 0;
  uint64_t epoch = 1; ///< from 1 on
  /// Rows that are shuffled together: at most so many, at least a batch; 0: defaultWindow().
  int64_t windowRows = 0;
  int64_t skipBatches = 0; ///< that are left out (resume)
  /// A batch of n rows is so many portions, p of them its rows [n * p / portions, n * (p + 1) /
  /// portions); with batchTokens, portions have about equal tokens. Some may be without rows. A
  /// source gives those of `own`, one by one.
  int32_t portions = 1;
  PortionRange own{0, 1};
};

/// A dataset of one or more Parquet files with the columns of `model`. Safe to
/// keep for many epochs; one epoch at a time.
class Dataset : public RowLocator {
public:
  /// Opens every file and checks that the columns for `programs` (of the model)
  /// are there with the right types; Error otherwise. Collective with options.comm.
  Dataset(const genrec_model_desc &model, const std::vector<const genrec_program_desc *> &programs,
          const FileSpec &files, const DatasetOptions &options);
  ~Dataset() override;

  int64_t rows() const;
  const std::vector<std::string> &files() const;
  /// Sizes and checksums of the files, as rank 0 opened them.
  std::vector<DataFile> describeFiles(const std::string &role) const;
  /// Whether all of it stays in memory once it is decoded.
  bool inMemory() const;
  /// About how many bytes all of it takes decoded, by the footers.
  int64_t estimatedBytes() const;
  /// The rows that are shuffled together unless said: all where they take about 4 GiB at most, else
  /// those of about 2 GiB.
  int64_t defaultWindow() const;
  /// About how many bytes a source needs with shuffling: of a window that is read and of the next
  /// one.
  int64_t windowBytes(const EpochOptions &options) const;
  /// Bytes of decoded data held now.
  int64_t heldBytes() const;
  DecodedData decoded() const;
  /// Throws Error where files have columns of other types for a feature. Collective.
  void requireSameType(int32_t feature) const;
  /// What a key (GENREC_KEY) is in all files together: a type that holds the values of each.
  const std::shared_ptr<arrow::DataType> &keyType(int32_t feature) const;
  /// What was skipped in folders, a line each.
  const std::vector<std::string> &notes() const;
  /// What was noticed while decoding ("lists not oldest first"), each once.
  std::vector<std::string> warnings() const;

  /// The list called `name`, for EpochOptions::tokenDomain. Error, with what there is, where there
  /// is none that the programs read.
  int32_t tokenDomain(const std::string &name) const;
  /// Counts tokens of all row groups by options.batchTokens and .portions, each rank those of some.
  /// Collective; before batches() and epoch() of such options.
  void countTokens(const EpochOptions &options);

  /// Batches of one epoch.
  int64_t batches(const EpochOptions &options) const;
  /// The batches of one epoch, or this rank's portions of them. At most one source may be alive; it
  /// must not outlive the dataset.
  std::unique_ptr<BatchSource> epoch(const EpochOptions &options);

  std::string describe(int64_t position) const override;

  struct Impl;

private:
  std::unique_ptr<Impl> impl;
};

/// What the files of a catalogue hold.
struct Catalogue {
  Batch rows;                     ///< all of them, and those of the domains below
  std::vector<DataFile> files;    ///< as rank 0 opened them; the role is "catalogue '<name>'"
  std::vector<std::string> notes; ///< a line for each folder in which something was skipped
};

/// Reads all rows of a catalogue domain, and of the domains below it, on every rank of `comm`
/// (null: this process alone). Rank 0 lists `files` and reads their footers. Collective.
Catalogue readCatalogue(const genrec_model_desc &model, int32_t domain, const FileSpec &files,
                        Communicator *comm = nullptr);

/// An order of `count` things: a permutation that depends on (seed, epoch, number) alone.
/// Fisher-Yates over a SplitMix64 stream.
void shuffledOrder(uint64_t seed, uint64_t epoch, uint64_t number, int64_t count, int64_t *order);

} // namespace genrec::rt

#endif // GENREC_RT_DATASET_H
