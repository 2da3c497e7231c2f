//===- step_rank.h - Scoring a catalogue as emitted stages call it -*- C++ -*-===//
//
// rank.h and gemm.h with scratch from the step, and failures told to it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_STEP_RANK_H
#define GENREC_RT_KERNELS_CPU_STEP_RANK_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/rank.h"

#include <cstring>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// The score of an item that does not exist.
inline constexpr float kNoScore = -1e30f;

namespace detail {

inline RankArgs makeRankArgs(int64_t dim, const genrec_domain *queries,
                             const float *query, int64_t ldQuery,
                             const genrec_domain *items, const float *item,
                             int64_t ldItem, const genrec_domain *excluding,
                             const int64_t *excluded) {
  RankArgs args;
  args.queries = query, args.ldQueries = ldQuery;
  args.queryCount = queries->count;
  args.items = item, args.ldItems = ldItem, args.itemCount = items->count;
  args.dim = dim;
  args.excludedOffsets = excluding ? excluding->offsets : nullptr;
  args.excluded = excluded;
  return args;
}

inline void *rankScratch(genrec_step *step, int64_t dim,
                         const genrec_domain *excluding, int64_t k) {
  int64_t bytes = rankScratchBytes(dim, excluding ? excluding->count : 0, k,
                                   genrec_rt_pool_threads(step->pool));
  return genrec_rt_thread_scratch(step, bytes);
}

} // namespace detail

/// The k best items of each query; past the last item left index -1 and score
/// kNoScore. `excluding` is the domain of `excluded`, a child of the queries', or null.
inline void topRows(genrec_step *step, int32_t op, int64_t dim,
                    const genrec_domain *queries, const float *query,
                    int64_t ldQuery, const genrec_domain *items,
                    const float *item, int64_t ldItem,
                    const genrec_domain *excluding, const int64_t *excluded,
                    int64_t k, int64_t *index, float *score) {
  RankArgs args = detail::makeRankArgs(dim, queries, query, ldQuery, items,
                                       item, ldItem, excluding, excluded);
  if (!topK(step->pool, args, k, index, score,
            detail::rankScratch(step, dim, excluding, k)))
    genrec_rt_fail(step, op, "a score is NaN");
  for (int64_t i = 0; i < queries->count * k; ++i)
    score[i] = index[i] < 0 ? kNoScore : score[i];
}

/// The rank of each query's target among all items.
inline void rankRows(genrec_step *step, int32_t op, int64_t dim,
                     const genrec_domain *queries, const float *query,
                     int64_t ldQuery, const genrec_domain *items,
                     const float *item, int64_t ldItem,
                     const genrec_domain *excluding, const int64_t *excluded,
                     const int64_t *targets, int64_t *ranks) {
  RankArgs args = detail::makeRankArgs(dim, queries, query, ldQuery, items,
                                       item, ldItem, excluding, excluded);
  if (!rankOf(step->pool, args, targets, ranks,
              detail::rankScratch(step, dim, excluding, 0)))
    genrec_rt_fail(step, op, "a score is NaN");
}

/// The ranks of the targets of each query, which are listed: rows of `listed`, a child of the
/// queries' domain.
inline void rankListedRows(genrec_step *step, int32_t op, int64_t dim,
                           const genrec_domain *queries, const float *query, int64_t ldQuery,
                           const genrec_domain *items, const float *item, int64_t ldItem,
                           const genrec_domain *excluding, const int64_t *excluded,
                           const genrec_domain *listed, const int64_t *targets, int64_t *ranks) {
  RankArgs args = detail::makeRankArgs(dim, queries, query, ldQuery, items, item, ldItem,
                                       excluding, excluded);
  TargetLists lists{listed->offsets, listed->parent, targets, listed->count};
  int64_t bytes = rankListsScratchBytes(dim, excluding ? excluding->count : 0, listed->count,
                                        genrec_rt_pool_threads(step->pool));
  if (!rankLists(step->pool, args, lists, ranks, genrec_rt_thread_scratch(step, bytes)))
    genrec_rt_fail(step, op, "a score is NaN");
}

