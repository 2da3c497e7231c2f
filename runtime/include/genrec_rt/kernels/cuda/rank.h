//===- rank.h - Top-k and ranks on the device ---------------------*- C++ -*-===//
//
// What kernels/cpu/rank.h says, to the bit: a score is one chain of multiply-adds in
// column order on both. Counts are read in device memory, and ranks are integers, so that no
// result depends on what runs when. What cannot be scored is noted on the device,
// for the host to read when it is there anyway.
//
// All items are scored for a tile of queries at a time. Ranks are counted as tiles are
// made; what is excluded is taken off afterwards, by a set per query of a batch's excluded
// items. For the best k, scores of a chunk of items are written to memory, and a
// block per query keeps the k best of them and those before by a radix selection.
//
// Where the host knows how many items there are and cuBLASLt is there, it computes the scores of wide
// vectors, and what these do not decide clearly is computed again in the order above:
// runtime/kernels/cuda/score_bounds.h. Results have the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_RANK_H
#define GENREC_RT_KERNELS_CUDA_RANK_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// The score of an item that does not exist.
constexpr float kNoScore = -1e30f;

/// What is scored. Domains and arrays lie in device memory.
struct RankedItems {
  const genrec_domain *queries = nullptr;
  int64_t queryCapacity = 0;
  const float *query = nullptr; ///< [queries, dim]
  int64_t ldQuery = 0;
  const genrec_domain *items = nullptr;
  int64_t itemCapacity = 0; ///< below 2^32
  /// Whether there are `itemCapacity` items, as the host knows of a catalogue's; else `items` says.
  bool areItemsKnown = false;
  const float *item = nullptr; ///< [items, dim]
  int64_t ldItem = 0;
  int64_t dim = 0;
  const genrec_domain *excluding = nullptr; ///< a child of `queries`, of `excluded`; null: none
  int64_t excludedCapacity = 0;
  const int64_t *excluded = nullptr;      ///< items, in any order; such as are none are passed over
  int64_t chunkBytes = int64_t(96) << 20; ///< of topItems' scratch for scores, about
  /// Row 0 is noted where a score is NaN; results are then unspecified.
  genrec_row_note *nanNote = nullptr;
};

/// The k items of the highest scores of each query, best first, equal scores by ascending index;
/// where there are fewer (-inf counts as none) index -1 and kNoScore. Rows of `index` and `score`
/// past the last query are zeros.
int64_t topItemsScratchBytes(const RankedItems &ranked, int64_t k);
void topItems(const RankedItems &ranked, int64_t k, int64_t *index, float *score, void *scratch,
              cudaStream_t stream);

/// The rank of each query's target, from 1: one more than the number of other items, not
/// excluded, that score at least as much. 0 for a target that is no item.
int64_t rankTargetsScratchBytes(const RankedItems &ranked);
void rankTargets(const RankedItems &ranked, const int64_t *targets, int64_t *ranks, void *scratch,
                 cudaStream_t stream);

/// The ranks of several targets per query: `listed`, of `listedCapacity` rows, is a child of
/// `queries`. Their order is that of rankLists on the CPU.
int64_t rankListsScratchBytes(const RankedItems &ranked, int64_t listedCapacity);
void rankLists(const RankedItems &ranked, const genrec_domain *listed, int64_t listedCapacity,
               const int64_t *targets, int64_t *ranks, void *scratch, cudaStream_t stream);

/// The ranks of the rows of lists by score, as rankScored on the CPU; a warp for each row with
/// label 1 looks at its list. The first row with a NaN score or a label other than 0 and 1 is
/// noted, with the reason; ranks are then unspecified. `valid` may be null.
enum UnrankedReason : int { kNaNScore, kNoLabel };
void rankScoredLists(const genrec_domain *domain, int64_t capacity, const float *score,
                     const float *label, const uint8_t *valid, int64_t *ranks,
                     genrec_row_note *unranked, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_RANK_H
