//===- launch.h - Launching kernels ------------------------------*- C++ -*-===//
//
// Kernels are launched by a function call, not by <<<>>>: the same source then
// compiles for the host, where tests run it (test/Cuda/Simt). At the end: how emitted
// stages run row kernels, by the names of cpu/launch.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LAUNCH_H
#define GENREC_RT_KERNELS_CUDA_LAUNCH_H

#include "genrec_rt/cuda/sizes.h"
#include "genrec_rt/device_limits.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"
#include "genrec_rt/kernels/cuda/row_sums.h"
#include "genrec_rt/kernels/cuda/scattered_sums.h"
#include "genrec_rt/kernels/cuda/step.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace genrec::rt::cuda {

/// Blocks, threads per block and bytes of dynamic shared memory of a launch.
struct LaunchShape {
  dim3 grid, block;
  int64_t dynamicBytes = 0;
  /// Its blocks may come to the device while the launch before it in the stream, a kernel, is at
  /// work: programmatic dependent launch. The kernel calls awaitLaunchBefore, and so does that one.
  bool beginsEarly = false;
};

/// The same, which begins early.
inline LaunchShape early(LaunchShape shape) {
  shape.beginsEarly = true;
  return shape;
}

namespace detail {

/// Whether all code in this program is for devices that have programmatic dependent launch: that
/// for others has no instruction to wait.
constexpr bool launchesCanBeginEarly() {
#if defined(__CUDA_ARCH_LIST__)
  for (const int architecture : {__CUDA_ARCH_LIST__})
    if (architecture < 900)
      return false;
#endif
  return true;
}

/// The current device has no room for a block with so many bytes of dynamic shared memory.
[[noreturn]] inline void throwSharedMemory(int64_t bytes) {
  (void)cudaGetLastError();
  int device = 0, most = 0;
  cudaDeviceProp properties;
  GENREC_CUDA_CHECK(cudaGetDevice(&device));
  GENREC_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  GENREC_CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  throw Error("a block of a kernel needs " + std::to_string(bytes) +
                  " bytes of shared memory, and the GPU '" + properties.name + "' gives a block " +
                  std::to_string(most),
              "heads of attention of fewer columns need less, and so do narrower rows; GPUs of "
              "compute capability 9.0 give 232448");
}

template <class... P, class... A>
cudaError_t launchKernel(cudaStream_t stream, const LaunchShape &shape, void (*kernel)(P...),
                         A &&...arguments) {
  // More than this needs a kernel's consent.
  constexpr int64_t kPlainDynamicBytes = 48 << 10;
  if (shape.dynamicBytes > kPlainDynamicBytes) {
    cudaError_t status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(shape.dynamicBytes));
    if (status == cudaErrorInvalidValue)
      throwSharedMemory(shape.dynamicBytes);
    if (status != cudaSuccess)
      return status;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = static_cast<size_t>(shape.dynamicBytes);
  config.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = shape.beginsEarly && launchesCanBeginEarly() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, static_cast<A &&>(arguments)...);
}

} // namespace detail

/// Threads of a block whose kernel has no reason for another number.
constexpr int kThreads = 256;

/// ceil(count / per), for the number of blocks.
constexpr int64_t blocksFor(int64_t count, int64_t per) { return (count + per - 1) / per; }

/// Most blocks of a kernel whose threads loop over what is left: enough to fill a device many
/// times. On the host few, so that tests see every loop go round.
inline constexpr int64_t kMostBlocks = deviceSize(16384, 4);

/// Blocks of `threads` for `items`, of which a thread has one; no more than `most` blocks, whose
/// threads then have several.
inline LaunchShape shapeOfThreads(int64_t items, int threads, int64_t most = kMostBlocks) {
  const int64_t blocks = std::clamp<int64_t>(blocksFor(items, threads), 1, most);
  return {dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads))};
}

} // namespace genrec::rt::cuda

/// GENREC_CUDA_LAUNCH(stream, shape, kernel, arguments...): launches, and throws
/// CudaError naming kernel and caller where that fails. A template's arguments
/// want parentheses: (kernel<int, 4>).
#define GENREC_CUDA_LAUNCH(stream, shape, ...)                                                     \
  GENREC_CUDA_CHECK(::genrec::rt::cuda::detail::launchKernel(stream, shape, __VA_ARGS__))

//===----------------------------------------------------------------------===//
// Row kernels
//
// A row kernel takes the step, then what it reads and writes: all of it in device memory. It reads
// counts there; the host knows capacities, which bound grids.
//===----------------------------------------------------------------------===//

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

