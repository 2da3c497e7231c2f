// Distinct ids by hashing (unique.h), and by sorting with CUB, as torch.unique does it.
//
//   bench-cuda-unique [--dry-run] [--only <group>] [<file.json>]
//
// The peer sorts (segment, id) with their positions, marks where a key differs from the one before,
// numbers these marks by a scan and scatters the numbers back: distinct ids, inverse and counts, in
// the order of keys, which is less than ours gives (order of first appearance). Its partition by
// owner sorts the owners of the distinct ids once more.

#include "timing.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/unique.h"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include <bit>

namespace {

using namespace genrec::bench;
using namespace genrec::rt::cuda;

struct Case {
  int64_t count, segments;

  std::string text() const {
    return std::to_string(count / kMi) + " Mi ids in " + std::to_string(segments);
  }
  std::vector<int64_t> offsets() const {
    std::vector<int64_t> result;
    for (int64_t s = 0; s <= segments; ++s)
      result.push_back(count * s / segments);
    return result;
  }
  /// Ids occur three times on average, few of them often and most once (powerLawIds).
  int64_t idLimit() const { return limitOfThree(count / segments); }
};
constexpr Case kCases[] = {{kMi, 10}, {64 * kMi, 40}};

constexpr int kThreads = 256;
LaunchShape shapeOf(int64_t items) {
  return {dim3(static_cast<unsigned>(std::min<int64_t>(blocksFor(items, kThreads), 16384))),
          dim3(kThreads)};
}

//===----------------------------------------------------------------------===//
// The sorting peer
//===----------------------------------------------------------------------===//

__global__ void makeKeys(const int64_t *ids, int64_t count, int64_t segments, int idBits,
                         uint64_t *keys, uint32_t *positions) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    // Segments are of one size but for rounding.
    const auto segment = static_cast<uint64_t>(((i + 1) * segments - 1) / count);
    keys[i] = segment << idBits | static_cast<uint64_t>(ids[i]);
    positions[i] = static_cast<uint32_t>(i);
  }
}
__global__ void markFirsts(const uint64_t *keys, int64_t count, uint32_t *marks) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    marks[i] = i == 0 || keys[i] != keys[i - 1];
}
__global__ void scatterNumbers(const uint64_t *keys, const uint32_t *positions,
                               const uint32_t *numbers, int64_t count, uint64_t idMask,
                               int64_t *distinct, uint32_t *inverse, uint32_t *begins) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const uint32_t number = numbers[i] - 1;
    inverse[positions[i]] = number;
    if (i == 0 || numbers[i - 1] != numbers[i]) {
      distinct[number] = static_cast<int64_t>(keys[i] & idMask);
      begins[number] = static_cast<uint32_t>(i);
    }
  }
}
__global__ void countRuns(const uint32_t *begins, const uint32_t *numbers, int64_t count,
                          uint32_t *counts) {
  const int64_t total = numbers[count - 1];
  for (int64_t u = threadInGrid(); u < total; u += threadsInGrid())
    counts[u] = (u + 1 < total ? begins[u + 1] : static_cast<uint32_t>(count)) - begins[u];
}
__global__ void findOwnersOf(const int64_t *distinct, const uint32_t *numbers, int64_t count,
                             uint32_t owners, uint8_t *ownerOfId, uint32_t *positions) {
  const int64_t total = numbers[count - 1];
  for (int64_t u = threadInGrid(); u < count; u += threadsInGrid()) {
    ownerOfId[u] = static_cast<uint8_t>(u < total ? ownerOf(distinct[u], owners) : owners);
    positions[u] = static_cast<uint32_t>(u);
  }
}

class SortedUnique {
public:
  explicit SortedUnique(const Case &c)
      : count(c.count), segments(c.segments),
        idBits(std::bit_width(static_cast<uint64_t>(c.idLimit()))),
        keyBits(idBits + std::bit_width(static_cast<uint64_t>(c.segments))) {
    for (auto &side : keys)
      side = arrays.of<uint64_t>(count);
    for (auto &side : positions)
      side = arrays.of<uint32_t>(count);
    for (auto &side : owners)
      side = arrays.of<uint8_t>(count);
    size_t sort = 0, scan = 0;
    sortKeys(nullptr, sort, nullptr);
    scanMarks(nullptr, scan, nullptr);
    spaceBytes = std::max(sort, scan);
    space = arrays.of<char>(static_cast<int64_t>(spaceBytes));
  }

  void run(const int64_t *ids, cudaStream_t stream) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), makeKeys, ids, count, segments, idBits, keys[0],
                       positions[0]);
    sortKeys(space, spaceBytes, stream);
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), markFirsts, keys[1], count, marks);
    scanMarks(space, spaceBytes, stream);
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), scatterNumbers, keys[1], positions[1], numbers,
                       count, (uint64_t(1) << idBits) - 1, distinct, inverse, begins);
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), countRuns, begins, numbers, count, counts);
  }
  void partition(uint32_t ownerCount, cudaStream_t stream) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count), findOwnersOf, distinct, numbers, count, ownerCount,
                       owners[0], positions[0]);
    GENREC_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(space, spaceBytes, owners[0], owners[1],
                                                      positions[0], positions[1],
                                                      static_cast<int>(count), 0, 8, stream));
  }

