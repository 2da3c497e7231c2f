//===- epoch_order.h - Which rows the batches of an epoch have ---*- C++ -*-===//
//
// The row groups of an epoch stand in a line, which is cut into windows of some batches each; a
// rank needs one part of each window. With shuffling, row groups stand in the line by (seed,
// epoch), and batches mix the rows of their window. Without, the line is that of the files, and a
// window is one batch.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DATA_EPOCH_ORDER_H
#define GENREC_RT_DATA_EPOCH_ORDER_H

#include "assemble.h"
#include "token_counts.h"

#include "genrec_rt/dataset.h"

#include <memory>
#include <vector>

namespace genrec::rt {

/// Consecutive rows of one row group in the line. Places are counted in rows, or in tokens.
struct Stretch {
  int64_t group, firstRow, rows;
  int64_t begin, end; ///< places
};

/// Places in the line.
struct Part {
  int64_t begin = 0, end = 0;

  bool meets(const Stretch &stretch) const { return stretch.begin < end && begin < stretch.end; }
};

/// What row groups hold, by their number in the dataset.
struct GroupSizes {
  const std::vector<int64_t> &rows;
  const std::vector<int64_t> *tokens = nullptr; ///< of batches by tokens
};

/// The first entry from `from` on whose middle lies at `place` or behind; `places` has the entries'
/// first places and the last one's end. An entry at a cut belongs to the side where its middle is.
int64_t firstWithMiddleAt(const std::vector<int64_t> &places, int64_t from, int64_t place);

class EpochOrder {
public:
  /// `sizes` must outlive it.
  static std::unique_ptr<EpochOrder> make(const EpochOptions &options, const GroupSizes &sizes);
  virtual ~EpochOrder() = default;

  const std::vector<Stretch> &line() const { return stretches; }
  int64_t batches() const { return batchCount; }
  int64_t windows() const { return (batchCount + perWindow - 1) / perWindow; }
  /// Of every window but the last one, which may have fewer.
  int64_t batchesPerWindow() const { return perWindow; }
  /// What the own portions need of a window.
  virtual Part own(int64_t window) const = 0;
  /// The window of a place in the line.
  virtual int64_t windowAt(int64_t place) const = 0;

  /// Goes to a window and takes the rows of own(window), in the order of the line; leaves memory
  /// for those of the next. `tokens`: of each row the place of its first token, then the end; empty
  /// with batches by rows.
  virtual void open(int64_t window, std::vector<RowRef> &rows,
                    const std::vector<int64_t> &tokens) = 0;
  /// Appends the rows of one own portion of a batch of the open window.
  virtual void take(int64_t batch, int32_t portion, std::vector<RowRef> &to) const = 0;

protected:
  EpochOrder(const EpochOptions &options, const GroupSizes &sizes);
  /// Cuts the line into windows of equally many batches, at most options.windowRows rows each.
  void setBatches(int64_t count, int64_t rowsPerBatch);
  int64_t batchesOf(int64_t window) const;

  EpochOptions options;
  std::vector<Stretch> stretches;
  int64_t rows = 0, length = 0; ///< of the line, in rows and in places
  int64_t batchCount = 0, perWindow = 1;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_EPOCH_ORDER_H
