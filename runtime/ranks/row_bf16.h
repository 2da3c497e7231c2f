//===- row_bf16.h - Floats that travel as bf16 ------------------*- C++ -*-===//

#ifndef GENREC_RT_RANKS_ROW_BF16_H
#define GENREC_RT_RANKS_ROW_BF16_H

#include "genrec_rt/kernels/shared/row_values.h"

#include <cstdint>

namespace genrec::rt {

inline void toBf16(const float *from, int64_t count, uint16_t *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = kernels::nearestBf16(from[i]).bits;
}

inline void fromBf16(const uint16_t *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = kernels::widened(kernels::Bf16{from[i]});
}

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_BF16_H
