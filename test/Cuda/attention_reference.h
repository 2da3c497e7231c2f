//===- attention_reference.h - What attention is held to ---------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_ATTENTION_REFERENCE_H
#define GENREC_TEST_CUDA_ATTENTION_REFERENCE_H

#include "../Runtime/kernels_attention_reference.h"

namespace genrec::rt::cuda::testing {

/// Forward and backward.
#ifdef __CUDACC__
inline kernels::test::ReferenceResults
attentionReference(const kernels::test::ReferenceConfig &config,
                   const kernels::test::ReferenceInputs &in) {
  return kernels::test::Reference(config, in).run(true);
}
#else
kernels::test::ReferenceResults
attentionReference(const kernels::test::ReferenceConfig &config,
                   const kernels::test::ReferenceInputs &in);
#endif

} // namespace genrec::rt::cuda::testing

#endif // GENREC_TEST_CUDA_ATTENTION_REFERENCE_H
