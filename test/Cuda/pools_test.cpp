//===- pools_test.cpp - Pooling long lists in pieces ----------------------===//

#if !defined(__CUDACC__)
#define GENREC_WARP_ROWS 1
#endif

#include "domain_copies.h"
#include "scratch.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/column_bodies.h"
#include "genrec_rt/kernels/cuda/pools.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace genrec::rt::kernels {
namespace {

using cuda::test::Copy;
using cuda::test::DeviceDomain;
using cuda::test::HostDomain;
using cuda::test::Lengths;
using Floats = std::vector<float>;
using Integers = std::vector<int64_t>;

constexpr int kWidth = 5;

/// What the kernel makes: of leaves, and of lists.
struct Outputs {
  int32_t *seen; ///< by leaf: how often a unit had it
  float *sum, *mean, *most, *first, *last;
  int64_t *total, *greatest;
};

/// As emitted kernels are, with one lane per row; x and k are the leaves.
template <int Depth>
__global__ void poolKernel(const genrec_step *, const genrec_domain *lists,
                           const genrec_domain *leaves, const float *x, const int64_t *k,
                           const Outputs *to, float *sum, float *mean, float *most, int64_t *total,
                           int64_t *greatest, float *parts) {
  const int64_t count = lists->count, units = poolUnits(count, leaves, parts);
  for (int64_t number = cuda::threadInGrid(); number < units; number += cuda::threadsInGrid()) {
    const PoolUnit unit = poolUnit<Depth>(number, count, leaves, parts);
    if (unit.row < 0)
      continue;
    for (int64_t leaf = unit.begin; leaf < unit.end; ++leaf)
      atomicAdd(to->seen + leaf, 1);
    float *sumTo = pooledPlace<kWidth, 24, 0>(sum, parts, unit);
    float *meanTo = pooledPlace<kWidth, 24, 8>(mean, parts, unit);
    for (int c = 0; c < kWidth; ++c) {
      float value = 0;
      for (int64_t leaf = unit.begin; leaf < unit.end; ++leaf)
        value += x[leaf * kWidth + c];
      sumTo[c] = value;
      meanTo[c] = value / static_cast<float>(std::max<int64_t>(pooledLength(unit), 1));
    }
    float greatestFloat = poolStart<float>(unit);
    int64_t added = 0, greatestInteger = poolStart<int64_t>(unit);
    for (int64_t leaf = unit.begin; leaf < unit.end; ++leaf) {
      const float value = x[leaf * kWidth];
      greatestFloat = leaf == unit.first || value > greatestFloat ? value : greatestFloat;
      greatestInteger = leaf == unit.first || k[leaf] > greatestInteger ? k[leaf] : greatestInteger;
      added += k[leaf];
    }
    *pooledPlace<1, 24, 16>(most, parts, unit) = greatestFloat;
    *pooledPlace<1, 24, 18>(total, parts, unit) = added;
    *pooledPlace<1, 24, 20>(greatest, parts, unit) = greatestInteger;
    if (hasFirstRow(unit))
      to->first[unit.row] = unit.begin < unit.end ? x[unit.begin * kWidth] : 0;
    if (hasLastRow(unit))
      to->last[unit.row] = unit.begin < unit.end ? x[(unit.end - 1) * kWidth] : 0;
  }
}

constexpr PoolShape shapeOf(int32_t depth) {
  return {0,
          depth,
          24,
          5,
          {{5, kWidth, 0, PoolOf::sum, false},
           {6, kWidth, 8, PoolOf::mean, false},
           {7, 1, 16, PoolOf::max, false},
           {8, 1, 18, PoolOf::sum, true},
           {9, 1, 20, PoolOf::max, true}}};
}

/// Adds pieces of 256 rows, then these: the order of docs/cuda-kernels.md, written once more.
float addedUp(const Floats &x, int64_t begin, int64_t end, int column) {
  float total = 0, piece = 0;
  bool isFirst = true;
  for (int64_t row = begin; row < end; ++row) {
    if (row > begin && (row - begin) % 256 == 0) {
      total = isFirst ? piece : total + piece;
      isFirst = false;
      piece = 0;
    }
    piece += x[static_cast<size_t>(row * kWidth + column)];
  }
  return isFirst ? piece : total + piece;
}

/// What else a NaN says is a processor's own: a device's sums are 0x7FFFFFFF, others hand on what
/// they got.
bool hasBitsOf(const Floats &a, const Floats &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0;
  });
}

