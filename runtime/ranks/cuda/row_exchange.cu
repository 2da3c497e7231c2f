//===- row_exchange.cu - Rows of portions and ranks on a device -----------===//

#include "row_exchange.h"

#include "genrec_rt/kernels/cuda/rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace genrec::rt::cuda {

namespace {

/// Messages and their parts begin where a cache line may, in floats.
constexpr int64_t kAlign = 16;
int64_t aligned(int64_t floats) { return (floats + kAlign - 1) / kAlign * kAlign; }

} // namespace

RowExchange::RowExchange(Communicator &comm, std::vector<DeviceExchangedStore> given,
                         int32_t allPortions, RowTravel travel, const cudaStream_t &queue)
    : comm(comm), stores(std::move(given)), ranks(comm.getSize()), rank(comm.getRank()),
      portions(getPortions(allPortions, rank, ranks)), queue(queue),
      valueMessages("exchange.values", travel.bf16Values),
      sumMessages("exchange.sums", travel.bf16Sums) {
  for (int32_t other = 0; other < ranks; ++other)
    covers.push_back(getNodes(getPortions(allPortions, other, ranks)));
  for (const DeviceExchangedStore &store : stores)
    widest = std::max(widest, store.dim);
  firstsOnHost = static_cast<int64_t *>(
      allocateNamedHost("exchange.counts", (cell(ranks, 0) + 1) * int64_t(sizeof(int64_t))));
  updates.resize(stores.size());
}

RowExchange::~RowExchange() { freeNamedHost(firstsOnHost); }

void RowExchange::begin() {
  tables.reset();
  requests.clear();
  entries = 0;
  for (const Node &node : nodes)
    freeNodes.push_back(node.sums);
  nodes.clear();
  for (float *sums : open)
    if (sums)
      freeNodes.push_back(sums);
  open.assign(portions.count, nullptr);
}

RowExchange::MessageLayout RowExchange::layOutValues(const int64_t *rowCounts) const {
  MessageLayout layout;
  layout.begins.resize(stores.size());
  for (bool isBf16 : {false, true})
    for (int64_t store = 0; store < storeCount(); ++store)
      if (stores[store].isBf16 == isBf16) {
        layout.begins[store] = layout.floats();
        (isBf16 ? layout.others : layout.values) +=
            aligned(rowCounts[store] * stores[store].valueFloats());
      }
  return layout;
}

RowExchange::MessageLayout RowExchange::layOutSums(const int64_t *rowCounts) const {
  MessageLayout layout;
  for (int64_t store = 0; store < storeCount(); ++store) {
    layout.begins.push_back(layout.values);
    layout.values += aligned(rowCounts[store] * stores[store].dim);
  }
  int64_t flag = layout.values * static_cast<int64_t>(sizeof(float));
  for (int64_t store = 0; store < storeCount(); ++store) {
    layout.flags.push_back(flag);
    flag += rowCounts[store];
  }
  layout.others = aligned((flag + 3) / static_cast<int64_t>(sizeof(float))) - layout.values;
  return layout;
}

//===----------------------------------------------------------------------===//
// Keys to their owners
//===----------------------------------------------------------------------===//

int64_t *RowExchange::layOutKeys(std::span<const DeviceRowRequest> given) {
  requests.assign(given.begin(), given.end());
  storeEntries.assign(stores.size() + 1, 0);
  for (const DeviceRowRequest &request : requests)
    storeEntries[request.store + 1] += request.count;
  std::partial_sum(storeEntries.begin(), storeEntries.end(), storeEntries.begin());
  entries = storeEntries.back();
  constexpr int64_t kMost = int64_t(1) << 31;
  if (entries >= kMost)
    throw Error("the portions of a rank look up " + std::to_string(entries) +
                    " ids in one step, more than " + std::to_string(kMost - 1),
                "use a smaller batch");
  return keys.ensure(roomFor(entries), queue);
}

