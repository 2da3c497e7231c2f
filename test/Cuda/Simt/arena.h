//===- arena.h - Memory of devices, and pinned memory ------------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_ARENA_H
#define GENREC_TEST_CUDA_SIMT_ARENA_H

#include "operations.h"

#include <map>

namespace simt {

/// What a byte is.
enum Shadow : uint8_t { outside, fresh, written, freed };

struct Allocation {
  size_t bytes;
  MemoryKind kind;
  bool isLeaving = false; ///< cudaFreeAsync has been called
  OperationInfo made;     ///< by cudaMallocAsync: `what` is empty for others
};

constexpr size_t kPageBytes = 4096;

struct Arena {
  char *base = nullptr;
  uint8_t *shadow = nullptr;
  Note *notes = nullptr;              ///< by word
  History *history = nullptr;         ///< by word
  uint8_t *touched = nullptr;         ///< by page: there are notes
  size_t used[kMostDevices + 1] = {}; ///< of each region, from its beginning
  size_t usedAtEnd[kMostDevices] = {};
  int64_t inUse[kMostDevices] = {};
  int64_t count = 0;
  uint64_t changes = 0; ///< of `allocations`
  std::map<char *, Allocation> allocations;

  Arena();
  bool holds(const void *memory) const { return offsetOf(memory) < kArenaBytes; }
  size_t offsetOf(const void *memory) const {
    return static_cast<size_t>(static_cast<const char *>(memory) - base);
  }
  int regionOf(const void *memory) const {
    return static_cast<int>(offsetOf(memory) / kRegionBytes);
  }
  bool isPinned(const void *memory) const {
    return holds(memory) && regionOf(memory) == kMostDevices;
  }
  uint8_t *shadowOf(const void *memory) { return shadow + offsetOf(memory); }
  /// The allocation that `memory` is in or just behind.
  std::map<char *, Allocation>::iterator nearest(const void *memory);
  /// The one that starts there, or null.
  Allocation *startingAt(void *memory);
};
inline Arena &arena() {
  static Arena instance;
  return instance;
}

/// "at byte 4 of an allocation of 40 bytes"
std::string describeAddress(const void *memory);
/// Null where options().deviceBytes do not suffice.
void *allocate(size_t bytes, MemoryKind kind, int device);
void release(void *memory);
/// True where all bytes were allocated and not freed, or are not memory of the emulated devices.
bool isAllocated(const void *at, size_t bytes);

} // namespace simt

#endif // GENREC_TEST_CUDA_SIMT_ARENA_H
