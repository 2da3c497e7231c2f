//===- row_kernels.cu - Kernels of a row exchange on a device -------------===//

#include "row_kernels.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/offsets.h"
#include "genrec_rt/kernels/shared/described_rows.h"
#include "genrec_rt/kernels/shared/hash.h"
#include "genrec_rt/slices.h"

#include <bit>

namespace genrec::rt::cuda {

namespace {

/// 2^shift threads have a row.
int shiftOf(int64_t widest) {
  return std::min(5, static_cast<int>(std::bit_width(static_cast<uint64_t>(widest - 1))));
}

LaunchShape shapeOfRows(int64_t rows, int shift) { return shapeOfThreads(rows << shift, kThreads); }

/// Adds what threads have counted to *total: one addition of each block.
__device__ void addCounted(Word mine, Word *total) {
  __shared__ Word ofBlock;
  if (threadIdx.x == 0)
    ofBlock = 0;
  __syncthreads();
  if (mine)
    atomicAdd(&ofBlock, mine);
  __syncthreads(); // all have added
  if (threadIdx.x == 0 && ofBlock)
    atomicAdd(total, ofBlock);
}

__global__ void __launch_bounds__(kThreads)
    markKernel(int64_t *keys, int64_t count, Word *keysThere) {
  Word mine = 0;
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    if (keys[i] < 0)
      keys[i] = kNoKey;
    else
      ++mine;
  addCounted(mine, keysThere);
}

/// The member of all stores' that a key is of.
__device__ int64_t memberOf(const KeyOwners &owners, int64_t store, int64_t key) {
  const int64_t first = owners.firstMembers[store];
  return owners.firstMembers[store + 1] - first == 1 ? first
                                                     : first + (key >> owners.keyBits[store]);
}

__device__ int32_t ownerOfKey(const KeyOwners &owners, int64_t store, int64_t member, int64_t key) {
  const bool isOne = owners.firstMembers[store + 1] - owners.firstMembers[store] == 1;
  const int64_t id = isOne ? key : key & ((int64_t(1) << owners.keyBits[store]) - 1);
  const uint64_t hash = kernels::wholeXxh3(id, static_cast<int64_t>(owners.members[member]));
  return getOwner(static_cast<int32_t>(hash >> (64 - kSliceBits)), owners.ranks);
}

__global__ void __launch_bounds__(kThreads)
    cellKernel(DistinctKeys distinct, int64_t count, KeyOwners owners, uint32_t *cellOf) {
  const auto none = static_cast<uint32_t>((owners.ranks + 1) * distinct.stores);
  for (int64_t u = threadInGrid(); u < count; u += threadsInGrid()) {
    const int64_t key = u < *distinct.total ? distinct.keys[u] : kNoKey;
    if (key == kNoKey) {
      cellOf[u] = none;
      continue;
    }
    const int64_t store = lastAtMost(distinct.firsts, distinct.stores, u);
    const int64_t member = memberOf(owners, store, key);
    int32_t section = owners.sections[member];
    if (section < 0)
      section = ownerOfKey(owners, store, member, key);
    cellOf[u] = static_cast<uint32_t>(section * distinct.stores + store);
  }
}

__global__ void __launch_bounds__(kThreads)
    groupKernel(DistinctKeys distinct, int64_t count, const uint32_t *cellOf, const uint32_t *order,
                int64_t cells, uint32_t *positions, int64_t *grouped, int64_t *firsts) {
  for (int64_t at = threadInGrid(); at <= count; at += threadsInGrid()) {
    // Cells that begin here: those above the one before, up to the one here.
    const int64_t here = at < count ? cellOf[order[at]] : cells;
    const int64_t before = at > 0 ? int64_t(cellOf[order[at - 1]]) + 1 : 0;
    for (int64_t cell = before; cell <= here; ++cell)
      firsts[cell] = at;
    if (here == cells)
      continue;
    positions[order[at]] = static_cast<uint32_t>(at);
    grouped[at] = distinct.keys[order[at]];
  }
}

__global__ void __launch_bounds__(kThreads)
    reorderKernel(const int64_t *keys, const int64_t *from, const int64_t *to, int64_t cells,
                  int64_t count, int64_t *out) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const int64_t cell = lastAtMost(from, cells, i);
    out[to[cell] + i - from[cell]] = keys[i];
  }
}

__global__ void __launch_bounds__(kThreads)
    addressKernel(RowCells cells, const uint32_t *numbers, int64_t count, const uint32_t *cellOf,
                  const uint32_t *positions, float *values, float *zeros, float **rows) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const uint32_t number = numbers[i];
    const int64_t cell = cellOf[number];
    rows[i] = cell == cells.cells ? zeros
                                  : values + cells.values[cell] +
                                        (positions[number] - cells.firsts[cell]) *
                                            cells.rowFloats[cell % cells.stores];
  }
}