/// Distinct keys, by cell, and where each cell begins.
void RowExchange::numberKeys() {
  const int64_t cellCount = cell(ranks, 0), room = roomFor(entries);
  distinctKeys.ensure(room, queue);
  distinctFirsts.ensure(storeCount() + 1, queue);
  groupedKeys.ensure(room, queue);
  cellFirsts.ensure(cellCount + 1, queue);
  for (auto *array : {&numbers, &cellOf, &order, &positionOf})
    array->ensure(room, queue);
  total.ensure(1, queue);
  markNone(keys.data(), entries, queue);
  UniqueResult result;
  result.ids = distinctKeys.data();
  result.inverse = numbers.data();
  result.offsets = distinctFirsts.data();
  result.total = total.data();
  unique.run(keys.data(), entries, tables.add(storeEntries, queue), storeCount(), result, queue);
  std::vector<uint64_t> members;
  std::vector<int64_t> firstMembers{0}, keyBits;
  for (const DeviceExchangedStore &store : stores) {
    members.insert(members.end(), store.members.begin(), store.members.end());
    firstMembers.push_back(static_cast<int64_t>(members.size()));
    keyBits.push_back(store.keyBits);
  }
  const DistinctKeys distinct{distinctKeys.data(), distinctFirsts.data(), total.data(),
                              storeCount()};
  const KeyOwners owners{tables.add(members, queue), tables.add(firstMembers, queue),
                         tables.add(keyBits, queue), ranks};
  findCells(distinct, entries, owners, cellOf.data(), queue);
  stableOrder.run(cellOf.data(), entries, cellCount + 1, order.data(), queue);
  groupKeys(distinct, entries, cellOf.data(), order.data(), cellCount, positionOf.data(),
            groupedKeys.data(), cellFirsts.data(), queue);
}

/// What this rank asks others for, and they this one.
void RowExchange::countKeys(Communicator &on) {
  const auto cellCount = static_cast<size_t>(cell(ranks, 0));
  GENREC_CUDA_CHECK(cudaMemcpyAsync(firstsOnHost, cellFirsts.data(),
                                    (cellCount + 1) * sizeof(int64_t), cudaMemcpyDeviceToHost,
                                    queue));
  waitForStream(queue);
  positions.assign(firstsOnHost, firstsOnHost + cellCount + 1);
  std::vector<int64_t> asks(cellCount);
  for (size_t i = 0; i < cellCount; ++i)
    asks[i] = positions[i + 1] - positions[i];
  served = asks;
  traffic.asked += positions.back();
  if (ranks > 1) {
    std::vector<SendPart> send(ranks);
    std::vector<ReceivePart> receive(ranks);
    const auto bytes = static_cast<int64_t>(stores.size() * sizeof(int64_t));
    for (int32_t other = 0; other < ranks; ++other) {
      send[other] = {asks.data() + cell(other, 0), bytes};
      receive[other] = {served.data() + cell(other, 0), bytes};
    }
    on.exchange(send, receive);
  }
}

/// Where rows are: of this rank by owner, of others by store and who asks.
void RowExchange::layOutMessages() {
  for (auto *layouts : {&askedValues, &askedSums, &servedValues, &servedSums})
    layouts->clear();
  valueBegins.assign(1, 0);
  sumBegins.assign(1, 0);
  std::vector<int64_t> asks(stores.size()), values, rowFloats, begins, flags, dims;
  for (int32_t other = 0; other < ranks; ++other) {
    for (int64_t store = 0; store < storeCount(); ++store)
      asks[store] = positions[cell(other, store) + 1] - positions[cell(other, store)];
    const MessageLayout &ofValues = askedValues.emplace_back(layOutValues(asks.data())),
                        &ofSums = askedSums.emplace_back(layOutSums(asks.data()));
    servedValues.push_back(layOutValues(served.data() + cell(other, 0)));
    servedSums.push_back(layOutSums(served.data() + cell(other, 0)));
    const int64_t firstFlag = sumBegins.back() * static_cast<int64_t>(sizeof(float));
    for (int64_t store = 0; store < storeCount(); ++store) {
      values.push_back(valueBegins.back() + ofValues.begins[store]);
      begins.push_back(sumBegins.back() + ofSums.begins[store]);
      flags.push_back(firstFlag + ofSums.flags[store]);
    }
    valueBegins.push_back(valueBegins.back() + ofValues.floats());
    sumBegins.push_back(sumBegins.back() + ofSums.floats());
  }
  for (const DeviceExchangedStore &store : stores) {
    rowFloats.push_back(store.valueFloats());
    dims.push_back(store.dim);
  }
  wanted.assign(1, 0);
  for (int64_t store = 0; store < storeCount(); ++store)
    for (int32_t other = 0; other < ranks; ++other)
      wanted.push_back(wanted.back() + served[cell(other, store)]);
  traffic.served += wanted.back();
  cells = {tables.add(positions, queue),
           tables.add(values, queue),
           tables.add(rowFloats, queue),
           tables.add(begins, queue),
           tables.add(flags, queue),
           tables.add(dims, queue),
           cell(ranks, 0),
           storeCount(),
           positions.back(),
           widest};
}

