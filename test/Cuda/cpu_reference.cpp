//===- cpu_reference.cpp - Kernels of the CPU for tests of devices --------===//

#include "cpu_reference.h"

#include "genrec_rt/kernels/cpu/cross_attention.h"
#include "genrec_rt/kernels/cpu/distinct_gradient.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/cpu/in_batch_softmax.h"

#include <vector>

namespace genrec::rt::cuda::test {
namespace {

/// Memory for a kernel that wants whole cache lines.
class Scratch {
public:
  explicit Scratch(int64_t bytes) : memory(static_cast<size_t>(bytes) + 64) {}
  void *data() {
    return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  }

private:
  std::vector<char> memory;
};

} // namespace

void multiplyOnCpu(int64_t m, int64_t k, int64_t n, const float *x, int64_t ldX, const float *w,
                   int64_t ldW, float *y, int64_t ldY) {
  Scratch scratch(kernels::matmulDynamicScratchBytes(k, n));
  kernels::matmulDynamic(nullptr, /*transposeW=*/true, m, k, n, x, ldX, w, ldW, y, ldY,
                         /*accumulate=*/false, scratch.data());
}

template <int Heads, int Qk, int V, bool Bf16>
void crossAttentionOnCpu(const CrossAttentionCase &of, const CrossAttentionResults &to) {
  kernels::CrossAttentionArgs args;
  args.queries = of.queries, args.keys = of.keys;
  args.q = of.q, args.ldQ = of.ldQ, args.k = of.k, args.ldK = of.ldK;
  args.v = of.v, args.ldV = of.ldV, args.scale = of.scale;
  Scratch scratch(kernels::crossAttentionScratchBytes(of.keys, 1));
  kernels::crossAttentionForward<Heads, Qk, V, Bf16>(nullptr, args, to.out, scratch.data());
  kernels::crossAttentionBackward<Heads, Qk, V, Bf16>(nullptr, args, of.dOut, of.ldDOut, to.dQ,
                                                      to.dK, to.dV, scratch.data());
}

template <int D, int N>
void distinctLinearOnCpu(const DistinctCase &of, const DistinctResults &to) {
  const kernels::DistinctLookups lookups =
      kernels::DistinctLookups(of.found).from(of.first, of.parts);
  Scratch scratch(kernels::distinctLinearScratchBytes<D, N>(lookups, 1)),
      backward(kernels::distinctLinearGradientScratchBytes<D, N>(lookups, 1));
  kernels::distinctLinear<D, N>(nullptr, lookups, of.values, of.ldValues, of.weight, of.columns,
                                to.y, of.ldY, /*adds=*/of.first > 0,
                                static_cast<float *>(scratch.data()));
  for (int64_t part = 0; part < of.parts; ++part)
    kernels::distinctLinearGradient<D, N>(nullptr, lookups, part, of.values, of.ldValues, of.weight,
                                          of.columns, of.gradient, of.ldY, to.dvalues, to.dweight,
                                          static_cast<float *>(backward.data()));
}

void inBatchOnCpu(const InBatchCase &of, const InBatchResults &to) {
  genrec_domain domain = {};
  domain.count = of.rows;
  const kernels::InBatchArgs args{&domain,   of.size, of.query, of.ldQuery, of.item,
                                  of.ldItem, of.id,   of.logQ,  of.valid,   of.temperature};
  Scratch scratch(inBatchScratchBytes(of.rows, of.size, 1));
  kernels::inBatchForward(nullptr, args, to.loss, to.kept, scratch.data());
  kernels::inBatchBackward(nullptr, args, to.kept, of.dLoss, to.dQuery, to.dItem, scratch.data());
}

#define GENREC_CROSS_ATTENTION(Heads, Qk, V)                                                       \
  template void crossAttentionOnCpu<Heads, Qk, V, false>(const CrossAttentionCase &,               \
                                                         const CrossAttentionResults &);           \
  template void crossAttentionOnCpu<Heads, Qk, V, true>(const CrossAttentionCase &,                \
                                                        const CrossAttentionResults &);
GENREC_CROSS_ATTENTION(2, 18, 12)
GENREC_CROSS_ATTENTION(1, 50, 50)
GENREC_CROSS_ATTENTION(3, 1, 40)
GENREC_CROSS_ATTENTION(1, 64, 64)
GENREC_CROSS_ATTENTION(2, 8, 8)
GENREC_CROSS_ATTENTION(1, 8, 8)
GENREC_CROSS_ATTENTION(1, 72, 130)
GENREC_CROSS_ATTENTION(1, 1500, 1200)
GENREC_CROSS_ATTENTION(2, 7, 5600)
#undef GENREC_CROSS_ATTENTION

#define GENREC_DISTINCT_LINEAR(D, N)                                                               \
  template void distinctLinearOnCpu<D, N>(const DistinctCase &, const DistinctResults &);
GENREC_DISTINCT_LINEAR(1, 1)
GENREC_DISTINCT_LINEAR(4, 128)
GENREC_DISTINCT_LINEAR(8, 33)
GENREC_DISTINCT_LINEAR(16, 64)
GENREC_DISTINCT_LINEAR(17, 70)
GENREC_DISTINCT_LINEAR(64, 16)
GENREC_DISTINCT_LINEAR(3, 16)
GENREC_DISTINCT_LINEAR(16, 144)
GENREC_DISTINCT_LINEAR(80, 16)
GENREC_DISTINCT_LINEAR(16, 16)
GENREC_DISTINCT_LINEAR(4, 16)
GENREC_DISTINCT_LINEAR(8, 20)
GENREC_DISTINCT_LINEAR(3, 20)
GENREC_DISTINCT_LINEAR(416, 144)
GENREC_DISTINCT_LINEAR(1, 144)
GENREC_DISTINCT_LINEAR(4, 144)
#undef GENREC_DISTINCT_LINEAR

} // namespace genrec::rt::cuda::test
