//===- ceiling.cpp - What this machine can do, for the shapes of one model ---===//
//
//   ceiling <threads> <width> <inner> <items> <negatives> <length> [<length> ...]
//
// Measures, best of repeated calls: the matrix products of an HSTU layer by every
// implementation at hand, the products of attention per sequence, reading and
// adding to rows of a table that stays in the cache, and copying memory. Lengths
// are those of the sequences of one batch. Prints one JSON object per line:
//
//   {"kind": "product", "shape": "uvqk", "by": "oneDNN, rows split", "seconds": s, "work": FLOPs}
//
// Units of `work`: FLOPs for products and pairs, rows for rows, bytes (read and
// written) for copies.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/kernels/cpu/attention.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/parallel.h"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

#if __has_include("genrec_rt/kernels/cpu/gathered_rows.h")
#include "genrec_rt/kernels/cpu/gathered_rows.h"
#define HAS_ROW_KERNELS 1
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

namespace kernels = genrec::rt::kernels;
using genrec::rt::parallelFor;

constexpr double kSecondsPerMeasurement = 0.4;
constexpr int kFewestRuns = 5;
/// What the example's model is compiled for; other sizes are measured without our kernels of static sizes.
constexpr int kWidth = 50, kInner = 200;

struct Setting {
  int threads = 1;
  int64_t width = 0, inner = 0, items = 0, negatives = 0;
  std::vector<int64_t> lengths;
  int64_t tokens = 0, longest = 0;
  genrec_rt_pool *pool = nullptr;
};

/// Memory for kernels: aligned to a cache line, filled with small numbers so that nothing overflows or is denormal.
class Floats {
public:
  explicit Floats(int64_t count)
      : memory(static_cast<float *>(std::aligned_alloc(64, (count * 4 + 127) / 64 * 64))), count(count) {
    if (!memory) {
      std::fprintf(stderr, "ceiling: error: no memory for %lld floats\n", static_cast<long long>(count));
      std::exit(1);
    }
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
    std::generate_n(memory, count, [&] { return uniform(random); });
  }
  ~Floats() { std::free(memory); }
  Floats(const Floats &) = delete;
  Floats &operator=(const Floats &) = delete;
  operator float *() const { return memory; }
  int64_t size() const { return count; }

private:
  float *memory;
  int64_t count;
};

/// Runs `body` for a while and prints its shortest run.
void measure(const char *kind, const std::string &shape, const char *by, double work, const std::function<void()> &body) {
  using Clock = std::chrono::steady_clock;
  body();
  double best = 1e30, total = 0;
  for (int run = 0; run < kFewestRuns || total < kSecondsPerMeasurement; ++run) {
    auto begin = Clock::now();
    body();
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds);
    total += seconds;
  }
  std::printf("{\"kind\": \"%s\", \"shape\": \"%s\", \"by\": \"%s\", \"seconds\": %.9g, \"work\": %.9g}\n", kind,
              shape.c_str(), by, best, work);
  std::fflush(stdout);
}

/// oneDNN's own threads: as many as OpenMP is told here.
void setOpenMPThreads(int threads) {
  if (auto *set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    set(threads);
}

/// c[m, n] (+)= a b, row-major; `ta`: a is stored [k, m], `tb`: b is stored [n, k].
void sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb,
           float *c, int64_t ldc) {
  if (dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0f, a, lda, b, ldb, 0.0f, c, ldc) != dnnl_success) {
    std::fprintf(stderr, "ceiling: error: dnnl_sgemm failed\n");
    std::exit(1);
  }
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// The three products of a linear layer [k, n] over the batch's tokens by oneDNN, threaded in both ways.
void linearByOneDnn(const Setting &s, const std::string &name, int64_t k, int64_t n) {
  const int64_t m = s.tokens;
  const double work = 2.0 * m * k * n;
  Floats x(m * k), w(k * n), y(m * n), dx(m * k), dw(k * n * s.threads);
  auto both = [&](const std::string &shape, const std::function<void()> &whole,
                  const std::function<void(int64_t, int64_t, int64_t)> &rows) {
    setOpenMPThreads(s.threads);
    measure("product", shape, "oneDNN, its own threads", work, whole);
    setOpenMPThreads(1);
    const int64_t grain = (m + s.threads - 1) / s.threads;
    measure("product", shape, "oneDNN, rows split", work, [&] { parallelFor(s.pool, m, grain, rows); });
  };
  both(
      name, [&] { sgemm(false, false, m, n, k, x, k, w, n, y, n); },
      [&](int64_t begin, int64_t end, int64_t) {
        sgemm(false, false, end - begin, n, k, x + begin * k, k, w, n, y + begin * n, n);
      });
  both(
      name + " dx", [&] { sgemm(false, true, m, k, n, y, n, w, n, dx, k); },
      [&](int64_t begin, int64_t end, int64_t) {
        sgemm(false, true, end - begin, k, n, y + begin * n, n, w, n, dx + begin * k, k);
      });
  both(
      name + " dw", [&] { sgemm(true, false, k, n, m, x, k, y, n, dw, n); },
      [&](int64_t begin, int64_t end, int64_t chunk) {
        sgemm(true, false, k, n, end - begin, x + begin * k, k, y + begin * n, n, dw + chunk * k * n, n);
      });
}

