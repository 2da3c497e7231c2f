//===- parallel.h - The runtime's parallel-for ------------------*- C++ -*-===//
//
// One pool of threads per process runs every CPU kernel. Work is cut into
// chunks whose boundaries depend on (count, grain) only, never on the number
// of threads, so a kernel that writes disjoint outputs per chunk, or partial
// results per chunk combined in chunk order, has the same bits at any number
// of threads.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_PARALLEL_H
#define GENREC_RT_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct genrec_rt_pool;
typedef struct genrec_rt_pool genrec_rt_pool;

/// Processes the items [begin, end) of chunk number `chunk`. What it throws is
/// thrown by the parallel-for.
typedef void (*genrec_rt_chunk_fn)(void *args, int64_t begin, int64_t end,
                                   int64_t chunk);

/// Starts a pool that runs chunks on `threads` threads: the calling one and
/// `threads - 1` of its own. `threads` below 1 counts as 1. Returns null when
/// the threads cannot be started.
genrec_rt_pool *genrec_rt_pool_create(int32_t threads);

/// Joins the threads. No parallel-for may be running; null is allowed.
void genrec_rt_pool_destroy(genrec_rt_pool *pool);

/// The number of threads that run chunks, 1 for a null pool. Worker indices
/// are below it.
int32_t genrec_rt_pool_threads(const genrec_rt_pool *pool);

/// The index of the calling thread among the workers of the parallel-for it
/// runs a chunk of: in [0, threads), 0 outside of any. Chunks of one
/// parallel-for that run at the same time have different indices, so that a
/// kernel can give each worker its own scratch.
int32_t genrec_rt_worker_index(void);

/// Runs `fn` for every chunk i = [i * grain, min(count, (i + 1) * grain)) and
/// returns when all are done. Chunks start in ascending order on whichever
/// thread is free; the calling thread takes part. A null pool, one chunk, or a
/// call from inside a chunk runs them in order on the calling thread. A pool
/// serves one caller at a time: a second caller waits. `grain` below 1 counts
/// as 1; a `count` below 1 does nothing. Allocates nothing. Where chunks throw,
/// no more are begun, and the first exception is thrown here once those that had
/// begun are done; the pool can be used again.
void genrec_rt_parallel_for(genrec_rt_pool *pool, int64_t count, int64_t grain,
                            genrec_rt_chunk_fn fn, void *args);

#ifdef __cplusplus
} // extern "C"

namespace genrec::rt {

/// Runs `body(begin, end, chunk)` for the chunks of genrec_rt_parallel_for.
/// The body lives on the caller's stack; nothing is allocated.
template <class Body>
inline void parallelFor(genrec_rt_pool *pool, int64_t count, int64_t grain,
                        const Body &body) {
  genrec_rt_parallel_for(
      pool, count, grain,
      [](void *args, int64_t begin, int64_t end, int64_t chunk) {
        (*static_cast<const Body *>(args))(begin, end, chunk);
      },
      const_cast<void *>(static_cast<const void *>(&body)));
}

/// Runs `body(part, begin, end)` for chunks of the items of `count` parts, part p having
/// `size(p)`, all in one parallel-for. `starts` is scratch for count + 1 numbers.
template <class Size, class Body>
inline void parallelParts(genrec_rt_pool *pool, int64_t count, int64_t chunkItems, int64_t *starts,
                          const Size &size, const Body &body) {
  int64_t items = 0;
  starts[0] = 0;
  for (int64_t part = 0; part < count; ++part) {
    items += size(part);
    starts[part + 1] = starts[part] + (size(part) + chunkItems - 1) / chunkItems;
  }
  int64_t chunks = starts[count];
  if (items == 0)
    return;
  // Short parts go together.
  int64_t grain = chunkItems * chunks / items;
  parallelFor(pool, chunks, grain, [&](int64_t begin, int64_t end, int64_t) {
    int64_t part = 0, above = count;
    while (above - part > 1) {
      int64_t middle = (part + above) / 2;
      (starts[middle] <= begin ? part : above) = middle;
    }
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      while (starts[part + 1] <= chunk)
        ++part;
      int64_t first = (chunk - starts[part]) * chunkItems, last = first + chunkItems;
      body(part, first, last < size(part) ? last : size(part));
    }
  });
}

} // namespace genrec::rt
#endif

#endif // GENREC_RT_PARALLEL_H