struct Expected {
  Floats sum, mean, most, first, last;
  Integers total, greatest;

  Expected(const Floats &x, const Integers &k, const Integers &begins) {
    for (size_t list = 0; list + 1 < begins.size(); ++list) {
      const int64_t begin = begins[list], end = begins[list + 1];
      const auto size = static_cast<float>(std::max<int64_t>(end - begin, 1));
      for (int c = 0; c < kWidth; ++c) {
        sum.push_back(addedUp(x, begin, end, c));
        mean.push_back(sum.back() / size);
      }
      float most = 0;
      int64_t total = 0, greatest = 0;
      for (int64_t leaf = begin; leaf < end; ++leaf) {
        const float value = x[static_cast<size_t>(leaf * kWidth)];
        const int64_t number = k[static_cast<size_t>(leaf)];
        most = leaf == begin || value > most ? value : most;
        greatest = leaf == begin || number > greatest ? number : greatest;
        total += number;
      }
      this->most.push_back(most);
      this->total.push_back(total);
      this->greatest.push_back(greatest);
      first.push_back(begin < end ? x[static_cast<size_t>(begin * kWidth)] : 0);
      last.push_back(begin < end ? x[static_cast<size_t>((end - 1) * kWidth)] : 0);
    }
  }
};

/// Changes the first column of a leaf.
using Changes = std::function<void(int64_t leaf, float &value)>;

/// Pools the leaves of `below` into the rows of `above`, which has room for `more`. Between them are
/// `lists`, if Depth is 2.
template <int Depth>
void expectPooled(const HostDomain &above, const HostDomain &lists, const HostDomain &below,
                  const Integers &begins, const Changes &change = {}, int64_t more = 3) {
  std::mt19937 draw(11);
  const int64_t rows = above.view.count, leaves = below.view.count;
  Floats x;
  Integers k;
  for (int64_t i = 0; i < leaves * kWidth; ++i)
    x.push_back(static_cast<float>(draw() % 20000) / 777 - 13);
  for (int64_t i = 0; i < leaves; ++i)
    k.push_back(-static_cast<int64_t>(draw() % 20000) - 1);
  for (int64_t leaf = 0; change && leaf < leaves; ++leaf)
    change(leaf, x[static_cast<size_t>(leaf * kWidth)]);
  const Expected expected(x, k, begins);
  // Room behind the rows that are there.
  DeviceDomain onAbove(above, nullptr, rows + more), onLists(lists, &onAbove, lists.view.count + 9);
  DeviceDomain onBelow(below, Depth == 2 ? &onLists : &onAbove, leaves + 300);
  genrec_domain hostAbove = above.view, hostLists = lists.view, hostBelow = below.view;
  hostAbove.capacity = rows + more;
  hostAbove.device = onAbove.get();
  hostLists.parent_domain = &hostAbove;
  hostBelow.parent_domain = Depth == 2 ? &hostLists : &hostAbove;
  hostBelow.capacity = leaves + 300;
  hostBelow.device = onBelow.get();
  const auto n = static_cast<size_t>(rows);
  const Floats wide(n * kWidth, 7), narrow(n, 7);
  const Integers none(n, 7);
  Copy<int32_t> seen{std::vector<int32_t>(static_cast<size_t>(leaves))};
  Copy<float> onX{x}, sum{wide}, mean{wide}, most{narrow}, first{narrow}, last{narrow};
  Copy<int64_t> onK{k}, total{none}, greatest{none};
  Copy<Outputs> to{std::vector{Outputs{seen.data(), sum.data(), mean.data(), most.data(),
                                       first.data(), last.data(), total.data(), greatest.data()}}};
  const PoolShape shape = shapeOf(Depth);
  const int64_t slots = slotsOf(&hostAbove, &hostBelow);
  cuda::test::Scratch parts(partFloats(shape, slots) * 4);
  queuePools(cuda::test::testStream(), nullptr, &hostAbove, &hostBelow, RowMapping{1, 0}, shape,
             poolKernel<Depth>, slots, slots ? reinterpret_cast<float *>(parts.data()) : nullptr,
             onAbove.get(), onBelow.get(), onX.data(), onK.data(), to.data(), sum.data(),
             mean.data(), most.data(), total.data(), greatest.data());
  EXPECT_EQ(seen.fetch(), std::vector<int32_t>(static_cast<size_t>(leaves), 1)) << "units";
  EXPECT_TRUE(hasBitsOf(sum.fetch(), expected.sum)) << "sum";
  EXPECT_TRUE(hasBitsOf(mean.fetch(), expected.mean)) << "mean";
  EXPECT_TRUE(hasBitsOf(most.fetch(), expected.most)) << "max";
  EXPECT_TRUE(hasBitsOf(first.fetch(), expected.first)) << "first";
  EXPECT_TRUE(hasBitsOf(last.fetch(), expected.last)) << "last";
  EXPECT_EQ(total.fetch(), expected.total);
  EXPECT_EQ(greatest.fetch(), expected.greatest);
}

