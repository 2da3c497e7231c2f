// Sums over rows of a kernel: pieces of a device's chunks, in its tree, at any number of threads.

#include "genrec_rt/kernels/cpu/launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace genrec::rt::test {
namespace {

namespace k = genrec::rt::kernels;
using Floats = std::vector<float>;

constexpr int64_t kFloats = 16;

/// As emitted kernels are: adds up rows [begin, end) of `args` into sums of chunk `chunk`.
struct PieceRows {
  const float *values;
  float *sums;
};
void addRows(void *args, int64_t begin, int64_t end, int64_t chunk) {
  auto *rows = static_cast<PieceRows *>(args);
  float *sums = k::chunkSums(rows->sums, chunk, kFloats);
  for (int64_t row = begin; row < end; ++row)
    for (int64_t i = 0; i < kFloats; ++i)
      sums[i] += rows->values[row * kFloats + i];
}

/// As launchSums does.
Floats summed(const Floats &values, int64_t least, int32_t threads) {
  const auto rows = static_cast<int64_t>(values.size()) / kFloats;
  const SumChunks cut = cutForSums(rows, least, kFloats);
  Floats sums(static_cast<size_t>(sumScratchBytes(cut, kFloats)) / 4, NAN);
  PieceRows args{values.data(), sums.data()};
  genrec_rt_pool *pool = genrec_rt_pool_create(threads);
  parallelFor(pool, rows, cut.grain, [&](int64_t begin, int64_t end, int64_t chunk) {
    k::detail::sumPieces(addRows, &args, cut, begin, end, chunk, sums.data(), kFloats);
  });
  k::detail::addChunks(pool, sums.data(), cut.count, kFloats, cut.slots * kFloats);
  genrec_rt_pool_destroy(pool);
  sums.resize(kFloats);
  return sums;
}

/// Chunks of a device, each in the order of its rows, then i and i + 1, i and i + 2, and so on.
Floats summedByDevice(const Floats &values) {
  const auto rows = static_cast<int64_t>(values.size()) / kFloats;
  const k::RowChunks cut = k::cutRows(rows, kFloats);
  Floats sums(static_cast<size_t>(cut.count * kFloats));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < kFloats; ++i)
      sums[static_cast<size_t>(row / cut.grain * kFloats + i)] +=
          values[static_cast<size_t>(row * kFloats + i)];
  for (int64_t by = 1; by < cut.count; by *= 2)
    for (int64_t chunk = 0; chunk + by < cut.count; chunk += 2 * by)
      for (int64_t i = 0; i < kFloats; ++i)
        sums[static_cast<size_t>(chunk * kFloats + i)] +=
            sums[static_cast<size_t>((chunk + by) * kFloats + i)];
  sums.resize(kFloats);
  return sums;
}

TEST(SumPieces, HaveTheBitsOfADeviceAtAnyNumberOfThreads) {
  std::mt19937 draw(3);
  for (int64_t rows : {1, 31, 32, 33, 64, 96, 728, 4096, 5000, 270000}) {
    Floats values(static_cast<size_t>(rows * kFloats));
    for (float &value : values)
      value = static_cast<float>(draw() % 20000) / 777 - 13;
    const Floats expected = summedByDevice(values);
    for (int64_t least : {1, 50, 4096})
      for (int32_t threads : {1, 3}) {
        const Floats found = summed(values, least, threads);
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), kFloats * 4), 0)
            << rows << " rows, " << least << " per chunk, " << threads << " threads";
      }
  }
}

// One after the other they round in one direction: 4e-6 off.
TEST(SumPieces, OfEqualRowsAreClose) {
  const Floats values(728 * kFloats, 0.7f);
  for (float sum : summed(values, 4096, 1))
    EXPECT_LE(std::fabs(sum / (728 * 0.7f) - 1), 5e-7);
}

} // namespace
} // namespace genrec::rt::test
