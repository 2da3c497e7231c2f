//===- memory.cu - Named memory of a device -------------------------------===//

#include "genrec_rt/cuda/memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace genrec::rt::cuda {

namespace {

/// Locked for a moment: never while CUDA is called, which may wait for what another thread, a rank
/// of the same process, has yet to queue.
struct Ledger {
  struct Entry {
    std::string name;
    int64_t bytes;
    MemoryKind kind;
  };
  std::mutex mutex;
  std::map<void *, Entry> entries;
  std::map<std::string, int64_t> allocations; ///< by name
};

thread_local int64_t allocationsOfThread = 0;

// Never destroyed: buffers of static objects may be freed after it.
Ledger &ledger() {
  static Ledger *instance = new Ledger;
  return *instance;
}

std::string sizeText(int64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
  double size = static_cast<double>(bytes);
  int unit = 0;
  for (; size >= 1024 && unit < 3; ++unit)
    size /= 1024;
  std::string digits = std::to_string(size);
  return (unit ? digits.substr(0, digits.find('.') + 2) : std::to_string(bytes)) + " " +
         units[unit];
}

/// "item.values 30.0 GiB, item.keys 1.2 GiB": the largest names first.
std::string describeHolders(MemoryKind kind) {
  constexpr size_t kMostShown = 8;
  std::map<std::string, int64_t> byName;
  {
    Ledger &all = ledger();
    const std::lock_guard<std::mutex> lock(all.mutex);
    for (const auto &[memory, entry] : all.entries)
      if (entry.kind == kind)
        byName[entry.name] += entry.bytes;
  }
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto &[name, bytes] : byName)
    sorted.push_back({bytes, name});
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostShown); ++i)
    text += (i ? ", " : "") + sorted[i].second + " " + sizeText(sorted[i].first);
  return text.empty() ? "nothing" : text;
}

/// Before memory is freed: from then on it may be somebody else's.
void forget(void *memory) noexcept {
  Ledger &all = ledger();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.entries.erase(memory);
}

} // namespace

void requireNoCapture(const std::string &name, cudaStream_t stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const cudaError_t status = cudaStreamIsCapturing(stream, &capture);
  if (status == cudaErrorStreamCaptureImplicit) { // the default stream, while another one is
    (void)cudaGetLastError();
    capture = cudaStreamCaptureStatusActive;
  } else {
    GENREC_CUDA_CHECK(status);
  }
  if (capture != cudaStreamCaptureStatusNone)
    throw Error("memory of '" + name + "' was taken while a step was captured");
}

void *allocateNamed(const std::string &name, int64_t bytes, cudaStream_t stream) {
  requireNoCapture(name, stream);
  void *memory = nullptr;
  cudaError_t status =
      cudaMallocAsync(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), stream);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    size_t free = 0, total = 0;
    (void)cudaMemGetInfo(&free, &total);
    throw Error(
        "out of device memory: " + sizeText(bytes) + " asked for '" + name + "', " +
            sizeText(static_cast<int64_t>(free)) + " of " + sizeText(static_cast<int64_t>(total)) +
            " are free; held by " + describeHolders(MemoryKind::device),
        "a smaller --batch takes less, tables may be in the host's memory (--host-tables) or "
        "bounded, and ranks share them");
  }
  GENREC_CUDA_CHECK(status);
  Ledger &all = ledger();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.entries[memory] = {name, bytes, MemoryKind::device};
  ++all.allocations[name];
  ++allocationsOfThread;
  return memory;
}

void *allocateNamedHost(const std::string &name, int64_t bytes) {
  void *memory = nullptr;
  const cudaError_t status =
      cudaHostAlloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), cudaHostAllocMapped);
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw Error("out of pinned host memory: " + sizeText(bytes) + " asked for '" + name +
                    "'; held by " + describeHolders(MemoryKind::pinned),
                "tables of --host-tables take most of it, and ranks share them");
  }
  GENREC_CUDA_CHECK(status);
  Ledger &all = ledger();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.entries[memory] = {name, bytes, MemoryKind::pinned};
  ++all.allocations[name];
  ++allocationsOfThread;
  return memory;
}

