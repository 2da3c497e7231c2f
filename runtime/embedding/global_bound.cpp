//===- global_bound.cpp - Bounded tables on several ranks -----------------===//

#include "global_bound.h"

#include <algorithm>

namespace genrec::rt {

namespace {

constexpr size_t kWordBytes = 8;
constexpr size_t kByteValues = 256;
/// Rows whose sightings are read at once.
constexpr int64_t kListBlock = 4096;

} // namespace

void GlobalBound::add(TableStore &store, const RowRules &rules) {
  if (rules.bound <= 0)
    return;
  auto members = static_cast<int64_t>(store.configuration().members.size());
  for (int64_t member = 0; member < std::max<int64_t>(1, members); ++member) {
    Table &table = tables.emplace_back();
    table.store = &store;
    table.member = member;
    table.rules = rules;
  }
  if (TableStore *waiting = store.waiting())
    add(*waiting, rules);
}

void GlobalBound::evict(const StoreStream &on) {
  if (tables.empty())
    return;
  findExcess(on);
  if (choosing.empty())
    return;
  std::vector<Table *> exceeded = choosing;
  for (Table *table : exceeded)
    table->list(on);
  agreeOnLargest();
  while (!choosing.empty())
    narrowAll();
  for (Table *table : exceeded)
    table->removeLeaving(on);
}

/// `received` = the `sent` of all ranks.
void GlobalBound::gather() {
  received.resize(sent.size() * comm.getSize());
  comm.allGather(sent.data(), received.data(), static_cast<int64_t>(sent.size() * sizeof sent[0]));
}

/// Finds out which tables have more rows than their bound, on all ranks together.
void GlobalBound::findExcess(const StoreStream &on) {
  sent.clear();
  for (const Table &table : tables)
    sent.push_back(table.store->memberSize(on, table.member));
  gather();
  choosing.clear();
  for (size_t i = 0; i < tables.size(); ++i) {
    int64_t rows = 0;
    for (int32_t rank = 0; rank < comm.getSize(); ++rank)
      rows += received[rank * tables.size() + i];
    tables[i].wanted = tables[i].rules.excess(rows);
    if (tables[i].wanted > 0)
      choosing.push_back(&tables[i]);
  }
}

/// The bytes that are 0 in all rows need no counting.
void GlobalBound::agreeOnLargest() {
  sent.clear();
  for (Table *table : choosing)
    for (size_t word = 0; word < kWords; ++word) {
      uint64_t largest = 0;
      for (const Words &rank : table->candidates)
        largest = std::max(largest, rank[word]);
      sent.push_back(static_cast<int64_t>(largest));
    }
  gather();
  for (size_t i = 0; i < choosing.size(); ++i) {
    Table &table = *choosing[i];
    table.largest = {};
    for (int32_t rank = 0; rank < comm.getSize(); ++rank)
      for (size_t word = 0; word < kWords; ++word)
        table.largest[word] =
            std::max(table.largest[word],
                     static_cast<uint64_t>(received[rank * sent.size() + i * kWords + word]));
    table.byte = 0;
    table.skipZeros();
  }
}

/// One byte of every table that is not done.
void GlobalBound::narrowAll() {
  sent.assign(choosing.size() * kByteValues, 0);
  for (size_t i = 0; i < choosing.size(); ++i)
    for (const Words &rank : choosing[i]->candidates)
      ++sent[i * kByteValues + choosing[i]->getByte(rank)];
  gather();
  std::fill(sent.begin(), sent.end(), 0);
  for (int32_t rank = 0; rank < comm.getSize(); ++rank)
    for (size_t i = 0; i < sent.size(); ++i)
      sent[i] += received[rank * sent.size() + i];
  for (size_t i = 0; i < choosing.size(); ++i)
    choosing[i]->narrow(sent.data() + i * kByteValues);
  std::erase_if(choosing, [](const Table *table) { return table->wanted == 0; });
}

//===----------------------------------------------------------------------===//
// One table
//===----------------------------------------------------------------------===//

/// All rows of this rank are candidates.
void GlobalBound::Table::list(const StoreStream &on) {
  candidates.clear();
  int64_t rows = store->memberSize(on, member);
  candidates.reserve(static_cast<size_t>(rows));
  StoreArray<int64_t> keys(*store, kListBlock, on);
  StoreArray<float *> addresses(*store, kListBlock, on);
  std::vector<int64_t> ids(kListBlock);
  std::vector<Sighting> sightings(kListBlock);
  for (int64_t first = 0; first < rows; first += kListBlock) {
    int64_t count = std::min(kListBlock, rows - first);
    store->exportRows(on, member, first, count, keys.data(), addresses.data());
    store->arguments().copyOut(ids.data(), keys.data(), count * 8, on);
    store->readRows(on, addresses.data(), count, store->sightingOffset(),
                    sizeof(Sighting) / sizeof(float), reinterpret_cast<float *>(sightings.data()));
    for (int64_t i = 0; i < count; ++i) {
      auto id = static_cast<int64_t>(store->configuration().idOf(ids[i]));
      auto [steps, lastStep, lastWord] = sightings[i].rank(rules.eviction, id);
      candidates.push_back({static_cast<uint64_t>(steps), static_cast<uint64_t>(lastStep),
                            static_cast<uint64_t>(lastWord)});
    }
  }
}

/// The word of the next byte, without what is behind that.
uint64_t GlobalBound::Table::getUpToByte(const Words &rank) const {
  return rank[byte / kWordBytes] >> (kWordBytes - 1 - byte % kWordBytes) * 8;
}

/// Goes on to a byte that is not 0 in all rows. There is one: ranks of rows differ, and never do
/// all candidates leave.
void GlobalBound::Table::skipZeros() {
  while (byte < kWords * kWordBytes && getUpToByte(largest) == 0)
    ++byte;
  if (byte == kWords * kWordBytes)
    throw Error("a row of a bounded table is on two ranks");
}

/// `counts`: of the candidates of all ranks, by their byte. Those below the byte of the last row
/// that leaves leave, those above stay.
void GlobalBound::Table::narrow(const int64_t *counts) {
  uint64_t last = 0;
  while (counts[last] < wanted)
    wanted -= counts[last++];
  bool takesAll = counts[last] == wanted;
  std::erase_if(candidates, [&](const Words &rank) {
    uint64_t byte = getByte(rank);
    if (byte < last || (takesAll && byte == last))
      leaving.push_back(getKey(rank));
    return byte != last;
  });
  if (takesAll) {
    wanted = 0;
    return;
  }
  ++byte;
  skipZeros();
}

int64_t GlobalBound::Table::getKey(const Words &rank) const {
  const StoreConfig &config = store->configuration();
  auto id = static_cast<int64_t>(rank[kWords - 1]);
  return config.members.empty() ? id : id | member << config.keyBits;
}

void GlobalBound::Table::removeLeaving(const StoreStream &on) {
  auto count = static_cast<int64_t>(leaving.size());
  store->erase(on, StoreArray<int64_t>(*store, leaving.data(), count, on).data(), count);
  leaving.clear();
  candidates.clear();
}

} // namespace genrec::rt
