//===- epoch.h - One pass over the data --------------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_EPOCH_H
#define GENREC_RT_DATA_EPOCH_H

#include "chunk_loader.h"
#include "epoch_order.h"

#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace genrec::rt {

/// Yields the own portions of the batches of an epoch. Only row groups with rows of theirs are
/// read; chunks are released once no later window needs them.
class EpochSource : public BatchSource {
public:
  /// `tokens`: of batches by tokens. `readsAhead`: whether the rows of two windows may be held, one
  /// that is decoded while the other is read.
  EpochSource(const EpochOptions &options, std::unique_ptr<EpochOrder> order,
              std::optional<TokenCounts> tokens, ChunkLoader::Decode decode, int32_t threads,
              bool readsAhead, Assembler assembler, const RowLocator &locator);

  bool next(Batch &batch) override;

private:
  /// A row group that a window needs.
  struct OpenStretch {
    const Stretch *stretch;
    std::shared_ptr<const Chunk> chunk;
    std::vector<int64_t> tokens; ///< before each row; empty with batches by rows
  };

  void planReading(ChunkLoader::Decode decode, int32_t threads, bool readsAhead);
  bool isNeeded(const Stretch &stretch, int64_t fromWindow) const;
  void openWindow();
  void addRows(const OpenStretch &from, Part part);

  EpochOptions options;
  std::unique_ptr<EpochOrder> order;
  std::optional<TokenCounts> tokenCounts;
  std::vector<const Stretch *> needed; ///< in the order of the line, as the loader decodes them
  std::unique_ptr<ChunkLoader> loader;
  Assembler assembler;
  const RowLocator &locator;

  size_t loaded = 0; ///< of `needed`
  std::deque<OpenStretch> open;
  int64_t window = -1; ///< the open one
  int64_t batchNumber; ///< under way
  int32_t portion;     ///< the next one of it
  std::vector<RowRef> wanted;
  std::vector<RowRef> rows; ///< of the window that is opened
  std::vector<int64_t> places;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_EPOCH_H
