//===- described_rows.h - Domains of rows of one list -----------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_SHARED_DESCRIBED_ROWS_H
#define GENREC_RT_KERNELS_SHARED_DESCRIBED_ROWS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/simd.h"

namespace genrec::rt::kernels {

/// Makes `domain` one of `count` rows, all of one list, without parent and identities.
GENREC_HOST_DEVICE void describeRows(genrec_domain *domain, int64_t count) {
  domain->count = domain->max_length = count;
  domain->offsets = nullptr;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_SHARED_DESCRIBED_ROWS_H
