//===- attention_reference.h - What attention is held to ---------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_ATTENTION_REFERENCE_H
#define GENREC_TEST_CUDA_ATTENTION_REFERENCE_H

#include "../Runtime/kernels_attention_reference.h"

namespace genrec::rt::cuda::testing {

/// Forward and backward.
#ifdef __CUDACC__
inline kernels::testing::ReferenceResults
attentionReference(const kernels::testing::ReferenceConfig &config,
                   const kernels::testing::ReferenceInputs &in) {
  return kernels::testing::Reference(config, in).run(true);
}
#else
kernels::testing::ReferenceResults
attentionReference(const kernels::testing::ReferenceConfig &config,
                   const kernels::testing::ReferenceInputs &in);
#endif

} // namespace genrec::rt::cuda::testing

#endif // GENREC_TEST_CUDA_ATTENTION_REFERENCE_H
