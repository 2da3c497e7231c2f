//===- rank_work.cpp - What each rank does of a training ------------------===//

#include "rank_work.h"

#include "genrec_rt/batch.h"

#include <algorithm>

namespace genrec::rt {

namespace {

/// Of so many steps, counts are kept one by one.
constexpr size_t kMostSteps = size_t(1) << 20;
/// Steps whose counts travel together.
constexpr size_t kStepsPerCall = 4096;

} // namespace

RankWork::RankWork(const genrec_model_desc &model, Communicator *comm) : model(model), comm(comm) {
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    bool isList = domain.kind == GENREC_DOMAIN_DATA && domain.parent >= 0;
    bool isCut = domain.kind == GENREC_DOMAIN_DERIVED && domain.max_length > 0 &&
                 model.domains[domain.truncated].kind == GENREC_DOMAIN_DATA;
    if (isList || isCut)
      counts.push_back({i, 0, {}});
  }
  counts.push_back({-1, 0, {}});
}

int64_t RankWork::countIn(const Batch &batch, int32_t domain) const {
  if (domain < 0)
    return batch.rows;
  const genrec_domain_desc &desc = model.domains[domain];
  const bool isCut = desc.kind == GENREC_DOMAIN_DERIVED;
  const DomainBatch &list = batch.domains[isCut ? desc.truncated : domain];
  if (!list.given)
    return 0;
  if (!isCut)
    return list.count;
  int64_t parents = batch.domains[model.domains[desc.truncated].parent].count, count = 0;
  for (int64_t i = 0; i < parents; ++i)
    count += std::min(list.offsets[i + 1] - list.offsets[i], desc.max_length);
  return count;
}

void RankWork::beginStep() {
  if (comm)
    inExchanges = comm->getTimeInCalls();
}

void RankWork::add(std::span<const Batch *const> portions) {
  for (Counted &each : counts) {
    int64_t count = 0;
    for (const Batch *portion : portions)
      count += countIn(*portion, each.domain);
    each.sum += count;
    if (comm && comm->getSize() > 1 && each.steps.size() < kMostSteps)
      each.steps.push_back(count);
  }
  if (comm && comm->getSize() > 1 && exchangeNanoseconds.size() < kMostSteps)
    exchangeNanoseconds.push_back((comm->getTimeInCalls() - inExchanges).count());
}

std::vector<std::vector<int64_t>> RankWork::gathered(const std::vector<int64_t> &values) const {
  size_t ranks = comm ? comm->getSize() : 1, count = values.size();
  std::vector<int64_t> all = values;
  all.resize(ranks * count);
  if (comm)
    comm->allGather(values.data(), all.data(), static_cast<int64_t>(count * sizeof values[0]));
  std::vector<std::vector<int64_t>> byRank;
  for (size_t rank = 0; rank < ranks; ++rank)
    byRank.emplace_back(all.begin() + rank * count, all.begin() + (rank + 1) * count);
  return byRank;
}

/// Calls body(values) with what the ranks had in each step.
template <class Body>
void RankWork::forSteps(const std::vector<int64_t> &steps, const Body &body) const {
  auto ranks = static_cast<size_t>(comm->getSize());
  std::vector<int64_t> all(ranks * std::min(steps.size(), kStepsPerCall)), values(ranks);
  for (size_t first = 0; first < steps.size(); first += kStepsPerCall) {
    size_t count = std::min(kStepsPerCall, steps.size() - first);
    comm->allGather(steps.data() + first, all.data(),
                    static_cast<int64_t>(count * sizeof steps[0]));
    for (size_t step = 0; step < count; ++step) {
      for (size_t rank = 0; rank < ranks; ++rank)
        values[rank] = all[rank * count + step];
      body(values);
    }
  }
}

double RankWork::imbalance(const std::vector<int64_t> &steps) const {
  double most = 0, total = 0;
  forSteps(steps, [&](const std::vector<int64_t> &values) {
    most += static_cast<double>(*std::max_element(values.begin(), values.end()));
    for (int64_t value : values)
      total += static_cast<double>(value);
  });
  return total > 0 ? most * static_cast<double>(comm->getSize()) / total - 1 : 0;
}

std::vector<double> RankWork::idleSeconds() const {
  std::vector<double> idle(comm ? comm->getSize() : 1);
  if (idle.size() > 1)
    forSteps(exchangeNanoseconds, [&](const std::vector<int64_t> &values) {
      int64_t least = *std::min_element(values.begin(), values.end());
      for (size_t rank = 0; rank < idle.size(); ++rank)
        idle[rank] += static_cast<double>(values[rank] - least) * 1e-9;
    });
  return idle;
}

Json RankWork::devicesOf(const Session &session) const {
  struct Named {
    int64_t number;
    char name[256], uuid[64];
  };
  const std::optional<DeviceUse> use = session.deviceUse();
  if (!use)
    return Json::array();
  Named mine{use->number, {}, {}};
  use->name.copy(mine.name, sizeof mine.name - 1);
  use->uuid.copy(mine.uuid, sizeof mine.uuid - 1);
  std::vector<Named> all(comm ? comm->getSize() : 1, mine);
  if (comm)
    comm->allGather(&mine, all.data(), sizeof mine);
  Json devices = Json::array();
  for (const Named &each : all)
    devices.push_back({{"index", each.number}, {"name", each.name}, {"uuid", each.uuid}});
  return devices;
}

Json RankWork::toJson(const DecodedData &decoded, Session &session) const {
  auto nameOf = [&](const Counted &each) {
    return each.domain < 0 ? "rows" : model.domains[each.domain].name;
  };
  std::vector<int64_t> mine = {comm ? comm->getTimeInCalls().count() : 0, decoded.rowGroups,
                               decoded.bytes, session.memoryUse().optimizer};
  for (int32_t table = 0; table < model.table_count; ++table)
    mine.push_back(session.table(table).size());
  for (const Counted &each : counts)
    mine.push_back(each.sum);
  std::vector<double> idle = idleSeconds();
  const Json devices = devicesOf(session);
  Json ranks = Json::array();
  for (const std::vector<int64_t> &values : gathered(mine)) {
    Json rank = {{"rank", ranks.size()},
                 {"tokens", Json::object()},
                 {"row_groups_decoded", values[1]},
                 {"bytes_decoded", values[2]},
                 {"optimizer_bytes", values[3]},
                 {"table_rows", Json::object()},
                 {"seconds_in_exchanges", static_cast<double>(values[0]) * 1e-9},
                 {"seconds_idle", idle[ranks.size()]}};
    auto value = values.begin() + 4;
    for (int32_t table = 0; table < model.table_count; ++table)
      rank["table_rows"][model.tables[table].name] = *value++;
    for (const Counted &each : counts)
      (each.domain < 0 ? rank : rank["tokens"])[nameOf(each)] = *value++;
    if (!devices.empty())
      rank["device"] = devices[ranks.size()];
    ranks.push_back(std::move(rank));
  }
  Json json = {{"by_rank", ranks}};
  if (ranks.size() == 1)
    return json;
  Json imbalances = Json::object();
  for (const Counted &each : counts)
    (each.domain < 0 ? imbalances : imbalances["tokens"])[nameOf(each)] = imbalance(each.steps);
  json["imbalance"] = imbalances;
  return json;
}

} // namespace genrec::rt
