//===- order.h - Stable orders of small keys ----------------------*- C++ -*-===//
//
// The positions of an array ordered by key, equal keys by position: what grouping
// by owner and by row needs. Passes over digits of the key from the lowest up
// (Knuth, The Art of Computer Programming, volume 3, section 5.2.5); a pass counts
// digits per block, adds up before, and places. Digits have up to 11 bits, so keys
// below 2^11, 2^22 and 2^31 take 1, 2 and 3 passes. The order is unique, so it
// does not depend on what runs when. A block brings its tile into order in shared memory, and
// writes equal digits side by side.
//
// Of n keys, a pass reads each twice, from the second on with its position, and writes both in one
// word, the last pass the position: some 12 n bytes for one pass, 36 n for two.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ORDER_H
#define GENREC_RT_KERNELS_CUDA_ORDER_H

#include "genrec_rt/cuda/memory.h"

namespace genrec::rt::cuda {

/// order[count] = the positions 0 … count - 1 by ascending keys[position] below
/// `keyLimit`; count and keyLimit are at most 2^31. Of `count` keys *used exist (on the device;
/// null: all). `scratch` has orderScratchBytes.
void orderStably(const uint32_t *keys, int64_t count, int64_t keyLimit, uint32_t *order,
                 void *scratch, cudaStream_t stream, const uint32_t *used = nullptr);
int64_t orderScratchBytes(int64_t count, int64_t keyLimit);

/// The same with scratch of its own, reused from call to call.
class StableOrder {
public:
  explicit StableOrder(const std::string &name) : scratch(name + ".order") {}

  /// Takes the scratch of `count` keys: no run of fewer below the same limit takes any then.
  void reserve(int64_t count, int64_t keyLimit, cudaStream_t stream) {
    scratch.ensure(orderScratchBytes(count, keyLimit), stream);
  }

  void run(const uint32_t *keys, int64_t count, int64_t keyLimit, uint32_t *order,
           cudaStream_t stream, const uint32_t *used = nullptr) {
    orderStably(keys, count, keyLimit, order,
                scratch.ensure(orderScratchBytes(count, keyLimit), stream), stream, used);
  }

private:
  DeviceArray<char> scratch;
};

/// offsets[*keyCount + 1]: where each key below *keyCount begins in `order`, and behind them where
/// the last one ends; all of them occur, keys from *keyCount on may.
void findSegments(const uint32_t *keys, const uint32_t *order, int64_t count,
                  const uint32_t *keyCount, int64_t *offsets, cudaStream_t stream);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ORDER_H
