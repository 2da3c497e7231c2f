//===- epoch.cpp - One pass over the data ---------------------------------===//

#include "epoch.h"

#include <algorithm>

namespace genrec::rt {

EpochSource::EpochSource(const EpochOptions &options, std::unique_ptr<EpochOrder> epochOrder,
                         std::optional<TokenCounts> tokens, ChunkLoader::Decode decode,
                         int32_t threads, bool readsAhead, Assembler assembler,
                         const RowLocator &locator)
    : options(options), order(std::move(epochOrder)), tokenCounts(tokens),
      assembler(std::move(assembler)), locator(locator), batchNumber(options.skipBatches),
      portion(options.own.first) {
  planReading(std::move(decode), threads, readsAhead);
}

/// Whether any window from `fromWindow` on has rows of the own portions there.
bool EpochSource::isNeeded(const Stretch &stretch, int64_t fromWindow) const {
  int64_t last = order->windowAt(stretch.end - 1);
  for (int64_t at = std::max(fromWindow, order->windowAt(stretch.begin)); at <= last; ++at)
    if (order->own(at).meets(stretch))
      return true;
  return false;
}

void EpochSource::planReading(ChunkLoader::Decode decode, int32_t threads, bool readsAhead) {
  int64_t first = batchNumber / order->batchesPerWindow();
  std::vector<int64_t> groups;
  for (const Stretch &stretch : order->line())
    if (batchNumber < order->batches() && isNeeded(stretch, first)) {
      needed.push_back(&stretch);
      groups.push_back(stretch.group);
    }
  // A whole window is decoded ahead: shuffling needs all of it before its first row.
  int64_t largest = 1;
  if (options.shuffle && readsAhead) {
    size_t begin = 0, end = 0;
    for (int64_t at = first; at < order->windows(); ++at) {
      Part part = order->own(at);
      while (end < needed.size() && needed[end]->begin < part.end)
        ++end;
      while (begin < end && needed[begin]->end <= part.begin)
        ++begin;
      largest = std::max(largest, static_cast<int64_t>(end - begin));
    }
  }
  loader = std::make_unique<ChunkLoader>(std::move(groups), std::move(decode), threads,
                                         largest + threads);
}

void EpochSource::openWindow() {
  window = batchNumber / order->batchesPerWindow();
  Part part = order->own(window);
  while (!open.empty() && open.front().stretch->end <= part.begin)
    open.pop_front();
  while (loaded < needed.size() && needed[loaded]->begin < part.end) {
    OpenStretch next{needed[loaded], loader->get(static_cast<int64_t>(loaded)), {}};
    ++loaded;
    if (tokenCounts)
      next.tokens = tokenCounts->before(*next.chunk);
    open.push_back(std::move(next));
  }
  rows.clear();
  places.clear();
  for (const OpenStretch &each : open)
    addRows(each, part);
  order->open(window, rows, places);
}

/// Adds the rows of a stretch that lie in `part`: with tokens, those whose middle does.
void EpochSource::addRows(const OpenStretch &from, Part part) {
  const Stretch &stretch = *from.stretch;
  int64_t begin = std::max(part.begin - stretch.begin, int64_t(0));
  int64_t end = std::min(part.end, stretch.end) - stretch.begin;
  if (begin >= end)
    return;
  if (tokenCounts) {
    begin = firstWithMiddleAt(from.tokens, 0, begin);
    end = firstWithMiddleAt(from.tokens, begin, end);
    if (begin < end && !places.empty())
      places.pop_back(); // the end of the rows before, where the first of these begins
    for (int64_t row = begin; begin < end && row <= end; ++row)
      places.push_back(stretch.begin + from.tokens[row]);
  }
  for (int64_t row = stretch.firstRow + begin; row < stretch.firstRow + end; ++row)
    rows.push_back({from.chunk.get(), row});
}

bool EpochSource::next(Batch &batch) {
  if (batchNumber >= order->batches())
    return false;
  if (batchNumber / order->batchesPerWindow() != window)
    openWindow();
  wanted.clear();
  order->take(batchNumber, portion, wanted);
  assembler.assemble(wanted.data(), static_cast<int64_t>(wanted.size()), batch);
  batch.locator = &locator;
  if (++portion == options.own.first + options.own.count) {
    portion = options.own.first;
    ++batchNumber;
  }
  return true;
}

} // namespace genrec::rt
