//===- row_exchange.cpp - rows of sharded tables, among ranks -------------===//

#include "row_exchange_impl.h"

using namespace genrec::rt;

void AskedRows::begin(int32_t firstPortion) {
  keys.clear();
  addresses.clear();
  sections.clear();
  sorted.clear();
  replicas.clear();
  replicaKeys.clear();
  touchedBy.clear();
  sums.begin();
  nextPortion = firstPortion;
}

void OwnedRows::begin() {
  keys.clear();
  rows.clear();
  known = 0;
  asked.clear();
  starts.assign(1, 0);
  sums.begin();
  updateRows.clear();
  isOwned.clear();
}

RowExchange::Impl::Impl(Communicator &comm, std::vector<ExchangedStore> given, int32_t allPortions,
                        RowTravel travel)
    : comm(comm), travel(travel), stores(std::move(given)), ranks(comm.getSize()),
      rank(comm.getRank()), portions(getPortions(allPortions, rank, ranks)), keyRound(comm),
      earlyRound(comm), sumRound(comm), sendParts(ranks), receiveParts(ranks), messageBytes(ranks),
      sendCounts(cell(ranks, 0)), receiveCounts(cell(ranks, 0)), cursors(cell(ranks, 0)),
      replicaCursors(stores.size()), sendEarly(cell(ranks, 0)), receiveEarly(cell(ranks, 0)),
      sendValues(ranks), sendNarrow(ranks), receiveNarrow(ranks), sendMasks(ranks),
      sumFloats(ranks), wideSums(ranks), sumCursors(ranks), maskCursors(ranks) {
  for (int32_t other = 0; other < ranks; ++other) {
    covers.push_back(getNodes(getPortions(allPortions, other, ranks)));
    if (covers.back().size() > 32) // bits of a mask
      throw Error(std::to_string(allPortions) + " portions are too many", "use at most 131072");
    leaves.insert(leaves.end(), covers.back().begin(), covers.back().end());
  }
  for (const ExchangedStore &store : stores) {
    if (store.dim < 1 || store.members.empty())
      throw Error("a store has " + std::to_string(store.dim) + " floats per row and " +
                  std::to_string(store.members.size()) + " tables");
    asked.emplace_back(store.valueFloats(), store.dim);
    owned.emplace_back(store.dim);
  }
  checkReplicas();
  begin();
}

/// Notes whether stores have shards and replicas.
void RowExchange::Impl::checkReplicas() {
  hasShards = hasReplicas = sendsReplicas = false;
  for (const ExchangedStore &store : stores) {
    if (!store.replicated.empty() && store.replicated.size() != store.members.size())
      throw Error("a store of " + std::to_string(store.members.size()) + " tables says of " +
                  std::to_string(store.replicated.size()) + " whether they are replicated");
    hasShards |= store.hasShards();
    hasReplicas |= store.hasReplicas();
    sendsReplicas |= sendsKeysOf(store);
  }
  if (hasReplicas && travel.bf16Sums)
    throw Error(
        "sums of gradients are rounded where they travel, so that copies of replicated rows "
        "would differ from rank to rank",
        "send gradients as f32, or replicate no table");
}

void RowExchange::Impl::setReplicated(std::span<const std::vector<char>> ofStores) {
  if (ofStores.size() != stores.size())
    throw Error("replicas of " + std::to_string(ofStores.size()) + " stores are told, of " +
                std::to_string(stores.size()));
  for (size_t store = 0; store < stores.size(); ++store)
    stores[store].replicated = ofStores[store];
  checkReplicas();
  begin();
  reset();
}

void RowExchange::Impl::begin() {
  fetches = riddenFetches = 0;
  isAsked = isArranged = isCollected = false;
  for (AskedRows &from : asked)
    from.begin(portions.first);
  for (OwnedRows &of : owned)
    of.begin();
}

void RowExchange::Impl::reset() {
  for (BucketedRound *round : {&keyRound, &earlyRound, &sumRound})
    round->reset();
}

void RowExchange::Impl::checkStore(int32_t store) const {
  if (store < 0 || store >= storeCount())
    throw Error("store " + std::to_string(store) + " is not among " + std::to_string(storeCount()));
}

RowExchange::Update RowExchange::Impl::getUpdate(int32_t store) const {
  checkStore(store);
  return {owned[store].updateRows, owned[store].updateSums.data(), owned[store].isOwned};
}

RowExchange::Use RowExchange::Impl::getUse(int32_t store) const {
  checkStore(store);
  const AskedRows &from = asked[store];
  Use use;
  use.asked.resize(stores[store].members.size());
  for (int64_t key : from.keys.keys())
    ++use.asked[memberOf(stores[store], key)];
  for (uint32_t mask : from.masks)
    use.sums += std::popcount(mask);
  return use;
}

//===----------------------------------------------------------------------===//
// What others see
//===----------------------------------------------------------------------===//

RowExchange::RowExchange(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions,
                         RowTravel travel)
    : impl(std::make_unique<Impl>(comm, std::move(stores), portions, travel)) {}

RowExchange::~RowExchange() = default;

void RowExchange::begin() { impl->begin(); }

void RowExchange::reset() { impl->reset(); }

void RowExchange::setReplicated(std::span<const std::vector<char>> ofStores) {
  impl->setReplicated(ofStores);
}

void RowExchange::fetch(std::span<const RowRequest> requests, const FindRows &findRows,
                        Rider *rider) {
  ask(impl->comm, requests, rider);
  find(impl->comm, findRows);
  bring(impl->comm);
}

void RowExchange::ask(Communicator &on, std::span<const RowRequest> requests, Rider *rider) {
  tellOthers(on, [&] { impl->ask(on, requests, rider); });
}

void RowExchange::bringEarly(Communicator &on, const RowExchange *running, const FindEarly &find) {
  tellOthers(on, [&] { impl->bringEarly(on, running ? running->impl.get() : nullptr, find); });
}

void RowExchange::find(Communicator &on, const FindRows &find) {
  tellOthers(on, [&] { impl->find(find); });
}

void RowExchange::bring(Communicator &on) {
  tellOthers(on, [&] { impl->bring(on); });
}

std::span<float *const> RowExchange::contribute(int32_t store, int32_t portion,
                                                std::span<float *const> rows) {
  std::span<float *const> places;
  tellOthers(impl->comm, [&] { places = impl->contribute(store, portion, rows); });
  return places;
}

void RowExchange::contribute(int32_t store, int32_t portion, std::span<float *const> rows,
                             const float *sums) {
  std::span<float *const> places = contribute(store, portion, rows);
  int64_t dim = impl->dimOf(store);
  withRowSize(dim, [&](auto size) {
    for (size_t i = 0; i < places.size(); ++i)
      copyRow<size()>(places[i], sums + static_cast<int64_t>(i) * dim, dim);
  });
}

void RowExchange::collect(Rider *rider, const FindRows &find) {
  tellOthers(impl->comm, [&] { impl->collect(rider, find); });
}

const ExchangeCounts &RowExchange::getTraffic() const { return impl->traffic; }

RowExchange::Update RowExchange::getUpdate(int32_t store) const { return impl->getUpdate(store); }

RowExchange::Use RowExchange::getUse(int32_t store) const { return impl->getUse(store); }

RowExchange::Fetches RowExchange::getFetches() const { return impl->getFetches(); }