namespace detail {

/// Shared memory of a block, with the kernel's consent, on every device that this program has code
/// for.
constexpr int64_t mostSharedBytes() {
  int64_t kibibytes = 227;
#if defined(__CUDA_ARCH_LIST__)
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    const bool isOfServers = architecture >= 900 && architecture < 1200;
    const int64_t own = isOfServers ? 227 : architecture == 800 || architecture == 870 ? 163 : 99;
    kibibytes = own < kibibytes ? own : kibibytes;
  }
#endif
  return kibibytes << 10;
}
constexpr int64_t kMostSharedBytes = mostSharedBytes();

/// Blocks for `rows` rows, each of which has `lanes` threads, or for as many chunks where sums are
/// added up by chunks.
inline cuda::LaunchShape shapeOf(const RowMapping &mapping, int64_t rows, int64_t mostBlocks) {
  constexpr int64_t kFull = 32, kGoodBytes = 48 << 10;
  int64_t each = fullBlockThreads(mapping.lanes, mapping.isSpread) / mapping.lanes;
  // Several blocks want to be resident; but a warp that is not full wastes its other lanes.
  while (each > 1 && each * mapping.sharedBytes > kGoodBytes &&
         (each * mapping.lanes > kFull || each * mapping.sharedBytes > kMostSharedBytes))
    each /= 2;
  const int64_t threads = each * mapping.lanes;
  const int64_t blocks = cuda::blocksFor(
      rows, mapping.isSpread ? threads / teamThreads(mapping.lanes, threads) : each);
  return {dim3(static_cast<unsigned>(blocks < mostBlocks ? blocks : mostBlocks)),
          dim3(static_cast<unsigned>(threads)), each * mapping.sharedBytes};
}

} // namespace detail

/// Runs `kernel` for the rows of `domain`, one of the step's; the grid covers its capacity.
template <class... Parameters, class... Pointers>
void launch(genrec_step *step, const genrec_domain *domain, const RowMapping &mapping,
            void (*kernel)(const genrec_step *, Parameters...), Pointers *...pointers) {
  if (domain->capacity > 0)
    GENREC_CUDA_LAUNCH(streamOf(step),
                       detail::shapeOf(mapping, domain->capacity, cuda::kMostBlocks), kernel,
                       step->device, pointers...);
}

namespace detail {

/// Where a result goes, or its number of floats.
struct SumArgument {
  float *to = nullptr;
  int64_t size = 0;

  SumArgument(float *to) : to(to) {}
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  SumArgument(T size) : size(static_cast<int64_t>(size)) {}
};
template <size_t> using NumberedSumArgument = SumArgument;

/// Takes pairs of where a result goes and its number of floats off the front of its arguments, then
/// calls `launchRest` with what is left. `Numbers` are 0, 1, … for the arguments of all pairs:
/// calls that take one pair and call the next are nested too deep for nvcc, which instantiates 200.
template <class Numbers> struct TakeResults;
template <size_t... Numbers> struct TakeResults<std::index_sequence<Numbers...>> {
  template <class Then, class... Rest>
  static void call(SumResult *results, Then &&launchRest, NumberedSumArgument<Numbers>... pairs,
                   Rest... rest) {
    const SumArgument arguments[] = {pairs...};
    for (size_t i = 0; i < sizeof...(Numbers) / 2; ++i)
      results[i] = {arguments[2 * i].to, arguments[2 * i + 1].size};
    launchRest(rest...);
  }
};

/// How the memory of a launch that adds up results is laid out: the terms of scattered sums, the
/// sums of chunks, and scratch, which the scattered sums use one after another.
struct SumMemory {
  std::span<SumResult> chunked;
  int64_t floats = 0; ///< of a chunk
  std::span<ScatteredSum> scattered;
  int64_t words = 0, scratchBytes = 0;

  /// `chunkedRoom` and `scatteredRoom` have room for all results.
  SumMemory(const genrec_step *step, const SumShape *shapes, std::span<const SumResult> results,
            SumResult *chunkedRoom, ScatteredSum *scatteredRoom) {
    size_t ofChunks = 0, ofTerms = 0;
    for (const SumResult &result : results) {
      const SumShape &shape = *shapes++;
      if (shape.terms == 0) {
        chunkedRoom[ofChunks++] = result;
        floats += (result.size + 15) / 16 * 16; // sumFloats
        continue;
      }
      ScatteredSum &sum = scatteredRoom[ofTerms++];
      const int64_t leaving = step->domains[shape.domain].capacity;
      sum = {shape, {}, leaving, result.to, result.size / shape.stride};
      words += scatteredWords(leaving, shape.terms, shape.vectors, shape.width, shape.isScaled,
                              shape.isRounded);
      const int64_t bytes = scatteredScratchBytes(sum);
      scratchBytes = bytes > scratchBytes ? bytes : scratchBytes;
    }
    chunked = {chunkedRoom, ofChunks};
    scattered = {scatteredRoom, ofTerms};
  }

