//===- ranked_scores.h - Scores of single items ----------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_RANKED_SCORES_H
#define GENREC_RT_KERNELS_CUDA_RANKED_SCORES_H

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/rank.h"

namespace genrec::rt::cuda {

/// The score of one item, by the additions of product_tile.h.
__device__ inline float scoreOf(const RankedItems &r, int64_t query, int64_t item) {
  const float *left = r.query + query * r.ldQuery, *right = r.item + item * r.ldItem;
  float sum = 0;
  for (int64_t c = 0; c < r.dim; ++c)
    sum = fmaf(left[c], right[c], sum);
  return sum;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_RANKED_SCORES_H
