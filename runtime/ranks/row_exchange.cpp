//===- row_exchange.cpp - rows of sharded tables, among ranks -------------===//

#include "row_exchange_impl.h"

using namespace genrec::rt;

void AskedRows::begin(int32_t firstPortion) {
  keys.clear();
  addresses.clear();
  sections.clear();
  sorted.clear();
  touchedBy.clear();
  sums.begin();
  nextPortion = firstPortion;
}

void OwnedRows::begin() {
  keys.clear();
  rows.clear();
  asked.clear();
  starts.assign(1, 0);
  sums.begin();
  updateRows.clear();
}

RowExchange::Impl::Impl(Communicator &comm, std::vector<ExchangedStore> given, int32_t allPortions)
    : comm(comm), stores(std::move(given)), ranks(comm.getSize()), rank(comm.getRank()),
      portions(getPortions(allPortions, rank, ranks)), sendParts(ranks), receiveParts(ranks),
      sendCounts(cell(ranks, 0)), receiveCounts(cell(ranks, 0)), cursors(cell(ranks, 0)),
      sendKeys(ranks), receiveKeys(ranks), sendValues(ranks), sendMasks(ranks), receiveMasks(ranks),
      sendSums(ranks), receiveSums(ranks), sumCursors(ranks), maskCursors(ranks) {
  for (int32_t other = 0; other < ranks; ++other) {
    covers.push_back(getNodes(getPortions(allPortions, other, ranks)));
    if (covers.back().size() > 32) // bits of a mask
      throw Error(std::to_string(allPortions) + " portions are too many", "use at most 131072");
  }
  for (const ExchangedStore &store : stores) {
    if (store.dim < 1 || store.members.empty())
      throw Error("a store has " + std::to_string(store.dim) + " floats per row and " +
                  std::to_string(store.members.size()) + " tables");
    asked.emplace_back(store.dim);
    owned.emplace_back(store.dim);
  }
  begin();
}

void RowExchange::Impl::begin() {
  fetches = 0;
  isCollected = false;
  for (AskedRows &from : asked)
    from.begin(portions.first);
  for (OwnedRows &of : owned)
    of.begin();
}

void RowExchange::Impl::checkStore(int32_t store) const {
  if (store < 0 || store >= storeCount())
    throw Error("store " + std::to_string(store) + " is not among " + std::to_string(storeCount()));
}

RowExchange::Update RowExchange::Impl::getUpdate(int32_t store) const {
  checkStore(store);
  return {owned[store].updateRows, owned[store].updateSums.data()};
}

//===----------------------------------------------------------------------===//
// What others see
//===----------------------------------------------------------------------===//

RowExchange::RowExchange(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions)
    : impl(std::make_unique<Impl>(comm, std::move(stores), portions)) {}

RowExchange::~RowExchange() = default;

void RowExchange::begin() { impl->begin(); }

void RowExchange::fetch(std::span<const RowRequest> requests, const FindRows &find) {
  impl->tellOthers([&] { impl->fetch(requests, find); });
}

void RowExchange::contribute(int32_t store, int32_t portion, std::span<float *const> rows,
                             const float *sums) {
  impl->tellOthers([&] { impl->contribute(store, portion, rows, sums); });
}

void RowExchange::collect() {
  impl->tellOthers([&] { impl->collect(); });
}

RowExchange::Update RowExchange::getUpdate(int32_t store) const { return impl->getUpdate(store); }
