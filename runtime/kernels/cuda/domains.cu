//===- domains.cu - Domains as emitted stages make them -------------------===//

#include "genrec_rt/kernels/cuda/domains.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::kernels {

namespace {

__global__ void __launch_bounds__(cuda::kThreads)
    markValid(const genrec_domain *domain, const uint8_t *valid, bool *out) {
  const int64_t count = domain->count;
  for (int64_t row = cuda::threadInGrid(); row < count; row += cuda::threadsInGrid())
    out[row] = !valid || valid[row];
}

} // namespace

void validRows(genrec_step *step, const genrec_domain *domain, const uint8_t *valid, bool *out) {
  GENREC_CUDA_LAUNCH(streamOf(step), cuda::shapeOfThreads(domain->capacity, cuda::kThreads),
                     markValid, domain->device, valid, out);
}

} // namespace genrec::rt::kernels
