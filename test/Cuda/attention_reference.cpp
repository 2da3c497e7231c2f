//===- attention_reference.cpp - Attention, naive, as the CPU has it ------===//
//
// Compiled for the host alone: tests of kernels, unoptimised and with each access checked, would
// spend most of their time in it.
//
//===----------------------------------------------------------------------===//

#include "attention_reference.h"

namespace genrec::rt::cuda::testing {

kernels::test::ReferenceResults
attentionReference(const kernels::test::ReferenceConfig &config,
                   const kernels::test::ReferenceInputs &in) {
  return kernels::test::Reference(config, in).run(true);
}

} // namespace genrec::rt::cuda::testing
