//===- row_fetch.cpp - keys to their owners, values back ------------------===//

#include "genrec_rt/owner.h"
#include "row_bf16.h"
#include "row_copies.h"
#include "row_exchange_impl.h"

#include <algorithm>
#include <functional>

using namespace genrec::rt;

//===----------------------------------------------------------------------===//
// Keys to their owners
//===----------------------------------------------------------------------===//

void RowExchange::Impl::ask(Communicator &on, std::span<const RowRequest> given, Rider *rider) {
  if (isCollected)
    throw Error("rows are fetched after 'collect'", "call 'begin' before the next step");
  if (isAsked)
    throw Error("rows are asked for before those of the last 'ask' are there",
                "call 'find' and 'bring' before");
  isAsked = true;
  isArranged = false;
  if (values.size() == static_cast<size_t>(fetches))
    values.emplace_back(ranks);
  requests.assign(given.begin(), given.end());
  std::fill(sendEarly.begin(), sendEarly.end(), 0);
  std::fill(receiveEarly.begin(), receiveEarly.end(), 0);
  earlyValues.assign(ranks, nullptr);
  numberKeys();
  sortKeys();
  if (travels(rider)) {
    exchangeKeys(on, rider);
    readKeys(rider);
  } else {
    keepKeys();
  }
  noteKeys();
}

void RowExchange::Impl::numberKeys() {
  size_t entries = 0;
  for (const RowRequest &request : requests) {
    checkStore(request.store);
    entries += static_cast<size_t>(request.count);
  }
  numbers.resize(entries);
  int32_t *to = numbers.data();
  for (const RowRequest &request : requests) {
    KeyIndex &keys = asked[request.store].keys;
    if (travel.requestersDeduplicate)
      keys.findOrAdd(request.keys, request.valid, request.count, to);
    else
      keys.add(request.keys, request.valid, request.count, to);
    to += request.count;
  }
  traffic.lookedUp +=
      std::count_if(numbers.begin(), numbers.end(), [](int32_t number) { return number >= 0; });
}

size_t RowExchange::Impl::memberOf(const ExchangedStore &store, int64_t key) {
  if (store.members.size() == 1)
    return 0;
  int64_t member = key >> store.keyBits;
  if (member < 0 || member >= static_cast<int64_t>(store.members.size()))
    throw Error("key " + std::to_string(key) + " is of table " + std::to_string(member) +
                " where " + std::to_string(store.members.size()) + " share a store");
  return static_cast<size_t>(member);
}

int32_t RowExchange::Impl::ownerOf(const ExchangedStore &store, int64_t key) const {
  if (store.members.size() == 1)
    return getOwner(getSlice(store.members[0], key), ranks);
  int64_t id = key & ((int64_t(1) << store.keyBits) - 1);
  return getOwner(getSlice(store.members[memberOf(store, key)], id), ranks);
}

/// New keys by owner, store by store, each in the order of their numbers; keys of replicas at the
/// end of this rank's own.
void RowExchange::Impl::sortKeys() {
  std::fill(sendCounts.begin(), sendCounts.end(), 0);
  owners.clear();
  for (int32_t store = 0; store < storeCount(); ++store) {
    AskedRows &from = asked[store];
    int64_t replicas = 0;
    for (int64_t key : from.keys.keys().subspan(from.addresses.size())) {
      bool isShared = isReplica(stores[store], key);
      replicas += isShared;
      owners.push_back(isShared ? ranks : ownerOf(stores[store], key));
      ++sendCounts[cell(isShared ? rank : owners.back(), store)];
    }
    from.replicas.push_back(replicas);
  }
  std::exclusive_scan(sendCounts.begin(), sendCounts.end(), cursors.begin(), int64_t(0));
  for (int32_t store = 0; store < storeCount(); ++store) {
    size_t own = cell(rank, store);
    replicaCursors[store] = cursors[own] + sendCounts[own] - asked[store].replicas.back();
  }
  sentKeys.resize(owners.size());
  sentNumbers.resize(owners.size());
  traffic.asked += static_cast<int64_t>(owners.size());
  auto owner = owners.begin();
  for (int32_t store = 0; store < storeCount(); ++store) {
    AskedRows &from = asked[store];
    for (auto number = static_cast<int64_t>(from.addresses.size()); number < from.keys.size();
         ++number, ++owner) {
      int64_t key = from.keys.keys()[number];
      bool isShared = *owner == ranks;
      int64_t at = isShared ? replicaCursors[store]++ : cursors[cell(*owner, store)]++;
      sentKeys[at] = key;
      sentNumbers[at] = static_cast<int32_t>(number);
      if (isShared)
        from.replicaKeys.push_back(key);
    }
    from.addresses.resize(from.keys.size());
  }
}

