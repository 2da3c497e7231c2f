//===- InitialValues.cpp - initial values of parameters and table rows ----===//

#include "Random.h"

#include <cmath>

using namespace genrec;
using namespace genrec::interpreter;

/// FNV-1a of a name, 64 bits.
static uint64_t hashName(llvm::StringRef name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001B3;
  return hash;
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

double interpreter::initialValue(InitAttr init, uint64_t seed, llvm::StringRef name, uint64_t row,
                                 uint64_t column, double fanIn, double fanOut) {
  constexpr uint32_t kStream = 0x494E4954; // "INIT"
  double scale = init.getScale().getValueAsDouble();
  uint64_t key = splitMix(seed ^ splitMix(hashName(name)));
  uint32_t word = randomWord(key, /*step=*/0, kStream, row, column);
  double u = (word + 0.5) / 4294967296.0; // in (0, 1)
  auto scaled = [](double x, double scale) -> double {
    return static_cast<float>(x * static_cast<float>(scale));
  };
  switch (init.getKind()) {
  case InitKind::zeros:
    return 0.0;
  case InitKind::constant:
    return static_cast<float>(scale);
  case InitKind::normal:
    return scaled(normalQuantile(u), scale);
  case InitKind::truncated_normal: {
    // A normal truncated at two standard deviations, drawn by inverting its distribution function.
    double below = std::erfc(M_SQRT2) / 2.0, inside = std::erf(M_SQRT2);
    return scaled(normalQuantile(below + u * inside), scale);
  }
  case InitKind::uniform:
    return scaled(2.0 * u - 1.0, scale);
  case InitKind::xavier_uniform:
    return scaled(2.0 * u - 1.0, scale * std::sqrt(6.0 / (fanIn + fanOut)));
  case InitKind::xavier_normal:
    return scaled(normalQuantile(u), scale * std::sqrt(2.0 / (fanIn + fanOut)));
  }
  llvm_unreachable("every initializer is handled");
}
