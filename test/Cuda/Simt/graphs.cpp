//===- graphs.cpp - Captured streams, and graphs that run -----------------===//

#include "operations.h"

#include <algorithm>
#include <thread>

namespace simt {

struct GraphNode {
  Request request;
  std::vector<int> after; ///< nodes before it
};

/// A capture under way, of one stream and those that joined it through events.
struct Capture {
  std::vector<GraphNode> nodes;
  simtStream *origin = nullptr;
  std::vector<simtStream *> joined;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool isInvalid = false, isOver = false;
};

namespace {

std::vector<std::shared_ptr<Capture>> &captures() {
  static std::vector<std::shared_ptr<Capture>> active;
  return active;
}

cudaError_t invalidate(Capture &capture, cudaError_t code, const std::string &text) {
  capture.isInvalid = true;
  return refuse(code, text);
}

cudaError_t checkValid(const Capture &capture) {
  return capture.isInvalid
             ? refuse(cudaErrorStreamCaptureInvalidated, "an earlier call made the capture invalid")
             : cudaSuccess;
}

/// What is before these nodes, and they.
std::vector<bool> ancestorsOf(const std::vector<GraphNode> &nodes, std::vector<int> stack) {
  std::vector<bool> found(nodes.size());
  while (!stack.empty()) {
    const auto at = static_cast<size_t>(stack.back());
    stack.pop_back();
    if (found[at])
      continue;
    found[at] = true;
    stack.insert(stack.end(), nodes[at].after.begin(), nodes[at].after.end());
  }
  return found;
}

void finish(const std::shared_ptr<Capture> &capture) {
  for (simtStream *stream : capture->joined) {
    stream->capture.reset();
    stream->captured.clear();
  }
  capture->isOver = true;
  std::erase(captures(), capture);
}

bool areJoined(const Capture &capture) {
  const std::vector<bool> before = ancestorsOf(capture.nodes, capture.origin->captured);
  for (const simtStream *stream : capture.joined)
    for (int node : stream->captured)
      if (!before[static_cast<size_t>(node)])
        return false;
  return true;
}

/// A capture of streams of a device, or of blocking ones; null where there is none.
Capture *captureOf(int device, bool blocking) {
  for (const std::shared_ptr<Capture> &capture : captures())
    for (const simtStream *stream : capture->joined)
      if (stream->device == device && !(blocking && (stream->flags & cudaStreamNonBlocking)))
        return capture.get();
  return nullptr;
}

void unite(std::vector<int> &nodes, const std::vector<int> &others) {
  for (int node : others)
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end())
      nodes.push_back(node);
}

} // namespace

cudaError_t addNode(simtStream &stream, Request request) {
  Capture &capture = *stream.capture;
  if (cudaError_t error = checkValid(capture); error != cudaSuccess)
    return error;
  capture.nodes.push_back({std::move(request), stream.captured});
  stream.captured = {static_cast<int>(capture.nodes.size()) - 1};
  return cudaSuccess;
}

cudaError_t captureRecord(simtStream &stream, simtEvent &event) {
  if (cudaError_t error = checkValid(*stream.capture); error != cudaSuccess)
    return error;
  event.capture = stream.capture;
  event.captured = stream.captured;
  event.recorded.reset();
  return cudaSuccess;
}

cudaError_t captureWait(simtStream &stream, simtEvent &event) {
  if (!event.capture)
    return invalidate(*stream.capture, cudaErrorStreamCaptureIsolation,
                      "a capture waits for an event that was recorded outside of it");
  if (event.capture->isOver)
    return refuse(cudaErrorCapturedEvent, "an event of a capture that is over is waited for");
  if (stream.isLegacy)
    return invalidate(*event.capture, cudaErrorStreamCaptureImplicit,
                      "the default stream cannot be captured");
  if (cudaError_t error = checkValid(*event.capture); error != cudaSuccess)
    return error;
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.captured.clear();
    stream.capture->joined.push_back(&stream);
  } else if (stream.capture != event.capture) {
    stream.capture->isInvalid = true;
    return invalidate(*event.capture, cudaErrorStreamCaptureMerge,
                      "a capture waits for an event of another capture");
  }
  unite(stream.captured, event.captured);
  return cudaSuccess;
}

