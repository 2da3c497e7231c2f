//===- top_items.cu - The best items of each query ------------------------===//

#include "genrec_rt/kernels/cuda/rank.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/row_notes.h"
#include "genrec_rt/kernels/cuda/scratch.h"
#include "score_bounds.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kDigitValues = 256;
/// What is written over the score of an excluded item: a NaN that no product gives.
constexpr uint32_t kHidden = 0x7FC0DEAD;

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
struct BestSelection {
  Word *better;   ///< [queries][ld]
  Word *best[2];  ///< [queries][k]
  int64_t *sizes; ///< [queries] of `best`
  Word *leasts;   ///< [queries] what is not greater is none of the best; 0 while fewer than k
  int64_t k;
};

struct SelectionScratch {
  ScoreChunk most;
  BestSelection selection;
  bool isByLibrary;
  ScoreBounds bounds; ///< of the library's scores
  void *product;
  int64_t bytes;

  SelectionScratch(const RankedItems &r, int64_t k, void *memory)
      : most(mostOfChunk(r, sizeof(float) + sizeof(Word))), isByLibrary(libraryRanks(r)) {
    ScratchCursor cursor(memory);
    if (isByLibrary)
      bounds = ScoreBounds(r, cursor);
    most.scores = cursor.take<float>(most.queries * most.ld);
    selection.better = cursor.take<Word>(most.queries * most.ld);
    selection.best[0] = cursor.take<Word>(most.queries * k);
    selection.best[1] = cursor.take<Word>(most.queries * k);
    selection.sizes = cursor.take<int64_t>(most.queries);
    selection.leasts = cursor.take<Word>(most.queries);
    selection.k = k;
    product = cursor.take<char>(isByLibrary ? productScratchBytes(r, most) : 0);
    bytes = cursor.bytes();
  }
};

/// The scores that a block looks at: exact, or the library's with bounds.
struct Scores {
  ScoreChunk chunk;
  ScoreBounds bounds;
  bool areExact;
};

/// Hides scores of excluded items.
__global__ void __launch_bounds__(kThreads) hideExcluded(RankedItems r, Scores scores) {
  const ScoreChunk &c = scores.chunk;
  const int64_t items = min(r.items->count - c.firstItem, c.items);
  for (int64_t i = threadInGrid(); i < r.excluding->count; i += threadsInGrid()) {
    const int64_t query = r.excluding->parent[i] - c.firstQuery, item = r.excluded[i] - c.firstItem;
    if (query < 0 || query >= c.queries || item < 0 || item >= items)
      continue;
    float *at = c.scores + query * c.ld + item;
    // Exact scores were looked at where they were computed.
    if (!scores.areExact && !ScoreBounds::isSure(loadRelaxed(at), 0)) {
      const float exact = scoreOf(r, c.firstQuery + query, c.firstItem + item);
      if (exact != exact)
        noteRow(r.nanNote, nullptr, 0);
    }
    storeRelaxed(at, __uint_as_float(kHidden));
  }
}

/// The exact score of an item where it may be better than `least`; -inf where it is not.
__device__ float exactScore(const RankedItems &r, const Scores &scores, int64_t query, int64_t item,
                            float score, Word least) {
  if (__float_as_uint(score) == kHidden)
    return -__builtin_inff();
  if (scores.areExact)
    return score;
  if (least && scores.bounds.isLess(score, scoreOfCandidate(least), scores.bounds.of(query, item)))
    return -__builtin_inff();
  const float exact = scoreOf(r, query, item);
  if (exact != exact)
    noteRow(r.nanNote, nullptr, 0);
  return exact;
}

