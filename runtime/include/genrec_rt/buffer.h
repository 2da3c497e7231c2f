//===- buffer.h - Memory that grows and is reused ----------------*- C++ -*-===//

#ifndef GENREC_RT_BUFFER_H
#define GENREC_RT_BUFFER_H

#include "genrec_rt/footprint.h"

#include <cstdint>
#include <type_traits>
#include <utility>

namespace genrec::rt {

/// Memory aligned to 64 bytes (pages from 256 KiB on). Throws std::bad_alloc, also where
/// `bytes` is below 0 or beyond what a machine can hold.
/// Fresh large blocks are zero and take no memory until touched.
void *allocateAligned(int64_t bytes);
/// The same, all zero.
void *allocateZeroed(int64_t bytes);
void freeAligned(void *memory, int64_t bytes);
/// Asks for huge pages for memory of allocateAligned that is reached at random; large
/// blocks have them anyway. They come where such blocks lie side by side.
void adviseHugePages(void *memory, int64_t bytes);

/// How often allocateAligned ran in this process: what tests of the steady
/// state watch, beside operator new.
int64_t alignedAllocations();

/// An array of trivial T, aligned to 64 bytes, that only grows.
template <class T> class GrowBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

public:
  GrowBuffer() = default;
  GrowBuffer(GrowBuffer &&other) noexcept { swap(other); }
  GrowBuffer &operator=(GrowBuffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~GrowBuffer() { release(); }

  /// Makes room for `count` elements and returns them; the contents are lost
  /// when the array moves. Throws Error or std::bad_alloc where there is no such memory.
  T *ensure(int64_t count) {
    if (count > room) {
      release();
      int64_t wanted = capacityBucket(count);
      memory = static_cast<T *>(allocateAligned(
          (Size(wanted) * sizeof(T)).value([] { return "an array of the batch"; })));
      room = wanted;
    }
    return memory;
  }

  T *data() { return memory; }
  const T *data() const { return memory; }
  int64_t capacity() const { return room; }
  T &operator[](int64_t i) { return memory[i]; }
  const T &operator[](int64_t i) const { return memory[i]; }

  void release() {
    if (memory)
      freeAligned(memory, bytesOf(room));
    memory = nullptr;
    room = 0;
  }

private:
  static int64_t bytesOf(int64_t count) { return count * static_cast<int64_t>(sizeof(T)); }
  void swap(GrowBuffer &other) {
    std::swap(memory, other.memory);
    std::swap(room, other.room);
  }

  T *memory = nullptr;
  int64_t room = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_BUFFER_H
