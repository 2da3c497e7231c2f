//===- epoch_order.cpp - Which rows the batches of an epoch have ----------===//

#include "epoch_order.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <numeric>

namespace genrec::rt {

namespace {

/// value * numerator / denominator, rounded down, however large the product is.
int64_t scaled(int64_t value, int64_t numerator, int64_t denominator) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(value, numerator, &product))
    return product / denominator;
  return static_cast<int64_t>(static_cast<__int128>(value) * numerator / denominator);
}

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

void shuffle(const EpochOptions &options, uint64_t number, int64_t count, RowRef *rows,
             std::vector<int64_t> &order, std::vector<RowRef> &copy) {
  order.resize(count);
  shuffledOrder(options.seed, options.epoch, number, count, order.data());
  copy.assign(rows, rows + count);
  for (int64_t i = 0; i < count; ++i)
    rows[i] = copy[order[i]];
}

/// Batches of `options.batch` rows. A window of m batches is cut into as many lanes as a batch has
/// rows, of m consecutive rows of the line each, and row j of every batch is one of lane j. So
/// portions, which are consecutive rows of a batch, have consecutive rows of the line.
class RowBatches : public EpochOrder {
public:
  RowBatches(const EpochOptions &wanted, const GroupSizes &sizes) : EpochOrder(wanted, sizes) {
    // A batch larger than the data is all of it.
    batch = std::clamp<int64_t>(options.batch, 1, std::max<int64_t>(rows, 1));
    setBatches(ceilDiv(rows, batch), batch);
  }

  Part own(int64_t window) const override {
    int64_t begin = windowBegin(window);
    auto [first, end] = ownLanes(window);
    return {begin + laneBegin(window, first), begin + laneBegin(window, end)};
  }

  int64_t windowAt(int64_t place) const override { return place / (perWindow * batch); }

  void open(int64_t window, std::vector<RowRef> &lines, const std::vector<int64_t> &) override {
    current = window;
    refs.swap(lines);
    auto [first, end] = ownLanes(window);
    base = laneBegin(window, first);
    // Number 0 orders the row groups.
    for (int64_t lane = first; options.shuffle && lane < end; ++lane)
      shuffle(options, static_cast<uint64_t>(1 + window * batch + lane),
              laneBegin(window, lane + 1) - laneBegin(window, lane),
              refs.data() + laneBegin(window, lane) - base, order, copy);
  }

  void take(int64_t number, int32_t portion, std::vector<RowRef> &to) const override {
    int64_t inWindow = number - current * perWindow;
    int64_t whole = rowsOf(current) / batch, rest = rowsOf(current) % batch;
    int64_t size = inWindow < whole ? batch : rest;
    for (int64_t i = ownBegin(size, portion); i < ownBegin(size, portion + 1); ++i) {
      int64_t lane = inWindow < whole ? i : laneOfRest(i, rest);
      to.push_back(refs[laneBegin(current, lane) - base + inWindow]);
    }
  }

private:
  int64_t windowBegin(int64_t window) const { return window * perWindow * batch; }
  int64_t rowsOf(int64_t window) const {
    return std::min(perWindow * batch, rows - windowBegin(window));
  }
  /// Lanes of the last window may have a row more than others: one for the last, smaller batch.
  int64_t laneBegin(int64_t window, int64_t lane) const {
    return scaled(rowsOf(window), lane, batch);
  }
  /// The lane of row `i` of a last batch of `rest` rows.
  int64_t laneOfRest(int64_t i, int64_t rest) const {
    return (static_cast<int64_t>((static_cast<__int128>(i + 1) * batch + rest - 1) / rest)) - 1;
  }
  /// The first row of a portion of a batch of `size` rows.
  int64_t ownBegin(int64_t size, int64_t portion) const {
    return scaled(size, portion, options.portions);
  }

