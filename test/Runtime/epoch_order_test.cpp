//===- epoch_order_test.cpp - Which rows the batches of an epoch have -----===//

#include "../../runtime/data/epoch_order.h"

#include "ReadingModel.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace genrec::rt::test {
namespace {

/// Row groups of an imagined dataset: row r of it is row r of one chunk, all of whose lists are in
/// `lengths`.
struct Imagined {
  std::vector<int64_t> groupRows, groupTokens, firstRows, lengths;

  Imagined(std::vector<int64_t> groups, std::vector<int64_t> rowTokens)
      : groupRows(std::move(groups)), lengths(std::move(rowTokens)) {
    int64_t at = 0;
    for (int64_t rows : groupRows) {
      firstRows.push_back(at);
      int64_t tokens = 0;
      for (int64_t row = 0; row < rows; ++row)
        tokens += lengths[at++];
      groupTokens.push_back(tokens);
    }
  }

  GroupSizes sizes(const EpochOptions &options) const {
    return {groupRows, options.batchTokens > 0 ? &groupTokens : nullptr};
  }
};

/// The rows of each batch, by portion: as EpochSource gives them to the ranks that run some.
using Batches = std::vector<std::vector<std::vector<int64_t>>>;

void readPart(const Imagined &data, EpochOptions options, int64_t from, int64_t to,
              Batches &batches, std::map<int32_t, std::set<int64_t>> *groupsRead = nullptr) {
  auto order = EpochOrder::make(options, data.sizes(options));
  batches.resize(order->batches());
  int64_t window = -1;
  for (int64_t batch = from; batch < std::min(to, order->batches()); ++batch) {
    if (batch / order->batchesPerWindow() != window) {
      window = batch / order->batchesPerWindow();
      Part part = order->own(window);
      std::vector<RowRef> rows;
      std::vector<int64_t> places;
      for (const Stretch &stretch : order->line()) {
        if (!part.meets(stretch))
          continue;
        if (groupsRead)
          (*groupsRead)[options.own.first].insert(stretch.group);
        int64_t place = stretch.begin;
        for (int64_t i = 0; i < stretch.rows; ++i) {
          int64_t row = data.firstRows[stretch.group] + stretch.firstRow + i;
          int64_t size = options.batchTokens > 0 ? data.lengths[row] : 1;
          if (2 * place + size >= 2 * part.begin && 2 * place + size < 2 * part.end) {
            if (options.batchTokens > 0 && places.empty())
              places.push_back(place);
            rows.push_back({nullptr, row});
            if (options.batchTokens > 0)
              places.push_back(place + size);
          }
          place += size;
        }
      }
      order->open(window, rows, places);
    }
    batches[batch].resize(options.portions);
    for (int32_t i = 0; i < options.own.count; ++i) {
      std::vector<RowRef> taken;
      order->take(batch, options.own.first + i, taken);
      for (const RowRef &ref : taken)
        batches[batch][options.own.first + i].push_back(ref.row);
    }
  }
}

Batches readOnRanks(const Imagined &data, EpochOptions options, int32_t ranks, int64_t from = 0,
                    int64_t to = INT64_MAX,
                    std::map<int32_t, std::set<int64_t>> *groupsRead = nullptr) {
  Batches batches;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    options.own = getPortions(options.portions, rank, ranks);
    readPart(data, options, from, to, batches, groupsRead);
  }
  return batches;
}

Imagined drawData(std::mt19937_64 &random, int64_t longest) {
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  std::vector<int64_t> groups, lengths;
  int64_t shape = draw(0, 3), count = shape == 0 ? 1 : draw(1, 12);
  for (int64_t i = 0; i < count; ++i) // one group, small ones, empty ones among others, one giant
    groups.push_back(shape == 1 ? 1 : shape == 3 && i == 0 ? 200 : draw(shape == 2 ? 0 : 1, 30));
  int64_t rows = std::accumulate(groups.begin(), groups.end(), int64_t(0));
  for (int64_t i = 0; i < rows; ++i)
    lengths.push_back(draw(1, draw(1, longest)));
  return {groups, lengths};
}

