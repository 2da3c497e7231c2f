//===- device.cu - The CUDA device of a session ---------------------------===//

#include "genrec_rt/device.h"

#include "../../comm_nccl/nccl_comm.h"
#include "../../core/cuda/find_device.h"
#include "../../kernels/cuda/calibrate.h"
#include "../../ranks/cuda/portion_sums.h"
#include "../../ranks/cuda/row_exchange.h"
#include "distinct_lookups.h"
#include "distinct_rows.h"
#include "genrec_rt/cuda/cached_store.h"
#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/cuda/store.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/exact_sum.h"
#include "genrec_rt/kernels/cuda/row_checks.h"
#include "genrec_rt/kernels/cuda/row_notes.h"
#include "genrec_rt/kernels/cuda/row_picks.h"
#include "genrec_rt/kernels/cuda/stopped_steps.h"

#include <map>
#include <utility>
#include <vector>

namespace genrec::rt::cuda {

namespace {

__global__ void __launch_bounds__(kThreads)
    chooseKernel(DeviceIds from, float *zeros, uint8_t *chosen, float **rows, RowNote *beyond) {
  const int64_t present = from.domain ? from.domain->count : from.count;
  for (int64_t i = threadInGrid(); i < from.count; i += threadsInGrid()) {
    bool isChosen = i < present && (!from.valid || from.valid[i]);
    const int64_t id = isChosen ? from.ids[i] : 0;
    if (isChosen && from.areKeys)
      isChosen = id >= 0;
    else if (isChosen && from.idBits < 64 && static_cast<uint64_t>(id) >> from.idBits != 0) {
      isChosen = false;
      noteRow(beyond, from.domain, i);
    }
    chosen[i] = isChosen;
    rows[i] = isChosen ? nullptr : zeros;
  }
}

__global__ void __launch_bounds__(kThreads)
    keyKernel(DeviceIds from, int64_t key, int64_t *keys, RowNote *beyond) {
  const int64_t present = from.domain->count;
  for (int64_t i = threadInGrid(); i < from.count; i += threadsInGrid()) {
    bool isThere = i < present && (!from.valid || from.valid[i]);
    const int64_t id = isThere ? from.ids[i] : 0;
    if (isThere && from.idBits < 64 && static_cast<uint64_t>(id) >> from.idBits != 0) {
      isThere = false;
      noteRow(beyond, from.domain, i);
    }
    keys[i] = isThere ? key | id : -1;
  }
}

__global__ void __launch_bounds__(kThreads)
    missingKernel(uint8_t *chosen, float *const *rows, int64_t count) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    chosen[i] = chosen[i] && !rows[i];
}

__global__ void setIdentitiesKernel(genrec_domain *rows, const uint64_t *identities) {
  rows->identity = identities;
}

__global__ void copyDomainKernel(genrec_domain *made, const genrec_domain *from,
                                 const uint32_t *stopped) {
  made->count = made->max_length = stopped && *stopped != 0 ? 0 : from->count;
  made->offsets = nullptr;
  made->parent = nullptr;
  made->identity = from->identity;
  made->parent_domain = nullptr;
}

struct CudaGraph final : DeviceGraph {
  explicit CudaGraph(cudaGraphExec_t exec) : exec(exec) {}
  ~CudaGraph() override {
    if (exec)
      (void)cudaGraphExecDestroy(exec);
  }
  cudaGraphExec_t exec; ///< null: nothing was captured
};

struct CudaMark final : DeviceMark {
  CudaMark() { GENREC_CUDA_CHECK(cudaEventCreate(&event)); }
  ~CudaMark() override { (void)cudaEventDestroy(event); }
  cudaEvent_t event = nullptr;
};

/// Lets the device keep so much of what was freed for later allocations: it would be given back
/// whenever the host waits, and be mapped again.
void keepFreedMemory([[maybe_unused]] int device) {
#if !defined(GENREC_SIMT) // whose memory has no pool
  cudaMemPool_t pool = nullptr;
  GENREC_CUDA_CHECK(cudaDeviceGetDefaultMemPool(&pool, device));
  uint64_t kept = uint64_t(256) << 20;
  GENREC_CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
#endif
}

class CudaDevice final : public Device {
public:
  explicit CudaDevice(DeviceInfo found) : found(std::move(found)) {
    keepFreedMemory(this->found.number);
    // Stores are used between steps on the legacy default stream, which waits for all of these.
    for (cudaStream_t &stream : queues)
      GENREC_CUDA_CHECK(cudaStreamCreate(&stream));
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    for (cudaEvent_t *event : {&copied, &followed})
      GENREC_CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    queue = queues[0];
  }
  ~CudaDevice() override {
    (void)cudaStreamSynchronize(copies);
    for (cudaEvent_t event : {copied, followed})
      (void)cudaEventDestroy(event);
    for (cudaStream_t stream : {copies, queues[0], queues[1], queues[2]})
      (void)cudaStreamDestroy(stream);
  }