/// The same by the runtime's own kernels, with the sizes known to the compiler.
template <int K, int N> void linearByRuntime(const Setting &s, const std::string &name) {
  const int64_t m = s.tokens;
  const double work = 2.0 * m * K * N;
  Floats x(m * K), w(K * N), y(m * N), dx(m * K), dw(K * N);
  Floats scratch(std::max({kernels::matmulScratchBytes<K, N>(), kernels::matmulScratchBytes<N, K>(),
                           kernels::matmulRowsScratchBytes<K, N>()}) / 4);
  kernels::Epilogue<> plain;
  measure("product", name, "genrec", work,
          [&] { kernels::matmul<K, N>(s.pool, m, x, K, w, N, y, N, plain, scratch); });
  measure("product", name + " dx", "genrec", work,
          [&] { kernels::matmul<N, K, true>(s.pool, m, y, N, w, N, dx, K, plain, scratch); });
  measure("product", name + " dw", "genrec", work,
          [&] { kernels::matmulRows<K, N>(s.pool, m, x, K, y, N, dw, N, scratch); });
}

//===----------------------------------------------------------------------===//
// Products of attention: one per sequence
//===----------------------------------------------------------------------===//

/// q kᵀ, a v and aᵀ d for whole [L, L] matrices a; the caller counts the causal half.
void attentionProducts(const Setting &s) {
  const int64_t d = s.width;
  double pairs = 0;
  for (int64_t length : s.lengths)
    pairs += static_cast<double>(length) * length;
  const double work = 2 * pairs * d;
  std::vector<int64_t> offsets{0};
  for (int64_t length : s.lengths)
    offsets.push_back(offsets.back() + length);
  Floats q(s.tokens * d), k(s.tokens * d), out(s.tokens * d);
  std::vector<std::unique_ptr<Floats>> a;
  for (int i = 0; i < s.threads; ++i)
    a.push_back(std::make_unique<Floats>(s.longest * s.longest));
  const int64_t most = std::max(s.longest, d);
  const int64_t scratchFloats = std::max(kernels::matmulDynamicScratchBytes(most, most),
                                         kernels::matmulRowsDynamicScratchBytes(s.longest, d)) / 4;
  std::vector<std::unique_ptr<Floats>> scratch;
  for (int i = 0; i < s.threads; ++i)
    scratch.push_back(std::make_unique<Floats>(scratchFloats));

  auto each = [&](const char *shape, const char *by,
                  const std::function<void(int64_t length, int64_t first, float *scores, float *room)> &one) {
    measure("pairs", shape, by, work, [&] {
      parallelFor(s.pool, static_cast<int64_t>(s.lengths.size()), 1, [&](int64_t begin, int64_t end, int64_t) {
        const int worker = genrec_rt_worker_index();
        for (int64_t i = begin; i < end; ++i)
          one(s.lengths[i], offsets[i] * d, *a[worker], *scratch[worker]);
      });
    });
  };
  each("scores", "oneDNN", [&](int64_t length, int64_t first, float *scores, float *) {
    sgemm(false, true, length, length, d, q + first, d, k + first, d, scores, length);
  });
  each("values", "oneDNN", [&](int64_t length, int64_t first, float *scores, float *) {
    sgemm(false, false, length, d, length, scores, length, k + first, d, out + first, d);
  });
  each("transposed", "oneDNN", [&](int64_t length, int64_t first, float *scores, float *) {
    sgemm(true, false, length, d, length, scores, length, k + first, d, out + first, d);
  });
  each("scores", "genrec", [&](int64_t length, int64_t first, float *scores, float *room) {
    kernels::matmulDynamic(nullptr, true, length, d, length, q + first, d, k + first, d, scores, length, false, room);
  });
  each("values", "genrec", [&](int64_t length, int64_t first, float *scores, float *room) {
    kernels::matmulDynamic(nullptr, false, length, length, d, scores, length, k + first, d, out + first, d, false, room);
  });
  each("transposed", "genrec", [&](int64_t length, int64_t first, float *scores, float *room) {
    kernels::matmulRowsDynamic(nullptr, length, length, d, scores, length, k + first, d, out + first, d, false, room);
  });
}

