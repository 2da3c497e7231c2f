//===- distinct.h - The distinct rows of each of several lookups --*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_DISTINCT_H
#define GENREC_RT_EMBEDDING_DISTINCT_H

#include "genrec_rt/lookup_groups.h"
#include "genrec_rt/parallel.h"

#include <cstdint>
#include <functional>

namespace genrec::rt {

/// Most rows of one call: rows are numbered by 32 bits with a sign, 0 to 2^31 - 1 in `lookups`
/// and 1 to 2^31 in the scratch.
constexpr int64_t kMostDistinctRows = INT32_MAX;

/// Bytes of the results for `parts` lookups over up to `capacity` rows.
int64_t distinctBytes(int64_t parts, int64_t capacity);
/// Bytes of scratch that each thread needs for lookups over `count` rows.
int64_t distinctScratchBytes(int64_t count);

/// Fills the rows of each group (room for those of all its lookups) with the distinct rows of each
/// lookup, of `count` handles, in the order of first appearance, lookup by lookup, and `places`
/// with what kernels/cpu/distinct.h reads. Throws Error where there are more than
/// kMostDistinctRows rows. `scratch` gives the calling thread distinctScratchBytes(count) bytes.
void findDistinct(genrec_rt_pool *pool, int64_t count, const LookupGroups &lookups,
                  const std::function<void *()> &scratch);

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_DISTINCT_H
