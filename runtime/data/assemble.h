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
  void gatherDomain(int32_t domain, Batch &batch);
  void gatherColumn(int32_t feature, Batch &batch);
  /// Rows of `size` bytes.
  void copyRowsOf(int32_t feature, int64_t size, char *to);
  void gatherStrings(int32_t feature, ColumnBatch &to);

  const genrec_model_desc &model;
  std::vector<char> domains, features;
  int32_t root;
  std::vector<Ranges> ranges;
  /// The chunk of each run: root rows of the batch that follow each other in a chunk, too.
  GrowBuffer<const Chunk *> chunks;
  int64_t runs = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_ASSEMBLE_H
