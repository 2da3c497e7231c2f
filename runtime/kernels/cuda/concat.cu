//===- concat.cu - Arrays of a device, one behind the other ---------------===//

#include "genrec_rt/kernels/cuda/concat.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>

namespace genrec::rt::cuda {

namespace {

/// Floats that a thread copies before a part gets another block.
constexpr int64_t kFloatsOfThread = 16;

struct ConcatParts {
  const float *from[kConcatParts];
  int64_t begins[kConcatParts + 1]; ///< in the result
};

/// Blocks in y have a part each, those in x share it.
__global__ void __launch_bounds__(kThreads)
    concatKernel(__grid_constant__ const ConcatParts parts, float *to) {
  const float *from = parts.from[blockIdx.y];
  const int64_t begin = parts.begins[blockIdx.y];
  const int64_t floats = parts.begins[blockIdx.y + 1] - begin;
  for (int64_t i = threadInGrid(); i < floats; i += threadsInGrid())
    to[begin + i] = from[i];
}

} // namespace

void concat(float *to, int64_t count, const float *const *parts, const int64_t *sizes,
            cudaStream_t stream) {
  ConcatParts table;
  for (int64_t first = 0; first < count; first += kConcatParts) {
    const int64_t here = std::min(kConcatParts, count - first);
    int64_t most = 0;
    table.begins[0] = 0;
    for (int64_t part = 0; part < here; ++part) {
      const int64_t floats = sizes[first + part];
      table.from[part] = parts[first + part];
      table.begins[part + 1] = table.begins[part] + floats;
      most = std::max(most, floats);
    }
    if (most > 0) {
      LaunchShape shape = shapeOfThreads((most + kFloatsOfThread - 1) / kFloatsOfThread, kThreads);
      shape.grid.y = static_cast<unsigned>(here);
      GENREC_CUDA_LAUNCH(stream, shape, concatKernel, table, to);
    }
    to += table.begins[here];
  }
}

} // namespace genrec::rt::cuda
