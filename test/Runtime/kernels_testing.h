//===- kernels_testing.h - What the kernel tests share ----------*- C++ -*-===//
//
// Each kernels_*_test.cpp is compiled twice: for the baseline and, through
// kernels_*_test.avx512.cpp, for AVX-512. Suites are named after the
// instruction set and skip themselves on a machine that lacks it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_RUNTIME_KERNELS_TESTING_H
#define GENREC_TEST_RUNTIME_KERNELS_TESTING_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/shared/random.h"
#include "genrec_rt/parallel.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#define GENREC_PASTE_(a, b) a##b
#define GENREC_PASTE(a, b) GENREC_PASTE_(a, b)
#define GENREC_SUITE_(suite) GENREC_PASTE(suite##_, GENREC_RT_ISA)

/// A test that runs where the machine has what the file is compiled for.
#define KERNEL_TEST(suite, name)                                               \
  static void GENREC_PASTE(suite##_##name##_, GENREC_RT_ISA)();                \
  TEST(GENREC_SUITE_(suite), name) {                                           \
    if (!genrec::rt::kernels::test::machineHasIsa())                           \
      GTEST_SKIP() << "this machine lacks the instruction set";                \
    GENREC_PASTE(suite##_##name##_, GENREC_RT_ISA)();                          \
  }                                                                            \
  static void GENREC_PASTE(suite##_##name##_, GENREC_RT_ISA)()

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace test {

inline bool machineHasIsa() {
#if defined(GENREC_AVX512)
  return __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
#elif defined(GENREC_AVX2)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

/// Test data: a stream of its own per seed.
class Random {
public:
  explicit Random(uint64_t seed) : state(splitmix64(seed)) {}
  uint64_t word() { return state = splitmix64(state); }
  int64_t below(int64_t n) {
    return static_cast<int64_t>(word() % static_cast<uint64_t>(n));
  }
  /// In [-1, 1).
  double real() {
    return static_cast<double>(static_cast<int64_t>(word())) * 0x1p-63;
  }
  std::vector<float> reals(int64_t count, double scale = 1) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float &value : values)
      value = static_cast<float>(scale * real());
    return values;
  }

private:
  uint64_t state;
};

/// Room aligned to 64 bytes, filled with a pattern that makes reads of what
/// was never written visible (NaN), with a guard behind it.
class Scratch {
public:
  explicit Scratch(int64_t bytes)
      : size(static_cast<size_t>(bytes)),
        memory(static_cast<unsigned char *>(
                   std::aligned_alloc(64, roundUp(bytes + 64, 64))),
               &std::free) {
    __builtin_memset(memory.get(), 0xFF, roundUp(bytes + 64, 64));
  }
  void *data() { return memory.get(); }
  bool guardIsWhole() const {
    for (size_t i = size; i < size + 64 - size % 64; ++i)
      if (memory.get()[i] != 0xFF)
        return false;
    return true;
  }

private:
  size_t size;
  std::unique_ptr<unsigned char, decltype(&std::free)> memory;
};

/// A pool that lives as long as the test.
class Pool {
public:
  explicit Pool(int threads) : pool(genrec_rt_pool_create(threads)) {}
  ~Pool() { genrec_rt_pool_destroy(pool); }
  Pool(const Pool &) = delete;
  operator genrec_rt_pool *() { return pool; }

private:
  genrec_rt_pool *pool;
};

/// A step with a pool; no other state of a run.
class Step {
public:
  explicit Step(int threads = 3) : pool(threads) {
    step.pool = pool;
    step.seed = 5;
    step.step = 9;
  }
  operator genrec_step *() { return &step; }

private:
  Pool pool;
  genrec_step step = {};
};

/// Distance from the exact value in units of the last place of a float there.
inline double ulps(float got, double exact) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
  double most = 0x1.fffffefffffffp127; // what rounds to the greatest float
  if (std::isinf(got) || std::fabs(exact) > most)
    return (std::isinf(got) || std::fabs(got) > 0x1.fffffcp127) &&
                   std::fabs(exact) > 0x1.fffffcp127 &&
                   (got > 0) == (exact > 0)
               ? 0
               : INFINITY;
  int exponent;
  std::frexp(exact, &exponent);
  double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

} // namespace test
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_TEST_RUNTIME_KERNELS_TESTING_H
