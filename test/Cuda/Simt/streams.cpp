//===- streams.cpp - Streams, events and launches of the emulated runtime -===//

#include "arena.h"

#include <cstring>
#include <unordered_map>
#include <utility>

using namespace simt;

namespace {

struct CallError {
  cudaError_t code = cudaSuccess, last = cudaSuccess;
  std::string text;
};
thread_local CallError callError;
thread_local bool inCallback = false;

/// Streams and events are kept, so that a use of one that was destroyed is known as such.
std::vector<std::unique_ptr<simtStream>> &allStreams() {
  static std::vector<std::unique_ptr<simtStream>> streams;
  return streams;
}
std::vector<std::unique_ptr<simtEvent>> &allEvents() {
  static std::vector<std::unique_ptr<simtEvent>> events;
  return events;
}

simtStream *makeStream(int onDevice, unsigned flags, bool isLegacy) {
  auto stream = std::make_unique<simtStream>();
  static int number = 0;
  stream->number = isLegacy ? 0 : ++number;
  stream->device = onDevice;
  stream->flags = flags;
  stream->isLegacy = isLegacy;
  stream->timeline = newTimeline();
  allStreams().push_back(std::move(stream));
  return allStreams().back().get();
}

bool isBlocking(const simtStream &stream) {
  return !stream.isLegacy && !(stream.flags & cudaStreamNonBlocking);
}

/// Null and a refusal where the event was destroyed.
simtEvent *eventAt(cudaEvent_t event, cudaError_t &error) {
  error = cudaSuccess;
  if (event && !event->isDestroyed)
    return event;
  error = refuse(cudaErrorInvalidResourceHandle,
                 event ? "the event was destroyed" : "the event is null");
  return nullptr;
}

/// Where it is the default stream, and one that it waits for is captured.
cudaError_t refuseLegacy(const simtStream &stream, const char *what) {
  return stream.isLegacy ? refuseLegacyInCapture(stream.device, what) : cudaSuccess;
}

/// Nothing may be called where a callback of a stream runs, or after an error.
cudaError_t mayCall() {
  if (inCallback)
    return refuse(cudaErrorNotPermitted, "cudaLaunchHostFunc's functions may not call CUDA");
  return status();
}

} // namespace

