//===- chunk_loader.h - Row groups decoded ahead -----------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_CHUNK_LOADER_H
#define GENREC_RT_DATA_CHUNK_LOADER_H

#include "chunk.h"

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace genrec::rt {

/// Decodes a list of row groups in order on threads of its own, at most `ahead`
/// beyond the one that was asked for last. Errors are thrown by `get` in the
/// order of the list, whichever thread met one first.
class ChunkLoader {
public:
  using Decode = std::function<std::shared_ptr<const Chunk>(int64_t group)>;

  ChunkLoader(std::vector<int64_t> groups, Decode decode, int32_t threads, int64_t ahead);
  ~ChunkLoader();
  ChunkLoader(const ChunkLoader &) = delete;
  ChunkLoader &operator=(const ChunkLoader &) = delete;

  int64_t size() const { return static_cast<int64_t>(groups.size()); }
  /// The chunk of list entry `index`, each asked for once and in order. Waits.
  std::shared_ptr<const Chunk> get(int64_t index);

private:
  void work();

  std::vector<int64_t> groups;
  Decode decode;
  int64_t ahead;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<const Chunk>> ready;
  std::vector<std::exception_ptr> errors;
  std::vector<char> done;
  int64_t nextToDecode = 0;
  int64_t asked = 0;
  bool stopping = false;
  std::vector<std::thread> workers;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_CHUNK_LOADER_H
