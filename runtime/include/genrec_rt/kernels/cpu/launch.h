//===- launch.h - How emitted stages run row kernels ------------*- C++ -*-===//
//
// A row kernel is a chunk function of parallel.h whose arguments are an array of
// pointers: the step first, then what it reads and writes. Results that are added
// up over all rows go into sums private to a piece of a chunk of rows, which are
// then added in a tree. How rows are cut depends on their number and the size of
// the sums alone, so results have the same bits at any number of threads, and, of
// up to kMostPieceFloats sums, on a device (row_chunks.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_LAUNCH_H
#define GENREC_RT_KERNELS_CPU_LAUNCH_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/rowbody.h"
#include "genrec_rt/kernels/shared/stage.h"
#include "genrec_rt/scratch_sizes.h"

#include <string.h>

#include <type_traits>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Argument `number` of a kernel.
template <class T> inline T *argument(void *args, int64_t number) {
  return static_cast<T *>(static_cast<void *const *>(args)[number]);
}

namespace detail {

template <class T> inline void *erase(T *pointer) {
  return const_cast<void *>(static_cast<const void *>(pointer));
}

/// A pointer or a size among the arguments of launchSums.
struct Slot {
  void *pointer = nullptr;
  int64_t size = 0;

  template <class T> Slot(T *pointer) : pointer(erase(pointer)) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Slot(T size) : size(static_cast<int64_t>(size)) {}
};

inline void addSums(float *to, const float *from, int64_t floats) {
  for (int64_t k = 0; k < floats; ++k)
    to[k] += from[k];
}

/// Adds the sums of all chunks, which lie `apart` floats from one another, into those of the first:
/// i and i + 1, then i and i + 2, and so on.
inline void addChunks(genrec_rt_pool *pool, float *sums, int64_t chunks,
                      int64_t floats, int64_t apart) {
  constexpr int64_t kGrain = 8192;
  parallelFor(pool, floats, kGrain, [=](int64_t begin, int64_t end, int64_t) {
    for (int64_t stride = 1; stride < chunks; stride *= 2)
      for (int64_t i = 0; i + stride < chunks; i += 2 * stride)
        addSums(sums + i * apart + begin, sums + (i + stride) * apart + begin, end - begin);
  });
}

/// Runs `kernel` for rows [begin, end), the pieces of chunk `chunk`, and leaves their sum in its
/// first slot: a slot has the sum of a power of two of pieces, more than those behind it.
inline void sumPieces(genrec_rt_chunk_fn kernel, void *args, const SumChunks &cut, int64_t begin,
                      int64_t end, int64_t chunk, float *sums, int64_t floats) {
  const int64_t first = chunk * cut.slots;
  int64_t used = 0;
  auto addLast = [&] {
    --used;
    addSums(sums + (first + used - 1) * floats, sums + (first + used) * floats, floats);
  };
  for (int64_t piece = 1; begin < end; ++piece, begin += cut.pieceRows) {
    const int64_t last = begin + cut.pieceRows;
    kernel(args, begin, last < end ? last : end, first + used++);
    for (int64_t pieces = piece; pieces % 2 == 0; pieces /= 2)
      addLast();
  }
  while (used > 1)
    addLast();
}

/// Copies the added-up sums of `count` results, side by side, to where the pairs of where
/// and how many floats in `slots` say.
inline void takeSums(const Slot *slots, int count, const float *sums) {
  for (int i = 0; i < count; ++i) {
    memcpy(slots[2 * i].pointer, sums, static_cast<size_t>(slots[2 * i + 1].size) * 4);
    sums += sumFloats(slots[2 * i + 1].size);
  }
}

} // namespace detail

/// Runs `kernel` for the rows of `domain`, at least `grain` of them per chunk.
template <class... Pointers>
inline void launch(genrec_step *step, const genrec_domain *domain,
                   int64_t grain, genrec_rt_chunk_fn kernel,
                   Pointers *...pointers) {
  void *args[] = {step, detail::erase(pointers)...};
  genrec_rt_parallel_for(step->pool, domain->count, grain, kernel, args);
}

/// Runs the kernels of `count` columns, each over the rows of its own domain, in one
/// parallel region: a chunk of rows of a column is a task.
inline void launchColumns(genrec_step *step, int64_t count, const genrec_rt_chunk_fn *kernels,
                          const genrec_domain *const *domains, void **const *arguments) {
  constexpr int64_t kChunkRows = 4096;
  auto *starts = static_cast<int64_t *>(genrec_rt_thread_scratch(step, (count + 1) * 8));
  parallelParts(
      step->pool, count, kChunkRows, starts, [=](int64_t column) { return domains[column]->count; },
      [=](int64_t column, int64_t begin, int64_t end) { kernels[column](arguments[column], begin, end, 0); });
}

/// The same for a kernel that adds up N results. `rest` is N pairs of where a
/// result goes and its number of floats, then the pointers as for `launch`; the kernel gets
/// the chunks' sums, all results side by side (sumFloats), as one more pointer behind them.
template <int N, class... Rest>
inline void launchSums(genrec_step *step, const genrec_domain *domain,
                       int64_t grain, genrec_rt_chunk_fn kernel, Rest... rest) {
  constexpr int kSlots = sizeof...(Rest);
  const detail::Slot slots[kSlots] = {detail::Slot(rest)...};
  int64_t floats = 0;
  for (int i = 0; i < N; ++i)
    floats += sumFloats(slots[2 * i + 1].size);
  SumChunks chunks = cutForSums(domain->count, grain, floats);
  auto *sums =
      static_cast<float *>(genrec_rt_thread_scratch(step, sumScratchBytes(chunks, floats)));
  void *args[kSlots - 2 * N + 2] = {step};
  for (int i = 2 * N; i < kSlots; ++i)
    args[i - 2 * N + 1] = slots[i].pointer;
  args[kSlots - 2 * N + 1] = sums;
  parallelFor(step->pool, domain->count, chunks.grain,
              [&](int64_t begin, int64_t end, int64_t chunk) {
                detail::sumPieces(kernel, args, chunks, begin, end, chunk, sums, floats);
              });
  if (chunks.count == 0)
    memset(sums, 0, static_cast<size_t>(floats) * 4);
  detail::addChunks(step->pool, sums, chunks.count, floats, chunks.slots * floats);
  detail::takeSums(slots, N, sums);
}

/// With --profile, notes that op `op` begins.
inline void enter(genrec_step *step, int32_t op) {
  if (step->profile)
    genrec_rt_enter(step, op);
}

/// With --check-finite, looks for NaN and infinity in what op `op` wrote: `rows` rows
/// of `rowSize` floats, `stride` apart.
inline void checkFinite(genrec_step *step, int32_t op, const float *values,
                        int64_t rows, int64_t rowSize, int64_t stride) {
  if (step->check_finite)
    genrec_rt_check_finite(step, op, values, rows, rowSize, stride);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

/// What emitted code calls the namespace.
namespace kernels = genrec::rt::kernels;

#endif // GENREC_RT_KERNELS_CPU_LAUNCH_H
