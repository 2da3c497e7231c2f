// Matrix products of the example models: ours beside other libraries, in turns.
//
//   matrix_products <threads> <rounds> <libtorch_cpu.so, or nothing>
//
// Prints a JSON list: of every product its shape, its operations, and the seconds of every
// round by contestant. "genrec, bf16" rounds both sides to bfloat16 (float sums); "genrec,
// epilogue" adds a bias and applies ReLU in the product; "… + epilogue" is a peer's product and a
// pass for the same over its result. Peers run on one thread per call, rows split over the same
// threads as ours.

#include "../common/clock.h"
#include "../kernels/timing.h"
#include "peers.h"

#include "genrec_rt/kernels/cpu/gemm_bf16.h"

#include <cmath>
#include <cstring>
#include <map>

namespace {

namespace k = genrec::rt::kernels;
using bench::Floats;
using bench::Kind;
using bench::Peer;
using bench::Product;
using genrec::rt::parallelFor;

/// Seconds of a slice of repeated calls, at least.
constexpr double kSlice = 0.004;

struct Run {
  int threads, rounds;
  genrec_rt_pool *pool;
  std::vector<Peer> peers;
  const char *between = "";
};

struct Contestant {
  std::string name;
  std::function<void()> run;
  const float *result;
  float tolerance = 1e-3f; ///< by which it may differ from the first
};

/// Two factors of each product are off by 2^-8 at most; sums over up to 14,000 rows.
constexpr float kBf16Tolerance = 1.0f;

/// y = max(y + bias, 0)
void addBiasAndRelu(genrec_rt_pool *pool, int64_t m, int64_t n, const float *bias, float *y) {
  parallelFor(pool, m, 240, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t column = 0; column < n; ++column)
        y[row * n + column] = std::max(y[row * n + column] + bias[column], 0.0f);
  });
}

/// All contestants have the result of the first.
void checkResults(const std::vector<Contestant> &all, int64_t count, const char *shape) {
  for (const Contestant &one : all) {
    one.run();
    for (int64_t i = 0; i < count; ++i)
      if (std::fabs(one.result[i] - all[0].result[i]) >
          one.tolerance * (1 + std::fabs(all[0].result[i]))) {
        std::fprintf(stderr, "matrix_products: error: %s: element %ld of %s is %g, not %g\n", shape,
                     static_cast<long>(i), one.name.c_str(), one.result[i], all[0].result[i]);
        std::exit(1);
      }
  }
}

void measure(Run &run, const char *shape, const char *what, double flops, int64_t results,
             const std::vector<std::vector<Contestant>> &groups) {
  std::printf("%s\n {\"shape\": \"%s\", \"what\": \"%s\", \"flops\": %.0f, \"seconds\": {",
              run.between, shape, what, flops);
  std::map<std::string, std::vector<double>> times;
  for (const auto &group : groups) {
    checkResults(group, results, shape);
    int repeats = 1;
    while (bench::secondsOf(run.threads, [&] {
             for (int i = 0; i < repeats; ++i)
               group[0].run();
           }) < kSlice)
      repeats *= 2;
    for (int round = 0; round < run.rounds; ++round)
      for (const Contestant &one : group)
        times[one.name].push_back(bench::secondsOf(run.threads,
                                                   [&] {
                                                     for (int i = 0; i < repeats; ++i)
                                                       one.run();
                                                   }) /
                                  repeats);
  }
  const char *inner = "";
  for (const auto &[name, values] : times) {
    std::printf("%s\"%s\": [", inner, name.c_str());
    for (size_t i = 0; i < values.size(); ++i)
      std::printf("%s%.4g", i ? ", " : "", values[i]);
    std::printf("]");
    inner = ", ";
  }
  std::printf("}}");
  run.between = ",";
}

/// The peers at one product, into memory of their own; of contractions, the threads' sums are
/// not added up, a little in their favour.
std::vector<Contestant> peersAt(Run &run, const Product &product,
                                std::vector<std::unique_ptr<Floats>> &memory) {
  std::vector<Contestant> all;
  const int64_t share = (product.m + run.threads - 1) / run.threads;
  const bool isSum = product.kind == Kind::contraction;
  for (const Peer &peer : run.peers) {
    if (!peer.can(product))
      continue;
    int64_t floats = isSum ? product.k * product.n : product.m * product.n;
    memory.push_back(std::make_unique<Floats>(floats * (isSum ? run.threads : 1)));
    float *y = *memory.back();
    all.push_back({peer.name,
                   [=, &run, &peer] {
                     parallelFor(run.pool, product.m, share,
                                 [&](int64_t begin, int64_t end, int64_t chunk) {
                                   peer.run(product, begin, end, isSum ? y + chunk * floats : y);
                                 });
                   },
                   y});
  }
  return all;
}

