//===- init.h - Initial values of a row, in vectors -------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_INIT_H
#define GENREC_RT_KERNELS_CPU_INIT_H

#include "genrec_rt/kernels/cpu/random.h"
#include "genrec_rt/kernels/shared/init.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// out[c] = initialValue(..., c) for c < columns.
inline void initialRow(Distribution kind, float mean, float scale, uint64_t seed,
                       uint64_t tableHash, uint64_t id, int64_t columns,
                       float *out) {
  if (kind == Distribution::zeros || kind == Distribution::constant) {
    for (int64_t c = 0; c < columns; ++c)
      out[c] = initialFromBits(kind, mean, scale, 0);
    return;
  }
  const RandomStream stream = initStream(seed, tableHash);
  uint32_t words[64];
  for (int64_t c = 0; c < columns; c += 64) {
    int64_t count = columns - c < 64 ? columns - c : 64;
    fillBits(stream, id, static_cast<uint64_t>(c), count, words);
    if (kind == Distribution::uniform) // a loop of its own, which becomes vectors
      for (int64_t i = 0; i < count; ++i)
        out[c + i] = initialFromBits(Distribution::uniform, mean, scale, words[i]);
    else
      for (int64_t i = 0; i < count; ++i)
        out[c + i] = initialFromBits(kind, mean, scale, words[i]);
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_INIT_H
