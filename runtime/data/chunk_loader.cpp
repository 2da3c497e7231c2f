//===- chunk_loader.cpp - Row groups decoded ahead ------------------------===//

#include "chunk_loader.h"

#include "../core/start_thread.h"

#include <algorithm>

namespace genrec::rt {

ChunkLoader::ChunkLoader(std::vector<int64_t> groupList, Decode decode, int32_t threads,
                         int64_t ahead)
    : groups(std::move(groupList)), decode(std::move(decode)), ahead(std::max<int64_t>(ahead, 1)),
      ready(groups.size()), errors(groups.size()), done(groups.size()) {
  int64_t count = std::min<int64_t>(std::max(threads, 1), size());
  workers.reserve(count);
  try {
    for (int64_t i = 0; i < count; ++i)
      workers.push_back(startThread("decode data", [this] { work(); }));
  } catch (...) {
    if (workers.empty()) // fewer threads do the same work
      throw;
  }
}

ChunkLoader::~ChunkLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  changed.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ChunkLoader::work() {
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    changed.wait(
        lock, [&] { return stopping || nextToDecode >= size() || nextToDecode < asked + ahead; });
    if (stopping || nextToDecode >= size())
      return;
    int64_t index = nextToDecode++;
    lock.unlock();
    std::shared_ptr<const Chunk> chunk;
    std::exception_ptr error;
    try {
      chunk = decode(groups[index]);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    ready[index] = std::move(chunk);
    errors[index] = error;
    done[index] = 1;
    changed.notify_all();
  }
}

std::shared_ptr<const Chunk> ChunkLoader::get(int64_t index) {
  std::unique_lock<std::mutex> lock(mutex);
  asked = std::max(asked, index + 1);
  changed.notify_all();
  changed.wait(lock, [&] { return done[index] != 0; });
  if (errors[index])
    std::rethrow_exception(errors[index]);
  return std::move(ready[index]);
}

} // namespace genrec::rt