template <int K, int N> void products(Run &run, int64_t m) {
  Floats x(m * K, 1), w(K * N, 2), bias(N, 3), dy(m * N, 4), y(m * N), fused(m * N), dx(m * K),
      dw(K * N), yBf16(m * N), dxBf16(m * K), dwBf16(K * N);
  Floats scratch(std::max({k::matmulScratchBytes<K, N>(), k::matmulScratchBytes<N, K>(),
                           k::matmulRowsScratchBytes<K, N>()}) /
                 4);
  char shape[64];
  std::snprintf(shape, sizeof shape, "%ld x %d x %d", static_cast<long>(m), N, K);
  const double flops = 2.0 * static_cast<double>(m) * K * N;
  std::vector<std::unique_ptr<Floats>> memory;
  auto withPeers = [&](const char *name, std::function<void()> ours, const float *result,
                       const Product &product, std::vector<Contestant> more = {}) {
    std::vector<Contestant> all{{name, std::move(ours), result}};
    for (Contestant &one : more)
      all.push_back(std::move(one));
    for (Contestant &peer : peersAt(run, product, memory))
      all.push_back(std::move(peer));
    return all;
  };
  Product forward{Kind::product, m, N, K, x, w, nullptr};
  auto plain = withPeers(
      "genrec", [&] { k::matmul<K, N>(run.pool, m, x, K, w, N, y, N, k::Epilogue<>{}, scratch); },
      y, forward,
      {{"genrec, bf16",
        [&] { k::matmulBf16<K, N>(run.pool, m, x, K, w, N, yBf16, N, k::Epilogue<>{}, scratch); },
        yBf16, kBf16Tolerance}});
  auto whole = withPeers(
      "genrec, epilogue",
      [&] {
        k::Epilogue<k::Activation::relu, true> epilogue;
        epilogue.bias = bias;
        k::matmul<K, N>(run.pool, m, x, K, w, N, fused, N, epilogue, scratch);
      },
      fused, forward);
  for (size_t i = 1; i < whole.size(); ++i) {
    whole[i].name += " + epilogue";
    whole[i].run = [&, i, product = whole[i].run] {
      product();
      addBiasAndRelu(run.pool, m, N, bias, const_cast<float *>(whole[i].result));
    };
  }
  measure(run, shape, "forward", flops, m * N, {plain, whole});
  measure(run, shape, "gradient of x", flops, m * K,
          {withPeers("genrec",
                     [&] {
                       k::matmul<N, K, true>(run.pool, m, dy, N, w, N, dx, K, k::Epilogue<>{},
                                             scratch);
                     },
                     dx, {Kind::productTransposed, m, K, N, dy, w, nullptr},
                     {{"genrec, bf16",
                       [&] {
                         k::matmulBf16<N, K, true>(run.pool, m, dy, N, w, N, dxBf16, K,
                                                   k::Epilogue<>{}, scratch);
                       },
                       dxBf16, kBf16Tolerance}})});
  measure(
      run, shape, "gradient of w", flops, run.threads == 1 ? K * N : 0,
      {withPeers("genrec", [&] { k::matmulRows<K, N>(run.pool, m, x, K, dy, N, dw, N, scratch); },
                 dw, {Kind::contraction, m, N, K, x, dy, nullptr},
                 {{"genrec, bf16",
                   [&] { k::matmulRowsBf16<K, N>(run.pool, m, x, K, dy, N, dwBf16, N, scratch); },
                   dwBf16, kBf16Tolerance}})});
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: matrix_products <threads> <rounds> <libtorch_cpu.so>\n");
    return 2;
  }
  int threads = std::atoi(argv[1]);
  bench::Pool pool(threads);
  Run run{threads, std::atoi(argv[2]), pool, bench::peers(argv[3])};
  std::printf("[");
  products<50, 200>(run, 14000); // HSTU: queries, keys, values and gates
  products<50, 50>(run, 14000);  // HSTU: out
  products<64, 256>(run, 4096);
  products<256, 64>(run, 4096);
  products<367, 64>(run, 2048);   // DLRM: dots and counts to the network on top
  products<64, 32>(run, 2048);    // DLRM: layers of both networks
  products<256, 256>(run, 14000); // rankers
  std::printf("]\n");
}
