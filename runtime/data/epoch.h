//===- epoch.h - The order of one pass over the data -------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_EPOCH_H
#define GENREC_RT_DATA_EPOCH_H

#include "assemble.h"
#include "chunk_loader.h"

#include "genrec_rt/dataset.h"

#include <functional>
#include <memory>
#include <vector>

namespace genrec::rt {

/// The row groups whose rows are shuffled together, in the order they are read.
using Window = std::vector<int64_t>;

/// Splits the row groups into windows: without shuffling one each, in order; in
/// memory one of all; else groups in the order of a permutation by (seed, epoch),
/// as many together as `mostBytes` hold, at least one.
std::vector<Window> planWindows(const EpochOptions &options, const std::vector<int64_t> &groupBytes,
                                bool inMemory, int64_t mostBytes);

/// Yields the batches of an epoch, portion by portion. Every rank walks over all rows, so that all find
/// the same batches, and assembles those of its own portions. Chunks are released once all rows of
/// theirs that this rank needs are copied.
class EpochSource : public BatchSource {
public:
  EpochSource(const EpochOptions &options, std::vector<Window> windows,
              const std::vector<int64_t> &groupRows, ChunkLoader::Decode decode, int32_t threads,
              Assembler assembler, const RowLocator &locator);

  bool next(Batch &batch) override;

private:
  bool openWindow();
  void skip();
  bool takeBatch();

  EpochOptions options;
  std::vector<Window> windows;
  const std::vector<int64_t> &groupRows;
  std::unique_ptr<ChunkLoader> loader;
  Assembler assembler;
  const RowLocator &locator;

  size_t nextWindow = 0;
  uint64_t windowNumber = 0; ///< of the open window; counts skipped ones too
  int64_t loaded = 0;        ///< chunks taken from the loader
  int64_t rowsToSkip = 0;    ///< of the first window opened
  std::vector<std::shared_ptr<const Chunk>> open;
  GrowBuffer<RowRef> order;
  int64_t orderCount = 0, position = 0;

  GrowBuffer<RowRef> wanted; ///< the rows of the batch under way
  int64_t wantedCount = 0;
  int32_t portion; ///< the next one of the batch under way
  std::vector<std::shared_ptr<const Chunk>> held; ///< no longer open, but with rows in `wanted`
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_EPOCH_H
