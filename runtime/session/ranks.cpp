//===- ranks.cpp - What the portions of a batch have in common ------------===//

#include "ranks.h"

#include "find_rows.h"
#include "genrec_rt/owner.h"
#include "step_slot.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace genrec::rt {

size_t memberOf(const genrec_table_desc &table) {
  return static_cast<size_t>(table.group ? table.key >> table.key_bits : 0);
}

ExchangedTables::ExchangedTables(const genrec_model_desc &model,
                                 std::span<const std::shared_ptr<TableStore>> tables,
                                 std::span<const char> replicated) {
  for (int32_t table = 0; table < model.table_count; ++table) {
    const genrec_table_desc &desc = model.tables[table];
    auto same = std::find(tables.begin(), tables.begin() + table, tables[table]);
    if (same == tables.begin() + table) {
      storeOf.push_back(static_cast<int32_t>(stores.size()));
      tableOf.push_back(table);
      stores.push_back({.dim = desc.dim, .keyBits = desc.group ? desc.key_bits : 63});
      stores.back().isFrozen = desc.optimizer.kind == GENREC_OPTIMIZER_FROZEN;
      stores.back().isBf16 = desc.element == GENREC_ROW_BF16;
    } else {
      storeOf.push_back(storeOf[same - tables.begin()]);
    }
    ExchangedStore &store = stores[storeOf[table]];
    size_t member = memberOf(desc);
    store.members.resize(std::max(store.members.size(), member + 1));
    store.members[member] = hashTableName(desc.name);
  }
  setReplicated(model, replicated);
}

void ExchangedTables::setReplicated(const genrec_model_desc &model,
                                    std::span<const char> replicated) {
  for (ExchangedStore &store : stores)
    store.replicated.assign(store.members.size(), false);
  for (int32_t table = 0; table < model.table_count; ++table)
    stores[storeOf[table]].replicated[memberOf(model.tables[table])] = replicated[table];
  for (ExchangedStore &store : stores) // or each key would be looked at
    if (!store.hasReplicas())
      store.replicated.clear();
}

/// Nobody else is waited for by one rank; on a device rows are found in the order of steps.
static Overlap overlapOf(Overlap asked, const Communicator &comm, const Device *device) {
  if (comm.getSize() == 1)
    return Overlap::none;
  return device && asked == Overlap::rows ? Overlap::keys : asked;
}

Ranks::Ranks(Communicator &comm, int32_t portions, const genrec_model_desc &model,
             std::span<const std::shared_ptr<TableStore>> given, std::span<const char> replicated,
             ParameterShards &shards, RowTravel travel, EarlyGradients early, Device *device,
             Overlap overlap)
    : communicator(comm), count(portions),
      range(getPortions(portions, comm.getRank(), comm.getSize())),
      tables(model, given, replicated), overlapping(overlapOf(overlap, comm, device)),
      turns([device, &comm] {
        if (device)
          device->enter();
        comm.enter();
      }),
      steps{{comm, portions, model, tables, shards, travel, turns, device},
            {comm, portions, model, tables, shards, travel, turns,
             overlapping == Overlap::none ? nullptr : device}} {
  if (device) { // sums of any size have rounds of their own; nothing is tried out
    isAhead = early == EarlyGradients::yes && comm.getSize() > 1;
    return;
  }
  int64_t trained = 0;
  for (int32_t i = 0; i < model.parameter_count; ++i)
    trained += shards.isTrained(i) ? shards.countFloats(i) : 0;
  if (early == EarlyGradients::no || comm.getSize() == 1 || trained < StepSums::kLeastAhead)
    return;
  mayBeAhead = true;
  isAhead = early == EarlyGradients::yes;
  if (early == EarlyGradients::tried && comm.getRank() == 0)
    trial.emplace();
}

void Ranks::beginCompute(RankStep &step, bool updates) {
  if (DeviceRanks *onDevice = step.onDevice()) {
    if (updates && isAhead && !aheadOnDevice)
      aheadOnDevice = communicator.duplicate();
    return onDevice->setAhead(updates && isAhead ? aheadOnDevice.get() : nullptr);
  }
  if (updates && mayBeAhead && !ahead)
    ahead = std::make_unique<SumsAhead>(communicator);
  step.setAhead(updates && isAhead ? ahead.get() : nullptr);
}

Communicator &Ranks::dispatchComm() {
  if (!ofDispatch)
    ofDispatch = communicator.duplicate();
  return *ofDispatch;
}

