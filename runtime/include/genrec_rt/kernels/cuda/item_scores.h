//===- item_scores.h - Scores of a catalogue's items on the device -*- C++ -*-===//
//
// Queries times items, and the gradients, as kernels/cpu/step_rank.h has them, by cuBLASLt where it
// takes them (library_products.h). Else scores have the CPU's bits; gradients, whose contractions
// may be long, have the bound of sized_products.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ITEM_SCORES_H
#define GENREC_RT_KERNELS_CUDA_ITEM_SCORES_H

#include "genrec_rt/kernels/cuda/rank.h"

namespace genrec::rt::cuda {

/// Which items are scored: `width` from item `first` on.
struct ScoredItems {
  int64_t first = 0, width = 0;
};

/// out[queries, width]; columns past the last item are kNoScore, rows past the last query zeros.
/// Where there are more items than that, row 0 is noted in `tooMany` (null: there may be). Of
/// `ranked` the excluded items are not read.
int64_t scoresScratchBytes(const RankedItems &ranked, const ScoredItems &scored, float *out);
void scoreItems(const RankedItems &ranked, const ScoredItems &scored, float *out,
                genrec_row_note *tooMany, void *scratch, cudaStream_t stream);

/// Gradients of scores, [queries, width]. Rows of `gradient` and of the queries behind the last one
/// may become 0.
struct ScoreGradients {
  const float *gradient = nullptr;
  int64_t ldGradient = 0;
  const float *ontoQuery = nullptr; ///< [queries, dim] dense, null: 0
  const float *ontoItem = nullptr;  ///< [items, dim] dense, null: 0
  float *query = nullptr;           ///< ontoQuery + gradient items, dense
  float *item = nullptr;            ///< ontoItem + gradient^T query, dense
};

int64_t scoreGradientsScratchBytes(const RankedItems &ranked, const ScoredItems &scored,
                                   const ScoreGradients &gradients);
void scoreItemsGradient(const RankedItems &ranked, const ScoredItems &scored,
                        const ScoreGradients &gradients, void *scratch, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ITEM_SCORES_H