namespace simt {

cudaError_t refuse(cudaError_t code, const std::string &text) {
  callError = {code, code, text};
  return code;
}

cudaError_t status() {
  if (machine.error.empty())
    return cudaSuccess;
  machine.isErrorSeen = true;
  return cudaErrorLaunchFailure;
}

simtStream &legacyStream(int onDevice) {
  static simtStream *streams[kMostDevices] = {};
  if (!streams[onDevice])
    streams[onDevice] = makeStream(onDevice, 0, true);
  return *streams[onDevice];
}

simtStream *streamAt(cudaStream_t stream, cudaError_t &error) {
  error = cudaSuccess;
  if (!stream || stream == cudaStreamLegacy)
    return &legacyStream(currentDevice());
  if (!stream->isDestroyed)
    return stream;
  error = refuse(cudaErrorInvalidResourceHandle,
                 "stream " + std::to_string(stream->number) + " was destroyed");
  return nullptr;
}

cudaError_t accuseDefaultStream(cudaStream_t stream, const char *what, const void *kernel) {
  if (stream || options().mayUseDefaultStream)
    return cudaSuccess;
  if (machine.error.empty())
    machine.error =
        describe({what, kernel, 0, 0, 0, callers()}) + ": work belongs into a stream of its own";
  return status();
}

std::vector<simtStream *> streamsOf(int onDevice) {
  std::vector<simtStream *> result;
  for (const std::unique_ptr<simtStream> &stream : allStreams())
    if (stream->device == onDevice)
      result.push_back(stream.get());
  return result;
}

std::vector<OperationPointer> lastOf(const std::vector<simtStream *> &streams) {
  std::vector<OperationPointer> result;
  for (simtStream *stream : streams)
    if (stream->last)
      result.push_back(stream->last);
  return result;
}

OperationPointer make(const Request &request, const simtStream &stream, uint32_t timeline,
                      const std::vector<OperationPointer> &after) {
  auto operation = std::make_shared<Operation>();
  operation->info = {request.what, request.kernel, stream.number,
                     timeline,     tick(timeline), request.callers};
  operation->device = stream.device;
  operation->run = request.run;
  operation->isReady = request.isReady;
  operation->options = options();
  operation->known = hostKnowledge();
  for (const OperationPointer &other : after) {
    learn(operation->known, other->known);
    if (!other->isDone)
      operation->after.push_back(other);
  }
  if (operation->known.size() <= timeline)
    operation->known.resize(timeline + 1);
  operation->known[timeline] = operation->info.clock;
  watchHost(operation->info, request.host);
  submit(operation);
  return operation;
}

OperationPointer append(simtStream &stream, const Request &request,
                        std::vector<OperationPointer> after) {
  if (stream.last)
    after.push_back(stream.last);
  // The legacy stream waits for all blocking streams, and they for it.
  if (stream.isLegacy) {
    for (simtStream *other : streamsOf(stream.device))
      if (isBlocking(*other) && other->last)
        after.push_back(other->last);
  } else if (isBlocking(stream) && legacyStream(stream.device).last) {
    after.push_back(legacyStream(stream.device).last);
  }
  return stream.last = make(request, stream, stream.timeline, after);
}

cudaError_t enqueue(cudaStream_t stream, Request request, OperationPointer *made) {
  if (made)
    made->reset();
  if (cudaError_t error = mayCall(); error != cudaSuccess)
    return error;
  cudaError_t error;
  simtStream *to = streamAt(stream, error);
  if (!to)
    return error;
  if (error = request.isSynchronous ? cudaSuccess
                                    : accuseDefaultStream(stream, request.what, request.kernel);
      error != cudaSuccess)
    return error;
  if (!request.callers[0])
    request.callers = callers();
  if (to->callsToCome && machine.error.empty())
    machine.error = describe({request.what, request.kernel, to->number, 0, 0, request.callers}) +
                    ": NCCL is still in progress with a group for that stream";
  if (to->capture)
    return addNode(*to, std::move(request));
  if (to->isLegacy && refuseLegacyInCapture(to->device, request.what) != cudaSuccess)
    return cudaErrorStreamCaptureImplicit;
  OperationPointer operation = append(*to, request);
  if (made)
    *made = operation;
  return status();
}

static int64_t waits = 0;

int64_t waitCount() { return waits; }

cudaError_t waitFor(const std::vector<OperationPointer> &operations) {
  if (cudaError_t error = mayCall(); error != cudaSuccess)
    return error;
  ++waits;
  hostWaitsFor(operations);
  return status();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static std::unordered_map<const void *, int> &mostDynamicBytes() {
  static std::unordered_map<const void *, int> bytes;
  return bytes;
}

cudaError_t setMostDynamicBytes(const void *kernel, int bytes) {
  Lock lock;
  if (bytes > options().mostSharedBytes)
    return refuse(cudaErrorInvalidValue, "more shared memory than a block has");
  mostDynamicBytes()[kernel] = bytes;
  return cudaSuccess;
}

cudaError_t enqueueLaunch(Launch launch, const void *kernel, cudaStream_t stream) {
  Lock lock;
  if (cudaError_t error = mayCall(); error != cudaSuccess)
    return error;
  cudaError_t error;
  simtStream *to = streamAt(stream, error);
  if (!to)
    return error;
  if (to->device != currentDevice())
    return refuse(cudaErrorInvalidResourceHandle,
                  "a kernel is launched in a stream of device " + std::to_string(to->device) +
                      " while device " + std::to_string(currentDevice()) + " is current");
  auto allowed = mostDynamicBytes().find(kernel);
  launch.mostDynamicBytes =
      allowed == mostDynamicBytes().end() ? 48 << 10 : static_cast<size_t>(allowed->second);
  if (machine.error = checkLaunch(launch); !machine.error.empty()) {
    machine.isErrorSeen = true;
    return cudaErrorLaunchFailure;
  }
  auto arguments = std::make_shared<std::vector<std::max_align_t>>(
      launch.argumentBytes / sizeof(std::max_align_t) + 1);
  std::memcpy(arguments->data(), launch.arguments, launch.argumentBytes);
  Request request{"kernel", [launch, arguments]() mutable {
                    openMemory();
                    launch.arguments = arguments->data();
                    runLaunch(launch, machine.operation->options);
                  }};
  request.kernel = kernel;
  return enqueue(stream, std::move(request));
}

} // namespace simt

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIMT_ERROR(name, value, text)                                                              \
  case name:                                                                                       \
    return #name;
    SIMT_ERRORS(SIMT_ERROR)
#undef SIMT_ERROR
  }
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorLaunchFailure && !machine.error.empty())
    return errorMessage().c_str();
  if (error == callError.code && !callError.text.empty())
    return callError.text.c_str();
  switch (error) {
#define SIMT_ERROR(name, value, text)                                                              \
  case name:                                                                                       \
    return text;
    SIMT_ERRORS(SIMT_ERROR)
#undef SIMT_ERROR
  }
  return "unrecognized error code";
}

cudaError_t cudaPeekAtLastError() {
  Lock lock;
  return machine.error.empty() ? callError.last : status();
}
cudaError_t cudaGetLastError() {
  Lock lock;
  return machine.error.empty() ? std::exchange(callError.last, cudaSuccess) : status();
}

