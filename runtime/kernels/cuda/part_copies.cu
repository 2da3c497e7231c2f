//===- part_copies.cu - Rows copied part by part, rounded or padded -------===//

#include "genrec_rt/kernels/cuda/part_copies.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/factors.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256;

__device__ void storeElement(Bf16 *to, float x) { *to = bf16Factor(x); }
__device__ void storeElement(float *to, float x) { *to = x; }

template <class To> __global__ void __launch_bounds__(kThreads) copy(const PartCopy<To> c) {
  const int64_t left = c.rows ? c.rows->count - c.firstRow : c.capacity, width = c.parts * c.toSize;
  const int64_t rows = left < 0 ? 0 : left < c.capacity ? left : c.capacity;
  const int64_t end = (c.clearsRest ? c.capacity : rows) * width;
  for (int64_t i = threadInGrid(); i < end; i += threadsInGrid()) {
    const int64_t row = i / width, column = i % width, part = column / c.toSize,
                  at = column % c.toSize;
    const bool isThere = row < rows && at < c.fromSize;
    storeElement(c.to + row * c.ldTo + column,
                 isThere ? c.from[(c.firstRow + row) * c.ldFrom + part * c.fromSize + at] : 0.0f);
  }
}

template <class To> void launchCopy(const PartCopy<To> &c, cudaStream_t stream) {
  const int64_t elements = c.capacity * c.parts * c.toSize;
  if (elements > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(elements, kThreads), (copy<To>), c);
}

} // namespace

void copyParts(const PartCopy<Bf16> &copy, cudaStream_t stream) { launchCopy(copy, stream); }
void copyParts(const PartCopy<float> &copy, cudaStream_t stream) { launchCopy(copy, stream); }

} // namespace genrec::rt::cuda
