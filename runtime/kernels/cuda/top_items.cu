//===- top_items.cu - The best items of each query ------------------------===//

#include "genrec_rt/kernels/cuda/rank.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/sized_products.h"
#include "ranked_scores.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256, kDigits = 256;
/// Queries whose scores are made together, and the least items.
constexpr int64_t kMostQueries = 2048, kLeastChunk = 1024;

/// Candidates as words: those of higher scores, and of equal ones of lower items, are greater. No
/// candidate is 0.
__device__ Word candidateOf(float score, int64_t item) {
  const uint32_t bits = __float_as_uint(score + 0.0f); // -0 is 0
  const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
  return static_cast<Word>(ordered) << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(item));
}
__device__ float scoreOfCandidate(Word candidate) {
  const auto ordered = static_cast<uint32_t>(candidate >> 32);
  return __uint_as_float(ordered >> 31 ? ordered & 0x7FFFFFFFu : ~ordered);
}
__device__ int64_t itemOfCandidate(Word candidate) {
  return 0xFFFFFFFFu - static_cast<uint32_t>(candidate);
}

/// The best so far of each query of a tile, and a chunk of scores.
struct Selection {
  float *scores;  ///< [queries][chunk]
  Word *better;   ///< [queries][chunk]
  Word *best[2];  ///< [queries][k]
  int64_t *sizes; ///< [queries] of `best`
  Word *leasts;   ///< [queries] what is not greater is none of the best; 0 while fewer than k
  int64_t chunk, queries, k, bytes;

  Selection(const RankedItems &r, int64_t k, void *memory)
      : queries(std::min(r.queryCapacity, kMostQueries)), k(k) {
    const int64_t perQuery = r.chunkBytes / (12 * std::max<int64_t>(queries, 1));
    chunk = std::min(std::max(perQuery, kLeastChunk), std::max<int64_t>(r.itemCapacity, 1));
    ScratchParts parts(memory);
    scores = parts.take<float>(queries * chunk);
    better = parts.take<Word>(queries * chunk);
    best[0] = parts.take<Word>(queries * k);
    best[1] = parts.take<Word>(queries * k);
    sizes = parts.take<int64_t>(queries);
    leasts = parts.take<Word>(queries);
    bytes = parts.bytes();
  }
};

/// Scores of excluded items become NaN.
__global__ void __launch_bounds__(kThreads)
    hideExcluded(RankedItems r, Selection s, int64_t firstQuery, int64_t firstItem) {
  const int64_t items = min(r.items->count - firstItem, s.chunk);
  for (int64_t i = threadInGrid(); i < r.excluding->count; i += threadsInGrid()) {
    const int64_t query = r.excluding->parent[i] - firstQuery, item = r.excluded[i] - firstItem;
    if (query >= 0 && query < s.queries && item >= 0 && item < items)
      storeRelaxed(s.scores + query * s.chunk + item, __builtin_nanf(""));
  }
}

/// What a block of selectBest shares.
struct Shared {
  uint32_t digits[kDigits];
  uint32_t found;
  Word prefix;
  int64_t wanted;
};

/// The `wanted`-th greatest of `count` different words, a digit of 8 bits at a time from the
/// highest. By the whole block.
template <class WordAt>
__device__ Word selectGreatest(Shared &shared, int64_t wanted, int64_t count, const WordAt &at) {
  if (threadIdx.x == 0) {
    shared.prefix = 0;
    shared.wanted = wanted;
  }
  for (int shift = 56; shift >= 0; shift -= 8) {
    shared.digits[threadIdx.x] = 0;
    __syncthreads();
    const Word above = shift == 56 ? 0 : ~Word(0) << (shift + 8);
    for (int64_t i = threadIdx.x; i < count; i += kThreads) {
      const Word word = at(i);
      if ((word & above) == shared.prefix)
        atomicAdd(shared.digits + (word >> shift & (kDigits - 1)), 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = kDigits - 1;
      for (; shared.digits[digit] < shared.wanted; --digit)
        shared.wanted -= shared.digits[digit];
      shared.prefix |= static_cast<Word>(digit) << shift;
    }
    __syncthreads();
  }
  return shared.prefix;
}

/// A block per query: the k best of a chunk and of those before, `from`.
__global__ void __launch_bounds__(kThreads)
    selectBest(RankedItems r, Selection s, int64_t firstQuery, int64_t firstItem, const Word *from,
               Word *into) {
  static_assert(kThreads == kDigits);
  __shared__ Shared shared;
  const int64_t query = blockIdx.x;
  if (firstQuery + query >= r.queries->count)
    return;
  const int64_t items = min(r.items->count - firstItem, s.chunk), size = s.sizes[query];
  const Word least = s.leasts[query];
  const float *scores = s.scores + query * s.chunk;
  Word *better = s.better + query * s.chunk, *to = into + query * s.k;
  const Word *best = from + query * s.k;
  if (threadIdx.x == 0)
    shared.found = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < items; i += kThreads) {
    const float score = scores[i];
    if (!(score > -__builtin_inff()))
      continue; // excluded, or as good as none
    const Word candidate = candidateOf(score, firstItem + i);
    if (candidate > least)
      better[atomicAdd(&shared.found, 1u)] = candidate;
  }
  __syncthreads();
  const int64_t all = size + shared.found;
  const auto at = [&](int64_t i) { return i < size ? best[i] : better[i - size]; };
  const Word worst = all > s.k ? selectGreatest(shared, s.k, all, at) : 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.found = 0;
    s.sizes[query] = min(all, s.k);
    s.leasts[query] = worst;
  }
  __syncthreads();
  for (int64_t i = threadIdx.x; i < all; i += kThreads)
    if (const Word candidate = at(i); candidate >= worst)
      to[atomicAdd(&shared.found, 1u)] = candidate;
}

