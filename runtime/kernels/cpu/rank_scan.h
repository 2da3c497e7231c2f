//===- rank_scan.h - One build of the scans over a catalogue ----*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_RANK_SCAN_H
#define GENREC_RT_KERNELS_CPU_RANK_SCAN_H

#include "genrec_rt/kernels/cpu/rank.h"

namespace genrec::rt::kernels {

/// The functions of rank.h over lists of excluded items in ascending order. rankOf ranks `count`
/// targets; `queryOf` says whose they are, null: one per query.
struct RankScan {
  bool (*topK)(genrec_rt_pool *pool, const RankArgs &args, int64_t k,
               int64_t *indices, float *scores, void *scratch);
  bool (*rankOf)(genrec_rt_pool *pool, const RankArgs &args, const int64_t *queryOf,
                 int64_t count, const int64_t *targets, int64_t *ranks, void *scratch);
  int64_t (*bytesPerWorker)(int64_t dim, int64_t k);
};

const RankScan &avx512RankScan();

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_RANK_SCAN_H
