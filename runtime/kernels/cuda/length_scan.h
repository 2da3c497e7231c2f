//===- length_scan.h - Where lists begin, from their lengths ------*- C++ -*-===//
//
// Two passes: what blocks of lists add up to, then within blocks. A list is whatever
// has a length: Lists has lists() and length(list), the number of lists is read on
// the device.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LENGTH_SCAN_H
#define GENREC_RT_KERNELS_CUDA_LENGTH_SCAN_H

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"
#include "genrec_rt/kernels/cuda/list_domains.h"

namespace genrec::rt::cuda::scan {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
/// Lists that one block alone adds up: a launch less.
constexpr int64_t kListsOfOneBlock = 4096;

/// The greatest `value` of a block, in every thread; none is negative.
__device__ inline int64_t greatestOfBlock(int64_t value) {
  __shared__ int64_t greatest[kWarps];
  value = reduceLanes(value, [](int64_t a, int64_t b) { return max(a, b); });
  if (laneOf() == 0)
    greatest[warpOf()] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp)
    value = max(value, greatest[warp]);
  __syncthreads(); // the next call writes them
  return value;
}

/// Lists of each of the grid's blocks.
__device__ inline int64_t listsPerBlock(int64_t lists) {
  return (lists + gridDim.x - 1) / gridDim.x;
}

/// sums[block], greatest[block] of the lengths of its lists.
template <class Lists>
__global__ void __launch_bounds__(kThreads)
    addLengths(Lists from, int64_t *sums, int64_t *greatest) {
  const int64_t lists = from.lists(), each = listsPerBlock(lists);
  const int64_t end = min(lists, (blockIdx.x + 1) * each);
  int64_t sum = 0, most = 0, total;
  for (int64_t list = blockIdx.x * each + threadIdx.x; list < end; list += kThreads) {
    const int64_t length = from.length(list);
    sum += length;
    most = max(most, length);
  }
  exclusiveBlockSum<kThreads>(sum, total);
  most = greatestOfBlock(most);
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = total;
    greatest[blockIdx.x] = most;
  }
}

/// begins[list] of every list; finish(lists, total, longest) by one thread. `sums` and `greatest`
/// are not read by a single block.
template <class Lists, class Finish>
__global__ void __launch_bounds__(kThreads)
    writeBegins(Lists from, const int64_t *sums, const int64_t *greatest, int64_t *begins,
                Finish finish) {
  const int64_t lists = from.lists(), each = listsPerBlock(lists);
  const int64_t end = min(lists, (blockIdx.x + 1) * each);
  int64_t before = 0, all = 0, most = 0;
  if (gridDim.x > 1) {
    int64_t earlier = 0, any = 0;
    for (int64_t block = threadIdx.x; block < gridDim.x; block += kThreads) {
      any += sums[block];
      earlier += block < blockIdx.x ? sums[block] : 0;
      most = max(most, greatest[block]);
    }
    exclusiveBlockSum<kThreads>(earlier, before);
    exclusiveBlockSum<kThreads>(any, all);
  }
  for (int64_t base = blockIdx.x * each; base < end; base += kThreads) {
    const int64_t list = base + threadIdx.x, length = list < end ? from.length(list) : 0;
    int64_t total;
    const int64_t exclusive = exclusiveBlockSum<kThreads>(length, total);
    if (list < end)
      begins[list] = before + exclusive;
    before += total;
    most = max(most, length);
  }
  most = greatestOfBlock(most);
  if (blockIdx.x == 0 && threadIdx.x == 0)
    finish(lists, gridDim.x == 1 ? before : all, most);
}

/// `most` bounds the lists; `scratch` has kListScratchBytes.
template <class Lists, class Finish>
void run(const Lists &from, int64_t most, int64_t *begins, const Finish &finish, void *scratch,
         cudaStream_t stream) {
  const int64_t blocks = most <= kListsOfOneBlock
                             ? 1
                             : std::min<int64_t>(kLengthBlocks, blocksFor(most, 4 * kThreads));
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)};
  auto *sums = static_cast<int64_t *>(scratch), *greatest = sums + kLengthBlocks;
  if (blocks > 1)
    GENREC_CUDA_LAUNCH(stream, shape, addLengths<Lists>, from, sums, greatest);
  GENREC_CUDA_LAUNCH(stream, shape, (writeBegins<Lists, Finish>), from, sums, greatest, begins,
                     finish);
}

} // namespace genrec::rt::cuda::scan

#endif // GENREC_RT_KERNELS_CUDA_LENGTH_SCAN_H
