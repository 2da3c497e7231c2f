//===- ranks.cpp - What the portions of a batch have in common ------------===//

#include "ranks.h"

#include "find_rows.h"
#include "genrec_rt/owner.h"
#include "step_slot.h"

#include <algorithm>
#include <numeric>

namespace genrec::rt {

namespace {

/// What the exchange needs to know of each store; tables of one group share one.
std::vector<ExchangedStore> describeStores(const genrec_model_desc &model,
                                           std::span<const std::shared_ptr<TableStore>> tables,
                                           std::vector<int32_t> &storeOf,
                                           std::vector<int32_t> &tableOf) {
  std::vector<ExchangedStore> stores;
  for (int32_t table = 0; table < model.table_count; ++table) {
    const genrec_table_desc &desc = model.tables[table];
    auto same = std::find(tables.begin(), tables.begin() + table, tables[table]);
    if (same == tables.begin() + table) {
      storeOf.push_back(static_cast<int32_t>(stores.size()));
      tableOf.push_back(table);
      stores.push_back({desc.dim, {}, desc.group ? desc.key_bits : 63});
    } else {
      storeOf.push_back(storeOf[same - tables.begin()]);
    }
    ExchangedStore &store = stores[storeOf[table]];
    auto member = static_cast<size_t>(desc.group ? desc.key >> desc.key_bits : 0);
    store.members.resize(std::max(store.members.size(), member + 1));
    store.members[member] = hashTableName(desc.name);
  }
  return stores;
}

} // namespace

Ranks::Ranks(Communicator &comm, int32_t portions, const genrec_model_desc &model,
             std::span<const std::shared_ptr<TableStore>> tables)
    : communicator(comm), count(portions),
      range(getPortions(portions, comm.getRank(), comm.getSize())),
      exchange(comm, describeStores(model, tables, storeOf, tableOf), portions),
      collectedRows(tableOf.size()) {
  reported.losses.resize(model.loss_count);
}

void Ranks::begin(std::span<StepSlot *const> ofPortions) {
  slots = ofPortions;
  exchange.begin();
  requests.clear();
  isDispatched = false;
  for (Sums &each : sums)
    each.isReduced = false;
}

//===----------------------------------------------------------------------===//
// Table rows
//===----------------------------------------------------------------------===//

void Ranks::request(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
                    int64_t count, float **rows) {
  auto *zeros = const_cast<float *>(slot.state().zeroRow(table));
  requests.push_back({storeOf[table], keys, valid, count, rows, zeros});
  if (isDispatched)
    fetch();
}

void Ranks::fetch() {
  StepSlot &slot = *slots.front();
  exchange.fetch(requests, [&](int32_t store, std::span<const int64_t> keys, float **rows) {
    findRows(slot, tableOf[store], keys.data(), nullptr, static_cast<int64_t>(keys.size()), rows);
  });
  requests.clear();
  isDispatched = true;
}

void Ranks::contributeRows(StepSlot &slot, int32_t table, std::span<float *const> rows,
                           const float *rowSums) {
  exchange.contribute(storeOf[table], slot.portion, rows, rowSums);
}

void Ranks::collectRows() {
  exchange.collect();
  int64_t most = 0;
  for (size_t store = 0; store < collectedRows.size(); ++store)
    most = std::max(most, static_cast<int64_t>(
                              exchange.getUpdate(static_cast<int32_t>(store)).rows.size()));
  if (static_cast<int64_t>(numbers.size()) < most + 1) {
    numbers.resize(most + 1);
    std::iota(numbers.begin(), numbers.end(), int64_t(0));
  }
  for (size_t store = 0; store < collectedRows.size(); ++store) {
    RowExchange::Update update = exchange.getUpdate(static_cast<int32_t>(store));
    collectedRows[store] = {const_cast<float **>(update.rows.data()),
                            const_cast<float *>(update.sums),
                            slots.front()->state().model.tables[tableOf[store]].dim, numbers.data()};
  }
}

//===----------------------------------------------------------------------===//
// Sums over portions
//===----------------------------------------------------------------------===//

void Ranks::contribute(int32_t number, std::span<const float *const> partial,
                       std::span<const int64_t> floats) {
  if (static_cast<size_t>(number) >= sums.size())
    sums.resize(number + 1);
  Sums &to = sums[number];
  int64_t length = std::accumulate(floats.begin(), floats.end(), int64_t(0));
  if (!to.portions || to.length != length) {
    to.portions = std::make_unique<PortionSums>(length, count, range);
    to.length = length;
    to.total.resize(length);
  }
  float *at = to.portions->begin();
  for (size_t i = 0; i < partial.size(); ++i)
    at = std::copy_n(partial[i], floats[i], at);
  to.portions->commit();
}

void Ranks::collect(int32_t number, std::span<const int64_t> floats,
                    std::span<float *const> results) {
  Sums &from = sums[number];
  if (!from.isReduced)
    from.portions->reduce(communicator, from.total.data());
  from.isReduced = true;
  const float *at = from.total.data();
  for (size_t i = 0; i < results.size(); at += floats[i++])
    std::copy_n(at, floats[i], results[i]);
}

float Ranks::sumExactly(std::span<const float> values) {
  ExactSum sum;
  sum.add(values);
  sum.reduce(communicator);
  return sum.round();
}

const Ranks::Report &Ranks::report(int32_t signal) {
  // Every rank sends as much: those with a portion less send zeros for it.
  size_t losses = reported.losses.size(), each = 2 * losses + 1;
  int32_t ranks = communicator.getSize();
  auto most = static_cast<size_t>(getPortions(count, 0, ranks).count);
  sent.assign(1 + most * each, 0.0);
  sent[0] = signal;
  for (size_t portion = 0; portion < slots.size(); ++portion) {
    double *to = sent.data() + 1 + portion * each;
    *to++ = static_cast<double>(slots[portion]->currentBatch().rows);
    for (const LossValue &loss : slots[portion]->losses) {
      *to++ = loss.sum;
      *to++ = loss.weight;
    }
  }
  received.resize(sent.size() * ranks);
  communicator.allGather(sent.data(), received.data(),
                         static_cast<int64_t>(sent.size() * sizeof(double)));
  std::fill(reported.losses.begin(), reported.losses.end(), LossValue{});
  reported.rows = 0;
  reported.signal = 0;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const double *ofRank = received.data() + rank * sent.size();
    reported.signal = std::max(reported.signal, static_cast<int32_t>(*ofRank++));
    for (int32_t portion = 0; portion < getPortions(count, rank, ranks).count; ++portion) {
      const double *from = ofRank + portion * each;
      reported.rows += static_cast<int64_t>(from[0]);
      for (size_t loss = 0; loss < losses; ++loss)
        reported.losses[loss].add({from[1 + 2 * loss], from[2 + 2 * loss]});
    }
  }
  return reported;
}

} // namespace genrec::rt
