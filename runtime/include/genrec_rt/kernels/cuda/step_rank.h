//===- step_rank.h - Scoring a catalogue as emitted stages call it -*- C++ -*-===//
//
// The calls of cpu/step_rank.h, with counts on the device (rank.h, item_scores.h). What they cannot
// go on with is noted there and said when the step has ended.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_STEP_RANK_H
#define GENREC_RT_KERNELS_CUDA_STEP_RANK_H

#include "genrec_rt/kernels/cuda/item_scores.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

namespace detail {

inline constexpr const char *kNaNOfItems[] = {"a score is NaN"};
inline constexpr const char *kTooManyItems[] = {
    "the catalogue has more rows than the scores have columns"};
inline constexpr const char *kUnranked[] = {"the score is NaN",
                                            "the label is neither 0 nor 1"}; // by UnrankedReason

inline cuda::RankedItems rankedItems(int64_t dim, const genrec_domain *queries, const float *query,
                                     int64_t ldQuery, const genrec_domain *items, const float *item,
                                     int64_t ldItem) {
  cuda::RankedItems ranked;
  ranked.queries = queries->device;
  ranked.queryCapacity = queries->capacity;
  ranked.query = query;
  ranked.ldQuery = ldQuery;
  ranked.items = items->device;
  // Of a catalogue, whose rows are those of every step.
  ranked.itemCapacity = items->count >= 0 ? items->count : items->capacity;
  ranked.areItemsKnown = items->count >= 0;
  ranked.item = item;
  ranked.ldItem = ldItem;
  ranked.dim = dim;
  return ranked;
}

/// `excluding`: the domain of `excluded`, a child of the queries', or null. A score that is NaN is
/// a failure of op `op`.
inline void exclude(cuda::RankedItems &ranked, genrec_step *step, int32_t op,
                    const genrec_domain *excluding, const int64_t *excluded) {
  ranked.excluding = excluding ? excluding->device : nullptr;
  ranked.excludedCapacity = excluding ? excluding->capacity : 0;
  ranked.excluded = excluded;
  ranked.nanNote = genrec_rt_note_failure(step, op, nullptr, kNaNOfItems);
}

} // namespace detail

/// The k best items of each query; past the last item left index -1 and score kNoScore.
inline void topRows(genrec_step *step, int32_t op, int64_t dim, const genrec_domain *queries,
                    const float *query, int64_t ldQuery, const genrec_domain *items,
                    const float *item, int64_t ldItem, const genrec_domain *excluding,
                    const int64_t *excluded, int64_t k, int64_t *index, float *score) {
  auto ranked = detail::rankedItems(dim, queries, query, ldQuery, items, item, ldItem);
  detail::exclude(ranked, step, op, excluding, excluded);
  void *scratch = scratchOf(step, cuda::topItemsScratchBytes(ranked, k));
  cuda::topItems(ranked, k, index, score, scratch, streamOf(step));
}

/// The rank of each query's target among all items.
inline void rankRows(genrec_step *step, int32_t op, int64_t dim, const genrec_domain *queries,
                     const float *query, int64_t ldQuery, const genrec_domain *items,
                     const float *item, int64_t ldItem, const genrec_domain *excluding,
                     const int64_t *excluded, const int64_t *targets, int64_t *ranks) {
  auto ranked = detail::rankedItems(dim, queries, query, ldQuery, items, item, ldItem);
  detail::exclude(ranked, step, op, excluding, excluded);
  void *scratch = scratchOf(step, cuda::rankTargetsScratchBytes(ranked));
  cuda::rankTargets(ranked, targets, ranks, scratch, streamOf(step));
}

/// The ranks of the targets of each query, which are listed: rows of `listed`, a child of the
/// queries' domain.
inline void rankListedRows(genrec_step *step, int32_t op, int64_t dim, const genrec_domain *queries,
                           const float *query, int64_t ldQuery, const genrec_domain *items,
                           const float *item, int64_t ldItem, const genrec_domain *excluding,
                           const int64_t *excluded, const genrec_domain *listed,
                           const int64_t *targets, int64_t *ranks) {
  auto ranked = detail::rankedItems(dim, queries, query, ldQuery, items, item, ldItem);
  detail::exclude(ranked, step, op, excluding, excluded);
  void *scratch = scratchOf(step, cuda::rankListsScratchBytes(ranked, listed->capacity));
  cuda::rankLists(ranked, listed->device, listed->capacity, targets, ranks, scratch,
                  streamOf(step));
}

/// The ranks of the rows of each list of `domain` by their scores.
inline void rankInLists(genrec_step *step, int32_t op, const genrec_domain *domain,
                        const float *score, const float *label, const uint8_t *valid,
                        int64_t *ranks) {
  static_assert(cuda::kNaNScore == 0 && cuda::kNoLabel == 1);
  cuda::rankScoredLists(domain->device, domain->capacity, score, label, valid, ranks,
                        genrec_rt_note_failure(step, op, domain, detail::kUnranked),
                        streamOf(step));
}

/// out[queries, width] = query items^T of the items from row `first` on; columns past the last item
/// are kNoScore. More items than that are a failure unless `partial`.
inline void scores(genrec_step *step, int32_t op, int64_t dim, const genrec_domain *queries,
                   const float *query, int64_t ldQuery, const genrec_domain *items,
                   const float *item, int64_t ldItem, int64_t first, int64_t width, bool partial,
                   float *out) {
  genrec_row_note *tooMany =
      partial ? nullptr : genrec_rt_note_failure(step, op, nullptr, detail::kTooManyItems);
  const auto ranked = detail::rankedItems(dim, queries, query, ldQuery, items, item, ldItem);
  const cuda::ScoredItems scored{first, width};
  void *scratch = scratchOf(step, cuda::scoresScratchBytes(ranked, scored, out));
  cuda::scoreItems(ranked, scored, out, tooMany, scratch, streamOf(step));
}

/// dQuery = ontoQuery + gradient items; dItem = ontoItem + gradient^T query, of the `width` items
/// from row `first` on; null `onto…` are 0. Rows of dQuery, dItem and `onto…` lie densely.
inline void scoresGradient(genrec_step *step, int64_t dim, const genrec_domain *queries,
                           const float *query, int64_t ldQuery, const genrec_domain *items,
                           const float *item, int64_t ldItem, const float *gradient,
                           int64_t ldGradient, int64_t first, int64_t width, const float *ontoQuery,
                           const float *ontoItem, float *dQuery, float *dItem) {
  const auto ranked = detail::rankedItems(dim, queries, query, ldQuery, items, item, ldItem);
  const cuda::ScoredItems scored{first, width};
  const cuda::ScoreGradients gradients{gradient, ldGradient, ontoQuery, ontoItem, dQuery, dItem};
  void *scratch = scratchOf(step, cuda::scoreGradientsScratchBytes(ranked, scored, gradients));
  cuda::scoreItemsGradient(ranked, scored, gradients, scratch, streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_STEP_RANK_H