/// What a block of selectBest shares.
struct Shared {
  uint32_t digits[kDigitValues];
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
        atomicAdd(shared.digits + (word >> shift & (kDigitValues - 1)), 1u);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      int digit = kDigitValues - 1;
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
    selectBest(RankedItems r, BestSelection s, Scores scores, const Word *from, Word *into) {
  static_assert(kThreads == kDigitValues);
  __shared__ Shared shared;
  const ScoreChunk &c = scores.chunk;
  const int64_t query = blockIdx.x;
  if (c.firstQuery + query >= r.queries->count)
    return;
  const int64_t items = min(r.items->count - c.firstItem, c.items), size = s.sizes[query];
  const Word least = s.leasts[query];
  const float *row = c.scores + query * c.ld;
  Word *better = s.better + query * c.ld, *to = into + query * s.k;
  const Word *best = from + query * s.k;
  if (threadIdx.x == 0)
    shared.found = 0;
  __syncthreads();
  for (int64_t i = threadIdx.x; i < items; i += kThreads) {
    const float score = exactScore(r, scores, c.firstQuery + query, c.firstItem + i, row[i], least);
    if (!(score > -__builtin_inff()))
      continue; // excluded, or as good as none
    const Word candidate = candidateOf(score, c.firstItem + i);
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
    writeBest(RankedItems r, BestSelection s, int64_t firstQuery, int64_t queries, const Word *from,
              int64_t *index, float *score) {
  for (int64_t i = threadInGrid(); i < queries * s.k; i += threadsInGrid()) {
    const int64_t query = i / s.k, place = i % s.k, row = firstQuery + query;
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

/// Scores of a chunk. The library's are told from the best so far: those of the first chunks, which
/// find as many as there are to be, are ours.
void scoreChunk(const RankedItems &r, const SelectionScratch &scratch, const Scores &scores,
                cudaStream_t stream) {
  SizedProduct product = productOf(r, scores.chunk);
  if (scores.areExact) {
    product.nanNote = r.nanNote;
    multiply(product, nullptr, stream);
  } else {
    multiplyFastest(product, scratch.product, stream);
  }
}

} // namespace

int64_t topItemsScratchBytes(const RankedItems &ranked, int64_t k) {
  return k > 0 ? SelectionScratch(ranked, k, nullptr).bytes : 0;
}

void topItems(const RankedItems &ranked, int64_t k, int64_t *index, float *score, void *memory,
              cudaStream_t stream) {
  if (k <= 0)
    return;
  const SelectionScratch scratch(ranked, k, memory);
  const BestSelection &s = scratch.selection;
  if (scratch.isByLibrary)
    computeNorms(ranked, scratch.bounds, stream);
  ScoreChunk chunk = scratch.most;
  for (chunk.firstQuery = 0; chunk.firstQuery < ranked.queryCapacity;
       chunk.firstQuery += scratch.most.queries) {
    chunk.queries = std::min(scratch.most.queries, ranked.queryCapacity - chunk.firstQuery);
    const auto rows = static_cast<size_t>(chunk.queries);
    const auto blocks = static_cast<unsigned>(chunk.queries);
    int from = 0;
    GENREC_CUDA_CHECK(cudaMemsetAsync(s.sizes, 0, rows * sizeof(int64_t), stream));
    GENREC_CUDA_CHECK(cudaMemsetAsync(s.leasts, 0, rows * sizeof(Word), stream));
    for (chunk.firstItem = 0; chunk.firstItem < ranked.itemCapacity;
         chunk.firstItem += scratch.most.items, from = 1 - from) {
      chunk.items = std::min(scratch.most.items, ranked.itemCapacity - chunk.firstItem);
      const Scores scores{chunk, scratch.bounds, !scratch.isByLibrary || chunk.firstItem < k};
      scoreChunk(ranked, scratch, scores, stream);
      if (ranked.excluding && ranked.excludedCapacity > 0)
        GENREC_CUDA_LAUNCH(stream, shapeOfThreads(ranked.excludedCapacity, kThreads), hideExcluded,
                           ranked, scores);
      GENREC_CUDA_LAUNCH(stream, (LaunchShape{dim3(blocks), dim3(kThreads)}), selectBest, ranked, s,
                         scores, s.best[from], s.best[1 - from]);
    }
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(chunk.queries * k, kThreads), writeBest, ranked, s,
                       chunk.firstQuery, chunk.queries, s.best[from], index, score);
  }
}

} // namespace genrec::rt::cuda
