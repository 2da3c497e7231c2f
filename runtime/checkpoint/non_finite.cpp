//===- non_finite.cpp - NaNs and infinities in what is saved ---------------===//

#include "non_finite.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

/// Whether a float is a NaN or an infinity: all bits of its exponent are set.
static bool hasNonFinite(const char *bytes, int64_t count) {
  uint32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t word;
    std::memcpy(&word, bytes + i * 4, 4);
    any |= (word & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  }
  return any != 0;
}

void noteNonFinite(TensorDigest &digest, const FloatPlace &place, const char *data, int64_t bytes,
                   bool finiteOnly) {
  int64_t count = bytes / 4, at = 0;
  if (!digest.notFinite.empty() || !hasNonFinite(data, count))
    return;
  while (!hasNonFinite(data + at * 4, 1))
    ++at;
  digest.notFinite =
      "tensor '" + place.name + "', row " +
      std::to_string((place.begin / 4 + at) / std::max<int64_t>(place.rowElements, 1));
  if (finiteOnly)
    throw Error("there is a NaN or an infinity in " + digest.notFinite);
}

} // namespace genrec::rt