/// All of attention at once by the runtime's kernels, position bias included: forward 2 products, backward 4 and the
/// scores again, of which 6 count. Here `work` is of causal pairs.
void fusedAttention(const Setting &s) {
  using Config = kernels::AttentionConfig<1, kWidth, kWidth, kernels::ScoreKind::silu, /*IsCausal=*/true, false,
                                          /*WithPositionBias=*/true, false, false>;
  std::vector<int64_t> offsets{0};
  double pairs = 0;
  for (int64_t length : s.lengths) {
    offsets.push_back(offsets.back() + length);
    pairs += 0.5 * length * (length + 1);
  }
  constexpr int64_t ld = 4 * kWidth;
  const int64_t buckets = 2 * s.longest - 1;
  Floats joined(s.tokens * ld), gradient(s.tokens * ld), out(s.tokens * kWidth), dOut(s.tokens * kWidth);
  Floats bias(buckets), dBias(buckets);
  Floats scratch(std::max(kernels::attentionForwardScratchBytes<Config>(s.longest, s.threads),
                          kernels::attentionBackwardScratchBytes<Config>(s.longest, s.threads, buckets, 0)) / 4);
  kernels::AttentionArgs args;
  args.parents = static_cast<int64_t>(s.lengths.size());
  args.offsets = offsets.data();
  args.maxLength = s.longest;
  args.v = joined + kWidth, args.q = joined + 2 * kWidth, args.k = joined + 3 * kWidth;
  args.ldQ = args.ldK = args.ldV = ld;
  args.out = out, args.ldOut = kWidth;
  args.fixedLength = 211;
  args.positionBias = bias, args.positionBuckets = buckets;
  kernels::AttentionGradients gradients;
  gradients.dOut = dOut, gradients.ldDOut = kWidth;
  gradients.dV = gradient + kWidth, gradients.dQ = gradient + 2 * kWidth, gradients.dK = gradient + 3 * kWidth;
  gradients.ldDQ = gradients.ldDK = gradients.ldDV = ld;
  gradients.dPositionBias = dBias;
  measure("pairs", "forward", "genrec, fused", 2 * 2 * kWidth * pairs,
          [&] { kernels::attentionForward<Config>(s.pool, args, scratch); });
  measure("pairs", "backward", "genrec, fused", 4 * 2 * kWidth * pairs,
          [&] { kernels::attentionBackward<Config>(s.pool, args, gradients, scratch); });
}

//===----------------------------------------------------------------------===//
// Rows of a table that stays in the cache
//===----------------------------------------------------------------------===//

/// Rows drawn like negatives: `perToken` indices for each token.
struct Draws {
  Draws(const Setting &s) : perToken(s.negatives + 1), index(s.tokens * perToken) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int32_t> item(0, static_cast<int32_t>(s.items - 1));
    std::generate(index.begin(), index.end(), [&] { return item(random); });
  }
  int64_t perToken;
  std::vector<int32_t> index;
};

constexpr int kMostNegatives = 4096;

/// `forToken(token, indices)` for all tokens, on all threads.
void rows(const Setting &s, const Draws &draws, const char *shape, const char *by,
          const std::function<void(int64_t token, const int32_t *index)> &forToken) {
  measure("rows", shape, by, static_cast<double>(draws.index.size()), [&] {
    parallelFor(s.pool, s.tokens, 64, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t token = begin; token < end; ++token)
        forToken(token, draws.index.data() + token * draws.perToken);
    });
  });
}

/// One pass over a token's rows: the dot product with the token's vector, and the sum of the rows weighted by it.
template <int D> void readRowsPlain(const float *table, int64_t ld, const int32_t *index, int64_t count, const float *q,
                                    float *sum) {
  float total[D] = {};
  for (int64_t j = 0; j < count; ++j) {
    const float *row = table + index[j] * ld;
    float dot = 0;
    {
#pragma clang fp reassociate(on) contract(fast)
      for (int i = 0; i < D; ++i)
        dot += row[i] * q[i];
    }
    for (int i = 0; i < D; ++i)
      total[i] = __builtin_fmaf(dot, row[i], total[i]);
  }
  std::memcpy(sum, total, sizeof total);
}

template <int D> void addToRowsPlain(float *table, int64_t ld, const int32_t *index, int64_t count, const float *q) {
  for (int64_t j = 0; j < count; ++j) {
    float *row = table + index[j] * ld;
    for (int i = 0; i < D; ++i)
      row[i] = __builtin_fmaf(0.5f, q[i], row[i]);
  }
}

