//===- lookup_groups.h - Lookups whose distinct rows are found ---*- C++ -*-===//

#ifndef GENREC_RT_LOOKUP_GROUPS_H
#define GENREC_RT_LOOKUP_GROUPS_H

#include <cstdint>
#include <numeric>
#include <span>

namespace genrec::rt {

/// What genrec_rt_distinct_rows is given and fills: groups[g] lookups are in group g, and have its
/// distinct rows in rows[g].
struct LookupGroups {
  std::span<const int32_t> groups;
  float *const *const *handles = nullptr; ///< of each lookup
  float **const *rows = nullptr;          ///< of each group
  void *places = nullptr;                 ///< a DistinctLookups of kernels/cpu or kernels/cuda

  int64_t parts() const { return std::accumulate(groups.begin(), groups.end(), int64_t(0)); }
};

} // namespace genrec::rt

#endif // GENREC_RT_LOOKUP_GROUPS_H
