//===- row_sums.cpp - sums of gradients to the owners of their rows -------===//

#include "row_bf16.h"
#include "row_copies.h"
#include "row_exchange_impl.h"

#include <algorithm>
#include <bit>
#include <functional>

using namespace genrec::rt;

//===----------------------------------------------------------------------===//
// This rank's portions
//===----------------------------------------------------------------------===//

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

int64_t RowExchange::Impl::positionOf(int32_t store, const float *row) const {
  const AskedRows &from = asked[store];
  if (size_t count = countBefore(from.sorted, row)) {
    const AskedRows::Section &section = from.sorted[count - 1];
    int64_t floats = row - section.begin, position = from.division.divide(floats);
    if (position < section.count && position * stores[store].valueFloats() == floats)
      return section.first + position;
  }
  throw Error("a row that is touched in store " + std::to_string(store) +
              " was not fetched in this step");
}

void RowExchange::Impl::skipPortions(AskedRows &from, int32_t until) {
  auto merge = [&] { from.sums.merge(static_cast<int64_t>(from.touchedBy.size())); };
  merge(); // the last contribution, whose sums are there by now
  for (; from.nextPortion < until; ++from.nextPortion) {
    from.sums.addNode({from.nextPortion, 0});
    merge();
  }
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
  skipPortions(from, portion);
  from.nextPortion = portion + 1;
  std::vector<TreeSums::Entry> &entries = from.sums.addNode({portion, 0});
  from.places.clear();
  for (float *row : rows) {
    int64_t position = positionOf(store, row);
    if (from.touchedBy[position] == portion)
      throw Error("portion " + std::to_string(portion) + " has two sums for one row of store " +
                  std::to_string(store));
    from.touchedBy[position] = portion;
    from.places.push_back(from.sums.takeSum());
    entries.push_back({static_cast<int32_t>(position), from.places.back()});
  }
  return from.places;
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

void RowExchange::Impl::collect(Rider *rider, const FindRows &find) {
  if (isCollected)
    throw Error("'collect' is called twice in a step", "call 'begin' before the next step");
  if (isAsked)
    throw Error("'collect' is called before the rows of the last 'ask' are there",
                "call 'find' and 'bring' before");
  isCollected = true;
  noteMasks();
  shareReplicas();
  layOutSums(rider);
  for (int32_t to = 0; to < ranks; ++to)
    if (to != rank)
      packMasks(to);
  for (int32_t store = 0; store < storeCount(); ++store)
    packSums(store);
  if (travel.bf16Sums)
    narrowSums();
  sumRound.exchange(comm);
  readSums(rider);
  if (sendsReplicas)
    this->find(find);
  if (travel.bf16Sums)
    widenSums();
  for (int32_t store = 0; store < storeCount(); ++store)
    addSums(store);
}

/// For each row that this rank asked for, which nodes of the tree it has it in.
void RowExchange::Impl::noteMasks() {
  for (AskedRows &from : asked) {
    skipPortions(from, portions.first + portions.count);
    from.masks.assign(from.touchedBy.size(), 0);
    std::span<const TreeSums::Node> nodes = from.sums.getNodes();
    for (size_t node = 0; node < nodes.size(); ++node)
      for (const TreeSums::Entry &entry : nodes[node].entries)
        from.masks[entry.row] |= uint32_t(1) << node;
  }
}

/// Bytes of as many masks in a message: sums begin at a whole cache line.
static int64_t maskBytes(int64_t rows) { return (rows + 15) / 16 * 64; }

/// A message: what rides; keys of replicas; masks, store by store, by position; the sums of the
/// nodes, store by store, node by node, by position.
void RowExchange::Impl::layOutSums(Rider *rider) {
  auto countRows = [&](int32_t to) {
    int64_t rows = 0;
    for (const AskedRows &from : asked)
      for (size_t fetch = 0; fetch < visits(from); ++fetch)
        rows += from.sections[visit(fetch, to)].count;
    return rows;
  };
  for (int32_t to = 0; to < ranks; ++to) {
    messageBytes[to] = ridingBytes(rider, rank, to);
    sumFloats[to] = 0;
    if (to == rank) // what is its own is read where it is
      continue;
    for (int32_t store = 0; store < storeCount(); ++store)
      for (size_t fetch = 0; fetch < visits(asked[store]); ++fetch) {
        const AskedRows::Section &section = asked[store].sections[visit(fetch, to)];
        for (int64_t position = section.first; position < section.first + section.count; ++position)
          sumFloats[to] += std::popcount(asked[store].masks[position]) * stores[store].dim;
      }
    messageBytes[to] += replicaBytes() + maskBytes(countRows(to)) + sumBytes(sumFloats[to]);
  }
  sumRound.layOut(messageBytes);
  for (int32_t to = 0; to < ranks; ++to) {
    char *message = sumRound.outgoing(to);
    if (rider)
      rider->write(to, message);
    if (to == rank)
      continue;
    message += ridingBytes(rider, rank, to);
    packReplicaKeys(message);
    message += replicaBytes();
    sendMasks[to] = reinterpret_cast<uint32_t *>(message);
    sumCursors[to] = reinterpret_cast<float *>(message + maskBytes(countRows(to)));
  }
  if (!travel.bf16Sums)
    return;
  wideSums.layOut([&](int32_t to) { return sumFloats[to]; });
  for (int32_t to = 0; to < ranks; ++to)
    sumCursors[to] = wideSums.begin(to);
}

/// Writes the sums that `packSums` gathered at the ends of their messages.
void RowExchange::Impl::narrowSums() {
  for (int32_t to = 0; to < ranks; ++to)
    toBf16(wideSums.begin(to), wideSums.size(to),
           reinterpret_cast<uint16_t *>(sumRound.outgoing(to) + messageBytes[to]) -
               wideSums.size(to));
}

void RowExchange::Impl::widenSums() {
  wideSums.layOut([&](int32_t from) { return sumFloats[from]; });
  for (int32_t from = 0; from < ranks; ++from) {
    fromBf16(reinterpret_cast<const uint16_t *>(sumCursors[from]), sumFloats[from],
             wideSums.begin(from));
    sumCursors[from] = wideSums.begin(from);
  }
}

void RowExchange::Impl::packMasks(int32_t to) {
  uint32_t *masks = sendMasks[to];
  for (const AskedRows &from : asked)
    for (size_t fetch = 0; fetch < visits(from); ++fetch) {
      const AskedRows::Section &section = from.sections[visit(fetch, to)];
      masks = std::copy_n(from.masks.data() + section.first, section.count, masks);
    }
}

/// Finds keys of replicas, masks and sums in what came, and checks that they are as many as the
/// message says.
void RowExchange::Impl::readSums(Rider *rider) {
  readReplicaKeys(rider);
  for (int32_t from = 0; from < ranks; ++from) {
    std::span<char> message = sumRound.incoming(from);
    sumFloats[from] = 0;
    if (rider)
      rider->read(from, message.data());
    if (from == rank)
      continue;
    int64_t rows = 0;
    forAskedBy(from, [&](int32_t, std::span<const int32_t> numbers) {
      rows += static_cast<int64_t>(numbers.size());
    });
    auto size = static_cast<int64_t>(message.size());
    const uint32_t *mask = maskCursors[from];
    int64_t begin = reinterpret_cast<const char *>(mask) - message.data();
    if (size >= begin + maskBytes(rows))
      forAskedBy(from, [&](int32_t store, std::span<const int32_t> numbers) {
        for (size_t left = numbers.size(); left; --left)
          sumFloats[from] += std::popcount(*mask++) * stores[store].dim;
      });
    if (size != begin + maskBytes(rows) + sumBytes(sumFloats[from]))
      throw Error("rank " + std::to_string(from) + " sends sums in " + std::to_string(size) +
                  " bytes, which are not those that it says");
    sumCursors[from] = reinterpret_cast<float *>(message.data() + begin + maskBytes(rows));
    traffic.gradientBytes += rows * 4 + sumBytes(sumFloats[from]);
  }
}

void RowExchange::Impl::packSums(int32_t store) {
  AskedRows &from = asked[store];
  int64_t dim = stores[store].dim;
  from.sumOf.resize(from.touchedBy.size());
  std::span<const TreeSums::Node> nodes = from.sums.getNodes();
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const TreeSums::Entry &entry : nodes[node].entries)
      from.sumOf[entry.row] = entry.sum;
    for (size_t i = 0; i < from.sections.size(); ++i) {
      if (i % ranks == static_cast<size_t>(rank))
        continue;
      const AskedRows::Section &section = from.sections[i];
      gathered.clear();
      for (int64_t position = section.first; position < section.first + section.count; ++position)
        if (from.masks[position] >> node & 1)
          gathered.push_back(static_cast<int32_t>(position));
      gatherRows(dim, gathered, from.sumOf.data(), sumCursors[i % ranks]);
      sumCursors[i % ranks] += static_cast<int64_t>(gathered.size()) * dim;
    }
  }
}