void expectPooledLists(const Lengths &lengths, const Changes &change = {}, int64_t more = 3) {
  const auto shown = std::min<int64_t>(8, static_cast<int64_t>(lengths.size()));
  SCOPED_TRACE(::testing::PrintToString(Lengths(lengths.begin(), lengths.begin() + shown)));
  std::mt19937_64 random(3);
  auto above = cuda::test::makeRoot(static_cast<int64_t>(lengths.size()), random);
  auto lists = cuda::test::makeLists(*above, lengths, random);
  expectPooled<1>(*above, *lists, *lists, lists->offsets, change, more);
}

TEST(Pools, ListsOfEverySize) {
  for (const Lengths &lengths : {Lengths{},
                                 {0},
                                 {1},
                                 {255},
                                 {256},
                                 {257},
                                 {1000},
                                 {100000},
                                 {0, 1, 255, 256, 257, 0, 1000, 3},
                                 {257, 257, 257},
                                 {512, 513, 511, 300},
                                 {3, 100000, 0, 256, 700}})
    expectPooledLists(lengths);
  for (const Lengths &lengths : cuda::test::listShapes())
    expectPooledLists(lengths);
}

TEST(Pools, OneListAndNoRoomForAnother) {
  for (int64_t size : {0, 1, 300})
    expectPooledLists({size}, {}, 0);
}

TEST(Pools, PiecesThatBeginTogether) {
  // Lists that end and begin at every place within 256 leaves.
  for (int64_t before : {0, 1, 100, 254, 255, 256, 257})
    for (int64_t size : {257, 300, 511, 512, 513, 768, 769})
      expectPooledLists({before, size, size + 1, 2, size, 256, 257});
}

TEST(Pools, ANaNIsTheGreatestWhereItIsFirst) {
  for (int64_t first : {0, 256})
    expectPooledLists({1000, 3, 600}, [=](int64_t leaf, float &value) {
      if (leaf % 256 == first % 256 && leaf >= first)
        value = __builtin_nanf("");
    });
}

TEST(Pools, TheFirstOfEqualValuesIsTheGreatest) {
  for (int64_t sign : {0, 1}) // zeros of one sign in the first piece, of the other behind it
    expectPooledLists({500, 12, 500}, [=](int64_t leaf, float &value) {
      value = leaf / 256 % 2 == sign ? 0.0f : -0.0f;
    });
  expectPooledLists({700, 3, 600},
                    [](int64_t, float &value) { value = -std::numeric_limits<float>::infinity(); });
}

