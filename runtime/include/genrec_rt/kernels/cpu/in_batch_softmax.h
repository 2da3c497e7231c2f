//===- in_batch_softmax.h - Softmax over the items of other rows -*- C++ -*-===//
//
// Each row's query meets the items of all rows of the portion (Yi et al. 2019):
//
//   l_ij = query_i . item_j / temperature - logQ_j
//   loss_i = log sum over j of exp(l_ij) - l_ii
//
// without other rows that have row i's id. Rows that do not count (`valid`) are neither queries
// nor items: the others are copied together first. Chunks of kInBatchRows rows go through blocks of
// kInBatchOthers others, so that no more scores than that are in memory; the scores of a block are
// a matrix product. Forward keeps log sum exp per row and the share of the others in it, from which
// backward makes a block's gradients again, once with queries as rows of the block and once with
// items, so that each sum over rows belongs to one worker: five products instead of the three of
// all scores in memory, and the same bits at any number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_IN_BATCH_SOFTMAX_H
#define GENREC_RT_KERNELS_CPU_IN_BATCH_SOFTMAX_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/gemm.h"
#include "genrec_rt/kernels/shared/rowmath.h"
#include "genrec_rt/parallel.h"
#include "genrec_rt/scratch_sizes.h"

#include <cstring>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Leading dimensions are in floats.
struct InBatchArgs {
  const genrec_domain *rows = nullptr;
  int64_t size = 0;             ///< of a vector
  const float *query = nullptr; ///< [rows, size]
  int64_t ldQuery = 0;
  const float *item = nullptr; ///< [rows, size]
  int64_t ldItem = 0;
  const int64_t *id = nullptr;    ///< of the items
  const float *logQ = nullptr;    ///< null: 0
  const uint8_t *valid = nullptr; ///< null: all rows count
  float temperature = 1;
};

namespace detail {

/// A matrix of one vector per row that counts.
struct InBatchVectors {
  const float *values;
  int64_t ld;
  const float *row(int64_t number) const { return values + number * ld; }
};

/// The rows that count, with what belongs to each, and memory for workers.
struct InBatchRows {
  int64_t count = 0, size;
  InBatchVectors query, item;
  float perTemperature;
  int64_t *id, *number; ///< number: the row that it is of all rows
  float *logQ, *logSumExp, *shareOfOthers, *scale;
  char *ofWorkers;
  int64_t workerBytes;

  InBatchRows(const InBatchArgs &args, int32_t workers, void *scratch)
      : size(args.size), query{args.query, args.ldQuery}, item{args.item, args.ldItem},
        perTemperature(1 / args.temperature) {
    const int64_t all = args.rows->count;
    char *place = static_cast<char *>(scratch);
    id = take<int64_t>(place, all);
    number = take<int64_t>(place, all);
    logQ = take<float>(place, all);
    logSumExp = take<float>(place, all);
    shareOfOthers = take<float>(place, all);
    scale = take<float>(place, all);
    for (int64_t row = 0; row < all; ++row)
      if (!args.valid || args.valid[row]) {
        id[count] = args.id[row];
        number[count] = row;
        logQ[count++] = args.logQ ? args.logQ[row] : 0.0f;
      }
    if (count < all) {
      query = copyCounted(query, take<float>(place, all * size));
      item = copyCounted(item, take<float>(place, all * size));
    }
    ofWorkers = place;
    workerBytes =
        (inBatchScratchBytes(all, size, workers) - (place - static_cast<char *>(scratch))) /
        workers / 64 * 64;
  }

  template <class T> static T *take(char *&place, int64_t values) {
    T *taken = reinterpret_cast<T *>(place);
    place += (values * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return taken;
  }
  InBatchVectors copyCounted(InBatchVectors from, float *to) const {
    for (int64_t row = 0; row < count; ++row)
      std::memcpy(to + row * size, from.row(number[row]),
                  static_cast<size_t>(size) * sizeof(float));
    return {to, size};
  }
};

/// What a worker has: a block of scores, row-major with kInBatchOthers columns, sums of a chunk and
/// memory for products.
struct InBatchBlock {
  float *scores, *sums;
  void *packed;

