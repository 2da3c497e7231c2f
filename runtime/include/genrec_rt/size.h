//===- size.h - Sizes that do not wrap around --------------------*- C++ -*-===//
//
// Sizes come from flags, data and files, and are multiplied and added before memory is taken.
// A product that wraps around asks for too little memory, and what is written then lies
// outside of it. So whatever comes from outside is multiplied and added as a Size.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SIZE_H
#define GENREC_RT_SIZE_H

#include <concepts>
#include <cstdint>
#include <string>

namespace genrec::rt {

/// No memory, file or count is larger, on any machine; far enough from 2^63 that rounding up
/// stays in range.
inline constexpr int64_t kLargestSize = int64_t(1) << 56;

/// Throws Error: "<what> would be larger than this machine can address".
[[noreturn]] void throwTooLarge(const std::string &what);

/// A count or a number of bytes, at least 0. What leaves the range [0, kLargestSize] is marked
/// so, and stays marked whatever is done with it.
class Size {
public:
  template <std::integral T> constexpr Size(T value) {
    bool fits = value >= 0 && static_cast<uint64_t>(value) <= uint64_t(kLargestSize);
    known = fits ? static_cast<int64_t>(value) : kOutOfRange;
  }

  friend constexpr Size operator*(Size a, Size b) {
    int64_t product = 0;
    // Nothing of something that is out of range is out of range still: the count was wrong.
    if (!a.fits() || !b.fits() || __builtin_mul_overflow(a.known, b.known, &product))
      return Size(kOutOfRange);
    return Size(product);
  }
  friend constexpr Size operator+(Size a, Size b) {
    return a.fits() && b.fits() ? Size(a.known + b.known) : Size(kOutOfRange);
  }
  constexpr Size &operator+=(Size other) { return *this = *this + other; }

  constexpr bool fits() const { return known != kOutOfRange; }
  /// The size; kLargestSize where it is out of range. For predictions and limits.
  constexpr int64_t saturated() const { return fits() ? known : kLargestSize; }
  /// The size; throws Error, which says what would be too large, where it is out of range.
  int64_t value(const std::string &what) const {
    if (!fits())
      throwTooLarge(what);
    return known;
  }
  /// The same with the words made only where they are needed.
  template <std::invocable Words> int64_t value(const Words &words) const {
    if (!fits())
      throwTooLarge(words());
    return known;
  }

private:
  static constexpr int64_t kOutOfRange = -1;
  int64_t known;
};

} // namespace genrec::rt

#endif // GENREC_RT_SIZE_H