cudaError_t cudaDeviceSynchronize() {
  Lock lock;
  if (cudaError_t error = refuseInCapture("cudaDeviceSynchronize"); error != cudaSuccess)
    return error;
  if (cudaError_t error = refuseDeviceInCapture(currentDevice(), "cudaDeviceSynchronize");
      error != cudaSuccess)
    return error;
  return waitFor(lastOf(streamsOf(currentDevice())));
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
  Lock lock;
  if (flags > cudaStreamNonBlocking)
    return refuse(cudaErrorInvalidValue, "flags of a stream");
  if (cudaError_t error = status(); error != cudaSuccess)
    return error;
  *stream = makeStream(currentDevice(), flags, false);
  hold(*stream, "stream " + std::to_string((*stream)->number));
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  if (found->isLegacy)
    return refuse(cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
  found->isDestroyed = true;
  giveBack(found);
  return status();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  if (error = accuseDefaultStream(stream, "cudaStreamSynchronize"); error != cudaSuccess)
    return error;
  if (error = refuseInCapture("cudaStreamSynchronize", found); error != cudaSuccess)
    return error;
  if (error = refuseLegacy(*found, "cudaStreamSynchronize"); error != cudaSuccess)
    return error;
  return waitFor(lastOf({found}));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  if (error = refuseInCapture("cudaStreamQuery", found); error != cudaSuccess)
    return error;
  if (error = refuseLegacy(*found, "cudaStreamQuery"); error != cudaSuccess)
    return error;
  if (error = mayCall(); error != cudaSuccess)
    return error;
  if (!found->last || hostFindsDone(found->last))
    return cudaSuccess;
  return machine.error.empty() ? cudaErrorNotReady : status();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Lock lock;
  cudaError_t error;
  simtStream *waits = streamAt(stream, error);
  simtEvent *on = waits ? eventAt(event, error) : nullptr;
  if (!on)
    return error;
  if (error = accuseDefaultStream(stream, "a wait for an event"); error != cudaSuccess)
    return error;
  if (waits->capture || on->capture)
    return captureWait(*waits, *on);
  if (error = refuseLegacy(*waits, "a wait for an event"); error != cudaSuccess)
    return error;
  if (error = mayCall(); error != cudaSuccess || !on->recorded)
    return error;
  Request request{"a wait for an event"};
  request.callers = callers();
  append(*waits, request, {on->recorded});
  return status();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  Lock lock;
  return enqueue(stream, {"host function", [function, data] {
                            openPinnedMemory();
                            closeDeviceMemory();
                            inCallback = true;
                            function(data);
                            inCallback = false;
                          }});
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  Lock lock;
  if (cudaError_t error = status(); error != cudaSuccess)
    return error;
  allEvents().push_back(std::make_unique<simtEvent>());
  *event = allEvents().back().get();
  (*event)->flags = flags;
  (*event)->device = currentDevice();
  hold(*event, "an event");
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Lock lock;
  cudaError_t error;
  simtEvent *found = eventAt(event, error);
  if (!found)
    return error;
  found->isDestroyed = true;
  giveBack(found);
  found->recorded.reset();
  found->capture.reset();
  return status();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *in = streamAt(stream, error);
  simtEvent *found = in ? eventAt(event, error) : nullptr;
  if (!found)
    return error;
  if (found->device != in->device)
    return refuse(cudaErrorInvalidResourceHandle,
                  "an event of device " + std::to_string(found->device) +
                      " is recorded in a stream of device " + std::to_string(in->device));
  if (in->capture)
    return captureRecord(*in, *found);
  found->capture.reset();
  return enqueue(stream, {"an event", {}}, &found->recorded);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Lock lock;
  cudaError_t error;
  simtEvent *found = eventAt(event, error);
  if (!found)
    return error;
  if (found->capture)
    return refuse(cudaErrorCapturedEvent, "an event of a capture is asked for");
  if (error = refuseInCapture("cudaEventQuery"); error != cudaSuccess)
    return error;
  if (error = mayCall(); error != cudaSuccess)
    return error;
  if (!found->recorded || hostFindsDone(found->recorded))
    return status();
  return machine.error.empty() ? cudaErrorNotReady : status();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock;
  cudaError_t error;
  simtEvent *found = eventAt(event, error);
  if (!found)
    return error;
  if (found->capture)
    return refuse(cudaErrorCapturedEvent, "an event of a capture is waited for");
  if (!found->recorded)
    return status();
  return waitFor({found->recorded});
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  Lock lock;
  for (cudaEvent_t event : {start, end}) {
    cudaError_t error;
    simtEvent *found = eventAt(event, error);
    if (!found)
      return error;
    if ((found->flags & cudaEventDisableTiming) || !found->recorded)
      return refuse(cudaErrorInvalidResourceHandle, "an event without timing, or not recorded");
    if (!found->recorded->isDone)
      return refuse(cudaErrorNotReady, "an event that is not done");
  }
  *milliseconds = static_cast<float>((end->recorded->seconds - start->recorded->seconds) * 1000);
  return status();
}
