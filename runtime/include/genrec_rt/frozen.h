//===- frozen.h - Tables and parameters that training leaves as they are ---===//

#ifndef GENREC_RT_FROZEN_H
#define GENREC_RT_FROZEN_H

#include <cstdint>

namespace genrec::rt {

/// genrec_optimizer_desc.kind of what is frozen, in place of an OptimizerKind: it has no
/// states, no step updates it, and training inserts no row into such a table, whose unseen
/// ids read their initial value.
constexpr int32_t kFrozen = 5;

} // namespace genrec::rt

#endif // GENREC_RT_FROZEN_H