/// The cell of a store in which the value at float `at` is: its cells lie in the order of sections.
__device__ int64_t cellOfValue(const RowCells &cells, int64_t store, int64_t at) {
  int64_t low = 0, high = cells.cells / cells.stores; // the section is in [low, high)
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (cells.values[middle * cells.stores + store] <= at ? low : high) = middle;
  }
  return low * cells.stores + store;
}

__global__ void __launch_bounds__(kThreads)
    placeKernel(RowCells cells, int64_t store, const genrec_domain *touched, float *const *rows,
                const float *values, int64_t valueCount, const float *sums, int64_t dim, int shift,
                float *node) {
  const int64_t lanes = int64_t(1) << shift, lane = threadInGrid() & (lanes - 1);
  const int64_t count = touched->count, rowFloats = cells.rowFloats[store];
  for (int64_t i = threadInGrid() >> shift; i < count; i += threadsInGrid() >> shift) {
    if (rows[i] < values || rows[i] >= values + valueCount) // of another fetch
      continue;
    const int64_t at = rows[i] - values, cell = cellOfValue(cells, store, at);
    const int64_t row = (at - cells.values[cell]) / rowFloats;
    float *to = node + cells.begins[cell] + row * dim;
    for (int64_t c = lane; c < dim; c += lanes)
      to[c] = sums[i * dim + c];
    if (lane != 0)
      continue;
    reinterpret_cast<uint8_t *>(node)[cells.flags[cell] + row] = 1;
  }
}

__global__ void __launch_bounds__(kThreads)
    mergeKernel(RowCells cells, float *left, const float *right, int shift) {
  const int64_t lanes = int64_t(1) << shift, lane = threadInGrid() & (lanes - 1);
  for (int64_t row = threadInGrid() >> shift; row < cells.rows; row += threadsInGrid() >> shift) {
    const int64_t cell = lastAtMost(cells.firsts, cells.cells, row);
    const int64_t in = row - cells.firsts[cell], flag = cells.flags[cell] + in;
    if (!reinterpret_cast<const uint8_t *>(right)[flag])
      continue;
    const bool isInBoth = reinterpret_cast<const uint8_t *>(left)[flag];
    const int64_t dim = cells.dims[cell % cells.stores], at = cells.begins[cell] + in * dim;
    for (int64_t c = at + lane; c < at + dim; c += lanes)
      left[c] = isInBoth ? left[c] + right[c] : right[c];
  }
}

__global__ void __launch_bounds__(kThreads)
    mergeFlagsKernel(RowCells cells, float *left, const float *right) {
  for (int64_t row = threadInGrid(); row < cells.rows; row += threadsInGrid()) {
    const int64_t cell = lastAtMost(cells.firsts, cells.cells, row);
    const int64_t flag = cells.flags[cell] + row - cells.firsts[cell];
    if (reinterpret_cast<const uint8_t *>(right)[flag])
      reinterpret_cast<uint8_t *>(left)[flag] = 1;
  }
}

__global__ void __launch_bounds__(kThreads)
    askerKernel(AskedCells cells, const uint32_t *order, AskedRow *from) {
  for (int64_t k = threadInGrid(); k < cells.asked; k += threadsInGrid()) {
    const int64_t cell = lastAtMost(cells.firsts, cells.stores * cells.askers, order[k]);
    from[k] = {static_cast<int32_t>(cell % cells.askers),
               static_cast<int32_t>(order[k] - cells.firsts[cell])};
  }
}

__global__ void __launch_bounds__(kThreads) foundKernel(AskedCells cells, const uint32_t *numbers,
                                                        int32_t rank, uint32_t *seen, Word *found) {
  Word mine = 0;
  for (int64_t i = threadInGrid(); i < cells.asked; i += threadsInGrid()) {
    const int64_t cell = lastAtMost(cells.firsts, cells.stores * cells.askers, i);
    const auto asker = static_cast<int32_t>(cell % cells.askers);
    if (asker < cells.ranks || asker == cells.ranks + rank)
      mine += atomicExch(seen + numbers[i], 1u) == 0;
  }
  addCounted(mine, found);
}

/// Where a leaf has the sum of a row of a store that its rank asks for; null where it has none.
__device__ const float *sumIn(const OwnedRows &owned, const LeafNode &leaf, AskedRow row,
                              int64_t store) {
  const float *message = leaf.messages[row.asker >= owned.cells.ranks];
  const int64_t cell = row.asker * owned.cells.stores + store;
  if (!reinterpret_cast<const uint8_t *>(message)[owned.flags[cell] + row.place])
    return nullptr;
  return message + owned.begins[cell] + row.place * owned.dims[store];
}

