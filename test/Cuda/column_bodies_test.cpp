//===- column_bodies_test.cpp - Many columns in one launch ----------------===//
//
// What emitted stages call with emitted kernels: columns over the rows of several domains, by
// several programs, in one launch or in as many as its arguments take.
//
//===----------------------------------------------------------------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "device_copy.h"

#include "genrec_rt/kernels/cuda/column_bodies.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <gtest/gtest.h>

#include <memory>

namespace genrec::rt::cuda::test {
namespace {

using Ids = std::vector<int64_t>;
using kernels::ColumnShape;

/// What column `pointers[1][0]` makes of its rows' ids.
__device__ void shift(const genrec_step *, void *const *pointers, int64_t begin, int64_t end) {
  const auto *ids = kernels::columnPointer<const int64_t>(pointers, 0);
  const auto *by = kernels::columnPointer<const int64_t>(pointers, 1);
  auto *out = kernels::columnPointer<int64_t>(pointers, 2);
  for (int64_t row = begin + kernels::rowOfBlock<1>(); row < end; row += kernels::blockStep<1>())
    out[row] = ids[row] + by[0];
}
/// Programs with another number of inputs, whose rows have L threads and so many values.
template <int64_t L>
__device__ void number(const genrec_step *, void *const *pointers, int64_t begin, int64_t end) {
  auto *out = kernels::columnPointer<int64_t>(pointers, 0);
  for (int64_t row = begin + kernels::rowOfBlock<L>(); row < end; row += kernels::blockStep<L>())
    out[row * L + kernels::lane<L>()] = row * L + kernels::lane<L>();
}

template <int Room, int Pointers>
__global__ void __launch_bounds__(256)
    runBoth(const genrec_step *step,
            __grid_constant__ const kernels::Columns<Room, Pointers> columns) {
  kernels::runColumns<shift, number<1>, number<8>, number<256>>(step, columns);
}

constexpr int64_t kDomains = 6, kBlock = kColumnRows;
/// Threads of a row, by program.
constexpr int64_t kLanes[] = {1, 1, 8, 256};
/// Rows there are, and rows that there is room for.
constexpr int64_t kCounts[kDomains] = {kBlock, kBlock - 1, kBlock + 1, 0, 1, 2 * kBlock + 7};
constexpr int64_t kCapacities[kDomains] = {kBlock, kBlock + 3, kBlock + 1, 5, 1, 4 * kBlock};

/// A step on host and device whose domains have those rows.
struct Step {
  Step() {
    for (int64_t d = 0; d < kDomains; ++d) {
      domains.push_back({});
      domains.back().count = kCounts[d];
      domains.back().capacity = kCapacities[d];
    }
    there = std::make_unique<Copy<genrec_domain>>(domains);
    genrec_step onDevice{};
    onDevice.domains = there->data();
    deviceStep = std::make_unique<Copy<genrec_step>>(std::vector<genrec_step>{onDevice});
    for (genrec_domain &domain : domains)
      domain.count = -1; // the host does not know
    step.domains = domains.data();
    step.stream = testStream();
    step.device = deviceStep->data();
  }
  std::vector<genrec_domain> domains;
  std::unique_ptr<Copy<genrec_domain>> there;
  std::unique_ptr<Copy<genrec_step>> deviceStep;
  genrec_step step{};
};

constexpr int kColumns = 14;
/// Every domain twice and two of them once more; one column in three has inputs.
constexpr ColumnShape shapeOf(int column) {
  const int program = column % 3 == 2 ? 0 : 1 + column * 2 / 3 % 3;
  return {static_cast<int16_t>(program), static_cast<int16_t>(kBlock / kLanes[program]),
          program == 0 ? 3 : 1, static_cast<int32_t>(column % kDomains)};
}
constexpr ColumnShape kShapes[kColumns] = {
    shapeOf(0), shapeOf(1), shapeOf(2), shapeOf(3),  shapeOf(4),  shapeOf(5),  shapeOf(6),
    shapeOf(7), shapeOf(8), shapeOf(9), shapeOf(10), shapeOf(11), shapeOf(12), shapeOf(13)};

/// Values of a column whose domains have `rows` rows.
size_t valuesOf(int column, const int64_t (&rows)[kDomains]) {
  return static_cast<size_t>(rows[kShapes[column].domain] * kLanes[kShapes[column].program]);
}

/// Runs all columns with launches of up to Room columns and `Pointers` pointers.
template <int Room, int Pointers> void expectColumns() {
  Step step;
  struct Column {
    Copy<int64_t> ids, by, out;
  };
  std::vector<std::unique_ptr<Column>> columns;
  std::vector<void *> pointers;
  for (int c = 0; c < kColumns; ++c) {
    Ids ids;
    for (int64_t row = 0; row < kCounts[kShapes[c].domain]; ++row)
      ids.push_back(1000 * c + row * row);
    columns.push_back(
        std::make_unique<Column>(Column{Copy<int64_t>(ids), Copy<int64_t>(Ids{7 + c}),
                                        Copy<int64_t>(Ids(valuesOf(c, kCapacities), -9))}));
    Column &column = *columns.back();
    if (kShapes[c].program == 0)
      pointers.insert(pointers.end(), {column.ids.data(), column.by.data()});
    pointers.push_back(column.out.data());
  }
  kernels::launchColumns(&step.step, kShapes, runBoth<Room, Pointers>, pointers.data());
  for (int c = 0; c < kColumns; ++c) {
    const Ids out = columns[static_cast<size_t>(c)]->out.fetch();
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const int64_t wanted = i >= valuesOf(c, kCounts) ? -9
                             : kShapes[c].program == 0 ? 1000 * c + at * at + 7 + c
                                                       : at;
      ASSERT_EQ(out[i], wanted) << "column " << c << ", value " << i;
    }
  }
}

TEST(ColumnBodies, AllInOneLaunch) { expectColumns<kColumns, 3 * kColumns>(); }
TEST(ColumnBodies, SomeColumnsInALaunch) { expectColumns<5, 64>(); }
TEST(ColumnBodies, OneColumnInALaunch) { expectColumns<1, 3>(); } // of one block, of several
TEST(ColumnBodies, SomePointersInALaunch) { expectColumns<kColumns, 6>(); }

} // namespace
} // namespace genrec::rt::cuda::test
