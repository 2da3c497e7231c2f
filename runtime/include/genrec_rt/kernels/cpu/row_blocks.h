//===- row_blocks.h - Calls over one list's rows, a block at a time -*- C++ -*-===//
//
// A stage is a list of calls over all rows of a batch: each reads what the one before
// wrote, long after it has left the caches. Where consecutive calls only combine rows
// of the same list, they may as well run one after another for a few lists, then for
// the next ones. What only these calls read then never needs room for more than a
// block's rows, and stays in the second-level cache.
//
// Such calls are emitted as a function of their own, over a RowBlock instead of a
// genrec_step. A RowBlock is a step whose domain has the rows of a block; calls are
// overloaded for it. The function runs in phases:
//
//   measure   once: calls say what memory they keep
//   prepare   once: weights are packed, tables filled
//   rows      per block, on all threads
//   finish    once: the sums of all chunks are added up
//
// Blocks are whole lists. A chunk is a run of blocks with sums of its own; blocks and
// chunks depend on the lists' lengths alone, so results have the same bits at any number
// of threads. Where blocks do not pay (a list longer than kLongestList) or results are
// looked at in between (--check-finite), the function runs once for all rows: `whole`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ROW_BLOCKS_H
#define GENREC_RT_KERNELS_CPU_ROW_BLOCKS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/launch.h"
#include "genrec_rt/parallel.h"

#include <time.h>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

enum class BlockPhase { whole, measure, prepare, rows, finish };

/// What a block's calls get in place of the step.
struct RowBlock : genrec_step {
  genrec_step *all; ///< the step itself
  BlockPhase phase;
  int64_t firstRow = 0;         ///< rows: of the block
  char *local = nullptr;        ///< where values that only these calls read lie
  int64_t localRows = 0;        ///< rows that there is room for
  int64_t chunks = 0;           ///< whose sums are apart
  int64_t chunk = 0;            ///< rows: of the block
  bool startsChunk = false;     ///< rows: no block of the chunk came before
  char *keptBase = nullptr;     ///< what calls keep through all phases
  int64_t keptBytes = 0;        ///< of it, before the call that runs
  int64_t perChunkBytes = 0;    ///< measure: what calls keep per chunk
  char *scratch = nullptr;      ///< rows: of this worker, for one call
  int64_t scratchBytes = 0;     ///< measure: the most that a call asks for
  int64_t *spent = nullptr;     ///< rows, with --profile: nanoseconds by op, from firstOp on
  int32_t firstOp = 0, op = -1; ///< the op that runs
  int64_t since = 0;            ///< when it began

  bool isWhole() const { return phase == BlockPhase::whole; }

  /// Memory for a call through all phases. Calls ask in the same order in every phase.
  template <class T> T *keep(int64_t count) {
    char *at = keptBase ? keptBase + keptBytes : nullptr; // measure: there is none yet
    keptBytes += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T *>(at);
  }
  /// [chunks, floats].
  float *keepPerChunk(int64_t floats) {
    perChunkBytes += (floats * 4 + 63) / 64 * 64;
    return keep<float>(chunks * floats);
  }
  /// `bytes` that a call may use while it runs for a block.
  char *useScratch(int64_t bytes) {
    scratchBytes = bytes > scratchBytes ? bytes : scratchBytes;
    return scratch;
  }
};

/// Where rows that lie in the memory of all rows begin for the block.
template <class T> inline T *blockRows(const RowBlock *block, T *rows, int64_t bytesPerRow) {
  return rows + block->firstRow * (bytesPerRow / static_cast<int64_t>(sizeof(T)));
}

/// Where a value lies that only the block's calls read: `place` bytes per row come before it.
/// Nowhere in phases without rows.
template <class T> inline T *localRows(const RowBlock *block, int64_t place) {
  return block->local ? reinterpret_cast<T *>(block->local + block->localRows * place) : nullptr;
}

//===----------------------------------------------------------------------===//
// Running the calls
//===----------------------------------------------------------------------===//

namespace detail {

inline int64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t(1000000000) + now.tv_nsec;
}

/// With --profile, ends the op that runs, and begins `op` (-1: none).
inline void switchTo(RowBlock *block, int32_t op) {
  int64_t now = nanoseconds();
  if (block->op >= 0)
    block->spent[block->op - block->firstOp] += now - block->since;
  block->op = op;
  block->since = now;
}

static_assert(sizeof(genrec_domain) == kDomainBytes);

/// What one worker's blocks are described by.
struct BlockDomains {
  genrec_domain parent;
  int64_t offsets[kListsPerBlock + 1];
};

