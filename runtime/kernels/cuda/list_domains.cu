//===- list_domains.cu - Making domains on the device ---------------------===//

#include "genrec_rt/kernels/cuda/list_domains.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/offsets.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
/// Lists that one block alone adds up: a launch less.
constexpr int64_t kListsOfOneBlock = 4096;

/// The greatest `value` of a block, in every thread; none is negative.
__device__ int64_t greatestOfBlock(int64_t value) {
  __shared__ int64_t greatest[kWarps];
  for (int by = kWarp / 2; by > 0; by /= 2)
    value = max(value, __shfl_xor_sync(kAllLanes, value, by));
  if (laneOf() == 0)
    greatest[warpOf()] = value;
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp)
    value = max(value, greatest[warp]);
  __syncthreads(); // the next call writes them
  return value;
}

//===----------------------------------------------------------------------===//
// What lists of a new domain are: how many, how long, which rows
//===----------------------------------------------------------------------===//

struct Truncated {
  const genrec_domain *source;
  int64_t most;
  bool last;

  __device__ const genrec_domain *above() const { return source->parent_domain; }
  __device__ int64_t lists() const { return listCount(source); }
  __device__ int64_t length(int64_t list) const { return min(listLength(source, list), most); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    const int64_t skipped = last ? listLength(source, list) - length(list) : 0;
    return source->identity[listBegin(source, list) + skipped + ordinal];
  }
};

struct Lengthened {
  static constexpr uint64_t kFirstNewOrdinal = uint64_t(1) << 32;
  const genrec_domain *source;
  int64_t least;
  bool front;

  __device__ const genrec_domain *above() const { return source->parent_domain; }
  __device__ int64_t lists() const { return listCount(source); }
  __device__ int64_t length(int64_t list) const { return max(listLength(source, list), least); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    const int64_t own = listLength(source, list), begin = front ? length(list) - own : 0;
    if (ordinal >= begin && ordinal < begin + own)
      return source->identity[listBegin(source, list) + ordinal - begin];
    const int64_t added = ordinal < begin ? ordinal : ordinal - own;
    return mixIdentity(source->parent_domain->identity[list],
                       kFirstNewOrdinal + static_cast<uint64_t>(added));
  }
};

struct Joined {
  const genrec_domain *parent;
  JoinedDomains parts;

  __device__ const genrec_domain *above() const { return parent; }
  __device__ int64_t lists() const { return parent->count; }
  __device__ int64_t lengthOf(int part, int64_t list) const {
    return parts.parts[part] == parent ? 1 : listLength(parts.parts[part], list);
  }
  __device__ int64_t length(int64_t list) const {
    int64_t rows = 0;
    for (int part = 0; part < parts.count; ++part)
      rows += lengthOf(part, list);
    return rows;
  }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t) const {
    int part = 0;
    for (int64_t rows; ordinal >= (rows = lengthOf(part, list)); ++part)
      ordinal -= rows;
    const genrec_domain *from = parts.parts[part];
    const int64_t begin = from == parent ? list : listBegin(from, list);
    return mixIdentity(from->identity[begin + ordinal], static_cast<uint64_t>(part));
  }
};

struct Paired {
  const genrec_domain *first, *second;

  __device__ const genrec_domain *above() const { return first; }
  __device__ int64_t lists() const { return first->count; }
  __device__ int64_t length(int64_t row) const { return listLength(second, first->parent[row]); }
  __device__ uint64_t identity(int64_t row, int64_t ordinal, int64_t) const {
    return mixIdentity(first->identity[row], static_cast<uint64_t>(ordinal));
  }
};

struct Taken {
  const genrec_domain *source, *parent;
  const int64_t *parents;
  int64_t *rows;

  __device__ const genrec_domain *above() const { return parent; }
  __device__ int64_t lists() const { return parent->count; }
  __device__ int64_t length(int64_t list) const { return listLength(source, parents[list]); }
  __device__ uint64_t identity(int64_t list, int64_t ordinal, int64_t row) const {
    const int64_t from = listBegin(source, parents[list]) + ordinal;
    rows[row] = from;
    return source->identity[from];
  }
};

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Lists of each of the grid's blocks.
__device__ int64_t listsPerBlock(int64_t lists) { return (lists + gridDim.x - 1) / gridDim.x; }

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

/// Where lists begin, and the domain. `sums` and `greatest` are not read by a single block.
template <class Lists>
__global__ void __launch_bounds__(kThreads)
    writeOffsets(Lists from, const int64_t *sums, const int64_t *greatest, NewLists made) {
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
      made.offsets[list] = before + exclusive;
    before += total;
    most = max(most, length);
  }
  most = greatestOfBlock(most);
  if (blockIdx.x != 0 || threadIdx.x != 0)
    return;
  if (gridDim.x == 1)
    all = before;
  made.offsets[lists] = all;
  made.domain->count = all;
  made.domain->offsets = made.offsets;
  made.domain->parent = made.parent;
  made.domain->identity = made.identity;
  made.domain->parent_domain = from.above();
  made.domain->max_length = most;
}

/// Parents and identities of the new rows.
template <class Lists>
__global__ void __launch_bounds__(kThreads) writeRows(Lists from, NewLists made) {
  const int64_t lists = from.lists(), count = made.domain->count;
  for (int64_t row = threadInGrid(); row < count; row += threadsInGrid()) {
    const int64_t list = lastAtMost(made.offsets, lists, row);
    made.parent[row] = list;
    made.identity[row] = from.identity(list, row - made.offsets[list], row);
  }
}

template <class Lists> void make(const Lists &from, const NewLists &made, cudaStream_t stream) {
  const int64_t blocks =
      made.lists <= kListsOfOneBlock
          ? 1
          : std::min<int64_t>(kLengthBlocks, blocksFor(made.lists, 4 * kThreads));
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)};
  auto *sums = static_cast<int64_t *>(made.scratch), *greatest = sums + kLengthBlocks;
  if (blocks > 1)
    GENREC_CUDA_LAUNCH(stream, shape, addLengths<Lists>, from, sums, greatest);
  GENREC_CUDA_LAUNCH(stream, shape, writeOffsets<Lists>, from, sums, greatest, made);
  if (made.capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(made.capacity, kThreads), writeRows<Lists>, from,
                       made);
}

__global__ void describeRoot(genrec_domain *domain, int64_t count) {
  domain->count = count;
  domain->offsets = nullptr;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
  domain->max_length = count;
}

} // namespace

void makeFixedRows(genrec_domain *domain, int64_t count, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), describeRoot, domain, count);
}

void truncateLists(const genrec_domain *source, int64_t most, bool last, const NewLists &made,
                   cudaStream_t stream) {
  make(Truncated{source, most, last}, made, stream);
}

void lengthenLists(const genrec_domain *source, int64_t least, bool front, const NewLists &made,
                   cudaStream_t stream) {
  make(Lengthened{source, least, front}, made, stream);
}

void joinLists(const genrec_domain *above, const JoinedDomains &parts, const NewLists &made,
               cudaStream_t stream) {
  make(Joined{above, parts}, made, stream);
}

void pairLists(const genrec_domain *first, const genrec_domain *second, const NewLists &made,
               cudaStream_t stream) {
  make(Paired{first, second}, made, stream);
}

void takeLists(const genrec_domain *source, const genrec_domain *above, const int64_t *parents,
               int64_t *rows, const NewLists &made, cudaStream_t stream) {
  make(Taken{source, above, parents, rows}, made, stream);
}

} // namespace genrec::rt::cuda
