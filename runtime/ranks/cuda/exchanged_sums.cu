//===- exchanged_sums.cu - Sums of rows on a device ------------------------===//
//
// Of RowExchange: nodes of the tree over portions, what ranks send each other of
// them, and the sums that rows are updated by.
//
//===----------------------------------------------------------------------===//

#include "row_exchange.h"

#include <algorithm>

namespace genrec::rt::cuda {

/// Room for the sums of one node, all zero and without flags.
float *RowExchange::takeNode() {
  const int64_t floats = sumBegins.back() + 1;
  if (!nodeMemory.empty() && nodeMemory.front().capacity() < floats) {
    for (DeviceArray<float> &memory : nodeMemory) // all are as large
      memory.release(queue);
    nodeMemory.clear();
    freeNodes.clear();
  }
  if (freeNodes.empty()) {
    const int64_t room = nodeMemory.empty() ? roomFor(floats) : nodeMemory.front().capacity();
    freeNodes.push_back(nodeMemory.emplace_back("exchange.sums").ensure(room, queue));
  }
  float *node = freeNodes.back();
  freeNodes.pop_back();
  GENREC_CUDA_CHECK(cudaMemsetAsync(node, 0, static_cast<size_t>(floats) * 4, queue));
  return node;
}

void RowExchange::beginPortion(int32_t portion) { open[portion - portions.first] = takeNode(); }

void RowExchange::contribute(int32_t portion, int32_t store, const genrec_domain *touchedRows,
                             int64_t capacity, float *const *of, const float *sums) {
  placeSums(cells, store, touchedRows, capacity, of, values.data(), valueBegins.back(), sums,
            stores[store].dim, open[portion - portions.first], queue);
}

void RowExchange::endPortion(int32_t portion) {
  nodes.push_back({{portion, 0}, std::exchange(open[portion - portions.first], nullptr)});
  while (nodes.size() > 1 && areSiblings(nodes[nodes.size() - 2], nodes.back())) {
    Node &left = nodes[nodes.size() - 2];
    mergeSums(cells, left.sums, nodes.back().sums, queue);
    freeNodes.push_back(nodes.back().sums);
    nodes.pop_back();
    ++left.level;
  }
}

/// Sends node `number` of this rank, where it has so many, and gets those of others from `to` on:
/// sums of rows that ranks own, or of replicas. Returns their end.
float *RowExchange::exchangeNode(size_t number, bool ofReplicas, float *to) {
  std::vector<FloatPart> send(ranks), receive(ranks);
  for (int32_t other = 0; other < ranks; ++other) {
    const int32_t section = ofReplicas ? ranks : other, asker = ofReplicas ? ranks + other : other;
    const bool isOwn = other == rank;
    if (number < nodes.size() && isOwn)
      leafMessages[asker].push_back(nodes[number].sums + sumBegins[section]);
    else if (number < nodes.size())
      send[other] = askedSums[section].part(nodes[number].sums + sumBegins[section]);
    if (isOwn || number >= covers[other].size())
      continue;
    leafMessages[asker].push_back(to);
    receive[other] = servedSums[asker].part(to);
    to += servedSums[asker].floats();
  }
  if (ranks > 1 && (ofReplicas || hasShards))
    traffic.gradientBytes += sumMessages.exchange(comm, send, receive, queue);
  return to;
}

void RowExchange::exchangeNode(size_t number) {
  int64_t floats = 0;
  for (int32_t asker = 0; asker < askers; ++asker)
    if (asker % ranks != rank && number < covers[asker % ranks].size())
      floats += servedSums[asker].floats();
  if (received.size() == number)
    received.emplace_back("exchange.received_sums");
  float *to = ranks > 1 ? received[number].ensure(roomFor(floats), queue) : nullptr;
  to = exchangeNode(number, false, to);
  if (askers > ranks)
    exchangeNode(number, true, to);
}

/// The nodes of all ranks, rank by rank.
std::vector<LeafNode> RowExchange::listLeaves() const {
  std::vector<LeafNode> leaves;
  for (int32_t other = 0; other < ranks; ++other)
    for (size_t node = 0; node < covers[other].size(); ++node) {
      LeafNode &leaf = leaves.emplace_back();
      leaf.firstPortion = covers[other][node].first;
      for (int32_t kind = 0; kind < askers / ranks; ++kind)
        leaf.messages[kind] = leafMessages[kind * ranks + other][node];
    }
  return leaves;
}

OwnedRows RowExchange::describeOwned() {
  std::vector<int64_t> begins, flags, dims;
  std::vector<int32_t> leafFirsts{0};
  for (const ExchangedStore &store : stores)
    dims.push_back(store.dim);
  for (const MessageLayout &layout : servedSums) {
    begins.insert(begins.end(), layout.begins.begin(), layout.begins.end());
    flags.insert(flags.end(), layout.flags.begin(), layout.flags.end());
  }
  for (const std::vector<PortionNode> &cover : covers)
    leafFirsts.push_back(leafFirsts.back() + static_cast<int32_t>(cover.size()));
  OwnedRows owned;
  owned.cells = askedCells;
  owned.distinct = {wantedInOrder, ownedFirsts.data(), ownedTotal.data(), storeCount()};
  owned.order = ownedOrder.data();
  owned.segments = segments.data();
  owned.from = askedRows.data();
  owned.rows = rows.data();
  owned.begins = tables.add(begins, queue);
  owned.flags = tables.add(flags, queue);
  owned.dims = tables.add(dims, queue);
  owned.leaves = tables.add(listLeaves(), queue);
  owned.leafFirsts = tables.add(leafFirsts, queue);
  owned.widest = widest;
  return owned;
}

void RowExchange::collect() {
  leafMessages.assign(askers, {});
  size_t most = 0;
  for (const std::vector<PortionNode> &cover : covers)
    most = std::max(most, cover.size());
  for (size_t node = 0; node < most; ++node)
    exchangeNode(node);
  const int64_t room = wanted.back();
  const OwnedUpdates to = layOutUpdates();
  describeUpdates();
  if (room == 0)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(counts.data(), 0, static_cast<size_t>(storeCount()) * 8, queue));
  else {
    const OwnedRows owned = describeOwned();
    findTouched(owned, touched.ensure(roomFor(room), queue), queue);
    flagRanks.run(touched.data(), room, touchedRanks.ensure(roomFor(room), queue),
                  touchedTotal.ensure(1, queue), queue);
    addLeaves(owned, owners, rank, touched.data(), touchedRanks.data(), touchedTotal.data(), to,
              queue);
  }
}

