//===- columns_test.cpp - Transforms of many ragged columns ---------------===//

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/columns.h"
#include "genrec_rt/kernels/shared/hash.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace genrec::rt::cuda::test {
namespace {

using Values = std::vector<int64_t>;

/// A column on host and device; rows of random lengths, some empty. The first one begins at
/// `begin`, as where a column is a part of another.
struct Column {
  Column(int64_t rows, int64_t longest, uint64_t seed, int64_t begin = 0) : random(seed) {
    offsets.push_back(begin);
    for (int64_t row = 0; row < rows; ++row)
      offsets.push_back(offsets.back() +
                        static_cast<int64_t>(random() % static_cast<uint64_t>(longest + 1)));
    for (int64_t i = 0; i < offsets.back(); ++i)
      values.push_back(static_cast<int64_t>(random()) >> (i % 3 * 16));
    onDevice = std::make_unique<Arrays>(Arrays{Copy<int64_t>(values), Copy<int64_t>(offsets),
                                               Copy<int64_t>(Values(values.size())),
                                               Copy<int64_t>(Values(offsets.size(), -1))});
  }
  ColumnDescriptor descriptor() {
    ColumnDescriptor result;
    result.values = onDevice->values.data();
    result.offsets = onDevice->offsets.data();
    result.rows = static_cast<int64_t>(offsets.size()) - 1;
    result.out = onDevice->out.data();
    result.outOffsets = onDevice->outOffsets.data();
    return result;
  }
  /// Compares with what `transform` makes of what is left of each row.
  template <class Transform> void expect(int64_t most, bool keepsFirst, Transform transform) {
    const Values out = onDevice->out.fetch(), outOffsets = onDevice->outOffsets.fetch();
    int64_t at = 0;
    for (size_t row = 0; row + 1 < offsets.size(); ++row) {
      ASSERT_EQ(outOffsets[row], at);
      const int64_t kept = std::min(offsets[row + 1] - offsets[row], most);
      const int64_t first = keepsFirst ? offsets[row] : offsets[row + 1] - kept;
      for (int64_t i = 0; i < kept; ++i, ++at)
        ASSERT_EQ(out[static_cast<size_t>(at)], transform(values[static_cast<size_t>(first + i)]))
            << "row " << row;
    }
    ASSERT_EQ(outOffsets.back(), at);
  }

