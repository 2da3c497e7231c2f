//===- row_sums.cu - Sums of the chunks of a row kernel -------------------===//

#include "genrec_rt/kernels/cuda/row_sums.h"

#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"
#include "genrec_rt/kernels/shared/rowbody.h"

#include <algorithm>

namespace genrec::rt::kernels {
namespace {

constexpr int kChunkThreads = 1024;
/// Chunks whose sums a thread loads together.
constexpr int kBatch = 16;

/// Adds neighbours, then their sums, and so on, of `count` values.
__device__ float addBatch(float (&values)[kBatch], int64_t count) {
#pragma unroll
  for (int by = 1; by < kBatch; by *= 2)
#pragma unroll
    for (int i = 0; i + by < kBatch; i += 2 * by)
      if (i + by < count)
        values[i] = values[i] + values[i + by];
  return values[0];
}

/// Sums of a tree whose leaves come one after another: level l holds the sum of 2^l leaves where
/// bit l of their number is set.
struct Tree {
  static constexpr int kLevels = 5; ///< of all batches that a thread can have
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

/// Results that a launch adds up, side by side: an argument of a kernel.
struct SumResults {
  static constexpr size_t kMost = 64;
  SumResult of[kMost];
  int count;
};

/// Where the sum of a column goes; null between the results.
__device__ float *placeOf(const SumResults &results, int64_t column) {
  for (int i = 0; i < results.count; ++i) {
    const SumResult &result = results.of[i];
    if (column < result.size)
      return result.to + column;
    column -= sumFloats(result.size);
    if (column < 0)
      break;
  }
  return nullptr;
}

/// The sum of chunks [begin, end) of a column; 0 of none.
__device__ float addPart(const float *column, int64_t floats, int64_t begin, int64_t end) {
  Tree tree;
  for (int64_t first = begin; first < end; first += kBatch) {
    // Behind the last chunk its sum is read once more: no load waits for a branch.
    const int64_t last = end - 1;
    float values[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i)
      values[i] = column[(first + i < last ? first + i : last) * floats];
    tree.add(addBatch(values, end - first));
  }
  return tree.sum();
}

/// A block adds up `columns` columns, a power of two: each row of threads a part of the chunks that
/// is a subtree, a power of two of them; then the parts.
__global__ void __launch_bounds__(kChunkThreads)
    addChunksKernel(const genrec_domain *domain, const float *sums, int64_t floats, int columns,
                    const SumResults results) {
  __shared__ float parts[kChunkThreads];
  const int64_t chunks = cutRows(domain->count, floats).count;
  const int count = kChunkThreads / columns, part = static_cast<int>(threadIdx.x) / columns;
  int64_t each = kBatch;
  while (each * count < chunks)
    each *= 2;
  const int64_t column = int64_t(blockIdx.x) * columns + threadIdx.x % columns;
  float *const place = placeOf(results, column);
  const int64_t begin = part * each, end = begin + each < chunks ? begin + each : chunks;
  parts[threadIdx.x] = place ? addPart(sums + column, floats, begin, end) : 0;
  for (int by = 1; by < count; by *= 2) {
    __syncthreads();
    // Of parts behind the last chunk nothing is added.
    if (part % (2 * by) == 0 && (part + by) * each < chunks)
      parts[threadIdx.x] = parts[threadIdx.x] + parts[threadIdx.x + by * columns];
  }
  if (part == 0 && place)
    *place = parts[threadIdx.x];
}

} // namespace

void addChunks(cudaStream_t stream, const genrec_domain *domain, const float *sums, int64_t floats,
               std::span<const SumResult> results) {
  for (; !results.empty(); results = results.subspan(std::min(results.size(), SumResults::kMost))) {
    SumResults some{};
    int64_t width = 0;
    for (const SumResult &result : results.first(std::min(results.size(), SumResults::kMost))) {
      some.of[some.count++] = result;
      width += sumFloats(result.size);
    }
    // A row of threads reads whole cache lines.
    const int columns = width > 16 ? 32 : 16;
    const cuda::LaunchShape shape{static_cast<unsigned>(cuda::blocksFor(width, columns)),
                                  kChunkThreads};
    GENREC_CUDA_LAUNCH(stream, shape, addChunksKernel, domain, sums, floats, columns, some);
    sums += width;
  }
}

} // namespace genrec::rt::kernels