  void *allocate(const char *name, int64_t bytes) override {
    return allocateNamed(name, bytes, queue);
  }
  void release(void *memory) noexcept override {
    ++memoryMoves();
    if (isCapturing)
      releasedMeanwhile.push_back(memory); // or each launch of the graph would free it
    else
      freeNamed(memory, queue);
  }
  void *allocatePinned(const char *name, int64_t bytes) override {
    return allocateNamedHost(name, bytes);
  }
  // No graph names pinned memory but its own.
  void releasePinned(void *memory) noexcept override { freeNamedHost(memory); }
  void watchQueues() override { cuda::watchQueues(); }

  void enter() override { GENREC_CUDA_CHECK(cudaSetDevice(found.number)); }
  void use(DeviceQueue which) override { queue = at(which); }
  void *stream() const override { return queue; }
  void *streamOf(DeviceQueue which) const override { return at(which); }
  void follow(DeviceQueue which, DeviceQueue before) override {
    GENREC_CUDA_CHECK(cudaEventRecord(followed, at(before)));
    GENREC_CUDA_CHECK(cudaStreamWaitEvent(at(which), followed, 0));
  }
  void copyIn(void *to, const void *host, int64_t bytes) override {
    copy(to, host, bytes, cudaMemcpyHostToDevice);
  }
  void copyInAhead(void *to, const void *host, int64_t bytes) override {
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(to, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, copies));
  }
  void joinCopies() override {
    GENREC_CUDA_CHECK(cudaEventRecord(copied, copies));
    GENREC_CUDA_CHECK(cudaStreamWaitEvent(queue, copied, 0));
  }
  void copyOut(void *host, const void *from, int64_t bytes) override {
    copy(host, from, bytes, cudaMemcpyDeviceToHost);
  }
  void copyWithin(void *to, const void *from, int64_t bytes) override {
    copy(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  void fill(void *memory, uint8_t byte, int64_t bytes) override {
    if (bytes > 0)
      GENREC_CUDA_CHECK(cudaMemsetAsync(memory, byte, static_cast<size_t>(bytes), queue));
  }
  void synchronize() override { waitForStream(queue); }
  void await(DeviceMark &mark) override { waitForEvent(static_cast<CudaMark &>(mark).event); }

  void beginCapture() override {
    allocationsBefore = namedAllocationsOfThread();
    // Of this thread: the one that reads batches calls nothing here.
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(queue, cudaStreamCaptureModeThreadLocal));
    isCapturing = true;
  }
  std::unique_ptr<DeviceGraph> endCapture(std::string *why) override {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    size_t nodes = 0;
    cudaError_t status = cudaStreamEndCapture(queue, &graph);
    isCapturing = false;
    for (void *memory : std::exchange(releasedMeanwhile, {}))
      freeNamed(memory, queue);
    if (status == cudaSuccess)
      status = cudaGraphGetNodes(graph, nullptr, &nodes);
    if (status == cudaSuccess && nodes > 0)
      status = cudaGraphInstantiate(&exec, graph, 0);
    if (status != cudaSuccess)
      *why = std::string(cudaGetErrorName(status)) + ", " + cudaGetErrorString(status);
    (void)cudaGetLastError();
    if (graph)
      (void)cudaGraphDestroy(graph);
    if (status != cudaSuccess)
      return nullptr;
    auto made = std::make_unique<CudaGraph>(exec);
    if (namedAllocationsOfThread() != allocationsBefore) {
      *why = "memory was taken meanwhile";
      return nullptr;
    }
    return made;
  }
  void launch(DeviceGraph &graph) override {
    if (static_cast<CudaGraph &>(graph).exec)
      GENREC_CUDA_CHECK(cudaGraphLaunch(static_cast<CudaGraph &>(graph).exec, queue));
  }
  int64_t memoryVersion() const override { return memoryMoves(); }
  DeviceCounts counts() const override { return {streamWaits(), namedAllocations()}; }
  DeviceSpace space() const override {
    size_t free = 0, total = 0;
    GENREC_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    return {static_cast<int64_t>(total), static_cast<int64_t>(free)};
  }
  const DeviceInfo &info() const override { return found; }
  Roofline calibrate() override { return cuda::calibrate(found.name, queue); }

  std::unique_ptr<DeviceMark> makeMark() override { return std::make_unique<CudaMark>(); }
  void place(DeviceMark &mark) override {
    GENREC_CUDA_CHECK(cudaEventRecord(static_cast<CudaMark &>(mark).event, queue));
  }
  double secondsBetween(const DeviceMark &from, const DeviceMark &to) override {
    float milliseconds = 0;
    GENREC_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, static_cast<const CudaMark &>(from).event,
                                           static_cast<const CudaMark &>(to).event));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  void beginDispatch() override {
    ++storeStep.number;
    storeStep.hasWaited = false;
  }
  std::unique_ptr<TableStore> makeStore(const StoreConfig &config, const std::string &name,
                                        int64_t cachedRows) override {
    StoreOptions options;
    options.step = &storeStep;
    const cudaStream_t stream = at(DeviceQueue::dispatch);
    if (cachedRows > 0)
      return std::make_unique<CachedStore>(config, name, cachedRows, stream, options);
    return std::make_unique<EmbeddingStore>(config, name, stream, options);
  }

