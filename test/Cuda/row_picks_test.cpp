//===- row_picks_test.cpp - Rows of a catalogue picked, drawn, resolved ---===//
//
// Against the CPU's calls, to the bit.
//
//===----------------------------------------------------------------------===//

#include "domain_copies.h"
#include "note_copy.h"

#include "embedding/catalogue_index.h"
#include "genrec_rt/kernels/cpu/picked_rows.h"
#include "genrec_rt/kernels/cuda/row_picks.h"

#include <gtest/gtest.h>

namespace genrec::rt::cuda::test {
namespace {

using Host = std::unique_ptr<HostDomain>;

/// Rows that buffers have beyond those in use.
constexpr int64_t kSpareRows = 37;

/// Two lists of numbers, one of them of rows, picked from `rows` rows, where `spare` more would
/// fit.
void expectPicked(int64_t rows, int64_t users, int64_t width, int64_t once, uint64_t seed,
                  int64_t spare = 100) {
  std::mt19937_64 random(seed);
  Host source = makeRoot(rows, random), domain = makeRoot(users, random);
  DeviceDomain sourceThere(*source), domainThere(*domain);
  auto numbers = [&](int64_t count) {
    std::vector<int64_t> result(static_cast<size_t>(count));
    for (int64_t &number : result) // without rows there are numbers, too
      number =
          random() % 8 == 0
              ? -1
              : static_cast<int64_t>(random() % static_cast<uint64_t>(std::max<int64_t>(rows, 1)));
    return result;
  };
  const auto ofRows = numbers(users * width), alone = numbers(once);
  const int64_t capacity = static_cast<int64_t>(ofRows.size() + alone.size()) + kSpareRows;
  std::vector<int64_t> places(ofRows.size() + static_cast<size_t>(kSpareRows * width)),
      placesAlone(alone.size()), picked(static_cast<size_t>(capacity));
  std::vector<uint64_t> identity(picked.size()), memory(static_cast<size_t>(rows / 64 + 1) * 2);
  genrec_domain expected = {};
  const int64_t *lists[] = {ofRows.data(), alone.data()};
  const int64_t counts[] = {users * width, once};
  int64_t *const to[] = {places.data(), placesAlone.data()};
  genrec_step step = {};
  kernels::pickRows(&step, &source->view, &expected, 2, lists, counts, to, picked.data(),
                    identity.data(), memory.data());
  Copy<int64_t> ofRowsThere(ofRows), aloneThere(alone),
      placesThere(std::vector<int64_t>(places.size(), 9)),
      placesAloneThere(std::vector<int64_t>(alone.size(), 9)),
      pickedThere(std::vector<int64_t>(picked.size()));
  Copy<uint64_t> identityThere(std::vector<uint64_t>(picked.size()));
  Copy<char> memoryThere(
      std::vector<char>(static_cast<size_t>(pickMemoryBytes(rows + spare)), 0x55));
  DeviceDomain made(0, capacity);
  const PickedNumbers parts[] = {
      {ofRowsThere.data(), placesThere.data(), domainThere.get(), users + kSpareRows, width},
      {aloneThere.data(), placesAloneThere.data(), nullptr, 0, once}};
  pickNumberedRows(sourceThere.get(), rows + spare, 2, parts,
                   {made.get(), pickedThere.data(), identityThere.data(), memoryThere.data()},
                   testStream());
  const genrec_domain got = made.fetch();
  EXPECT_EQ(got.count, expected.count);
  EXPECT_EQ(got.max_length, expected.max_length);
  EXPECT_EQ(got.identity, identityThere.data());
  EXPECT_EQ(pickedThere.fetch(), picked);
  EXPECT_EQ(identityThere.fetch(), identity);
  EXPECT_EQ(placesThere.fetch(), places);
  EXPECT_EQ(placesAloneThere.fetch(), placesAlone);
}

TEST(RowPicks, Picked) {
  expectPicked(1000, 30, 8, 20, 1);
  expectPicked(100, 0, 8, 0, 2);
  expectPicked(64, 50, 40, 3, 3);
  expectPicked(0, 4, 2, 3, 4);
  expectPicked(0, 4, 2, 3, 4, /*spare=*/0);
  expectPicked(300000, 20, 16, 5, 5); // more words than a block adds up
}

TEST(RowPicks, Drawn) {
  std::mt19937_64 random(3);
  Host source = makeRoot(1000, random), domain = makeRoot(40, random);
  DeviceDomain sourceThere(*source), domainThere(*domain);
  genrec_step step = {};
  step.seed = 12, step.step = 34;
  std::vector<int64_t> expected(static_cast<size_t>(40 + kSpareRows) * 70), once(130);
  kernels::drawRowNumbers(&step, &source->view, &domain->view, 5, 70, expected.data());
  kernels::drawRowNumbers(&step, &source->view, nullptr, 6, 130, once.data());
  Copy<genrec_step> stepThere(std::vector{step});
  Copy<int64_t> got(std::vector<int64_t>(expected.size(), 9)), gotOnce(std::vector<int64_t>(130));
  drawNumbers(sourceThere.get(), domainThere.get(), 40 + kSpareRows, {stepThere.data(), 5}, 70,
              got.data(), testStream());
  drawNumbers(sourceThere.get(), nullptr, 0, {stepThere.data(), 6}, 130, gotOnce.data(),
              testStream());
  EXPECT_EQ(got.fetch(), expected);
  EXPECT_EQ(gotOnce.fetch(), once);
}

TEST(RowPicks, Resolved) {
  std::mt19937_64 random(8);
  std::vector<int64_t> catalogue(500);
  for (int64_t &id : catalogue)
    id = static_cast<int64_t>(random() >> 1);
  const CatalogueIndex index(catalogue.data(), 500);
  const CatalogueSlots view = index.view();
  Copy<CatalogueSlot> slots(std::vector<CatalogueSlot>(view.slots, view.slots + view.count));
  Host domain = makeRoot(300, random);
  DeviceDomain domainThere(*domain);
  for (bool someMissing : {false, true})
    for (bool someNull : {false, true}) {
      std::vector<int64_t> ids(300), expected(300 + kSpareRows, -1);
      std::vector<uint8_t> valid(300, 1);
      int64_t firstMissing = -1;
      for (size_t row = 0; row < ids.size(); ++row) {
        ids[row] = someMissing && random() % 9 == 0 ? -5 : catalogue[random() % 500];
        valid[row] = !someNull || random() % 3 != 0;
        expected[row] = valid[row] ? index.find(ids[row]) : -1;
        if (valid[row] && expected[row] < 0 && firstMissing < 0)
          firstMissing = static_cast<int64_t>(row);
      }
      Copy<int64_t> idsThere(ids), rows(std::vector<int64_t>(expected.size(), 9));
      NoteCopy missing;
      Copy<uint8_t> validThere(valid);
      for (bool allowed : {true, false}) {
        resolveRows(domainThere.get(), 300 + kSpareRows, idsThere.data(),
                    someNull ? validThere.data() : nullptr, {slots.data(), view.count, view.seed},
                    rows.data(), allowed ? nullptr : missing.data(), testStream());
        EXPECT_EQ(rows.fetch(), expected);
        EXPECT_EQ(missing.row(), allowed ? -1 : firstMissing);
        if (!allowed && someMissing)
          EXPECT_EQ(missing.value(), -5);
      }
    }
}

} // namespace
} // namespace genrec::rt::cuda::test