void RowExchange::exchangeKeys(Communicator &on) {
  wantedInOrder = groupedKeys.data();
  if (ranks == 1)
    return;
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  std::vector<int64_t> from{0}, to;
  int64_t *keysIn = receivedKeys.ensure(roomFor(wanted.back()), queue);
  for (int32_t other = 0; other < ranks; ++other) {
    const int64_t first = positions[cell(other, 0)], before = from.back();
    send[other] = {groupedKeys.data() + first, (positions[cell(other + 1, 0)] - first) * 8};
    for (int64_t store = 0; store < storeCount(); ++store) {
      from.push_back(from.back() + served[cell(other, store)]);
      to.push_back(wanted[store * ranks + other]);
    }
    receive[other] = {keysIn + before, (from.back() - before) * 8};
    traffic.idBytes += other == rank ? 0 : receive[other].bytes;
  }
  on.exchange(send, receive, onDevice());
  wantedInOrder = wantedKeys.ensure(roomFor(wanted.back()), queue);
  reorderKeys(keysIn, tables.add(from, queue), tables.add(to, queue), cell(ranks, 0), wanted.back(),
              wantedKeys.data(), queue);
}

//===----------------------------------------------------------------------===//
// Values back
//===----------------------------------------------------------------------===//

void RowExchange::findWanted(const FindRows &find) {
  float **to = rows.ensure(roomFor(wanted.back()), queue);
  for (int64_t store = 0; store < storeCount(); ++store) {
    const int64_t first = wanted[store * ranks], count = wanted[(store + 1) * ranks] - first;
    if (count > 0)
      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);
  }
}

/// This rank's own rows go where they are read.
void RowExchange::exchangeValues(Communicator &on) {
  values.ensure(roomFor(valueBegins.back()), queue);
  std::vector<FloatPart> send(ranks), receive(ranks);
  int64_t floats = 0;
  for (int32_t other = 0; other < ranks; ++other)
    floats += other == rank ? 0 : servedValues[other].floats();
  float *message = sent.ensure(roomFor(floats), queue);
  if (floats > 0) // what aligns stores is sent, too
    GENREC_CUDA_CHECK(cudaMemsetAsync(message, 0, static_cast<size_t>(floats) * 4, queue));
  for (int32_t other = 0; other < ranks; ++other) {
    const bool isOwn = other == rank;
    float *to = isOwn ? values.data() + valueBegins[rank] : message;
    for (int64_t store = 0; store < storeCount(); ++store)
      gatherRows<float>(rows.data() + wanted[store * ranks + other], served[cell(other, store)],
                        stores[store].valueFloats(), to + servedValues[other].begins[store],
                        stores[store].valueFloats(), queue);
    if (isOwn)
      continue;
    send[other] = servedValues[other].part(message);
    receive[other] = askedValues[other].part(values.data() + valueBegins[other]);
    message += servedValues[other].floats();
  }
  if (ranks > 1)
    traffic.rowBytes += valueMessages.exchange(on, send, receive, queue);
}

void RowExchange::giveAllAddresses() {
  int64_t first = 0;
  for (const DeviceRowRequest &request : requests) {
    giveAddresses(cells, numbers.data() + first, request.count, cellOf.data(), positionOf.data(),
                  values.data(), request.zeros, request.rows, queue);
    first += request.count;
  }
}

void RowExchange::ask(Communicator &on) {
  numberKeys();
  countKeys(on);
  layOutMessages();
  exchangeKeys(on);
}

void RowExchange::bring(Communicator &on, const FindRows &find) {
  findWanted(find);
  exchangeValues(on);
  giveAllAddresses();
}

//===----------------------------------------------------------------------===//
// Sums of gradients
//===----------------------------------------------------------------------===//

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

/// Sends node `number` of this rank, where it has so many, and gets those of others.
void RowExchange::exchangeNode(size_t number) {
  std::vector<FloatPart> send(ranks), receive(ranks);
  int64_t floats = 0;
  auto comesFrom = [&](int32_t other) { return other != rank && number < covers[other].size(); };
  for (int32_t other = 0; other < ranks; ++other)
    floats += comesFrom(other) ? servedSums[other].floats() : 0;
  if (received.size() == number)
    received.emplace_back("exchange.received_sums");
  float *to = ranks > 1 ? received[number].ensure(roomFor(floats), queue) : nullptr;
  for (int32_t other = 0; other < ranks; ++other) {
    if (other != rank && number < nodes.size())
      send[other] = askedSums[other].part(nodes[number].sums + sumBegins[other]);
    if (comesFrom(other)) {
      leafMessages[other].push_back(to);
      receive[other] = servedSums[other].part(to);
      to += servedSums[other].floats();
    }
  }
  if (number < nodes.size())
    leafMessages[rank].push_back(nodes[number].sums + sumBegins[rank]);
  if (ranks > 1)
    traffic.gradientBytes += sumMessages.exchange(comm, send, receive, queue);
}