private:
  void sortKeys(void *memory, size_t &bytes, cudaStream_t stream) {
    GENREC_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(memory, bytes, keys[0], keys[1], positions[0],
                                                      positions[1], static_cast<int>(count), 0,
                                                      keyBits, stream));
  }
  void scanMarks(void *memory, size_t &bytes, cudaStream_t stream) {
    GENREC_CUDA_CHECK(cub::DeviceScan::InclusiveSum(memory, bytes, marks, numbers,
                                                    static_cast<int>(count), stream));
  }

  Arrays arrays;
  int64_t count, segments;
  int idBits, keyBits;
  uint64_t *keys[2];
  uint32_t *positions[2];
  uint8_t *owners[2];
  uint32_t *marks = arrays.of<uint32_t>(count), *numbers = arrays.of<uint32_t>(count),
           *inverse = arrays.of<uint32_t>(count), *begins = arrays.of<uint32_t>(count),
           *counts = arrays.of<uint32_t>(count);
  int64_t *distinct = arrays.of<int64_t>(count);
  char *space = nullptr;
  size_t spaceBytes = 0;
};

//===----------------------------------------------------------------------===//
// Both in turn
//===----------------------------------------------------------------------===//

void segmented(Report &report, cudaStream_t stream) {
  for (const Case &c : kCases) {
    Arrays arrays;
    const int64_t *ids = arrays.of(powerLawIds(c.count, c.idLimit(), 3));
    const int64_t *segments = arrays.of(c.offsets());
    int64_t *distinct = arrays.of<int64_t>(c.count), *begins = arrays.of<int64_t>(c.segments + 1);
    uint32_t *inverse = arrays.of<uint32_t>(c.count), *counts = arrays.of<uint32_t>(c.count),
             *total = arrays.of<uint32_t>(1);
    Unique unique("bench");
    SortedUnique sorted(c);
    const double ours = coldMilliseconds(stream, kRepeats, [&](cudaStream_t s) {
      unique.run(ids, c.count, segments, c.segments, {distinct, inverse, counts, begins, total}, s);
    });
    const double theirs =
        coldMilliseconds(stream, kRepeats, [&](cudaStream_t s) { sorted.run(ids, s); });
    report.add("segment-unique, " + c.text(), 1e3 * ours, "us");
    report.add("CUB sort, " + c.text(), 1e3 * theirs, "us");
    report.add("segment-unique, " + c.text() + ", CUB sort / ours", theirs / ours, "x");
  }
}

void partitioned(Report &report, cudaStream_t stream) {
  for (const Case &whole : kCases) {
    const Case c = {whole.count, 1};
    Arrays arrays;
    const int64_t *ids = arrays.of(powerLawIds(c.count, c.idLimit(), 3));
    int64_t *distinct = arrays.of<int64_t>(c.count), *begins = arrays.of<int64_t>(65);
    uint32_t *inverse = arrays.of<uint32_t>(c.count), *total = arrays.of<uint32_t>(1);
    Unique unique("bench");
    SortedUnique sorted(c);
    for (uint32_t owners : {8u, 64u}) {
      const double ours = coldMilliseconds(stream, kRepeats, [&](cudaStream_t s) {
        unique.runByOwner(ids, c.count, owners, {distinct, inverse, nullptr, nullptr, total},
                          begins, s);
      });
      const double theirs = coldMilliseconds(stream, kRepeats, [&](cudaStream_t s) {
        sorted.run(ids, s);
        sorted.partition(owners, s);
      });
      const std::string which =
          std::to_string(c.count / kMi) + " Mi ids into " + std::to_string(owners);
      report.add("unique and partition, " + which, 1e3 * ours, "us");
      report.add("CUB sort and partition, " + which, 1e3 * theirs, "us");
      report.add("unique and partition, " + which + ", CUB sort / ours", theirs / ours, "x");
    }
  }
}

/// One id that is half of the batch.
void giant(Report &report, cudaStream_t stream) {
  Arrays arrays;
  constexpr int64_t kCount = 4 * kMi;
  std::vector<int64_t> values = powerLawIds(kCount, limitOfThree(kCount), 3), whole = {0, kCount};
  for (size_t i = 0; i < values.size(); i += 2)
    values[i] = 7;
  const int64_t *ids = arrays.of(values), *segments = arrays.of(whole);
  int64_t *distinct = arrays.of<int64_t>(kCount), *begins = arrays.of<int64_t>(2);
  uint32_t *inverse = arrays.of<uint32_t>(kCount), *counts = arrays.of<uint32_t>(kCount),
           *total = arrays.of<uint32_t>(1);
  Unique unique("bench");
  report.add("segment-unique, 4 Mi ids, half of them equal",
             1e3 * coldMilliseconds(stream, kRepeats,
                                    [&](cudaStream_t s) {
                                      unique.run(ids, kCount, segments, 1,
                                                 {distinct, inverse, counts, begins, total}, s);
                                    }),
             "us");
}

} // namespace

int main(int argc, char **argv) {
  return run("unique", argc, argv,
             {{"segmented", segmented}, {"partitioned", partitioned}, {"giant", giant}});
}
