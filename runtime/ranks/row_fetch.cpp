//===- row_fetch.cpp - keys to their owners, values back ------------------===//

#include "genrec_rt/owner.h"
#include "row_exchange_impl.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

using namespace genrec::rt;

/// Keys whose searches are on their way from memory.
static constexpr int64_t kAhead = 16;

/// Floats of `rows` rows in a message: the rows of every store begin at a whole cache line.
static int64_t messageFloats(int64_t rows, int64_t dim) { return (rows * dim + 15) / 16 * 16; }

void RowExchange::Impl::fetch(std::span<const RowRequest> requests, const FindRows &find) {
  if (isCollected)
    throw Error("rows are fetched after 'collect'", "call 'begin' before the next step");
  if (values.size() == static_cast<size_t>(fetches))
    values.emplace_back(ranks);
  numberKeys(requests);
  exchangeCounts();
  exchangeKeys();
  findRows(find);
  exchangeValues();
  noteSections();
  giveAddresses(requests);
  ++fetches;
}

void RowExchange::Impl::numberKeys(std::span<const RowRequest> requests) {
  numbers.clear();
  for (const RowRequest &request : requests) {
    checkStore(request.store);
    KeyIndex &keys = asked[request.store].keys;
    for (int64_t i = 0; i < request.count; ++i) {
      if (i + kAhead < request.count)
        keys.prefetch(request.keys[i + kAhead]);
      bool isAsked = (!request.valid || request.valid[i]) && request.keys[i] != -1;
      numbers.push_back(isAsked ? keys.findOrAdd(request.keys[i]) : -1);
    }
  }
}

int32_t RowExchange::Impl::ownerOf(const ExchangedStore &store, int64_t key) const {
  if (store.members.size() == 1)
    return getOwner(getSlice(store.members[0], key), ranks);
  int64_t member = key >> store.keyBits, id = key & ((int64_t(1) << store.keyBits) - 1);
  if (member < 0 || member >= static_cast<int64_t>(store.members.size()))
    throw Error("key " + std::to_string(key) + " is of table " + std::to_string(member) +
                " where " + std::to_string(store.members.size()) + " share a store");
  return getOwner(getSlice(store.members[member], id), ranks);
}

void RowExchange::Impl::exchangeCounts() {
  std::fill(sendCounts.begin(), sendCounts.end(), 0);
  owners.clear();
  for (int32_t store = 0; store < storeCount(); ++store)
    for (int64_t key : asked[store].keys.keys().subspan(asked[store].addresses.size())) {
      owners.push_back(ownerOf(stores[store], key));
      ++sendCounts[cell(owners.back(), store)];
    }
  auto bytes = static_cast<int64_t>(stores.size() * sizeof(int64_t));
  for (int32_t other = 0; other < ranks; ++other) {
    sendParts[other] = {sendCounts.data() + cell(other, 0), bytes};
    receiveParts[other] = {receiveCounts.data() + cell(other, 0), bytes};
  }
  comm.exchange(sendParts, receiveParts);
}

/// New keys, store by store, each in the order of their numbers.
void RowExchange::Impl::exchangeKeys() {
  auto layOut = [&](Messages<int64_t> &messages, const std::vector<int64_t> &counts) {
    messages.layOut([&](int32_t other) {
      auto first = counts.begin() + cell(other, 0);
      return std::accumulate(first, first + storeCount(), int64_t(0));
    });
  };
  layOut(sendKeys, sendCounts);
  layOut(receiveKeys, receiveCounts);
  std::exclusive_scan(sendCounts.begin(), sendCounts.end(), cursors.begin(), int64_t(0));
  sentNumbers.resize(owners.size());
  auto owner = owners.begin();
  for (int32_t store = 0; store < storeCount(); ++store) {
    AskedRows &from = asked[store];
    for (auto number = static_cast<int64_t>(from.addresses.size()); number < from.keys.size();
         ++number) {
      int64_t at = cursors[cell(*owner++, store)]++;
      sendKeys.memory[at] = from.keys.keys()[number];
      sentNumbers[at] = static_cast<int32_t>(number);
    }
  }
  exchange(sendKeys, receiveKeys);
}

