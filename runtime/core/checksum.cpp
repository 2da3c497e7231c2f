//===- checksum.cpp - XXH3 --------------------------------------------------===//

#include "checksum.h"

// Inline, so that compiled models link nothing more and the vector form of this CPU is taken.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

namespace genrec::rt {

uint64_t checksumOf(const void *data, int64_t bytes) {
  return XXH3_64bits(data, static_cast<size_t>(bytes));
}

std::string toHex(uint64_t checksum) {
  std::string digits(16, '0');
  for (int i = 15; i >= 0; --i, checksum >>= 4)
    digits[static_cast<size_t>(i)] = "0123456789abcdef"[checksum & 15];
  return digits;
}

std::optional<uint64_t> fromHex(std::string_view digits) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || digits.size() != 16 || toHex(value) != digits)
    return std::nullopt;
  return value;
}

} // namespace genrec::rt
