//===- row_replicas.cpp - rows that every rank has -------------------------===//
//
// A rank finds rows of replicas itself, and reads copies of them like those of its own. In the
// round of sums its keys go to all ranks, then masks and sums as of any rows. So every rank has all
// sums of a row, adds them in the order of portions, and inserts what any rank looked up.
//
//===----------------------------------------------------------------------===//

#include "row_exchange_impl.h"

#include <algorithm>

using namespace genrec::rt;

/// Rows of replicas are sections of all other ranks.
void RowExchange::Impl::shareReplicas() {
  for (int32_t store = 0; store < storeCount(); ++store) {
    if (!sendsKeysOf(stores[store]))
      continue;
    AskedRows &from = asked[store];
    for (int64_t fetch = 0; fetch < fetches; ++fetch) {
      const AskedRows::Section own = from.sections[visit(fetch, rank)];
      int64_t count = from.replicas[fetch];
      for (int32_t to = 0; to < ranks; ++to)
        from.sections.push_back(
            to == rank ? AskedRows::Section{nullptr, 0, 0}
                       : AskedRows::Section{nullptr, own.first + own.count - count, count});
    }
  }
}

/// Per store with replicas a count and the keys; what follows begins at a whole cache line.
int64_t RowExchange::Impl::replicaBytes() const {
  int64_t words = 0;
  for (int32_t store = 0; store < storeCount(); ++store)
    if (sendsKeysOf(stores[store]))
      words += 1 + static_cast<int64_t>(asked[store].replicaKeys.size());
  return (words + 7) / 8 * 64;
}

void RowExchange::Impl::packReplicaKeys(char *message) const {
  auto *words = reinterpret_cast<int64_t *>(message);
  for (int32_t store = 0; store < storeCount(); ++store) {
    if (!sendsKeysOf(stores[store]))
      continue;
    const std::vector<int64_t> &keys = asked[store].replicaKeys;
    *words++ = static_cast<int64_t>(keys.size());
    words = std::copy(keys.begin(), keys.end(), words);
  }
}

/// Notes the keys that every rank sends as those of one more fetch, and where its masks begin.
void RowExchange::Impl::readReplicaKeys(Rider *rider) {
  for (OwnedRows &of : owned)
    of.known = of.keys.size();
  for (int32_t from = 0; from < ranks; ++from) {
    std::span<char> message = sumRound.incoming(from);
    int64_t begin = std::min(ridingBytes(rider, from, rank), static_cast<int64_t>(message.size()));
    begin += noteReplicaKeys(from, message.subspan(begin));
    maskCursors[from] = reinterpret_cast<const uint32_t *>(message.data() + begin);
  }
  for (OwnedRows &of : owned)
    of.rows.resize(of.keys.size(), nullptr);
}

/// Returns the bytes of the keys in a message that begins with them.
int64_t RowExchange::Impl::noteReplicaKeys(int32_t from, std::span<const char> message) {
  const auto *words = reinterpret_cast<const int64_t *>(message.data());
  auto left = static_cast<int64_t>(message.size()) / 8, read = int64_t(0);
  for (int32_t store = 0; store < storeCount(); ++store) {
    if (!sendsKeysOf(stores[store]))
      continue;
    if (from == rank) { // this rank has noted its own
      owned[store].note(nullptr, 0, travel.ownersDeduplicate);
      continue;
    }
    int64_t count = left > 0 ? words[read] : -1;
    if (count < 0 || count > --left)
      throw Error("rank " + std::to_string(from) +
                  " sends keys of replicated rows in a message of " +
                  std::to_string(message.size()) + " bytes, which has other counts");
    owned[store].note(words + read + 1, count, travel.ownersDeduplicate);
    left -= count;
    read += 1 + count;
    traffic.idBytes += count * 8;
  }
  return (read + 7) / 8 * 64;
}

/// Which of the updated rows this rank owns: those of replicas are updated by all.
void RowExchange::Impl::noteOwned(int32_t store, std::span<const int32_t> touched) {
  OwnedRows &of = owned[store];
  of.isOwned.clear();
  for (int32_t number : touched) {
    int64_t key = of.keys.keys()[number];
    of.isOwned.push_back(!isReplica(stores[store], key) || ownerOf(stores[store], key) == rank);
  }
}