void freeNamedHost(void *memory) noexcept {
  forget(memory);
  (void)cudaFreeHost(memory);
}

void freeNamed(void *memory, cudaStream_t stream) noexcept {
  forget(memory);
  (void)cudaFreeAsync(memory, stream);
}

void freeNamedAfterAll(void *memory) noexcept {
  forget(memory);
  (void)cudaDeviceSynchronize(); // cudaFree does not wait for memory of cudaMallocAsync
  (void)cudaFree(memory);
}

int64_t namedBytes(const std::string &prefix) {
  Ledger &all = ledger();
  const std::lock_guard<std::mutex> lock(all.mutex);
  int64_t bytes = 0;
  for (const auto &[memory, entry] : all.entries)
    bytes += entry.name.rfind(prefix, 0) == 0 ? entry.bytes : 0;
  return bytes;
}

int64_t namedAllocationsOfThread() { return allocationsOfThread; }

int64_t namedAllocations(const std::string &prefix) {
  Ledger &all = ledger();
  const std::lock_guard<std::mutex> lock(all.mutex);
  int64_t count = 0;
  for (const auto &[name, times] : all.allocations)
    if (name.starts_with(prefix))
      count += times;
  return count;
}

static std::atomic<int64_t> waits{0};

static thread_local WaitWatch *watching = nullptr;

void watch(WaitWatch &of) { watching = &of; }

void unwatch(WaitWatch &of) {
  if (watching == &of)
    watching = nullptr;
}

namespace {

/// Counts a wait of the host, during which `query` says whether it is over.
template <class Query> void watchWait(const Query &query) {
  waits.fetch_add(1, std::memory_order_relaxed);
  const auto begin = std::chrono::steady_clock::now();
  while (watching) {
    const cudaError_t status = query();
    if (status == cudaErrorNotReady) {
      watching->look(std::chrono::steady_clock::now() - begin);
      std::this_thread::yield();
      continue;
    }
    GENREC_CUDA_CHECK(status);
    break;
  }
}

} // namespace

void waitForStream(cudaStream_t stream) {
  watchWait([stream] { return cudaStreamQuery(stream); });
  GENREC_CUDA_CHECK(cudaStreamSynchronize(stream));
}

void waitForEvent(cudaEvent_t event) {
  watchWait([event] { return cudaEventQuery(event); });
  GENREC_CUDA_CHECK(cudaEventSynchronize(event));
}

void waitForQueues() {
  cudaEvent_t event = nullptr;
  GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  try {
    // The default stream follows all streams that do not say otherwise.
    GENREC_CUDA_CHECK(cudaEventRecord(event, cudaStreamLegacy));
    waitForEvent(event);
  } catch (...) {
    (void)cudaEventDestroy(event);
    throw;
  }
  GENREC_CUDA_CHECK(cudaEventDestroy(event));
}

void watchQueues() {
  if (watching)
    waitForQueues();
}

int64_t streamWaits() { return waits.load(std::memory_order_relaxed); }

namespace {

class DeviceMemory final : public ArgumentMemory {
public:
  MemoryKind kind() const override { return MemoryKind::device; }
  void *allocate(int64_t bytes, const StoreStream &on) const override {
    return bytes > 0 ? allocateNamed("arguments", bytes, streamOf(on)) : nullptr;
  }
  void release(void *memory, int64_t, const StoreStream &on) const noexcept override {
    freeNamed(memory, streamOf(on));
  }
  void copyIn(void *to, const void *host, int64_t bytes, const StoreStream &on) const override {
    copy(to, host, bytes, cudaMemcpyHostToDevice, streamOf(on));
  }
  void copyOut(void *host, const void *from, int64_t bytes, const StoreStream &on) const override {
    copy(host, from, bytes, cudaMemcpyDeviceToHost, streamOf(on));
  }

private:
  static void copy(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream) {
    if (bytes == 0)
      return;
    GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream));
    waitForStream(stream);
  }
};

} // namespace

const ArgumentMemory &deviceMemory() {
  static const DeviceMemory memory;
  return memory;
}

} // namespace genrec::rt::cuda
