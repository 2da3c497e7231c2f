//===- slices.h - Which rank owns a slice of rows ----------------*- C++ -*-===//

#ifndef GENREC_RT_SLICES_H
#define GENREC_RT_SLICES_H

#include <cstdint>

namespace genrec::rt {

/// Rows of a table are in slices, by the high bits of a hash of their ids (owner.h).
inline constexpr int32_t kSliceBits = 12, kSlices = 1 << kSliceBits;

/// The rank that owns `slice` where there are `ranks`, at most kSlices.
constexpr int32_t getOwner(int32_t slice, int32_t ranks) {
  return static_cast<int32_t>(static_cast<int64_t>(slice) * ranks >> kSliceBits);
}

/// The first slice that `rank` of `ranks` owns: its slices end where those of the next begin.
constexpr int32_t getFirstSlice(int32_t rank, int32_t ranks) {
  return static_cast<int32_t>((static_cast<int64_t>(rank) * kSlices + ranks - 1) / ranks);
}

} // namespace genrec::rt

#endif // GENREC_RT_SLICES_H