  /// Lanes [first, second) of the own portions.
  std::pair<int64_t, int64_t> ownLanes(int64_t window) const {
    int64_t end = options.own.first + options.own.count;
    int64_t firstLane = ownBegin(batch, options.own.first), endLane = ownBegin(batch, end);
    int64_t rest = rowsOf(window) % batch;
    // The smaller batch is cut by its own rows, which may reach one lane further.
    if (int64_t last = ownBegin(rest, end); last > ownBegin(rest, options.own.first))
      endLane = std::max(endLane, laneOfRest(last - 1, rest) + 1);
    return {firstLane, endLane};
  }

  int64_t batch = 1;
  int64_t current = 0;
  std::vector<RowRef> refs;
  int64_t base = 0; ///< of refs[0] in the window
  std::vector<int64_t> order;
  std::vector<RowRef> copy;
};

/// Batches of about `options.batchTokens` tokens: the line is cut at equal numbers of tokens into
/// windows, a window into ranges of portions, and such a range, shuffled, into the portions of the
/// window's batches. A row is where its middle token is.
class TokenBatches : public EpochOrder {
public:
  TokenBatches(const EpochOptions &options, const GroupSizes &sizes) : EpochOrder(options, sizes) {
    int64_t count = ceilDiv(length, std::max<int64_t>(options.batchTokens, 1));
    setBatches(count, count > 0 ? std::max<int64_t>(rows / count, 1) : 1);
    cuts.resize(options.own.count);
  }

  Part own(int64_t window) const override {
    return {portionBegin(window, options.own.first),
            portionBegin(window, options.own.first + options.own.count)};
  }

  int64_t windowAt(int64_t place) const override {
    int64_t window = scaled(place, batchCount, length) / perWindow;
    while (window + 1 < windows() && portionBegin(window + 1, 0) <= place)
      ++window;
    while (window > 0 && portionBegin(window, 0) > place)
      --window;
    return window;
  }

  void open(int64_t window, std::vector<RowRef> &lines,
            const std::vector<int64_t> &tokens) override {
    current = window;
    refs.swap(lines);
    auto count = static_cast<int64_t>(refs.size());
    int64_t begin = 0;
    for (int32_t i = 0; i < options.own.count; ++i) {
      int32_t portion = options.own.first + i;
      bool isLast = i + 1 == options.own.count;
      int64_t end =
          isLast ? count : firstWithMiddleAt(tokens, begin, portionBegin(window, portion + 1));
      cut(cuts[i], window, portion, begin, end, tokens);
      begin = end;
    }
  }

  void take(int64_t number, int32_t portion, std::vector<RowRef> &to) const override {
    const std::vector<int64_t> &at = cuts[portion - options.own.first];
    int64_t inWindow = number - current * perWindow;
    to.insert(to.end(), refs.begin() + at[inWindow], refs.begin() + at[inWindow + 1]);
  }

private:
  int64_t portionBegin(int64_t window, int32_t portion) const {
    int64_t first = window * perWindow;
    __int128 at = static_cast<__int128>(first) * options.portions +
                  static_cast<__int128>(batchesOf(window)) * portion;
    return static_cast<int64_t>(static_cast<__int128>(length) * at /
                                (static_cast<__int128>(batchCount) * options.portions));
  }

  /// Orders the rows of a portion's range and cuts them into those of the window's batches.
  void cut(std::vector<int64_t> &at, int64_t window, int32_t portion, int64_t begin, int64_t end,
           const std::vector<int64_t> &tokens) {
    const int64_t count = end - begin, pieces = batchesOf(window);
    order.resize(count);
    std::iota(order.begin(), order.end(), int64_t(0));
    if (options.shuffle) {
      uint64_t number = 1 + static_cast<uint64_t>(window) * options.portions + portion;
      shuffledOrder(options.seed, options.epoch, number, count, order.data());
      copy.assign(refs.begin() + begin, refs.begin() + end);
      for (int64_t i = 0; i < count; ++i)
        refs[begin + i] = copy[order[i]];
    }
    before.assign(1, 0);
    for (int64_t i = 0; i < count; ++i)
      before.push_back(before.back() + tokens[begin + order[i] + 1] - tokens[begin + order[i]]);
    at.assign(1, begin);
    for (int64_t piece = 1; piece < pieces; ++piece)
      at.push_back(begin + firstWithMiddleAt(before, at.back() - begin,
                                             scaled(before.back(), piece, pieces)));
    at.push_back(end);
  }