/// `Row` floats per row of which `Width` count: rows may be padded to whole vectors.
template <int Width, int Row> void rowRates(const Setting &s, const Draws &draws, const char *padding) {
  Floats table(s.items * Row), queries(s.tokens * Row), sums(s.tokens * Row);
  std::vector<std::unique_ptr<Floats>> gradients;
  for (int i = 0; i < s.threads; ++i)
    gradients.push_back(std::make_unique<Floats>(s.items * Row));
  const int64_t count = draws.perToken;
  std::string plain = std::string("plain loops, ") + padding;
  rows(s, draws, "read", plain.c_str(), [&](int64_t token, const int32_t *index) {
    readRowsPlain<Row>(table, Row, index, count, queries + token * Row, sums + token * Row);
  });
  rows(s, draws, "add", plain.c_str(), [&](int64_t token, const int32_t *index) {
    addToRowsPlain<Row>(*gradients[genrec_rt_worker_index()], Row, index, count, queries + token * Row);
  });
#ifdef HAS_ROW_KERNELS
  std::string ours = std::string("genrec, ") + padding;
  rows(s, draws, "read", ours.c_str(), [&](int64_t token, const int32_t *index) {
    float dots[kMostNegatives];
    kernels::gatherDot<Width>(table, Row, index, count, queries + token * Row, dots);
    kernels::gatherSum<Width>(table, Row, index, dots, count, sums + token * Row);
  });
  std::vector<float> coefficients(count, 0.5f);
  rows(s, draws, "add", ours.c_str(), [&](int64_t token, const int32_t *index) {
    kernels::scatterAddOuter<Width>(*gradients[genrec_rt_worker_index()], Row, index, coefficients.data(), count,
                                    queries + token * Row);
  });
#endif
}

//===----------------------------------------------------------------------===//
// Copying memory
//===----------------------------------------------------------------------===//

/// Arrays about as large as what a step works on, which a large cache may hold, and arrays that none holds.
void copyRate(const Setting &s, int64_t mebibytes) {
  const int64_t count = mebibytes << 18;
  Floats from(count), to(count);
  const std::string size = std::to_string(mebibytes) + " MiB";
  const int64_t grain = (count + s.threads - 1) / s.threads;
  measure("copy", size, "memcpy", 8.0 * count, [&] {
    parallelFor(s.pool, count, grain, [&](int64_t begin, int64_t end, int64_t) {
      std::memcpy(to + begin, from + begin, (end - begin) * 4);
    });
  });
  measure("copy", size, "plain loop", 8.0 * count, [&] {
    parallelFor(s.pool, count, grain, [&](int64_t begin, int64_t end, int64_t) {
      float *target = to;
      const float *source = from;
      for (int64_t i = begin; i < end; ++i)
        target[i] = source[i];
    });
  });
}

Setting parse(int argc, char **argv) {
  Setting s;
  if (argc < 7) {
    std::fprintf(stderr, "usage: ceiling <threads> <width> <inner> <items> <negatives> <length> [<length> ...]\n");
    std::exit(2);
  }
  s.threads = std::max(1, std::atoi(argv[1]));
  s.width = std::atoll(argv[2]);
  s.inner = std::atoll(argv[3]);
  s.items = std::atoll(argv[4]);
  s.negatives = std::atoll(argv[5]);
  for (int i = 6; i < argc; ++i)
    s.lengths.push_back(std::atoll(argv[i]));
  for (int64_t length : s.lengths) {
    s.tokens += length;
    s.longest = std::max(s.longest, length);
  }
  if (s.width != kWidth || s.inner != kInner || s.items < 1 || s.negatives < 1 || s.negatives >= kMostNegatives ||
      *std::min_element(s.lengths.begin(), s.lengths.end()) < 1) {
    std::fprintf(stderr, "ceiling: error: built for width %d, inner width %d and 1 to %d negatives, with positive sizes\n",
                 kWidth, kInner, kMostNegatives - 1);
    std::exit(2);
  }
  s.pool = genrec_rt_pool_create(s.threads);
  return s;
}

} // namespace

int main(int argc, char **argv) {
  Setting s = parse(argc, argv);
  linearByOneDnn(s, "uvqk", s.width, s.inner);
  linearByOneDnn(s, "out", s.width, s.width);
  linearByRuntime<kWidth, kInner>(s, "uvqk");
  linearByRuntime<kWidth, kWidth>(s, "out");
  attentionProducts(s);
  fusedAttention(s);
  Draws draws(s);
  rowRates<kWidth, kWidth>(s, draws, "rows of 50");
  rowRates<kWidth, 64>(s, draws, "rows padded to 64");
  copyRate(s, 32);
  copyRate(s, 256);
  genrec_rt_pool_destroy(s.pool);
  return 0;
}
