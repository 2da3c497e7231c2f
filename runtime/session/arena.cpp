//===- arena.cpp - The planned buffers of one step ------------------------===//

#include "arena.h"

#include "genrec_rt/buffer.h"
#include "genrec_rt/size.h"

#include <algorithm>
#include <string>
#include <utility>

namespace genrec::rt {

namespace {
constexpr int64_t kLeastBytes = 64; ///< what allocateAligned gives at least
} // namespace

ArenaLayout layOut(std::span<const genrec_buffer_desc> buffers,
                   std::span<const int64_t> capacities) {
  std::vector<ArenaBuffer> sized;
  sized.reserve(buffers.size());
  for (const genrec_buffer_desc &buffer : buffers) {
    int64_t rows = buffer.domain < 0 ? 0 : capacities[buffer.domain];
    Size bytes = Size(rows) * buffer.bytes_per_row + buffer.bytes;
    sized.push_back({bytes.value([&] {
                       return std::string("buffer '") + (buffer.name ? buffer.name : "") +
                              "' of a batch, " + std::to_string(rows) + " rows of " +
                              std::to_string(buffer.bytes_per_row) + " bytes,";
                     }),
                     buffer.first, buffer.last});
  }
  ArenaLayout layout = packArena(sized);
  if (layout.bytes >= kLargestSize)
    throwTooLarge("the memory of a batch");
  return layout;
}

void Arena::release() {
  if (memory && device)
    device->release(memory);
  else if (memory)
    freeAligned(memory, room);
  memory = nullptr;
}

char *Arena::ensure(int64_t bytes) {
  if (bytes > room || !memory) {
    release();
    int64_t wanted = std::max(bytes, kLeastBytes);
    memory =
        static_cast<char *>(device ? device->allocate("arena", wanted) : allocateAligned(wanted));
    room = wanted;
    ++taken;
  }
  return memory;
}

void Arena::swap(Arena &other) {
  std::swap(device, other.device);
  std::swap(memory, other.memory);
  std::swap(room, other.room);
  std::swap(taken, other.taken);
}

} // namespace genrec::rt
