//===- arena.h - The planned buffers of one step -----------------*- C++ -*-===//
//
// The compiler says how large each buffer is as a function of a domain's capacity
// and from which op to which op it lives; offsets follow once per set of
// capacities. Buffers whose lives do not meet share memory.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_ARENA_H
#define GENREC_RT_SESSION_ARENA_H

#include "genrec_rt/device.h"
#include "genrec_rt/footprint.h"

#include <cstdint>
#include <span>

namespace genrec::rt {

/// packArena of the buffers of a program; `capacities` is indexed by domain.
ArenaLayout layOut(std::span<const genrec_buffer_desc> buffers,
                   std::span<const int64_t> capacities);

/// The memory that a slot's programs take turns in; grows only.
class Arena {
public:
  /// In memory of the host, or of a device.
  explicit Arena(Device *device = nullptr) : device(device) {}
  ~Arena() { release(); }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  /// Makes room for `bytes`; the contents are lost when it grows.
  char *ensure(int64_t bytes);
  /// Takes the memory of another one, which gets this one's.
  void swap(Arena &other);
  int64_t bytes() const { return room; }
  /// How often memory was taken.
  int64_t allocations() const { return taken; }

private:
  void release();

  Device *device;
  char *memory = nullptr;
  int64_t room = 0;
  int64_t taken = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_ARENA_H