  /// Sets where terms lie, from `memory` on.
  void place(float *memory) {
    for (ScatteredSum &sum : scattered) {
      const SumShape &shape = sum.shape;
      sum.terms = scatteredTerms(memory, sum.leaving, shape.terms);
      memory += scatteredWords(sum.leaving, shape.terms, shape.vectors, shape.width, shape.isScaled,
                               shape.isRounded);
    }
  }
};

} // namespace detail

/// The same for a kernel that adds up N results as `shapes` say. `rest` is N pairs of where a
/// result goes and its number of floats (of those with a row per row of a domain: of its capacity),
/// then the pointers as for `launch`; the kernel gets one more behind them, where terms of
/// scattered sums lie and behind these the chunks' sums.
template <int N, class... Parameters, class... Rest>
void launchSums(genrec_step *step, const genrec_domain *domain, const RowMapping &mapping,
                const SumShape (&shapes)[N], void (*kernel)(const genrec_step *, Parameters...),
                Rest... rest) {
  SumResult results[N];
  detail::TakeResults<std::make_index_sequence<2 * N>>::call(
      results,
      [&](auto... pointers) {
        SumResult chunked[N];
        ScatteredSum scattered[N];
        detail::SumMemory sums(step, shapes, results, chunked, scattered);
        const int64_t chunks = sums.floats ? mostChunks(domain->capacity, sums.floats) : 0;
        const int64_t words = sums.words + chunks * sums.floats;
        auto *memory = static_cast<float *>(scratchOf(step, words * 4 + sums.scratchBytes));
        sums.place(memory);
        const cudaStream_t stream = streamOf(step);
        for (const ScatteredSum &sum : sums.scattered)
          clearTerms(stream, sum);
        // Without sums of chunks every row is on its own.
        const int64_t rows = sums.floats ? chunks : domain->capacity;
        if (rows > 0)
          GENREC_CUDA_LAUNCH(stream,
                             detail::shapeOf(mapping, rows, sums.floats ? rows : cuda::kMostBlocks),
                             kernel, step->device, pointers..., memory);
        if (sums.floats)
          addChunks(stream, domain->device, memory + sums.words, sums.floats, sums.chunked);
        for (const ScatteredSum &sum : sums.scattered)
          addTerms(stream, sum, memory + words);
      },
      rest...);
}

/// What a column passes as the number of domain `domain` (columnDomain).
inline void *domainNumber(intptr_t domain) { return reinterpret_cast<void *>(domain); }

namespace detail {

/// launchColumns, with at most `rows` rows of each column, and its pointer to `parts`, if it has
/// one.
template <int Count, int Room, int Pointers>
void launchColumns(genrec_step *step, const ColumnShape (&columns)[Count],
                   void (*kernel)(const genrec_step *, Columns<Room, Pointers>),
                   void *const *pointers, int64_t sharedBytes, const int64_t (&rows)[Count],
                   void *const *parts) {
  static_assert(sizeof(Columns<Room, Pointers>) == columnBytes(Room, Pointers) &&
                sizeof(Columns<Room, Pointers>) <= kMostColumnBytes);
  for (int next = 0; next < Count;) {
    Columns<Room, Pointers> launched;
    int32_t count = 0, blocks = 0, pointer = 0;
    for (; next < Count && count < Room && pointer + columns[next].pointers <= Pointers; ++next) {
      const ColumnShape &column = columns[next];
      launched.shapes[count] = column;
      launched.firstPointer[count] = pointer;
      launched.firstBlock[count++] = blocks;
      std::copy_n(pointers, column.pointers, launched.pointers + pointer);
      if (column.parts >= 0)
        launched.pointers[pointer + column.parts] = parts[next];
      pointers += column.pointers;
      pointer += column.pointers;
      blocks += static_cast<int32_t>(cuda::blocksFor(rows[next], column.rows));
    }
    // No block belongs to the columns that are missing.
    std::fill(launched.firstBlock + count, launched.firstBlock + Room + 1, blocks);
    const cuda::LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kColumnThreads),
                                  sharedBytes};
    if (blocks > 0)
      GENREC_CUDA_LAUNCH(streamOf(step), shape, kernel, step->device, launched);
  }
}

} // namespace detail

/// Runs `kernel` for `columns`, each over the rows of its own domain, as many in one launch as it
/// takes. `pointers` are those of all columns one after another: their inputs, their results or
/// their part of one, and the numbers of domains. A block has `sharedBytes` of shared memory, at
/// most 48 KiB.
template <int Count, int Room, int Pointers>
void launchColumns(genrec_step *step, const ColumnShape (&columns)[Count],
                   void (*kernel)(const genrec_step *, Columns<Room, Pointers>),
                   void *const *pointers, int64_t sharedBytes = 0) {
  int64_t rows[Count];
  for (int i = 0; i < Count; ++i)
    rows[i] = step->domains[columns[i].domain].capacity;
  detail::launchColumns(step, columns, kernel, pointers, sharedBytes, rows, nullptr);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_LAUNCH_H