  explicit InBatchBlock(const InBatchRows &rows) {
    char *place = rows.ofWorkers + genrec_rt_worker_index() * rows.workerBytes;
    scores = reinterpret_cast<float *>(place);
    sums = scores + kInBatchRows * kInBatchOthers;
    packed = sums + kInBatchRows * wholeVectors(rows.size);
  }
  /// scores[i][j] = left of row begin + i . right of row first + j
  void multiply(const InBatchRows &rows, InBatchVectors left, int64_t begin, int64_t end,
                InBatchVectors right, int64_t first, int64_t others) const {
    matmulDynamic(nullptr, /*transposeW=*/true, end - begin, rows.size, others, left.row(begin),
                  left.ld, right.row(first), right.ld, scores, kInBatchOthers,
                  /*accumulate=*/false, packed);
  }
  float *row(int64_t number) const { return scores + number * kInBatchOthers; }
};

/// Calls body(begin, end, block) for chunks of rows, and forBlocks(body) for blocks of others.
template <class Body>
inline void forInBatchChunks(genrec_rt_pool *pool, const InBatchRows &rows, const Body &body) {
  parallelFor(pool, rows.count, kInBatchRows,
              [&](int64_t begin, int64_t end, int64_t) { body(begin, end, InBatchBlock(rows)); });
}
template <class Body> inline void forInBatchOthers(const InBatchRows &rows, const Body &body) {
  for (int64_t first = 0; first < rows.count; first += kInBatchOthers)
    body(first, rows.count - first < kInBatchOthers ? rows.count - first : kInBatchOthers);
}

/// The greatest logit of a row's others so far and the sum of exp(logit - greatest).
struct InBatchSum {
  float greatest = -__builtin_inff(), total = 0;

