//===- row_exchange.cu - Rows of portions and ranks on a device -----------===//

#include "row_exchange.h"

#include "genrec_rt/kernels/cuda/rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace genrec::rt::cuda {

RowExchange::RowExchange(Communicator &comm, std::vector<ExchangedStore> given, int32_t allPortions,
                         RowTravel travel, const cudaStream_t &queue)
    : comm(comm), travel(travel), stores(std::move(given)), ranks(comm.getSize()),
      rank(comm.getRank()), portions(getPortions(allPortions, rank, ranks)), queue(queue),
      valueMessages("exchange.values", travel.bf16Values),
      sumMessages("exchange.sums", travel.bf16Sums) {
  for (int32_t other = 0; other < ranks; ++other)
    covers.push_back(getNodes(getPortions(allPortions, other, ranks)));
  for (const ExchangedStore &store : stores)
    widest = std::max(widest, store.dim);
  firstsOnHost = static_cast<int64_t *>(
      allocateNamedHost("exchange.counts", (cellCount() + 2) * int64_t(sizeof(int64_t))));
  foundOnHost = static_cast<int64_t *>(allocateNamedHost("exchange.found", sizeof(int64_t)));
  updates.resize(stores.size());
  noteReplicas();
}

RowExchange::~RowExchange() {
  freeNamedHost(firstsOnHost);
  freeNamedHost(foundOnHost);
}

void RowExchange::noteReplicas() {
  hasShards = std::ranges::any_of(stores, &ExchangedStore::hasShards);
}

void RowExchange::setReplicated(std::span<const std::vector<char>> ofStores) {
  for (size_t store = 0; store < stores.size(); ++store)
    stores[store].replicated = ofStores[store];
  noteReplicas();
}

void RowExchange::begin() {
  tables.reset();
  requests.clear();
  entries = 0;
  isFoundTold = false;
  for (const Node &node : nodes)
    freeNodes.push_back(node.sums);
  nodes.clear();
  for (float *sums : open)
    if (sums)
      freeNodes.push_back(sums);
  open.assign(portions.count, nullptr);
}

void RowExchange::end() {
  if (isFoundTold)
    traffic.found += *foundOnHost;
  isFoundTold = false;
}

