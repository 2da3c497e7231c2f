//===- row_draws.h - What rows of a store draw from ---------------*- C++ -*-===//

#ifndef GENREC_RT_EMBEDDING_CUDA_ROW_DRAWS_H
#define GENREC_RT_EMBEDDING_CUDA_ROW_DRAWS_H

#include "genrec_rt/kernels/shared/random.h"
#include "genrec_rt/table_store.h"

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// What initial values of the rows of one table are drawn from.
struct RowDraws {
  InitialDistribution distribution;
  kernels::RandomStream stream;
  uint64_t nameHash;
};

/// The same of a store: of its table, or of the tables that share it (StoreConfig::members).
struct StoreDraws {
  const RowDraws *tables;
  int64_t keyBits;
  bool isShared;

  __device__ const RowDraws &of(int64_t key) const { return tables[isShared ? key >> keyBits : 0]; }
  __device__ uint64_t idOf(int64_t key) const {
    return static_cast<uint64_t>(isShared ? key & ((int64_t(1) << keyBits) - 1) : key);
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_EMBEDDING_CUDA_ROW_DRAWS_H
