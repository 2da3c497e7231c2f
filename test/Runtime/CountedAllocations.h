//===- CountedAllocations.h - How often operator new runs -------*- C++ -*-===//
//
// The test program's operator new counts; alignedAllocations() of genrec_rt/buffer.h counts the
// rest.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_COUNTEDALLOCATIONS_H
#define GENREC_TEST_RUNTIME_COUNTEDALLOCATIONS_H

#include <atomic>
#include <cstdint>

namespace genrec::rt::test {

/// Allocations through operator new on threads that a test marks as step threads, or on
/// every thread.
extern std::atomic<int64_t> stepAllocations;
extern std::atomic<bool> countsEveryThread;
extern thread_local bool isStepThread;

} // namespace genrec::rt::test

#endif // GENREC_TEST_RUNTIME_COUNTEDALLOCATIONS_H
