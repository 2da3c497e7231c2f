//===- arena.cpp - The planned buffers of one step ------------------------===//

#include "arena.h"

#include "genrec_rt/buffer.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace genrec::rt {

namespace {

constexpr int64_t kAlignment = 64;

/// A stretch of the arena that is taken while a certain buffer lives.
struct Taken {
  int64_t begin, end;
};

int64_t bytesOf(const genrec_buffer_desc &buffer, std::span<const int64_t> capacities) {
  int64_t rows = buffer.domain < 0 ? 0 : capacities[buffer.domain];
  int64_t bytes = rows * buffer.bytes_per_row + buffer.bytes;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool liveTogether(const genrec_buffer_desc &a, const genrec_buffer_desc &b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The lowest offset at which `bytes` fit between the stretches.
int64_t lowestFit(std::vector<Taken> &taken, int64_t bytes) {
  std::sort(taken.begin(), taken.end(),
            [](const Taken &a, const Taken &b) { return a.begin < b.begin; });
  int64_t at = 0;
  for (const Taken &stretch : taken) {
    if (stretch.begin - at >= bytes)
      return at;
    at = std::max(at, stretch.end);
  }
  return at;
}

} // namespace

ArenaLayout layOut(std::span<const genrec_buffer_desc> buffers,
                   std::span<const int64_t> capacities) {
  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  std::vector<int64_t> sizes(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i)
    sizes[i] = bytesOf(buffers[i], capacities);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });
  std::vector<Taken> taken;
  for (size_t placed = 0; placed < order.size(); ++placed) {
    size_t buffer = order[placed];
    if (sizes[buffer] == 0)
      continue;
    taken.clear();
    for (size_t other = 0; other < placed; ++other) {
      size_t i = order[other];
      if (sizes[i] > 0 && liveTogether(buffers[buffer], buffers[i]))
        taken.push_back({layout.offsets[i], layout.offsets[i] + sizes[i]});
    }
    layout.offsets[buffer] = lowestFit(taken, sizes[buffer]);
    layout.bytes = std::max(layout.bytes, layout.offsets[buffer] + sizes[buffer]);
  }
  return layout;
}

Arena::~Arena() {
  if (memory)
    freeAligned(memory, room);
}

char *Arena::ensure(int64_t bytes) {
  if (bytes > room || !memory) {
    if (memory)
      freeAligned(memory, room);
    memory = nullptr;
    int64_t wanted = std::max<int64_t>(bytes, kAlignment);
    memory = static_cast<char *>(allocateAligned(wanted));
    room = wanted;
    ++taken;
  }
  return memory;
}

} // namespace genrec::rt
