//===- lower_halves.h - Lower halves of hot rows on a device -----*- C++ -*-===//
//
// Blocks of the lower halves of one row each (kernels/shared/row_values.h), aligned to 64 bytes, in
// chunks that never move. Blocks are numbered as they are taken. Those that come back are taken
// again, the last one first, so which block a row has does not depend on what runs at the same
// time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_LOWER_HALVES_H
#define GENREC_RT_CUDA_LOWER_HALVES_H

#include "genrec_rt/cuda/memory.h"

#include <string>
#include <vector>

namespace genrec::rt::cuda {

/// Numbers of blocks, which only the device knows at once.
struct LowerCounters {
  uint32_t used;   ///< numbers given out so far
  uint32_t freed;  ///< of these, blocks that came back, to be given out again
  uint32_t moving; ///< blocks that the current call takes, or gives back
};

/// Blocks as kernels take them and give them back.
struct LowerBlocks {
  char *const *chunks = nullptr; ///< on the device
  int64_t chunkShift = 0;
  int64_t bytes = 0;          ///< of a block
  uint16_t **freed = nullptr; ///< those that came back, in that order
  LowerCounters *counters = nullptr;

  __device__ uint16_t *block(uint32_t number) const {
    const int64_t inChunk = number & ((int64_t(1) << chunkShift) - 1);
    return reinterpret_cast<uint16_t *>(chunks[number >> chunkShift] + inChunk * bytes);
  }
};

/// Memory of blocks. Nothing is allocated before the first of them.
class LowerHalves {
public:
  LowerHalves(const std::string &name, int64_t dim);
  /// The device is done with them.
  ~LowerHalves();
  LowerHalves(const LowerHalves &) = delete;
  LowerHalves &operator=(const LowerHalves &) = delete;

  /// Makes room for `blocks` of them, in whole chunks.
  void makeRoom(int64_t blocks, cudaStream_t stream);
  int64_t room() const { return static_cast<int64_t>(chunks.size()) << chunkShift; }
  int64_t chunkBlocks() const { return int64_t(1) << chunkShift; }
  int64_t bytes() const { return room() * blockBytes; }
  LowerBlocks onDevice(LowerCounters *counters) const {
    return {chunkTable.data(), chunkShift, blockBytes, freed.data(), counters};
  }

private:
  const std::string name;
  const int64_t blockBytes;
  int64_t chunkShift = 0;
  std::vector<char *> chunks;
  DeviceArray<char *> chunkTable;
  DeviceArray<uint16_t *> freed;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_LOWER_HALVES_H