/// Runs `calls` for the lists [list, end) of `own`, the domain number `domain`.
inline void runBlock(RowBlock *block, const genrec_domain &own, int64_t domain, int64_t list,
                     int64_t end, BlockDomains *mine, void (*calls)(RowBlock *)) {
  genrec_domain &rows = block->domains[domain];
  block->firstRow = own.offsets[list];
  rows.count = own.offsets[end] - own.offsets[list];
  rows.identity = own.identity ? own.identity + block->firstRow : nullptr;
  rows.parent = own.parent ? own.parent + block->firstRow : nullptr;
  rows.offsets = mine->offsets;
  rows.parent_domain = &mine->parent;
  mine->parent.count = end - list;
  for (int64_t i = list; i <= end; ++i)
    mine->offsets[i - list] = own.offsets[i] - block->firstRow;
  block->keptBytes = 0;
  calls(block);
  block->startsChunk = false;
}

/// The first list that begins at row `row` or after it.
inline int64_t listAt(const genrec_domain &own, int64_t row) {
  int64_t begin = 0, end = own.parent_domain->count;
  while (begin < end) {
    int64_t middle = (begin + end) / 2;
    if (own.offsets[middle] < row)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// Runs `calls` for the blocks of one chunk.
inline void runChunk(RowBlock *block, const genrec_domain &own, int64_t domain, RowBlockSizes sizes,
                     BlockDomains *mine, void (*calls)(RowBlock *)) {
  bool isLast = block->chunk == block->chunks - 1;
  int64_t list = listAt(own, own.count * block->chunk / block->chunks);
  int64_t end = isLast ? own.parent_domain->count
                       : listAt(own, own.count * (block->chunk + 1) / block->chunks);
  block->startsChunk = true;
  // A chunk without lists has sums, too.
  do {
    int64_t next = list;
    while (next < end && next - list < kListsPerBlock &&
           (next == list || own.offsets[next + 1] - own.offsets[list] <= sizes.rows))
      ++next;
    runBlock(block, own, domain, list, next, mine, calls);
    list = next;
  } while (list < end);
}

/// Memory of the workers, a part each: values that only the calls read, their scratch, views of the
/// domains, and with profiles what each op took.
struct WorkerMemory {
  char *base;
  int64_t each, localBytes, scratchBytes, viewBytes;

  char *localOf(int32_t worker) const { return base + worker * each; }
  char *scratchOf(int32_t worker) const { return localOf(worker) + localBytes; }
  genrec_domain *domainsOf(int32_t worker) const {
    return reinterpret_cast<genrec_domain *>(scratchOf(worker) + scratchBytes);
  }
  BlockDomains *describedBy(int32_t worker) const {
    return reinterpret_cast<BlockDomains *>(scratchOf(worker) + scratchBytes + viewBytes);
  }
  int64_t *spentBy(int32_t worker) const {
    return reinterpret_cast<int64_t *>(describedBy(worker) + 1);
  }
};

/// Tells the profile that ops ran one after another since `began`.
inline void reportSpent(genrec_step *step, int32_t firstOp, int32_t ops, int64_t began,
                        const WorkerMemory &memory, int32_t workers) {
  int64_t end = began;
  for (int32_t op = 0; op < ops; ++op) {
    int64_t begin = end;
    for (int32_t worker = 0; worker < workers; ++worker)
      end += memory.spentBy(worker)[op] / workers;
    genrec_rt_ran(step, firstOp + op, begin, end);
  }
}

/// Runs `calls` for the blocks of all chunks.
inline void runChunks(const RowBlock &block, const genrec_domain &own, int64_t domain,
                      RowBlockSizes sizes, const WorkerMemory &memory, void (*calls)(RowBlock *)) {
  const genrec_step *step = block.all;
  parallelFor(step->pool, block.chunks, 1, [&](int64_t begin, int64_t end, int64_t) {
    const int32_t worker = genrec_rt_worker_index();
    RowBlock mine = block;
    mine.phase = BlockPhase::rows;
    mine.pool = nullptr;
    mine.local = memory.localOf(worker);
    mine.scratch = memory.scratchOf(worker);
    mine.domains = memory.domainsOf(worker);
    memcpy(mine.domains, step->domains, static_cast<size_t>(memory.viewBytes));
    BlockDomains *described = memory.describedBy(worker);
    described->parent = *own.parent_domain;
    mine.spent = memory.spentBy(worker);
    for (mine.chunk = begin; mine.chunk < end; ++mine.chunk)
      runChunk(&mine, own, domain, sizes, described, calls);
    if (step->profile)
      switchTo(&mine, -1);
  });
}

} // namespace detail

/// Runs `calls` over the rows of domain number `domain` of `domains`. Values that only they
/// read take `localBytes` per row. The calls' ops are numbered from `firstOp` on.
inline void runRowBlocks(genrec_step *step, int64_t domains, int64_t domain, int64_t localBytes,
                         int32_t firstOp, int32_t ops, void (*calls)(RowBlock *)) {
  const int64_t began = step->profile ? detail::nanoseconds() : 0;
  const genrec_domain &own = step->domains[domain];
  RowBlock block{};
  static_cast<genrec_step &>(block) = *step;
  block.all = step;
  RowBlockSizes sizes = sizeRowBlocks(own.count, own.max_length);
  if (step->check_finite)
    sizes.rows = 0;
  RowBlockNeeds needs = {localBytes, 0, 0, 0, domains, ops};
  const int32_t workers = genrec_rt_pool_threads(step->pool);
  if (!sizes.rows) {
    block.phase = BlockPhase::whole;
    block.localRows = roundedRows(own.count);
    block.local = static_cast<char *>(
        genrec_rt_block_memory(step, rowBlockBytes(own.count, sizes, needs, workers)));
    calls(&block);
    return;
  }
  block.phase = BlockPhase::measure;
  calls(&block);
  needs.kept = block.keptBytes;
  needs.perChunk = block.perChunkBytes;
  needs.scratch = block.scratchBytes;
  block.chunks = countBlockChunks(own.count, sizes, needs.perChunk);
  const int64_t kept = needs.kept + block.chunks * needs.perChunk;
  auto *base = static_cast<char *>(
      genrec_rt_block_memory(step, rowBlockBytes(own.count, sizes, needs, workers)));
  block.keptBase = base;
  block.localRows = roundedRows(sizes.capacity);
  const detail::WorkerMemory memory{base + kept, blockWorkerBytes(sizes, needs),
                                    block.localRows * localBytes, roundUp(needs.scratch, 64),
                                    domains * kDomainBytes};
  block.firstOp = firstOp;
  for (int32_t worker = 0; worker < workers && step->profile; ++worker)
    memset(memory.spentBy(worker), 0, static_cast<size_t>(ops) * sizeof(int64_t));

  block.phase = BlockPhase::prepare;
  block.keptBytes = 0;
  calls(&block);
  detail::runChunks(block, own, domain, sizes, memory, calls);
  if (step->profile)
    detail::reportSpent(step, firstOp, ops, began, memory, workers);
  block.phase = BlockPhase::finish;
  block.keptBytes = 0;
  calls(&block);
}

//===----------------------------------------------------------------------===//
// Row kernels
//===----------------------------------------------------------------------===//

inline void enter(RowBlock *block, int32_t op) {
  if (block->isWhole())
    enter(block->all, op);
  else if (block->phase == BlockPhase::rows && block->profile)
    detail::switchTo(block, op);
}

inline void checkFinite(RowBlock *block, int32_t op, const float *values, int64_t rows,
                        int64_t rowSize, int64_t stride) {
  if (block->isWhole())
    checkFinite(block->all, op, values, rows, rowSize, stride);
}

template <class... Pointers>
inline void launch(RowBlock *block, const genrec_domain *domain, int64_t grain,
                   genrec_rt_chunk_fn kernel, Pointers *...pointers) {
  if (block->isWhole())
    return launch(block->all, domain, grain, kernel, pointers...);
  if (block->phase != BlockPhase::rows)
    return;
  void *args[] = {static_cast<genrec_step *>(block), detail::erase(pointers)...};
  kernel(args, 0, domain->count, 0);
}

template <int N, class... Rest>
inline void launchSums(RowBlock *block, const genrec_domain *domain, int64_t grain,
                       genrec_rt_chunk_fn kernel, Rest... rest) {
  if (block->isWhole())
    return launchSums<N>(block->all, domain, grain, kernel, rest...);
  constexpr int kSlots = sizeof...(Rest);
  const detail::Slot slots[kSlots] = {detail::Slot(rest)...};
  int64_t floats = 0;
  for (int i = 0; i < N; ++i)
    floats += sumFloats(slots[2 * i + 1].size);
  // A chunk's sums, and those of its current block.
  const int64_t parts = floats <= kMostPieceFloats ? 2 : 1;
  float *sums = block->keepPerChunk(parts * floats);
  if (block->phase == BlockPhase::rows) {
    void *args[kSlots - 2 * N + 2] = {static_cast<genrec_step *>(block)};
    for (int i = 2 * N; i < kSlots; ++i)
      args[i - 2 * N + 1] = slots[i].pointer;
    args[kSlots - 2 * N + 1] = sums;
    const int64_t own = block->chunk * parts;
    if (parts == 1 || block->startsChunk) {
      kernel(args, 0, domain->count, block->startsChunk ? own : ~own);
    } else {
      kernel(args, 0, domain->count, own + 1);
      detail::addSums(sums + own * floats, sums + (own + 1) * floats, floats);
    }
  } else if (block->phase == BlockPhase::finish) {
    detail::addChunks(block->pool, sums, block->chunks, floats, parts * floats);
    detail::takeSums(slots, N, sums);
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ROW_BLOCKS_H
