//===- row_copies.h - Rows that are copied and added -------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_ROW_COPIES_H
#define GENREC_RT_RANKS_ROW_COPIES_H

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace genrec::rt {

/// Floats of `rows` rows in a message: the rows of every store begin at a whole cache line.
inline int64_t messageFloats(int64_t rows, int64_t dim) { return (rows * dim + 15) / 16 * 16; }

/// Calls `body` with the number of floats of a row as a constant (std::integral_constant), 0 where
/// it is none of the usual ones: copies of short rows are then no calls.
template <class Body> void withRowSize(int64_t dim, const Body &body) {
  switch (dim) {
  case 4:
    return body(std::integral_constant<int64_t, 4>());
  case 8:
    return body(std::integral_constant<int64_t, 8>());
  case 16:
    return body(std::integral_constant<int64_t, 16>());
  case 32:
    return body(std::integral_constant<int64_t, 32>());
  case 64:
    return body(std::integral_constant<int64_t, 64>());
  case 128:
    return body(std::integral_constant<int64_t, 128>());
  default:
    return body(std::integral_constant<int64_t, 0>());
  }
}

/// Copies `dim` floats, `Dim` of them where that is not 0.
template <int64_t Dim> inline void copyRow(float *to, const float *from, int64_t dim) {
  std::memcpy(to, from, static_cast<size_t>(Dim ? Dim : dim) * sizeof(float));
}

/// to = left + right; `to` may be `left`.
template <int64_t Dim>
inline void addRows(float *to, const float *left, const float *right, int64_t dim) {
  for (int64_t i = 0; i < (Dim ? Dim : dim); ++i)
    to[i] = left[i] + right[i];
}

/// Copies the rows of some numbers, one behind another.
inline void gatherRows(int64_t dim, std::span<const int32_t> numbers, float *const *rows,
                       float *to) {
  constexpr size_t kAhead = 12;
  constexpr int64_t kLine = 16; // floats
  withRowSize(dim, [&](auto size) {
    for (size_t i = 0; i < numbers.size(); ++i, to += dim) {
      if (i + kAhead < numbers.size()) {
        const float *next = rows[numbers[i + kAhead]];
        for (int64_t line = 0; line < (size() ? size() : dim); line += kLine)
          __builtin_prefetch(next + line);
      }
      copyRow<size()>(to, rows[numbers[i]], dim);
    }
  });
}

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_COPIES_H
