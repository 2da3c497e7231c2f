//===- steps.cpp - The steps of all optimizers on both targets ------------===//
//
// Built by test_cuda_kernels.py from what genrec-compile prints for
// Inputs/optimizers.mlir: the kernels that update table rows add up
// the gradients of each and take the optimizer's step. Prints "<table> same" where
// rows and states of both targets have the same bits after three steps.
//
//===----------------------------------------------------------------------===//

#include "both_targets.h"
#include "genrec_rt/kernels/cuda/segment_sums.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

/// Tables of optimizers.mlir: name, dimension, states, floats of a state. Kernels of the first list
/// take a learning rate, those of the second two corrections of moments besides.
#define RATED(X)                                                                                   \
  X(sgd, 6, 0, 6)                                                                                  \
  X(momentum, 50, 1, 50)                                                                           \
  X(adagrad, 33, 1, 33)                                                                            \
  X(rowwise, 50, 1, 1)                                                                             \
  X(rowwise_wide, 130, 1, 1)                                                                       \
  X(adam_rows, 32, 3, 32)                                                                          \
  X(adamw_rows, 50, 3, 50)                                                                         \
  X(rmsprop, 50, 1, 50)                                                                            \
  X(rmsprop_momentum, 31, 2, 31)
#define CORRECTED(X)                                                                               \
  X(adam, 50, 2, 50)                                                                               \
  X(adamw, 31, 2, 31)

namespace device {
extern "C" {
#define DECLARE(name, ...)                                                                         \
  __global__ void row_touched_##name##_update_##name(                                              \
      const genrec_step *, float *const *, const genrec::rt::cuda::SegmentSums *, const float *);
RATED(DECLARE)
#undef DECLARE
#define DECLARE(name, ...)                                                                         \
  __global__ void row_touched_##name##_update_##name(const genrec_step *, float *const *,          \
                                                     const genrec::rt::cuda::SegmentSums *,        \
                                                     const float *, const float *, const float *);
CORRECTED(DECLARE)
#undef DECLARE
}
} // namespace device

namespace {

using genrec::rt::cuda::SegmentReduction;

/// Of every launch: no kernel takes shared memory.
constexpr genrec::rt::cuda::LaunchShape kShape{3, 128};
/// Occurrences of each row, up to what one warp adds up: sums of more have an order of their own.
constexpr int64_t kSizes[] = {1, 2, 3, 33, 1, 7, 256, 64, 1, 5, 1, 100, 2};
constexpr int64_t kRows = sizeof(kSizes) / sizeof(kSizes[0]);
constexpr int kSteps = 3;

/// The gradients of all rows: contribution i of those in the order of rows has gradient row
/// order[i].
struct Gradients {
  int64_t *offsets = shared<int64_t>(kRows + 1), *members;
  uint32_t *order;
  float *values;
  int64_t count, dim;

  explicit Gradients(int64_t dim) : dim(dim) {
    offsets[0] = 0;
    std::partial_sum(std::begin(kSizes), std::end(kSizes), offsets + 1);
    count = offsets[kRows];
    order = shared<uint32_t>(count);
    members = shared<int64_t>(count);
    values = shared<float>(count * dim);
    std::iota(order, order + count, 0u);
    std::shuffle(order, order + count, generator);
    std::copy_n(order, count, members); // of part 0
  }
};

/// A table's rows, once for each target.
struct Rows {
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> lines;
  std::span<float> host;
  float *device;
  float **hostRows = shared<float *>(kRows), **deviceRows = shared<float *>(kRows);

