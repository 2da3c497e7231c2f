//===- access_costs.cpp - What a warp's accesses of memory take -----------===//
//
// A device serves the lanes of a warp together: of device memory in sectors of 32 bytes, of shared
// memory in passes, each of which takes one word of 4 bytes of each of 32 banks. Lanes that run one
// after another here belong together where they make the same access for as many times: the n-th
// of each lane at one place of the program. (In divergent loops that may be another one.)
//
// A thread that goes round a loop waits for memory in each round, whatever others do: a launch
// takes as long as its longest thread. And each launch takes its time, however little it does.
//
// Counted are accesses that compiled code makes, no copies and matrix products. The host's compiler
// may have joined or split loads otherwise than nvcc does.
//
//===----------------------------------------------------------------------===//

#include "operations.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <tuple>

namespace simt {

namespace {

constexpr uintptr_t kSector = 32, kWord = 4, kBanks = 32;

/// An access of the program.
struct Site {
  const void *place;
  bool isShared, isWrite;
  size_t bytes;
  auto operator<=>(const Site &) const = default;
};

/// The n-th access of each lane.
struct Together {
  uint32_t lanes = 0;
  uintptr_t at[kWarp];
};

/// Accesses of a warp for which other lanes may come.
struct Pending {
  uint64_t first = 0; ///< number of the first that waits
  uint64_t count[kWarp] = {};
  std::deque<Together> waiting;
};

/// Sectors or passes.
struct Cost {
  uint64_t accesses = 0, lanes = 0, taken = 0, least = 0;
};

/// What the longest thread of a launch does at one place.
struct Longest {
  uint64_t launch = 0, inLaunch = 0; ///< of the launch that was last there
  uint64_t launches = 0, most = 0, total = 0;

