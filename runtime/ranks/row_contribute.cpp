//===- row_contribute.cpp - sums of gradients of this rank's portions -----===//

#include "row_copies.h"
#include "row_exchange_impl.h"

#include <algorithm>
#include <functional>

using namespace genrec::rt;

/// The number of `sections`, sorted, that begin at `row` or before.
static size_t countBefore(std::span<const AskedRows::Section> sections, const float *row) {
  constexpr size_t kFew = 8;
  std::less<> isLess;
  if (sections.size() > kFew)
    return std::upper_bound(
               sections.begin(), sections.end(), row,
               [&](const float *row, const auto &section) { return isLess(row, section.begin); }) -
           sections.begin();
  size_t count = 0;
  for (const AskedRows::Section &section : sections)
    count += !isLess(row, section.begin);
  return count;
}

int32_t RowExchange::Impl::numberOfCopy(int32_t store, const float *row) const {
  const AskedRows &from = asked[store];
  size_t count = countBefore(from.sorted, row);
  if (count == 0)
    return -1;
  const AskedRows::Section &section = from.sorted[count - 1];
  int64_t floats = row - section.begin, position = from.division.divide(floats);
  bool isCopy = position < section.count && position * stores[store].dim == floats;
  return isCopy ? from.numbers[section.first + position] : -1;
}

int32_t RowExchange::Impl::numberOfOwn(int32_t store, const float *row) {
  AskedRows &from = asked[store];
  auto keyOf = [](const float *row) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(row));
  };
  for (; from.ownFetches < visits(from); ++from.ownFetches) {
    const AskedRows::Section &own = from.sections[visit(from.ownFetches, rank)];
    for (int64_t position = own.first; position < own.first + own.count; ++position) {
      int32_t number = from.numbers[position];
      int32_t at = from.ownAddresses.findOrAdd(keyOf(from.addresses[number]));
      if (static_cast<size_t>(at) == from.ownNumbers.size())
        from.ownNumbers.push_back(number);
    }
  }
  int32_t at = from.ownAddresses.find(keyOf(row));
  return at < 0 ? -1 : from.ownNumbers[at];
}

/// Most rows are touched in the order in which they were asked for.
int64_t RowExchange::Impl::positionOf(int32_t store, float *row) {
  AskedRows &from = asked[store];
  auto number = static_cast<int32_t>(from.expected);
  bool isExpected = from.expected < from.positions.size() && from.addresses[from.expected] == row;
  if (!isExpected && (number = numberOfCopy(store, row)) < 0 &&
      (number = numberOfOwn(store, row)) < 0)
    throw Error("a row that is touched in store " + std::to_string(store) +
                " was not fetched in this step");
  from.expected = static_cast<size_t>(number) + 1;
  return from.positions[number];
}

void RowExchange::Impl::skipPortions(AskedRows &from, int32_t until) {
  auto merge = [&] { from.sums.merge(static_cast<int64_t>(from.touchedBy.size())); };
  merge(); // the last contribution, whose sums are there by now
  for (; from.nextPortion < until; ++from.nextPortion) {
    from.sums.addNode({from.nextPortion, 0});
    merge();
  }
}

/// In the first contribution of a step.
void RowExchange::Impl::layOutHomes() {
  hasHomes = true;
  if (fetches == 0)
    return;
  auto countHomes = [&](int32_t to) {
    int64_t floats = 0;
    for (int32_t store = 0; store < storeCount(); ++store)
      floats += messageFloats(asked[store].sections[to].count, stores[store].dim);
    return floats;
  };
  if (travel.bf16Sums)
    wideHomes.layOut([&](int32_t to) { return to == rank ? 0 : countHomes(to); });
  for (int32_t to = 0; to < ranks; ++to) {
    float *at = nullptr;
    if (to == rank) {
      at = ownHomes.ensure(countHomes(to));
    } else if (travel.bf16Sums) {
      at = wideHomes.begin(to);
    } else {
      int64_t rows = 0; // whose masks follow
      for (const AskedRows &from : asked)
        rows += from.sections[to].count;
      sumRound.reserve(to, sumBytes(countHomes(to)) + (rows + 1024) * 4);
      at = reinterpret_cast<float *>(sumRound.outgoing(to));
    }
    for (int32_t store = 0; store < storeCount(); ++store) {
      AskedRows &from = asked[store];
      int64_t count = from.sections[to].count, dim = stores[store].dim;
      for (int64_t i = 0; i < count; ++i)
        from.homes.push_back(at + i * dim);
      at += messageFloats(count, dim);
    }
  }
}

/// A row's home is where the first portion that touches it puts its sum: in the tree, others are
/// added to that one, or are in nodes further right.
float *RowExchange::Impl::placeSum(AskedRows &from, int64_t position) {
  bool isFirst = from.touchedBy[position] < 0;
  bool hasHome = position < static_cast<int64_t>(from.homes.size());
  return isFirst && hasHome ? from.homes[position] : from.sums.takeSum();
}

std::span<float *const> RowExchange::Impl::contribute(int32_t store, int32_t portion,
                                                      std::span<float *const> rows) {
  checkStore(store);
  AskedRows &from = asked[store];
  if (isCollected || portion < from.nextPortion || portion >= portions.first + portions.count)
    throw Error("portion " + std::to_string(portion) + " of store " + std::to_string(store) +
                    " is not next: this rank has portions " + std::to_string(portions.first) +
                    " to " + std::to_string(portions.first + portions.count - 1),
                "give each portion once, in their order, before 'collect'");
  if (!hasHomes)
    layOutHomes();
  skipPortions(from, portion);
  from.nextPortion = portion + 1;
  std::vector<TreeSums::Entry> &entries = from.sums.addNode({portion, 0});
  from.places.clear();
  from.expected = 0;
  for (float *row : rows) {
    int64_t position = positionOf(store, row);
    if (from.touchedBy[position] == portion)
      throw Error("portion " + std::to_string(portion) + " has two sums for one row of store " +
                  std::to_string(store));
    from.places.push_back(placeSum(from, position));
    from.touchedBy[position] = portion;
    entries.push_back({static_cast<int32_t>(position), from.places.back()});
  }
  return from.places;
}