  Rows(int64_t dim, int64_t floats)
      : lines(static_cast<size_t>(kRows * floats / 16)), host(lines[0].values, lines.size() * 16) {
    for (int64_t row = 0; row < kRows; ++row)
      randomize(host.data() + row * floats, dim); // states begin with zeros
    GENREC_CUDA_CHECK(cudaMalloc(&device, host.size() * 4));
    GENREC_CUDA_CHECK(cudaMemcpy(device, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    for (int64_t row = 0; row < kRows; ++row) {
      hostRows[row] = host.data() + row * floats;
      deviceRows[row] = device + row * floats;
    }
  }
  bool areSame() const {
    std::vector<float> other(host.size());
    GENREC_CUDA_CHECK(cudaMemcpy(other.data(), device, other.size() * 4, cudaMemcpyDeviceToHost));
    return std::memcmp(host.data(), other.data(), host.size() * 4) == 0;
  }
};

using OnCpu = void (*)(void *, int64_t, int64_t, int64_t);
using OnDevice = std::function<void(const genrec_step *, float *const *,
                                    const genrec::rt::cuda::SegmentSums *, const float *values)>;

void runSteps(const char *name, int64_t dim, int64_t floats, OnCpu onCpu,
              const OnDevice &onDevice) {
  constexpr int64_t kDomains = 32; // more than the model has
  genrec_domain *domains = shared<genrec_domain>(kDomains);
  std::fill_n(domains, kDomains,
              genrec_domain{kRows, kRows, nullptr, nullptr, nullptr, nullptr, kRows});
  genrec_step *step = makeStep(domains);
  Rows rows(dim, (floats + 15) / 16 * 16); // of whole cache lines, as those of stores
  const std::vector<float> before(rows.host.begin(), rows.host.end());
  Gradients gradients(dim);
  float *values = shared<float>(3); // the rate, corrections of both moments
  SegmentReduction reduction("steps");
  auto *made = shared<genrec::rt::cuda::SegmentSums>(1);
  for (int number = 1; number <= kSteps; ++number) {
    randomize(gradients.values, gradients.count * dim);
    values[0] = 0.05f / static_cast<float>(number);
    values[1] = 0.1f * static_cast<float>(number);
    values[2] = 0.001f * static_cast<float>(number);
    const float *const parts[] = {gradients.values};
    const int64_t strides[] = {dim};
    kernels::SegmentSums sums{gradients.offsets, gradients.members, parts, strides,
                              gradients.count};
    void *arguments[] = {step, rows.hostRows, &sums, values, values + 1, values + 2};
    onCpu(static_cast<void *>(arguments), 0, kRows, 0);
    reduction.run(kRows, nullptr, dim, {gradients.values, dim, nullptr, nullptr, gradients.order},
                  gradients.offsets, gradients.count, made, nullptr, kStream);
    onDevice(step, rows.deviceRows, made, values);
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
  }
  const bool isSame = rows.areSame() && !std::ranges::equal(rows.host, before);
  std::printf("%s %s\n", name, isSame ? "same" : "differs");
  anyDiffers |= !isSame;
}

} // namespace

int main(int argc, char **argv) {
  generator.seed(argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1);
#define RUN(name, dim, states, width)                                                              \
  runSteps(#name, dim, dim + states * width, row_touched_##name##_update_##name,                   \
           [](const genrec_step *step, float *const *rows,                                         \
              const genrec::rt::cuda::SegmentSums *sums, const float *values) {                    \
             GENREC_CUDA_LAUNCH(kStream, kShape, device::row_touched_##name##_update_##name, step, \
                                rows, sums, values);                                               \
           });
  RATED(RUN)
#undef RUN
#define RUN(name, dim, states, width)                                                              \
  runSteps(#name, dim, dim + states * width, row_touched_##name##_update_##name,                   \
           [](const genrec_step *step, float *const *rows,                                         \
              const genrec::rt::cuda::SegmentSums *sums, const float *values) {                    \
             GENREC_CUDA_LAUNCH(kStream, kShape, device::row_touched_##name##_update_##name, step, \
                                rows, sums, values, values + 1, values + 2);                       \
           });
  CORRECTED(RUN)
#undef RUN
  return anyDiffers;
}
