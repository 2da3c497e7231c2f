//===- tree_sums.h - Sums of rows over the tree of portions -----*- C++ -*-===//

#ifndef GENREC_RT_RANKS_TREE_SUMS_H
#define GENREC_RT_RANKS_TREE_SUMS_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/portions.h"

#include <cstdint>
#include <span>
#include <vector>

namespace genrec::rt {

/// Adds one rank's sums of rows over the tree of portions.h, where a portion touches a few rows of
/// many: a node has entries for the rows that its portions touch. What only one child has goes up
/// as it is. Rows are numbers from 0 on.
class TreeSums {
public:
  struct Entry {
    int32_t row;
    float *sum;
  };
  struct Node : PortionNode {
    std::vector<Entry> entries; ///< each row once
  };

  explicit TreeSums(int64_t dim) : dim(dim) {}

  /// Forgets all nodes and sums.
  void begin();
  /// The next node in the order of portions, without entries: the caller adds them, then calls
  /// `merge`. Their sums are added to.
  std::vector<Entry> &addNode(PortionNode where);
  /// Adds the last node to its sibling where that is there, and so on upwards. Rows are below
  /// `rows`.
  void merge(int64_t rows);
  std::span<const Node> getNodes() const { return {nodes.data(), count}; }

  /// Memory for a sum, until `begin`.
  float *takeSum() {
    if (!spare.empty()) {
      float *sum = spare.back();
      spare.pop_back();
      return sum;
    }
    auto chunk = static_cast<size_t>(taken / kChunkSums);
    if (chunk == chunks.size())
      addChunk();
    return chunks[chunk].data() + taken++ % kChunkSums * dim;
  }

private:
  /// Sums per chunk of memory.
  static constexpr int64_t kChunkSums = 1024;

  void addChunk() { chunks.emplace_back().ensure(kChunkSums * dim); }
  /// Adds the last node to the one before it.
  void mergeLast(int64_t rows);

  int64_t dim;
  std::vector<Node> nodes; ///< the first `count`; the others keep their memory
  size_t count = 0;
  std::vector<int32_t> leftIndex; ///< by row: where its entry is in the left node, or -1
  std::vector<GrowBuffer<float>> chunks;
  int64_t taken = 0;          ///< sums of chunks
  std::vector<float *> spare; ///< sums that were added to others
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_TREE_SUMS_H