  void chooseEntries(const DeviceIds &ids, float *zeros, uint8_t *chosen, float **rows,
                     genrec_row_note *beyond) override {
    if (ids.count == 0)
      return;
    GENREC_CUDA_LAUNCH(queue, shapeOfThreads(ids.count, kThreads), chooseKernel, ids, zeros, chosen,
                       rows, beyond);
    if (!ids.areKeys)
      keepNotedValue(beyond, ids.ids, sizeof *ids.ids, queue);
  }
  void chooseMissing(uint8_t *chosen, float *const *rows, int64_t count) override {
    if (count > 0)
      GENREC_CUDA_LAUNCH(queue, shapeOfThreads(count, kThreads), missingKernel, chosen, rows,
                         count);
  }
  void writeKeys(const DeviceIds &ids, int64_t key, int64_t *keys,
                 genrec_row_note *beyond) override {
    if (ids.count == 0)
      return;
    GENREC_CUDA_LAUNCH(queue, shapeOfThreads(ids.count, kThreads), keyKernel, ids, key, keys,
                       beyond);
    if (!ids.areKeys)
      keepNotedValue(beyond, ids.ids, sizeof *ids.ids, queue);
  }
  void uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                  void *segments) override {
    auto &sums = reductions[{gradients.table, gradients.reader}];
    if (!sums)
      sums = std::make_unique<SegmentReduction>("table " + std::to_string(gradients.table));
    distinct.run(gradients, *sums, touched, rows, segments, queue);
  }
  void identifyRows(const TableStore &store, float *const *rows, int64_t capacity,
                    uint64_t *identities, genrec_domain *touched) override {
    store.identify(onStream(queue), rows, capacity, &touched->count, identities);
    GENREC_CUDA_LAUNCH(queue, (LaunchShape{1, 1}), setIdentitiesKernel, touched, identities);
  }
  void sumSegments(const genrec_domain *touched, const void *segments, int64_t dim,
                   float *sums) override {
    DistinctRows::sum(touched, segments, dim, sums, queue);
  }
  void distinctRows(const DeviceLookups &from) override { lookups.run(from, queue); }
  void sumExactly(std::span<const ExactValues> sums, void *scratch) override {
    static_assert(Device::kExactSumBytes == cuda::kExactSumBytes);
    std::vector<ExactTerms> terms;
    std::vector<ExactLimbs> limbs;
    for (const ExactValues &of : sums) {
      auto *own = static_cast<char *>(scratch) + terms.size() * cuda::kExactSumBytes;
      terms.push_back({of.rows->device, of.rows->capacity, of.values, of.counts});
      limbs.push_back({own, 1, 0, of.sum});
    }
    addExactly(terms, scratch, queue);
    roundExactly(limbs, queue);
  }
  void copyDomain(genrec_domain *made, const genrec_domain *from,
                  const uint32_t *stopped) override {
    GENREC_CUDA_LAUNCH(queue, (LaunchShape{1, 1}), copyDomainKernel, made, from, stopped);
  }
  std::unique_ptr<Communicator> connect(Communicator &host) override { return makeNcclComm(host); }
  std::unique_ptr<DeviceRowExchange> makeRowExchange(Communicator &comm,
                                                     std::vector<ExchangedStore> stores,
                                                     int32_t portions, RowTravel travel) override {
    return std::make_unique<RowExchange>(comm, std::move(stores), portions, travel, queue);
  }
  std::unique_ptr<DevicePortionSums> makePortionSums(Communicator &comm,
                                                     int32_t portions) override {
    return std::make_unique<PortionSums>(comm, portions, queue);
  }
  void resolveIds(const DeviceIds &ids, const CatalogueSlots &slots, int64_t *rows,
                  genrec_row_note *missing) override {
    resolveRows(ids.domain, ids.count, ids.ids, ids.valid, slots, rows, missing, queue);
  }
  void checkRange(const DeviceRange &range, genrec_row_note *note) override {
    cuda::checkRange(range, note, queue);
  }
  void checkFinite(const DeviceFloats &floats, genrec_row_note *note) override {
    cuda::checkFinite(floats, note, queue);
  }
  void checkRows(const DeviceRows &rows, genrec_row_note *note) override {
    cuda::checkRows(rows, note, queue);
  }
  void reportLoss(const DeviceLoss &loss) override { cuda::reportLoss(loss, queue); }
  void copyUnlessStopped(float *to, const float *from, int64_t count,
                         const uint32_t *stopped) override {
    if (stopped)
      return cuda::copyUnlessStopped(to, from, count, stopped, queue);
    copyWithin(to, from, count * static_cast<int64_t>(sizeof(float)));
  }

private:
  void copy(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind) {
    if (bytes > 0)
      GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, queue));
  }

  cudaStream_t at(DeviceQueue which) const { return queues[static_cast<int>(which)]; }

  const DeviceInfo found;
  cudaStream_t queues[3] = {}, queue = nullptr, copies = nullptr;
  cudaEvent_t copied = nullptr, followed = nullptr;
  int64_t allocationsBefore = 0;
  bool isCapturing = false;
  std::vector<void *> releasedMeanwhile;
  StoreStep storeStep;
  DistinctRows distinct;
  DistinctLookupRows lookups;
  /// By table and reader: read until the reader's next call.
  std::map<std::pair<int32_t, int32_t>, std::unique_ptr<SegmentReduction>> reductions;
};

struct CudaDevices final : genrec_rt_device {
  std::unique_ptr<Device> open(Communicator *comm) override {
    return std::make_unique<CudaDevice>(findDevice(comm));
  }
};

} // namespace

} // namespace genrec::rt::cuda

extern "C" genrec_rt_device *genrec_rt_cuda_device(void) {
  return new genrec::rt::cuda::CudaDevices;
}
