//===- thread_pool.cpp - Persistent threads behind the parallel-for -------===//
//
// A parallel-for takes about a microsecond when the workers are awake: they
// spin for a short while after each job before they sleep on a futex, since
// the steps of a model are many short kernels in a row. Chunks are handed out
// by one atomic counter.
//
//===----------------------------------------------------------------------===//

#include "genrec_rt/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace {

/// Spins before a waiting thread sleeps: some 20 to 60 microseconds.
constexpr int kSpins = 2000;

/// The pool whose chunk this thread runs, and the thread's index in it.
thread_local const genrec_rt_pool *currentPool = nullptr;
thread_local int32_t currentWorker = 0;

inline void spinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

inline int64_t chunkCount(int64_t count, int64_t grain) {
  return (count - 1) / grain + 1;
}

inline void runChunk(int64_t chunk, int64_t count, int64_t grain,
                     genrec_rt_chunk_fn fn, void *args) {
  int64_t begin = chunk * grain;
  int64_t end = count - begin < grain ? count : begin + grain;
  fn(args, begin, end, chunk);
}

} // namespace

struct genrec_rt_pool {
  explicit genrec_rt_pool(int32_t threads) : spins(spinsFor(threads)) {
    workers.reserve(threads - 1);
    try {
      for (int32_t index = 1; index < threads; ++index)
        workers.emplace_back([this, index] { workerLoop(index); });
    } catch (...) {
      stop();
      throw;
    }
  }

  ~genrec_rt_pool() { stop(); }

  int32_t threads() const { return static_cast<int32_t>(workers.size()) + 1; }

  void run(int64_t count, int64_t grain, genrec_rt_chunk_fn fn, void *args) {
    std::lock_guard<std::mutex> oneCaller(callers);
    job = {count, grain, fn, args};
    next.store(0, std::memory_order_relaxed);
    open.store(true, std::memory_order_seq_cst);
    generation.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) > 0)
      generation.notify_all();
    takeChunks(0);
    // From here a worker that comes late finds the job closed, so the caller
    // waits for those that run a chunk and not for one that still wakes up.
    open.store(false, std::memory_order_seq_cst);
    waitForWorkers();
    if (hasFailed.load(std::memory_order_relaxed)) {
      hasFailed.store(false, std::memory_order_relaxed);
      std::rethrow_exception(std::exchange(failure, nullptr));
    }
  }

private:
  struct Job {
    int64_t count = 0, grain = 1;
    genrec_rt_chunk_fn fn = nullptr;
    void *args = nullptr;
  };

  /// With more threads than cores a spinning thread would hold up a working
  /// one, so it does not spin then.
  static int spinsFor(int32_t threads) {
    unsigned cores = std::thread::hardware_concurrency();
    return cores >= static_cast<unsigned>(threads) ? kSpins : 1;
  }

  void stop() {
    stopping.store(true, std::memory_order_relaxed);
    generation.fetch_add(1, std::memory_order_seq_cst);
    generation.notify_all();
    for (std::thread &worker : workers)
      worker.join();
    workers.clear();
  }

  void takeChunks(int32_t worker) {
    const genrec_rt_pool *outerPool = currentPool;
    int32_t outerWorker = currentWorker;
    currentPool = this;
    currentWorker = worker;
    Job mine = job;
    int64_t chunks = chunkCount(mine.count, mine.grain);
    try {
      for (int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
           chunk < chunks; chunk = next.fetch_add(1, std::memory_order_relaxed))
        runChunk(chunk, mine.count, mine.grain, mine.fn, mine.args);
    } catch (...) {
      next.store(chunks, std::memory_order_relaxed); // the others begin no more
      if (!hasFailed.exchange(true, std::memory_order_relaxed))
        failure = std::current_exception();
    }
    currentPool = outerPool;
    currentWorker = outerWorker;
  }

  /// Returns once no worker is inside the job: only then may the job's fields
  /// and the caller's arguments go away.
  void waitForWorkers() {
    for (int spin = 0; active.load(std::memory_order_seq_cst) != 0; ++spin) {
      if (spin < spins) {
        spinPause();
        continue;
      }
      callerSleeps.store(true, std::memory_order_seq_cst);
      int32_t inside = active.load(std::memory_order_seq_cst);
      if (inside != 0)
        active.wait(inside, std::memory_order_seq_cst);
      callerSleeps.store(false, std::memory_order_relaxed);
    }
  }

  void workerLoop(int32_t index) {
    uint32_t seen = 0;
    for (;;) {
      seen = waitForGeneration(seen);
      if (stopping.load(std::memory_order_relaxed))
        return;
      // Entering before looking whether the job is open, against a caller
      // that closes it before looking who is inside: one of the two sees the
      // other.
      active.fetch_add(1, std::memory_order_seq_cst);
      if (open.load(std::memory_order_seq_cst))
        takeChunks(index);
      active.fetch_sub(1, std::memory_order_seq_cst);
      if (callerSleeps.load(std::memory_order_seq_cst))
        active.notify_one();
    }
  }

  uint32_t waitForGeneration(uint32_t seen) {
    for (int spin = 0; spin < spins; ++spin) {
      uint32_t now = generation.load(std::memory_order_acquire);
      if (now != seen)
        return now;
      spinPause();
    }
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t now;
    while ((now = generation.load(std::memory_order_seq_cst)) == seen)
      generation.wait(seen, std::memory_order_seq_cst);
    sleepers.fetch_sub(1, std::memory_order_relaxed);
    return now;
  }

  const int spins;
  std::mutex callers;
  Job job;
  /// What the first chunk that threw threw: written by whoever sets the flag, read by the
  /// caller when no worker is inside any more.
  std::atomic<bool> hasFailed{false};
  std::exception_ptr failure;
  // Each on a cache line of its own: `next` is written by every chunk.
  alignas(64) std::atomic<uint32_t> generation{0};
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<int32_t> active{0};
  std::atomic<bool> callerSleeps{false};
  std::atomic<bool> open{false};
  alignas(64) std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  std::vector<std::thread> workers;
};

extern "C" genrec_rt_pool *genrec_rt_pool_create(int32_t threads) {
  try {
    return new genrec_rt_pool(threads < 1 ? 1 : threads);
  } catch (...) {
    return nullptr;
  }
}

extern "C" void genrec_rt_pool_destroy(genrec_rt_pool *pool) { delete pool; }

extern "C" int32_t genrec_rt_pool_threads(const genrec_rt_pool *pool) {
  return pool ? pool->threads() : 1;
}

extern "C" int32_t genrec_rt_worker_index(void) { return currentWorker; }

extern "C" void genrec_rt_parallel_for(genrec_rt_pool *pool, int64_t count,
                                       int64_t grain, genrec_rt_chunk_fn fn,
                                       void *args) {
  if (count < 1)
    return;
  if (grain < 1)
    grain = 1;
  bool inlineRun = !pool || pool->threads() == 1 || currentPool == pool ||
                   count <= grain;
  if (!inlineRun) {
    pool->run(count, grain, fn, args);
    return;
  }
  int64_t chunks = chunkCount(count, grain);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    runChunk(chunk, count, grain, fn, args);
}
