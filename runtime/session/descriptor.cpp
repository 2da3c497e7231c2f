//===- descriptor.cpp - Domain descriptors from offsets -------------------===//

#include "descriptor.h"

#include "genrec_rt/identity.h"

#include <algorithm>

namespace genrec::rt {

genrec_domain describeRoot(int64_t count, const int64_t *positions, DescribedRows &memory) {
  genrec_domain domain{};
  domain.count = count;
  domain.max_length = 1;
  uint64_t *identity = memory.identity.ensure(std::max<int64_t>(count, 1));
  for (int64_t row = 0; row < count; ++row)
    identity[row] = rootIdentity(positions ? positions[row] : row);
  domain.identity = identity;
  return domain;
}

genrec_domain describeChild(const DomainBatch &rows, const genrec_domain &above,
                            DescribedRows &memory) {
  genrec_domain domain{};
  domain.count = rows.count;
  domain.offsets = rows.offsets.data();
  int64_t *parent = memory.parent.ensure(std::max<int64_t>(rows.count, 1));
  uint64_t *identity = memory.identity.ensure(std::max<int64_t>(rows.count, 1));
  for (int64_t p = 0; p < above.count; ++p) {
    int64_t begin = domain.offsets[p], end = domain.offsets[p + 1];
    domain.max_length = std::max(domain.max_length, end - begin);
    for (int64_t row = begin; row < end; ++row) {
      parent[row] = p;
      identity[row] = mixIdentity(above.identity[p], static_cast<uint64_t>(row - begin));
    }
  }
  domain.parent = parent;
  domain.identity = identity;
  return domain;
}

} // namespace genrec::rt