  /// Adds logits, of which -inf are masked; `logits` has room for whole vectors.
  GENREC_SIMD void add(float *logits, int64_t count) {
    const int64_t whole = (count + kLanes - 1) / kLanes * kLanes;
    for (int64_t j = count; j < whole; ++j)
      logits[j] = -__builtin_inff();
    VecF most = splat(greatest);
    for (int64_t j = 0; j < whole; j += kLanes)
      most = max(load(logits + j), most); // `most` where the logit is NaN, which the sum then is
    const float before = greatest;
    greatest = maxLane(most);
    const VecF masked = splat(-__builtin_inff());
    VecF sums = {};
    for (int64_t j = 0; j < whole; j += kLanes) {
      const VecF logit = load(logits + j);
      sums = sums + select(logit == masked, VecF{}, expNegative(logit - greatest));
    }
    total = (total == 0 ? 0.0f : total * expNegative(before - greatest)) + sum(sums);
  }
};

} // namespace detail

/// loss [rows], kept [rows, 2]: log sum exp of a row's logits, and the share of its others.
inline void inBatchForward(genrec_rt_pool *pool, const InBatchArgs &args, float *loss, float *kept,
                           void *scratch) {
  const detail::InBatchRows rows(args, genrec_rt_pool_threads(pool), scratch);
  if (rows.count < args.rows->count) {
    std::memset(loss, 0, static_cast<size_t>(args.rows->count) * sizeof(float));
    std::memset(kept, 0, static_cast<size_t>(args.rows->count) * 2 * sizeof(float));
  }
  detail::forInBatchChunks(
      pool, rows, [&](int64_t begin, int64_t end, const detail::InBatchBlock &block) {
        detail::InBatchSum sums[kInBatchRows];
        float own[kInBatchRows];
        detail::forInBatchOthers(rows, [&](int64_t first, int64_t others) {
          block.multiply(rows, rows.query, begin, end, rows.item, first, others);
          for (int64_t i = 0; i < end - begin; ++i) {
            float *logits = block.row(i);
            const int64_t id = rows.id[begin + i], at = begin + i - first;
            if (at >= 0 && at < others)
              own[i] = logits[at] * rows.perTemperature - rows.logQ[begin + i];
            for (int64_t j = 0; j < others; ++j) {
              const float logit = logits[j] * rows.perTemperature - rows.logQ[first + j];
              logits[j] = rows.id[first + j] == id ? -__builtin_inff() : logit;
            }
            sums[i].add(logits, others);
          }
        });
        for (int64_t i = 0; i < end - begin; ++i) {
          // What is added to the greater of both parts may be far below its rounding.
          const float most = sums[i].greatest > own[i] ? sums[i].greatest : own[i];
          const float ofOthers = sums[i].total == 0
                                     ? 0.0f
                                     : sums[i].total * detail::expNegative(sums[i].greatest - most);
          const float total = ofOthers + detail::expNegative(own[i] - most);
          const int64_t row = rows.number[begin + i];
          loss[row] = own[i] == most ? log1p(ofOthers) : (most - own[i]) + log(total);
          kept[row * 2] = most + log(total);
          kept[row * 2 + 1] = ofOthers / total;
        }
      });
}

namespace detail {

/// The gradient of one side: sums over others of the loss's gradient by l_ij, with i the row or,
/// with OfItems, the other.
template <bool OfItems>
inline void inBatchGradient(genrec_rt_pool *pool, const InBatchRows &rows, float *gradient) {
  const InBatchVectors left = OfItems ? rows.item : rows.query,
                       right = OfItems ? rows.query : rows.item;
  const int64_t ldSums = wholeVectors(rows.size);
  forInBatchChunks(pool, rows, [&](int64_t begin, int64_t end, const InBatchBlock &block) {
    forInBatchOthers(rows, [&](int64_t first, int64_t others) {
      block.multiply(rows, left, begin, end, right, first, others);
      for (int64_t i = 0; i < end - begin; ++i) {
        float *values = block.row(i);
        const int64_t row = begin + i, id = rows.id[row], at = row - first;
        for (int64_t j = 0; j < others; ++j) {
          const int64_t query = OfItems ? first + j : row, item = OfItems ? row : first + j;
          values[j] = values[j] * rows.perTemperature - rows.logQ[item] - rows.logSumExp[query];
        }
        for (int64_t j = 0; j < others; j += kLanes)
          store(values + j, expNegative(load(values + j)));
        for (int64_t j = 0; j < others; ++j)
          values[j] =
              rows.id[first + j] == id ? 0.0f : values[j] * rows.scale[OfItems ? first + j : row];
        if (at >= 0 && at < others)
          values[at] = -rows.shareOfOthers[row] * rows.scale[row];
      }
      matmulDynamic(nullptr, /*transposeW=*/false, end - begin, others, rows.size, block.scores,
                    kInBatchOthers, right.row(first), right.ld, block.sums, ldSums,
                    /*accumulate=*/first > 0, block.packed);
    });
    for (int64_t i = 0; i < end - begin; ++i)
      std::memcpy(gradient + rows.number[begin + i] * rows.size, block.sums + i * ldSums,
                  static_cast<size_t>(rows.size) * sizeof(float));
  });
}

} // namespace detail

/// dQuery, dItem [rows, size], rows one behind another, of the gradient `dLoss` of the loss.
inline void inBatchBackward(genrec_rt_pool *pool, const InBatchArgs &args, const float *kept,
                            const float *dLoss, float *dQuery, float *dItem, void *scratch) {
  const detail::InBatchRows rows(args, genrec_rt_pool_threads(pool), scratch);
  const auto bytes = static_cast<size_t>(args.rows->count * args.size) * sizeof(float);
  if (rows.count < args.rows->count) {
    std::memset(dQuery, 0, bytes);
    std::memset(dItem, 0, bytes);
  }
  for (int64_t row = 0; row < rows.count; ++row) {
    const int64_t number = rows.number[row];
    rows.logSumExp[row] = kept[number * 2];
    rows.shareOfOthers[row] = kept[number * 2 + 1];
    rows.scale[row] = dLoss[number] * rows.perTemperature;
  }
  detail::inBatchGradient<false>(pool, rows, dQuery);
  detail::inBatchGradient<true>(pool, rows, dItem);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_IN_BATCH_SOFTMAX_H
