//===- row_early.cpp - values that the running step does not change -------===//
//
// The owner of a row knows which rows the running step updates at most: those that ranks have asked
// it for. Others may travel while it computes.
//
//===----------------------------------------------------------------------===//

#include "row_exchange_impl.h"

#include <algorithm>
#include <cstring>

using namespace genrec::rt;

void RowExchange::Impl::bringEarly(Communicator &on, const Impl *running, const FindEarly &find) {
  if (!isAsked || isArranged || fetches > 0)
    throw Error("rows are brought early that are not those of the step's first 'ask'",
                "call 'bringEarly' once, between 'ask' and 'find'");
  if (!hasShards)
    return arrange();
  findEarly(running, find);
  for (int32_t to = 0; to < ranks; ++to) {
    messageBytes[to] = bitBytes(sumOfCells(receiveCounts, to));
    for (int32_t store = 0; store < storeCount(); ++store) {
      int64_t &count = receiveEarly[cell(to, store)] = 0;
      for (int32_t number : owned[store].askedBy(visit(0, to)))
        count += owned[store].isEarly[number];
      messageBytes[to] += messageFloats(count, stores[store].valueFloats()) * 4;
    }
  }
  earlyRound.layOut(messageBytes);
  for (int32_t to = 0; to < ranks; ++to)
    packEarly(to);
  earlyRound.exchange(on);
  for (int32_t from = 0; from < ranks; ++from)
    readEarly(from);
  arrange();
}

/// A row that the running step was asked for may change.
void RowExchange::Impl::findEarly(const Impl *running, const FindEarly &find) {
  for (int32_t store = 0; store < storeCount(); ++store) {
    OwnedRows &of = owned[store];
    std::span<const int64_t> keys = of.keys.keys();
    of.isEarly.assign(keys.size(), 0);
    // Keys that are not looked for cannot be told from those of the running step; values that come
    // early are as they are.
    // The running step updates and inserts rows of replicas that only other ranks asked for.
    bool allowsEarly =
        travel.ownersDeduplicate && !travel.bf16Values && !stores[store].hasReplicas();
    if (keys.empty() || !allowsEarly || !find(store, keys, of.rows.data()))
      continue;
    const KeyIndex *busy = running ? &running->owned[store].keys : nullptr;
    for (size_t number = 0; number < keys.size(); ++number)
      of.isEarly[number] = of.rows[number] && !(busy && busy->contains(keys[number]));
  }
}

/// A message: a bit per key that the rank asked for, store by store; the rows of those that are
/// set. Early rows come first among those that a rank asks for, from now on at both ends.
void RowExchange::Impl::packEarly(int32_t to) {
  char *message = earlyRound.outgoing(to);
  auto *bits = reinterpret_cast<uint64_t *>(message);
  int64_t rows = sumOfCells(receiveCounts, to), at = 0;
  std::fill_n(bits, bitBytes(rows) / 8, 0);
  auto *values = reinterpret_cast<float *>(message + bitBytes(rows));
  for (int32_t store = 0; store < storeCount(); ++store) {
    OwnedRows &of = owned[store];
    std::span<int32_t> wanted = of.askedBy(visit(0, to));
    int64_t width = stores[store].valueFloats(), early = 0;
    lateOnes.clear();
    for (int32_t number : wanted) {
      bits[at / 64] |= static_cast<uint64_t>(of.isEarly[number]) << at % 64;
      ++at;
      if (!of.isEarly[number]) {
        lateOnes.push_back(number);
        continue;
      }
      std::memcpy(values + early * width, of.rows[number], width * sizeof(float));
      wanted[early++] = number;
    }
    std::copy(lateOnes.begin(), lateOnes.end(), wanted.begin() + early);
    values += messageFloats(early, width);
  }
}

void RowExchange::Impl::readEarly(int32_t from) {
  std::span<char> message = earlyRound.incoming(from);
  int64_t rows = sumOfCells(sendCounts, from), at = 0, floats = 0;
  auto size = static_cast<int64_t>(message.size());
  const auto *bits = reinterpret_cast<const uint64_t *>(message.data());
  int32_t *numbers = sentNumbers.data();
  for (int32_t other = 0; other < from; ++other)
    numbers += sumOfCells(sendCounts, other);
  for (int32_t store = 0; store < storeCount() && size >= bitBytes(rows); ++store) {
    int64_t count = sendCounts[cell(from, store)], early = 0;
    lateOnes.clear();
    for (int64_t i = 0; i < count; ++i, ++at) {
      if (bits[at / 64] >> at % 64 & 1)
        numbers[early++] = numbers[i];
      else
        lateOnes.push_back(numbers[i]);
    }
    std::copy(lateOnes.begin(), lateOnes.end(), numbers + early);
    numbers += count;
    sendEarly[cell(from, store)] = early;
    floats += messageFloats(early, stores[store].valueFloats());
  }
  if (size != bitBytes(rows) + floats * 4)
    throw Error("rank " + std::to_string(from) + " sends early rows in " + std::to_string(size) +
                " bytes, which are not those that it says");
  earlyValues[from] = reinterpret_cast<float *>(message.data() + bitBytes(rows));
  if (from == rank)
    return;
  traffic.rowBytes += floats * 4;
  traffic.earlyRowBytes += floats * 4;
}