/// Whether a round of keys is made: all ranks know what rides.
bool RowExchange::Impl::travels(const Rider *rider) const {
  if (hasShards)
    return true;
  for (int32_t from = 0; rider && from < ranks; ++from)
    for (int32_t to = 0; to < ranks; ++to)
      if (rider->getBytes(from, to) > 0)
        return true;
  return false;
}

/// A message: what rides, a count per store, keys.
void RowExchange::Impl::exchangeKeys(Communicator &on, Rider *rider) {
  int64_t riding = 0;
  for (int32_t to = 0; to < ranks; ++to) {
    int64_t bytes = rider ? rider->getBytes(rank, to) : 0;
    riding += bytes;
    messageBytes[to] = bytes + (storeCount() + sumOfCells(sendCounts, to)) * 8;
  }
  riddenFetches += riding > 0;
  keyRound.layOut(messageBytes);
  const int64_t *keys = sentKeys.data();
  for (int32_t to = 0; to < ranks; ++to) {
    char *message = keyRound.outgoing(to);
    if (rider) {
      rider->write(to, message);
      message += rider->getBytes(rank, to);
    }
    auto *words = reinterpret_cast<int64_t *>(message);
    words = std::copy_n(sendCounts.data() + cell(to, 0), storeCount(), words);
    int64_t count = sumOfCells(sendCounts, to);
    std::copy_n(keys, count, words);
    keys += count;
  }
  keyRound.exchange(on);
}

void RowExchange::Impl::readKeys(Rider *rider) {
  std::vector<const int64_t *> &at = keyCursors;
  at.resize(ranks);
  for (int32_t from = 0; from < ranks; ++from) {
    std::span<char> message = keyRound.incoming(from);
    int64_t riding = rider ? rider->getBytes(from, rank) : 0;
    auto words = (static_cast<int64_t>(message.size()) - riding) / 8;
    at[from] = reinterpret_cast<const int64_t *>(message.data() + riding);
    if (words >= storeCount())
      std::copy_n(at[from], storeCount(), receiveCounts.data() + cell(from, 0));
    if (words < storeCount() || words != storeCount() + sumOfCells(receiveCounts, from))
      throw Error("rank " + std::to_string(from) + " asks for rows in a message of " +
                  std::to_string(message.size()) + " bytes, which has other counts");
    at[from] += storeCount();
    traffic.served += sumOfCells(receiveCounts, from);
    traffic.idBytes += from == rank ? 0 : sumOfCells(receiveCounts, from) * 8;
    if (rider)
      rider->read(from, message.data());
  }
}

/// Where all rows are replicas, this rank asks itself.
void RowExchange::Impl::keepKeys() {
  std::fill(receiveCounts.begin(), receiveCounts.end(), 0);
  std::copy_n(sendCounts.data() + cell(rank, 0), storeCount(),
              receiveCounts.data() + cell(rank, 0));
  keyCursors.assign(ranks, nullptr);
  keyCursors[rank] = sentKeys.data();
  traffic.served += sumOfCells(receiveCounts, rank);
}

/// Numbers the keys that came, store by store, in the order of the ranks that ask.
void RowExchange::Impl::noteKeys() {
  for (int32_t store = 0; store < storeCount(); ++store) {
    OwnedRows &of = owned[store];
    of.known = of.keys.size();
    for (int32_t from = 0; from < ranks; ++from) {
      int64_t count = receiveCounts[cell(from, store)];
      of.note(keyCursors[from], count, travel.ownersDeduplicate);
      keyCursors[from] += count;
    }
    of.rows.resize(of.keys.size(), nullptr);
    traffic.found += of.keys.size() - of.known;
  }
}

