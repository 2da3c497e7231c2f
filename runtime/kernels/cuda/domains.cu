//===- domains.cu - Domains as emitted stages make them -------------------===//

#include "genrec_rt/kernels/cuda/domains.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::kernels {

namespace {

__global__ void describe(genrec_domain *domain, int64_t rows, int64_t *offsets, int64_t count) {
  domain->count = domain->max_length = rows;
  domain->offsets = offsets;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
  offsets[count] = rows;
}

/// Offsets of up to so many parts, as arguments of a kernel.
constexpr int kOffsets = 128;
struct Offsets {
  int64_t of[kOffsets];
};

__global__ void writeOffsets(Offsets from, int64_t *to, int64_t count) {
  if (threadIdx.x < count)
    to[threadIdx.x] = from.of[threadIdx.x];
}

__global__ void __launch_bounds__(cuda::kThreads)
    markValid(const genrec_domain *domain, const uint8_t *valid, bool *out) {
  const int64_t count = domain->count;
  for (int64_t row = cuda::threadInGrid(); row < count; row += cuda::threadsInGrid())
    out[row] = !valid || valid[row];
}

} // namespace

void describeStack(genrec_domain *domain, int64_t *offsets, int64_t count,
                   const genrec_domain *const *parts, cudaStream_t stream) {
  Offsets values{};
  int64_t rows = 0, used = 0;
  for (int64_t part = 0; part < count; ++part) {
    values.of[used++] = rows;
    rows += parts[part]->capacity;
    if (used < kOffsets && part + 1 < count)
      continue;
    GENREC_CUDA_LAUNCH(stream, (cuda::LaunchShape{1, kOffsets}), writeOffsets, values,
                       offsets + part + 1 - used, used);
    used = 0;
  }
  GENREC_CUDA_LAUNCH(stream, (cuda::LaunchShape{1, 1}), describe, domain->device, rows, offsets,
                     count);
}

void validRows(genrec_step *step, const genrec_domain *domain, const uint8_t *valid, bool *out) {
  GENREC_CUDA_LAUNCH(streamOf(step), cuda::shapeOfThreads(domain->capacity, cuda::kThreads),
                     markValid, domain->device, valid, out);
}

} // namespace genrec::rt::kernels
