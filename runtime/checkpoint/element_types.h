//===- element_types.h - The elements of safetensors -------------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_ELEMENT_TYPES_H
#define GENREC_RT_CHECKPOINT_ELEMENT_TYPES_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace genrec::rt {

/// Bytes of one element, 0 for a type that the format does not have.
inline int64_t bytesOf(const std::string &dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64")
    return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32")
    return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16")
    return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype == "F8_E4M3" || dtype == "F8_E5M2")
    return 1;
  return 0;
}

/// Whether elements are floats of a type that checkpoints are written in.
inline bool isStoredFloat(const std::string &dtype) { return dtype == "F32" || dtype == "BF16"; }

/// Elements of a shape; none where a size is negative or the product beyond 2^63.
inline std::optional<int64_t> countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return std::nullopt;
  return count;
}

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_ELEMENT_TYPES_H
