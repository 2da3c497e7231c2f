//===- distinct_lookups.h - The distinct rows of lookups --------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_SHARED_DISTINCT_LOOKUPS_H
#define GENREC_RT_KERNELS_SHARED_DISTINCT_LOOKUPS_H

#include <stdint.h>

namespace genrec::rt::kernels {

/// What genrec_rt_distinct_rows leaves: for each of `parts` lookups over `count` rows, where
/// its distinct rows begin, and which of them each row found, counted from there. Or some of those
/// lookups, a group for example.
struct DistinctLookups {
  int64_t parts, count;
  const int64_t *starts; ///< parts + 1
  const int32_t *index;  ///< parts * count

  explicit DistinctLookups(const void *memory) {
    const auto *header = static_cast<const int64_t *>(memory);
    parts = header[0];
    count = header[1];
    starts = header + 2;
    index = reinterpret_cast<const int32_t *>(starts + parts + 1);
  }
  /// `some` lookups from `first` on.
  DistinctLookups from(int64_t first, int64_t some) const {
    DistinctLookups own = *this;
    own.parts = some;
    own.starts += first;
    own.index += first * count;
    return own;
  }
  /// Distinct rows of the lookups before `part`, and of all.
  int64_t before(int64_t part) const { return starts[part] - starts[0]; }
  int64_t rows() const { return before(parts); }
  int64_t size(int64_t part) const { return starts[part + 1] - starts[part]; }
  int64_t mostRows() const {
    int64_t most = 0;
    for (int64_t part = 0; part < parts; ++part)
      most = size(part) > most ? size(part) : most;
    return most;
  }
};

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_DISTINCT_LOOKUPS_H