/// Adds the rest of the tree, from the nodes of all ranks in the order of portions.
void RowExchange::Impl::addSums(int32_t store) {
  OwnedRows &of = owned[store];
  if (!travel.ownersDeduplicate)
    joinRows(store);
  of.sums.setRows(of.keys.size());
  int32_t leaf = 0;
  for (int32_t other = 0; other < ranks; ++other) {
    if (other == rank)
      addOwnLeaves(store, leaf);
    else
      addLeaves(store, other, leaf);
    leaf += static_cast<int32_t>(covers[other].size());
  }
  std::span<const int32_t> touched = of.sums.findRows();
  for (int32_t number : touched)
    of.updateRows.push_back(of.rows[number]);
  if (stores[store].hasReplicas())
    noteOwned(store, touched);
  of.updateSums.ensure(static_cast<int64_t>(touched.size()) * stores[store].dim);
  of.sums.write(/*pool=*/nullptr, leaves, of.updateSums.data());
}

void RowExchange::Impl::joinRows(int32_t store) {
  OwnedRows &of = owned[store];
  of.distinctRows.clear();
  joined.clear(); // numbers by that of their row
  for (int32_t &number : of.asked) {
    int32_t row = of.distinctRows.findOrAdd(reinterpret_cast<int64_t>(of.rows[number]));
    if (static_cast<size_t>(row) == joined.size())
      joined.push_back(number);
    number = joined[row];
  }
}

