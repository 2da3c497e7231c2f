//===- joined_gradients.h - Gradients of rows that q, k and v are columns of -*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_JOINED_GRADIENTS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_JOINED_GRADIENTS_H

#include "genrec_rt/kernels/cuda/attention/args.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/rounded_factors.h"

#include <algorithm>

namespace genrec::rt::cuda {

/// The gradient dx of rows x, of whose columns q, k and v are the silu: factors (factors.h), with
/// zeros behind the last row, up to the capacity. Rows are aligned to 16 bytes, and columns are
/// multiples of 8.
struct JoinedGradients {
  const float *x = nullptr;
  int64_t ldX = 0;
  Bf16 *dx = nullptr;
  int64_t width = 0;           ///< of x, and of a row of dx, which has nothing between
  int64_t q = 0, k = 0, v = 0; ///< the first columns of each
  /// The first `restWidth` columns of dx, which may be there already: then `rest` is dx.
  const Bf16 *rest = nullptr;
  int64_t ldRest = 0, restWidth = 0;
};

/// What attention does not write of dx: the rest, unless it is there, and zeros. In words of
/// `kInWord` elements.
template <int64_t kInWord>
__global__ void __launch_bounds__(kThreads)
    attentionFinishJoined(const genrec_domain *rows, JoinedGradients joined) {
  kernels::clearRowsBehind(rows, joined.dx, joined.width);
  if (joined.rest == nullptr || joined.rest == joined.dx)
    return;
  const int64_t restWords = joined.restWidth / kInWord, end = rows->count * restWords;
  for (int64_t i = threadInGrid(); i < end; i += threadsInGrid()) {
    const int64_t row = i / restWords, column = i % restWords * kInWord;
    storeWhole(joined.dx + row * joined.width + column,
               loadWhole<uint4>(joined.rest + row * joined.ldRest + column));
  }
}

/// Launches it for rows of a domain in device memory, of which there are at most `capacity`.
inline void finishJoined(const genrec_domain *rows, int64_t capacity, const JoinedGradients &joined,
                         cudaStream_t stream) {
  constexpr int64_t kInWord = 16 / sizeof(Bf16);
  const int64_t blocks = blocksFor(capacity * joined.width / kInWord, kThreads);
  const LaunchShape shape{dim3(static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, kMostBlocks))),
                          dim3(kThreads)};
  GENREC_CUDA_LAUNCH(stream, shape, (attentionFinishJoined<kInWord>), rows, joined);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_JOINED_GRADIENTS_H
