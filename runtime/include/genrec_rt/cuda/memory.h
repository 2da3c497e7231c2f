//===- memory.h - Named memory of a device -----------------------*- C++ -*-===//
//
// Every allocation has a name, so that an allocation that fails can say which
// buffers hold what.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_MEMORY_H
#define GENREC_RT_CUDA_MEMORY_H

#include "genrec_rt/cuda/check.h"
#include "genrec_rt/table_store.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace genrec::rt::cuda {

/// Allocates `bytes` on the device in the order of `stream`. Throws Error
/// with the largest buffers by name where that fails.
void *allocateNamed(const std::string &name, int64_t bytes, cudaStream_t stream);
/// Throws Error where `stream` is being captured: memory that it took would be there in launches of
/// the graph only, and what it freed would be freed by each of them.
void requireNoCapture(const std::string &name, cudaStream_t stream);
void freeNamed(void *memory, cudaStream_t stream) noexcept;
/// The same once everything on the device is done.
void freeNamedAfterAll(void *memory) noexcept;
/// The same of pinned memory of the host, which kernels reach at the same address. What kernels
/// still use must not be freed.
void *allocateNamedHost(const std::string &name, int64_t bytes);
void freeNamedHost(void *memory) noexcept;
/// Bytes in use by buffers whose name starts with `prefix`.
int64_t namedBytes(const std::string &prefix = {});
/// How often these ran in this process for such buffers.
int64_t namedAllocations(const std::string &prefix = {});
/// The same of the calling thread, for any name.
int64_t namedAllocationsOfThread();

/// How often memory that a captured graph may name was given back in this process: what was
/// captured before is not to be launched again.
inline std::atomic<int64_t> &memoryMoves() {
  static std::atomic<int64_t> moves{0};
  return moves;
}

/// Waits for a stream, or for an event. Every wait of the host while a model runs goes through
/// these, and is counted.
void waitForStream(cudaStream_t stream);
void waitForEvent(cudaEvent_t event);
/// Waits for all streams of the current device that the default stream waits for, as a session's
/// queues are. Unlike cudaDeviceSynchronize it lets a WaitWatch look meanwhile.
void waitForQueues();
/// How often they were called in this process.
int64_t streamWaits();

/// Who looks, while the host waits, whether what the device waits for will come: other ranks may be
/// gone.
class WaitWatch {
public:
  virtual ~WaitWatch() = default;
  /// The host waits for `waited` so far; throws where it would for ever.
  virtual void look(std::chrono::nanoseconds waited) = 0;
};
/// From here on `of` looks while this thread waits, instead of any other.
void watch(WaitWatch &of);
/// It is gone.
void unwatch(WaitWatch &of);
/// Waits for all queues where somebody looks: before calls that may wait for them unwatched, such
/// as those that free pinned memory.
void watchQueues();

/// The stream that a call of a store was given.
/// The default stream where none is named: the host's own calls, between steps.
inline cudaStream_t streamOf(const StoreStream &on) {
  return on.device ? static_cast<cudaStream_t>(on.device) : cudaStreamLegacy;
}

/// Memory of the device for the arguments of a store's calls, in the order of their streams.
const ArgumentMemory &deviceMemory();

/// An array of T on the device that only grows.
template <class T> class DeviceArray {
public:
  explicit DeviceArray(std::string name) : name(std::move(name)) {}
  DeviceArray(DeviceArray &&other) noexcept { swap(other); }
  DeviceArray &operator=(DeviceArray &&other) noexcept {
    swap(other);
    return *this;
  }
  /// Waits for the device where it holds memory: which streams use that is not known here.
  ~DeviceArray() {
    if (!memory)
      return;
    ++memoryMoves();
    freeNamedAfterAll(memory);
  }

  /// Makes room for `count` elements and returns them; the contents are lost when
  /// the array moves. What was in use is freed in the order of `stream`.
  T *ensure(int64_t count, cudaStream_t stream) {
    if (count > room) {
      requireNoCapture(name, stream); // before anything is given back
      release(stream);
      memory =
          static_cast<T *>(allocateNamed(name, count * static_cast<int64_t>(sizeof(T)), stream));
      room = count;
    }
    return memory;
  }
  /// The same, but the contents stay.
  T *ensureKept(int64_t count, cudaStream_t stream) {
    if (count <= room)
      return memory;
    DeviceArray larger(name);
    larger.ensure(count, stream);
    if (room > 0)
      GENREC_CUDA_CHECK(cudaMemcpyAsync(larger.memory, memory,
                                        static_cast<size_t>(room) * sizeof(T),
                                        cudaMemcpyDeviceToDevice, stream));
    swap(larger);
    larger.release(stream);
    return memory;
  }
  void release(cudaStream_t stream) {
    if (memory) {
      ++memoryMoves();
      freeNamed(memory, stream);
    }
    memory = nullptr;
    room = 0;
  }

  T *data() const { return memory; }
  int64_t capacity() const { return room; }

  void swap(DeviceArray &other) noexcept {
    std::swap(name, other.name);
    std::swap(memory, other.memory);
    std::swap(room, other.room);
  }

private:
  std::string name;
  T *memory = nullptr;
  int64_t room = 0;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_MEMORY_H
