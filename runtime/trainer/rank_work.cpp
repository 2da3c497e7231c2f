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

void RankWork::add(std::span<const Batch *const> portions) {
  for (Counted &each : counts) {
    int64_t count = 0;
    for (const Batch *portion : portions)
      count += countIn(*portion, each.domain);
    each.sum += count;
    if (comm && comm->getSize() > 1 && each.steps.size() < kMostSteps)
      each.steps.push_back(count);
  }
}

std::vector<int64_t> RankWork::gathered(int64_t value) const {
  std::vector<int64_t> all(comm ? comm->getSize() : 1, value);
  if (comm)
    comm->allGather(&value, all.data(), sizeof value);
  return all;
}

double RankWork::imbalance(const std::vector<int64_t> &steps) const {
  double most = 0, total = 0;
  auto ranks = static_cast<size_t>(comm->getSize());
  std::vector<int64_t> all(ranks * std::min(steps.size(), kStepsPerCall));
  for (size_t first = 0; first < steps.size(); first += kStepsPerCall) {
    size_t count = std::min(kStepsPerCall, steps.size() - first);
    comm->allGather(steps.data() + first, all.data(),
                    static_cast<int64_t>(count * sizeof steps[0]));
    for (size_t step = 0; step < count; ++step) {
      int64_t largest = 0;
      for (size_t rank = 0; rank < ranks; ++rank) {
        largest = std::max(largest, all[rank * count + step]);
        total += static_cast<double>(all[rank * count + step]);
      }
      most += static_cast<double>(largest);
    }
  }
  return total > 0 ? most * static_cast<double>(ranks) / total - 1 : 0;
}

Json RankWork::toJson(const DecodedData &decoded) const {
  std::vector<int64_t> seconds = gathered(comm ? comm->getTimeInCalls().count() : 0);
  std::vector<int64_t> groups = gathered(decoded.rowGroups), bytes = gathered(decoded.bytes);
  Json ranks = Json::array();
  for (size_t rank = 0; rank < seconds.size(); ++rank)
    ranks.push_back({{"rank", rank},
                     {"tokens", Json::object()},
                     {"row_groups_decoded", groups[rank]},
                     {"bytes_decoded", bytes[rank]},
                     {"seconds_in_exchanges", static_cast<double>(seconds[rank]) * 1e-9}});
  Json imbalances = Json::object();
  for (const Counted &each : counts) {
    std::string name = each.domain < 0 ? "rows" : model.domains[each.domain].name;
    std::vector<int64_t> sums = gathered(each.sum);
    for (size_t rank = 0; rank < sums.size(); ++rank)
      (each.domain < 0 ? ranks[rank] : ranks[rank]["tokens"])[name] = sums[rank];
    if (sums.size() > 1)
      (each.domain < 0 ? imbalances : imbalances["tokens"])[name] = imbalance(each.steps);
  }
  Json json = {{"by_rank", ranks}};
  if (seconds.size() > 1)
    json["imbalance"] = imbalances;
  return json;
}

} // namespace genrec::rt
