//===- floor_divide.h - Division that rounds down ----------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_FLOOR_DIVIDE_H
#define GENREC_RT_CORE_FLOOR_DIVIDE_H

#include <cstdint>

namespace genrec::rt {

/// value / by, rounded down; `by` is positive. Times before 1970 are negative.
constexpr int64_t floorDivide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

} // namespace genrec::rt

#endif // GENREC_RT_CORE_FLOOR_DIVIDE_H