std::vector<int64_t> RowExchange::countAsked(int32_t store) const {
  const ExchangedStore &of = stores[store];
  std::vector<int64_t> asked(of.members.size()), keysOfCell;
  for (int32_t section = 0; section <= ranks; ++section) {
    const int64_t which = cell(section, store), count = countRows(which);
    if (of.members.size() == 1 || count == 0) {
      asked.front() += count;
      continue;
    }
    keysOfCell.resize(static_cast<size_t>(count));
    GENREC_CUDA_CHECK(cudaMemcpyAsync(keysOfCell.data(), groupedKeys.data() + positions[which],
                                      static_cast<size_t>(count) * sizeof(int64_t),
                                      cudaMemcpyDeviceToHost, queue));
    waitForStream(queue);
    for (const int64_t key : keysOfCell)
      ++asked[static_cast<size_t>(key >> of.keyBits)];
  }
  return asked;
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

/// The keys of all entries by number: distinct ones, unless each travels.
DistinctKeys RowExchange::numberKeys() {
  const int64_t *entriesOf = tables.add(storeEntries, queue);
  numbers.ensure(roomFor(entries), queue);
  if (!travel.requestersDeduplicate) {
    fillNumbers(numbers.data(), entries, queue);
    const std::vector<uint32_t> all{static_cast<uint32_t>(entries)};
    return {keys.data(), entriesOf, tables.add(all, queue), storeCount()};
  }
  UniqueResult result;
  result.ids = distinctKeys.ensure(roomFor(entries), queue);
  result.inverse = numbers.data();
  result.offsets = distinctFirsts.ensure(storeCount() + 1, queue);
  result.total = total.ensure(1, queue);
  unique.reserve(roomFor(entries), queue);
  unique.run(keys.data(), entries, entriesOf, storeCount(), result, queue);
  return {result.ids, result.offsets, result.total, storeCount()};
}

KeyOwners RowExchange::describeOwners() {
  std::vector<uint64_t> members;
  std::vector<int32_t> sections;
  std::vector<int64_t> firstMembers{0}, keyBits;
  for (const ExchangedStore &store : stores) {
    members.insert(members.end(), store.members.begin(), store.members.end());
    sections.resize(members.size(), -1);
    for (size_t member = 0; member < store.replicated.size(); ++member)
      if (store.replicated[member])
        sections[firstMembers.back() + member] = sharesReplicas(store) ? ranks : rank;
    firstMembers.push_back(static_cast<int64_t>(members.size()));
    keyBits.push_back(store.keyBits);
  }
  return {tables.add(members, queue), tables.add(sections, queue), tables.add(firstMembers, queue),
          tables.add(keyBits, queue), ranks};
}

/// Numbered keys, by cell, and where each cell begins.
void RowExchange::sortKeys() {
  const int64_t room = roomFor(entries);
  groupedKeys.ensure(room, queue);
  cellFirsts.ensure(cellCount() + 2, queue);
  for (auto *array : {&cellOf, &order, &positionOf})
    array->ensure(room, queue);
  markNone(keys.data(), entries, cellFirsts.data() + cellCount() + 1, queue);
  const DistinctKeys distinct = numberKeys();
  owners = describeOwners();
  findCells(distinct, entries, owners, cellOf.data(), queue);
  stableOrder.reserve(room, cellCount() + 1, queue);
  stableOrder.run(cellOf.data(), entries, cellCount() + 1, order.data(), queue);
  groupKeys(distinct, entries, cellOf.data(), order.data(), cellCount(), positionOf.data(),
            groupedKeys.data(), cellFirsts.data(), queue);
}

/// What this rank asks others for, and they this one.
void RowExchange::countKeys(Communicator &on) {
  const auto size = static_cast<size_t>(cellCount());
  GENREC_CUDA_CHECK(cudaMemcpyAsync(firstsOnHost, cellFirsts.data(), (size + 2) * sizeof(int64_t),
                                    cudaMemcpyDeviceToHost, queue));
  waitForStream(queue);
  positions.assign(firstsOnHost, firstsOnHost + size + 1);
  traffic.lookedUp += firstsOnHost[size + 1];
  traffic.asked += positions.back();
  askers =
      std::ranges::any_of(stores, [&](auto &of) { return sharesReplicas(of); }) ? 2 * ranks : ranks;
  served.assign(static_cast<size_t>(cell(askers, 0)), 0);
  // Of each rank: what it asks for, and behind that how many rows of replicas.
  const int64_t kinds = askers / ranks, width = kinds * storeCount();
  std::vector<int64_t> mine(static_cast<size_t>(ranks * width)), told = mine;
  for (int32_t other = 0; other < ranks; ++other)
    for (int64_t store = 0; store < storeCount(); ++store) {
      mine[other * width + store] = countRows(cell(other, store));
      if (kinds > 1)
        mine[other * width + storeCount() + store] = countRows(cell(ranks, store));
    }
  std::copy_n(mine.begin() + rank * width, width, told.begin() + rank * width);
  if (ranks > 1 && (hasShards || kinds > 1)) {
    std::vector<SendPart> send(ranks);
    std::vector<ReceivePart> receive(ranks);
    const auto bytes = width * static_cast<int64_t>(sizeof(int64_t));
    for (int32_t other = 0; other < ranks; ++other) {
      send[other] = {mine.data() + other * width, bytes};
      receive[other] = {told.data() + other * width, bytes};
    }
    on.exchange(send, receive);
  }
  for (int32_t asker = 0; asker < askers; ++asker)
    std::copy_n(told.begin() + asker % ranks * width + asker / ranks * storeCount(), storeCount(),
                served.begin() + cell(asker, 0));
}

/// Where rows are: of this rank by section, of others by store and who asks.
void RowExchange::layOutMessages() {
  for (auto *layouts : {&askedValues, &askedSums, &servedValues, &servedSums})
    layouts->clear();
  valueBegins.assign(1, 0);
  sumBegins.assign(1, 0);
  std::vector<int64_t> asks(stores.size()), values, rowFloats, begins, flags, dims;
  for (int32_t section = 0; section <= ranks; ++section) {
    for (int64_t store = 0; store < storeCount(); ++store)
      asks[store] = countRows(cell(section, store));
    const MessageLayout &ofValues = askedValues.emplace_back(layOutValues(asks.data())),
                        &ofSums = askedSums.emplace_back(layOutSums(asks.data()));
    const int64_t firstFlag = sumBegins.back() * static_cast<int64_t>(sizeof(float));
    for (int64_t store = 0; store < storeCount(); ++store) {
      values.push_back(valueBegins.back() + ofValues.begins[store]);
      begins.push_back(sumBegins.back() + ofSums.begins[store]);
      flags.push_back(firstFlag + ofSums.flags[store]);
    }
    valueBegins.push_back(valueBegins.back() + ofValues.floats());
    sumBegins.push_back(sumBegins.back() + ofSums.floats());
  }
  for (int32_t asker = 0; asker < askers; ++asker) {
    servedValues.push_back(layOutValues(served.data() + cell(asker, 0)));
    servedSums.push_back(layOutSums(served.data() + cell(asker, 0)));
  }
  for (const ExchangedStore &store : stores) {
    rowFloats.push_back(store.valueFloats());
    dims.push_back(store.dim);
  }
  wanted.assign(1, 0);
  for (int64_t store = 0; store < storeCount(); ++store)
    for (int32_t asker = 0; asker < askers; ++asker) {
      wanted.push_back(wanted.back() + countServed(asker, store));
      if (asker >= ranks && asker != ranks + rank)
        continue; // replicas of others are their own
      traffic.served += countServed(asker, store);
      traffic.found += travel.ownersDeduplicate ? 0 : countServed(asker, store);
    }
  cells = {tables.add(positions, queue),
           tables.add(values, queue),
           tables.add(rowFloats, queue),
           tables.add(begins, queue),
           tables.add(flags, queue),
           tables.add(dims, queue),
           cellCount(),
           storeCount(),
           positions.back(),
           widest};
}

/// Of rows that ranks own, or of replicas: those of rank r come to to[r].
void RowExchange::exchangeKeys(Communicator &on, bool ofReplicas, std::span<int64_t *const> to) {
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  for (int32_t other = 0; other < ranks; ++other) {
    const int32_t section = ofReplicas ? ranks : other;
    const int64_t first = positions[cell(section, 0)];
    send[other] = {groupedKeys.data() + first, (positions[cell(section + 1, 0)] - first) * 8};
    int64_t count = 0;
    for (int64_t store = 0; store < storeCount(); ++store)
      count += countServed(ofReplicas ? ranks + other : other, store);
    receive[other] = {to[other], count * 8};
    traffic.idBytes += other == rank ? 0 : receive[other].bytes;
  }
  if (ofReplicas || hasShards)
    return on.exchange(send, receive, onDevice());
  // Of rows that ranks own there are none but replicas that stay as they are.
  if (receive[rank].bytes > 0)
    GENREC_CUDA_CHECK(cudaMemcpyAsync(to[rank], send[rank].data,
                                      static_cast<size_t>(receive[rank].bytes),
                                      cudaMemcpyDeviceToDevice, queue));
}

void RowExchange::exchangeKeys(Communicator &on) {
  wantedInOrder = groupedKeys.data();
  if (ranks == 1 || (!hasShards && askers == ranks))
    return; // this rank asks itself
  std::vector<int64_t> from{0}, to;
  std::vector<int64_t *> places;
  int64_t *keysIn = receivedKeys.ensure(roomFor(wanted.back()), queue);
  for (int32_t asker = 0; asker < askers; ++asker) {
    places.push_back(keysIn + from.back());
    for (int64_t store = 0; store < storeCount(); ++store) {
      from.push_back(from.back() + countServed(asker, store));
      to.push_back(firstWanted(store, asker));
    }
  }
  exchangeKeys(on, false, std::span(places).first(ranks));
  if (askers > ranks)
    exchangeKeys(on, true, std::span(places).last(ranks));
  wantedInOrder = wantedKeys.ensure(roomFor(wanted.back()), queue);
  reorderKeys(keysIn, tables.add(from, queue), tables.add(to, queue), cell(askers, 0),
              wanted.back(), wantedKeys.data(), queue);
}

/// Numbers the distinct keys that ranks ask for; where sums of them will be collected, also brings
/// their rows into the order of these numbers.
void RowExchange::numberWanted() {
  const int64_t asked = wanted.back();
  askedCells = {tables.add(wanted, queue), storeCount(), ranks, askers, asked};
  std::vector<int64_t> storeFirsts;
  for (int64_t store = 0; store <= storeCount(); ++store)
    storeFirsts.push_back(firstWanted(store));
  UniqueResult result;
  result.inverse = ownedNumbers.ensure(roomFor(asked), queue);
  result.offsets = ownedFirsts.ensure(storeCount() + 1, queue);
  result.total = ownedTotal.ensure(1, queue);
  unique.reserve(roomFor(asked), queue);
  unique.run(wantedInOrder, asked, tables.add(storeFirsts, queue), storeCount(), result, queue);
  if (travel.ownersDeduplicate) {
    countFound(askedCells, ownedNumbers.data(), rank, seen.ensure(roomFor(asked), queue),
               found.ensure(1, queue), queue);
    GENREC_CUDA_CHECK(
        cudaMemcpyAsync(foundOnHost, found.data(), sizeof(int64_t), cudaMemcpyDeviceToHost, queue));
    isFoundTold = true;
  }
  if (!collects || asked == 0)
    return;
  const int64_t room = roomFor(asked); // also the limit: how many passes an order takes
  stableOrder.reserve(room, room, queue);
  stableOrder.run(ownedNumbers.data(), asked, room, ownedOrder.ensure(room, queue), queue);
  findSegments(ownedNumbers.data(), ownedOrder.data(), asked, ownedTotal.data(),
               segments.ensure(roomFor(asked) + 1, queue), queue);
  findAskers(askedCells, ownedOrder.data(), askedRows.ensure(roomFor(asked), queue), queue);
}

//===----------------------------------------------------------------------===//
// Values back
//===----------------------------------------------------------------------===//

void RowExchange::findWanted(const FindRows &find) {
  float **to = rows.ensure(roomFor(wanted.back()), queue);
  for (int64_t store = 0; store < storeCount(); ++store) {
    const int64_t first = firstWanted(store), count = firstWanted(store + 1) - first;
    if (count > 0)
      find(static_cast<int32_t>(store), wantedInOrder + first, count, to + first);
  }
}

/// The rows that an asker asks for, as a message.
void RowExchange::gatherValues(int32_t asker, const MessageLayout &layout, float *to) {
  for (int64_t store = 0; store < storeCount(); ++store) {
    const int64_t width = stores[store].valueFloats();
    gatherRows<float>(rows.data() + firstWanted(store, asker), countServed(asker, store), width,
                      to + layout.begins[store], width, queue);
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
    gatherValues(other, servedValues[other], isOwn ? values.data() + valueBegins[rank] : message);
    if (isOwn)
      continue;
    send[other] = servedValues[other].part(message);
    receive[other] = askedValues[other].part(values.data() + valueBegins[other]);
    message += servedValues[other].floats();
  }
  if (askers > ranks)
    gatherValues(ranks + rank, askedValues[ranks], values.data() + valueBegins[ranks]);
  if (ranks > 1 && hasShards)
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

void RowExchange::ask(Communicator &on, bool collectsSums) {
  collects = collectsSums;
  sortKeys();
  countKeys(on);
  layOutMessages();
  exchangeKeys(on);
  numberWanted();
}

void RowExchange::bring(Communicator &on, const FindRows &find) {
  findWanted(find);
  exchangeValues(on);
  giveAllAddresses();
}

} // namespace genrec::rt::cuda
