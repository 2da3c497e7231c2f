// What the card can do: what figures of other programs are held against.
//
//   bench-cuda-ceilings [--dry-run] [--only <group>] [<file.json>]
//
// copy: bytes read and written by a copy within the device. gather: the same of random rows of 32
// to 512 bytes, by the simplest kernel there is (a word of 16 bytes per thread, addresses in
// order of an index), by gatherRows, and the other way by scatterRows. matmul: bfloat16 products of
// 8192 by 8192 by 8192 through cuBLAS, where this machine has it.

#include "timing.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/rows.h"

#include <dlfcn.h>

namespace {

using namespace genrec::bench;
using namespace genrec::rt::cuda;

constexpr int64_t kBytes = int64_t(1) << 30;

double copyRate(cudaStream_t stream, char *to, const char *from) {
  return 2e-6 * static_cast<double>(kBytes) / milliseconds(stream, kRepeats, [&](cudaStream_t s) {
           GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, s));
         });
}

/// Word `i` of the output is that of row index[i / words].
__global__ void __launch_bounds__(256)
    gatherWords(const uint4 *table, const uint32_t *index, int64_t rows, int words, uint4 *out) {
  for (int64_t i = threadInGrid(); i < rows * words; i += threadsInGrid())
    out[i] = table[static_cast<int64_t>(index[i / words]) * words + i % words];
}

void memory(Report &report, cudaStream_t stream) {
  Arrays arrays;
  char *from = arrays.of<char>(4 * kBytes), *to = arrays.of<char>(kBytes);
  GENREC_CUDA_CHECK(cudaMemset(from, 0, 4 * kBytes));
  const double copy = copyRate(stream, to, from);
  report.add("copy", copy, "GB/s");
  for (int64_t bytes : {32, 64, 128, 256, 512}) {
    Arrays mine;
    const int64_t rows = kBytes / bytes / 4, dim = bytes / 4, tableRows = 4 * kBytes / bytes;
    std::vector<uint32_t> index(static_cast<size_t>(rows));
    std::vector<const float *> places(index.size());
    std::vector<float *> distinct(index.size());
    std::mt19937_64 random(1);
    for (size_t i = 0; i < index.size(); ++i) {
      index[i] = static_cast<uint32_t>(random() % static_cast<uint64_t>(tableRows));
      places[i] = reinterpret_cast<float *>(from + index[i] * bytes);
      // An odd factor and a table of a power of two: no two are the same.
      const auto other = static_cast<int64_t>(i) * 0x9E3779B1 % tableRows;
      distinct[i] = reinterpret_cast<float *>(from + other * bytes);
    }
    const uint32_t *deviceIndex = mine.of(index);
    const float **devicePlaces = mine.of(places);
    float **deviceDistinct = mine.of(distinct);
    auto rate = [&](auto body) {
      return 2e-6 * static_cast<double>(rows * bytes) / milliseconds(stream, kRepeats, body);
    };
    const std::string which = ", rows of " + std::to_string(bytes) + " B";
    const double ceiling = rate([&](cudaStream_t s) {
      GENREC_CUDA_LAUNCH(s, (LaunchShape{16384, 256}), gatherWords,
                         reinterpret_cast<const uint4 *>(from), deviceIndex, rows,
                         static_cast<int>(bytes / 16), reinterpret_cast<uint4 *>(to));
    });
    const double ours = rate([&](cudaStream_t s) {
      gatherRows<float>(devicePlaces, rows, dim, reinterpret_cast<float *>(to), dim, s);
    });
    const double scattered = rate([&](cudaStream_t s) {
      scatterRows<float>(deviceDistinct, rows, dim, reinterpret_cast<const float *>(to), dim, s);
    });
    report.add("random gather" + which, ceiling, "GB/s");
    report.add("gatherRows" + which, ours, "GB/s");
    report.add("gatherRows" + which + ", of copy", 100 * ours / copy, "%");
    report.add("scatterRows" + which, scattered, "GB/s");
    report.add("scatterRows" + which + ", of copy", 100 * scattered / copy, "%");
  }
}

/// As much of cuBLAS as one product needs; the library is looked for where the program runs.
void matmul(Report &report, cudaStream_t stream) {
  void *library = nullptr;
  for (const char *name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
    if ((library = dlopen(name, RTLD_NOW)))
      break;
  const char *const what = "bfloat16 matmul, 8192 x 8192 x 8192";
  if (!library)
    return report.skip(what, "no libcublas.so.12 or .13 among the libraries of this machine "
                             "(LD_LIBRARY_PATH may name its folder)");
  using Create = int (*)(void **);
  using SetStream = int (*)(void *, cudaStream_t);
  using Gemm = int (*)(void *, int, int, int, int, int, const void *, const void *, int, int,
                       const void *, int, int, const void *, void *, int, int, int, int);
  const auto create = reinterpret_cast<Create>(dlsym(library, "cublasCreate_v2"));
  const auto setStream = reinterpret_cast<SetStream>(dlsym(library, "cublasSetStream_v2"));
  const auto gemm = reinterpret_cast<Gemm>(dlsym(library, "cublasGemmEx"));
  void *handle = nullptr;
  if (!create || !setStream || !gemm || create(&handle) != 0 || setStream(handle, stream) != 0)
    return report.skip(what, "cuBLAS could not be started");
  constexpr int kSize = 8192, kBf16 = 14 /* CUDA_R_16BF */, kFloatSums = 68, kAnyAlgorithm = -1;
  Arrays arrays;
  uint16_t *a = arrays.of<uint16_t>(int64_t(kSize) * kSize),
           *b = arrays.of<uint16_t>(int64_t(kSize) * kSize),
           *c = arrays.of<uint16_t>(int64_t(kSize) * kSize);
  // Not zeros: they would take less power than what products are made of.
  std::vector<uint16_t> values(static_cast<size_t>(kSize) * kSize);
  std::mt19937 random(1);
  for (uint16_t &value : values)
    value = static_cast<uint16_t>(0x3F00 + random() % 256 + (random() % 2 << 15));
  for (uint16_t *to : {a, b})
    GENREC_CUDA_CHECK(cudaMemcpy(to, values.data(), values.size() * 2, cudaMemcpyHostToDevice));
  const float one = 1, zero = 0;
  int status = 0;
  const double time = milliseconds(stream, kRepeats, [&](cudaStream_t) {
    status |= gemm(handle, 0, 0, kSize, kSize, kSize, &one, a, kBf16, kSize, b, kBf16, kSize, &zero,
                   c, kBf16, kSize, kFloatSums, kAnyAlgorithm);
  });
  if (status != 0)
    return report.skip(what, "cublasGemmEx returned " + std::to_string(status));
  report.add(what, 2e-9 * kSize * kSize * kSize / time, "TFLOP/s");
}

} // namespace

int main(int argc, char **argv) {
  return run("ceilings", argc, argv, {{"memory", memory}, {"matmul", matmul}});
}
