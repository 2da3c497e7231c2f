//===- token_counts.h - How long the lists of rows are -----------*- C++ -*-===//

#ifndef GENREC_RT_DATA_TOKEN_COUNTS_H
#define GENREC_RT_DATA_TOKEN_COUNTS_H

#include "chunk.h"

#include "genrec_rt/abi.h"

#include <cstdint>
#include <vector>

namespace genrec::rt {

/// Counts the tokens of root rows: entries of one list, at least 1, since a row without any costs
/// something, too, and at most `most`, since no portion can have less than one row.
class TokenCounts {
public:
  /// `domain`: a list of the data, or one truncated from such a list.
  TokenCounts(const genrec_model_desc &model, int32_t domain, int64_t most)
      : model(model), domain(domain), most(most) {}

  /// The list of the data that is counted.
  int32_t source() const;
  /// Tokens before each root row of a chunk, and in all: rows + 1 values.
  std::vector<int64_t> before(const Chunk &chunk) const;

private:
  const genrec_model_desc &model;
  int32_t domain;
  int64_t most;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_TOKEN_COUNTS_H