/// Places for as many rows of each store as its capacity says.
OwnedUpdates RowExchange::layOutUpdates() {
  std::vector<int64_t> firsts{0}, begins{0};
  for (int64_t store = 0; store < storeCount(); ++store) {
    int64_t &capacity = updates[store].capacity;
    capacity = std::max(capacity, capacityBucket(firstWanted(store + 1) - firstWanted(store)));
    firsts.push_back(firsts.back() + capacity);
    begins.push_back(begins.back() + aligned(capacity * stores[store].dim));
  }
  updateRows.ensure(roomFor(firsts.back()), queue);
  updateSums.ensure(roomFor(begins.back()), queue);
  if (askers > ranks)
    updateOwned.ensure(roomFor(firsts.back()), queue);
  for (int64_t store = 0; store < storeCount(); ++store) {
    Update &update = updates[store];
    update.rows = updateRows.data() + firsts[store];
    update.sums = updateSums.data() + begins[store];
    update.isOwned = askers > ranks ? updateOwned.data() + firsts[store] : nullptr;
  }
  return {tables.add(firsts, queue),
          tables.add(begins, queue),
          updateRows.data(),
          updateSums.data(),
          counts.ensure(storeCount() + 1, queue),
          askers > ranks ? updateOwned.data() : nullptr};
}

/// Each row of a store has one term: its sum.
void RowExchange::describeUpdates() {
  int64_t room = 0;
  for (const Update &update : updates)
    room = std::max(room, roomFor(update.capacity));
  if (iota.capacity() < room) {
    fillNumbers(iota.ensure(room, queue), room, queue);
    fillNumbers(narrowIota.ensure(room, queue), room, queue);
  }
  std::vector<SegmentSums> segments(stores.size());
  for (int64_t store = 0; store < storeCount(); ++store) {
    Update &update = updates[store];
    update.numbers = iota.data();
    SegmentSums &sums = segments[store];
    sums.dim = sums.terms.ld = stores[store].dim;
    sums.terms.gradients = update.sums;
    sums.terms.order = narrowIota.data();
    sums.offsets = iota.data();
  }
  auto *described = const_cast<SegmentSums *>(tables.add(segments, queue));
  for (int64_t store = 0; store < storeCount(); ++store)
    updates[store].segments = described + store;
}

DeviceRowExchange::Update RowExchange::getUpdate(int32_t store) const { return updates[store]; }

void RowExchange::describe(int32_t store, genrec_domain *owned) {
  describeRows(owned, counts.data() + store, queue);
}

} // namespace genrec::rt::cuda
