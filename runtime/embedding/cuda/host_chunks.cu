//===- host_chunks.cu - Chunks of the host's pinned memory ----------------===//

#include "genrec_rt/cuda/host_chunks.h"

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/error.h"

#include <algorithm>

namespace genrec::rt::cuda {

HostChunks::~HostChunks() {
  for (void *block : blocks)
    freeNamedHost(block);
}

void *HostChunks::take(int64_t bytes) {
  if (spare.empty()) {
    watchQueues();
    int64_t count = std::max<int64_t>(1, taken / 8);
    void *block = nullptr;
    try {
      block = allocateNamedHost(name, count * bytes);
    } catch (const Error &) {
      if (count == 1)
        throw;
      block = allocateNamedHost(name, (count = 1) * bytes);
    }
    blocks.push_back(block);
    pinned += count * bytes;
    for (int64_t chunk = count; chunk-- > 0;)
      spare.push_back(static_cast<char *>(block) + chunk * bytes);
  }
  char *chunk = spare.back();
  spare.pop_back();
  ++taken;
  return chunk;
}

} // namespace genrec::rt::cuda
