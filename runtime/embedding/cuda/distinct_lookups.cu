//===- distinct_lookups.cu - The distinct rows of lookups on a device -----===//

#include "distinct_lookups.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/cuda/domain_view.h"

namespace genrec::rt::cuda {

namespace {

/// Lookups of a launch, as its argument.
struct Lists {
  static constexpr int64_t kMost = 256;
  float *const *handles[kMost];
};

/// What of all lookups is numbered.
struct Numbered {
  int64_t parts, capacity;
  const genrec_domain *rows;
  int64_t *ids, *bounds;

  /// A segment per lookup, and one of what there is room for without rows, which has the id 0.
  __device__ void mark() const {
    const int64_t count = rows->count, places = parts * capacity;
    for (int64_t i = parts * count + threadInGrid(); i < places; i += threadsInGrid())
      ids[i] = 0;
    for (int64_t part = threadInGrid(); part <= parts; part += threadsInGrid())
      bounds[part] = part * count;
    if (threadInGrid() == 0)
      bounds[parts + 1] = places;
  }
};

/// ids[p * count + r] = the address of the row that lookup p found for row r; from lookup `first`
/// on.
__global__ void __launch_bounds__(kThreads) listLookups(Lists lists, int64_t first, Numbered to) {
  const int64_t count = to.rows->count, part = first + blockIdx.y;
  float *const *handles = lists.handles[blockIdx.y];
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    to.ids[part * count + i] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(handles[i]));
  if (part == 0)
    to.mark();
}

__global__ void describeDistinct(const int64_t *end, genrec_domain *distinct) {
  distinct->count = distinct->max_length = *end;
  distinct->offsets = nullptr;
  distinct->parent = nullptr;
  distinct->identity = nullptr;
  distinct->parent_domain = nullptr;
}

} // namespace

void DistinctLookupRows::run(const DeviceLookups &from, genrec_domain *distinct, float **rows,
                             void *memory, cudaStream_t stream) {
  const int64_t capacity = from.domain->capacity, parts = from.parts, places = parts * capacity;
  if (places >= INT32_MAX)
    throw Error("a batch may have " + std::to_string(places) +
                    " rows of lookups that are numbered, more than 2147483646",
                "use a smaller --batch");
  const DistinctLookups made(parts, from.domain, memory);
  ids.ensure(places, stream);
  bounds.ensure(parts + 2, stream);
  total.ensure(1, stream);
  const Numbered numbered{parts, capacity, made.rows, ids.data(), bounds.data()};
  for (int64_t first = 0; first < parts; first += Lists::kMost) {
    const int64_t some = std::min(Lists::kMost, parts - first);
    Lists lists{};
    std::copy_n(from.handles + first, some, lists.handles);
    LaunchShape shape = shapeOfThreads(capacity, kThreads);
    shape.grid.y = static_cast<unsigned>(some);
    GENREC_CUDA_LAUNCH(stream, shape, listLookups, lists, first, numbered);
  }
  UniqueResult result;
  result.ids = reinterpret_cast<int64_t *>(rows);
  result.inverse = made.numbers;
  result.offsets = made.starts;
  result.total = total.data();
  unique.run(ids.data(), places, bounds.data(), parts + 1, result, stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), describeDistinct, made.starts + parts,
                     distinct->device);
}

} // namespace genrec::rt::cuda