/// More lists than threads look at: in the emulator, four blocks of 128.
TEST(Pools, LongListsBehindManyShortOnes) {
  Lengths lengths(1200, 0);
  lengths.insert(lengths.end(), {300, 257, 2});
  expectPooledLists(lengths);
}

/// Results wider than a warp, from parts that lie where pools.h says.
TEST(Pools, WideResultsOfParts) {
  constexpr int kWide = 70, kWords = 72;
  std::mt19937_64 random(5);
  auto above = cuda::test::makeRoot(3, random);
  auto lists = cuda::test::makeLists(*above, {700, 3, 300}, random);
  DeviceDomain onAbove(*above), onLists(*lists, &onAbove);
  above->view.device = onAbove.get();
  lists->view.device = onLists.get();
  const Floats parts = cuda::test::randomFloats(10 * kWords, random);
  Copy<float> there(parts), sum(Floats(3 * kWide, 7));
  void *results[] = {sum.data()};
  const PoolShape shape{0, 1, kWords, 1, {{0, kWide, 1, PoolOf::sum, false}}};
  const PooledLists pooled(&above->view, &lists->view, shape, results, there.data());
  poolParts(cuda::test::testStream(), shape, &pooled, 1);
  Floats expected(3 * kWide, 7);
  const std::vector<int> slots[] = {{1, 2, 4}, {}, {5, 6}};
  for (size_t list : {0, 2})
    for (size_t c = 0; c < kWide; ++c) {
      expected[list * kWide + c] = 0;
      for (int slot : slots[list])
        expected[list * kWide + c] += parts[static_cast<size_t>(slot * kWords) + 1 + c];
    }
  EXPECT_EQ(sum.fetch(), expected);
}

/// Results of one column, of several, and of more than a launch has.
TEST(Pools, PartsOfManyColumns) {
  constexpr int kWords = 4;
  std::mt19937_64 random(6);
  auto above = cuda::test::makeRoot(2, random);
  auto lists = cuda::test::makeLists(*above, {3, 700}, random);
  DeviceDomain onAbove(*above), onLists(*lists, &onAbove);
  above->view.device = onAbove.get();
  lists->view.device = onLists.get();
  const PoolShape shape{0, 1, kWords, 1, {{0, 1, 1, PoolOf::sum, false}}};
  for (int count : {1, 2, kPooledColumns, kPooledColumns + 1, 2 * kPooledColumns + 3}) {
    std::vector<Floats> values;
    std::vector<Copy<float>> parts, sums;
    std::vector<PooledLists> pooled;
    for (int c = 0; c < count; ++c) {
      values.push_back(cuda::test::randomFloats(10 * kWords, random));
      parts.emplace_back(values.back());
      sums.emplace_back(Floats(2, 7));
      void *results[] = {sums.back().data()};
      pooled.emplace_back(&above->view, &lists->view, shape, results, parts.back().data());
    }
    poolParts(cuda::test::testStream(), shape, pooled.data(), count);
    for (size_t c = 0; c < sums.size(); ++c) {
      const Floats &part = values[c]; // the pieces of leaves 3 to 702 are in slots 1, 2 and 4
      const float sum = part[kWords + 1] + part[2 * kWords + 1] + part[4 * kWords + 1];
      EXPECT_EQ(sums[c].fetch(), (Floats{7, sum})) << "column " << c << " of " << count;
    }
  }
}

TEST(Pools, RandomLists) {
  std::mt19937_64 random(17);
  for (int run = 0; run < 6; ++run) {
    Lengths lengths;
    for (int64_t list = 0; list < 60; ++list)
      lengths.push_back(static_cast<int64_t>(random() % 4 == 0 ? random() % 900 : random() % 260));
    expectPooledLists(lengths);
  }
}

