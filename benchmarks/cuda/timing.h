//===- timing.h - What the benchmarks of a device share ----------*- C++ -*-===//

#ifndef GENREC_BENCHMARKS_CUDA_TIMING_H
#define GENREC_BENCHMARKS_CUDA_TIMING_H

#include "report.h"

#include "genrec_rt/cuda/check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>

namespace genrec::bench {

constexpr int64_t kMi = 1 << 20;
constexpr int kRepeats = 20;

/// Milliseconds of `body(stream)` on the device: the median of `repeats` after two to warm up.
/// `before(stream)` is queued ahead of each and not measured.
template <class Before, class Body>
double milliseconds(cudaStream_t stream, int repeats, Before before, Body body) {
  cudaEvent_t begin, end;
  GENREC_CUDA_CHECK(cudaEventCreate(&begin));
  GENREC_CUDA_CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < repeats + 2; ++i) {
    before(stream);
    GENREC_CUDA_CHECK(cudaEventRecord(begin, stream));
    body(stream);
    GENREC_CUDA_CHECK(cudaEventRecord(end, stream));
    GENREC_CUDA_CHECK(cudaEventSynchronize(end));
    float time = 0;
    GENREC_CUDA_CHECK(cudaEventElapsedTime(&time, begin, end));
    if (i >= 2)
      times.push_back(time);
  }
  GENREC_CUDA_CHECK(cudaEventDestroy(begin));
  GENREC_CUDA_CHECK(cudaEventDestroy(end));
  std::nth_element(times.begin(), times.begin() + static_cast<ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}
template <class Body> double milliseconds(cudaStream_t stream, int repeats, Body body) {
  return milliseconds(stream, repeats, [](cudaStream_t) {}, body);
}

/// Arrays on the device, freed together.
class Arrays {
public:
  Arrays() = default;
  Arrays(const Arrays &) = delete;
  Arrays &operator=(const Arrays &) = delete;
  ~Arrays() {
    for (void *memory : all)
      (void)cudaFree(memory);
  }
  template <class T> T *of(int64_t count) {
    T *memory = nullptr;
    GENREC_CUDA_CHECK(
        cudaMalloc(&memory, static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T)));
    all.push_back(memory);
    return memory;
  }
  template <class T> T *of(const std::vector<T> &values) {
    T *memory = of<T>(static_cast<int64_t>(values.size()));
    GENREC_CUDA_CHECK(
        cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return memory;
  }

private:
  std::vector<void *> all;
};

/// The same with nothing of the data in the second-level cache (50 MiB on an H100 and an H200):
/// what is memory-bound is measured so, as a step's ids and rows come from memory.
template <class Body> double coldMilliseconds(cudaStream_t stream, int repeats, Body body) {
  constexpr int64_t kBytes = 256 * kMi;
  Arrays arrays;
  char *other = arrays.of<char>(kBytes);
  return milliseconds(
      stream, repeats,
      [&](cudaStream_t s) { GENREC_CUDA_CHECK(cudaMemsetAsync(other, 0, kBytes, s)); }, body);
}

inline std::vector<int64_t> randomIds(int64_t count, uint64_t below, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t &id : ids)
    id = static_cast<int64_t>(random() % below);
  return ids;
}

/// Ids 0 ... limit - 1 with the probabilities log((k + 2) / (k + 1)) / log(limit + 1): a power law
/// with exponent 1, as ids of items and users have.
inline std::vector<int64_t> powerLawIds(int64_t count, int64_t limit, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform;
  const double scale = std::log(static_cast<double>(limit + 1));
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t &id : ids)
    id = std::min(limit - 1, static_cast<int64_t>(std::exp(uniform(random) * scale)) - 1);
  return ids;
}

/// How many of them are distinct, on average.
inline double distinctIds(int64_t count, int64_t limit) {
  const double scale = std::log(static_cast<double>(limit + 1));
  double distinct = 0;
  for (int64_t k = 0, next; k < limit; k = next) {
    next = std::min(limit, k + 1 + k / 64);
    const double share = std::log(static_cast<double>(next + 1) / static_cast<double>(k + 1)) /
                         scale / static_cast<double>(next - k);
    distinct += static_cast<double>(next - k) *
                -std::expm1(static_cast<double>(count) * std::log1p(-share));
  }
  return distinct;
}

/// The limit for which each id occurs three times on average.
inline int64_t limitOfThree(int64_t count) {
  int64_t low = 1, high = 64 * count;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (distinctIds(count, middle) * 3 < static_cast<double>(count) ? low : high) = middle;
  }
  return high;
}

/// What a program measures, in order.
struct Group {
  std::string name;
  std::function<void(Report &, cudaStream_t)> measure;
};

inline void describeDevice(Report &report) {
  cudaDeviceProp device;
  int driver = 0, runtime = 0;
  GENREC_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  GENREC_CUDA_CHECK(cudaDriverGetVersion(&driver));
  GENREC_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  report.describe("name", quoted(device.name));
  report.describe("capability",
                  quoted(std::to_string(device.major) + "." + std::to_string(device.minor)));
  report.describe("multiprocessors", std::to_string(device.multiProcessorCount));
  report.describe("memory_bytes", std::to_string(device.totalGlobalMem));
  report.describe("l2_bytes", std::to_string(device.l2CacheSize));
  report.describe("driver_cuda", std::to_string(driver));
  report.describe("runtime_cuda", std::to_string(runtime));
}

/// main() of a program. --dry-run says what would be measured, and needs no device.
inline int run(const std::string &program, int argc, char **argv,
               const std::vector<Group> &groups) {
  try {
    std::vector<std::string> names;
    for (const Group &group : groups)
      names.push_back(group.name);
    const Arguments arguments = parseArguments({argv + 1, argv + argc}, names);
    int devices = 0;
    const cudaError_t status = cudaGetDeviceCount(&devices);
    const bool hasDevice = status == cudaSuccess && devices > 0;
    const std::string lack = std::string("no CUDA device (") + cudaGetErrorString(status) + ")";
    if (arguments.isDryRun) {
      for (const Group &group : groups)
        if (arguments.only.empty() || group.name == arguments.only)
          std::printf("would measure: %s\n", group.name.c_str());
      std::printf("%s\n", hasDevice ? "a CUDA device is here" : lack.c_str());
      return 0;
    }
    if (!hasDevice)
      throw std::runtime_error(lack);
    Report report(program);
    describeDevice(report);
    cudaStream_t stream;
    GENREC_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (const Group &group : groups)
      if (arguments.only.empty() || group.name == arguments.only) {
        group.measure(report, stream);
        if (!arguments.file.empty()) // after every group: it outlasts a time limit
          report.write(arguments.file);
      }
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

} // namespace genrec::bench

#endif // GENREC_BENCHMARKS_CUDA_TIMING_H
