//===- device_memory.h - Memory of a device that grows -----------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_DEVICE_MEMORY_H
#define GENREC_RT_SESSION_DEVICE_MEMORY_H

#include "genrec_rt/device.h"

#include <memory>
#include <vector>

namespace genrec::rt {

/// One allocation of a device, or of pinned memory of the host, that only grows. Nobody may use
/// what was there before when it does.
class DeviceMemory {
public:
  enum class Kind { device, pinned };
  DeviceMemory(Device &device, const char *name, Kind kind = Kind::device)
      : device(device), name(name), kind(kind) {}
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;
  ~DeviceMemory() { release(); }

  /// Room for `bytes`; the contents are lost when it moves.
  char *ensure(int64_t bytes) {
    if (bytes > room || !memory) {
      const int64_t wanted = bytes + bytes / 8 + 256;
      if (memory && kind == Kind::pinned)
        device.watchQueues();
      release();
      memory = static_cast<char *>(kind == Kind::device ? device.allocate(name, wanted)
                                                        : device.allocatePinned(name, wanted));
      room = wanted;
      ++taken;
    }
    return memory;
  }
  char *data() const { return memory; }
  int64_t bytes() const { return room; }
  int64_t allocations() const { return taken; }

private:
  void release() {
    if (memory && kind == Kind::device)
      device.release(memory);
    else if (memory)
      device.releasePinned(memory);
    memory = nullptr;
    room = 0;
  }

  Device &device;
  const char *name;
  Kind kind;
  char *memory = nullptr;
  int64_t room = 0, taken = 0;
};

/// Pinned memory that a step hands out piece by piece; what was handed out stays where it is.
class PinnedPieces {
public:
  explicit PinnedPieces(Device &device) : device(device) {}

  void *take(int64_t bytes) {
    bytes = (bytes + 255) / 256 * 256;
    while (at < blocks.size() && used + bytes > blocks[at]->bytes()) {
      ++at;
      used = 0;
    }
    if (at == blocks.size()) {
      constexpr int64_t kLeast = 1 << 20;
      blocks.push_back(
          std::make_unique<DeviceMemory>(device, "results", DeviceMemory::Kind::pinned));
      blocks.back()->ensure(bytes > kLeast ? bytes : kLeast);
    }
    used += bytes;
    taken += bytes;
    return blocks[at]->data() + used - bytes;
  }
  /// Takes memory for `bytes` more, so that handing these out takes none.
  void reserve(int64_t bytes) {
    take(bytes);
    reset();
  }
  /// All pieces may be handed out again.
  void reset() { at = used = taken = 0; }
  /// Bytes that were handed out.
  int64_t takenBytes() const { return taken; }

private:
  Device &device;
  std::vector<std::unique_ptr<DeviceMemory>> blocks;
  size_t at = 0;
  int64_t used = 0, taken = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_MEMORY_H