/// A thread per place of the result: candidates go where as many are greater.
__global__ void __launch_bounds__(kThreads)
    writeBest(RankedItems r, Selection s, int64_t firstQuery, const Word *from, int64_t *index,
              float *score) {
  for (int64_t i = threadInGrid(); i < s.queries * s.k; i += threadsInGrid()) {
    const int64_t query = i / s.k, place = i % s.k, row = firstQuery + query;
    if (row >= r.queryCapacity)
      continue;
    const bool exists = row < r.queries->count;
    const int64_t size = exists ? s.sizes[query] : 0, base = row * s.k;
    if (place >= size) {
      index[base + place] = exists ? -1 : 0;
      score[base + place] = exists ? kNoScore : 0;
      continue;
    }
    const Word *best = from + query * s.k;
    const Word own = best[place];
    int64_t greater = 0;
    for (int64_t other = 0; other < size; ++other)
      greater += best[other] > own;
    index[base + greater] = itemOfCandidate(own);
    score[base + greater] = scoreOfCandidate(own);
  }
}

/// The scores of the queries from `firstQuery` on and the items from `firstItem` on.
SizedProduct scoresOf(const RankedItems &r, const Selection &s, int64_t firstQuery,
                      int64_t firstItem) {
  SizedProduct p;
  p.m = {std::min(s.queries, r.queryCapacity - firstQuery), r.queries, firstQuery};
  p.k = {r.dim};
  p.n = {std::min(s.chunk, r.itemCapacity - firstItem), r.items, firstItem};
  p.left = r.query + firstQuery * r.ldQuery, p.ldLeft = r.ldQuery;
  p.right = r.item + firstItem * r.ldItem, p.ldRight = r.ldItem, p.rightTransposed = true;
  p.result = s.scores, p.ldResult = s.chunk;
  p.inOrder = true;
  p.nanNote = r.nanNote;
  return p;
}

} // namespace

int64_t topItemsScratchBytes(const RankedItems &ranked, int64_t k) {
  return k > 0 ? Selection(ranked, k, nullptr).bytes : 0;
}

void topItems(const RankedItems &ranked, int64_t k, int64_t *index, float *score, void *scratch,
              cudaStream_t stream) {
  if (k <= 0)
    return;
  const Selection s(ranked, k, scratch);
  const auto rows = static_cast<size_t>(s.queries);
  for (int64_t query = 0; query < ranked.queryCapacity; query += s.queries) {
    int from = 0;
    GENREC_CUDA_CHECK(cudaMemsetAsync(s.sizes, 0, rows * sizeof(int64_t), stream));
    GENREC_CUDA_CHECK(cudaMemsetAsync(s.leasts, 0, rows * sizeof(Word), stream));
    for (int64_t item = 0; item < ranked.itemCapacity; item += s.chunk, from = 1 - from) {
      multiply(scoresOf(ranked, s, query, item), nullptr, stream);
      if (ranked.excluding && ranked.excludedCapacity > 0)
        GENREC_CUDA_LAUNCH(stream, shapeOfThreads(ranked.excludedCapacity, kThreads), hideExcluded,
                           ranked, s, query, item);
      GENREC_CUDA_LAUNCH(stream,
                         (LaunchShape{dim3(static_cast<unsigned>(s.queries)), dim3(kThreads)}),
                         selectBest, ranked, s, query, item, s.best[from], s.best[1 - from]);
    }
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(s.queries * k, kThreads), writeBest, ranked, s, query,
                       s.best[from], index, score);
  }
}

} // namespace genrec::rt::cuda