int64_t countRows(const Batches &batches, std::set<int64_t> &seen) {
  int64_t count = 0;
  for (const auto &batch : batches)
    for (const auto &portion : batch) {
      count += static_cast<int64_t>(portion.size());
      seen.insert(portion.begin(), portion.end());
    }
  return count;
}

TEST(EpochOrder, EveryRowComesOnceWhateverInterrupts) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::mt19937_64 random(seed);
    auto draw = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(random);
    };
    Imagined data = drawData(random, 20);
    auto rows = static_cast<int64_t>(data.lengths.size());
    EpochOptions options;
    options.batch = draw(0, 9) == 0 ? INT64_MAX : draw(1, 40);
    options.batchTokens = draw(0, 1) * draw(1, 300);
    options.shuffle = draw(0, 2) > 0;
    options.windowRows = draw(0, 1) * draw(1, 200);
    options.seed = seed;
    options.epoch = static_cast<uint64_t>(draw(1, 3));
    options.portions = static_cast<int32_t>(draw(1, 9));
    Batches whole = readOnRanks(data, options, 1);
    std::set<int64_t> seen;
    EXPECT_EQ(countRows(whole, seen), rows) << seed;
    EXPECT_EQ(static_cast<int64_t>(seen.size()), rows) << seed;
    // Interrupted anywhere, and gone on with on other ranks.
    Batches pieces(whole.size());
    auto count = static_cast<int64_t>(whole.size());
    for (int64_t at = 0; at < count;) {
      int64_t next = at + draw(1, 5);
      Batches part =
          readOnRanks(data, options, static_cast<int32_t>(draw(1, options.portions)), at, next);
      for (; at < std::min(next, count); ++at)
        pieces[at] = part[at];
    }
    EXPECT_EQ(pieces, whole) << seed;
    if (options.batchTokens > 0)
      continue;
    // Batches by rows do not depend on portions, and portions are their consecutive rows.
    EpochOptions alone = options;
    alone.portions = 1;
    Batches expected = readOnRanks(data, alone, 1);
    for (size_t i = 0; i < whole.size(); ++i) {
      auto size = static_cast<int64_t>(expected[i][0].size());
      EXPECT_EQ(size, std::min(options.batch,
                               rows - static_cast<int64_t>(i) * std::min(options.batch, rows)));
      for (int64_t p = 0, at = 0; p < options.portions; ++p)
        for (int64_t row : whole[i][p]) {
          EXPECT_GE(at, size * p / options.portions);
          EXPECT_LT(at, size * (p + 1) / options.portions);
          EXPECT_EQ(row, expected[i][0][at++]) << seed;
        }
    }
  }
}

TEST(EpochOrder, RanksReadTheirShareOfTheRowGroups) {
  std::vector<int64_t> groups;
  std::mt19937_64 random(5);
  int64_t rows = 0;
  for (int64_t i = 0; i < 100; ++i)
    rows += groups.emplace_back(std::uniform_int_distribution<int64_t>(20, 60)(random));
  Imagined data(groups, std::vector<int64_t>(rows, 3));
  for (int64_t tokens : {0, 960})
    for (int64_t window : {0, 2000}) {
      EpochOptions options;
      options.batch = 320;
      options.batchTokens = tokens;
      options.shuffle = true;
      options.windowRows = window;
      options.portions = 4;
      std::map<int32_t, std::set<int64_t>> first, second;
      (void)readOnRanks(data, options, 4, 0, INT64_MAX, &first);
      int64_t windows = EpochOrder::make(options, data.sizes(options))->windows();
      EXPECT_EQ(windows > 1, window > 0);
      // A window's part is cut out of a line of row groups: two at its ends are shared.
      for (const auto &[rank, read] : first)
        EXPECT_LE(static_cast<int64_t>(read.size()), 25 * 3 / 2 + 2 * windows)
            << tokens << " " << window;
      options.epoch = 2;
      (void)readOnRanks(data, options, 4, 0, INT64_MAX, &second);
      EXPECT_NE(first, second); // dealt anew
    }
}