/// Calls body(leaf, sum) for all sums of a distinct key, leaf by leaf from left to right, until it
/// returns false. Ranks have consecutive leaves.
template <class Body>
__device__ __forceinline__ void forSums(const OwnedRows &owned, int64_t number, int64_t store,
                                        const Body &body) {
  const int32_t ranks = owned.cells.ranks;
  const int64_t end = owned.segments[number + 1];
  for (int64_t first = owned.segments[number], last; first < end; first = last) {
    const int32_t rank = owned.from[first].asker % ranks;
    for (last = first + 1; last < end && owned.from[last].asker % ranks == rank;)
      ++last;
    for (int32_t i = owned.leafFirsts[rank]; i < owned.leafFirsts[rank + 1]; ++i) {
      const LeafNode leaf = owned.leaves[i];
      for (int64_t k = first; k < last; ++k)
        if (const float *sum = sumIn(owned, leaf, owned.from[k], store))
          if (!body(leaf, sum))
            return;
    }
  }
}

__global__ void __launch_bounds__(kThreads) touchedKernel(OwnedRows owned, uint8_t *touched) {
  const int64_t total = *owned.distinct.total;
  for (int64_t u = threadInGrid(); u < owned.cells.asked; u += threadsInGrid()) {
    bool isTouched = false;
    if (u < total)
      forSums(owned, u, lastAtMost(owned.distinct.firsts, owned.cells.stores, u),
              [&](const LeafNode &, const float *) {
                isTouched = true;
                return false;
              });
    touched[u] = isTouched;
  }
}

/// Flags before distinct key `u`.
__device__ int64_t flagsBefore(const OwnedRows &owned, const uint32_t *before,
                               const uint32_t *total, int64_t u) {
  return u < owned.cells.asked ? before[u] : *total;
}

/// Sums that come from left to right: before one joins, those are added that meet below the node
/// where it meets the one before (ranks/leaf_sums.cpp).
struct PendingSums {
  __device__ void add(float sum, int32_t firstPortion) {
    const int level = count ? 32 - __clz(before ^ firstPortion) : 0; // 0: two of one leaf
    while (count > 1 && meets[count - 1] <= level)
      addLast();
    sums[count] = sum;
    meets[count++] = level;
    before = firstPortion;
  }
  __device__ float addAll() {
    while (count > 1)
      addLast();
    return sums[0];
  }
  __device__ void addLast() {
    --count;
    sums[count - 1] += sums[count];
  }

  static constexpr int kMost = 32; ///< one per level of the tree
  float sums[kMost];
  int meets[kMost];
  int count = 0;
  int32_t before = 0;
};

/// One element of the sum of a distinct key.
__device__ float addLeavesOf(const OwnedRows &owned, int64_t number, int64_t store,
                             int64_t element) {
  PendingSums pending;
  forSums(owned, number, store, [&](const LeafNode &leaf, const float *sum) {
    pending.add(sum[element], leaf.firstPortion);
    return true;
  });
  return pending.addAll();
}

/// Whether this rank owns what an asker asks for: a key of a store.
__device__ bool isOwnedBy(const OwnedRows &owned, const KeyOwners &owners, int32_t rank,
                          int32_t asker, int64_t store, int64_t key) {
  return asker < owned.cells.ranks ||
         ownerOfKey(owners, store, memberOf(owners, store, key), key) == rank;
}

__global__ void __launch_bounds__(kThreads)
    leavesKernel(OwnedRows owned, KeyOwners owners, int32_t rank, const uint8_t *touched,
                 const uint32_t *before, const uint32_t *total, int shift, OwnedUpdates updates) {
  const int64_t lanes = int64_t(1) << shift, lane = threadInGrid() & (lanes - 1);
  for (int64_t u = threadInGrid() >> shift; u < owned.cells.asked; u += threadsInGrid() >> shift) {
    if (!touched[u])
      continue;
    const int64_t store = lastAtMost(owned.distinct.firsts, owned.cells.stores, u);
    const int64_t first = flagsBefore(owned, before, total, owned.distinct.firsts[store]);
    const int64_t at = before[u] - first, dim = owned.dims[store];
    for (int64_t c = lane; c < dim; c += lanes)
      updates.sums[updates.begins[store] + at * dim + c] = addLeavesOf(owned, u, store, c);
    if (lane != 0)
      continue;
    const int64_t to = updates.firsts[store] + at;
    const int64_t k = owned.segments[u], row = owned.order[k];
    updates.rows[to] = owned.rows[row];
    if (updates.isOwned)
      updates.isOwned[to] =
          isOwnedBy(owned, owners, rank, owned.from[k].asker, store, owned.distinct.keys[row]);
  }
}