void RowExchange::Impl::findRows(const FindRows &find) {
  const int64_t *received = receiveKeys.memory.data();
  // Messages lie by rank, then by store; stores are numbered one after another.
  std::exclusive_scan(receiveCounts.begin(), receiveCounts.end(), cursors.begin(), int64_t(0));
  for (int32_t store = 0; store < storeCount(); ++store) {
    OwnedRows &of = owned[store];
    int64_t known = of.keys.size();
    for (int32_t other = 0; other < ranks; ++other) {
      const int64_t *keys = received + cursors[cell(other, store)];
      int64_t count = receiveCounts[cell(other, store)];
      for (int64_t i = 0; i < count; ++i) {
        if (i + kAhead < count)
          of.keys.prefetch(keys[i + kAhead]);
        of.asked.push_back(of.keys.findOrAdd(keys[i]));
      }
      of.starts.push_back(static_cast<int64_t>(of.asked.size()));
    }
    std::span<const int64_t> fresh = of.keys.keys().subspan(known);
    of.rows.resize(of.keys.size(), nullptr);
    if (!fresh.empty())
      find(store, fresh, of.rows.data() + known);
    for (size_t i = 0; i < fresh.size(); ++i)
      if (!of.rows[known + i])
        throw Error("store " + std::to_string(store) + " gave no row for key " +
                    std::to_string(fresh[i]));
  }
}

void RowExchange::Impl::exchangeValues() {
  auto layOut = [&](Messages<float> &messages, const std::vector<int64_t> &counts) {
    messages.layOut([&](int32_t other) {
      int64_t floats = 0;
      for (int32_t store = 0; store < storeCount(); ++store)
        floats += messageFloats(counts[cell(other, store)], stores[store].dim);
      return floats;
    });
  };
  layOut(sendValues, receiveCounts); // to those who asked
  layOut(values[fetches], sendCounts);
  for (int32_t other = 0; other < ranks; ++other) {
    float *to = sendValues.begin(other);
    for (int32_t store = 0; store < storeCount(); ++store) {
      int64_t dim = stores[store].dim, at = 0;
      std::span<const int32_t> wanted = owned[store].askedBy(visit(fetches, other));
      for (int32_t number : wanted)
        std::memcpy(to + at++ * dim, owned[store].rows[number], dim * sizeof(float));
      to += messageFloats(at, dim);
    }
  }
  exchange(sendValues, values[fetches]);
}

/// Notes where the values of this fetch are.
void RowExchange::Impl::noteSections() {
  for (AskedRows &from : asked)
    from.addresses.resize(from.keys.size());
  auto number = sentNumbers.begin();
  for (int32_t other = 0; other < ranks; ++other) {
    float *row = values[fetches].begin(other);
    for (int32_t store = 0; store < storeCount(); ++store) {
      AskedRows &from = asked[store];
      int64_t dim = stores[store].dim, count = sendCounts[cell(other, store)];
      AskedRows::Section section{row, static_cast<int64_t>(from.touchedBy.size()), count};
      from.sections.push_back(section);
      if (count)
        from.sorted.push_back(section);
      from.touchedBy.resize(from.touchedBy.size() + count, -1);
      for (int64_t i = 0; i < count; ++i)
        from.addresses[*number++] = row + i * dim;
      row += messageFloats(count, dim);
    }
  }
  for (AskedRows &from : asked)
    std::sort(from.sorted.begin(), from.sorted.end(),
              [](const auto &a, const auto &b) { return std::less<>()(a.begin, b.begin); });
}

void RowExchange::Impl::giveAddresses(std::span<const RowRequest> requests) const {
  auto number = numbers.begin();
  for (const RowRequest &request : requests) {
    const std::vector<float *> &addresses = asked[request.store].addresses;
    for (int64_t i = 0; i < request.count; ++i, ++number)
      request.rows[i] = *number < 0 ? request.zeroRow : addresses[*number];
  }
}
