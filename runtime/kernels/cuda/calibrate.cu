//===- calibrate.cu - Measures a device's limits --------------------------===//

#include "calibrate.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/library_products.h"
#include "genrec_rt/kernels/cuda/rows.h"

#include <algorithm>
#include <random>
#include <vector>

namespace genrec::rt::cuda {

namespace {

/// Working sets: what second-level caches hold in part, and memory. An emulated device measures
/// the host, so that only the code matters.
#if defined(GENREC_SIMT)
constexpr int64_t kWorkingSets[] = {4096, 131072}, kProductRows = 64, kProductInner = 32,
                  kProductColumns = 32, kElementRepeats = 1;
constexpr int kCalls = 2, kLaunches = 1;
#else
constexpr int64_t kMi = 1 << 20;
constexpr int64_t kWorkingSets[] = {16 * kMi, 64 * kMi, 256 * kMi, 2048 * kMi},
                  kProductRows = 32768, kProductInner = 1024, kProductColumns = 4096,
                  kElementRepeats = 512;
constexpr int kCalls = 10, kLaunches = 10;
#endif
constexpr int64_t kRowFloats = 64, kRowBytes = 4 * kRowFloats, kMostPicks = 1 << 20;
constexpr int kBlockThreads = 256, kChains = 8;

__global__ void nothing() {}

/// Chains of products and sums, as row kernels have them: one is not contracted into the other.
__global__ void __launch_bounds__(kBlockThreads) multiplyAndAdd(float *values, int64_t repeats) {
  float chain[kChains];
  const float own = values[threadInGrid()];
#pragma unroll
  for (int i = 0; i < kChains; ++i)
    chain[i] = own + static_cast<float>(i);
  for (int64_t repeat = 0; repeat < repeats; ++repeat)
#pragma unroll
    for (int i = 0; i < kChains; ++i)
      chain[i] = __fadd_rn(__fmul_rn(chain[i], 0.5f), 0.01f);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i)
    sum += chain[i];
  values[threadInGrid()] = sum;
}

struct Event {
  Event() { GENREC_CUDA_CHECK(cudaEventCreate(&event)); }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;
  ~Event() { (void)cudaEventDestroy(event); }
  cudaEvent_t event = nullptr;
};

/// Calls of something, captured once.
class Calls {
public:
  template <class Body> Calls(cudaStream_t stream, const Body &body) : stream(stream) {
    body(); // takes the memory that it needs
    GENREC_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int call = 0; call < kCalls; ++call)
      body();
    cudaGraph_t graph = nullptr;
    GENREC_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
    const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    GENREC_CUDA_CHECK(status);
  }
  Calls(const Calls &) = delete;
  Calls &operator=(const Calls &) = delete;
  ~Calls() { (void)cudaGraphExecDestroy(exec); }

  /// The least seconds of a call.
  double seconds() {
    Event begin, end;
    float least = 1e9f;
    for (int launch = 0; launch <= kLaunches; ++launch) {
      GENREC_CUDA_CHECK(cudaEventRecord(begin.event, stream));
      GENREC_CUDA_CHECK(cudaGraphLaunch(exec, stream));
      GENREC_CUDA_CHECK(cudaEventRecord(end.event, stream));
      waitForEvent(end.event);
      float milliseconds = 0;
      GENREC_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin.event, end.event));
      if (launch > 0) // the first one prepares the graph
        least = std::min(least, milliseconds);
    }
    return std::max(static_cast<double>(least) * 1e-3 / kCalls, 1e-9);
  }

private:
  cudaStream_t stream;
  cudaGraphExec_t exec = nullptr;
};

class Calibration {
public:
  Calibration(const std::string &name, cudaStream_t stream) : stream(stream) {
    limits.processor = name;
    size_t free = 0, total = 0;
    GENREC_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    room = static_cast<int64_t>(free) / 4;
  }
  Roofline run();

private:
  /// Seconds of a call beyond those to start a kernel, which the roofline adds.
  template <class Body> double seconds(const Body &body) {
    const double all = Calls(stream, body).seconds();
    return std::max(all - limits.launchSeconds, all / 2);
  }
  double elementwiseRate();
  double productRate(bool bf16);
  double copyRate(int64_t bytes);
  double gatherRate(int64_t bytes);

  cudaStream_t stream;
  Roofline limits;
  int64_t room = 0;
};

double Calibration::elementwiseRate() {
  constexpr int64_t kThreads = int64_t(1) << 20;
  constexpr int64_t threads = kElementRepeats > 1 ? kThreads : kBlockThreads;
  DeviceArray<float> values("calibrate.values");
  float *to = values.ensure(threads, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(to, 0, threads * sizeof(float), stream));
  const double time = seconds([&] {
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{threads / kBlockThreads, kBlockThreads}),
                       multiplyAndAdd, to, kElementRepeats);
  });
  return 2.0 * static_cast<double>(threads * kElementRepeats) * kChains / time;
}

