// Matrix products of recommendation shapes: ours against oneDNN and OpenBLAS,
// each of those with one thread per call and the rows split over our threads.
//
//   gemm [<threads>]

#include "timing.h"

#include "genrec_rt/kernels/gemm.h"

#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>

extern "C" void openblas_set_num_threads(int);
extern "C" void omp_set_num_threads(int); // of the calling thread

namespace {

namespace k = genrec::rt::kernels;
using bench::best;
using bench::Floats;
using genrec::rt::parallelFor;

struct Rates {
  double ours, oneDnn, openBlas, withEpilogue;
};

void print(const char *shape, int threads, Rates r) {
  std::printf("| %-22s | %d | %4.0f | %4.0f | %4.0f | %5.2f |", shape, threads, r.ours, r.oneDnn, r.openBlas,
              r.ours / std::max(r.oneDnn, r.openBlas));
  if (r.withEpilogue > 0)
    std::printf(" %4.0f |\n", r.withEpilogue);
  else
    std::printf("      |\n");
  std::fflush(stdout);
}

template <int K, int N> void product(int64_t m, int threads) {
  bench::Pool pool(threads);
  Floats x(m * K, 1), w(K * N, 2), y(m * N), pre(m * N), bias(N, 3);
  Floats scratch(k::matmulScratchBytes<K, N>() / 4);
  const double work = 2e-9 * static_cast<double>(m) * K * N;
  const int64_t share = (m + threads - 1) / threads;
  Rates r;
  r.ours = work / best([&] { k::matmul<K, N>(pool, m, x, K, w, N, y, N, k::Epilogue<>{}, scratch); });
  r.oneDnn = work / best([&] {
    parallelFor(pool, m, share, [&](int64_t begin, int64_t end, int64_t) {
      omp_set_num_threads(1);
      dnnl_sgemm('N', 'N', end - begin, N, K, 1, x + begin * K, K, w, N, 0, y + begin * N, N);
    });
  });
  r.openBlas = work / best([&] {
    parallelFor(pool, m, share, [&](int64_t begin, int64_t end, int64_t) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(end - begin), N, K, 1, x + begin * K, K, w, N, 0, y + begin * N, N);
    });
  });
  k::Epilogue<k::Activation::silu, true, true> epilogue{bias, pre, N};
  r.withEpilogue = work / best([&] { k::matmul<K, N>(pool, m, x, K, w, N, y, N, epilogue, scratch); });
  char shape[64];
  std::snprintf(shape, sizeof shape, "%ld x %d x %d", static_cast<long>(m), N, K);
  print(shape, threads, r);
}

template <int K, int N> void contraction(int64_t m, int threads) {
  bench::Pool pool(threads);
  Floats x(m * K, 1), dy(m * N, 2), dw(K * N);
  Floats scratch(k::matmulRowsScratchBytes<K, N>() / 4);
  // The peers' threads sum rows into results of their own, which are not added
  // up here: a little in their favour.
  std::vector<std::unique_ptr<Floats>> parts;
  for (int i = 0; i < threads; ++i)
    parts.push_back(std::make_unique<Floats>(K * N));
  const double work = 2e-9 * static_cast<double>(m) * K * N;
  const int64_t share = (m + threads - 1) / threads;
  Rates r;
  r.ours = work / best([&] { k::matmulRows<K, N>(pool, m, x, K, dy, N, dw, N, scratch); });
  r.oneDnn = work / best([&] {
    parallelFor(pool, m, share, [&](int64_t begin, int64_t end, int64_t chunk) {
      omp_set_num_threads(1);
      dnnl_sgemm('T', 'N', K, N, end - begin, 1, x + begin * K, K, dy + begin * N, N, 0, *parts[static_cast<size_t>(chunk)], N);
    });
  });
  r.openBlas = work / best([&] {
    parallelFor(pool, m, share, [&](int64_t begin, int64_t end, int64_t chunk) {
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, K, N, static_cast<int>(end - begin), 1, x + begin * K, K, dy + begin * N, N, 0,
                  *parts[static_cast<size_t>(chunk)], N);
    });
  });
  r.withEpilogue = 0;
  char shape[64];
  std::snprintf(shape, sizeof shape, "%d x %d x %ld, x^T", K, N, static_cast<long>(m));
  print(shape, threads, r);
}

} // namespace

int main(int argc, char **argv) {
  openblas_set_num_threads(1);
  std::printf("GFLOP/s; m x n x k; the epilogue adds a bias, keeps the sum and applies SiLU\n"
              "| shape | threads | ours | oneDNN | OpenBLAS | ours / best | ours, epilogue |\n|---|---|---|---|---|---|---|\n");
  for (int threads : bench::threadCounts(argc, argv)) {
    product<50, 200>(14000, threads);
    product<200, 50>(14000, threads);
    product<50, 50>(14000, threads);
    product<64, 64>(14000, threads);
    product<256, 64>(4096, threads);
    product<256, 256>(14000, threads);
    product<512, 512>(4096, threads);
    contraction<50, 200>(14000, threads);
    contraction<50, 50>(14000, threads);
    contraction<256, 64>(4096, threads);
    contraction<256, 256>(14000, threads);
  }
}
