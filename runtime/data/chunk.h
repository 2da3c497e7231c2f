//===- chunk.h - One decoded row group ---------------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_CHUNK_H
#define GENREC_RT_DATA_CHUNK_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace genrec::rt {

/// The values of one feature in a row group.
struct ChunkColumn {
  bool given = false;
  std::vector<char> values;           ///< elementBytes each; empty for strings
  std::vector<uint8_t> valid;         ///< one byte per row; empty without nulls
  std::vector<int64_t> stringOffsets; ///< rows + 1 entries into `bytes`
  std::vector<char> bytes;
};

/// The rows of one domain in a row group.
struct ChunkDomain {
  bool given = false;
  int64_t count = 0;
  std::vector<int64_t> offsets; ///< per row of the parent plus one; empty for a root
};

/// One decoded row group: by the model's domain and feature indices.
struct Chunk {
  int64_t rows = 0;
  int64_t number = 0;        ///< of the row group in the dataset
  int64_t firstPosition = 0; ///< of its first row in the dataset
  std::vector<ChunkDomain> domains;
  std::vector<ChunkColumn> columns;

  int64_t bytes() const {
    std::size_t sum = 0;
    for (const ChunkDomain &domain : domains)
      sum += domain.offsets.capacity() * 8;
    for (const ChunkColumn &column : columns)
      sum += column.values.capacity() + column.valid.capacity() +
             column.stringOffsets.capacity() * 8 + column.bytes.capacity();
    return static_cast<int64_t>(sum);
  }
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_CHUNK_H