TEST(Pools, ListsOfLists) {
  std::mt19937_64 random(29);
  auto above = cuda::test::makeRoot(6, random);
  auto lists = cuda::test::makeLists(*above, {3, 0, 120, 1, 40, 2}, random);
  Lengths lengths;
  for (int64_t list = 0; list < lists->view.count; ++list)
    lengths.push_back(static_cast<int64_t>(list == 123 ? 700 : random() % 9));
  auto leaves = cuda::test::makeLists(*lists, lengths, random);
  Integers begins;
  for (int64_t offset : lists->offsets)
    begins.push_back(leaves->offsets[static_cast<size_t>(offset)]);
  expectPooled<2>(*above, *lists, *leaves, begins);
}

/// No list of either domain has several pieces, and what is below a row has.
TEST(Pools, ShortListsOfShortLists) {
  std::mt19937_64 random(31);
  auto above = cuda::test::makeRoot(5, random);
  auto lists = cuda::test::makeLists(*above, {4, 4, 3, 0, 4}, random);
  Lengths lengths;
  for (int64_t list = 0; list < lists->view.count; ++list)
    lengths.push_back(80 + static_cast<int64_t>(random() % 20));
  auto leaves = cuda::test::makeLists(*lists, lengths, random);
  Integers begins;
  for (int64_t offset : lists->offsets)
    begins.push_back(leaves->offsets[static_cast<size_t>(offset)]);
  expectPooled<2>(*above, *lists, *leaves, begins);
}

TEST(Pools, ShortListsHaveNoSlots) {
  std::mt19937_64 random(3);
  auto above = cuda::test::makeRoot(3, random);
  auto lists = cuda::test::makeLists(*above, {256, 0, 17}, random);
  EXPECT_EQ(slotsOf(&above->view, &lists->view), 0);
  lists->view.max_length = 257;
  EXPECT_GT(slotsOf(&above->view, &lists->view), 0);
}

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// As emitted bodies are, with one lane per list: the sums of x.
__device__ void sumLists(const genrec_step *step, void *const *pointers, int64_t begin,
                         int64_t end) {
  const auto *x = columnPointer<const float>(pointers, 0);
  auto *sum = columnPointer<float>(pointers, 1), *parts = columnPointer<float>(pointers, 2);
  const genrec_domain *leaves = columnDomain(step, pointers, 3);
  const int64_t count = columnDomain(step, pointers, 4)->count;
  for (int64_t number = begin + rowOfBlock<1>(); number < end; number += blockStep<1>()) {
    const PoolUnit unit = poolUnit<1>(number, count, leaves, parts);
    if (unit.row < 0)
      continue;
    float value = 0;
    for (int64_t leaf = unit.begin; leaf < unit.end; ++leaf)
      value += x[leaf * kWidth];
    *pooledPlace<1, 4, 0>(sum, parts, unit) = value;
  }
}

template <int Room>
__global__ void __launch_bounds__(256)
    sumColumns(const genrec_step *step, __grid_constant__ const Columns<Room, 5 * Room> columns) {
  runColumns<sumLists>(step, columns);
}

constexpr PoolShape kSums = {0, 1, 4, 1, {{1, 1, 0, PoolOf::sum, false}}};
constexpr int kKinds = 5;
/// Column after column of the same domains.
template <int Count> struct Shapes {
  ColumnShape of[Count];

  constexpr Shapes() {
    for (int c = 0; c < Count; ++c)
      of[c] = {0, 256, 5, c % kKinds == 3 ? kKinds + 1 : 0, static_cast<int16_t>(c % kKinds + 1),
               2};
  }
};

