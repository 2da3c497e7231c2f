//===- checksum.h - XXH3 ------------------------------------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_CHECKSUM_H
#define GENREC_RT_CORE_CHECKSUM_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace genrec::rt {

uint64_t checksumOf(const void *data, int64_t bytes);
inline uint64_t checksumOf(std::string_view text) {
  return checksumOf(text.data(), static_cast<int64_t>(text.size()));
}

/// 16 lower-case hexadecimal digits.
std::string toHex(uint64_t checksum);
/// None where `digits` is anything else.
std::optional<uint64_t> fromHex(std::string_view digits);

} // namespace genrec::rt

#endif // GENREC_RT_CORE_CHECKSUM_H
