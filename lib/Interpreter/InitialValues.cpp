//===- InitialValues.cpp - initial values of parameters and table rows ----===//

#include "Random.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <vector>

using namespace genrec;
using namespace genrec::interpreter;

/// FNV-1a of a name, 64 bits.
static uint64_t hashName(llvm::StringRef name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001B3;
  return hash;
}

uint64_t interpreter::tableRowIdentity(llvm::StringRef name, int64_t id) {
  return childIdentity(hashName(name), static_cast<uint64_t>(id));
}

/// The bfloat16 below a float in magnitude, and how many 2^16-ths of the way to the next one it is.
static std::pair<uint32_t, uint32_t> splitBf16(double x) {
  auto bits = llvm::bit_cast<uint32_t>(static_cast<float>(x));
  return {bits & 0xFFFF0000, bits & 0xFFFF};
}

/// Goes on to the next bfloat16 where `up`.
static double joinBf16(uint32_t below, bool up) {
  return llvm::bit_cast<float>(below + (up ? 0x10000 : 0));
}

double interpreter::nearestBf16(double x) {
  auto [below, rest] = splitBf16(x);
  if (std::isnan(x) || std::isinf(static_cast<float>(x)))
    return x;
  bool isOdd = below >> 16 & 1;
  return joinBf16(below, rest > 0x8000 || (rest == 0x8000 && isOdd));
}

double interpreter::truncatedBf16(double x) {
  return std::isnan(x) ? x : joinBf16(splitBf16(x).first, /*up=*/false);
}

double interpreter::stochasticBf16(double x, uint16_t bits) {
  auto [below, rest] = splitBf16(x);
  if (std::isnan(x) || std::isinf(static_cast<float>(x)))
    return x;
  return joinBf16(below, rest + bits >= 65536.0);
}

/// The quantile of the standard normal distribution for probability `p` <= 1/2: a rational
/// approximation (Abramowitz and Stegun 26.2.23), improved by Halley's method.
static double lowerQuantile(double p) {
  double t = std::sqrt(-2.0 * std::log(p));
  double x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (int step = 0; step < 3; ++step) {
    double density = std::exp(-x * x / 2.0) / std::sqrt(2.0 * M_PI);
    double error = (std::erfc(-x * M_SQRT1_2) / 2.0 - p) / density;
    x -= error / (1.0 + x * error / 2.0);
  }
  return x;
}

static double normalQuantile(double p) {
  return p <= 0.5 ? lowerQuantile(p) : -lowerQuantile(1.0 - p);
}

/// The same with a cache: runs of one model compute the same initial values over and over.
static double rememberedQuantile(double p) {
  struct Entry {
    double p = 0.0, x = 0.0;
  };
  static thread_local std::vector<Entry> entries(1 << 14);
  Entry &entry = entries[splitMix(llvm::bit_cast<uint64_t>(p)) % entries.size()];
  if (entry.p != p)
    entry = {p, normalQuantile(p)};
  return entry.x;
}

void interpreter::fillInitialRow(InitAttr init, uint64_t seed, llvm::StringRef name, uint64_t row,
                                 double fanIn, double fanOut,
                                 llvm::MutableArrayRef<double> values) {
  constexpr uint32_t kStream = 0x494E4954; // "INIT"
  double scale = init.getScale().getValueAsDouble();
  uint64_t key = splitMix(seed ^ splitMix(hashName(name)));
  auto scaled = [](double x, double scale) -> double {
    return static_cast<float>(x * static_cast<float>(scale));
  };
  // A normal truncated at two standard deviations, drawn by inverting its distribution function.
  static const double below = std::erfc(M_SQRT2) / 2.0, inside = std::erf(M_SQRT2);
  for (auto [column, value] : llvm::enumerate(values)) {
    uint32_t word = randomWord(key, /*step=*/0, kStream, row, column);
    double u = (word + 0.5) / 4294967296.0; // in (0, 1)
    switch (init.getKind()) {
    case InitKind::zeros:
      value = 0.0;
      break;
    case InitKind::constant:
      value = static_cast<float>(scale);
      break;
    case InitKind::normal:
      value = scaled(rememberedQuantile(u), scale);
      break;
    case InitKind::truncated_normal:
      value = scaled(rememberedQuantile(below + u * inside), scale);
      break;
    case InitKind::uniform:
      value = scaled(2.0 * u - 1.0, scale);
      break;
    case InitKind::xavier_uniform:
      value = scaled(2.0 * u - 1.0, scale * std::sqrt(6.0 / (fanIn + fanOut)));
      break;
    case InitKind::xavier_normal:
      value = scaled(rememberedQuantile(u), scale * std::sqrt(2.0 / (fanIn + fanOut)));
      break;
    }
  }
}
