//===- prepare.h - What is computed once before and after attention's backward -===//
//
// Before: norms of rows, from which the quanta of fixed_point.h follow; softmax's dO . out; zeros
// for the sums of dQ; the list of tiles. After: the sums turned back into gradients.
//
// Memory limits both, so one launch before reads and writes everything once.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H

#include "genrec_rt/kernels/cuda/attention/result_rows.h"
#include "genrec_rt/kernels/cuda/attention/tile_list.h"

namespace genrec::rt::cuda {

constexpr int kPrepareThreads = 256, kPrepareBlocks = 4; ///< of a multiprocessor

template <class C> constexpr bool kHasBiases = C::PositionBias || C::TimeBias;

/// Collects the greatest magnitudes of a span's rows, `Count` of ListMost from `First` on (of norms
/// their squares), for each list. Few atomics, as most meet at few places: a warp has one for a
/// span of one list, else a group of lanes for each of its lists.
template <class C, ListMost First, int Count> struct SpanMost {
  const AttentionArgs<typename C::Element> &args;
  const BackwardSpace &space;
  const RowSpan<C> &span;
  bool oneList = false;
  ListCursor cursor; ///< of the group
  uint32_t most[Count] = {};

  __device__ SpanMost(const AttentionArgs<typename C::Element> &args, const BackwardSpace &space,
                      const RowSpan<C> &span)
      : args(args), space(space), span(span) {}

  /// Called by all lanes.
  __device__ __forceinline__ void begin() {
    cursor.find(args, span);
    oneList = span.first + span.count <= cursor.end;
    cursor.advance(span.row(0));
  }
  /// Called by all lanes with what each has of the rows of its group from i on.
  template <int Rows>
  __device__ __forceinline__ void add(int i, const uint32_t (&bits)[Rows][Count]) {
    if (oneList) {
      for (int n = 0; n < Count; ++n)
        for (int r = 0; r < Rows; ++r)
          most[n] = greaterOf(most[n], bits[r][n]);
      return;
    }
#pragma unroll 1
    for (int r = 0; r < Rows; ++r) {
      uint32_t ofRow[Count];
      for (int n = 0; n < Count; ++n) {
        for (int s = 0; s < Rows; ++s) // registers have no index
          ofRow[n] = s == 0 || s == r ? bits[s][n] : ofRow[n];
        ofRow[n] = RowSpan<C>::most(ofRow[n]);
      }
      if (span.row(i + r) >= cursor.end) {
        note();
        cursor.advance(span.row(i + r));
        for (uint32_t &x : most)
          x = 0;
      }
      for (int n = 0; n < Count; ++n)
        most[n] = greaterOf(most[n], ofRow[n]);
    }
  }
  __device__ __forceinline__ void end() {
    if (oneList)
      for (uint32_t &x : most)
        x = __reduce_max_sync(kAllLanes, x);
    if (!oneList || laneOf() == 0)
      note();
  }

private:
  __device__ __forceinline__ void note() const {
    uint32_t *at = space.listMost + (cursor.list * args.heads + span.head) * kListMosts + First;
    if (RowSpan<C>::lane() != 0)
      return;
    for (int n = 0; n < Count; ++n)
      atomicMax(at + n, noted(n));
  }
  __device__ __forceinline__ uint32_t noted(int n) const {
    const float greatest = __uint_as_float(most[n]);
    if constexpr (First == kMostGradient)
      return n == 0 ? magnitudeBits(sqrtf(greatest)) : most[n];
    return magnitudeBits(n == 0 ? boundOf(sqrtf(greatest), valueFactor<C>(args, cursor.rows()))
                                : boundOf(greatest, keyFactor<C>(args, cursor.rows())));
  }
};

/// The sum of products of what a lane has of two rows.
template <class A, class B, int Parts>
__device__ __forceinline__ float productOf(const Octet<A> (&a)[Parts], const Octet<B> (&b)[Parts]) {
  float sum = 0;
#pragma unroll
  for (int p = 0; p < Parts; ++p)
#pragma unroll
    for (int e = 0; e < kOctet; ++e)
      sum += a[p][e] * b[p][e];
  return sum;
}

/// Finds the greatest |v_j| and |k_je| of a span's rows. The level `plain` has no use for keys.
template <class C, bool TensorCores>
__device__ __forceinline__ void prepareKeys(const AttentionArgs<typename C::Element> &args,
                                            const BackwardSpace &space, const RowSpan<C> &span) {
  using E = typename C::Element;
  using Span = RowSpan<C>;
  constexpr int kKeyParts = Span::template kParts<C::Qk>, kParts = Span::template kParts<C::V>;
  constexpr int kAtOnce = TensorCores ? 4 : 2; // rows, for which registers suffice
  const HeadRows<C::V, const E, TensorCores> values(args.v, args.ldV);
  const HeadRows<C::Qk, const E, TensorCores> keys(args.k, args.ldK);
  SpanMost<C, kMostValue, TensorCores ? 2 : 1> most(args, space, span);
#pragma unroll 1
  for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
    Octet<E> v[kAtOnce][kParts], k[kAtOnce][kKeyParts];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int p = 0; p < kParts; ++p)
        v[r][p] = values.load(span.row(i + r), span.head, p * Span::kLanes + Span::lane());
      if constexpr (TensorCores)
#pragma unroll
        for (int p = 0; p < kKeyParts; ++p)
          k[r][p] = keys.load(span.row(i + r), span.head, p * Span::kLanes + Span::lane());
    }
    if (i == 0) // while the first rows are under way
      most.begin();
    uint32_t bits[kAtOnce][TensorCores ? 2 : 1];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      bits[r][0] = magnitudeBits(Span::sum(productOf(v[r], v[r])));
      if constexpr (TensorCores) {
        bits[r][1] = 0;
        for (const Octet<E> &part : k[r])
          for (int e = 0; e < kOctet; ++e)
            bits[r][1] = greaterOf(bits[r][1], magnitudeBits(part[e]));
      }
    }
    most.add(i, bits);
  }
  most.end();
}

