// Rates of attention on a device, forward and backward, at the levels that the device has.
//
//   bench-cuda-attention [<file.json>]
//
// A table of TFLOP/s, and what biases cost. One product of a pair counts 2 * size operations;
// causal lists of n rows have n (n + 1) / 2 pairs; forward has 2 products, backward 5 (scores are
// computed once more). Times are medians of repeated launches, all kernels of a direction included,
// between events on one stream.

#include "genrec_rt/cuda/attention/attention.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace genrec::rt::cuda;

constexpr int64_t kRows = 32768, kHeads = 4;
constexpr int64_t kPositionBuckets = 2 * 2048 + 1, kTimeBuckets = 128;

/// Device memory filled from the host; freed at the end of the process.
template <class T> T *upload(const std::vector<T> &values) {
  T *device = nullptr;
  GENREC_CUDA_CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
  GENREC_CUDA_CHECK(
      cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t word() { return state = genrec::rt::kernels::splitmix64(state); }
  float real() {
    return static_cast<float>(static_cast<double>(word() >> 11) * 0x1p-52 - 1.0);
  } // in [-1, 1)

private:
  uint64_t state;
};

struct Lists {
  std::string name;
  int64_t longest;
  std::vector<int64_t> offsets;

  double pairs() const {
    double sum = 0;
    for (size_t i = 1; i < offsets.size(); ++i) {
      const auto n = static_cast<double>(offsets[i] - offsets[i - 1]);
      sum += n * (n + 1) / 2;
    }
    return sum;
  }
};

Lists equalLists(int64_t length) {
  Lists lists{"T " + std::to_string(length), length, {}};
  for (int64_t at = 0; at <= kRows; at += length)
    lists.offsets.push_back(at);
  return lists;
}

/// Lengths from a sixteenth of the longest up to it, short ones more often.
Lists jaggedLists(int64_t longest) {
  Lists lists{"jagged to " + std::to_string(longest), longest, {0}};
  Random random(longest);
  for (;;) {
    const double share = 0.5 * (random.real() + 1.0);
    const auto length =
        static_cast<int64_t>(static_cast<double>(longest) * (0.0625 + 0.9375 * share * share));
    if (lists.offsets.back() + length > kRows)
      return lists;
    lists.offsets.push_back(lists.offsets.back() + length);
  }
}

double medianMilliseconds(const std::function<void()> &work) {
  cudaEvent_t begin, end;
  GENREC_CUDA_CHECK(cudaEventCreate(&begin));
  GENREC_CUDA_CHECK(cudaEventCreate(&end));
  std::vector<float> times;
  for (int round = 0; round < 13; ++round) {
    GENREC_CUDA_CHECK(cudaEventRecord(begin));
    work();
    GENREC_CUDA_CHECK(cudaEventRecord(end));
    GENREC_CUDA_CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    GENREC_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (round >= 3) // the first ones warm up
      times.push_back(milliseconds);
  }
  GENREC_CUDA_CHECK(cudaEventDestroy(begin));
  GENREC_CUDA_CHECK(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Arrays of every size, shared by all measurements.
struct Arrays {
  static constexpr int64_t kMostSize = 256;
  Bf16 *q, *k, *v, *out, *dOut, *dQ, *dK, *dV;
  float *positionBias, *timeBias, *dPositionBias, *dTimeBias;
  int64_t *timestamps;

  Arrays() {
    Random random(1);
    auto values = [&] {
      std::vector<Bf16> x(static_cast<size_t>(kRows * kHeads * kMostSize));
      for (Bf16 &value : x)
        value = fromFloat<Bf16>(random.real());
      return upload(x);
    };
    q = values(), k = values(), v = values(), dOut = values();
    out = values(), dQ = values(), dK = values(), dV = values();
    auto floats = [&](int64_t count) {
      std::vector<float> x(static_cast<size_t>(count));
      for (float &value : x)
        value = random.real();
      return upload(x);
    };
    positionBias = floats(kPositionBuckets), dPositionBias = floats(kPositionBuckets);
    timeBias = floats(kTimeBuckets), dTimeBias = floats(kTimeBuckets);
    std::vector<int64_t> times(kRows);
    int64_t now = 978300000;
    for (int64_t &time : times) // bursts with pauses of up to days
      time = now += random.word() % 8 ? random.word() % 100 : random.word() % 200000;
    timestamps = upload(times);
  }
};

struct Measurement {
  std::string level, direction, biases, lists;
  int size;
  double milliseconds, teraflops;
};

class Bench {
public:
  std::vector<Measurement> measurements;

  template <int Size, unsigned Features, AttentionLevel Level>
  void measure(const Lists &lists, const char *level, const char *biases) {
    using C = AttentionConfig<Bf16, Size, Size, ScoreKind::silu, kCausal + Features>;
    AttentionArgs<Bf16> args;
    args.parents = static_cast<int64_t>(lists.offsets.size()) - 1;
    args.heads = kHeads;
    args.rows = kRows;
    args.maxLength = lists.longest;
    int64_t *offsets = upload(lists.offsets);
    args.offsets = offsets;
    args.q = arrays.q, args.k = arrays.k, args.v = arrays.v, args.out = arrays.out;
    args.ldQ = args.ldK = args.ldV = args.ldOut = kHeads * Size;
    args.scale = 1.0f / 16;
    args.positionBias = arrays.positionBias, args.positionBuckets = kPositionBuckets;
    args.timeBias = arrays.timeBias, args.timeBuckets = kTimeBuckets,
    args.timestamps = arrays.timestamps;
    AttentionGradients<Bf16> gradients;
    gradients.dOut = arrays.dOut, gradients.dQ = arrays.dQ, gradients.dK = arrays.dK,
    gradients.dV = arrays.dV;
    gradients.ldDOut = gradients.ldDQ = gradients.ldDK = gradients.ldDV = kHeads * Size;
    gradients.dPositionBias = arrays.dPositionBias, gradients.dTimeBias = arrays.dTimeBias;
    void *space = nullptr;
    GENREC_CUDA_CHECK(
        cudaMalloc(&space, static_cast<size_t>(attentionBackwardBytes<C, Level>(args))));
    const double product = 2.0 * Size * static_cast<double>(kHeads) * lists.pairs();
    auto add = [&](const char *direction, int products, const std::function<void()> &work) {
      const double milliseconds = medianMilliseconds(work);
      const double teraflops = products * product / milliseconds * 1e-9;
      measurements.push_back({level, direction, biases, lists.name, Size, milliseconds, teraflops});
      std::printf("%-8s %-9s %5d  %-15s %-14s %9.3f ms %8.1f TFLOP/s\n", level, direction, Size,
                  lists.name.c_str(), biases, milliseconds, teraflops);
      std::fflush(stdout);
    };
    add("forward", 2, [&] { attentionForward<C, Level>(args, nullptr); });
    add("backward", 5, [&] { attentionBackward<C, Level>(args, gradients, space, nullptr); });
    GENREC_CUDA_CHECK(cudaDeviceSynchronize());
    GENREC_CUDA_CHECK(cudaFree(space));
    GENREC_CUDA_CHECK(cudaFree(offsets));
  }

  template <int Size, AttentionLevel Level>
  void measureBiases(const Lists &lists, const char *level) {
    measure<Size, 0, Level>(lists, level, "none");
    measure<Size, kPositionBias, Level>(lists, level, "position");
    measure<Size, kPositionBias + kTimeBias, Level>(lists, level, "position, time");
  }

private:
  Arrays arrays;
};

void writeJson(const char *path, const std::vector<Measurement> &measurements,
               const cudaDeviceProp &device) {
  std::FILE *file = std::fopen(path, "w");
  if (!file) {
    std::fprintf(stderr, "error: %s cannot be written: %s\n", path, std::strerror(errno));
    std::exit(1);
  }
  std::fprintf(file, "{\"device\": \"%s\", \"rows\": %lld, \"heads\": %lld, \"measurements\": [",
               device.name, static_cast<long long>(kRows), static_cast<long long>(kHeads));
  const char *separator = "\n";
  for (const Measurement &m : measurements) {
    std::fprintf(file,
                 "%s  {\"level\": \"%s\", \"direction\": \"%s\", \"size\": %d, \"lists\": \"%s\", "
                 "\"biases\": \"%s\", "
                 "\"milliseconds\": %.4f, \"teraflops\": %.1f}",
                 separator, m.level.c_str(), m.direction.c_str(), m.size, m.lists.c_str(),
                 m.biases.c_str(), m.milliseconds, m.teraflops);
    separator = ",\n";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

} // namespace

int main(int argc, char **argv) try {
  cudaDeviceProp device;
  GENREC_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, causal silu, bfloat16, %lld rows, %lld heads\n", device.name,
              static_cast<long long>(kRows), static_cast<long long>(kHeads));
  if (attentionLevelOf(device.major) != AttentionLevel::hopper) {
    std::fprintf(
        stderr,
        "error: this program is compiled for compute capability 9.0, the device has %d.%d\n",
        device.major, device.minor);
    return 1;
  }
  Bench bench;
  constexpr AttentionLevel kHopper = AttentionLevel::hopper;
  // The most important ones first.
  for (int64_t length : {4096, 8192, 16384, 2048, 1024, 512})
    bench.measureBiases<128, kHopper>(equalLists(length), "hopper");
  bench.measureBiases<128, kHopper>(jaggedLists(8192), "hopper");
  for (int64_t length : {4096, 16384, 512}) {
    bench.measureBiases<64, kHopper>(equalLists(length), "hopper");
    bench.measureBiases<256, kHopper>(equalLists(length), "hopper");
  }
  for (int64_t length : {512, 4096})
    bench.measureBiases<128, AttentionLevel::mma>(equalLists(length), "mma");
  bench.measure<128, 0, AttentionLevel::plain>(equalLists(512), "plain", "none");
  if (argc > 1)
    writeJson(argv[1], bench.measurements, device);
  return 0;
} catch (const genrec::rt::Error &error) {
  std::fprintf(stderr, "error: %s\nhelp: %s\n", error.what(), error.help().c_str());
  return 1;
}
