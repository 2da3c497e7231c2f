//===- assemble.h - From chunks to batches -----------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_ASSEMBLE_H
#define GENREC_RT_DATA_ASSEMBLE_H

#include "chunk.h"

#include "genrec_rt/batch.h"

namespace genrec::rt {

/// A root row of a chunk.
struct RowRef {
  const Chunk *chunk;
  int64_t row;
};

/// Gathers root rows with all that lies below them. Takes no memory once it has
/// seen the largest batch.
class Assembler {
public:
  Assembler(const genrec_model_desc &model, const std::vector<char> &domains,
            const std::vector<char> &features, int32_t root);

  void assemble(const RowRef *refs, int64_t count, Batch &batch);

private:
  /// Per domain and run, the range of rows in the run's chunk.
  struct Ranges {
    GrowBuffer<int64_t> begin, end;
  };

  void findRuns(const RowRef *refs, int64_t count);
  /// The number of a chunk among those of the batch.
  int32_t numberOf(const Chunk *chunk);
  const Chunk &chunkOf(int64_t run) const { return *chunks[numbers[run]]; }
  void gatherDomain(int32_t domain, Batch &batch);
  void gatherColumn(int32_t feature, Batch &batch);
  void gatherFlags(int32_t feature, int64_t total, ColumnBatch &to);
  /// Values of the rows of a domain; `from` has those of each chunk.
  template <class T> void copyRuns(int32_t domain, const char *const *from, T *to) const;
  /// Rows of `size` bytes.
  void copyRowsOf(int32_t feature, int64_t size, char *to);
  void gatherStrings(int32_t feature, ColumnBatch &to);

  const genrec_model_desc &model;
  std::vector<char> domains, features;
  int32_t root;
  std::vector<Ranges> ranges;
  /// The chunks of the batch, and of each run the number of its chunk: of root rows of the batch
  /// that follow each other in a chunk, too.
  std::vector<const Chunk *> chunks;
  GrowBuffer<int32_t> numbers;
  GrowBuffer<const char *> bases; ///< the values of a column, by chunk
  int64_t runs = 0, rootRows = 0;
  /// Of each root row its row in its chunk, and which of them follow each other in one chunk.
  GrowBuffer<int64_t> rowOf;
  struct Piece {
    int32_t number;
    int64_t end;
  };
  std::vector<Piece> pieces;
  /// By row group: the last batch that had it, and its number in that.
  struct Seen {
    int64_t batch = 0;
    int32_t number = 0;
  };
  std::vector<Seen> seen;
  int64_t batches = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_ASSEMBLE_H
