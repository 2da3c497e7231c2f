//===- row_sums.cu - Sums of the chunks of a row kernel -------------------===//

#include "genrec_rt/kernels/cuda/row_sums.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"
#include "genrec_rt/kernels/shared/rowbody.h"

namespace genrec::rt::kernels {
namespace {

constexpr int kColumns = 32, kParts = 8;
/// Levels of a tree over all chunks that there can be.
constexpr int kLevels = 14;

/// Sums of a tree whose leaves come one after another: level l holds the sum of 2^l leaves where
/// bit l of their number is set.
struct Tree {
  float level[kLevels];
  int64_t leaves = 0;

  __device__ void add(float value) {
    bool isCarried = true;
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      const bool isSet = leaves >> l & 1;
      if (isCarried && isSet)
        value = level[l] + value;
      if (isCarried && !isSet)
        level[l] = value;
      isCarried = isCarried && isSet;
    }
    ++leaves;
  }

  /// The sum of all leaves; 0 of none.
  __device__ float sum() const {
    float total = 0;
    bool isFirst = true;
#pragma unroll
    for (int l = 0; l < kLevels; ++l)
      if (leaves >> l & 1) {
        total = isFirst ? level[l] : level[l] + total;
        isFirst = false;
      }
    return total;
  }
};

/// Where the sum of a column goes; null between the results.
__device__ float *placeOf(const SumResults &results, int64_t column) {
  for (int i = 0; i < results.count; ++i) {
    if (column < results.size[i])
      return results.to[i] + column;
    column -= sumFloats(results.size[i]);
    if (column < 0)
      break;
  }
  return nullptr;
}

/// A block adds up 32 columns: each of its 8 warps a part of the chunks that is a subtree, a power
/// of two of them; then the parts.
__global__ void addChunksKernel(const genrec_domain *domain, const float *sums, int64_t floats,
                                const SumResults results) {
  __shared__ float parts[kParts][kColumns];
  const int64_t chunks = cutRows(domain->count, floats).count;
  int64_t each = 1;
  while (each * kParts < chunks)
    each *= 2;
  const int x = threadIdx.x % kColumns, part = threadIdx.x / kColumns;
  const int64_t column = int64_t(blockIdx.x) * kColumns + x;
  float *const place = placeOf(results, column);
  const int64_t begin = part * each, end = begin + each < chunks ? begin + each : chunks;
  Tree tree;
  if (place)
    for (int64_t chunk = begin; chunk < end; ++chunk)
      tree.add(sums[chunk * floats + column]);
  parts[part][x] = tree.sum();
  __syncthreads();
  if (part != 0 || !place)
    return;
  Tree top;
  for (int p = 0; p < kParts && p * each < chunks; ++p)
    top.add(parts[p][x]);
  *place = top.sum();
}

} // namespace

void addChunks(cudaStream_t stream, const genrec_domain *domain, const float *sums, int64_t floats,
               const SumResults &results) {
  cuda::LaunchShape shape{static_cast<unsigned>(cuda::blocksFor(floats, kColumns)),
                          kColumns * kParts};
  GENREC_CUDA_LAUNCH(stream, shape, addChunksKernel, domain, sums, floats, results);
}

} // namespace genrec::rt::kernels
