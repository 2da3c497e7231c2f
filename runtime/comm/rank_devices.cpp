//===- rank_devices.cpp - Which rank takes which device -------------------===//

#include "rank_devices.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

namespace genrec::rt {

namespace {

using Devices = std::vector<DeviceUuid>;

bool has(const Devices &devices, const DeviceUuid &device) {
  return std::ranges::find(devices, device) != devices.end();
}

/// By rank: what each sees.
std::vector<Devices> gather(Communicator &comm, std::span<const DeviceUuid> seen) {
  const auto own = static_cast<int64_t>(seen.size());
  std::vector<int64_t> counts(comm.getSize());
  comm.allGather(&own, counts.data(), sizeof own);
  const auto most = static_cast<size_t>(std::ranges::max(counts));
  Devices mine(seen.begin(), seen.end()), all(most * counts.size());
  mine.resize(most);
  comm.allGather(mine.data(), all.data(), static_cast<int64_t>(most * sizeof(DeviceUuid)));
  std::vector<Devices> byRank;
  for (size_t rank = 0; rank < counts.size(); ++rank) {
    const auto first = all.begin() + static_cast<ptrdiff_t>(rank * most);
    byRank.emplace_back(first, first + counts[rank]);
  }
  return byRank;
}

[[noreturn]] void throwNoneLeft(const std::vector<Devices> &seen, int32_t rank) {
  std::string ranks;
  Devices together;
  for (size_t other = 0; other < seen.size(); ++other) {
    const bool shares = std::ranges::any_of(
        seen[other], [&](const DeviceUuid &device) { return has(seen[rank], device); });
    if (!shares)
      continue;
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(other);
    for (const DeviceUuid &device : seen[other])
      if (!has(together, device))
        together.push_back(device);
  }
  const char *shown = std::getenv("CUDA_VISIBLE_DEVICES");
  throw Error(
      "rank " + std::to_string(rank) + " has no GPU of its own: ranks " + ranks + " see " +
          (together.size() == 1 ? "one GPU" : std::to_string(together.size()) + " GPUs together"),
      "start as many ranks on a machine as it has GPUs (mpirun --map-by ppr:" +
          std::to_string(together.size()) +
          ":node), with several portions each (--portions), or let each rank see a GPU "
          "that no other has: CUDA_VISIBLE_DEVICES " +
          (shown ? "is '" + std::string(shown) + "' there" : "is not set there"));
}

} // namespace

size_t takeDevice(Communicator &comm, std::span<const DeviceUuid> seen) {
  const std::vector<Devices> byRank = gather(comm, seen);
  const int32_t self = comm.getRank();
  Devices taken;
  std::optional<size_t> own;
  for (int32_t rank = 0; rank <= self; ++rank) {
    const Devices &theirs = byRank[rank];
    const auto free =
        std::ranges::find_if(theirs, [&](const DeviceUuid &device) { return !has(taken, device); });
    if (free == theirs.end())
      continue;
    taken.push_back(*free);
    if (rank == self)
      own = free - theirs.begin();
  }
  runTogether(&comm, [&] {
    if (!own)
      throwNoneLeft(byRank, self);
  });
  return *own;
}

} // namespace genrec::rt
