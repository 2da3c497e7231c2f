//===- row_sums.cpp - sums of gradients to the owners of their rows -------===//

#include "row_bf16.h"
#include "row_copies.h"
#include "row_exchange_impl.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace genrec::rt;

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

/// Bytes of as many masks in a message: what follows begins at a whole cache line.
static int64_t maskBytes(int64_t rows) { return (rows + 15) / 16 * 64; }

RowExchange::Impl::SumCounts RowExchange::Impl::countSums(int32_t to) const {
  SumCounts counts;
  for (int32_t store = 0; store < storeCount(); ++store) {
    const AskedRows &from = asked[store];
    int64_t dim = stores[store].dim;
    for (size_t i = to; i < from.sections.size(); i += ranks) {
      const AskedRows::Section &section = from.sections[i];
      int64_t first = 0, packed = 0;
      for (int64_t at = section.first; at < section.first + section.count; ++at) {
        first += isHome(i) && from.masks[at];
        packed += std::popcount(packedMask(from.masks[at], isHome(i)));
      }
      counts.inHomes += messageFloats(first, dim);
      counts.packed += packed * dim;
      counts.rows += section.count;
      counts.sums += (first + packed) * dim;
    }
  }
  return counts;
}

/// The same of what another rank sends, whose masks are there.
RowExchange::Impl::SumCounts RowExchange::Impl::countReceived(int32_t other) {
  SumCounts counts;
  const uint32_t *mask = maskCursors[other];
  for (int32_t store = 0; store < storeCount(); ++store) {
    int64_t dim = stores[store].dim;
    for (size_t fetch = 0; fetch < visits(owned[store]); ++fetch) {
      int64_t first = 0, packed = 0;
      for (size_t left = owned[store].askedBy(visit(fetch, other)).size(); left; --left, ++mask) {
        first += isHome(visit(fetch, other)) && *mask;
        packed += std::popcount(packedMask(*mask, isHome(visit(fetch, other))));
      }
      counts.inHomes += messageFloats(first, dim);
      counts.packed += packed * dim;
      counts.sums += (first + packed) * dim;
    }
  }
  return counts;
}

/// A message: the sums in homes, store by store, by position; keys of replicas; masks, store by
/// store, by position; the other sums, store by store, node by node, by position; what rides.
void RowExchange::Impl::layOutSums(Rider *rider) {
  for (int32_t to = 0; to < ranks; ++to) {
    messageBytes[to] = ridingBytes(rider, rank, to);
    sumCounts[to] = to == rank ? SumCounts() : countSums(to); // its own is read where it is
    const SumCounts &counts = sumCounts[to];
    if (to != rank)
      messageBytes[to] += sumBytes(counts.inHomes) + replicaBytes() + maskBytes(counts.rows) +
                          sumBytes(counts.packed);
  }
  sumRound.layOut(messageBytes);
  if (travel.bf16Sums)
    widePacked.layOut([&](int32_t to) { return sumCounts[to].packed; });
  for (int32_t to = 0; to < ranks; ++to) {
    if (rider)
      rider->write(to, sumRound.outgoing(to) + messageBytes[to] - ridingBytes(rider, rank, to));
    if (to == rank)
      continue;
    sumRound.setNote(to, sumCounts[to].inHomes);
    closeHomes(to);
    char *at = sumRound.outgoing(to) + sumBytes(sumCounts[to].inHomes);
    packReplicaKeys(at);
    at += replicaBytes();
    packMasks(to, reinterpret_cast<uint32_t *>(at));
    at += maskBytes(sumCounts[to].rows);
    packedCursors[to] = travel.bf16Sums ? widePacked.begin(to) : reinterpret_cast<float *>(at);
  }
}

/// Closes the gaps of homes whose rows nobody touched.
void RowExchange::Impl::closeHomes(int32_t to) {
  if (fetches == 0 || !hasHomes)
    return;
  auto *from = travel.bf16Sums ? wideHomes.begin(to)
                               : reinterpret_cast<float *>(sumRound.outgoing(to));
  float *next = from;
  for (int32_t store = 0; store < storeCount(); ++store) {
    const AskedRows::Section &section = asked[store].sections[to];
    int64_t dim = stores[store].dim, count = 0;
    for (int64_t i = 0; i < section.count; ++i) {
      if (!asked[store].masks[section.first + i])
        continue;
      if (float *home = from + i * dim, *place = next + count * dim; home != place)
        std::memmove(place, home, dim * sizeof(float));
      ++count;
    }
    from += messageFloats(section.count, dim);
    next += messageFloats(count, dim);
  }
}

/// Writes sums that were gathered as floats into their messages.
void RowExchange::Impl::narrowSums() {
  for (int32_t to = 0; to < ranks; ++to) {
    if (to == rank)
      continue;
    char *message = sumRound.outgoing(to);
    const SumCounts &counts = sumCounts[to];
    toBf16(wideHomes.begin(to), counts.inHomes, reinterpret_cast<uint16_t *>(message));
    message += sumBytes(counts.inHomes) + replicaBytes() + maskBytes(counts.rows);
    toBf16(widePacked.begin(to), counts.packed, reinterpret_cast<uint16_t *>(message));
  }
}

