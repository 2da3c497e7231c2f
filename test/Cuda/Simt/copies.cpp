//===- copies.cpp - Memory, copies and fills of the emulated runtime ------===//

#include "arena.h"

#include <cstring>

using namespace simt;

namespace {

enum class Kind { device, pinned, pageable };

Kind kindOf(const void *memory) {
  if (isPinned(memory))
    return Kind::pinned;
  return arena().holds(memory) ? Kind::device : Kind::pageable;
}

/// Empty where a copy of that kind may be from and to these.
std::string checkKind(Kind to, Kind from, cudaMemcpyKind kind) {
  const bool toDevice = to == Kind::device, fromDevice = from == Kind::device;
  const bool wantsTo = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wantsFrom = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault)
    return {};
  // Pinned memory has an address on the device.
  if ((wantsTo && to == Kind::pageable) || (!wantsTo && toDevice))
    return std::string("the kind of the copy says that it is to ") +
           (wantsTo ? "a device" : "the host");
  if ((wantsFrom && from == Kind::pageable) || (!wantsFrom && fromDevice))
    return std::string("the kind of the copy says that it is from ") +
           (wantsFrom ? "a device" : "the host");
  return {};
}

void moveBytes(void *to, const void *from, size_t bytes) {
  openMemory();
  accessRange(from, bytes, false);
  accessRange(to, bytes, true);
  std::memcpy(to, from, bytes);
  Arena &all = arena();
  if (!all.holds(to))
    return;
  // What the host writes into pinned memory later is not seen: all of that counts as written.
  if (all.holds(from) && !all.isPinned(to))
    std::memcpy(all.shadowOf(to), all.shadowOf(from), bytes);
  else
    std::memset(all.shadowOf(to), written, bytes);
}

/// An operation that copies; `isStaged`: from pageable memory, which is read now.
Request copyRequest(void *to, const void *from, size_t bytes, bool isStaged) {
  Request request{"copy", {}};
  if (isStaged) {
    const char *begin = static_cast<const char *>(from);
    auto stage = std::make_shared<std::vector<char>>(begin, begin + bytes);
    request.run = [to, stage] { moveBytes(to, stage->data(), stage->size()); };
  } else {
    request.run = [to, from, bytes] { moveBytes(to, from, bytes); };
  }
  if (isPinned(from))
    request.host.push_back({static_cast<const char *>(from), bytes, false});
  if (isPinned(to))
    request.host.push_back({static_cast<const char *>(to), bytes, true});
  return request;
}

cudaError_t checkCopy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  if (!isAllocated(to, bytes) || !isAllocated(from, bytes))
    return refuse(cudaErrorInvalidValue,
                  "out of bounds: copy of " + std::to_string(bytes) + " bytes");
  const std::string text = checkKind(kindOf(to), kindOf(from), kind);
  return text.empty() ? cudaSuccess : refuse(cudaErrorInvalidValue, text);
}

cudaError_t waitForOne(const OperationPointer &operation) {
  if (!operation)
    return status();
  hostWaitsFor({operation});
  return status();
}

cudaError_t waitForDefaultStream() { return waitFor(lastOf({&legacyStream(currentDevice())})); }

cudaError_t checkFree(void *memory, MemoryKind kind) {
  const Allocation *found = arena().startingAt(memory);
  if (!found || found->kind != kind || found->isLeaving)
    return refuse(cudaErrorInvalidValue, found && found->isLeaving
                                             ? "memory that is freed a second time"
                                             : "memory that was not allocated so is freed");
  giveBack(memory);
  return cudaSuccess;
}

/// Memory of cudaMallocAsync that the host frees: that does not wait for those who use it.
void freeOfHost(void *memory) {
  static const uint32_t timeline = newTimeline();
  Operation now;
  now.info = {"cudaFree", nullptr, -1, timeline, tick(timeline), callers()};
  now.known = hostKnowledge();
  Operation *outer = machine.operation;
  startOperation(now);
  try {
    accessAllocation(memory);
  } catch (const EngineStop &) {
  }
  machine.operation = outer;
}

