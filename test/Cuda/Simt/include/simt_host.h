//===- simt_host.h - Stand-ins for CUDA's host functions ---------*- C++ -*-===//

#ifndef GENREC_TEST_CUDA_SIMT_HOST_H
#define GENREC_TEST_CUDA_SIMT_HOST_H

enum cudaError_t : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,
};
inline const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "cudaSuccess";
  case cudaErrorInvalidValue:
    return "cudaErrorInvalidValue";
  case cudaErrorMemoryAllocation:
    return "cudaErrorMemoryAllocation";
  default:
    return "cudaErrorLaunchFailure";
  }
}
inline const char *cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation)
    return "out of memory";
  return simt::errorMessage().empty() ? "invalid argument" : simt::errorMessage().c_str();
}
inline cudaError_t cudaGetLastError() {
  return simt::errorMessage().empty() ? cudaSuccess : cudaErrorLaunchFailure;
}
inline cudaError_t cudaPeekAtLastError() { return cudaGetLastError(); }

struct simtStream;
using cudaStream_t = simtStream *;
struct simtEvent;
using cudaEvent_t = simtEvent *;
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
constexpr unsigned cudaHostAllocMapped = 2;
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithFlags(stream, 0);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaGetLastError(); }
inline cudaError_t cudaDeviceSynchronize() { return cudaGetLastError(); }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) {
  return cudaGetLastError();
}
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaGetLastError(); }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaGetLastError(); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaGetLastError();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

template <class T> cudaError_t cudaMalloc(T **memory, size_t bytes) {
  *memory = static_cast<T *>(simt::allocate(bytes, simt::MemoryKind::device));
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T> cudaError_t cudaMallocAsync(T **memory, size_t bytes, cudaStream_t) {
  return cudaMalloc(memory, bytes);
}
template <class T> cudaError_t cudaMallocHost(T **memory, size_t bytes) {
  *memory = static_cast<T *>(simt::allocate(bytes, simt::MemoryKind::host));
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T> cudaError_t cudaHostAlloc(T **memory, size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
inline cudaError_t cudaFree(void *memory) {
  return simt::release(memory) ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaFreeAsync(void *memory, cudaStream_t) { return cudaFree(memory); }
inline cudaError_t cudaFreeHost(void *memory) { return cudaFree(memory); }
inline cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  *total = static_cast<size_t>(simt::options().deviceBytes);
  *free = static_cast<size_t>(simt::options().deviceBytes - simt::bytesInUse());
  return cudaSuccess;
}

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind) {
  return simt::copy(to, from, bytes) ? cudaGetLastError() : cudaErrorInvalidValue;
}
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  return simt::fill(to, value, bytes) ? cudaGetLastError() : cudaErrorInvalidValue;
}
inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(to, value, bytes);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
inline cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount:
    *value = 3;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor:
    *value = 0;
    return cudaSuccess;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = 227 << 10;
    return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
namespace simt {
/// Bytes of dynamic shared memory that a kernel may be launched with, by kernel.
inline std::unordered_map<void *, int> &mostDynamicBytes() {
  static std::unordered_map<void *, int> bytes;
  return bytes;
}
} // namespace simt
template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute, int bytes) {
  simt::mostDynamicBytes()[reinterpret_cast<void *>(kernel)] = bytes;
  return cudaSuccess;
}

struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute *attrs = nullptr;
  unsigned numAttrs = 0;
};

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                               A &&...arguments) {
  struct Call {
    void (*kernel)(P...);
    std::tuple<std::remove_cvref_t<P>...> arguments;
  } call{kernel, {static_cast<A &&>(arguments)...}};
  static_assert((std::is_trivially_copyable_v<std::remove_cvref_t<P>> && ...));
  auto allowed = simt::mostDynamicBytes().find(reinterpret_cast<void *>(kernel));
  const bool isRaised = allowed != simt::mostDynamicBytes().end();
  simt::Launch launch{config->gridDim,
                      config->blockDim,
                      config->dynamicSmemBytes,
                      static_cast<size_t>(isRaised ? allowed->second : 48 << 10),
                      [](void *argument) {
                        Call &call = *static_cast<Call *>(argument);
                        std::apply(call.kernel, call.arguments);
                      },
                      &call,
                      sizeof(Call)};
  return simt::launch(launch) ? cudaSuccess : cudaErrorLaunchFailure;
}

#endif // GENREC_TEST_CUDA_SIMT_HOST_H
