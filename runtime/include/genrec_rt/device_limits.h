//===- device_limits.h - What kernels of a device have room for --*- C++ -*-===//
//
// What the compiler refuses, so that no model fails when it runs, or in nvcc.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DEVICE_LIMITS_H
#define GENREC_RT_DEVICE_LIMITS_H

#include <cstdint>

namespace genrec::rt {

/// Lists, or values of lists, that are joined by one call: arguments of its kernel.
constexpr int64_t kMostJoinedParts = 128;
/// Columns of a head's keys and values together: a tile of both and of their gradients is in shared
/// memory, of which a block has 227 KiB.
constexpr int64_t kMostHeadColumns = 1760;
/// The same of cross attention, whose warps each keep a row of both beside a tile: 48 KiB for one.
constexpr int64_t kMostCrossHeadColumns = 11232;
/// Pointers that a kernel takes: 32,764 bytes of arguments, from CUDA 12.1 and compute capability
/// 7.0 on.
constexpr int64_t kMostKernelArguments = 32764 / 8;
/// Bytes of the columns, and of their pointers, that one launch transforms (Columns in
/// row_mapping.h); the most that it passes; and what it passes at a time of a model that has more.
constexpr int64_t columnBytes(int64_t columns, int64_t pointers) {
  return (24 * columns + 4 + 7) / 8 * 8 + 8 * pointers;
}
constexpr int64_t kMostColumnBytes = 32000, kSomeColumns = 512, kSomeColumnPointers = 2450;
static_assert(columnBytes(kSomeColumns, kSomeColumnPointers) <= kMostColumnBytes);

/// Threads of a block that runs a column, and rows that it takes where a row has one of them; the
/// widest row that these threads have for themselves.
constexpr int64_t kColumnThreads = 256, kColumnRows = 4 * kColumnThreads, kMostColumnWidth = 8192;

} // namespace genrec::rt

#endif // GENREC_RT_DEVICE_LIMITS_H