  int64_t current = 0;
  std::vector<RowRef> refs;
  std::vector<std::vector<int64_t>> cuts; ///< by own portion: where batches begin in `refs`
  std::vector<int64_t> order, before;
  std::vector<RowRef> copy;
};

} // namespace

int64_t firstWithMiddleAt(const std::vector<int64_t> &places, int64_t from, int64_t place) {
  int64_t low = from, high = std::max(from, static_cast<int64_t>(places.size()) - 1);
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (places[middle] + places[middle + 1] >= 2 * place)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

void shuffledOrder(uint64_t seed, uint64_t epoch, uint64_t number, int64_t count, int64_t *order) {
  std::iota(order, order + count, int64_t(0));
  uint64_t state = splitMix64(splitMix64(seed ^ 0x67656E7265637368ull) + epoch);
  state = splitMix64(state + number);
  for (int64_t i = count - 1; i > 0; --i) {
    uint64_t word = splitMix64(state++);
    auto drawn = static_cast<int64_t>(
        static_cast<unsigned __int128>(word) * static_cast<uint64_t>(i + 1) >> 64);
    std::swap(order[i], order[drawn]);
  }
}

EpochOrder::EpochOrder(const EpochOptions &wanted, const GroupSizes &sizes) : options(wanted) {
  std::vector<int64_t> groups(sizes.rows.size());
  std::iota(groups.begin(), groups.end(), int64_t(0));
  auto count = static_cast<int64_t>(groups.size());
  if (options.shuffle)
    shuffledOrder(options.seed, options.epoch, 0, count, groups.data());
  auto add = [&](int64_t group, int64_t firstRow, int64_t groupRows) {
    if (groupRows == 0)
      return;
    int64_t places = sizes.tokens ? (*sizes.tokens)[group] : groupRows;
    stretches.push_back({group, firstRow, groupRows, length, length + places});
    rows += groupRows;
    length += places;
  };
  // The line begins within its first row group, so that lanes and portions begin elsewhere in each
  // epoch, in a file of one row group, too. (Within, places of tokens are not known yet.)
  int64_t start = 0;
  if (options.shuffle && !sizes.tokens && count > 0) {
    uint64_t state = splitMix64(splitMix64(options.seed ^ 0x67656E7265636C6Eull) + options.epoch);
    start = static_cast<int64_t>(static_cast<unsigned __int128>(splitMix64(state)) *
                                     static_cast<uint64_t>(sizes.rows[groups[0]]) >>
                                 64);
  }
  for (int64_t i = 0; i < count; ++i)
    add(groups[i], i == 0 ? start : 0, sizes.rows[groups[i]] - (i == 0 ? start : 0));
  if (start > 0)
    add(groups[0], 0, start);
}

void EpochOrder::setBatches(int64_t count, int64_t rowsPerBatch) {
  batchCount = count;
  if (!options.shuffle || count == 0)
    return;
  int64_t most = options.windowRows <= 0 || options.windowRows >= rows
                     ? count
                     : std::clamp<int64_t>(options.windowRows / rowsPerBatch, 1, count);
  perWindow = ceilDiv(count, ceilDiv(count, most));
}

int64_t EpochOrder::batchesOf(int64_t window) const {
  return std::min(perWindow, batchCount - window * perWindow);
}

std::unique_ptr<EpochOrder> EpochOrder::make(const EpochOptions &options, const GroupSizes &sizes) {
  if (sizes.tokens)
    return std::make_unique<TokenBatches>(options, sizes);
  return std::make_unique<RowBatches>(options, sizes);
}

} // namespace genrec::rt
