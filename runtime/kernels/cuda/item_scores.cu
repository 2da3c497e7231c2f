//===- item_scores.cu - Scores of a catalogue's items on the device -------===//

#include "genrec_rt/kernels/cuda/item_scores.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/library_products.h"
#include "genrec_rt/kernels/cuda/row_notes.h"

namespace genrec::rt::cuda {

namespace {

__global__ void noteTooMany(const genrec_domain *items, int64_t most, RowNote *tooMany) {
  if (items->count > most)
    noteRow(tooMany, nullptr, 0);
}

/// to = from, or 0 where that is null and past the last row.
__global__ void __launch_bounds__(kThreads) startSums(const genrec_domain *domain, int64_t capacity,
                                                      int64_t dim, const float *from, float *to) {
  const int64_t count = domain->count * dim;
  for (int64_t i = threadInGrid(); i < capacity * dim; i += threadsInGrid())
    to[i] = from && i < count ? from[i] : 0.0f;
}

/// How many of the scored items there may be.
int64_t mostScored(const RankedItems &r, const ScoredItems &scored) {
  return std::clamp<int64_t>(r.itemCapacity - scored.first, 0, scored.width);
}

/// The scored items that there are.
ProductSize sizeOfScored(const RankedItems &r, const ScoredItems &scored) {
  return {mostScored(r, scored), r.areItemsKnown ? nullptr : r.items, scored.first};
}

/// Columns of scores from `first` on become kNoScore, of rows past the last query 0.
__global__ void __launch_bounds__(kThreads)
    fillColumns(const genrec_domain *queries, int64_t capacity, int64_t first, int64_t width,
                float *out) {
  const int64_t columns = width - first;
  for (int64_t i = threadInGrid(); i < capacity * columns; i += threadsInGrid()) {
    const int64_t row = i / columns;
    out[row * width + first + i % columns] = row < queries->count ? kNoScore : 0.0f;
  }
}

SizedProduct scoresOf(const RankedItems &r, const ScoredItems &scored, float *out) {
  SizedProduct p;
  p.m = {r.queryCapacity, r.queries};
  p.k = {r.dim};
  p.n = sizeOfScored(r, scored);
  p.left = r.query, p.ldLeft = r.ldQuery;
  p.right = r.item + scored.first * r.ldItem, p.ldRight = r.ldItem;
  p.rightTransposed = true;
  p.result = out, p.ldResult = scored.width;
  p.rest = kNoScore;
  p.inOrder = true;
  return p;
}

SizedProduct queryGradient(const RankedItems &r, const ScoredItems &scored,
                           const ScoreGradients &g) {
  SizedProduct p;
  p.m = {r.queryCapacity, r.queries};
  p.k = sizeOfScored(r, scored);
  p.n = {r.dim};
  p.left = g.gradient, p.ldLeft = g.ldGradient;
  p.right = r.item + scored.first * r.ldItem, p.ldRight = r.ldItem;
  p.onto = g.ontoQuery, p.ldOnto = r.dim;
  p.result = g.query, p.ldResult = r.dim;
  return p;
}

/// Of the scored items; `startsWhole` where those are all, so that nothing is there before.
SizedProduct itemGradient(const RankedItems &r, const ScoredItems &scored, const ScoreGradients &g,
                          bool startsWhole) {
  const int64_t begin = scored.first * r.dim;
  SizedProduct p;
  p.m = sizeOfScored(r, scored);
  p.k = {r.queryCapacity, r.queries};
  p.n = {r.dim};
  p.left = g.gradient, p.ldLeft = g.ldGradient, p.leftTransposed = true;
  p.right = r.query, p.ldRight = r.ldQuery;
  p.onto = startsWhole ? g.ontoItem : g.item + begin, p.ldOnto = r.dim;
  p.result = g.item + begin, p.ldResult = r.dim;
  p.keepsRest = !startsWhole;
  return p;
}

bool areAllScored(const RankedItems &r, const ScoredItems &scored) {
  return scored.first == 0 && scored.width >= r.itemCapacity;
}

} // namespace

int64_t scoresScratchBytes(const RankedItems &ranked, const ScoredItems &scored, float *out) {
  return fastestScratchBytes(scoresOf(ranked, scored, out));
}

void scoreItems(const RankedItems &ranked, const ScoredItems &scored, float *out,
                genrec_row_note *tooMany, void *scratch, cudaStream_t stream) {
  const int64_t end = scored.first + scored.width, most = mostScored(ranked, scored);
  if (tooMany && ranked.itemCapacity > end)
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), noteTooMany, ranked.items, end, tooMany);
  multiplyFastest(scoresOf(ranked, scored, out), scratch, stream);
  const int64_t rest = ranked.queryCapacity * (scored.width - most);
  if (rest > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(rest, kThreads), fillColumns, ranked.queries,
                       ranked.queryCapacity, most, scored.width, out);
}

int64_t scoreGradientsScratchBytes(const RankedItems &ranked, const ScoredItems &scored,
                                   const ScoreGradients &gradients) {
  return std::max(
      fastestScratchBytes(queryGradient(ranked, scored, gradients)),
      fastestScratchBytes(itemGradient(ranked, scored, gradients, areAllScored(ranked, scored))));
}

void scoreItemsGradient(const RankedItems &ranked, const ScoredItems &scored,
                        const ScoreGradients &gradients, void *scratch, cudaStream_t stream) {
  multiplyFastest(queryGradient(ranked, scored, gradients), scratch, stream);
  const bool areAll = areAllScored(ranked, scored);
  if (!areAll && ranked.itemCapacity * ranked.dim > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(ranked.itemCapacity * ranked.dim, kThreads),
                       startSums, ranked.items, ranked.itemCapacity, ranked.dim, gradients.ontoItem,
                       gradients.item);
  multiplyFastest(itemGradient(ranked, scored, gradients, areAll), scratch, stream);
}

} // namespace genrec::rt::cuda
