//===- distinct_rows.cu - Distinct touched rows on a device ---------------===//

#include "distinct_rows.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kWarpsOfBlock = kThreads / kWarp;

/// One part of a DeviceGradients; its entries have the places from `first` on.
struct Part {
  const genrec_domain *domain;
  int64_t capacity, first;
  float *const *handles;
  const float *gradients;
  int64_t stride;
  const int64_t *parents;
};

/// Parts of a launch, as its argument.
struct Parts {
  static constexpr int64_t kMost = 64;
  Part of[kMost];
};

/// Of each entry the address of the row that it touches, or 0, and where its gradient is. A thread
/// has an entry if all are touched, else a warp, which looks for a gradient that is not 0.
template <bool kAll>
__global__ void __launch_bounds__(kThreads)
    listEntries(__grid_constant__ const Parts parts, int64_t dim, const float *zeros, int64_t *ids,
                const float **terms) {
  constexpr int kLanes = kAll ? 1 : kWarp;
  const Part &part = parts.of[blockIdx.y];
  const int64_t count = part.domain->count;
  for (int64_t i = threadInGrid() / kLanes; i < part.capacity; i += threadsInGrid() / kLanes) {
    const float *row = i < count ? part.handles[i] : zeros, *gradient = nullptr;
    bool isTouched = row != zeros;
    if (isTouched)
      gradient = part.gradients + (part.parents ? part.parents[i] : i) * part.stride;
    if (isTouched && !kAll) {
      // Of most gradients the first 32 columns tell, and the rest need not be read here.
      isTouched = false;
      for (int64_t base = 0; base < dim && !isTouched; base += kWarp) {
        const int64_t c = base + laneOf();
        isTouched = __ballot_sync(kAllLanes, c < dim && gradient[c] != 0) != 0;
      }
    }
    if (!kAll && laneOf() != 0)
      continue;
    const int64_t at = part.first + i;
    ids[at] = isTouched ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(row)) : 0;
    terms[at] = gradient;
  }
}

/// Launches listEntries for all parts.
void listAllEntries(const DeviceGradients &from, int64_t *ids, const float **terms,
                    cudaStream_t stream) {
  Parts parts{};
  int64_t first = 0, most = 0;
  unsigned count = 0;
  for (int32_t part = 0; part < from.parts; ++part) {
    const int64_t capacity = from.domains[part]->capacity;
    if (capacity > 0)
      parts.of[count++] = {from.domains[part]->device,
                           capacity,
                           first,
                           from.handles[part],
                           from.gradients[part],
                           from.strides[part],
                           from.parents[part]};
    first += capacity;
    most = std::max(most, capacity);
    if (count == 0 || (count < Parts::kMost && part + 1 < from.parts))
      continue;
    LaunchShape shape = shapeOfThreads(from.all ? most : most * kWarp, kThreads);
    shape.grid.y = count;
    GENREC_CUDA_LAUNCH(stream, shape, from.all ? listEntries<true> : listEntries<false>, parts,
                       from.dim, from.zeros, ids, terms);
    count = most = 0;
  }
}

/// A warp per row, 128 columns at a time: what segmentSum adds up where a kernel has the row.
__global__ void __launch_bounds__(kThreads)
    writeSums(const genrec_domain *touched, const SegmentSums *sums, int64_t dim, float *out) {
  constexpr int kEach = 4;
  const int64_t count = touched->count;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarpsOfBlock + warpOf(); row < count;
       row += static_cast<int64_t>(gridDim.x) * kWarpsOfBlock) {
    for (int64_t base = laneOf(); base - laneOf() < dim; base += kWarp * kEach) {
      float total[kEach] = {};
      addSegment(*sums, row, base, dim, total);
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < dim)
          out[row * dim + base + c * kWarp] = total[c];
    }
  }
}

} // namespace

void DistinctRows::sum(const genrec_domain *touched, const void *segments, int64_t dim, float *sums,
                       cudaStream_t stream) {
  if (touched->capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(touched->capacity * kWarp, kThreads), writeSums,
                       touched->device, static_cast<const SegmentSums *>(segments), dim, sums);
}

void DistinctRows::run(const DeviceGradients &from, SegmentReduction &sums, genrec_domain *touched,
                       float **rows, void *segments, cudaStream_t stream) {
  int64_t total = 0;
  for (int32_t part = 0; part < from.parts; ++part)
    total += from.domains[part]->capacity;
  ids.ensure(total + 1, stream);
  inverse.ensure(total + 1, stream);
  rowCount.ensure(1, stream);
  // GENREC_SEGMENT_BYTES_PER_ROW and GENREC_SEGMENT_BYTES have room for these.
  static_assert(sizeof(SegmentSums) <= 128);
  auto *offsets = reinterpret_cast<int64_t *>(static_cast<char *>(segments) + 128);
  auto *terms = reinterpret_cast<const float **>(offsets + total + 2);
  auto *order = reinterpret_cast<uint32_t *>(terms + total);
  listAllEntries(from, ids.data(), terms, stream);
  UniqueResult result;
  result.ids = reinterpret_cast<int64_t *>(rows);
  result.inverse = inverse.data();
  result.total = rowCount.data();
  unique.runWithoutZero(ids.data(), total, result, stream);
  stableOrder.run(inverse.data(), total, total + 1, order, stream);
  findSegments(inverse.data(), order, total, rowCount.data(), offsets, stream);
  SegmentTerms of;
  of.rows = terms;
  of.order = order;
  sums.run(total, rowCount.data(), from.dim, of, offsets, total,
           static_cast<SegmentSums *>(segments), touched->device, stream);
}

} // namespace genrec::rt::cuda
