// Instances of cross attention, compiled for the device: narrow heads, wide ones.

#include "genrec_rt/kernels/cuda/cross_attention.h"

namespace genrec::rt::cuda {

#define GENREC_CROSS_ATTENTION(...)                                                                \
  template void crossAttentionForward<__VA_ARGS__>(const CrossAttention &, float *, cudaStream_t); \
  template void crossAttentionBackward<__VA_ARGS__>(                                               \
      const CrossAttention &, const CrossAttentionGradients &, void *, cudaStream_t);
GENREC_CROSS_ATTENTION(20, 20, 20)
GENREC_CROSS_ATTENTION(1, 256, 256)
GENREC_CROSS_ATTENTION(1, 1000, 1000)

} // namespace genrec::rt::cuda
