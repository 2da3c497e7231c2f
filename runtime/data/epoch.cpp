//===- epoch.cpp - The order of one pass over the data --------------------===//

#include "epoch.h"

#include "genrec_rt/identity.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <numeric>

namespace genrec::rt {

void shuffledOrder(uint64_t seed, uint64_t epoch, uint64_t window, int64_t count, int64_t *order) {
  std::iota(order, order + count, int64_t(0));
  uint64_t state = splitMix64(splitMix64(seed ^ 0x67656E7265637368ull) + epoch);
  state = splitMix64(state + window);
  for (int64_t i = count - 1; i > 0; --i) {
    uint64_t word = splitMix64(state++);
    auto drawn = static_cast<int64_t>(
        static_cast<unsigned __int128>(word) * static_cast<uint64_t>(i + 1) >> 64);
    std::swap(order[i], order[drawn]);
  }
}

std::vector<Window> planWindows(const EpochOptions &options, const std::vector<int64_t> &groupBytes,
                                bool inMemory, int64_t mostBytes) {
  auto count = static_cast<int64_t>(groupBytes.size());
  std::vector<int64_t> groups(groupBytes.size());
  std::iota(groups.begin(), groups.end(), int64_t(0));
  std::vector<Window> windows;
  if (!options.shuffle) {
    for (int64_t group : groups)
      windows.push_back({group});
    return windows;
  }
  if (inMemory)
    return {groups};
  shuffledOrder(options.seed, options.epoch, 0, count, groups.data());
  int64_t bytes = 0;
  for (int64_t group : groups) {
    if (windows.empty() || bytes + groupBytes[group] > mostBytes) {
      windows.emplace_back();
      bytes = 0;
    }
    windows.back().push_back(group);
    bytes += groupBytes[group];
  }
  return windows;
}

EpochSource::EpochSource(const EpochOptions &options, std::vector<Window> windowList,
                         const std::vector<int64_t> &groupRows, ChunkLoader::Decode decode,
                         int32_t threads, Assembler assembler, const RowLocator &locator)
    : options(options), windows(std::move(windowList)), groupRows(groupRows),
      assembler(std::move(assembler)), locator(locator),
      portion(options.own.first + options.own.count) {
  // A batch larger than the data is all of it.
  Size rows = 0;
  for (int64_t count : groupRows)
    rows += count;
  this->options.batch = std::min(options.batch, std::max<int64_t>(rows.saturated(), 1));
  skip();
  std::vector<int64_t> groups;
  size_t largest = 1;
  for (size_t i = nextWindow; i < windows.size(); ++i) {
    groups.insert(groups.end(), windows[i].begin(), windows[i].end());
    largest = std::max(largest, windows[i].size());
  }
  // A whole window is decoded ahead: shuffling needs all of it before its first row.
  auto ahead = static_cast<int64_t>(largest) + threads;
  loader = std::make_unique<ChunkLoader>(std::move(groups), std::move(decode), threads, ahead);
}

/// Leaves out whole windows without decoding them.
void EpochSource::skip() {
  rowsToSkip = std::max<int64_t>(options.skipRows, 0);
  for (; nextWindow < windows.size(); ++nextWindow) {
    int64_t rows = 0;
    for (int64_t group : windows[nextWindow])
      rows += groupRows[group];
    if (rows > rowsToSkip)
      return;
    rowsToSkip -= rows;
  }
}

bool EpochSource::openWindow() {
  if (nextWindow == windows.size())
    return false;
  open.clear();
  const Window &window = windows[nextWindow];
  windowNumber = ++nextWindow; // number 0 orders the row groups
  int64_t rows = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    open.push_back(loader->get(loaded++));
    rows += open.back()->rows;
  }
  RowRef *refs = order.ensure(std::max<int64_t>(rows, 1));
  orderCount = 0;
  for (const auto &chunk : open)
    for (int64_t row = 0; row < chunk->rows; ++row)
      refs[orderCount++] = {chunk.get(), row};
  if (options.shuffle) {
    std::vector<int64_t> permutation(rows);
    shuffledOrder(options.seed, options.epoch, windowNumber, rows, permutation.data());
    std::vector<RowRef> natural(refs, refs + rows);
    for (int64_t i = 0; i < rows; ++i)
      refs[i] = natural[permutation[i]];
  }
  position = std::exchange(rowsToSkip, 0);
  return true;
}

/// Finds the rows of the next batch; false at the end.
bool EpochSource::takeBatch() {
  held.clear();
  RowRef *rows = wanted.ensure(options.batch);
  wantedCount = 0;
  while (wantedCount < options.batch) {
    if (position == orderCount) {
      held.insert(held.end(), open.begin(), open.end());
      if (!openWindow())
        break;
      continue;
    }
    int64_t taken = std::min(options.batch - wantedCount, orderCount - position);
    std::copy_n(order.data() + position, taken, rows + wantedCount);
    wantedCount += taken;
    position += taken;
  }
  if (wantedCount == 0)
    return false;
  portion = options.own.first;
  return true;
}

bool EpochSource::next(Batch &batch) {
  if (portion == options.own.first + options.own.count && !takeBatch())
    return false;
  auto rowsBefore = [&](int64_t portions) { return wantedCount * portions / options.portions; };
  int64_t begin = rowsBefore(portion), end = rowsBefore(portion + 1);
  assembler.assemble(wanted.data() + begin, end - begin, batch);
  batch.locator = &locator;
  ++portion;
  return true;
}

} // namespace genrec::rt