  struct Arrays {
    Copy<int64_t> values, offsets, out, outOffsets;
  };
  std::mt19937_64 random;
  Values values, offsets;
  std::unique_ptr<Arrays> onDevice;
};

template <class Program>
void run(std::vector<std::unique_ptr<Column>> &columns, std::vector<ColumnDescriptor> table) {
  Copy<ColumnDescriptor> descriptors(table);
  const bool isCut = std::any_of(table.begin(), table.end(),
                                 [](const ColumnDescriptor &c) { return c.most < INT64_MAX; });
  int64_t values = 0;
  for (auto &column : columns)
    values += static_cast<int64_t>(column->values.size());
  runColumns<Program>(descriptors.data(), static_cast<int64_t>(table.size()), values, isCut,
                      testStream());
  GENREC_CUDA_CHECK(cudaDeviceSynchronize());
}

TEST(Columns, ManyColumnsWithParametersOfTheirOwn) {
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ColumnDescriptor> table;
  for (int64_t c = 0; c < 130; ++c) {
    // Rows one below, at and above a block among them, and columns without rows or values.
    columns.push_back(std::make_unique<Column>(c == 7   ? 0
                                               : c == 8 ? 257
                                               : c == 9 ? 255
                                                        : c % 11,
                                               c == 5 ? 0 : 6, c, c % 3));
    table.push_back(columns.back()->descriptor());
    table.back().most = c % 4 == 0 ? INT64_MAX : c % 4;
    table.back().keepsFirst = c % 3 == 0;
    table.back().parameters[0].seed = c;
    table.back().parameters[1].divisor = 10 + c;
  }
  run<ColumnProgram<HashXxh3, Modulo>>(columns, table);
  for (size_t c = 0; c < columns.size(); ++c)
    columns[c]->expect(table[c].most, table[c].keepsFirst, [&](int64_t value) {
      return kernels::hashXxh3(value, static_cast<int64_t>(c), 63) % (10 + static_cast<int64_t>(c));
    });
}

TEST(Columns, ALongColumnBucketized) {
  std::vector<std::unique_ptr<Column>> columns;
  // Several tiles, and more rows than a block lays out at a time.
  columns.push_back(std::make_unique<Column>(4200, 2, 1));
  const std::vector<double> edges = {-1e12, -5, 0, 0.5, 3, 1e6, 1e15};
  Copy<double> onDevice(edges);
  ColumnDescriptor descriptor = columns[0]->descriptor();
  descriptor.most = 1;
  descriptor.parameters[0].divisor = 100;
  descriptor.parameters[1].edges = onDevice.data();
  descriptor.parameters[1].edgeCount = static_cast<int64_t>(edges.size());
  run<ColumnProgram<Modulo, Bucketize>>(columns, {descriptor});
  columns[0]->expect(1, false, [&](int64_t value) {
    const int64_t rest = (value % 100 + 100) % 100;
    return static_cast<int64_t>(
        std::count_if(edges.begin(), edges.end(), [&](double e) { return e <= double(rest); }));
  });
}

// Nothing is cut off: one launch, whose blocks have several tiles. Tiles end within rows, columns
// within tiles; some have rows and no values, or neither.
TEST(Columns, UncutColumnsOfManyTiles) {
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ColumnDescriptor> table;
  for (int64_t c = 0; c < 9; ++c) {
    columns.push_back(std::make_unique<Column>(c == 2 ? 0 : 701 * c, c == 3 ? 0 : c, c, 5 * c));
    table.push_back(columns.back()->descriptor());
    table.back().parameters[0].divisor = 1000 + c;
  }
  run<ColumnProgram<Modulo>>(columns, table);
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto divisor = static_cast<int64_t>(c) + 1000;
    columns[c]->expect(INT64_MAX, false,
                       [&](int64_t value) { return (value % divisor + divisor) % divisor; });
  }
}

TEST(Columns, TwoThousandColumnsInOneLaunch) {
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<ColumnDescriptor> table;
  for (int64_t c = 0; c < 2000; ++c) {
    columns.push_back(std::make_unique<Column>(c % 4, 3, c));
    table.push_back(columns.back()->descriptor());
    table.back().parameters[0].divisor = 1 + c;
  }
  run<ColumnProgram<Modulo>>(columns, table);
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto divisor = static_cast<int64_t>(c) + 1;
    columns[c]->expect(INT64_MAX, false,
                       [&](int64_t value) { return (value % divisor + divisor) % divisor; });
  }
}

__global__ void takeRemainders(int64_t *values, int64_t count, int64_t divisor) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
    values[i] = kernels::remainderBy(values[i], divisor);
}

TEST(Columns, RemaindersByTheReciprocal) {
  std::mt19937_64 random(11);
  std::vector<int64_t> divisors = {1, 2, 3, 7, 1000, INT64_MAX, INT64_MAX - 1, int64_t(1) << 62};
  for (int bits = 1; bits < 63; ++bits)
    divisors.push_back(std::max<int64_t>(1, static_cast<int64_t>(random() >> (64 - bits))));
  for (int64_t divisor : divisors) {
    std::vector<int64_t> values = {0,           1,         -1,        divisor,      -divisor,
                                   divisor - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1};
    for (int i = 0; i < 2000; ++i) {
      const auto any = static_cast<int64_t>(random() >> (random() % 64));
      values.insert(values.end(),
                    {any, -any, any / divisor * divisor, any / divisor * divisor - 1});
    }
    Copy<int64_t> onDevice(values);
    GENREC_CUDA_LAUNCH(testStream(), (LaunchShape{dim3(1), dim3(kWarp)}), takeRemainders,
                       onDevice.data(), static_cast<int64_t>(values.size()), divisor);
    const Values remainders = onDevice.fetch();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(remainders[i], values[i] % divisor) << values[i] << " % " << divisor;
  }
}

TEST(Columns, NoColumns) {
  std::vector<std::unique_ptr<Column>> columns;
  run<ColumnProgram<>>(columns, {});
}

} // namespace
} // namespace genrec::rt::cuda::test