void RowExchange::Impl::widenSums() {
  auto widen = [&](Messages<float> &wide, std::vector<float *> &cursors, int64_t SumCounts::*of) {
    wide.layOut([&](int32_t from) { return sumCounts[from].*of; });
    for (int32_t from = 0; from < ranks; ++from) {
      fromBf16(reinterpret_cast<const uint16_t *>(cursors[from]), sumCounts[from].*of,
               wide.begin(from));
      cursors[from] = wide.begin(from);
    }
  };
  widen(wideHomes, homeCursors, &SumCounts::inHomes);
  widen(widePacked, packedCursors, &SumCounts::packed);
}

void RowExchange::Impl::packMasks(int32_t to, uint32_t *masks) {
  for (const AskedRows &from : asked)
    for (size_t fetch = 0; fetch < visits(from); ++fetch) {
      const AskedRows::Section &section = from.sections[visit(fetch, to)];
      masks = std::copy_n(from.masks.data() + section.first, section.count, masks);
    }
}

/// Finds keys of replicas, masks and sums in what came, and checks that they are as many as the
/// message says.
void RowExchange::Impl::readSums(Rider *rider) {
  readReplicaKeys();
  for (int32_t from = 0; from < ranks; ++from) {
    std::span<char> message = sumRound.incoming(from);
    auto size = static_cast<int64_t>(message.size());
    int64_t riding = ridingBytes(rider, from, rank);
    if (rider && size >= riding)
      rider->read(from, message.data() + size - riding);
    sumCounts[from] = {};
    if (from == rank)
      continue;
    int64_t rows = 0;
    forAskedBy(from, [&](int32_t, std::span<const int32_t> numbers) {
      rows += static_cast<int64_t>(numbers.size());
    });
    int64_t begin = reinterpret_cast<const char *>(maskCursors[from]) - message.data();
    if (size >= begin + maskBytes(rows))
      sumCounts[from] = countReceived(from);
    const SumCounts &counts = sumCounts[from];
    if (counts.inHomes != sumRound.getNote(from) ||
        size != begin + maskBytes(rows) + sumBytes(counts.packed) + riding)
      throw Error("rank " + std::to_string(from) + " sends sums in " + std::to_string(size) +
                  " bytes, which are not those that it says");
    homeCursors[from] = reinterpret_cast<float *>(message.data());
    packedCursors[from] = reinterpret_cast<float *>(message.data() + begin + maskBytes(rows));
    traffic.gradientBytes += rows * 4 + counts.sums * (travel.bf16Sums ? 2 : 4);
  }
}

/// Copies sums that have no homes into their messages.
void RowExchange::Impl::packSums(int32_t store) {
  AskedRows &from = asked[store];
  int64_t dim = stores[store].dim;
  std::span<const TreeSums::Node> nodes = from.sums.getNodes();
  if (nodes.size() <= 1 && visits(from) <= 1) // all have homes
    return;
  from.sumOf.resize(from.touchedBy.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    for (const TreeSums::Entry &entry : nodes[node].entries)
      from.sumOf[entry.row] = entry.sum;
    for (size_t i = 0; i < from.sections.size(); ++i) {
      if (i % ranks == static_cast<size_t>(rank))
        continue;
      const AskedRows::Section &section = from.sections[i];
      gathered.clear();
      for (int64_t position = section.first; position < section.first + section.count; ++position)
        if (packedMask(from.masks[position], isHome(i)) >> node & 1)
          gathered.push_back(static_cast<int32_t>(position));
      gatherRows(dim, gathered, from.sumOf.data(), packedCursors[i % ranks]);
      packedCursors[i % ranks] += static_cast<int64_t>(gathered.size()) * dim;
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
  of.updateSums = of.sums.addUp(/*pool=*/nullptr, leaves);
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
  const uint32_t *mask = maskCursors[other];
  if (isHome(other)) {
    float *&sum = homeCursors[other];
    const float *begin = sum;
    for (int32_t number : of.askedBy(other))
      if (uint32_t nodes = *mask++) {
        of.sums.add(number, first + std::countr_zero(nodes), sum);
        sum += dim;
      }
    sum += messageFloats((sum - begin) / dim, dim) - (sum - begin);
  }
  bool isMore = covers[other].size() > 1 || visits(of) > 1;
  for (size_t node = 0; isMore && node < covers[other].size(); ++node) {
    mask = maskCursors[other]; // once more for each node
    for (size_t fetch = 0; fetch < visits(of); ++fetch)
      for (int32_t number : of.askedBy(visit(fetch, other)))
        if (packedMask(*mask++, isHome(visit(fetch, other))) >> node & 1) {
          of.sums.add(number, first + static_cast<int32_t>(node), packedCursors[other]);
          packedCursors[other] += dim;
        }
  }
  maskCursors[other] = mask;
}

/// This rank's own sums.
void RowExchange::Impl::addOwnLeaves(int32_t store, int32_t first) {
  OwnedRows &of = owned[store];
  AskedRows &from = asked[store];
  std::span<const TreeSums::Node> nodes = from.sums.getNodes();
  from.sumOf.resize(from.touchedBy.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
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
