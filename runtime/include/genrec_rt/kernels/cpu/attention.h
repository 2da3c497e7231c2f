//===- attention.h - Attention over the rows of jagged lists ----*- C++ -*-===//
//
// attention_args.h says what is computed. Each (list, head) is computed on its
// own by one worker: keys are transposed into lanes, a few queries at a time are scored
// against all the keys they see (blocks that the mask empties are never computed), and
// the scores, still in the first-level cache, multiply the values. Widths such
// as 50 are not padded to the next vector.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_H

#include "genrec_rt/kernels/cpu/attention_backward.h"
#include "genrec_rt/kernels/cpu/attention_forward.h"
#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Bytes of scratch of attentionForward; `workers` is the pool's number of
/// threads.
template <class Config>
int64_t attentionForwardScratchBytes(int64_t maxLength, int32_t workers) {
  return detail::SharedTables<Config>(nullptr, maxLength).bytes() +
         workers * detail::ForwardBuffers<Config>(nullptr, maxLength).bytes();
}

/// Computes `out`, and `logSumExp` for softmax.
template <class Config>
void attentionForward(genrec_rt_pool *pool, const AttentionArgs &args,
                      void *scratch) {
  detail::SharedTables<Config> tables(scratch, args.maxLength);
  tables.fill(args);
  char *buffers = static_cast<char *>(scratch) + tables.bytes();
  detail::GiantLists giants(args, !Config::Masked);
  detail::AttentionUnits units(args.parents, Config::Heads);
  parallelFor(pool, units.count, units.grain,
              [&](int64_t begin, int64_t end, int64_t) {
                char *mine = buffers + genrec_rt_worker_index() *
                                           detail::forwardBytes<Config>(args);
                detail::forwardUnits<Config>(args, giants, tables, mine, begin,
                                             end);
              });
  giants.forEach([&](int64_t list, int64_t pieces) {
    parallelFor(pool, pieces * Config::Heads, 1,
                [&](int64_t begin, int64_t end, int64_t) {
                  detail::forwardPieces<Config>(args, list, tables, buffers,
                                                begin, end);
                });
  });
}

/// Bytes of scratch of attentionBackward.
template <class Config>
int64_t attentionBackwardScratchBytes(int64_t maxLength, int32_t workers,
                                      int64_t positionBuckets,
                                      int64_t timeBuckets) {
  return detail::SharedTables<Config>(nullptr, maxLength).bytes() +
         detail::biasPartialBytes<Config>(positionBuckets, timeBuckets) +
         workers * detail::BackwardBuffers<Config>(nullptr, maxLength,
                                                   timeBuckets)
                       .bytes();
}

/// Computes dQ, dK, dV and the bias gradients, recomputing the scores from q
/// and k; softmax uses logSumExp and out.
template <class Config>
void attentionBackward(genrec_rt_pool *pool, const AttentionArgs &args,
                       const AttentionGradients &gradients, void *scratch) {
  detail::SharedTables<Config> tables(scratch, args.maxLength);
  tables.fill(args);
  char *cursor = static_cast<char *>(scratch) + tables.bytes();
  detail::BiasPartials<Config> partials(cursor, args);
  cursor += detail::biasPartialBytes<Config>(args.positionBuckets,
                                             args.timeBuckets);
  detail::GiantLists giants(args, !Config::Masked);
  detail::AttentionUnits units(args.parents, Config::Heads);
  parallelFor(pool, units.count, units.grain,
              [&](int64_t begin, int64_t end, int64_t chunk) {
                char *mine = cursor + genrec_rt_worker_index() *
                                          detail::backwardBytes<Config>(args);
                detail::backwardUnits<Config>(args, giants, gradients, tables,
                                              partials, mine, begin, end, chunk);
              });
  partials.clear(args, gradients);
  partials.addUp(units.chunks(), gradients);
  giants.forEach([&](int64_t list, int64_t pieces) {
    using Part = detail::BackwardPart;
    detail::AttentionUnits queries(pieces, Config::Heads);
    parallelFor(pool, queries.count, queries.grain,
                [&](int64_t begin, int64_t end, int64_t chunk) {
                  detail::backwardPieces<Config, Part::queries>(
                      args, list, gradients, tables, partials, cursor, begin,
                      end, chunk);
                });
    partials.addUp(queries.chunks(), gradients);
    parallelFor(pool, queries.count, 1,
                [&](int64_t begin, int64_t end, int64_t chunk) {
                  detail::backwardPieces<Config, Part::keys>(
                      args, list, gradients, tables, partials, cursor, begin,
                      end, chunk);
                });
  });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_H
