//===- CountedAllocations.cpp - how often operator new runs ---------------===//

#include "CountedAllocations.h"

#include <cstdlib>
#include <new>

namespace genrec::rt::test {
std::atomic<int64_t> stepAllocations{0};
std::atomic<bool> countsEveryThread{false};
thread_local bool isStepThread = false;
} // namespace genrec::rt::test

// The thread sanitizer has operators of its own, which a program cannot replace: nothing is counted then.
#if !__has_feature(thread_sanitizer)
using namespace genrec::rt::test;

void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  if (isStepThread || countsEveryThread.load(std::memory_order_relaxed))
    stepAllocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes ? bytes : 1);
}
void *operator new(size_t bytes) {
  if (void *memory = operator new(bytes, std::nothrow))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif
