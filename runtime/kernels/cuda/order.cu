//===- order.cu - Stable orders of small keys -----------------------------===//

#include "genrec_rt/kernels/cuda/order.h"

#include "key_ranks.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/prefix_sums.h"
#include "genrec_rt/kernels/cuda/scratch.h"

#include <algorithm>
#include <bit>

namespace genrec::rt::cuda {

namespace {

constexpr int kKeysEach = 16; ///< items of a thread
constexpr int kPerBlock = kThreads * kKeysEach;
/// The widest digit: two passes order up to 2^22 keys, and the counts of a block's warps fit into
/// the 48 KiB that a kernel may have without asking.
constexpr int kMostBits = 11, kMostDigits = 1 << kMostBits;

/// What a pass reads: the keys themselves, then what the last pass has placed, keys (x) with their
/// positions (y) in one word, as both go to one place that no neighbour goes to.
struct Pass {
  const uint32_t *keys;
  const uint2 *placed; ///< null: the keys themselves
  int64_t count;
  const uint32_t *used; ///< null: count
  int shift, bits;

  __device__ int64_t present() const {
    return used ? min(count, static_cast<int64_t>(*used)) : count;
  }
  __device__ int digits() const { return 1 << bits; }
  __device__ int digit(uint32_t key) const {
    return static_cast<int>(key >> shift) & (digits() - 1);
  }
  /// Items of a block belong to its warps in order: kKeysEach times 32 to each.
  __device__ static int64_t place(int round) {
    return static_cast<int64_t>(blockIdx.x) * kPerBlock + (warpOf() * kKeysEach + round) * kWarp +
           laneOf();
  }
  /// This thread's keys and their positions, all of which are under way at once.
  __device__ void load(int64_t present, uint2 (&own)[kKeysEach]) const {
#pragma unroll
    for (int round = 0; round < kKeysEach; ++round) {
      const int64_t at = place(round);
      if (placed)
        own[round] = at < present ? placed[at] : uint2{0, 0};
      else
        own[round] = {at < present ? keys[at] : 0, static_cast<uint32_t>(at)};
    }
  }
};

/// counts[digit][block]; clears the `words` states of their prefix sums.
__global__ void __launch_bounds__(kThreads)
    countDigits(Pass pass, uint32_t *counts, Word *states, int64_t words) {
  __shared__ uint32_t mine[kMostDigits];
  for (int64_t word = threadInGrid(); word < words; word += threadsInGrid())
    states[word] = 0;
  const int64_t present = pass.present();
  uint2 items[kKeysEach];
  pass.load(present, items);
  for (int digit = threadIdx.x; digit < pass.digits(); digit += kThreads)
    mine[digit] = 0;
  __syncthreads();
#pragma unroll
  for (int round = 0; round < kKeysEach; ++round)
    if (Pass::place(round) < present)
      atomicAdd(mine + pass.digit(items[round].x), 1u);
  __syncthreads();
  for (int digit = threadIdx.x; digit < pass.digits(); digit += kThreads)
    counts[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x] = mine[digit];
}

/// A block places its items: behind equal digits of earlier blocks, and those before in its tile.
/// It brings them into their order in shared memory first, so that neighbours are written
/// together: writes of a few bytes each are limited by their number. The last pass writes positions
/// alone.
__global__ void __launch_bounds__(kThreads, 3)
    place(Pass pass, const uint32_t *before, uint32_t *to, uint2 *toPlaced) {
  using Ranks = KeyRanks<kThreads, kKeysEach, kMostDigits>;
  __shared__ union {
    Ranks ofTile;
    uint2 inOrder[kPerBlock];
  } shared;
  __shared__ uint16_t first[kMostDigits];    // where a digit begins in the tile
  __shared__ uint32_t distance[kMostDigits]; // from there to where it begins in the result
  const int64_t present = pass.present(), left = present - int64_t(blockIdx.x) * kPerBlock;
  if (left <= 0)
    return;
  uint2 items[kKeysEach];
  uint32_t ranks[kKeysEach];
  pass.load(present, items);
  auto digitOf = [&](int round) {
    return Pass::place(round) < present ? pass.digit(items[round].x) : Ranks::kNone;
  };
  shared.ofTile.rank(pass.digits(), digitOf, ranks);
  __syncthreads(); // warps have counted
  uint32_t begin = 0;
  for (int base = 0; base < pass.digits(); base += kThreads) {
    const int digit = base + static_cast<int>(threadIdx.x);
    const bool isThere = digit < pass.digits();
    uint32_t all;
    const uint32_t of = isThere ? shared.ofTile.addWarps(digit) : 0;
    const uint32_t here = begin + exclusiveBlockSum<kThreads>(of, all);
    if (isThere) {
      first[digit] = static_cast<uint16_t>(here);
      distance[digit] = before[static_cast<int64_t>(digit) * gridDim.x + blockIdx.x] - here;
    }
    begin += all;
  }
  __syncthreads(); // sums of the warps before are there
#pragma unroll
  for (int round = 0; round < kKeysEach; ++round)
    if (const int digit = digitOf(round); digit != Ranks::kNone)
      ranks[round] += first[digit] + shared.ofTile.before(digit);
  __syncthreads(); // items take the place of the sums
#pragma unroll
  for (int round = 0; round < kKeysEach; ++round)
    if (Pass::place(round) < present)
      shared.inOrder[ranks[round]] = items[round];
  __syncthreads(); // the tile is in order
  for (int at = threadIdx.x; at < kPerBlock && at < left; at += kThreads) {
    const uint2 item = shared.inOrder[at];
    const uint32_t target = distance[pass.digit(item.x)] + static_cast<uint32_t>(at);
    if (toPlaced)
      toPlaced[target] = item;
    else
      to[target] = item.y;
  }
}

__global__ void __launch_bounds__(kThreads)
    markSegments(const uint32_t *keys, const uint32_t *order, int64_t count,
                 const uint32_t *keyCount, int64_t *offsets) {
  const uint32_t keysThere = *keyCount;
  // Keys from there on are of no segment; where they begin the last one ends.
  auto keyAt = [&](int64_t at) { return min(keys[order[at]], keysThere); };
  // By whole warps: a lane has the key of the one before it, and lane 0 looks for itself.
  for (int64_t first = threadInGrid() - laneOf(); first <= count; first += threadsInGrid()) {
    const int64_t at = first + laneOf();
    const uint32_t here = at < count ? keyAt(at) : keysThere,
                   front = laneOf() == 0 && at > 0 ? keyAt(at - 1) : 0,
                   before = __shfl_up_sync(kAllLanes, here, 1);
    if (at == 0 || (at <= count && here != (laneOf() == 0 ? front : before)))
      offsets[here] = at;
  }
}

/// As few passes as the keys' bits need, of about as many bits each.
struct Digits {
  int passes, bits;

