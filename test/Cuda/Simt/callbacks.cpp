//===- callbacks.cpp - What -fsanitize=thread calls before an access ------===//
//
// Test code is compiled, not linked, with that flag, nor with those of the undefined-behaviour
// sanitizer: these take the place of their runtimes.
//
//===----------------------------------------------------------------------===//

#include "machine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

/// Where the undefined-behaviour sanitizer is called from, the first that it tells.
struct SourcePlace {
  const char *file;
  uint32_t line, column;
};

[[noreturn]] void accuse(std::string what, const void *data) {
  SourcePlace place;
  std::memcpy(&place, data, sizeof(place));
  const std::string file = place.file ? place.file : "?";
  what += " at " + file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line);
  if (simt::machine.thread)
    simt::fail(what + " in " + simt::whoIs(*simt::machine.block, *simt::machine.thread));
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

} // namespace

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}

// Most accesses are of a thread's own stack, which nothing is wrong with.
#define SIMT_ACCESS(at, bytes, isWrite, isAligned)                                                 \
  do {                                                                                             \
    if (simt::insideEngine)                                                                        \
      break;                                                                                       \
    if (!simt::onDevice) {                                                                         \
      if (simt::isOfArena(at))                                                                     \
        simt::checkHost(at, bytes);                                                                \
      break;                                                                                       \
    }                                                                                              \
    simt::machine.accessedFrom = __builtin_return_address(0);                                      \
    if (simt::isOwnStack(at))                                                                      \
      break;                                                                                       \
    if (isAligned && reinterpret_cast<uintptr_t>(at) % bytes)                                      \
      simt::checkAlignment(at, bytes);                                                             \
    simt::checkAccess(at, bytes, isWrite);                                                         \
  } while (false)
#define SIMT_ACCESSES(bytes)                                                                       \
  void __tsan_unaligned_read##bytes(void *at) { SIMT_ACCESS(at, bytes, false, false); }            \
  void __tsan_unaligned_write##bytes(void *at) { SIMT_ACCESS(at, bytes, true, false); }            \
  void __tsan_unaligned_read_write##bytes(void *at) {                                              \
    SIMT_ACCESS(at, bytes, false, false);                                                          \
    SIMT_ACCESS(at, bytes, true, false);                                                           \
  }                                                                                                \
  void __tsan_read##bytes(void *at) { SIMT_ACCESS(at, bytes, false, true); }                       \
  void __tsan_write##bytes(void *at) { SIMT_ACCESS(at, bytes, true, true); }                       \
  void __tsan_read_write##bytes(void *at) {                                                        \
    SIMT_ACCESS(at, bytes, false, true);                                                           \
    SIMT_ACCESS(at, bytes, true, true);                                                            \
  }
SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)

void __tsan_read_range(void *at, uintptr_t bytes) { SIMT_ACCESS(at, bytes, false, false); }
void __tsan_write_range(void *at, uintptr_t bytes) { SIMT_ACCESS(at, bytes, true, false); }

void *__tsan_memcpy(void *to, const void *from, uintptr_t bytes) {
  if (bytes) {
    SIMT_ACCESS(from, bytes, false, false);
    SIMT_ACCESS(to, bytes, true, false);
  }
  return std::memcpy(to, from, bytes);
}
void *__tsan_memmove(void *to, const void *from, uintptr_t bytes) {
  if (bytes) {
    SIMT_ACCESS(from, bytes, false, false);
    SIMT_ACCESS(to, bytes, true, false);
  }
  return std::memmove(to, from, bytes);
}
void *__tsan_memset(void *to, int value, uintptr_t bytes) {
  if (bytes)
    SIMT_ACCESS(to, bytes, true, false);
  return std::memset(to, value, bytes);
}

// -fsanitize=array-bounds: an index outside of an array whose size the compiler sees.
void __ubsan_handle_out_of_bounds_abort(void *data, uintptr_t index) {
  simt::Inside inside;
  accuse("out of bounds: index " + std::to_string(static_cast<int64_t>(index)), data);
}

// -fsanitize=alignment: what the compiler may read in parts, so that no access above is as wide as
// the type.
void __ubsan_handle_type_mismatch_v1_abort(void *data, uintptr_t) {
  simt::Inside inside;
  struct {
    SourcePlace place;
    void *type;
    uint8_t logAlignment;
  } access;
  std::memcpy(&access, data, sizeof(access));
  accuse("misaligned address: not a multiple of " + std::to_string(1 << access.logAlignment), data);
}

// -fsanitize=shift-exponent: by as many bits as the type has, and more, a device shifts all out, and
// this machine as many as are left over.
void __ubsan_handle_shift_out_of_bounds_abort(void *data, uintptr_t, uintptr_t by) {
  simt::Inside inside;
  accuse("shift by " + std::to_string(static_cast<int32_t>(by)) + " bits", data);
}

// -fsanitize=float-cast-overflow: of what an integer cannot hold a device makes the nearest that it
// can, this machine the least.
void __ubsan_handle_float_cast_overflow_abort(void *data, uintptr_t) {
  simt::Inside inside;
  accuse("a float that the integer cannot hold", data);
}

// What `__builtin_assume_aligned` promises: optimised code has often shown it before.
void __ubsan_handle_alignment_assumption_abort(void *data, uintptr_t, uintptr_t alignment,
                                               uintptr_t) {
  simt::Inside inside;
  accuse("misaligned address: not a multiple of " + std::to_string(alignment), data);
}

} // extern "C"
