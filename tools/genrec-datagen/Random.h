//===- Random.h - the generator's source of randomness ----------*- C++ -*-===//
//
// The standard library's distributions differ between implementations; these
// do not, so that a seed means the same data everywhere.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TOOLS_DATAGEN_RANDOM_H
#define GENREC_TOOLS_DATAGEN_RANDOM_H

#include <cmath>
#include <cstdint>
#include <vector>

namespace genrec::datagen {

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, period 2^64.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  /// A generator for entity `index` of this one's seed: what it draws does not
  /// depend on how many others were made.
  static Random forEntity(uint64_t seed, uint64_t kind, uint64_t index) {
    Random mixer(seed ^ (kind << 56) ^ (index * 0x9E3779B97F4A7C15ull));
    return Random(mixer.next());
  }

  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  /// In [0, 1).
  double uniform() { return double(next() >> 11) * 0x1.0p-53; }
  /// In [0, bound), bound > 0.
  int64_t index(int64_t bound) {
    return int64_t((unsigned __int128)(next()) * uint64_t(bound) >> 64);
  }
  bool chance(double probability) { return uniform() < probability; }
  /// Exponential with the given mean.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

private:
  uint64_t state;
};

/// Draws indices with fixed weights by binary search in their running sum.
class Weighted {
public:
  Weighted() = default;
  explicit Weighted(const std::vector<double> &weights) {
    double total = 0;
    for (double weight : weights)
      running.push_back(total += weight);
  }
  int64_t draw(Random &random) const {
    double point = random.uniform() * running.back();
    int64_t low = 0, high = int64_t(running.size()) - 1;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      if (running[middle] <= point)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  /// The probability of index `i`.
  double probability(int64_t i) const {
    return (running[i] - (i ? running[i - 1] : 0)) / running.back();
  }

private:
  std::vector<double> running;
};

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_RANDOM_H