  void add(uint64_t count, uint64_t number) {
    if (number != launch)
      end();
    launch = number;
    inLaunch = std::max(inLaunch, count);
  }
  /// Of the launch; begins the next.
  void end() {
    launches += inLaunch > 0;
    most = std::max(most, inLaunch);
    total += inLaunch;
    inLaunch = 0;
  }
};

/// A loop of fewer rounds is not told.
constexpr uint64_t kFewestRounds = 128;

std::map<Site, Cost> costs;
/// Of accesses of device memory, by kernel: what a row kernel calls has no place in it.
std::map<std::pair<const void *, Site>, Longest> longest;
std::map<std::pair<const Block *, int>, std::map<Site, Pending>> pending;
/// How often an operation ran, by what it is and its kernel.
std::map<std::pair<std::string, const void *>, uint64_t> operations;

/// The distinct units of `unit` bytes that the lanes from `begin` to `end` touch, in order.
std::vector<uintptr_t> unitsOf(const Together &all, int begin, int end, size_t bytes,
                               uintptr_t unit) {
  std::vector<uintptr_t> units;
  for (int lane = begin; lane < end; ++lane)
    if (all.lanes >> lane & 1)
      for (uintptr_t at = all.at[lane] / unit; at <= (all.at[lane] + bytes - 1) / unit; ++at)
        units.push_back(at);
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

/// Passes over shared memory: as many as words that one bank has to give.
uint64_t passesOf(const std::vector<uintptr_t> &words) {
  uint64_t ofBank[kBanks] = {};
  for (uintptr_t word : words)
    ++ofBank[word % kBanks];
  return *std::max_element(ofBank, ofBank + kBanks);
}

void add(const Site &site, const Together &all) {
  Cost &cost = costs[site];
  ++cost.accesses;
  cost.lanes += static_cast<uint64_t>(__builtin_popcount(all.lanes));
  if (!site.isShared) {
    cost.taken += unitsOf(all, 0, kWarp, site.bytes, kSector).size();
    const size_t words = unitsOf(all, 0, kWarp, site.bytes, kWord).size();
    cost.least += (words * kWord + kSector - 1) / kSector;
    return;
  }
  // Halves of a warp for 8 bytes a lane, quarters for 16: what all banks give at once.
  const int lanes = std::max<int>(kWarp * kWord / std::max<size_t>(site.bytes, kWord), 1);
  for (int begin = 0; begin < kWarp; begin += lanes)
    if (const auto words = unitsOf(all, begin, begin + lanes, site.bytes, kWord); !words.empty()) {
      cost.taken += passesOf(words);
      ++cost.least;
    }
}

struct Line {
  std::string where;
  Site site;
  Cost cost;
  uint64_t wasted() const { return cost.taken - cost.least; }
};

/// Loops of many rounds, those that take longest first.
void writeLongest(FILE *out) {
  struct Line {
    Longest found;
    const void *kernel;
    Site site;
  };
  std::vector<Line> all;
  for (auto &[at, found] : longest) {
    found.end();
    if (found.most >= kFewestRounds)
      all.push_back({found, at.first, at.second});
  }
  std::sort(all.begin(), all.end(),
            [](const Line &a, const Line &b) { return a.found.total > b.found.total; });
  for (const auto &[found, kernel, site] : all)
    std::fprintf(out,
                 "%10llu rounds of the longest threads, of one launch at most %llu; %llu launches: "
                 "%s, device, %s, %s\n",
                 static_cast<unsigned long long>(found.total),
                 static_cast<unsigned long long>(found.most),
                 static_cast<unsigned long long>(found.launches), functionAt(kernel).c_str(),
                 accessText(site.bytes, site.isWrite).c_str(), describeAccess(site.place).c_str());
}

/// What costs more than it must, the worst first.
void writeCosts(FILE *out) {
  std::map<std::tuple<std::string, bool, bool, size_t>, Line> lines; // a loop may be there twice
  for (const auto &[site, cost] : costs) {
    const std::string where = describeAccess(site.place);
    Line &line = lines[{where, site.isShared, site.isWrite, site.bytes}];
    line.where = where;
    line.site = site;
    line.cost.accesses += cost.accesses;
    line.cost.lanes += cost.lanes;
    line.cost.taken += cost.taken;
    line.cost.least += cost.least;
  }
  std::vector<Line> all;
  for (const auto &[key, line] : lines)
    if (line.wasted())
      all.push_back(line);
  std::sort(all.begin(), all.end(),
            [](const Line &a, const Line &b) { return a.wasted() > b.wasted(); });
  for (const Line &line : all)
    std::fprintf(out,
                 "%10llu of %10llu %s, %5.2f times the least; %llu warps, %4.1f lanes: %s, %s\n",
                 static_cast<unsigned long long>(line.wasted()),
                 static_cast<unsigned long long>(line.cost.taken),
                 line.site.isShared ? "passes " : "sectors",
                 static_cast<double>(line.cost.taken) / static_cast<double>(line.cost.least),
                 static_cast<unsigned long long>(line.cost.accesses),
                 static_cast<double>(line.cost.lanes) / static_cast<double>(line.cost.accesses),
                 (std::string(line.site.isShared ? "shared, " : "device, ") +
                  accessText(line.site.bytes, line.site.isWrite))
                     .c_str(),
                 line.where.c_str());
}

/// What ran how often, the most often first.
void writeOperations(FILE *out) {
  std::map<std::string, uint64_t> counts; // a kernel of one name may be there in several units
  for (const auto &[of, count] : operations)
    counts[of.second ? of.first + " " + functionAt(of.second) : of.first] += count;
  std::vector<std::pair<uint64_t, std::string>> all;
  for (const auto &[name, count] : counts)
    all.emplace_back(count, name);
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::tie(b.first, a.second) < std::tie(a.first, b.second);
  });
  for (const auto &[count, name] : all)
    std::fprintf(out, "%10llu times: %s\n", static_cast<unsigned long long>(count), name.c_str());
}

/// Writes at the end of the program.
const struct Report {
  const char *file = std::getenv("GENREC_SIMT_ACCESSES");
  ~Report() {
    FILE *out = file ? std::fopen(file, "a") : nullptr;
    if (!out)
      return;
    writeCosts(out);
    writeLongest(out);
    writeOperations(out);
    std::fclose(out);
  }
} report;

} // namespace

bool countsAccesses() { return report.file; }

void countAccess(const Thread &thread, const void *memory, size_t bytes, bool isWrite) {
  const Site site{machine.accessedFrom, !isOfArena(memory), isWrite, bytes};
  const int lane = thread.number % kWarp;
  Pending &of = pending[{machine.block, thread.number / kWarp}][site];
  const uint64_t number = of.count[lane]++ - of.first;
  while (of.waiting.size() <= number)
    of.waiting.emplace_back();
  Together &all = of.waiting[number];
  all.lanes |= 1u << lane;
  all.at[lane] = reinterpret_cast<uintptr_t>(memory);
  while (!of.waiting.empty() && of.waiting.front().lanes == ~0u) {
    add(site, of.waiting.front());
    of.waiting.pop_front();
    ++of.first;
  }
}

void countOperation(const OperationInfo &operation) {
  ++operations[{operation.what, operation.kernel}];
}

void endAccesses(const Block &block) {
  auto from = pending.lower_bound({&block, 0});
  auto to = pending.lower_bound({&block + 1, 0});
  for (auto of = from; of != to; ++of)
    for (const auto &[site, lanes] : of->second) {
      for (const Together &all : lanes.waiting)
        if (all.lanes)
          add(site, all);
      if (!site.isShared)
        longest[{machine.operation->info.kernel, site}].add(
            *std::max_element(lanes.count, lanes.count + kWarp),
            static_cast<uint64_t>(machine.launches));
    }
  pending.erase(from, to);
}

} // namespace simt