cudaError_t refuseInCapture(const char *call, simtStream *stream) {
  auto refusal = [&](Capture &capture) {
    return invalidate(capture, cudaErrorStreamCaptureUnsupported,
                      std::string(call) + " while a stream is captured");
  };
  if (stream)
    return stream->capture ? refusal(*stream->capture) : cudaSuccess;
  for (const std::shared_ptr<Capture> &capture : captures())
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal &&
         capture->thread == std::this_thread::get_id()))
      return refusal(*capture);
  return cudaSuccess;
}

cudaError_t refusePageableInCapture(simtStream &stream) {
  return invalidate(*stream.capture, cudaErrorStreamCaptureUnsupported,
                    "a copy of pageable memory is captured: the graph would read or write it "
                    "whenever it runs; use pinned memory or arguments of kernels");
}

cudaError_t refuseLegacyInCapture(int device, const char *what) {
  if (Capture *capture = captureOf(device, /*blocking=*/true))
    return invalidate(*capture, cudaErrorStreamCaptureImplicit,
                      std::string(what) + " in the default stream, which waits for a stream "
                                          "that is captured");
  return cudaSuccess;
}

cudaError_t refuseDeviceInCapture(int device, const char *call) {
  if (Capture *capture = captureOf(device, /*blocking=*/false))
    return invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                      std::string(call) + " while a stream of the device is captured, by whichever "
                                          "thread: what is captured never ends");
  return cudaSuccess;
}

} // namespace simt

using namespace simt;

struct simtGraph {
  std::vector<GraphNode> nodes;
};

struct simtGraphExec {
  std::vector<GraphNode> nodes;
  std::vector<uint32_t> timelines; ///< of its chains
  std::vector<size_t> chainOf;     ///< by node
  OperationPointer last;           ///< launches run one after another
};