cudaError_t allocateAs(void **memory, size_t bytes, MemoryKind kind, const char *call) {
  Lock lock;
  if (cudaError_t error = refuseInCapture(call); error != cudaSuccess)
    return error;
  if (cudaError_t error = status(); error != cudaSuccess)
    return error;
  *memory = allocate(bytes, kind, currentDevice());
  if (!*memory)
    return refuse(cudaErrorMemoryAllocation, "out of memory");
  return cudaSuccess;
}

} // namespace

//===----------------------------------------------------------------------===//
// Allocation
//===----------------------------------------------------------------------===//

cudaError_t cudaMalloc(void **memory, size_t bytes) {
  return allocateAs(memory, bytes, MemoryKind::device, "cudaMalloc");
}
cudaError_t cudaMallocHost(void **memory, size_t bytes) {
  return allocateAs(memory, bytes, MemoryKind::host, "cudaMallocHost");
}
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  return allocateAs(memory, bytes, MemoryKind::host, "cudaHostAlloc");
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *in = streamAt(stream, error);
  if (!in)
    return error;
  if (in->capture)
    return refuseInCapture("cudaMallocAsync", in);
  if (error = status(); error != cudaSuccess)
    return error;
  *memory = allocate(bytes, MemoryKind::device, in->device);
  if (!*memory)
    return refuse(cudaErrorMemoryAllocation, "out of memory");
  OperationPointer made;
  error = enqueue(stream, {"allocation", {}}, &made);
  if (made)
    arena().startingAt(*memory)->made = made->info;
  return error;
}

cudaError_t cudaFree(void *memory) {
  Lock lock;
  if (!memory)
    return status();
  if (cudaError_t error = refuseInCapture("cudaFree"); error != cudaSuccess)
    return error;
  if (cudaError_t error = checkFree(memory, MemoryKind::device); error != cudaSuccess)
    return error;
  const int device = arena().regionOf(memory);
  const bool isOfPool = arena().startingAt(memory)->made.what[0];
  if (isOfPool && machine.error.empty())
    freeOfHost(memory);
  else if (machine.error.empty())
    hostWaitsFor(lastOf(streamsOf(device)));
  arena().inUse[device] -= static_cast<int64_t>(arena().startingAt(memory)->bytes);
  release(memory);
  return status();
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream) {
  Lock lock;
  if (!memory)
    return status();
  cudaError_t error;
  simtStream *in = streamAt(stream, error);
  if (!in)
    return error;
  if (in->capture)
    return refuseInCapture("cudaFreeAsync", in);
  if (error = checkFree(memory, MemoryKind::device); error != cudaSuccess)
    return error;
  Allocation &allocation = *arena().startingAt(memory);
  allocation.isLeaving = true;
  arena().inUse[arena().regionOf(memory)] -= static_cast<int64_t>(allocation.bytes);
  return enqueue(stream, {"cudaFreeAsync", [memory] {
                            accessAllocation(memory);
                            release(memory);
                          }});
}

