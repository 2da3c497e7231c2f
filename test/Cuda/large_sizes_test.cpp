//===- large_sizes_test.cpp - Sizes beyond 32 bits and beyond grids -------===//
//
// Calls on matrices whose rows lie 2^31 + 64 elements apart give what they give on rows that are
// near. Places of elements then fit neither into 32 bits with a sign nor, from the third row on,
// without one. Only the rows are there: what is read or written between them is accused. And blocks
// of a grid in y and z do not grow with the rows of a batch or a catalogue. On the host only.
//
//===----------------------------------------------------------------------===//

#include "domain_copies.h"
#include "note_copy.h"
#include "scratch.h"

#include "genrec_rt/kernels/cuda/attention/attention.h"
#include "genrec_rt/kernels/cuda/cross_attention.h"
#include "genrec_rt/kernels/cuda/distinct.h"
#include "genrec_rt/kernels/cuda/in_batch_softmax.h"
#include "genrec_rt/kernels/cuda/interaction.h"
#include "genrec_rt/kernels/cuda/item_scores.h"
#include "genrec_rt/kernels/cuda/library_products.h"
#include "genrec_rt/kernels/cuda/list_rows.h"
#include "genrec_rt/kernels/cuda/part_copies.h"
#include "genrec_rt/kernels/cuda/row_checks.h"
#include "genrec_rt/kernels/cuda/rows.h"
#include "genrec_rt/kernels/cuda/sized_products.h"

#include <gtest/gtest.h>

#include <array>

namespace genrec::rt::cuda::test {
namespace {

using Floats = std::vector<float>;
constexpr int64_t kNear = 1024, kFar = (int64_t(1) << 31) + 64;

/// A matrix on the device whose rows lie `step` floats apart.
class Spread {
public:
  Spread(int64_t rows, int64_t columns, int64_t step) : step(step) {
    simt::options().addresses = simt::Addresses::ascending;
    for (int64_t r = 0; r < rows; ++r) {
      if (r > 0)
        simt::placeNext(data() + r * step);
      Floats row;
      for (int64_t c = 0; c < columns; ++c)
        row.push_back(static_cast<float>((r * 7 + c * 3 + columns) % 11) / 8 - 0.5f);
      memory.push_back(Copy<float>(row));
      EXPECT_EQ(memory.back().data(), data() + r * step);
    }
  }
  float *data() { return memory.front().data(); }
  RowsIn in() { return rowsIn(data(), step); }
  void addTo(Floats &all) const {
    for (const Copy<float> &row : memory)
      for (float value : row.fetch())
        all.push_back(value);
  }
  const int64_t step;

private:
  std::vector<Copy<float>> memory;
};

void addTo(Floats &all, const Copy<float> &values) {
  for (float value : values.fetch())
    all.push_back(value);
}

/// What `call(step)` leaves, with rows that are near and far.
template <class Call> void expectSame(const Call &call) {
  const Floats near = call(kNear), far = call(kFar);
  EXPECT_FALSE(near.empty());
  EXPECT_EQ(near, far);
}

std::mt19937_64 random(5);

TEST(LargeSizes, GatherScatterPool) {
  for (int64_t dim : {4, 5}) // in words of 16 bytes, and not
    expectSame([&](int64_t step) {
      Spread table(3, dim, kNear), gathered(3, dim, step), pooled(3, dim, step), to(3, dim, kNear);
      auto places = [](Spread &rows) {
        return std::vector<float *>{rows.data() + 2 * kNear, rows.data(), rows.data() + kNear};
      };
      Copy<float *> from(places(table)), back(places(to));
      gatherRows<float>(from.data(), 3, dim, gathered.data(), step, testStream());
      scatterRows<float>(back.data(), 3, dim, gathered.data(), step, testStream());
      Copy<uint32_t> inverse({0, 1, 2, 1});
      Copy<int64_t> offsets({0, 2, 3, 4});
      poolRows<float>(from.data(), inverse.data(), offsets.data(), 3, dim, Pool::mean,
                      pooled.data(), step, testStream());
      Floats all;
      gathered.addTo(all), pooled.addTo(all), to.addTo(all);
      return all;
    });
}

/// Rows, each `step` floats behind the last, times a weight and back, as both kinds of products
/// take them.
struct FarProduct {
  FarProduct(const genrec_domain *rows, int64_t count, int64_t in, int64_t out, int64_t step)
      : x(count, in, step), y(count, out, step), pre(count, out, step), residual(count, out, step),
        weight(Floats(in * out, 0.25f)), gradient{Floats(in * out)} {
    product.rows = sums.rows = rows, product.capacity = sums.capacity = count;
    product.k = sums.k = in, product.n = sums.n = out;
    product.x = sums.x = x.data(), product.ldX = sums.ldX = step, product.weight = weight.data();
    product.residual = residual.data(), product.ldResidual = step;
    product.pre = pre.data(), product.ldPre = step, product.y = y.data(), product.ldY = step;
    sums.y = y.data(), sums.ldY = step, sums.out = gradient.data();
  }
  Floats results() {
    Floats all;
    y.addTo(all), pre.addTo(all), addTo(all, gradient);
    return all;
  }

