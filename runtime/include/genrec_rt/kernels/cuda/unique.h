//===- unique.h - Distinct ids of a batch -------------------------*- C++ -*-===//
//
// Ids come in segments, one per table or group of features; equal ids of two
// segments are two ids. Distinct ids are numbered by first appearance, which is
// by segment first, so results are the same whatever runs when.
//
// A hash table over the batch: segment s has the slots [2 o(s), 2 o(s + 1)), with o the
// segments' offsets, so it is never more than half full. A slot has 4 bytes: a position of its id,
// its least one in the end, and bits of the id's hash, as many as there is room for. Ids are placed
// by tiles of 2,048, most of whose repetitions are found in shared memory: these touch no slot. A
// bit for each position says whether it is the first of its id, so the number of an id is how many
// such bits there are before: bits are counted word by word in a launch of their own, and then no
// block waits for another. Grouped by owners, tiles count theirs by decoupled look-back
// (kernels/cuda/look_back.h), and slots hold numbers in the end. Launches begin early: what does
// not depend on the one before is done beside it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_UNIQUE_H
#define GENREC_RT_KERNELS_CUDA_UNIQUE_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/identity.h"

namespace genrec::rt::cuda {

struct LookBackTiles;
namespace unique {
struct Batch;
struct Owners;
} // namespace unique

/// Who keeps a row, from other bits than its slot and digest: sharding must not cluster slots.
__host__ __device__ inline uint32_t ownerOf(int64_t id, uint32_t owners) {
  const uint64_t hash = splitMix64(splitMix64(static_cast<uint64_t>(id)) ^ 0x6F776E65726F66ull);
  return static_cast<uint32_t>((hash >> 32) * owners >> 32);
}

/// Where results go; arrays of the device. Null members are not computed.
struct UniqueResult {
  int64_t *ids = nullptr;      ///< [count] the distinct ids
  uint32_t *inverse = nullptr; ///< [count] the number of each id
  uint32_t *counts = nullptr;  ///< [count] how often a distinct id occurs
  int64_t *offsets = nullptr;  ///< [segments + 1] where the distinct ids of a segment begin
  uint32_t *total = nullptr;   ///< [1] how many there are; required
};

class Unique {
public:
  static constexpr int kMostOwners = 1024; ///< what a block counts in shared memory

  explicit Unique(const std::string &name)
      : slots(name + ".unique_slots"), slotOf(name + ".unique_slot_of"),
        firsts(name + ".unique_firsts"), repeats(name + ".unique_repeats"),
        ranks(name + ".unique_ranks"), states(name + ".unique_states"),
        ofOwners(name + ".unique_owners"), ofParts(name + ".unique_parts") {}

  /// Takes the scratch of `count` ids: no run of fewer takes any then.
  void reserve(int64_t count, cudaStream_t stream);

  /// `segmentOffsets` has segments + 1 entries from 0 to count, ascending; count is below 2^31.
  void run(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
           const UniqueResult &result, cudaStream_t stream);

  /// The same of one segment, where the id 0 stands for none: its number is `count`. No offsets.
  void runWithoutZero(const int64_t *ids, int64_t count, const UniqueResult &result,
                      cudaStream_t stream);

  /// The same as run of one segment, with the distinct ids grouped by owner (ownerOf, below
  /// `owners`, at most kMostOwners), within an owner by first appearance. `ownerOffsets` has
  /// owners + 1 entries. No counts. Scratch: 8 bytes per owner and 2,048 ids beside that of run.
  void runByOwner(const int64_t *ids, int64_t count, uint32_t owners, const UniqueResult &result,
                  int64_t *ownerOffsets, cudaStream_t stream);

private:
  /// Clears the table, and what owners count, and places ids, of which there is at least one; a
  /// null `segmentOffsets` is of one segment that is the batch.
  unique::Batch place(const int64_t *ids, int64_t count, const int64_t *segmentOffsets,
                      int64_t segments, bool skipsZero, const unique::Owners &owners,
                      const LookBackTiles &ofOwners, cudaStream_t stream);
  /// All of it by first appearance.
  void number(const int64_t *ids, int64_t count, const int64_t *segmentOffsets, int64_t segments,
              bool skipsZero, const UniqueResult &result, cudaStream_t stream);

  DeviceArray<uint32_t> slots, slotOf, firsts, repeats;
  DeviceArray<uint2> ranks;
  DeviceArray<Word> states;
  DeviceArray<uint32_t> ofOwners, ofParts;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_UNIQUE_H
