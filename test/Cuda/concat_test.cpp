//===- concat_test.cpp - Arrays of a device, one behind the other ---------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/concat.h"

#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

using Floats = std::vector<float>;

/// `count` parts of sizes that differ, none and more than a block copies at once among them.
void expectConcatenated(int64_t count) {
  std::vector<Copy<float>> there;
  std::vector<const float *> parts;
  std::vector<int64_t> sizes;
  Floats expected;
  for (int64_t part = 0; part < count; ++part) {
    const int64_t size = part == 2 ? 5000 : part * 7 % 13;
    Floats values;
    for (int64_t i = 0; i < size; ++i)
      values.push_back(static_cast<float>(part * 10000 + i));
    expected.insert(expected.end(), values.begin(), values.end());
    there.emplace_back(values);
    parts.push_back(there.back().data());
    sizes.push_back(size);
  }
  const size_t floats = expected.size();
  expected.resize(floats + 3, -1); // nobody's
  Floats before(expected.size(), -1);
  Copy<float> result(before);
  concat(result.data(), count, parts.data(), sizes.data(), testStream());
  EXPECT_EQ(result.fetch(), expected) << count << " parts";
}

TEST(Concat, PartsOfOneAndOfSeveralLaunches) {
  for (int64_t count :
       {0, 1, 3, int(kConcatParts), int(kConcatParts) + 1, 2 * int(kConcatParts) + 50})
    expectConcatenated(count);
}

} // namespace
} // namespace genrec::rt::cuda::test