  Spread x, y, pre, residual;
  Copy<float> weight, gradient;
  LinearProduct product;
  RowContraction sums;
};

TEST(LargeSizes, ProductsOfRows) {
  constexpr int64_t kIn = 5, kOut = 3;
  auto host = makeRoot(3, random);
  DeviceDomain rows(*host);
  expectSame([&](int64_t step) {
    FarProduct far(rows.get(), 3, kIn, kOut, step);
    multiply(far.product, testStream());
    Scratch scratch(contractionScratchBytes(3, kIn, kOut));
    contractRows(far.sums, scratch.data(), testStream());
    return far.results();
  });
}

/// Of the library, whose sums are finished by a kernel of ours.
TEST(LargeSizes, ProductsOfTheLibrary) {
  constexpr int64_t kSize = 32;
  auto host = makeRoot(2, random);
  DeviceDomain rows(*host);
  expectSame([&](int64_t step) {
    FarProduct far(rows.get(), 2, kSize, kSize, step);
    far.product.activation = Activation::silu;
    EXPECT_TRUE(libraryTakes(far.product));
    Scratch scratch(fastestScratchBytes(far.product));
    multiplyFastest(far.product, scratch.data(), testStream());
    EXPECT_TRUE(libraryTakes(far.sums));
    Scratch more(fastestScratchBytes(far.sums));
    contractFastest(far.sums, more.data(), testStream());
    return far.results();
  });
}

TEST(LargeSizes, CopiesOfParts) {
  auto host = makeRoot(2, random);
  DeviceDomain rows(*host);
  for (int64_t size : {4, 3}) // in words of 16 bytes, and not
    expectSame([&](int64_t step) {
      Spread from(2, 2 * size, step), to(2, 2 * size, step);
      copyParts(PartCopy<float>{rows.get(), 2, 2, from.data(), step, size, to.data(), step, size},
                testStream());
      Floats all;
      to.addTo(all);
      return all;
    });
}

TEST(LargeSizes, ProductsPerDistinctRow) {
  constexpr int64_t kIn = 4, kOut = 3;
  auto host = makeRoot(2, random);
  DeviceDomain rows(*host);
  genrec_domain view = host->view;
  view.device = rows.get(), view.capacity = 2;
  // One lookup, which found two rows, the last one first.
  std::vector<int64_t> found{0, 2, 2, 1};
  Copy<int64_t> memory(found);
  const int64_t columns[] = {0};
  expectSame([&](int64_t step) {
    Spread values(2, kIn, step), y(2, kOut, step), gradient(2, kOut, step);
    Copy<float> weight(Floats(kIn * kOut, 0.25f)), dValues{Floats(2 * kIn)},
        dWeight{Floats(kIn * kOut)};
    const std::array groups{DistinctGroup{1, kIn, values.data(), step}};
    const DistinctProduct product{
        {1, &view, memory.data()}, groups, kOut, weight.data(), columns};
    float *const dValuesOfGroups[] = {dValues.data()};
    Scratch scratch(distinctProductScratchBytes(product)),
        backward(distinctGradientScratchBytes(product));
    multiplyDistinct(product, y.data(), step, scratch.data(), testStream());
    multiplyDistinctGradient(product, {gradient.data(), step, dValuesOfGroups, dWeight.data()},
                             backward.data(), testStream());
    Floats all;
    y.addTo(all), addTo(all, dValues), addTo(all, dWeight);
    return all;
  });
}

TEST(LargeSizes, PairsOfVectors) {
  constexpr int kCount = 3, kSize = 2, kPairs = 3;
  auto host = makeRoot(2, random);
  DeviceDomain rows(*host);
  genrec_domain view = host->view;
  view.device = rows.get(), view.capacity = 2;
  genrec_step step{};
  step.stream = testStream();
  expectSame([&](int64_t distance) {
    Spread x(2, kCount * kSize, distance), gradient(2, kPairs, distance);
    Copy<float> products{Floats(2 * kPairs)}, dx{Floats(2 * kCount * kSize)};
    kernels::dotInteraction<kCount, kSize, false>(&step, &view, x.data(), distance,
                                                  products.data());
    kernels::dotInteractionGradient<kCount, kSize, false>(&step, &view, x.data(), distance,
                                                          gradient.data(), distance, dx.data());
    Floats all;
    addTo(all, products), addTo(all, dx);
    return all;
  });
}

TEST(LargeSizes, InBatchSoftmax) {
  auto host = makeRoot(2, random);
  DeviceDomain rows(*host);
  Copy<int64_t> ids({1, 2});
  Copy<float> dLoss({1, 2});
  expectSame([&](int64_t step) {
    Spread query(2, 4, step), item(2, 4, step);
    InBatch a;
    a.rows = rows.get(), a.capacity = 2, a.size = 4, a.id = ids.data();
    a.query = query.data(), a.ldQuery = step, a.item = item.data(), a.ldItem = step;
    Copy<float> loss{Floats(2)}, kept{Floats(4)}, dQuery{Floats(8)}, dItem{Floats(8)};
    inBatchForward(a, loss.data(), kept.data(), testStream());
    inBatchBackward(a, kept.data(), dLoss.data(), dQuery.data(), dItem.data(), testStream());
    Floats all;
    addTo(all, loss), addTo(all, dQuery), addTo(all, dItem);
    return all;
  });
}

TEST(LargeSizes, SizedProducts) {
  expectSame([&](int64_t step) {
    Floats all;
    Spread left(3, 3, step), right(3, 3, step), onto(3, 3, step), result(3, 3, step);
    for (bool leftTransposed : {false, true})
      for (bool rightTransposed : {false, true}) {
        SizedProduct p;
        p.m = {3}, p.k = {3}, p.n = {3};
        p.left = left.data(), p.ldLeft = step, p.leftTransposed = leftTransposed;
        p.right = right.data(), p.ldRight = step, p.rightTransposed = rightTransposed;
        p.onto = onto.data(), p.ldOnto = step, p.result = result.data(), p.ldResult = step;
        multiply(p, nullptr, testStream());
        result.addTo(all);
      }
    return all;
  });
}

TEST(LargeSizes, RowsOfLists) {
  constexpr int64_t kWidth = 3;
  auto users = makeRoot(2, random);
  auto lists = makeLists(*users, {2, 1}, random);
  DeviceDomain usersThere(*users), there(*lists, &usersThere);
  expectSame([&](int64_t step) {
    Spread x(3, kWidth, step), wide(2, 2 * kWidth, step), gradient(2, kWidth, step);
    Copy<float> out{Floats(3 * kWidth)}, tiled{Floats(2 * 2 * kWidth)};
    Copy<uint8_t> valid(std::vector<uint8_t>(3));
    Floats all;
    const RowsOut to = rowsOut(out.data(), 3, kWidth);
    shiftListRows(there.get(), 1, x.in(), to, reinterpret_cast<bool *>(valid.data()), testStream());
    addTo(all, out);
    tileRows(there.get(), 2, false, x.in(), rowsOut(tiled.data(), 2, 2 * kWidth), testStream());
    addTo(all, tiled);
    tileRowsGradient(there.get(), 2, false, wide.in(), to, testStream());
    addTo(all, out);
    deriveRowsGradient(there.get(), there.get(), true, x.in(), to, testStream());
    addTo(all, out);
    lengthenRows(there.get(), there.get(), true, x.in(), to, testStream());
    addTo(all, out);
    for (ListChoice choice : {ListChoice::max, ListChoice::last}) {
      listPoolGradient(choice, there.get(), 2, kWidth, x.data(), step, gradient.data(), step,
                       out.data(), 3, testStream());
      addTo(all, out);
    }
    return all;
  });
}

TEST(LargeSizes, SumsOfPairs) {
  auto users = makeRoot(1, random);
  auto first = makeLists(*users, {1}, random), second = makeLists(*users, {2}, random);
  auto pairs = makeLists(*first, {2}, random);
  DeviceDomain usersThere(*users), firstThere(*first, &usersThere),
      secondThere(*second, &usersThere), there(*pairs, &firstThere);
  expectSame([&](int64_t step) {
    Spread x(2, 3, step);
    Copy<float> out{Floats(6)};
    addPairs(secondThere.get(), there.get(), 3, x.data(), step, out.data(), 2, testStream());
    Floats all;
    addTo(all, out);
    return all;
  });
}

TEST(LargeSizes, RankedItems) {
  auto queries = makeRoot(3, random), items = makeRoot(3, random);
  DeviceDomain queriesThere(*queries), itemsThere(*items);
  expectSame([&](int64_t step) {
    Spread query(3, 4, step), item(3, 4, step), gradient(3, 3, step);
    RankedItems r;
    r.queries = queriesThere.get(), r.queryCapacity = 3, r.query = query.data(), r.ldQuery = step;
    r.items = itemsThere.get(), r.itemCapacity = 3, r.item = item.data(), r.ldItem = step,
    r.dim = 4;
    Copy<int64_t> index(std::vector<int64_t>(6)), targets({2, 0, 1}), ranks({9, 9, 9});
    Copy<float> score{Floats(6)}, scores{Floats(9)}, dQuery{Floats(12)}, dItem{Floats(12)};
    const ScoreGradients gradients{gradient.data(), step,          nullptr,
                                   nullptr,         dQuery.data(), dItem.data()};
    Scratch scratch(topItemsScratchBytes(r, 2)), ranking(rankTargetsScratchBytes(r)),
        scoring(scoresScratchBytes(r, {0, 3}, scores.data())),
        backward(scoreGradientsScratchBytes(r, {0, 3}, gradients));
    topItems(r, 2, index.data(), score.data(), scratch.data(), testStream());
    rankTargets(r, targets.data(), ranks.data(), ranking.data(), testStream());
    scoreItems(r, {0, 3}, scores.data(), nullptr, scoring.data(), testStream());
    scoreItemsGradient(r, {0, 3}, gradients, backward.data(), testStream());
    Floats all;
    addTo(all, score), addTo(all, scores), addTo(all, dQuery), addTo(all, dItem);
    for (int64_t rank : ranks.fetch())
      all.push_back(static_cast<float>(rank));
    for (int64_t picked : index.fetch())
      all.push_back(static_cast<float>(picked));
    return all;
  });
}

TEST(LargeSizes, CrossAttention) {
  auto users = makeRoot(1, random);
  auto queries = makeLists(*users, {3}, random), keys = makeLists(*users, {3}, random);
  DeviceDomain usersThere(*users), queriesThere(*queries, &usersThere),
      keysThere(*keys, &usersThere);
  expectSame([&](int64_t step) {
    Spread q(3, 8, step), k(3, 8, step), v(3, 8, step), dOut(3, 8, step);
    CrossAttention a;
    a.queries = queriesThere.get(), a.queryCapacity = 3, a.keys = keysThere.get(),
    a.keyCapacity = 3;
    a.q = q.data(), a.ldQ = step, a.k = k.data(), a.ldK = step, a.v = v.data(), a.ldV = step;
    a.scale = 0.5f;
    Copy<float> out{Floats(24)}, dQ{Floats(24)}, dK{Floats(24)}, dV{Floats(24)};
    Scratch scratch(crossAttentionBackwardBytes<2>(a));
    crossAttentionForward<2, 4, 4>(a, out.data(), testStream());
    crossAttentionBackward<2, 4, 4>(a, {dOut.data(), step, dQ.data(), dK.data(), dV.data()},
                                    scratch.data(), testStream());
    Floats all;
    addTo(all, out), addTo(all, dQ), addTo(all, dK), addTo(all, dV);
    return all;
  });
}

/// A block for each tile, and a tile for each row or more.
TEST(LargeSizes, AttentionHasABlockForEachTileOrSaysThatItHasNot) {
  constexpr int kTile = 64;
  AttentionArgs<float> args;
  args.parents = 1 << 20, args.heads = 8, args.maxLength = 255 * kTile;
  EXPECT_EQ(detail::gridOf(args, kTile).x, 8U * 255U << 20);
  args.maxLength += 1;
  try {
    (void)detail::gridOf(args, kTile);
    ADD_FAILURE() << "2^31 blocks";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(),
                 "attention of 8 heads over 1048576 lists of up to 16321 entries takes 2147483648 "
                 "blocks, and a launch has 2147483647 at most");
  }
}

/// Grids of one block in y and z.
class LargeGrids : public testing::Test {
protected:
  void SetUp() override { simt::options().mostBlocksAcross = 1; }
  void TearDown() override { simt::options() = {}; }
};

TEST_F(LargeGrids, SizedProducts) {
  Copy<float> left(Floats(130, 2.0f)), right(Floats(70, 3.0f)), result{Floats(130 * 70)};
  SizedProduct p;
  p.m = {130}, p.k = {1}, p.n = {70};
  p.left = left.data(), p.ldLeft = 1, p.right = right.data(), p.ldRight = 70;
  p.result = result.data(), p.ldResult = 70;
  multiply(p, nullptr, testStream());
  EXPECT_EQ(result.fetch(), Floats(130 * 70, 6.0f));
}

TEST_F(LargeGrids, RanksOfTargets) {
  constexpr int64_t kQueries = 130, kItems = 200;
  auto queries = makeRoot(kQueries, random), items = makeRoot(kItems, random);
  DeviceDomain queriesThere(*queries), itemsThere(*items);
  Floats scores;
  std::vector<int64_t> wanted, expected;
  for (int64_t item = 0; item < kItems; ++item)
    scores.push_back(static_cast<float>(item));
  for (int64_t q = 0; q < kQueries; ++q) {
    wanted.push_back(q);
    expected.push_back(kItems - q);
  }
  Copy<float> query(Floats(kQueries, 1.0f)), item(scores);
  Copy<int64_t> targets(wanted), ranks(wanted);
  RankedItems r;
  r.queries = queriesThere.get(), r.queryCapacity = kQueries, r.query = query.data(), r.ldQuery = 1;
  r.items = itemsThere.get(), r.itemCapacity = kItems, r.item = item.data(), r.ldItem = 1,
  r.dim = 1;
  Scratch scratch(rankTargetsScratchBytes(r));
  rankTargets(r, targets.data(), ranks.data(), scratch.data(), testStream());
  EXPECT_EQ(ranks.fetch(), expected);
}

TEST(LargeSizes, Checks) {
  auto host = makeRoot(3, random);
  DeviceDomain rows(*host);
  Spread values(3, 4, kFar);
  NoteCopy note;
  checkFinite({values.data(), rows.get(), 3, 4, kFar}, note.data(), testStream());
  EXPECT_EQ(note.row(), -1);
}

} // namespace
} // namespace genrec::rt::cuda::test