TEST(EpochOrder, RowsOfAWindowComeTogether) {
  Imagined data(std::vector<int64_t>(40, 10), std::vector<int64_t>(400, 1));
  EpochOptions options;
  options.batch = 10;
  options.shuffle = true;
  options.windowRows = 100;
  Batches batches = readOnRanks(data, options, 1);
  ASSERT_EQ(batches.size(), 40u);
  for (size_t window = 0; window < 4; ++window) {
    std::set<int64_t> groups, order;
    for (size_t i = 0; i < 10; ++i)
      for (int64_t row : batches[window * 10 + i][0]) {
        groups.insert(row / 10);
        order.insert(row);
      }
    EXPECT_LE(groups.size(), 11u); // the line begins within a row group
    EXPECT_EQ(order.size(), 100u);
  }
  // A window of less than a batch is a batch; one beyond the data is all of it.
  auto windowsOf = [&](int64_t rows) {
    options.windowRows = rows;
    return EpochOrder::make(options, data.sizes(options))->windows();
  };
  EXPECT_EQ(windowsOf(1), 40);
  EXPECT_EQ(windowsOf(99), 40 / 8);
  EXPECT_EQ(windowsOf(400), 1);
  EXPECT_EQ(windowsOf(INT64_MAX), 1);
}

TEST(EpochOrder, RowsOfAllPartsOfTheDataMeet) {
  // Every batch has rows of the whole line, and which rows meet differs by epoch.
  Imagined data({1000}, std::vector<int64_t>(1000, 1));
  EpochOptions options;
  options.batch = 50;
  options.shuffle = true;
  std::set<std::pair<int64_t, int64_t>> together;
  for (options.epoch = 1; options.epoch <= 3; ++options.epoch)
    for (const auto &batch : readOnRanks(data, options, 1)) {
      std::set<int64_t> parts;
      for (int64_t row : batch[0])
        parts.insert(row / 100);
      EXPECT_EQ(parts.size(), 10u);
      for (int64_t row : batch[0])
        if (row != batch[0][0])
          together.insert({batch[0][0], row});
    }
  EXPECT_GT(together.size(), 3u * 20 * 49 * 9 / 10);
}

TEST(EpochOrder, PortionsHaveAboutEqualTokens) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> length(4.5, 1);
  std::vector<int64_t> lengths;
  int64_t longest = 0, total = 0;
  for (int64_t i = 0; i < 4000; ++i) {
    lengths.push_back(std::clamp<int64_t>(static_cast<int64_t>(length(random)), 1, 1000));
    longest = std::max(longest, lengths.back());
    total += lengths.back();
  }
  for (const std::vector<int64_t> &groups : {std::vector<int64_t>(40, 100), {4000}}) {
    Imagined data(groups, lengths);
    for (bool shuffle : {false, true}) {
      EpochOptions options;
      options.batchTokens = 40000;
      options.shuffle = shuffle;
      options.portions = 4;
      options.windowRows = shuffle ? 1000 : 0;
      Batches batches = readOnRanks(data, options, 4);
      EXPECT_EQ(static_cast<int64_t>(batches.size()), (total + 39999) / 40000);
      int64_t even = total / static_cast<int64_t>(batches.size()) / 4;
      for (const auto &batch : batches)
        for (const auto &portion : batch) {
          int64_t tokens = 0;
          for (int64_t row : portion)
            tokens += lengths[row];
          EXPECT_LE(std::abs(tokens - even), 2 * longest);
        }
    }
  }
}

} // namespace
} // namespace genrec::rt::test