/// Domain 0 has the lists of domains 1 to 5, but that those of domain 4 are of domain 6, which is
/// empty. Launches have up to Room columns.
template <int Room, int Count = kKinds> void expectColumns() {
  static constexpr Shapes<Count> shapes;
  std::mt19937_64 random(41);
  constexpr int kLists = 512; // as many as two blocks have: pieces have a third one
  Lengths lengths[kKinds];
  for (Lengths &some : lengths)
    for (int list = 0; list < kLists; ++list)
      some.push_back(static_cast<int64_t>(random() % 7));
  for (int64_t &length : lengths[0])
    length %= 2; // shorter than a piece all together
  lengths[1][3] = 900;
  lengths[2][0] = lengths[2][kLists - 1] = 257;
  lengths[3].clear();
  auto root = cuda::test::makeRoot(kLists, random), none = cuda::test::makeRoot(0, random);
  DeviceDomain onRoot(*root), onNone(*none);
  std::vector<std::unique_ptr<HostDomain>> lists;
  std::vector<std::unique_ptr<DeviceDomain>> onDevice;
  std::vector<genrec_domain> domains(kKinds + 2), there;
  domains[0] = root->view;
  domains[kKinds + 1] = none->view;
  there.push_back(onRoot.fetch());
  for (int c = 0; c < kKinds; ++c) {
    lists.push_back(cuda::test::makeLists(c == 3 ? *none : *root, lengths[c], random));
    onDevice.push_back(std::make_unique<DeviceDomain>(*lists.back(), c == 3 ? &onNone : &onRoot,
                                                      lists.back()->view.count + 300));
    there.push_back(onDevice.back()->fetch());
    domains[static_cast<size_t>(c) + 1] = lists.back()->view;
    domains[static_cast<size_t>(c) + 1].capacity += 300;
    domains[static_cast<size_t>(c) + 1].parent_domain = &domains[c == 3 ? kKinds + 1 : 0];
  }
  there.push_back(onNone.fetch());
  Copy<genrec_domain> copies(there);
  for (size_t d = 0; d < domains.size(); ++d) {
    domains[d].device = copies.data() + d;
    domains[d].count = -1; // the host does not know
  }
  genrec_step step{}, stepThere{};
  stepThere.domains = copies.data();
  Copy<genrec_step> deviceStep(std::vector<genrec_step>{stepThere});
  step.domains = domains.data();
  step.stream = cuda::test::testStream();
  step.device = deviceStep.data();
  std::vector<Copy<float>> x, sums;
  std::vector<Floats> expected;
  std::vector<void *> pointers;
  for (int c = 0; c < Count; ++c) {
    const Lengths &offsets = lists[static_cast<size_t>(c % kKinds)]->offsets;
    const Floats values = cuda::test::fractions(offsets.back() * kWidth, random);
    expected.emplace_back();
    for (size_t list = 0; list + 1 < offsets.size(); ++list)
      expected.back().push_back(addedUp(values, offsets[list], offsets[list + 1], 0));
    x.emplace_back(values);
    sums.emplace_back(Floats(expected.back().size(), 7));
    pointers.insert(pointers.end(),
                    {x.back().data(), sums.back().data(), nullptr,
                     domainNumber(shapes.of[c].leaves), domainNumber(shapes.of[c].domain)});
  }
  const PoolColumns<Count> taken(&step, shapes.of, kSums);
  cuda::test::Scratch parts(taken.totalFloats * 4);
  queuePoolColumns(&step, shapes.of, sumColumns<Room>, pointers.data(), kSums, 0, taken,
                   reinterpret_cast<float *>(parts.data()));
  for (size_t c = 0; c < Count; ++c)
    EXPECT_TRUE(hasBitsOf(sums[c].fetch(), expected[c])) << "column " << c;
}

TEST(Pools, Columns) { expectColumns<kKinds>(); }
TEST(Pools, ColumnsOfSeveralLaunches) {
  expectColumns<2>();
  expectColumns<1>();
}
/// Two of five have parts: more of them than poolParts takes at a time.
TEST(Pools, ColumnsWhosePartsAreSeveralLaunches) {
  expectColumns<100, 5 * kPooledColumns / 2 + 5>();
  expectColumns<100, 5 * kPooledColumns / 2 + 2>(); // one is left for the second launch
}

} // namespace
} // namespace genrec::rt::kernels