/// Clears the sums of a row of dQ, all columns of its panels; called by the lanes of its group.
template <class C>
__device__ __forceinline__ void clearSums(const AttentionArgs<typename C::Element> &args,
                                          const BackwardSpace &space, int64_t head, int64_t row) {
  constexpr int kFours = kPanelColumns / 4, kAll = kQueryPanels<C> * kFours;
#pragma unroll
  for (int begin = 0; begin < kAll; begin += RowSpan<C>::kLanes) {
    const int four = begin + RowSpan<C>::lane();
    const int64_t panel = head * kQueryPanels<C> + four / kFours;
    if (kAll % RowSpan<C>::kLanes == 0 || four < kAll)
      storeFour(reinterpret_cast<uint4 *>(space.querySums) + (panel * args.rows + row) * kFours +
                    four % kFours,
                {0, 0, 0, 0});
  }
}

/// Writes the norms of a span's rows of dOut, softmax's dO . out, and zeros for their sums of dQ;
/// finds the greatest for bias gradients.
template <class C, bool TensorCores>
__device__ __forceinline__ void
prepareQueries(const AttentionArgs<typename C::Element> &args,
               const AttentionGradients<typename C::Element> &gradients, const BackwardSpace &space,
               const RowSpan<C> &span) {
  using E = typename C::Element;
  using Span = RowSpan<C>;
  constexpr int kParts = Span::template kParts<C::V>;
  constexpr int kAtOnce = TensorCores && !C::Softmax ? 4 : 2;
  const HeadRows<C::V, const E, TensorCores> outGradients(gradients.dOut, gradients.ldDOut);
  const auto *outValues = outRows<C>(args).to;
  using Out = std::remove_pointer_t<decltype(outValues)>;
  const HeadRows<C::V, Out, TensorCores> outs(outValues, args.ldOut);
  SpanMost<C, kMostGradient, C::Softmax ? 2 : 1> most(args, space, span);
#pragma unroll 1
  for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
    Octet<E> dOut[kAtOnce][kParts];
    Octet<std::remove_const_t<Out>> out[kAtOnce][kParts];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r)
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        const int octet = p * Span::kLanes + Span::lane();
        dOut[r][p] = outGradients.load(span.row(i + r), span.head, octet);
        if constexpr (C::Softmax)
          out[r][p] = outs.load(span.row(i + r), span.head, octet);
      }
    if (kHasBiases<C> && i == 0)
      most.begin();
    if constexpr (TensorCores)
      for (int r = 0; r < kAtOnce; ++r)
        if (span.exists(i + r))
          clearSums<C>(args, space, span.head, span.row(i + r));
    uint32_t bits[kAtOnce][C::Softmax ? 2 : 1];
    float squares[kAtOnce], product[kAtOnce];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      squares[r] = Span::sum(productOf(dOut[r], dOut[r]));
      bits[r][0] = magnitudeBits(squares[r]);
      if constexpr (C::Softmax) {
        product[r] = Span::sum(productOf(dOut[r], out[r]));
        bits[r][1] = magnitudeBits(product[r]);
      }
    }
    if constexpr (kHasBiases<C>)
      most.add(i, bits);
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r)
      if (Span::lane() == 0 && span.exists(i + r)) {
        const int64_t at = span.head * args.rows + span.row(i + r);
        if constexpr (TensorCores)
          space.rowNorm[at] = sqrtf(squares[r]);
        if constexpr (C::Softmax)
          space.rowProduct[at] = product[r];
      }
  }
  if constexpr (kHasBiases<C>)
    most.end();
}