/// Of rows with a weight, as layers have them, by the library where it is found; of bfloat16, rows
/// that were rounded before.
double Calibration::productRate(bool bf16) {
  DeviceArray<float> x("calibrate.x"), weight("calibrate.weight"), y("calibrate.y");
  DeviceArray<genrec_domain> rows("calibrate.rows");
  genrec_domain domain{};
  domain.count = domain.max_length = kProductRows;
  LinearProduct product;
  product.rows = rows.ensure(1, stream);
  GENREC_CUDA_CHECK(cudaMemcpyAsync(rows.ensure(1, stream), &domain, sizeof domain,
                                    cudaMemcpyHostToDevice, stream));
  waitForStream(stream);
  product.capacity = kProductRows;
  product.k = product.ldX = kProductInner;
  product.n = product.ldY = kProductColumns;
  product.bf16 = bf16;
  float *from = x.ensure(kProductRows * kProductInner, stream);
  float *by = weight.ensure(kProductInner * kProductColumns, stream);
  // No zeros: products of them take less power. 0x3C3C3C3C is 0.0115, two of bfloat16 likewise.
  GENREC_CUDA_CHECK(
      cudaMemsetAsync(from, 0x3C, kProductRows * kProductInner * sizeof(float), stream));
  GENREC_CUDA_CHECK(
      cudaMemsetAsync(by, 0x3C, kProductInner * kProductColumns * sizeof(float), stream));
  product.x = bf16 ? nullptr : from;
  product.roundedX = bf16 ? reinterpret_cast<const Bf16 *>(from) : nullptr;
  product.weight = by;
  product.y = y.ensure(kProductRows * kProductColumns, stream);
  DeviceArray<char> scratch("calibrate.scratch");
  const int64_t bytes = fastestScratchBytes(product);
  char *space = bytes > 0 ? scratch.ensure(bytes, stream) : nullptr;
  const double time = seconds([&] { multiplyFastest(product, space, stream); });
  return 2.0 * static_cast<double>(kProductRows * kProductInner * kProductColumns) / time;
}

/// Bytes read and written per second.
double Calibration::copyRate(int64_t bytes) {
  DeviceArray<char> memory("calibrate.copied");
  char *from = memory.ensure(bytes, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(from, 1, bytes, stream));
  const double time = seconds([&] {
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(from + bytes / 2, from, bytes / 2, cudaMemcpyDeviceToDevice, stream));
  });
  return static_cast<double>(bytes) / time;
}

/// Bytes of rows per second, read at random and written one after another: what a kernel that adds
/// them up reads may not be less.
double Calibration::gatherRate(int64_t bytes) {
  const int64_t rows = bytes / kRowBytes, picks = std::min(rows, kMostPicks);
  DeviceArray<float> table("calibrate.table"), gathered("calibrate.gathered");
  DeviceArray<const float *> places("calibrate.places");
  float *from = table.ensure(rows * kRowFloats, stream);
  float *to = gathered.ensure(picks * kRowFloats, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(from, 0, bytes, stream));
  std::mt19937_64 random(1);
  std::vector<const float *> picked(static_cast<size_t>(picks));
  for (const float *&row : picked)
    row = from + static_cast<int64_t>(random() % static_cast<uint64_t>(rows)) * kRowFloats;
  const float **at = places.ensure(picks, stream);
  GENREC_CUDA_CHECK(cudaMemcpyAsync(at, picked.data(), picked.size() * sizeof(float *),
                                    cudaMemcpyHostToDevice, stream));
  waitForStream(stream);
  const double time =
      seconds([&] { gatherRows<float>(at, picks, kRowFloats, to, kRowFloats, stream); });
  return 2.0 * static_cast<double>(picks * kRowBytes) / time;
}

Roofline Calibration::run() {
  limits.launchSeconds = Calls(stream, [&] {
                           GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, kWarp}), nothing);
                         }).seconds();
  limits.flops = elementwiseRate();
  limits.productFlops = productRate(/*bf16=*/false);
  limits.bf16Flops = productRate(/*bf16=*/true);
  for (int64_t bytes : kWorkingSets) {
    if (bytes > room)
      break;
    const auto size = static_cast<double>(bytes);
    limits.copies.push_back({size, copyRate(bytes)});
    limits.gathers.push_back({size, gatherRate(bytes)});
  }
  return limits;
}

} // namespace

Roofline calibrate(const std::string &name, cudaStream_t stream) {
  return Calibration(name, stream).run();
}

} // namespace genrec::rt::cuda
