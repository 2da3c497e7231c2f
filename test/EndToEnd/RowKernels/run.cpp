//===- run.cpp - The printed row kernels of both targets on one input -----===//
//
// Built by test_cuda_kernels.py from what genrec-compile prints for
// Inputs/row_kernels.mlir. Prints a line per result, "<kernel> <result> same", or
// "differs" with the first difference.
//
//===----------------------------------------------------------------------===//

#include "both_targets.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace device {
extern "C" {
__global__ void row_roles(const genrec_step *, const float *x, const float *scale,
                          const float *constant, const int64_t *id, const float *v, float *aligned,
                          float *mean, float *most, float *sums);
__global__ void row_norm(const genrec_step *, float *const *rows, float *normed, float *pooled);
__global__ void row_vectors(const genrec_step *, const float *v, float *out);
__global__ void row_sampled(const genrec_step *, const float *normed, const float *vectors,
                            float *mixed, float *sums);
}
} // namespace device

namespace {

constexpr int64_t kUsers = 9, kItems = 11, kDim = 50;
/// Rows that a kernel picks lie so far apart.
constexpr int64_t kPadded = 64;
constexpr int64_t kLists[kUsers] = {0, 1, 5, 0, 33, 2, 1, 17, 0};
constexpr int64_t kWarps = 12;

float *randomFloats(int64_t count) {
  float *values = shared<float>(count);
  randomize(values, count);
  return values;
}

/// A result of both targets: the CPU's and a device's.
struct Result {
  explicit Result(int64_t count) : cpu(static_cast<size_t>(count)) {
    GENREC_CUDA_CHECK(cudaMalloc(&device, cpu.size() * 4));
  }
  std::vector<float> cpu;
  float *device = nullptr;

  std::vector<float> fetched() const {
    std::vector<float> values(cpu.size());
    GENREC_CUDA_CHECK(cudaMemcpy(values.data(), device, values.size() * 4, cudaMemcpyDeviceToHost));
    return values;
  }
};

void compare(const char *what, const std::vector<float> &cpu, const std::vector<float> &device,
             float tolerance) {
  for (size_t i = 0; i < cpu.size(); ++i)
    if (!(std::fabs(cpu[i] - device[i]) <= tolerance * (1 + std::fabs(cpu[i])))) {
      std::printf("%s differs at %zu: %.9g on the CPU, %.9g on the device\n", what, i, cpu[i],
                  device[i]);
      anyDiffers = true;
      return;
    }
  std::printf("%s same\n", what);
}

/// Sums of the chunks of a device, which are its warps, beside those of one chunk on the CPU.
struct Sums {
  explicit Sums(int64_t count) : count(count), cpu(static_cast<size_t>(count)) {
    GENREC_CUDA_CHECK(cudaMalloc(&device, static_cast<size_t>(count * kWarps) * 4));
  }
  int64_t count;
  std::vector<float> cpu;
  float *device = nullptr;

  std::vector<float> added() const {
    std::vector<float> parts(static_cast<size_t>(count * kWarps)),
        total(static_cast<size_t>(count));
    GENREC_CUDA_CHECK(cudaMemcpy(parts.data(), device, parts.size() * 4, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < parts.size(); ++i)
      total[i % total.size()] += parts[i];
    return total;
  }
};

void runAll() {
  int64_t *offsets = shared<int64_t>(kUsers + 1);
  offsets[0] = 0;
  for (int64_t user = 0; user < kUsers; ++user)
    offsets[user + 1] = offsets[user] + kLists[user];
  const int64_t rows = offsets[kUsers];
  uint64_t *identity = shared<uint64_t>(rows);
  int64_t *id = shared<int64_t>(rows);
  float *table = randomFloats(kItems * kDim);
  float **tableRows = shared<float *>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    identity[row] = kernels::splitmix64(static_cast<uint64_t>(row));
    id[row] = static_cast<int64_t>(generator() % (kItems + 1)) - 1;
    tableRows[row] = table + (id[row] < 0 ? 0 : id[row]) * kDim;
  }
  genrec_domain *domains = shared<genrec_domain>(3);
  domains[0] = {kUsers, kUsers, nullptr, nullptr, nullptr, nullptr, 1};
  domains[1] = {rows, rows, offsets, nullptr, identity, nullptr, 33};
  domains[2] = {kItems, kItems, nullptr, nullptr, nullptr, nullptr, 1};
  genrec_step *step = makeStep(domains);
  step->seed = 5;
  step->step = 3;

  float *x = randomFloats(rows), *scale = randomFloats(kUsers), *v = randomFloats(kItems);
  float *constant = randomFloats(2);
  {
    Result aligned(rows * 2), mean(kUsers), most(kUsers);
    Sums sums(kernels::sumFloats(2) + kernels::sumFloats(6) + kernels::sumFloats(kItems));
    void *arguments[] = {step,
                         x,
                         scale,
                         constant,
                         id,
                         v,
                         aligned.cpu.data(),
                         mean.cpu.data(),
                         most.cpu.data(),
                         sums.cpu.data()};
    row_roles(static_cast<void *>(arguments), 0, kUsers, 0);
    GENREC_CUDA_LAUNCH(nullptr, kShape, device::row_roles, step, x, scale, constant, id, v,
                       aligned.device, mean.device, most.device, sums.device);
    compare("roles aligned", aligned.cpu, aligned.fetched(), 0);
    compare("roles mean", mean.cpu, mean.fetched(), 0);
    compare("roles max", most.cpu, most.fetched(), 0);
    compare("roles reduced and scattered", sums.cpu, sums.added(), 1e-5f);
  }
  Result normed(rows * kDim), pooled(kUsers * kDim), vectors(kItems * kPadded);
  {
    void *arguments[] = {step, tableRows, normed.cpu.data(), pooled.cpu.data()};
    row_norm(static_cast<void *>(arguments), 0, kUsers, 0);
    GENREC_CUDA_LAUNCH(nullptr, kShape, device::row_norm, step, tableRows, normed.device,
                       pooled.device);
    compare("norm aligned", normed.cpu, normed.fetched(), 0);
    compare("norm pooled", pooled.cpu, pooled.fetched(), 0);
    void *others[] = {step, v, vectors.cpu.data()};
    row_vectors(static_cast<void *>(others), 0, kItems, 0);
    GENREC_CUDA_LAUNCH(nullptr, kShape, device::row_vectors, step, v, vectors.device);
    compare("vectors aligned", vectors.cpu, vectors.fetched(), 0);
  }
  {
    Result mixed(rows * kDim);
    Sums sums(kernels::sumFloats(kItems * kPadded));
    void *arguments[] = {step, normed.cpu.data(), vectors.cpu.data(), mixed.cpu.data(),
                         sums.cpu.data()};
    row_sampled(static_cast<void *>(arguments), 0, rows, 0);
    GENREC_CUDA_LAUNCH(nullptr, kShape, device::row_sampled, step, normed.device, vectors.device,
                       mixed.device, sums.device);
    compare("sampled aligned", mixed.cpu, mixed.fetched(), 1e-5f);
    compare("sampled scattered", sums.cpu, sums.added(), 1e-5f);
  }
}

} // namespace

int main(int argc, char **argv) {
  simt::options().seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  generator.seed(11);
  try {
    runAll();
  } catch (const genrec::rt::Error &error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return anyDiffers ? 1 : 0;
}