/// The block that is last to have done its part of listMost finds the greatest bound of all lists
/// and heads. Called by all threads of all blocks.
template <class C>
__device__ void findGreatest(const AttentionArgs<typename C::Element> &args,
                             const BackwardSpace &space) {
  __shared__ bool isLast;
  __syncthreads(); // the block has done its part
  if (threadIdx.x == 0) {
    __threadfence(); // which is seen before the count
    isLast = atomicAdd(space.ready, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!isLast)
    return;
  static_assert(kListMosts == 4);
  uint32_t greatest = 0;
  for (int64_t i = threadIdx.x; i < listsOf(args) * args.heads; i += blockDim.x) {
    const uint4 most = loadRelaxed4(reinterpret_cast<const uint4 *>(space.listMost) + i);
    float bound = __uint_as_float(most.x) * __uint_as_float(most.z);
    if constexpr (C::Softmax)
      bound += __uint_as_float(most.w) * kBoundSlack;
    greatest = greaterOf(greatest, magnitudeBits(bound));
  }
  greatest = __reduce_max_sync(kAllLanes, greatest);
  if (laneOf() == 0)
    atomicMax(space.greatest, greatest);
}

/// What backward wants before its main kernel, if a list of tiles of `Rows` keys, then by a block
/// of its own.
template <class C, bool TensorCores, int Rows, int Columns>
__global__ void __launch_bounds__(kPrepareThreads, kPrepareBlocks)
    attentionPrepare(AttentionArgs<typename C::Element> args,
                     AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                     TileList list) {
  const int firstBlock = Rows > 0 && list.tiles ? 1 : 0;
  if constexpr (Rows > 0)
    if (static_cast<int>(blockIdx.x) < firstBlock)
      listTiles<C, Over::queries, Rows, Columns, kPrepareThreads>(args, list);
  if (static_cast<int>(blockIdx.x) >= firstBlock)
    forRowSpans<C>(
        args,
        [&](const RowSpan<C> &span) {
          if constexpr (TensorCores || kHasBiases<C>)
            prepareKeys<C, TensorCores>(args, space, span);
          prepareQueries<C, TensorCores>(args, gradients, space, span);
        },
        firstBlock);
  if constexpr (kHasBiases<C>)
    findGreatest<C>(args, space);
}

/// Turns the sums of bias gradients into floats, by all threads of a grid.
template <class C>
__device__ void writeBiasGradients(const AttentionArgs<typename C::Element> &args,
                                   const AttentionGradients<typename C::Element> &gradients,
                                   const BackwardSpace &space, int pairBits) {
  const BiasQuantum quantum(space.greatest, pairBits);
  if constexpr (C::PositionBias)
    for (int64_t b = threadInGrid(); b < args.positionBuckets; b += threadsInGrid())
      gradients.dPositionBias[b] = quantum.value(space.positionSums[b]);
  if constexpr (C::TimeBias)
    for (int64_t b = threadInGrid(); b < args.timeBuckets; b += threadsInGrid())
      gradients.dTimeBias[b] = quantum.value(space.timeSums[b]);
}
template <class C>
__global__ void __launch_bounds__(kPrepareThreads)
    attentionBiasGradients(AttentionArgs<typename C::Element> args,
                           AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                           int pairBits) {
  writeBiasGradients<C>(args, gradients, space, pairBits);
}

/// Turns querySums into dQ, and the sums of bias gradients as well. Where there are such sums, rows
/// are aligned.
template <class C>
__global__ void __launch_bounds__(kPrepareThreads, kPrepareBlocks)
    attentionQueryGradients(AttentionArgs<typename C::Element> args,
                            AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                            int pairBits) {
  using Span = RowSpan<C>;
  constexpr int kParts = Span::template kParts<C::Qk>, kAtOnce = 2;
  const auto dQ = queryRows<C>(gradients);
  const HeadRows<C::Qk, std::remove_pointer_t<decltype(dQ.to)>, true> results(dQ.to, dQ.ld);
  const HeadRows<C::Qk, const float, true> siluOf(gradients.xQ, gradients.ldX);
  if constexpr (kHasBiases<C>)
    writeBiasGradients<C>(args, gradients, space, pairBits);
  forRowSpans<C>(args, [&](const Span &span) {
    ListCursor list;
    ListBounds<C> bounds;
#pragma unroll 1
    for (int i = 0; i < Span::kGroupRows; i += kAtOnce) {
      int4 sums[kAtOnce][kParts][2];
      Octet<float> x[kAtOnce][C::OfSilu ? kParts : 1];
      float norm[kAtOnce], product[kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        const int64_t row = span.row(i + r);
        norm[r] = space.rowNorm[span.head * args.rows + row];
        product[r] = C::Softmax ? space.rowProduct[span.head * args.rows + row] : 0.0f;
        for (int p = 0; p < kParts; ++p) {
          const int column = (p * Span::kLanes + Span::lane()) * kOctet;
          if (column >= C::Qk)
            continue;
          const int4 *at = reinterpret_cast<const int4 *>(
              space.querySums + querySumAt<C>(args, span.head, row, column));
          sums[r][p][0] = at[0], sums[r][p][1] = at[1];
          if constexpr (C::OfSilu)
            x[r][p] = siluOf.load(row, span.head, column / kOctet);
        }
      }
      if (i == 0) // while the first sums are under way
        list.find(args, span);
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        if (list.advance(span.row(i + r)) || (i == 0 && r == 0))
          bounds = ListBounds<C>(args, space, list.list, span.head);
        const float quantum = bounds.quantum(norm[r], product[r]);
        for (int p = 0; p < kParts; ++p) {
          const int octet = p * Span::kLanes + Span::lane();
          if (octet * kOctet >= C::Qk || !span.exists(i + r))
            continue;
          float values[kOctet];
          for (int e = 0; e < kOctet; ++e) {
            const int4 &four = sums[r][p][e / 4];
            const int sum = e % 4 == 0   ? four.x
                            : e % 4 == 1 ? four.y
                            : e % 4 == 2 ? four.z
                                         : four.w;
            values[e] = static_cast<float>(sum) * quantum;
            if constexpr (C::OfSilu)
              values[e] = normalOrZero(gradientOfSilu(values[e], x[r][p][e]));
          }
          results.store(span.row(i + r), span.head, octet, values);
        }
      }
    }
  });
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PREPARE_H