/// The sums that another rank sent, `first` being its first leaf.
void RowExchange::Impl::addLeaves(int32_t store, int32_t other, int32_t first) {
  OwnedRows &of = owned[store];
  int64_t dim = stores[store].dim;
  const uint32_t *mask = nullptr;
  for (size_t node = 0; node < covers[other].size(); ++node) {
    mask = maskCursors[other]; // once more for each node
    for (size_t fetch = 0; fetch < visits(of); ++fetch)
      for (int32_t number : of.askedBy(visit(fetch, other)))
        if (*mask++ >> node & 1) {
          of.sums.add(number, first + static_cast<int32_t>(node), sumCursors[other]);
          sumCursors[other] += dim;
        }
  }
  maskCursors[other] = mask;
}

/// This rank's own sums.
void RowExchange::Impl::addOwnLeaves(int32_t store, int32_t first) {
  OwnedRows &of = owned[store];
  AskedRows &from = asked[store];
  std::span<const TreeSums::Node> nodes = from.sums.getNodes();
  for (size_t node = 0; node < nodes.size(); ++node) {
    if (nodes.size() > 1) // else `packSums` has
      for (const TreeSums::Entry &entry : nodes[node].entries)
        from.sumOf[entry.row] = entry.sum;
    for (int64_t fetch = 0; fetch < fetches; ++fetch) {
      int64_t position = from.sections[visit(fetch, rank)].first;
      for (int32_t number : of.askedBy(visit(fetch, rank))) {
        if (from.masks[position] >> node & 1)
          of.sums.add(number, first + static_cast<int32_t>(node), from.sumOf[position]);
        ++position;
      }
    }
  }
}
