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
  /// Per domain and root row, the range of rows in the row's chunk.
  struct Ranges {
    GrowBuffer<int64_t> begin, end;
  };

  void gatherDomain(int32_t domain, const RowRef *refs, int64_t count, Batch &batch);
  void gatherColumn(int32_t feature, const RowRef *refs, int64_t count, Batch &batch);
  void gatherStrings(int32_t feature, const RowRef *refs, int64_t count, ColumnBatch &to);

  const genrec_model_desc &model;
  std::vector<char> domains, features;
  int32_t root;
  std::vector<Ranges> ranges;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_ASSEMBLE_H
