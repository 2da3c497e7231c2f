//===- lowest_rows.h - The rows that a bounded table gives up -----*- C++ -*-===//
//
// Which n rows are lowest by their sightings (row_rules.h: for lfu the steps that saw
// them, the last of these, the id; for lru without the first), found on the device by
// a radix selection: pass by pass over the bytes of the rank, from the highest, rows
// are counted by the byte, and the byte that the n-th lowest row has is kept (Knuth,
// The Art of Computer Programming, volume 3, exercise 5.2.5). No two ranks are equal,
// so the result does not depend on what runs when.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_LOWEST_ROWS_H
#define GENREC_RT_CUDA_LOWEST_ROWS_H

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/cuda/row_addresses.h"
#include "genrec_rt/row_rules.h"

namespace genrec::rt::cuda {

class LowestRows {
public:
  explicit LowestRows(const std::string &name)
      : selection(name + ".selection"), byteCounts(name + ".byte_counts") {}

  /// flags[number] = 1 for the `wanted` lowest, 1 or more, of the rows with inUse[number] below
  /// `numbers`, else 0. A row has its Sighting `sightingOffset` floats behind its begin, of which
  /// no part is above `lastStep`.
  void flag(const RowAddresses &addresses, int64_t sightingOffset, Eviction eviction,
            const uint8_t *inUse, int64_t numbers, int64_t wanted, int64_t lastStep, uint8_t *flags,
            cudaStream_t stream);

private:
  DeviceArray<uint64_t> selection;
  DeviceArray<uint32_t> byteCounts;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_LOWEST_ROWS_H