cudaError_t cudaFreeHost(void *memory) {
  Lock lock;
  if (!memory)
    return status();
  if (cudaError_t error = refuseInCapture("cudaFreeHost"); error != cudaSuccess)
    return error;
  if (cudaError_t error = checkFree(memory, MemoryKind::host); error != cudaSuccess)
    return error;
  const size_t bytes = arena().startingAt(memory)->bytes;
  const std::string user = hostUseOf(memory, bytes);
  if (!user.empty() && machine.error.empty())
    machine.error = "pinned memory of " + std::to_string(bytes) + " bytes is freed at " +
                    placesOf(callers()) + " while " + user +
                    " uses it: the host has not waited for that";
  release(memory);
  forbidFreedPages(memory, bytes);
  return machine.error.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned) {
  Lock lock;
  if (cudaError_t error = refuseInCapture("cudaHostRegister"); error != cudaSuccess)
    return error;
  if (!memory || !bytes)
    return refuse(cudaErrorInvalidValue, "no memory to register");
  if (cudaError_t error = status(); error != cudaSuccess)
    return error;
  if (!registerPinned(memory, bytes))
    return refuse(cudaErrorHostMemoryAlreadyRegistered, "some of the memory is pinned already");
  hold(memory, std::to_string(bytes) + " bytes of registered memory");
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory) {
  Lock lock;
  const size_t bytes = registeredBytes(memory);
  if (!bytes)
    return refuse(cudaErrorHostMemoryNotRegistered, "the memory is not registered");
  const std::string user = hostUseOf(memory, bytes);
  if (!user.empty() && machine.error.empty())
    machine.error = "registered memory is given back at " + placesOf(callers()) + " while " + user +
                    " uses it: the host has not waited for that";
  giveBack(memory);
  unregisterPinned(memory);
  return status();
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  Lock lock;
  *total = static_cast<size_t>(options().deviceBytes);
  *free = static_cast<size_t>(options().deviceBytes - arena().inUse[currentDevice()]);
  return cudaSuccess;
}

//===----------------------------------------------------------------------===//
// Copies and fills
//===----------------------------------------------------------------------===//

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  Lock lock;
  if (cudaError_t error = checkCopy(to, from, bytes, kind); error != cudaSuccess)
    return error;
  cudaError_t error;
  simtStream *in = streamAt(stream, error);
  if (!in)
    return error;
  const bool isPageable = kindOf(to) == Kind::pageable || kindOf(from) == Kind::pageable;
  if (isPageable && in->capture)
    return refusePageableInCapture(*in);
  const bool isFromPageable = kindOf(from) == Kind::pageable;
  OperationPointer operation;
  error = enqueue(stream, copyRequest(to, from, bytes, isFromPageable && machine.error.empty()),
                  &operation);
  // To pageable memory, and from host to host, it returns when the copy is done.
  const bool isHostOnly = kindOf(to) != Kind::device && kindOf(from) != Kind::device;
  if (error != cudaSuccess || (kindOf(to) != Kind::pageable && !(isHostOnly && isPageable)))
    return error;
  return waitForOne(operation);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  Lock lock;
  if (cudaError_t error = checkCopy(to, from, bytes, kind); error != cudaSuccess)
    return error;
  if (cudaError_t error = refuseInCapture("cudaMemcpy"); error != cudaSuccess)
    return error;
  const bool isStaged = kindOf(from) == Kind::pageable && kindOf(to) == Kind::device;
  if (isStaged && machine.error.empty())
    if (cudaError_t error = waitForDefaultStream(); error != cudaSuccess)
      return error;
  const bool isOnDevice = kindOf(to) == Kind::device && kindOf(from) == Kind::device;
  Request request = copyRequest(to, from, bytes, isStaged && machine.error.empty());
  request.isSynchronous = !isOnDevice;
  OperationPointer operation;
  cudaError_t error = enqueue(nullptr, std::move(request), &operation);
  if (error != cudaSuccess || isStaged || isOnDevice)
    return error;
  return waitForOne(operation);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  Lock lock;
  if (!isAllocated(to, bytes) || kindOf(to) == Kind::pageable)
    return refuse(cudaErrorInvalidValue,
                  "out of bounds: fill of " + std::to_string(bytes) + " bytes");
  Request request{"fill", [to, value, bytes] {
                    openMemory();
                    accessRange(to, bytes, true);
                    std::memset(to, value, bytes);
                    if (arena().holds(to))
                      std::memset(arena().shadowOf(to), written, bytes);
                  }};
  if (kindOf(to) == Kind::pinned)
    request.host.push_back({static_cast<const char *>(to), bytes, true});
  return enqueue(stream, std::move(request));
}

cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  Lock lock;
  if (cudaError_t error = refuseInCapture("cudaMemset"); error != cudaSuccess)
    return error;
  cudaError_t error = cudaMemsetAsync(to, value, bytes, nullptr);
  if (error != cudaSuccess || !isPinned(to))
    return error;
  return waitForDefaultStream();
}