namespace {

/// Every chain of nodes that follow each other is a timeline.
void findChains(simtGraphExec &exec) {
  std::vector<bool> isContinued(exec.nodes.size());
  exec.chainOf.clear();
  size_t chains = 0;
  for (const GraphNode &node : exec.nodes) {
    auto before = std::find_if(node.after.begin(), node.after.end(),
                               [&](int other) { return !isContinued[static_cast<size_t>(other)]; });
    if (before == node.after.end()) {
      exec.chainOf.push_back(chains++);
      continue;
    }
    isContinued[static_cast<size_t>(*before)] = true;
    exec.chainOf.push_back(exec.chainOf[static_cast<size_t>(*before)]);
  }
  while (exec.timelines.size() < chains)
    exec.timelines.push_back(newTimeline());
}

} // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  Lock lock;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  if (found->isLegacy)
    return refuse(cudaErrorStreamCaptureUnsupported, "the default stream cannot be captured");
  if (found->capture)
    return refuse(cudaErrorInvalidValue, "the stream is captured already");
  auto capture = std::make_shared<Capture>();
  capture->origin = found;
  capture->joined = {found};
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  found->capture = capture;
  found->captured.clear();
  captures().push_back(std::move(capture));
  return status();
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  Lock lock;
  *graph = nullptr;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  if (!found->capture)
    return refuse(cudaErrorInvalidValue, "the stream is not captured");
  const std::shared_ptr<Capture> capture = found->capture;
  if (capture->origin != found)
    return invalidate(*capture, cudaErrorStreamCaptureUnmatched,
                      "the capture began in stream " + std::to_string(capture->origin->number));
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id())
    return refuse(cudaErrorStreamCaptureWrongThread, "the capture began in another thread");
  if (!capture->isInvalid && !areJoined(*capture))
    error = refuse(cudaErrorStreamCaptureUnjoined,
                   "work of another stream is captured that the first one does not wait for");
  else
    error = checkValid(*capture);
  finish(capture);
  if (error == cudaSuccess) {
    *graph = new simtGraph{std::move(capture->nodes)};
    hold(*graph, "a graph");
  }
  return error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *result) {
  Lock lock;
  cudaError_t error;
  simtStream *found = streamAt(stream, error);
  if (!found)
    return error;
  // Without harm to the capture that the default stream would wait for.
  if (found->isLegacy && captureOf(found->device, /*blocking=*/true))
    return refuse(cudaErrorStreamCaptureImplicit,
                  "the default stream waits for a stream that is captured");
  *result = !found->capture             ? cudaStreamCaptureStatusNone
            : found->capture->isInvalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
  return status();
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
  if (nodes)
    return refuse(cudaErrorNotSupported, "the emulated device only counts nodes");
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
  Lock lock;
  if (!graph)
    return refuse(cudaErrorInvalidValue, "the graph is null");
  if (cudaError_t error = status(); error != cudaSuccess)
    return error;
  *exec = new simtGraphExec{graph->nodes, {}, {}, {}};
  hold(*exec, "an executable graph");
  findChains(**exec);
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return status(); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Lock lock;
  cudaError_t error;
  simtStream *in = streamAt(stream, error);
  if (!in)
    return error;
  if (in->capture)
    return refuse(cudaErrorNotSupported, "a graph in a graph is not emulated");
  OperationPointer begin;
  if (error = enqueue(stream, {"a graph", {}}); error != cudaSuccess)
    return error;
  // The marker that was enqueued waits for the stream; launches of one graph follow each other.
  begin = in->last;
  Request start{"a graph", {}};
  start.callers = callers();
  if (exec->last)
    begin = append(*in, start, {exec->last});
  std::vector<OperationPointer> made;
  std::vector<OperationPointer> ends = {begin};
  for (size_t i = 0; i < exec->nodes.size(); ++i) {
    const GraphNode &node = exec->nodes[i];
    std::vector<OperationPointer> after = {begin};
    for (int other : node.after)
      after.push_back(made[static_cast<size_t>(other)]);
    made.push_back(make(node.request, *in, exec->timelines[exec->chainOf[i]], after));
    ends.push_back(made.back());
  }
  Request end{"the end of a graph", {}};
  end.callers = start.callers;
  exec->last = append(*in, end, ends);
  return status();
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result) {
  Lock lock;
  *result = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  auto fail = [&](cudaGraphExecUpdateResult why, const std::string &text) {
    result->result = why;
    return refuse(cudaErrorGraphExecUpdateFailure, text);
  };
  if (exec->nodes.size() != graph->nodes.size())
    return fail(cudaGraphExecUpdateErrorTopologyChanged, std::to_string(graph->nodes.size()) +
                                                             " nodes instead of " +
                                                             std::to_string(exec->nodes.size()));
  for (size_t i = 0; i < exec->nodes.size(); ++i) {
    const GraphNode &before = exec->nodes[i], &now = graph->nodes[i];
    if (before.after != now.after)
      return fail(cudaGraphExecUpdateErrorTopologyChanged,
                  "node " + std::to_string(i) + " waits for other nodes");
    if (std::string(before.request.what) != now.request.what)
      return fail(cudaGraphExecUpdateErrorNodeTypeChanged, "node " + std::to_string(i) + " was a " +
                                                               before.request.what + ", is a " +
                                                               now.request.what);
    if (before.request.kernel != now.request.kernel)
      return fail(cudaGraphExecUpdateErrorFunctionChanged,
                  "node " + std::to_string(i) + " has another kernel");
  }
  exec->nodes = graph->nodes;
  return status();
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Lock lock;
  if (!giveBack(graph))
    return refuse(cudaErrorInvalidValue, "the graph is none, or was destroyed");
  delete graph;
  return status();
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  Lock lock;
  if (!giveBack(exec))
    return refuse(cudaErrorInvalidValue, "the executable graph is none, or was destroyed");
  delete exec;
  return status();
}