void Ranks::abort(const std::string &why) noexcept {
  communicator.abort(why);
  if (ahead)
    ahead->abort(why);
  for (Communicator *other : {aheadOnDevice.get(), ofDispatch.get()})
    if (other)
      other->abort(why);
}

bool Ranks::chooseNext() {
  if (!trial)
    return isAhead;
  int64_t now = profileClock(), before = std::exchange(lastEnd, now);
  return trial->next(now - before);
}

void Ranks::exchangeSums(RankStep &step, bool updates, OwnReport own) {
  own.isNextAhead = updates ? chooseNext() : isAhead;
  step.exchangeSums(updates, own);
  isAhead = step.getReport().isNextAhead;
}

void Ranks::setReplicated(const genrec_model_desc &model, std::span<const char> replicated) {
  tables.setReplicated(model, replicated);
  for (RankStep &step : steps)
    step.adoptReplicas();
}

void Ranks::reset() {
  for (RankStep &step : steps)
    step.reset();
}

ExchangeCounts Ranks::getTraffic() const {
  ExchangeCounts all;
  for (const RankStep &step : steps)
    all.add(step.getTraffic());
  return all;
}

RankStep::RankStep(Communicator &comm, int32_t portions, const genrec_model_desc &model,
                   const ExchangedTables &tables, ParameterShards &shards, RowTravel travel,
                   PortionTurns &turns, Device *device)
    : comm(comm), tables(tables), shards(shards), turns(turns),
      exchange(comm, tables.stores, portions, travel),
      sums(comm, portions, model.loss_count, shards), reportRound(comm),
      collectedRows(tables.stores.size()) {
  if (device)
    deviceStep =
        std::make_unique<DeviceRanks>(*device, comm, portions, tables, shards, travel, turns);
}

void RankStep::begin(std::span<StepSlot *const> ofPortions) {
  slots = ofPortions;
  for (StepSlot *slot : slots)
    slot->rankStep = this;
  if (deviceStep)
    deviceStep->begin(slots);
  exchange.begin();
  sums.begin();
  requests.clear();
  isDispatched = false;
}

void RankStep::reset() {
  exchange.reset();
  reportRound.reset();
}

void RankStep::adoptReplicas() {
  std::vector<std::vector<char>> ofStores;
  for (const ExchangedStore &store : tables.stores)
    ofStores.push_back(store.replicated);
  exchange.setReplicated(ofStores);
  if (deviceStep)
    deviceStep->adoptReplicas();
}

//===----------------------------------------------------------------------===//
// Table rows
//===----------------------------------------------------------------------===//

void RankStep::request(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
                       int64_t count, float **rows) {
  auto *zeros = const_cast<float *>(slot.state().zeroRow(table));
  requests.push_back({tables.storeOf[table], keys, valid, count, rows, zeros});
  if (!isDispatched)
    return;
  std::fill_n(rows, count, zeros); // what is computed where the exchange fails
  turns.meet([this] { fetch(); });
}

void RankStep::ask(Communicator &on) {
  if (deviceStep)
    return deviceStep->ask(on);
  on.setPurpose({"the keys", slots.front()->step});
  // What portions give in the compute stage is not complete before its end: it rides later.
  exchange.ask(on, requests, &sums);
  sums.finish(on, /*messagesStay=*/false); // a later lookup asks again
  requests.clear();
  isDispatched = true;
}

void RankStep::bringEarly(Communicator &on, const RankStep *running) {
  StepSlot &slot = *slots.front();
  on.setPurpose({"the early rows", slot.step});
  exchange.bringEarly(
      on, running ? &running->exchange : nullptr,
      [&](int32_t store, std::span<const int64_t> keys, float **rows) {
        TableStore &table = *slot.state().tables[tables.tableOf[store]];
        if (table.configuration().rules.any()) // what sees a row counts, and rows leave
          return false;
        table.find(slot.pool, keys.data(), nullptr, static_cast<int64_t>(keys.size()), rows,
                   nullptr);
        return true;
      });
}

void RankStep::bring(Communicator &on) {
  if (deviceStep)
    return deviceStep->bring(on);
  on.setPurpose({"the rows", slots.front()->step});
  exchange.find(on, makeFinder());
  exchange.bring(on);
}

RowExchange::FindRows RankStep::makeFinder() {
  return [this](int32_t store, std::span<const int64_t> keys, float **rows) {
    findRows(*slots.front(), tables.tableOf[store], keys.data(), nullptr,
             static_cast<int64_t>(keys.size()), rows);
  };
}

void RankStep::fetch() {
  ask(comm);
  bring(comm);
}

