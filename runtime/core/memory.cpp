//===- memory.cpp - Aligned memory in buckets of size ---------------------===//

#include "genrec_rt/buffer.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include <sys/mman.h>

namespace genrec::rt {

namespace {

constexpr int64_t kAlignment = 64;
/// From here on memory comes in pages of its own, zero and untouched.
constexpr int64_t kMapBytes = 256 << 10;
/// From here on huge pages are worth asking for: table rows and arenas are
/// reached at random.
constexpr int64_t kHugeBytes = 8 << 20;

std::atomic<int64_t> allocations{0};

} // namespace

void *allocateAligned(int64_t bytes) {
  if (bytes < 0 || bytes > kLargestSize)
    throw std::bad_alloc();
  bytes = std::max(bytes, kAlignment);
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (bytes >= kMapBytes) {
    void *memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw std::bad_alloc();
    if (bytes >= kHugeBytes)
      adviseHugePages(memory, bytes);
    return memory;
  }
  size_t rounded = static_cast<size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment);
  void *memory = std::aligned_alloc(kAlignment, rounded);
  if (!memory)
    throw std::bad_alloc();
  return memory;
}

void *allocateZeroed(int64_t bytes) {
  void *memory = allocateAligned(bytes);
  if (bytes < kMapBytes)
    std::memset(memory, 0, static_cast<size_t>(bytes));
  return memory;
}

void freeAligned(void *memory, int64_t bytes) {
  if (!memory)
    return;
  if (bytes >= kMapBytes)
    munmap(memory, static_cast<size_t>(bytes));
  else
    std::free(memory);
}

void adviseHugePages(void *memory, int64_t bytes) {
  if (bytes >= kMapBytes) // a kernel that has none refuses, and nothing is lost
    madvise(memory, static_cast<size_t>(bytes), MADV_HUGEPAGE);
}

int64_t alignedAllocations() { return allocations.load(std::memory_order_relaxed); }

} // namespace genrec::rt
