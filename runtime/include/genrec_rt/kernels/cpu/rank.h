//===- rank.h - Top-k and ranks over a catalogue ----------------*- C++ -*-===//
//
// The score of query i for item j is the dot of their rows, added up in column
// order. Scores are made a tile of items and queries at a time and used up there;
// all of them are never in memory. Queries are the lanes, so comparing and
// counting cost one instruction for many queries.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_RANK_H
#define GENREC_RT_KERNELS_CPU_RANK_H

#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {

/// What is scored. Excluded items of query i are excluded[excludedOffsets[i]]
/// to excluded[excludedOffsets[i + 1]], in any order, repeated or not; indices
/// outside [0, itemCount) are passed over.
struct RankArgs {
  const float *queries = nullptr; ///< [queryCount, dim]
  int64_t ldQueries = 0;
  int64_t queryCount = 0;
  const float *items = nullptr; ///< [itemCount, dim]
  int64_t ldItems = 0;
  int64_t itemCount = 0;
  int64_t dim = 0;
  const int64_t *excludedOffsets = nullptr; ///< [queryCount + 1]; null: none
  const int64_t *excluded = nullptr;
};

/// Several targets per query: those of query i are offsets[i] to offsets[i + 1].
struct TargetLists {
  const int64_t *offsets = nullptr;
  const int64_t *queryOf = nullptr; ///< [count]: the query that a target belongs to
  const int64_t *targets = nullptr;
  int64_t count = 0;
};

/// Bytes of scratch of either function: `excludedCount` is the number of
/// entries of `excluded`, k that of topK (0 for rankOf), `workers` the pool's
/// number of threads.
int64_t rankScratchBytes(int64_t dim, int64_t excludedCount, int64_t k,
                         int32_t workers);

/// The k items of the highest scores per query, best first, equal scores by
/// ascending index: indices and scores are [queryCount, k]. Where fewer than k items
/// are left (a score of -inf counts as none), the rest is index -1, score -inf.
/// Returns false if any score is NaN; the results are then unspecified.
bool topK(genrec_rt_pool *pool, const RankArgs &args, int64_t k,
          int64_t *indices, float *scores, void *scratch);

/// The rank of targets[i] for query i, from 1: one more than the number of
/// other items, not excluded, that score at least as much (ties count against the
/// model). The target itself is never excluded. A target outside [0, itemCount)
/// gets rank 0. Returns false if any score is NaN.
bool rankOf(genrec_rt_pool *pool, const RankArgs &args, const int64_t *targets,
            int64_t *ranks, void *scratch);

/// Bytes of scratch of rankLists: those of rankOf and of `targetCount` targets.
int64_t rankListsScratchBytes(int64_t dim, int64_t excludedCount, int64_t targetCount,
                              int32_t workers);

/// The ranks of the targets of each query: their places in one order of all items that are
/// targets of the query or not excluded: by score, of equal ones the targets last, of equal
/// targets the first of the list first. A target outside [0, itemCount), or that its list has
/// had before, gets rank 0. Returns false if any score is NaN.
bool rankLists(genrec_rt_pool *pool, const RankArgs &args, const TargetLists &lists,
               int64_t *ranks, void *scratch);

/// Lists of rows to be ranked by their scores.
struct ScoredLists {
  int64_t lists = 0;
  const int64_t *offsets = nullptr; ///< [lists + 1]
  const float *score = nullptr;
  const float *label = nullptr;   ///< 0 or 1
  const uint8_t *valid = nullptr; ///< null: all
};

/// What rankScored found in a row that it cannot rank.
enum class UnrankedRow { none, nanScore, label };

/// The ranks of the rows of lists by score, as genrec.rank_in_list says. `order` is scratch of
/// an entry per row. `*bad` is the first row with a NaN score or a label other than 0 and 1,
/// where there is one; ranks are then unspecified.
UnrankedRow rankScored(genrec_rt_pool *pool, const ScoredLists &scored, int64_t *ranks,
                       int64_t *order, int64_t *bad);

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_RANK_H
