// Rates of attention on a device, forward and backward, at the levels that the device has.
//
//   bench-cuda-attention [--dry-run] [--only <group>] [<file.json>]
//
// TFLOP/s without and with biases. One product of a pair counts 2 * size operations;
// causal lists of n rows have n (n + 1) / 2 pairs; forward has 2 products, backward 5 (scores are
// computed once more). Times are medians of repeated launches, all kernels of a direction included,
// between events on one stream.

#include "timing.h"

#include "genrec_rt/kernels/cuda/attention/attention.h"

namespace {

using namespace genrec::bench;
using namespace genrec::rt::cuda;

constexpr int64_t kRows = 32768, kHeads = 4;
constexpr int64_t kPositionBuckets = 2 * 2048 + 1, kTimeBuckets = 128;

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

/// Inputs and outputs of every size, shared by all measurements.
struct Tensors {
  static constexpr int64_t kMostSize = 256;
  Arrays memory;
  Bf16 *q, *k, *v, *out, *dOut, *dQ, *dK, *dV;
  float *positionBias, *timeBias, *dPositionBias, *dTimeBias;
  int64_t *timestamps;

  Tensors() {
    Random random(1);
    auto values = [&] {
      std::vector<Bf16> x(static_cast<size_t>(kRows * kHeads * kMostSize));
      for (Bf16 &value : x)
        value = fromFloat<Bf16>(random.real());
      return memory.of(x);
    };
    q = values(), k = values(), v = values(), dOut = values();
    out = values(), dQ = values(), dK = values(), dV = values();
    auto floats = [&](int64_t count) {
      std::vector<float> x(static_cast<size_t>(count));
      for (float &value : x)
        value = random.real();
      return memory.of(x);
    };
    positionBias = floats(kPositionBuckets), dPositionBias = floats(kPositionBuckets);
    timeBias = floats(kTimeBuckets), dTimeBias = floats(kTimeBuckets);
    std::vector<int64_t> times(kRows);
    int64_t now = 978300000;
    for (int64_t &time : times) // bursts with pauses of up to days
      time = now += random.word() % 8 ? random.word() % 100 : random.word() % 200000;
    timestamps = memory.of(times);
  }
};

class Bench {
public:
  Bench(Report &report, cudaStream_t stream) : report(report), stream(stream) {}

  template <int Size, unsigned Features, AttentionLevel Level>
  void measure(const Lists &lists, const char *level, const char *biases) {
    using C = AttentionConfig<Bf16, Size, Size, ScoreKind::silu, kCausal + Features>;
    AttentionArgs<Bf16> args;
    args.parents = static_cast<int64_t>(lists.offsets.size()) - 1;
    args.heads = kHeads;
    args.rows = kRows;
    args.maxLength = lists.longest;
    Arrays memory;
    const int64_t *offsets = memory.of(lists.offsets);
    args.offsets = offsets;
    args.q = tensors.q, args.k = tensors.k, args.v = tensors.v, args.out = tensors.out;
    args.ldQ = args.ldK = args.ldV = args.ldOut = kHeads * Size;
    args.scale = 1.0f / 16;
    args.positionBias = tensors.positionBias, args.positionBuckets = kPositionBuckets;
    args.timeBias = tensors.timeBias, args.timeBuckets = kTimeBuckets,
    args.timestamps = tensors.timestamps;
    AttentionGradients<Bf16> gradients;
    gradients.dOut = tensors.dOut, gradients.dQ = tensors.dQ, gradients.dK = tensors.dK,
    gradients.dV = tensors.dV;
    gradients.ldDOut = gradients.ldDQ = gradients.ldDK = gradients.ldDV = kHeads * Size;
    gradients.dPositionBias = tensors.dPositionBias, gradients.dTimeBias = tensors.dTimeBias;
    void *list = memory.of<char>(attentionForwardBytes<C, Level>(args));
    void *space = memory.of<char>(static_cast<int64_t>(attentionBackwardBytes<C, Level>(args)));
    const double product = 2.0 * Size * static_cast<double>(kHeads) * lists.pairs();
    auto add = [&](const char *direction, int products, auto work) {
      const double rate = products * product / milliseconds(stream, kRepeats, work) * 1e-9;
      report.add(std::string("attention ") + direction + ", " + level + ", D " +
                     std::to_string(Size) + ", " + lists.name + ", bias " + biases,
                 rate, "TFLOP/s");
    };
    add("forward", 2, [&](cudaStream_t s) { attentionForward<C, Level>(args, list, s); });
    add("backward", 5,
        [&](cudaStream_t s) { attentionBackward<C, Level>(args, gradients, space, s); });
  }

  template <int Size, AttentionLevel Level>
  void measureBiases(const Lists &lists, const char *level) {
    measure<Size, 0, Level>(lists, level, "none");
    measure<Size, kPositionBias, Level>(lists, level, "position");
    measure<Size, kPositionBias + kTimeBias, Level>(lists, level, "position, time");
  }

private:
  Report &report;
  cudaStream_t stream;
  Tensors tensors;
};

/// The device's own level first; the others are compiled for it as well.
void hopper(Report &report, cudaStream_t stream) {
  Bench bench(report, stream);
  constexpr AttentionLevel kHopper = AttentionLevel::hopper;
  // The most important ones first.
  for (int64_t length : {4096, 8192, 16384, 2048, 1024, 512})
    bench.measureBiases<128, kHopper>(equalLists(length), "hopper");
  bench.measureBiases<128, kHopper>(jaggedLists(8192), "hopper");
  for (int64_t length : {4096, 16384, 512}) {
    bench.measureBiases<64, kHopper>(equalLists(length), "hopper");
    bench.measureBiases<256, kHopper>(equalLists(length), "hopper");
  }
}

void others(Report &report, cudaStream_t stream) {
  Bench bench(report, stream);
  for (int64_t length : {512, 4096})
    bench.measureBiases<128, AttentionLevel::mma>(equalLists(length), "mma");
  bench.measure<128, 0, AttentionLevel::plain>(equalLists(512), "plain", "none");
}

/// What needs compute capability 9.0 is left out elsewhere, and said to be.
void onHopper(Report &report, cudaStream_t stream) {
  cudaDeviceProp device;
  GENREC_CUDA_CHECK(cudaGetDeviceProperties(&device, 0));
  if (attentionLevelOf(device.major) == AttentionLevel::hopper)
    return hopper(report, stream);
  report.skip("attention on Hopper", "this device has compute capability " +
                                         std::to_string(device.major) + "." +
                                         std::to_string(device.minor) + ", not 9.0");
}

} // namespace

int main(int argc, char **argv) {
  return run("attention", argc, argv, {{"hopper", onHopper}, {"others", others}});
}
