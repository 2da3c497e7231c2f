//===- descriptor.h - Domain descriptors from offsets ------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_DESCRIPTOR_H
#define GENREC_RT_SESSION_DESCRIPTOR_H

#include "genrec_rt/batch.h"

namespace genrec::rt {

/// The arrays behind the descriptor of a domain that was read.
struct DescribedRows {
  GrowBuffer<int64_t> parent;
  GrowBuffer<uint64_t> identity;

  int64_t bytes() const { return (parent.capacity() + identity.capacity()) * 8; }
};

/// The descriptor of a root domain; `positions` are those of its rows in the
/// dataset, null for 0, 1, ….
genrec_domain describeRoot(int64_t count, const int64_t *positions, DescribedRows &memory);

/// The descriptor of a child of `above`.
genrec_domain describeChild(const DomainBatch &rows, const genrec_domain &above,
                            DescribedRows &memory);

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DESCRIPTOR_H
