//===- distinct_lookups.cu - The distinct rows of lookups on a device -----===//

#include "distinct_lookups.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/shared/described_rows.h"

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

/// Groups of lookups of a launch, as its argument.
struct Groups {
  static constexpr int64_t kMost = 256;
  float **rows[kMost];
  genrec_domain *distinct[kMost];
  int32_t begins[kMost + 1]; ///< the first lookup of each
};

/// Gives each group the distinct rows of its lookups.
__global__ void __launch_bounds__(kThreads)
    giveRows(__grid_constant__ const Groups groups, const int64_t *starts, const int64_t *found) {
  const int64_t begin = starts[groups.begins[blockIdx.y]],
                count = starts[groups.begins[blockIdx.y + 1]] - begin;
  auto *rows = reinterpret_cast<int64_t *>(groups.rows[blockIdx.y]);
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    rows[i] = found[begin + i];
  if (threadInGrid() == 0)
    kernels::describeRows(groups.distinct[blockIdx.y], count);
}

/// Launches giveRows for all groups.
void giveAllRows(const DeviceLookups &to, const int64_t *starts, const int64_t *found,
                 cudaStream_t stream) {
  Groups groups{};
  int32_t part = 0, most = 0;
  unsigned count = 0;
  for (size_t group = 0; group < to.of.groups.size(); ++group) {
    groups.rows[count] = to.of.rows[group];
    groups.distinct[count] = to.distinct[group]->device;
    groups.begins[count++] = part;
    groups.begins[count] = part += to.of.groups[group];
    most = std::max(most, to.of.groups[group]);
    if (count < Groups::kMost && group + 1 < to.of.groups.size())
      continue;
    LaunchShape shape = shapeOfThreads(most * to.domain->capacity, kThreads);
    shape.grid.y = count;
    GENREC_CUDA_LAUNCH(stream, shape, giveRows, groups, starts, found);
    count = most = 0;
  }
}

} // namespace

void DistinctLookupRows::run(const DeviceLookups &lookups, cudaStream_t stream) {
  const int64_t capacity = lookups.domain->capacity, parts = lookups.of.parts(),
                places = parts * capacity;
  if (places >= INT32_MAX)
    throw Error("a batch may have " + std::to_string(places) +
                    " rows of lookups that are numbered, more than 2147483646",
                "use a smaller --batch");
  const DistinctLookups made(parts, lookups.domain, lookups.of.places);
  ids.ensure(places, stream);
  found.ensure(places, stream);
  bounds.ensure(parts + 2, stream);
  total.ensure(1, stream);
  const Numbered numbered{parts, capacity, made.rows, ids.data(), bounds.data()};
  for (int64_t first = 0; first < parts; first += Lists::kMost) {
    const int64_t some = std::min(Lists::kMost, parts - first);
    Lists lists{};
    std::copy_n(lookups.of.handles + first, some, lists.handles);
    LaunchShape shape = shapeOfThreads(capacity, kThreads);
    shape.grid.y = static_cast<unsigned>(some);
    GENREC_CUDA_LAUNCH(stream, shape, listLookups, lists, first, numbered);
  }
  UniqueResult result;
  result.ids = found.data();
  result.inverse = made.numbers;
  result.offsets = made.starts;
  result.total = total.data();
  unique.run(ids.data(), places, bounds.data(), parts + 1, result, stream);
  giveAllRows(lookups, made.starts, found.data(), stream);
}

} // namespace genrec::rt::cuda