//===----------------------------------------------------------------------===//
// Rows at their owners
//===----------------------------------------------------------------------===//

void RowExchange::Impl::find(const FindRows &find) {
  for (int32_t store = 0; store < storeCount(); ++store) {
    OwnedRows &of = owned[store];
    std::span<const int64_t> fresh = of.keys.keys().subspan(of.known);
    float **rows = of.rows.data() + of.known;
    missing.clear();
    for (size_t i = 0; i < fresh.size(); ++i)
      if (!rows[i])
        missing.push_back(fresh[i]);
    if (missing.empty())
      continue;
    foundRows.assign(missing.size(), nullptr);
    find(store, missing, foundRows.data());
    auto found = foundRows.begin();
    for (size_t i = 0; i < fresh.size(); ++i)
      if (!rows[i] && !(rows[i] = *found++))
        throw Error("store " + std::to_string(store) + " gave no row for key " +
                    std::to_string(fresh[i]));
  }
}

//===----------------------------------------------------------------------===//
// Values back
//===----------------------------------------------------------------------===//

void RowExchange::Impl::bring(Communicator &on) {
  if (!isAsked)
    throw Error("rows are brought that nobody asked for", "call 'ask' and 'find' before");
  if (!isArranged)
    arrange();
  exchangeValues(on);
  ++fetches;
  isAsked = false;
}

/// Notes where the values of this fetch will be: early ones are there, the others' places are
/// known.
void RowExchange::Impl::arrange() {
  values[fetches].layOut([&](int32_t owner) {
    int64_t floats = 0;
    for (int32_t store = 0; store < storeCount(); ++store)
      floats += messageFloats(sendCounts[cell(owner, store)] - sendEarly[cell(owner, store)],
                              stores[store].valueFloats());
    return floats;
  });
  const int32_t *number = sentNumbers.data();
  for (int32_t owner = 0; owner < ranks; ++owner) {
    float *early = earlyValues[owner], *late = values[fetches].begin(owner);
    for (int32_t store = 0; store < storeCount(); ++store) {
      AskedRows &from = asked[store];
      int64_t count = sendCounts[cell(owner, store)], first = sendEarly[cell(owner, store)];
      from.sections.push_back({nullptr, static_cast<int64_t>(from.touchedBy.size()), count});
      noteRows(store, early, first, number);
      noteRows(store, late, count - first, number + first);
      number += count;
      early += messageFloats(first, stores[store].valueFloats());
      late += messageFloats(count - first, stores[store].valueFloats());
    }
  }
  for (AskedRows &from : asked)
    std::sort(from.sorted.begin(), from.sorted.end(),
              [](const auto &a, const auto &b) { return std::less<>()(a.begin, b.begin); });
  giveAddresses();
  isArranged = true;
}

/// Gives `count` rows that lie one behind another the next positions.
void RowExchange::Impl::noteRows(int32_t store, const float *begin, int64_t count,
                                 const int32_t *number) {
  AskedRows &from = asked[store];
  if (count)
    from.sorted.push_back({begin, static_cast<int64_t>(from.touchedBy.size()), count});
  from.touchedBy.resize(from.touchedBy.size() + count, -1);
  for (int64_t i = 0; i < count; ++i)
    from.addresses[number[i]] = const_cast<float *>(begin) + i * stores[store].valueFloats();
}

void RowExchange::Impl::giveAddresses() const {
  auto number = numbers.begin();
  for (const RowRequest &request : requests) {
    const std::vector<float *> &addresses = asked[request.store].addresses;
    for (int64_t i = 0; i < request.count; ++i, ++number)
      request.rows[i] = *number < 0 ? request.zeroRow : addresses[*number];
  }
}

