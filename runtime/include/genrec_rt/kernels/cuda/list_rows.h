//===- list_rows.h - Moving rows between domains on the device ----*- C++ -*-===//
//
// What kernels/cpu/domains.h and lists.h say of values that are moved, to the bit; of
// any element type, since values are copied as bytes. Domains lie in device memory
// (domain_view.h). Rows of results lie one behind another; those past the last row of their domain,
// up to `capacity`, are zeros, so that contractions over all of a buffer's rows may read them.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LIST_ROWS_H
#define GENREC_RT_KERNELS_CUDA_LIST_ROWS_H

#include "genrec_rt/kernels/cuda/list_domains.h"

#include <cstdint>
#include <cuda_runtime.h>

namespace genrec::rt::cuda {

/// Rows that are read.
struct RowsIn {
  const void *values = nullptr;
  int64_t step = 0; ///< bytes from row to row
};
template <class T> RowsIn rowsIn(const T *values, int64_t ld) {
  return {values, ld * static_cast<int64_t>(sizeof(T))};
}

/// Rows that are written, `capacity` of `bytes` each.
struct RowsOut {
  void *values = nullptr;
  int64_t capacity = 0, bytes = 0;
};
template <class T> RowsOut rowsOut(T *values, int64_t capacity, int64_t width) {
  return {values, capacity, width * static_cast<int64_t>(sizeof(T))};
}

/// Rows of `domain`, a truncated one (truncateLists), back in `source`, 0 elsewhere.
void deriveRowsGradient(const genrec_domain *source, const genrec_domain *domain, bool last,
                        RowsIn x, RowsOut out, cudaStream_t stream);

/// Rows of `source` in `domain`, a lengthened one (lengthenLists); 0 in the new rows.
void lengthenRows(const genrec_domain *source, const genrec_domain *domain, bool front, RowsIn x,
                  RowsOut out, cudaStream_t stream);
/// The adjoint: the new rows are dropped.
void lengthenRowsGradient(const genrec_domain *source, const genrec_domain *domain, bool front,
                          RowsIn x, RowsOut out, cudaStream_t stream);

/// Parts of a joined domain (joinLists) with their values.
struct JoinedRows {
  const genrec_domain *domains[JoinedDomains::kMost];
  RowsIn values[JoinedDomains::kMost];
  int count = 0;
};

void joinRows(const genrec_domain *domain, const JoinedRows &parts, RowsOut out,
              cudaStream_t stream);
/// Part `number` out of a joined value; `out` has the part's rows.
void splitJoinedRows(const genrec_domain *domain, const JoinedDomains &parts, int number, RowsIn x,
                     RowsOut out, cudaStream_t stream);

/// The row `distance` rows later in the same list, 0 and not `valid` where there is none.
void shiftListRows(const genrec_domain *domain, int64_t distance, RowsIn x, RowsOut out,
                   bool *valid, cudaStream_t stream);

/// Each pair's row of `second`; `domain` is one of pairs (pairLists).
void pairedRows(const genrec_domain *second, const genrec_domain *domain, RowsIn x, RowsOut out,
                cudaStream_t stream);
/// Per row of `second` the sum of its pairs' floats, in the order of the rows of the first domain.
void addPairs(const genrec_domain *second, const genrec_domain *domain, int64_t width,
              const float *x, int64_t ldX, float *out, int64_t capacity, cudaStream_t stream);

/// Up to `count` rows of each list, its last ones or its first, end to end; 0 behind them. `out`
/// has a row of `count` times as many bytes as x per parent row.
void tileRows(const genrec_domain *lists, int64_t count, bool last, RowsIn x, RowsOut out,
              cudaStream_t stream);
/// The adjoint: `x` has such rows.
void tileRowsGradient(const genrec_domain *lists, int64_t count, bool last, RowsIn x, RowsOut out,
                      cudaStream_t stream);

/// Each row's ordinal in its list, from its end with `fromEnd`.
void listPositions(const genrec_domain *domain, bool fromEnd, int64_t *out, int64_t capacity,
                   cudaStream_t stream);
/// Domains whose lists a launch counts the rows of, and where to.
struct CountedLists {
  static constexpr int kMost = 200;
  const genrec_domain *children[kMost];
  int64_t *out[kMost];
};
/// The number of rows of each list of the first `count` of `lists`; `capacity` bounds the lists.
void listLengths(const CountedLists &lists, int count, int64_t capacity, cudaStream_t stream);

enum class ListChoice { max, first, last };
/// Per element, the parent's gradient where a row is the one that the pool chose (max: the first
/// of the greatest), 0 elsewhere; `lists` bounds the lists.
void listPoolGradient(ListChoice choice, const genrec_domain *domain, int64_t lists, int64_t width,
                      const float *x, int64_t ldX, const float *gradient, int64_t ldGradient,
                      float *out, int64_t capacity, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LIST_ROWS_H
