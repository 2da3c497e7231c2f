//===- cuda_runtime_api.h - CUDA's host functions, emulated ------*- C++ -*-===//
//
// As much of the runtime API as the runtime and emitted code use, with the toolkit's names and
// values. Streams are queues (operations.h): what is enqueued runs later, in an order that the seed
// chooses of those that streams, events and waiting allow.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_API_H
#define GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_API_H

#include "../simt.h"

struct dim3 : simt::Extent {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : simt::Extent{x, y, z} {}
};

// NOLINTBEGIN: the toolkit's names
#define SIMT_ERRORS(X)                                                                             \
  X(cudaSuccess, 0, "no error")                                                                    \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                  \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                 \
  X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                 \
  X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                         \
  X(cudaErrorNoKernelImageForDevice, 209,                                                          \
    "no kernel image is available for execution on the device")                                    \
  X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                \
  X(cudaErrorNotReady, 600, "device not ready")                                                    \
  X(cudaErrorHostMemoryAlreadyRegistered, 712, "part or all of the memory is registered already")  \
  X(cudaErrorHostMemoryNotRegistered, 713, "the memory is not registered")                         \
  X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                     \
  X(cudaErrorNotPermitted, 800, "operation not permitted")                                         \
  X(cudaErrorNotSupported, 801, "operation not supported")                                         \
  X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")    \
  X(cudaErrorStreamCaptureInvalidated, 901,                                                        \
    "operation failed due to a previous error during capture")                                     \
  X(cudaErrorStreamCaptureMerge, 902,                                                              \
    "operation would result in a merge of separate capture sequences")                             \
  X(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")  \
  X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                     \
  X(cudaErrorStreamCaptureIsolation, 905,                                                          \
    "dependency created on uncaptured work in another stream")                                     \
  X(cudaErrorStreamCaptureImplicit, 906,                                                           \
    "operation would make the legacy stream depend on a capturing blocking stream")                \
  X(cudaErrorCapturedEvent, 907,                                                                   \
    "operation not permitted on an event last recorded in a capturing stream")                     \
  X(cudaErrorStreamCaptureWrongThread, 908,                                                        \
    "attempt to terminate a thread-local capture sequence from another thread")                    \
  X(cudaErrorGraphExecUpdateFailure, 910,                                                          \
    "the graph update was not performed because it included changes which violated constraints "   \
    "specific to instantiated graph update")
enum cudaError_t : int {
#define SIMT_ERROR(name, value, text) name = value,
  SIMT_ERRORS(SIMT_ERROR)
#undef SIMT_ERROR
};
const char *cudaGetErrorName(cudaError_t error);
/// The standard text, or what the emulated device has against the last call that failed so.
const char *cudaGetErrorString(cudaError_t error);
/// What the last failed call of this thread returned, once; after a failed kernel always that.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

//===----------------------------------------------------------------------===//
// Devices: options().devices
//===----------------------------------------------------------------------===//

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *count);
struct cudaUUID_t {
  char bytes[16];
};
struct cudaDeviceProp {
  char name[256];
  cudaUUID_t uuid;
  int major, minor;
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

struct simtStream;
using cudaStream_t = simtStream *;
struct simtEvent;
using cudaEvent_t = simtEvent *;
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
using cudaHostFn_t = void (*)(void *);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
/// What is in the stream still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
/// `function` may not call CUDA.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                   cudaHostAllocWriteCombined = 4;
constexpr unsigned cudaHostRegisterDefault = 0;
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocHost(void **memory, size_t bytes);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
/// Waits for everything on the device, but for memory of cudaMallocAsync: as a device does.
cudaError_t cudaFree(void *memory);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
/// Memory that something under way uses is a race: CUDA does not promise to wait.
cudaError_t cudaFreeHost(void *memory);
/// Copies take it as pinned; kernels may not touch it (allocate with cudaHostAlloc for that).
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
/// Waits as the runtime API says ("API synchronization behavior"): not for copies from one device
/// array to another, and of pageable memory only until it has been read.
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *to, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream = nullptr);

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

struct simtGraph;
using cudaGraph_t = simtGraph *;
struct simtGraphExec;
using cudaGraphExec_t = simtGraphExec *;
struct simtGraphNode;
using cudaGraphNode_t = simtGraphNode *;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
enum cudaGraphExecUpdateResult {
  cudaGraphExecUpdateSuccess,
  cudaGraphExecUpdateError,
  cudaGraphExecUpdateErrorTopologyChanged,
  cudaGraphExecUpdateErrorNodeTypeChanged,
  cudaGraphExecUpdateErrorFunctionChanged,
  cudaGraphExecUpdateErrorParametersChanged,
};
struct cudaGraphExecUpdateResultInfo {
  cudaGraphExecUpdateResult result;
  cudaGraphNode_t errorNode, errorFromNode;
};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
/// `*graph` is null where that fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
/// The number of nodes; `nodes` must be null.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
/// Nodes run in any order that their edges allow; launches of one graph one after another.
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

struct cudaFuncAttributes {
  int binaryVersion;
};
/// cudaErrorNoKernelImageForDevice where the device cannot run what is compiled (kCapability).
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel);
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute *attrs = nullptr;
  unsigned numAttrs = 0;
};
namespace simt {
cudaError_t setMostDynamicBytes(const void *kernel, int bytes);
/// Copies the launch's arguments; `kernel` stands for the function in messages and updates.
cudaError_t enqueueLaunch(Launch launch, const void *kernel, cudaStream_t stream);
} // namespace simt
// NOLINTEND

#endif // GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_API_H