__global__ void __launch_bounds__(kThreads)
    countKernel(OwnedRows owned, const uint32_t *before, const uint32_t *total, int64_t *counts) {
  for (int64_t store = threadInGrid(); store < owned.cells.stores; store += threadsInGrid())
    counts[store] = flagsBefore(owned, before, total, owned.distinct.firsts[store + 1]) -
                    flagsBefore(owned, before, total, owned.distinct.firsts[store]);
}

__global__ void describeKernel(genrec_domain *domain, const int64_t *count) {
  kernels::describeRows(domain, *count);
}

template <class T> __global__ void __launch_bounds__(kThreads) numberKernel(T *to, int64_t count) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to[i] = static_cast<T>(i);
}

__global__ void __launch_bounds__(kThreads) addKernel(float *to, const float *from, int64_t count) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to[i] += from[i];
}

} // namespace

void markNone(int64_t *keys, int64_t count, int64_t *keysThere, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(keysThere, 0, sizeof(int64_t), stream));
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), markKernel, keys, count,
                     reinterpret_cast<Word *>(keysThere));
}

void findCells(const DistinctKeys &distinct, int64_t count, const KeyOwners &owners,
               uint32_t *cellOf, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), cellKernel, distinct, count, owners,
                     cellOf);
}

void groupKeys(const DistinctKeys &distinct, int64_t count, const uint32_t *cellOf,
               const uint32_t *order, int64_t cells, uint32_t *positions, int64_t *grouped,
               int64_t *firsts, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count + 1, kThreads), groupKernel, distinct, count,
                     cellOf, order, cells, positions, grouped, firsts);
}

void reorderKeys(const int64_t *keys, const int64_t *from, const int64_t *to, int64_t cells,
                 int64_t count, int64_t *out, cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), reorderKernel, keys, from, to,
                       cells, count, out);
}

void giveAddresses(const RowCells &cells, const uint32_t *numbers, int64_t count,
                   const uint32_t *cellOf, const uint32_t *positions, float *values, float *zeros,
                   float **rows, cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), addressKernel, cells, numbers,
                       count, cellOf, positions, values, zeros, rows);
}

void placeSums(const RowCells &cells, int64_t store, const genrec_domain *touched, int64_t capacity,
               float *const *rows, const float *values, int64_t valueCount, const float *sums,
               int64_t dim, float *node, cudaStream_t stream) {
  const int shift = shiftOf(dim);
  if (capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfRows(capacity, shift), placeKernel, cells, store, touched,
                       rows, values, valueCount, sums, dim, shift, node);
}

void mergeSums(const RowCells &cells, float *left, const float *right, cudaStream_t stream) {
  if (cells.rows == 0)
    return;
  const int shift = shiftOf(cells.widest);
  GENREC_CUDA_LAUNCH(stream, shapeOfRows(cells.rows, shift), mergeKernel, cells, left, right,
                     shift);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(cells.rows, kThreads), mergeFlagsKernel, cells, left,
                     right);
}

void findAskers(const AskedCells &cells, const uint32_t *order, AskedRow *from,
                cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(cells.asked, kThreads), askerKernel, cells, order,
                     from);
}

void countFound(const AskedCells &cells, const uint32_t *numbers, int32_t rank, uint32_t *seen,
                int64_t *found, cudaStream_t stream) {
  GENREC_CUDA_CHECK(cudaMemsetAsync(found, 0, sizeof(int64_t), stream));
  GENREC_CUDA_CHECK(cudaMemsetAsync(seen, 0, static_cast<size_t>(cells.asked) * 4, stream));
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(cells.asked, kThreads), foundKernel, cells, numbers,
                     rank, seen, reinterpret_cast<Word *>(found));
}

void findTouched(const OwnedRows &owned, uint8_t *touched, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(owned.cells.asked, kThreads), touchedKernel, owned,
                     touched);
}

void addLeaves(const OwnedRows &owned, const KeyOwners &owners, int32_t rank,
               const uint8_t *touched, const uint32_t *before, const uint32_t *total,
               const OwnedUpdates &updates, cudaStream_t stream) {
  const int shift = shiftOf(owned.widest);
  GENREC_CUDA_LAUNCH(stream, shapeOfRows(owned.cells.asked, shift), leavesKernel, owned, owners,
                     rank, touched, before, total, shift, updates);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(owned.cells.stores, kThreads), countKernel, owned,
                     before, total, updates.counts);
}

void describeRows(genrec_domain *domain, const int64_t *count, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), describeKernel, domain, count);
}

template <class T> void fillNumbers(T *to, int64_t count, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), numberKernel<T>, to, count);
}
template void fillNumbers<int64_t>(int64_t *, int64_t, cudaStream_t);
template void fillNumbers<uint32_t>(uint32_t *, int64_t, cudaStream_t);

void addFloats(float *to, const float *from, int64_t count, cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(count, kThreads), addKernel, to, from, count);
}

} // namespace genrec::rt::cuda