void RankStep::contributeRows(StepSlot &slot, int32_t table, std::span<float *const> rows,
                              const float *rowSums) {
  exchange.contribute(tables.storeOf[table], slot.portion, rows, rowSums);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

void RankStep::contribute(int32_t number, std::span<const float *const> partial,
                          std::span<const int64_t> floats, std::span<const int32_t> parameters) {
  sums.contribute(number, partial, floats, parameters);
  bool ofParameters =
      std::all_of(parameters.begin(), parameters.end(), [](int32_t of) { return of >= 0; });
  // Others may be read by the compute stage. A step that is not dispatched may run beside another.
  if (ahead && isDispatched && ofParameters)
    sums.sendAhead(number, *ahead, {"the gradients", slots.front()->step});
}

void RankStep::collect(int32_t number, std::span<float *const> totals) {
  if (!sums.has(number))
    turns.meet([] {});
  sums.collect(comm, number, totals);
}

void RankStep::report(const OwnReport &own) {
  deviceStep->end();
  comm.setPurpose({"the report", slots.front()->step});
  sums.report(slots, own);
  reportRound.exchange(comm, sums);
  sums.finish(comm, /*messagesStay=*/true);
}

void RankStep::exchangeSums(bool updates, const OwnReport &own) {
  comm.setPurpose({updates ? "the gradients" : "the sums", slots.front()->step});
  if (ahead) {
    comm.setPurpose({"the gradients", slots.front()->step});
    ahead->wait(comm);
    sums.endAhead();
  }
  sums.report(slots, own);
  if (updates) {
    exchange.collect(&sums, makeFinder());
    describeCollected();
  } else {
    reportRound.exchange(comm, sums);
  }
  sums.finish(comm, /*messagesStay=*/true);
}

void RankStep::describeCollected() {
  int64_t most = 0;
  for (size_t store = 0; store < collectedRows.size(); ++store)
    most = std::max(
        most, static_cast<int64_t>(exchange.getUpdate(static_cast<int32_t>(store)).rows.size()));
  if (static_cast<int64_t>(numbers.size()) < most + 1) {
    numbers.resize(most + 1);
    std::iota(numbers.begin(), numbers.end(), int64_t(0));
  }
  for (size_t store = 0; store < collectedRows.size(); ++store) {
    RowExchange::Update update = exchange.getUpdate(static_cast<int32_t>(store));
    collectedRows[store] = {const_cast<float **>(update.rows.data()),
                            const_cast<float *>(update.sums), tables.stores[store].dim,
                            numbers.data(), nullptr};
  }
}

/// Rows of replicas count at their owners.
std::span<const float> RankStep::withoutReplicas(const OwnedValues &values, int32_t number) {
  const genrec_domain *owned = values.owned[number];
  std::span<const float> all(values.values[number], static_cast<size_t>(owned->count));
  int32_t table = slots.front()->state().model.domains[values.slot->numberOf(owned)].collected - 1;
  std::span<const char> isOwned;
  if (table >= 0)
    isOwned = exchange.getUpdate(tables.storeOf[table]).isOwned;
  if (isOwned.empty())
    return all;
  ownedValues.clear();
  for (size_t row = 0; row < all.size(); ++row)
    if (isOwned[row])
      ownedValues.push_back(all[row]);
  return ownedValues;
}

void RankStep::sumExactly(const OwnedValues &values, float *const *sums) {
  // Rows of parameters whose updates ranks do not share are on every rank: their sums do not
  // travel.
  auto travels = [&](int32_t i) { return !values.ofParameters[i] || shards.areShared(); };
  exact.assign(values.count, {});
  size_t travelling = 0;
  for (int32_t i = 0; i < values.count; ++i)
    travelling += travels(i);
  auto forSums = [&](const auto &body) { // those that travel are in front
    size_t first = 0, last = travelling;
    for (int32_t i = 0; i < values.count; ++i)
      body(i, exact[travels(i) ? first++ : last++]);
  };
  forSums([&](int32_t i, ExactSum &sum) { sum.add(withoutReplicas(values, i)); });
  if (travelling > 0) {
    comm.setPurpose({"the norm", slots.front()->step});
    ExactSum::reduceAll(comm, std::span(exact).first(travelling));
  }
  forSums([&](int32_t i, const ExactSum &sum) { *sums[i] = sum.round(); });
}

void RankStep::shareParameters() {
  if (deviceStep)
    return deviceStep->shareParameters();
  if (!shards.areShared())
    return;
  comm.setPurpose({"the parameters", slots.front()->step});
  parameterBytes += shards.gather(comm, slots.front()->state().parameterValues.data());
}

} // namespace genrec::rt
