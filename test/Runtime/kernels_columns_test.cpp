// Transforms of columns, in loops that run in vectors, against what they mean.

#include "kernels_testing.h"

#include "genrec_rt/kernels/cpu/rowbody.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace {

namespace k = genrec::rt::kernels;
using namespace genrec::rt::kernels::test;

template <int64_t Count, class T> void checkBuckets() {
  Random random(static_cast<uint64_t>(Count));
  std::vector<double> edges;
  for (int64_t i = 0; i < Count; ++i)
    edges.push_back(random.real() * 10); // few of them floats
  std::sort(edges.begin(), edges.end());
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  std::vector<T> values = {0, T(-0.0), kInfinity, -kInfinity, std::numeric_limits<T>::quiet_NaN()};
  for (double edge : edges) {
    auto near = static_cast<T>(edge);
    for (T value : {near, std::nextafter(near, kInfinity), std::nextafter(near, -kInfinity)})
      values.push_back(value);
  }
  for (int i = 0; i < 1000; ++i)
    values.push_back(static_cast<T>(random.real() * 12));
  std::vector<int64_t> buckets(values.size());
#pragma clang loop vectorize(assume_safety)
  for (size_t i = 0; i < values.size(); ++i)
    buckets[i] = k::bucketAmong<Count>(values[i], edges.data());
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t expected = std::count_if(edges.begin(), edges.end(),
                                     [&](double edge) { return edge <= double(values[i]); });
    ASSERT_EQ(buckets[i], expected) << values[i] << " among " << Count << " edges";
  }
}

KERNEL_TEST(KernelsColumns, BucketsAmongFewAndManyEdges) {
  checkBuckets<1, float>();
  checkBuckets<2, float>();
  checkBuckets<3, double>();
  checkBuckets<5, float>();
  checkBuckets<15, float>();
  checkBuckets<16, double>();
  checkBuckets<31, float>();
  checkBuckets<63, float>();
  checkBuckets<64, float>();
  checkBuckets<100, double>();
}

KERNEL_TEST(KernelsColumns, EdgesAroundZero) {
  const double edges[] = {-1e-300, 0.0, 1e-300};
  EXPECT_EQ(k::bucketAmong<3>(-1e-45f, edges), 0);
  EXPECT_EQ(k::bucketAmong<3>(-0.0f, edges), 2);
  EXPECT_EQ(k::bucketAmong<3>(0.0f, edges), 2);
  EXPECT_EQ(k::bucketAmong<3>(1e-45f, edges), 3);
}

template <int64_t Divisor> void checkRemainder() {
  Random random(static_cast<uint64_t>(Divisor));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 40; ++i) {
    values.push_back(std::numeric_limits<int64_t>::min() + i);
    values.push_back(std::numeric_limits<int64_t>::max() - i);
    values.push_back(i - 20);
    values.push_back((i - 20) * Divisor);
    values.push_back((i - 20) * Divisor + 1);
    values.push_back((i - 20) * Divisor - 1);
  }
  for (int bits = 1; bits < 64; ++bits)
    for (int i = 0; i < 200; ++i) {
      auto word = static_cast<int64_t>(random.below(int64_t(1) << 62)) * 2 + random.below(2);
      values.push_back(word >> (63 - bits));
      values.push_back(-(word >> (63 - bits)));
    }
  std::vector<int64_t> rests(values.size());
#pragma clang loop vectorize(assume_safety)
  for (size_t i = 0; i < values.size(); ++i)
    rests[i] = k::remainder<Divisor>(values[i]);
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(rests[i], values[i] % Divisor) << values[i] << " % " << Divisor;
}

KERNEL_TEST(KernelsColumns, RemaindersOfAllIntegers) {
  checkRemainder<1>();
  checkRemainder<2>();
  checkRemainder<3>();
  checkRemainder<7>();
  checkRemainder<1000>();
  checkRemainder<999'999'937>();
  checkRemainder<(int64_t(1) << 48) - 59>();
  checkRemainder<int64_t(1) << 48>();
  checkRemainder<(int64_t(1) << 56) + 1>();
}

} // namespace
