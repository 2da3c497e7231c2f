//===- peers.h - Matrix products of other libraries -------------*- C++ -*-===//
//
// Every peer computes rows of y[m, n] = x[m, k] op(w), or dw[k, n] = x[m, k]^T dy[m, n],
// on the calling thread. What a machine lacks is left out.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_BENCHMARKS_MATRIX_PRODUCTS_PEERS_H
#define GENREC_BENCHMARKS_MATRIX_PRODUCTS_PEERS_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#if defined(BENCH_OPENBLAS)
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif
#if defined(BENCH_LIBXSMM)
#include <libxsmm.h>
#endif

extern "C" void omp_set_num_threads(int); // of the calling thread

namespace bench {

/// What to compute. Product: y = x w (k x n), or x w^T with w n x k. Contraction: y = x^T w, w m x
/// n.
enum class Kind { product, productTransposed, contraction };

struct Product {
  Kind kind;
  int64_t m, n, k;
  const float *x, *w;
  float *y;
};

/// All of a product, or the rows [begin, end) of it; of a contraction, what these rows add
/// up to.
struct Peer {
  std::string name;
  std::function<void(const Product &, int64_t begin, int64_t end, float *y)> run;
  std::function<bool(const Product &)> can = [](const Product &) { return true; };
};

using Gemm = void (*)(int order, int transA, int transB, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);

/// A call of cblas_sgemm, whoever's it is.
inline void callCblas(Gemm gemm, const Product &p, int64_t begin, int64_t end, float *y) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  int m = static_cast<int>(end - begin), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  if (p.kind == Kind::contraction)
    gemm(kRowMajor, kTransposed, kPlain, k, n, m, 1, p.x + begin * k, k, p.w + begin * n, n, 0, y,
         n);
  else if (p.kind == Kind::product)
    gemm(kRowMajor, kPlain, kPlain, m, n, k, 1, p.x + begin * k, k, p.w, n, 0, y + begin * n, n);
  else
    gemm(kRowMajor, kPlain, kTransposed, m, n, k, 1, p.x + begin * k, k, p.w, k, 0, y + begin * n,
         n);
}

inline Peer oneDnn() {
  return {"oneDNN", [](const Product &p, int64_t begin, int64_t end, float *y) {
            omp_set_num_threads(1);
            bool isTransposed = p.kind == Kind::productTransposed;
            if (p.kind == Kind::contraction)
              dnnl_sgemm('T', 'N', p.k, p.n, end - begin, 1, p.x + begin * p.k, p.k,
                         p.w + begin * p.n, p.n, 0, y, p.n);
            else
              dnnl_sgemm('N', isTransposed ? 'T' : 'N', end - begin, p.n, p.k, 1, p.x + begin * p.k,
                         p.k, p.w, isTransposed ? p.k : p.n, 0, y + begin * p.n, p.n);
          }};
}

/// MKL inside of PyTorch: `library` is its libtorch_cpu.so.
inline std::vector<Peer> mkl(const char *library) {
  void *handle = *library ? dlopen(library, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle)
    return {};
  // Fortran's interface is what that library lets others see.
  using Fortran = void (*)(const char *, const char *, const int *, const int *, const int *,
                           const float *, const float *, const int *, const float *, const int *,
                           const float *, float *, const int *);
  auto gemm = reinterpret_cast<Fortran>(dlsym(handle, "sgemm_"));
  auto threads = reinterpret_cast<int (*)(int)>(dlsym(handle, "MKL_Set_Num_Threads_Local"));
  if (!gemm || !threads)
    return {};
  return {
      {"MKL of PyTorch", [gemm, threads](const Product &p, int64_t begin, int64_t end, float *y) {
         threads(1);
         const int m = static_cast<int>(end - begin), n = static_cast<int>(p.n),
                   k = static_cast<int>(p.k);
         const float one = 1, zero = 0;
         if (p.kind == Kind::contraction)
           gemm("N", "T", &n, &k, &m, &one, p.w + begin * n, &n, p.x + begin * k, &k, &zero, y, &n);
         else if (p.kind == Kind::product)
           gemm("N", "N", &n, &m, &k, &one, p.w, &n, p.x + begin * k, &k, &zero, y + begin * n, &n);
         else
           gemm("T", "N", &n, &m, &k, &one, p.w, &k, p.x + begin * k, &k, &zero, y + begin * n, &n);
       }}};
}

#if defined(BENCH_LIBXSMM)
/// Row-major products are column-major ones of the transposed sides: a kernel made for
/// blocks of 64 rows (and one for the rest), and w transposed first where that is asked for.
inline Peer libxsmm() {
  auto kernel = [](const Product &p, int64_t rows) {
    int lda = static_cast<int>(p.n), ldb = static_cast<int>(p.k), flags = LIBXSMM_GEMM_FLAG_NONE;
    float alpha = 1, beta = 0;
    return libxsmm_smmdispatch(static_cast<int>(p.n), static_cast<int>(rows), static_cast<int>(p.k),
                               &lda, &ldb, &lda, &alpha, &beta, &flags, nullptr);
  };
  auto run = [kernel](const Product &p, int64_t begin, int64_t end, float *y) {
    constexpr int64_t kBlock = 64;
    const float *w = p.w;
    static thread_local std::vector<float> transposed;
    if (p.kind == Kind::productTransposed) {
      transposed.resize(static_cast<size_t>(p.k * p.n));
      for (int64_t i = 0; i < p.n; ++i)
        for (int64_t j = 0; j < p.k; ++j)
          transposed[static_cast<size_t>(j * p.n + i)] = p.w[i * p.k + j];
      w = transposed.data();
    }
    auto whole = kernel(p, kBlock),
         rest = kernel(p, (end - begin) % kBlock ? (end - begin) % kBlock : kBlock);
    for (int64_t row = begin; row < end; row += kBlock)
      (end - row >= kBlock ? whole : rest)(w, p.x + row * p.k, y + row * p.n);
  };
  return {"libxsmm", run, [kernel](const Product &p) {
            return p.kind != Kind::contraction && kernel(p, 64) != nullptr;
          }};
}
#endif

/// The peers that this machine has.
inline std::vector<Peer> peers(const char *torchLibrary) {
  std::vector<Peer> all = mkl(torchLibrary);
  all.push_back(oneDnn());
#if defined(BENCH_OPENBLAS)
  openblas_set_num_threads(1);
  all.push_back({"OpenBLAS", [](const Product &p, int64_t begin, int64_t end, float *y) {
                   callCblas(reinterpret_cast<Gemm>(&cblas_sgemm), p, begin, end, y);
                 }});
#endif
#if defined(BENCH_LIBXSMM)
  libxsmm_init();
  all.push_back(libxsmm());
#endif
  return all;
}

} // namespace bench

#endif // GENREC_BENCHMARKS_MATRIX_PRODUCTS_PEERS_H
