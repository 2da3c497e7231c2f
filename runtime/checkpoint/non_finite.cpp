//===- non_finite.cpp - NaNs and infinities in what is saved ---------------===//

#include "non_finite.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

/// Whether a float is a NaN or an infinity: all bits of its exponent are set.
template <class Word, Word Exponent> static bool hasNonFinite(const char *bytes, int64_t count) {
  uint32_t any = 0;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, bytes + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    any |= (word & Exponent) == Exponent ? 1u : 0u;
  }
  return any != 0;
}

static bool hasNonFinite(const char *bytes, int64_t count, int64_t elementBytes) {
  return elementBytes == 2 ? hasNonFinite<uint16_t, 0x7f80>(bytes, count)
                           : hasNonFinite<uint32_t, 0x7f800000>(bytes, count);
}

void noteNonFinite(TensorDigest &digest, const FloatPlace &place, const char *data, int64_t bytes,
                   bool finiteOnly) {
  const int64_t size = place.elementBytes, count = bytes / size;
  if (!digest.notFinite.empty() || !hasNonFinite(data, count, size))
    return;
  int64_t at = 0;
  while (!hasNonFinite(data + at * size, 1, size))
    ++at;
  digest.notFinite =
      "tensor '" + place.name + "', row " +
      std::to_string((place.begin / size + at) / std::max<int64_t>(place.rowElements, 1));
  if (finiteOnly)
    throw Error("there is a NaN or an infinity in " + digest.notFinite);
}

} // namespace genrec::rt