/// To those who asked; this rank's own rows go where they are read.
void RowExchange::Impl::packValues() {
  auto countLate = [&](int32_t to, int32_t store) {
    return receiveCounts[cell(to, store)] - receiveEarly[cell(to, store)];
  };
  sendValues.layOut([&](int32_t to) {
    int64_t floats = 0;
    for (int32_t store = 0; store < storeCount() && to != rank; ++store)
      floats += messageFloats(countLate(to, store), stores[store].valueFloats());
    return floats;
  });
  for (int32_t to = 0; to < ranks; ++to) {
    float *message = to == rank ? values[fetches].begin(rank) : sendValues.begin(to);
    for (int32_t store = 0; store < storeCount(); ++store) {
      int64_t width = stores[store].valueFloats(), count = countLate(to, store);
      gatherRows(width, owned[store].askedBy(visit(fetches, to)).last(count),
                 owned[store].rows.data(), message);
      message += messageFloats(count, width);
    }
  }
}

void RowExchange::Impl::exchangeValues(Communicator &on) {
  packValues();
  if (!hasShards)
    return;
  if (travel.bf16Values)
    return exchangeNarrow(on);
  for (int32_t other = 0; other < ranks; ++other) {
    sendParts[other] = {sendValues.begin(other), sendValues.bytes(other)};
    receiveParts[other] = {values[fetches].begin(other),
                           other != rank ? values[fetches].bytes(other) : 0};
    traffic.rowBytes += receiveParts[other].bytes;
  }
  on.exchange(sendParts, receiveParts);
}

/// Calls body(floats, isBf16) for the rows of each store in the message to or from a rank: how many
/// floats they take, and whether they are bf16 already, which travels as it is.
template <class Body>
void RowExchange::Impl::forLateRows(std::span<const int64_t> counts, std::span<const int64_t> early,
                                    int32_t other, const Body &body) const {
  for (int32_t store = 0; store < storeCount(); ++store)
    body(messageFloats(counts[cell(other, store)] - early[cell(other, store)],
                       stores[store].valueFloats()),
         stores[store].isBf16);
}

void RowExchange::Impl::exchangeNarrow(Communicator &on) {
  Messages<float> &to = values[fetches];
  auto sizeOf = [&](std::span<const int64_t> counts, std::span<const int64_t> early,
                    int32_t other) {
    int64_t halves = 0;
    if (other != rank)
      forLateRows(counts, early, other,
                  [&](int64_t floats, bool isBf16) { halves += isBf16 ? 2 * floats : floats; });
    return halves;
  };
  sendNarrow.layOut([&](int32_t other) { return sizeOf(receiveCounts, receiveEarly, other); });
  receiveNarrow.layOut([&](int32_t other) { return sizeOf(sendCounts, sendEarly, other); });
  for (int32_t other = 0; other < ranks; ++other) {
    const float *from = sendValues.begin(other);
    uint16_t *narrow = sendNarrow.begin(other);
    if (other != rank)
      forLateRows(receiveCounts, receiveEarly, other, [&](int64_t floats, bool isBf16) {
        if (isBf16)
          std::memcpy(narrow, from, static_cast<size_t>(floats) * sizeof(float));
        else
          toBf16(from, floats, narrow);
        from += floats;
        narrow += isBf16 ? 2 * floats : floats;
      });
    sendParts[other] = {sendNarrow.begin(other), sendNarrow.bytes(other)};
    receiveParts[other] = {receiveNarrow.begin(other), receiveNarrow.bytes(other)};
    traffic.rowBytes += receiveParts[other].bytes;
  }
  on.exchange(sendParts, receiveParts);
  for (int32_t other = 0; other < ranks; ++other) {
    const uint16_t *narrow = receiveNarrow.begin(other);
    float *values = to.begin(other);
    if (other != rank)
      forLateRows(sendCounts, sendEarly, other, [&](int64_t floats, bool isBf16) {
        if (isBf16)
          std::memcpy(values, narrow, static_cast<size_t>(floats) * sizeof(float));
        else
          fromBf16(narrow, floats, values);
        values += floats;
        narrow += isBf16 ? 2 * floats : floats;
      });
  }
}
