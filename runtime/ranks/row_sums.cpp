//===- row_sums.cpp - sums of gradients to the owners of their rows -------===//

#include "row_exchange_impl.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

using namespace genrec::rt;

//===----------------------------------------------------------------------===//
// This rank's portions
//===----------------------------------------------------------------------===//

int64_t RowExchange::Impl::positionOf(int32_t store, const float *row) const {
  const std::vector<AskedRows::Section> &sorted = asked[store].sorted;
  auto after = std::upper_bound(
      sorted.begin(), sorted.end(), row,
      [](const float *row, const auto &section) { return std::less<>()(row, section.begin); });
  if (after != sorted.begin()) {
    const AskedRows::Section &section = *--after;
    int64_t floats = row - section.begin, position = floats / stores[store].dim;
    if (position < section.count && position * stores[store].dim == floats)
      return section.first + position;
  }
  throw Error("a row that is touched in store " + std::to_string(store) +
              " was not fetched in this step");
}

void RowExchange::Impl::skipPortions(AskedRows &from, int32_t until) {
  for (; from.nextPortion < until; ++from.nextPortion) {
    from.sums.addNode({from.nextPortion, 0});
    from.sums.merge(static_cast<int64_t>(from.touchedBy.size()));
  }
}

void RowExchange::Impl::contribute(int32_t store, int32_t portion, std::span<float *const> rows,
                                   const float *sums) {
  checkStore(store);
  AskedRows &from = asked[store];
  if (isCollected || portion < from.nextPortion || portion >= portions.first + portions.count)
    throw Error("portion " + std::to_string(portion) + " of store " + std::to_string(store) +
                    " is not next: this rank has portions " + std::to_string(portions.first) +
                    " to " + std::to_string(portions.first + portions.count - 1),
                "give each portion once, in their order, before 'collect'");
  skipPortions(from, portion);
  int64_t dim = stores[store].dim;
  std::vector<TreeSums::Entry> &entries = from.sums.addNode({portion, 0});
  for (size_t i = 0; i < rows.size(); ++i) {
    int64_t position = positionOf(store, rows[i]);
    if (from.touchedBy[position] == portion)
      throw Error("portion " + std::to_string(portion) + " has two sums for one row of store " +
                  std::to_string(store));
    from.touchedBy[position] = portion;
    float *sum = from.sums.takeSum();
    std::memcpy(sum, sums + i * dim, dim * sizeof(float));
    entries.push_back({static_cast<int32_t>(position), sum});
  }
  from.sums.merge(static_cast<int64_t>(from.touchedBy.size()));
  from.nextPortion = portion + 1;
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

void RowExchange::Impl::collect() {
  if (isCollected)
    throw Error("'collect' is called twice in a step", "call 'begin' before the next step");
  isCollected = true;
  for (AskedRows &from : asked) {
    skipPortions(from, portions.first + portions.count);
    from.masks.assign(from.touchedBy.size(), 0);
    std::span<const TreeSums::Node> nodes = from.sums.getNodes();
    for (size_t node = 0; node < nodes.size(); ++node)
      for (const TreeSums::Entry &entry : nodes[node].entries)
        from.masks[entry.row] |= uint32_t(1) << node;
  }
  exchangeMasks();
  exchangeSums();
}

/// For each row that a rank asked for, which nodes of the tree that rank has it in: store by store,
/// by position.
void RowExchange::Impl::exchangeMasks() {
  sendMasks.layOut([&](int32_t other) {
    int64_t rows = 0;
    for (const AskedRows &from : asked)
      for (int64_t fetch = 0; fetch < fetches; ++fetch)
        rows += from.sections[visit(fetch, other)].count;
    return rows;
  });
  receiveMasks.layOut([&](int32_t other) {
    size_t rows = 0;
    for (const OwnedRows &of : owned)
      for (int64_t fetch = 0; fetch < fetches; ++fetch)
        rows += of.askedBy(visit(fetch, other)).size();
    return static_cast<int64_t>(rows);
  });
  for (int32_t other = 0; other < ranks; ++other) {
    uint32_t *to = sendMasks.begin(other);
    for (const AskedRows &from : asked)
      for (int64_t fetch = 0; fetch < fetches; ++fetch) {
        const AskedRows::Section &section = from.sections[visit(fetch, other)];
        to = std::copy_n(from.masks.data() + section.first, section.count, to);
      }
  }
  exchange(sendMasks, receiveMasks);
}

/// The sums of the nodes: store by store, node by node, by position.
void RowExchange::Impl::exchangeSums() {
  sendSums.layOut([&](int32_t other) {
    int64_t floats = 0;
    for (int32_t store = 0; store < storeCount(); ++store)
      for (int64_t fetch = 0; fetch < fetches; ++fetch) {
        const AskedRows::Section &section = asked[store].sections[visit(fetch, other)];
        for (int64_t position = section.first; position < section.first + section.count; ++position)
          floats += std::popcount(asked[store].masks[position]) * stores[store].dim;
      }
    return floats;
  });
  receiveSums.layOut([&](int32_t other) {
    int64_t floats = 0;
    const uint32_t *mask = receiveMasks.begin(other);
    for (int32_t store = 0; store < storeCount(); ++store)
      for (int64_t fetch = 0; fetch < fetches; ++fetch)
        for (size_t left = owned[store].askedBy(visit(fetch, other)).size(); left; --left)
          floats += std::popcount(*mask++) * stores[store].dim;
    return floats;
  });
  for (int32_t other = 0; other < ranks; ++other)
    sumCursors[other] = sendSums.begin(other);
  for (int32_t store = 0; store < storeCount(); ++store)
    packSums(store);
  exchange(sendSums, receiveSums);
  for (int32_t other = 0; other < ranks; ++other) {
    sumCursors[other] = receiveSums.begin(other);
    maskCursors[other] = receiveMasks.begin(other);
  }
  for (int32_t store = 0; store < storeCount(); ++store)
    addSums(store);
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
      const AskedRows::Section &section = from.sections[i];
      float *&to = sumCursors[i % ranks];
      for (int64_t position = section.first; position < section.first + section.count; ++position)
        if (from.masks[position] >> node & 1) {
          std::memcpy(to, from.sumOf[position], dim * sizeof(float));
          to += dim;
        }
    }
  }
}

/// Adds the rest of the tree, from the nodes of all ranks in the order of portions.
void RowExchange::Impl::addSums(int32_t store) {
  OwnedRows &of = owned[store];
  int64_t dim = stores[store].dim;
  for (int32_t other = 0; other < ranks; ++other) {
    const uint32_t *mask = nullptr;
    for (size_t node = 0; node < covers[other].size(); ++node) {
      std::vector<TreeSums::Entry> &entries = of.sums.addNode(covers[other][node]);
      mask = maskCursors[other]; // once more for each node
      for (int64_t fetch = 0; fetch < fetches; ++fetch)
        for (int32_t number : of.askedBy(visit(fetch, other)))
          if (*mask++ >> node & 1) {
            entries.push_back({number, sumCursors[other]});
            sumCursors[other] += dim;
          }
      of.sums.merge(of.keys.size());
    }
    maskCursors[other] = mask;
  }
  of.sums.mergeAll(of.keys.size());
  const std::vector<TreeSums::Entry> &entries = of.sums.getNodes()[0].entries;
  of.updateSums.ensure(static_cast<int64_t>(entries.size()) * dim);
  for (size_t i = 0; i < entries.size(); ++i) {
    of.updateRows.push_back(of.rows[entries[i].row]);
    std::memcpy(&of.updateSums[i * dim], entries[i].sum, dim * sizeof(float));
  }
}
