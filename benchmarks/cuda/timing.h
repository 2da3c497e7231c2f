//===- timing.h - What the benchmarks of a device share ----------*- C++ -*-===//
//
// A report is a list of figures, printed as they come (the most important first) and written as
// JSON with the device's name; the script that runs the programs adds date and commit.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_BENCHMARKS_CUDA_TIMING_H
#define GENREC_BENCHMARKS_CUDA_TIMING_H

#include "genrec_rt/cuda/check.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace genrec::bench {

/// Milliseconds of `body(stream)` on the device: the median of `repeats` after two to warm up.
template <class Body> double milliseconds(cudaStream_t stream, int repeats, Body body) {
  cudaEvent_t begin, end;
  GENREC_CUDA_CHECK(cudaEventCreate(&begin));
  GENREC_CUDA_CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < repeats + 2; ++i) {
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

class Report {
public:
  /// Prints the figure and keeps it.
  void add(const std::string &what, double value, const std::string &unit) {
    std::printf("%-58s %12.3f %s\n", what.c_str(), value, unit.c_str());
    std::fflush(stdout);
    lines.push_back("{\"what\": \"" + what + "\", \"value\": " + std::to_string(value) +
                    ", \"unit\": \"" + unit + "\"}");
  }
  /// False where the file cannot be written.
  bool write(const char *path) const {
    cudaDeviceProp device;
    GENREC_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
    std::FILE *file = std::fopen(path, "w");
    if (!file)
      return false;
    std::fprintf(
        file, "{\"device\": \"%s\", \"multiprocessors\": %d, \"memory_bytes\": %zu, \"figures\": [",
        device.name, device.multiProcessorCount, device.totalGlobalMem);
    for (size_t i = 0; i < lines.size(); ++i)
      std::fprintf(file, "%s\n  %s", i ? "," : "", lines[i].c_str());
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) == 0;
  }

private:
  std::vector<std::string> lines;
};

/// Memory that lives as long as the program.
template <class T> T *onDevice(int64_t count) {
  T *memory = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&memory, static_cast<size_t>(count) * sizeof(T)));
  return memory;
}
template <class T> T *onDevice(const std::vector<T> &values) {
  T *memory = onDevice<T>(static_cast<int64_t>(values.size()));
  GENREC_CUDA_CHECK(
      cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

} // namespace genrec::bench

#endif // GENREC_BENCHMARKS_CUDA_TIMING_H