/// The ranks of the rows of each list of `domain` by their scores.
inline void rankInLists(genrec_step *step, int32_t op, const genrec_domain *domain,
                        const float *score, const float *label, const uint8_t *valid,
                        int64_t *ranks) {
  int64_t lists = domain->parent_domain ? domain->parent_domain->count : 0, bad = 0;
  auto *order = static_cast<int64_t *>(genrec_rt_thread_scratch(step, (domain->count + 1) * 8));
  UnrankedRow found = rankScored(step->pool, {lists, domain->offsets, score, label, valid}, ranks,
                                 order, &bad);
  if (found != UnrankedRow::none)
    genrec_rt_fail_row(step, op, domain, bad,
                       found == UnrankedRow::label ? "the label is neither 0 nor 1"
                                                   : "the score is NaN");
}

namespace detail {

/// How many of the `width` items from row `first` on there are.
inline int64_t countItems(const genrec_domain *items, int64_t first, int64_t width) {
  int64_t left = items->count - first;
  return left < 0 ? 0 : left < width ? left : width;
}

/// `to` = `from`, or 0 where that is null.
inline void startSums(const float *from, int64_t count, float *to) {
  if (from)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  else if (count)
    std::memset(to, 0, static_cast<size_t>(count) * sizeof(float));
}

} // namespace detail

/// out[queries, width] = query items^T of the items from row `first` on; columns past
/// the last item are kNoScore. More items than that are a failure unless `partial`.
inline void scores(genrec_step *step, int32_t op, int64_t dim, const genrec_domain *queries,
                   const float *query, int64_t ldQuery, const genrec_domain *items,
                   const float *item, int64_t ldItem, int64_t first, int64_t width, bool partial,
                   float *out) {
  if (!partial && items->count > first + width)
    genrec_rt_fail(step, op,
                   "the catalogue has more rows than the scores have columns");
  int64_t count = detail::countItems(items, first, width);
  void *scratch =
      genrec_rt_thread_scratch(step, matmulDynamicScratchBytes(dim, count));
  matmulDynamic(step->pool, /*transposeW=*/true, queries->count, dim, count, query, ldQuery,
                item + first * ldItem, ldItem, out, width,
                /*accumulate=*/false, scratch);
  for (int64_t row = 0; row < queries->count; ++row)
    for (int64_t column = count; column < width; ++column)
      out[row * width + column] = kNoScore;
}

/// dQuery = ontoQuery + gradient items; dItem = ontoItem + gradient^T query, of the
/// `width` items from row `first` on; null `onto…` are 0. Rows of dQuery, dItem and
/// `onto…` lie densely.
inline void scoresGradient(genrec_step *step, int64_t dim, const genrec_domain *queries,
                           const float *query, int64_t ldQuery, const genrec_domain *items,
                           const float *item, int64_t ldItem, const float *gradient,
                           int64_t ldGradient, int64_t first, int64_t width, const float *ontoQuery,
                           const float *ontoItem, float *dQuery, float *dItem) {
  int64_t count = detail::countItems(items, first, width);
  // A product without accumulation writes all of its result.
  bool addsToQuery = ontoQuery || count == 0;
  bool addsToItem = ontoItem || count < items->count;
  if (addsToQuery)
    detail::startSums(ontoQuery, queries->count * dim, dQuery);
  if (addsToItem)
    detail::startSums(ontoItem, items->count * dim, dItem);
  if (count == 0)
    return;
  void *scratch =
      genrec_rt_thread_scratch(step, matmulDynamicScratchBytes(count, dim));
  matmulDynamic(step->pool, /*transposeW=*/false, queries->count, count, dim, gradient, ldGradient,
                item + first * ldItem, ldItem, dQuery, dim, addsToQuery, scratch);
  scratch =
      genrec_rt_thread_scratch(step, matmulRowsDynamicScratchBytes(count, dim));
  matmulRowsDynamic(step->pool, queries->count, count, dim, gradient, ldGradient, query, ldQuery,
                    dItem + first * dim, dim, addsToItem, scratch);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_STEP_RANK_H