  explicit Digits(int64_t keyLimit) {
    const int all = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(keyLimit - 1, 1)));
    passes = (all + kMostBits - 1) / kMostBits;
    bits = (all + passes - 1) / passes;
  }
};

/// What lies in the scratch of an order; a null pointer only counts.
struct OrderScratch {
  Word *states;     ///< of a pass's prefix sums
  uint32_t *counts; ///< [digit][block]
  uint2 *placed[2];
  int64_t numbers, words, bytes;

  OrderScratch(int64_t count, const Digits &digits, void *memory)
      : numbers(blocksFor(count, kPerBlock) << digits.bits), words(prefixSumWords(numbers)) {
    ScratchCursor cursor(memory);
    states = cursor.take<Word>(words);
    for (int i = 0; i < 2; ++i)
      placed[i] = cursor.take<uint2>(digits.passes > i + 1 ? count : 0);
    counts = cursor.take<uint32_t>(numbers);
    bytes = cursor.bytes();
  }
};

} // namespace

int64_t orderScratchBytes(int64_t count, int64_t keyLimit) {
  return OrderScratch(count, Digits(keyLimit), nullptr).bytes;
}

void orderStably(const uint32_t *keys, int64_t count, int64_t keyLimit, uint32_t *order,
                 void *memory, cudaStream_t stream, const uint32_t *used) {
  if (count == 0)
    return;
  const Digits digits(keyLimit);
  const OrderScratch scratch(count, digits, memory);
  const LaunchShape shape{dim3(static_cast<unsigned>(blocksFor(count, kPerBlock))), dim3(kThreads)};
  Pass now{keys, nullptr, count, used, 0, digits.bits};
  for (int pass = 0; pass < digits.passes; ++pass) {
    uint2 *placed = pass + 1 < digits.passes ? scratch.placed[pass % 2] : nullptr;
    GENREC_CUDA_LAUNCH(stream, shape, countDigits, now, scratch.counts, scratch.states,
                       scratch.words);
    addBefore(scratch.counts, scratch.numbers, scratch.states, stream);
    GENREC_CUDA_LAUNCH(stream, shape, place, now, scratch.counts, order, placed);
    now.placed = placed;
    now.shift += digits.bits;
  }
}

void findSegments(const uint32_t *keys, const uint32_t *order, int64_t count,
                  const uint32_t *keyCount, int64_t *offsets, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(blocksFor(count + 1, kThreads), 4096);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)}),
                     markSegments, keys, order, count, keyCount, offsets);
}

} // namespace genrec::rt::cuda