/// Numbers the distinct rows that ranks ask for.
OwnedRows RowExchange::describeOwned() {
  const int64_t room = wanted.back();
  std::vector<int64_t> storeFirsts, begins, flags, dims;
  std::vector<LeafNode> leaves;
  std::vector<int64_t> updateBegins{0};
  for (int64_t store = 0; store <= storeCount(); ++store)
    storeFirsts.push_back(wanted[store * ranks]);
  for (int64_t store = 0; store < storeCount(); ++store) {
    dims.push_back(stores[store].dim);
    const int64_t count = storeFirsts[store + 1] - storeFirsts[store];
    updateBegins.push_back(updateBegins.back() + aligned(count * stores[store].dim));
  }
  for (int32_t other = 0; other < ranks; ++other) {
    const MessageLayout &layout = servedSums[other];
    begins.insert(begins.end(), layout.begins.begin(), layout.begins.end());
    flags.insert(flags.end(), layout.flags.begin(), layout.flags.end());
    for (size_t node = 0; node < covers[other].size(); ++node)
      leaves.push_back({leafMessages[other][node], covers[other][node].first, other});
  }
  UniqueResult result;
  result.inverse = ownedNumbers.ensure(roomFor(room), queue);
  result.offsets = ownedFirsts.ensure(storeCount() + 1, queue);
  result.total = ownedTotal.ensure(1, queue);
  unique.run(wantedInOrder, room, tables.add(storeFirsts, queue), storeCount(), result, queue);
  updateSums.ensure(roomFor(updateBegins.back()), queue);
  OwnedRows owned;
  owned.distinct = {nullptr, ownedFirsts.data(), ownedTotal.data(), storeCount()};
  owned.numbers = ownedNumbers.data();
  owned.firsts = tables.add(wanted, queue);
  owned.rows = rows.data();
  owned.begins = tables.add(begins, queue);
  owned.flags = tables.add(flags, queue);
  owned.dims = tables.add(dims, queue);
  owned.updates = tables.add(updateBegins, queue);
  owned.leaves = tables.add(leaves, queue);
  owned.leafCount = static_cast<int32_t>(leaves.size());
  owned.places = places.ensure(roomFor(room) * ranks, queue);
  owned.asked = room;
  owned.stores = storeCount();
  owned.widest = widest;
  owned.ranks = ranks;
  for (int64_t store = 0; store < storeCount(); ++store)
    updates[store].sums = updateSums.data() + updateBegins[store];
  return owned;
}

void RowExchange::collect() {
  leafMessages.assign(ranks, {});
  size_t most = 0;
  for (const std::vector<PortionNode> &cover : covers)
    most = std::max(most, cover.size());
  for (size_t node = 0; node < most; ++node)
    exchangeNode(node);
  const int64_t room = wanted.back();
  counts.ensure(storeCount() + 1, queue);
  updateRows.ensure(roomFor(room), queue);
  if (room == 0)
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(counts.data(), 0, static_cast<size_t>(storeCount()) * 8, queue));
  else {
    const OwnedRows owned = describeOwned();
    findTouched(owned, touched.ensure(roomFor(room), queue), queue);
    flagRanks.run(touched.data(), room, touchedRanks.ensure(roomFor(room), queue),
                  touchedTotal.ensure(1, queue), queue);
    addLeaves(owned, touched.data(), touchedRanks.data(), touchedTotal.data(), updateRows.data(),
              updateSums.data(), counts.data(), queue);
  }
  describeUpdates();
}

void RowExchange::describeUpdates() {
  const int64_t room = roomFor(wanted.back());
  if (iota.capacity() < room) {
    fillNumbers(iota.ensure(room, queue), room, queue);
    fillNumbers(narrowIota.ensure(room, queue), room, queue);
  }
  std::vector<SegmentSums> segments(stores.size());
  for (int64_t store = 0; store < storeCount(); ++store) {
    Update &update = updates[store];
    const int64_t first = wanted[store * ranks];
    update.most = wanted[(store + 1) * ranks] - first;
    update.rows = updateRows.data() + first;
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
